//! The dataset and snapshot layer: what the objects of the MOS mean as a tree of named datasets.
//!
//! ```text
//!   object directory ── root_dataset ─▶ directory "tank"
//!                                         │ children: $MOS  $FREE  $ORIGIN  a  b
//!                                         │ props:    what was set here
//!                                         └ head ─▶ dataset ── objset root block ─▶ the file system or volume
//!                                                     │ snapnames: monday, tuesday
//!                                                     │ deadlist:  blocks that only snapshots still need
//!                                                     └ prev_snap ─▶ snapshot ─▶ snapshot ... ─▶ $ORIGIN@$ORIGIN
//! ```
//!
//! A *directory* has the name, the children, the properties and the space charged; its *head dataset* has the tree of
//! blocks; a *snapshot* is a dataset whose tree no longer changes. Everything is changed in syncing context, by one
//! task at a time, in [`Dsl`]'s functions that take a `Tx`; each checks all it can before its first change.
//!
//! The rooms:
//!
//! ```text
//!   pure       props  pool_props  name  space  thick          tables, rules and arithmetic: no I/O
//!   objects    core  features  bpobj  deadlist  bptree        what the MOS holds, one structure per file
//!              history
//!   datasets   tree  dataset  block accounting  touched                 finding, opening, syncing them
//!   changes    initial  create  destroy  rename  set  snapshot  clone  rollback  promote  holds  in_use
//! ```
//!
//! Not here: when txgs sync and in which order (`pool`); blocks (`zio`); what is inside a volume (`zvol`).

mod admit;
mod block_accounting;
pub mod bpobj;
mod clone;
mod closed;
pub mod core;
mod counts;
mod create;
pub mod deadlist;
mod destroy_plan;
mod destroy_snapshot;
mod dsl;
pub mod error_log;
pub mod features;
mod freeing;
pub mod history;
mod holds;
mod in_use;
mod initial;
mod levels;
pub mod name;
pub mod phys;
pub mod pool_props;
mod promote;
pub mod props;
mod ranges;
mod rename;
mod rollback;
mod set;
mod snapshot;
pub mod space;
mod stats;
pub mod thick;
mod tree;
mod walk;
pub mod zaps;

pub use clone::NewClone;
pub use closed::ClosedToOpeners;
pub use create::NewDataset;
pub use destroy_plan::{DestroyPlan, DestroySpec};
pub use dsl::Dsl;
pub use dsl::dataset::Dataset;
pub use dsl::destroy::LogKeeper;
pub use dsl::touched::Touch;
pub use freeing::Frees;
pub use initial::NewPool;
pub use levels::Levels;
pub use stats::{Shown, Stats};
pub use tree::Found;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
