//! The storage area network as it is configured, and what each initiator sees.
//!
//! ```text
//!   api::san::San ──▶ change ── names: are they well formed? ── records: what is kept, in the configuration ──┐
//!                                                                                                              ▼
//!   LUNs of all pools (shares) ──────────────────────────────────────────────────▶ view: who sees what, pure ──▶ iSCSI
//! ```
//!
//! Targets, initiators and groups are kept in the configuration, those of Fibre Channel (`fc`) beside those of iSCSI. What
//! a LUN says of itself (its groups, its number, its identifier) is kept with its dataset, and so moves with the pool.
//!
//! Invariants: no initiator sees two LUNs under one number through one target, whatever is changed here or comes with a
//! pool (`shares::claims`); what is in use by a LUN or a group is not destroyed; secrets leave this module only towards the
//! login that checks them.
//!
//! Not here: the protocol (`iscsi`), and the LUNs themselves (`shares`).

mod change;
mod check;
mod directory;
mod fc;
pub(crate) mod interfaces;
mod iscsi;
mod lans;
mod names;
mod places;
mod records;
mod reservations;
mod serve;
pub(crate) mod state;
mod view;

pub(crate) use check::check_records;
pub use iscsi::Iscsi;
pub(crate) use places::where_at;
pub use records::{Credentials, InitiatorRecord, TargetRecord};
pub(crate) use records::{Network, at_most_one_number};
pub(crate) use reservations::check_records as check_reservations;
pub use view::{Lu, Proof, SanView};
