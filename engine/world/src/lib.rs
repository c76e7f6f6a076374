//! The only doors outside: time, randomness, tasks, disks and sockets.
//!
//! Engine code is `async` and knows no runtime. It reaches the outside through the free functions here, which ask
//! the [`World`] that runs the current task:
//!
//! ```text
//!   engine code ── world::now / sleep / spawn / compute / open / listen
//!                        │  the world of this thread (enter)
//!          ┌─────────────┴──────────────┐
//!      linux::World                 sim::World
//!      a loop and an io_uring       one thread, virtual time, a seed;
//!      per core, real files         disks that are modelled and can lie
//! ```
//!
//! A panic ends the task that it happens in. Work that must not end unnoticed runs in a [`Domain`].
//!
//! A thread that is no loop, because a library made it, may poll a future once before it gives it to a loop ([`Visitor`]).
//!
//! Invariants: nothing below `world` blocks the thread; a future given to [`spawn`] stays on one loop for its whole
//! life; a buffer handed to a disk comes back, or is dropped, only after the device is done with it. Dropping the
//! future of an I/O does not cancel the I/O.
//!
//! Not here: any policy. How much may be outstanding, in what order and why is decided above.

mod around;
pub mod buf;
mod disk;
mod domain;
mod net;
mod pending;
mod refused;
pub mod stages;
pub mod sync;
mod task;
mod time;

pub use buf::{Buf, IoBuf};
pub use disk::{Disk, DiskKind, Geometry, OpenMode, scatter};
pub use domain::{Domain, Panic, within, within_now};
pub use net::{Address, Listener, Stream, place_in};
pub use pending::{Boxed, Pending, boxed};
pub use refused::cannot_listen;
pub use task::{
    Heap, Task, Visitor, World, breathe, compute, core_if_any, cores, count_serving, enter, heap, list_dir,
    listen, open, open_aside, random_u64, serve, serving, spawn, spawn_on, this_core, trim_heap, turn_begins,
    visited_core, yield_now,
};
pub use time::{Instant, WallTime, now, sleep, sleep_until, timeout, wall_clock};
