//! [`world::World`] as Linux provides it.

use crate::apart::apart;
use crate::aside::aside;
use crate::disk::File;
use crate::executor::inbox::Message;
use crate::executor::timers::Sleep;
use crate::executor::{World, with_local};
use crate::listener::Socket;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use world::{Address, Disk, Instant, Listener, OpenMode, Pending, WallTime};

impl world::World for World {
    fn now(&self) -> Instant {
        self.0.now()
    }

    fn wall_clock(&self) -> WallTime {
        // A clock set before 1970 reads as 1970.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        WallTime { seconds: since.as_secs(), nanos: since.subsec_nanos() }
    }

    fn sleep_until(&self, deadline: Instant) -> Pending<()> {
        Box::pin(Sleep::until(deadline))
    }

    fn random_u64(&self) -> u64 {
        crate::random::random_u64()
    }

    fn heap(&self) -> Option<world::Heap> {
        crate::house::heap()
    }

    fn trim_heap(&self) {
        crate::house::trim_heap();
    }

    fn cores(&self) -> usize {
        self.0.homes.len()
    }

    fn this_core(&self) -> usize {
        // A compute thread counts as the first core: what it spawns runs there.
        with_local(|local| local.index).or_else(world::visited_core).unwrap_or(0)
    }

    fn spawn_on(&self, core: usize, task: Pending<()>) {
        let mut task = Some(task);
        with_local(|local| {
            if local.index == core
                && let Some(task) = task.take()
            {
                local.spawn(task);
            }
        });
        if let Some(task) = task {
            self.0.send(core, Message::Spawn(task));
        }
    }

    fn serving(&self, core: usize) -> Duration {
        self.0.homes[core].serving()
    }

    fn count_serving(&self, time: Duration) {
        self.0.homes[self.this_core()].count_serving(time);
    }

    fn compute(&self, job: Box<dyn FnOnce() + Send>) {
        self.0.compute.submit(&self.0, job);
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn Disk>> {
        Ok(Arc::new(File::open(&self.0, path, mode)?))
    }

    fn open_aside(&self, path: &Path, mode: OpenMode) -> Pending<io::Result<Arc<dyn Disk>>> {
        let shared = self.0.clone();
        aside(path, move |path| Ok(Arc::new(File::open(&shared, path, mode)?) as Arc<dyn Disk>))
    }

    fn list_dir(&self, dir: &Path) -> Pending<io::Result<Vec<PathBuf>>> {
        aside(dir, |dir| {
            let dir = dir.to_path_buf();
            apart(move || list_dir(&dir))
        })
    }

    fn listen(&self, address: &Address) -> io::Result<Box<dyn Listener>> {
        Ok(Box::new(Socket::listen(&self.0, address)?))
    }
}

fn list_dir(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        // Links are followed: /dev/disk/by-id is a directory of links. One that leads nowhere is no disk.
        let Ok(meta) = path.metadata() else { continue };
        if meta.is_file() || meta.file_type().is_block_device() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
