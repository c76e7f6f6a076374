//! Object sets: objects of blocks, changed in memory, written out a transaction group at a time.
//!
//! An object is a tree. Its dnode holds the roots, indirect blocks hold pointers, level 0 holds the data:
//!
//! ```text
//!                 objset root block ── meta-dnode ── blocks of 32 dnodes ── dnode of object 5
//!                                                                             │ roots (1..3 pointers)
//!   level 2                                                    indirect block ┘
//!   level 1                              indirect  indirect  …   (1024 pointers each, at 128 KiB)
//!   level 0                              d d d d   d d d d   …
//! ```
//!
//! The tree on disk never changes in place. So memory holds two things per object: the **stable tree**, as the last
//! synced txg left it, and up to two **dirty records**, one for each txg that is open or on its way to disk, with the
//! blocks and ranges that the txg wrote or freed. A read looks through the dirty records, newest first, then walks the
//! stable tree through the cache. There are no long-lived block handles: the cache below is the only cache.
//!
//! ```text
//!   write(tx) ──▶ dirty record of tx's txg ──▶ sync(txg): leaves, then their parents, up to the roots ──▶ new stable tree
//! ```
//!
//! [`sync`] writes a dirty record out: level 0 first, in groups that share an indirect block, then the parents, then the
//! dnode into the meta-dnode, which is synced the same way last of all; the result is one block pointer for the whole
//! object set. A block that is on its device is in memory no longer than the cache wants it: the dirty record has its
//! pointer instead. When all is done the new tree becomes stable and the dirty record goes, in one step under the object's
//! lock.
//!
//! [`Object::write_now`] writes one block before the sync, for the intent log, and [`Object::write_past_cache`] for a
//! direct write, which does not stay in memory: the sync finds it done.
//!
//! A reader may hold an old tree while blocks it names are freed and, some txgs later, reused. It then meets a checksum
//! error and looks again in the tree that is stable by then; and so it does without an error where there is no checksum
//! (`Object::read_block`). A task that reads a dnode to open its object, or to see that there is none, looks again when
//! dnodes have changed meanwhile.
//!
//! Invariants: a dirty record changes only through a [`txg::Tx`] of its txg; from the begin of its sync on blocks land, and
//! nothing else changes; each block that a sync replaces is reported killed once, and each that it writes born once, to
//! the [`BlockAccounting`].
//!
//! Not here: which dataset an object set belongs to and what killing a block means (`dsl`); names (`zap`); what calls
//! `sync` and when (`pool`).

mod accounting;
mod alloc;
mod attrs;
mod blocks;
mod cost;
mod direct;
mod dirty_record;
mod first_in;
mod frees;
#[cfg(test)]
mod interleave;
mod lock;
mod node;
mod now;
mod object;
mod objset;
mod pointers;
mod policy;
mod prefetch;
mod ranges;
mod shared;
mod spill;
mod sync;
mod traverse;
mod tree;
mod walk_ahead;

pub use accounting::{Account, BlockAccounting, NoBlockAccounting, Owner, Sums, UserAccounting};
pub use alloc::NewObject;
pub use attrs::Attrs;
pub use direct::{Direct, PAGE};
pub use frees::PieceToFree;
pub use now::{Early, EarlyBlock};
pub use object::{Missed, Object, Sought};
pub use objset::ObjSet;
pub use policy::{Caching, Policy, RedundantMetadata, SyncMode};
pub use prefetch::{PrefetchStreams, Shape, aside};
pub use spill::{SPILL_MAX, SPILL_UNIT};
pub use sync::SyncCtx;
pub use traverse::{Visit, Visitor, locate, traverse_objset, traverse_tree};
pub use txg::{Dirty, Tx};
pub use walk_ahead::WalkAhead;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod while_syncing;
