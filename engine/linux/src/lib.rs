//! The doors on a real machine: one loop per core, each with its own io_uring, and real files and sockets.
//!
//! ```text
//!   thread of loop 0            thread of loop 1 …           compute threads     blocking threads
//!   ┌─────────────────────┐     ┌──────────────────┐         ┌────────────┐      ┌─────────────┐
//!   │ inbox   ◀── wake ───┼─────┤ inbox            │         │ a job at a │      │ what has no │
//!   │ timers              │     │                  │         │ time, one  │      │ ring form:  │
//!   │ ready tasks: poll   │     │                  │         │ thread per │      │ BLKDISCARD, │
//!   │   │ operations      │     │                  │         │ core       │      │ and all     │
//!   │   ▼                 │     │                  │         └────────────┘      │ disk I/O    │
//!   │ ring: submit, wait, │     │                  │                             │ without a   │
//!   │       complete      │     │                  │                             │ ring        │
//!   └─────────────────────┘     └──────────────────┘                             └─────────────┘
//! ```
//!
//! A turn of a loop ([`turn`](executor)): take what others put in the inbox, fire the timers that are due, poll every
//! task that is ready, hand all operations they began to the kernel in one call, and wait in that same call when
//! nothing is left to do. A task stays on its loop for life; waking it from another thread goes through the inbox
//! and, when that loop sleeps, an eventfd that its ring reads.
//!
//! Computation goes to threads of its own, one per core, and not to idle loops: a loop that compresses a megabyte
//! answers no client for milliseconds, while the kernel lets a loop that wakes up go before a thread that computes.
//!
//! Invariants: an [`Operation`](operation::Operation) owns its buffers and its file until the kernel has answered,
//! whatever becomes of the future that waits for it; no loop ever waits inside a system call but its own
//! `io_uring_enter`; at the end of [`run`] all threads are joined and no operation is left with the kernel.
//!
//! Where io_uring is not permitted ([`Config::io_uring`] off, old kernels, many containers) the
//! [`plain`](executor::plain) backend takes its place: poll(2) for sockets, blocking threads for disks. Slower, the same
//! behaviour.
//!
//! Not here: policy; errors name no file, the caller knows which one it asked.

mod apart;
mod aside;
mod connect;
mod disk;
mod executor;
pub mod fuse_ring;
mod geometry;
mod house;
mod listener;
mod operation;
pub mod own;
mod random;
mod signal;
mod stream;
mod workers;
mod world;

pub use apart::apart;
pub use connect::connect;
pub use disk::load::{Access, Order, drop_pages, open_for_load};
pub use executor::run;
pub use house::keep_house;
pub use signal::{expect_shutdown, shutdown_signal};

/// How the loops are laid out.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// How many loops, and how many compute threads; `None`: as many as the affinity and the cgroup allow.
    pub cores: Option<usize>,
    /// Whether to use io_uring where the kernel permits it. Off is for tests and for suspicion.
    pub io_uring: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config { cores: None, io_uring: true }
    }
}

/// Runs `work` with the default configuration; see [`run`].
pub fn block_on<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    run(Config::default(), work)
}

#[cfg(test)]
mod tests;
