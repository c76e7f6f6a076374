//! How requests come from the kernel, and on which threads.
//!
//! ```text
//!   by /dev/fuse    some threads, each: read one ▶ serve ▶ read the next; an answer is a write
//!   by io_uring     a thread for each core, on that core: take what programs there asked for ▶ serve ▶ give the answers
//!                   back and wait for more, in one system call
//!                   + one thread at /dev/fuse, for what never comes by a ring: that the kernel forgets files
//! ```
//!
//! The second way is taken where the kernel offers it (Linux 6.14 and later, with the parameter `enable_uring` of the module
//! `fuse`). A program that asks then waits on the core where its request is served: no other core has to be woken, which in
//! a virtual machine takes longer than most requests. Threads that are not bound to their cores lose that, and more. Those
//! at /dev/fuse are not bound: a request comes to any of them, and the wait for a core that is busy costs more than is
//! gained.
//!
//! The session ends when all of its threads have: the kernel has let go of the mount.

use crate::answer::Received;
use crate::device::Device;
use crate::served::IO_MAX;
use crate::session::Session;
use linux::fuse_ring::{self, Back, Ring, Waited};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle};

/// Of each mount, of which there may be many.
const THREADS_MAX: usize = 8;
/// Requests that the rings of a mount have room for, but at least one on each core.
const SLOTS: usize = 64;
/// An answer of so many bytes and more does not wait for others that came with its request.
const AT_ONCE: usize = 32 << 10;

/// The threads of a session.
#[derive(Debug)]
pub(crate) struct Threads(Vec<JoinHandle<()>>);

impl Threads {
    /// Returns when the session has ended.
    pub fn join(self) {
        for thread in self.0 {
            // What panics has said so; the others end with the connection.
            let _ = thread.join();
        }
    }
}

/// Whether requests can come by io_uring, if the kernel says so as well.
pub(crate) fn can_have_rings() -> bool {
    fuse_ring::is_permitted() && fuse_ring::queues().is_some()
}

/// Begins to serve, for programs on so many cores. `by_ring`: the kernel has been told that it will be by io_uring, and
/// waits until all rings are there.
pub(crate) fn start(
    session: Session,
    device: &Arc<Device>,
    cores: usize,
    by_ring: bool,
) -> io::Result<Threads> {
    let session = Arc::new(session);
    let mut threads = Vec::new();
    // What the reader tells of the end.
    let backs: Arc<Mutex<Vec<Arc<Back>>>> = Arc::default();
    let readers = if by_ring { 1 } else { cores.clamp(2, THREADS_MAX) };
    for n in 0..readers {
        let (session, device, backs) = (session.clone(), device.clone(), backs.clone());
        let body = move || {
            read_all(&session, &device);
            backs.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|back| back.end());
        };
        threads.push(Builder::new().name(format!("fuse-{n}")).spawn(body)?);
    }
    if by_ring {
        let layout = layout(fuse_ring::queues().unwrap_or(1), &allowed());
        let queues: usize = layout.iter().map(|part| part.queues.len()).sum();
        let depth = (SLOTS / queues.max(1)).max(1);
        let (tell, told) = mpsc::channel();
        let rings = layout.len();
        for (n, part) in layout.into_iter().enumerate() {
            let (session, device, tell) = (session.clone(), device.clone(), tell.clone());
            let body = move || serve_ring(&session, &device, &part, depth, &tell);
            threads.push(Builder::new().name(format!("fuse-ring-{n}")).spawn(body)?);
        }
        drop(tell);
        for _ in 0..rings {
            let back = told.recv().map_err(|_| io::Error::other("a thread of the mount has ended"))??;
            backs.lock().unwrap_or_else(PoisonError::into_inner).push(back);
        }
    }
    Ok(Threads(threads))
}

/// One thread's share of the rings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Part {
    queues: Vec<u16>,
    /// Where the thread may run; anywhere if there are none.
    cores: Vec<usize>,
}

/// The cores that this process may use.
fn allowed() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

/// Each thread has some of the cores that are allowed, and their queues; those of other cores are shared out.
fn layout(queues: u16, allowed: &[usize]) -> Vec<Part> {
    let mut parts = vec![Part::default(); allowed.len().clamp(1, THREADS_MAX)];
    let threads = parts.len();
    let mut others = 0;
    for queue in 0..queues {
        let part = match allowed.iter().position(|core| *core == usize::from(queue)) {
            Some(at) => {
                parts[at % threads].cores.push(usize::from(queue));
                at % threads
            }
            None => {
                others += 1;
                (others - 1) % threads
            }
        };
        parts[part].queues.push(queue);
    }
    parts.retain(|part| !part.queues.is_empty());
    parts
}

/// This thread runs on these cores alone; anywhere if there are none.
fn bind(cores: &[usize]) {
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    if !cores.is_empty() {
        // Of a core that has just been taken away: then it runs where it may.
        let _ = sched_setaffinity(None, &set);
    }
}

fn read_all(session: &Session, device: &Arc<Device>) {
    // A page for the header and the structure behind it, beside the data of the longest write.
    let mut buffer = vec![0; IO_MAX + 4096];
    while let Ok(Some(n)) = device.receive(&mut buffer) {
        session.serve(Received::Read(device, &buffer[..n]));
    }
}

fn serve_ring(
    session: &Session,
    device: &Arc<Device>,
    part: &Part,
    depth: usize,
    tell: &mpsc::Sender<io::Result<Arc<Back>>>,
) {
    bind(&part.cores);
    let mut ring = match Ring::new(device.file().clone(), &part.queues, depth, IO_MAX) {
        Ok(ring) => ring,
        Err(e) => return drop(tell.send(Err(e))),
    };
    let back = ring.back();
    let _ = tell.send(Ok(back.clone()));
    let mut arrived = Vec::new();
    let served = loop {
        match ring.wait(&mut arrived) {
            Ok(Waited::Arrived) => {}
            Ok(Waited::Over) => break Ok(()),
            Err(e) => break Err(e),
        }
        let mut moved = 0;
        let mut waiting = arrived.len();
        for slot in arrived.drain(..) {
            moved += slot.payload().len();
            session.serve(Received::Slot(slot, &back));
            waiting -= 1;
            if moved >= AT_ONCE && waiting > 0 {
                moved = 0;
                if ring.commit().is_err() {
                    break;
                }
            }
        }
    };
    if served.is_err() {
        // Requests of these cores would never be answered.
        let _ = device.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_queue_has_one_thread_and_runs_where_its_programs_do() {
        for (queues, allowed) in [
            (2, vec![0, 1]),
            (1, vec![0]),
            (64, (0..64).collect()),
            (8, vec![3, 5]),
            (4, vec![]),
            (2, vec![0, 1, 2]),
        ] {
            let parts = layout(queues, &allowed);
            let mut all: Vec<u16> = parts.iter().flat_map(|part| part.queues.clone()).collect();
            all.sort_unstable();
            assert_eq!(all, (0..queues).collect::<Vec<_>>());
            assert!(parts.len() <= THREADS_MAX && parts.len() <= allowed.len().max(1));
            for part in &parts {
                assert!(
                    part.cores
                        .iter()
                        .all(|core| allowed.contains(core) && part.queues.contains(&(*core as u16)))
                );
            }
        }
        assert_eq!(layout(2, &[0, 1])[1], Part { queues: vec![1], cores: vec![1] });
    }
}
