//! Projects, file systems and LUNs: datasets, as administrators of an appliance speak of them.
//!
//! ```text
//!   api::shares::Shares ──▶ items ─┬─ describe   properties become attributes, with their sources
//!                                      ├─ settings   attributes become properties, checked
//!                                      ├─ schema     properties of an administrator's own
//!                                      ├─ numbers    which number a LUN gets: pure
//!                                      ├─ masks      which clients see a copy, or a LUN that moves: those of before
//!                                      ├─ root       of a file system: its owner and mode
//!                                      ├─ snapshots  of shares, and of projects with all that is in them
//!                                      └─ datasets, settings: the same work that `zfs create` and `zfs set` do
//!   luns, lun_index: every volume that is a LUN, for the network's view of which client sees what
//!   claims: which of them are served, where several claim one identifier or number: pure
//! ```
//!
//! A volume is a LUN when its own properties hold an identifier (`cenote:lunguid`): it gets one when it is created here, or
//! when it is given a group, a number or a status. Until then it is shown like one, and no initiator sees it. A clone
//! or a received copy does not own its original's identifier, and so no initiator sees it either; when a clone becomes
//! a LUN, the initiators that see its origin see it.
//!
//! Invariants: an identifier stays the same for as long as the dataset lives, under whatever name, in whatever machine;
//! so does a number, until it is given another or a change of groups would make two the same. What a LUN has, none that
//! comes later takes from it.
//!
//! Not here: who sees what (`san`), the protocols, and what the properties do (`dsl`).

mod claims;
mod describe;
mod items;
mod lun_facts;
mod lun_index;
mod luns;
pub(crate) mod masks;
mod numbers;
mod root;
mod schema;
mod settings;
mod snapshots;

pub(crate) use claims::{Claims, Luns};
pub use lun_facts::LunFacts;
pub(crate) use lun_facts::{IDENTIFIER, number, own, parse_guid};
pub(crate) use lun_index::LunIndex;
pub(crate) use schema::check_records as check_schema;
