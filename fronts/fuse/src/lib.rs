//! File systems in the machine's own tree, by FUSE.
//!
//! ```text
//!   client process ── system call ──▶ kernel ── /dev/fuse, or io_uring ──▶ session threads          transport.rs, device.rs
//!                                                                │ a request's bytes taken apart     wire.rs
//!                                                                │ tried here; what must wait goes on session.rs
//!                                                                ▼
//!                                                            loops: as a task                         loops.rs
//!                                                                │
//!                         answer, from wherever that is ◀── Served: nodes, names, data, attributes     answer.rs, served/
//!                                                                │
//!                                                            zpl::FileSystem
//! ```
//!
//! The kernel knows files by a number that is the object's, and counts how often it was told of each; as long as it
//! remembers one the [`zpl::Node`] is kept, so that a file without a name lives until its last user has closed it
//! (`nodes.rs`). Opening has therefore nothing to do and is not even asked for.
//!
//! The kernel enforces modes and POSIX ACLs (`default_permissions`) and keeps locks by itself: all users of a mount are on
//! one machine. It keeps pages that were read, and nothing that was written: a write is answered when the engine has it,
//! so that a full pool is told to the one who writes and a snapshot has all that was written before it.
//!
//! Invariants: a session thread and a loop never wait for each other's mounts: everything that may block in the kernel
//! (mount, unmount, looking at a mount point) is done on a thread of its own; a request is answered exactly once, also
//! when its task panics; no number, offset or name of a request is trusted.
//!
//! Not here: which file system is mounted where (the appliance), and what files are (`zpl`).

mod answer;
mod attr;
mod counted;
mod device;
mod errno;
mod loops;
mod mount;
mod mountinfo;
mod nodes;
mod options;
mod place;
mod served;
mod session;
mod timing;
mod transport;
mod wire;

pub use counted::Counted;
pub use mount::{Mount, mount};
pub use options::{Options, Snapshots};
pub use place::{Unusable, can_mount, detach_all_dead};
pub use served::{Dataset, Space};
