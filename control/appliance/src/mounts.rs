//! File systems mounted in the machine's own tree.
//!
//! ```text
//!   zfs mount, create, import, start ──▶ plan: where and how, by properties ──▶ fuse::mount ──▶ Mounts, by dataset
//!                                                                                                 │ kept in the home
//!   zfs unmount, export, destroy, rename, stop ◀── latest first ◀─────────────────────────────────┘
//! ```
//!
//! A daemon mounts what it is asked to. Told so at its start, it mounts by itself whatever OpenZFS would: when it starts,
//! when a pool is imported, when a file system is made. What was mounted when it ended, or was killed, is mounted again when
//! it starts; a directory that a killed one left dead is cleaned first.
//!
//! Invariants: a dataset is mounted once at most, so that there is one handle that changes its files; what takes a
//! dataset away unmounts it first, and is refused as long as it is in use.
//!
//! | file | theory |
//! |---|---|
//! | `plan.rs` | where and how a dataset is mounted, by its properties |
//! | `temporary.rs` | what `zfs mount` asks for beside them |
//! | `facts.rs` | what a mount asks of its dataset: space, snapshots |
//! | `mount.rs` | the requests, and what the daemon mounts by itself |
//! | `follow.rs` | datasets that change or go while they are mounted |
//!
//! `state.rs` has the list of what is mounted.

mod facts;
mod follow;
mod mount;
mod plan;
mod state;
mod temporary;

pub(crate) use state::Mounts;
