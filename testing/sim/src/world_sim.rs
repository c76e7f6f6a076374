//! [`world::World`] as the simulator provides it.

use crate::executor::Sim;
use crate::net;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use world::{Address, Disk, Instant, Listener, OpenMode, Pending, WallTime, World};

impl World for Sim {
    fn now(&self) -> Instant {
        self.clock()
    }

    fn wall_clock(&self) -> WallTime {
        let elapsed = self.clock().since(Instant(0));
        WallTime { seconds: self.config.wall_seconds + elapsed.as_secs(), nanos: elapsed.subsec_nanos() }
    }

    fn sleep_until(&self, deadline: Instant) -> Pending<()> {
        Box::pin(self.timer(deadline))
    }

    fn random_u64(&self) -> u64 {
        self.random()
    }

    fn cores(&self) -> usize {
        self.config.cores
    }

    fn this_core(&self) -> usize {
        self.current_core()
    }

    fn spawn_on(&self, core: usize, task: Pending<()>) {
        self.spawn_task(core, task);
    }

    fn serving(&self, core: usize) -> Duration {
        self.serving_of(core)
    }

    fn count_serving(&self, time: Duration) {
        self.count_serving_here(time);
    }

    fn compute(&self, job: Box<dyn FnOnce() + Send>) {
        let takes = self.config.compute;
        if takes.is_zero() {
            return job();
        }
        let done = self.timer(self.clock().after(takes));
        let work = async move {
            done.await;
            job();
        };
        self.spawn_task(self.current_core(), Box::pin(work));
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn Disk>> {
        if self.disks.is_cut() {
            return Err(io::Error::other("the power is gone"));
        }
        self.disks.open(path, mode)
    }

    fn open_aside(&self, path: &Path, mode: OpenMode) -> Pending<io::Result<Arc<dyn Disk>>> {
        let opened = self.open(path, mode);
        Box::pin(async move { opened })
    }

    fn list_dir(&self, dir: &Path) -> Pending<io::Result<Vec<PathBuf>>> {
        let listed = self.disks.list(dir);
        Box::pin(async move { Ok(listed) })
    }

    fn listen(&self, address: &Address) -> io::Result<Box<dyn Listener>> {
        net::listen(&self.network, address)
    }
}
