//! Transaction groups: which one is open, what holds it, and how much it may grow.
//!
//! ```text
//!            begin()                  all holds dropped                 the pool has synced it
//!   OPEN ───────────────▶ QUIESCING ───────────────────▶ SYNCING ───────────────────────────▶ synced
//!    txg N+1    close()      txg N       next_to_sync()     txg N              done()           txg N
//! ```
//!
//! One txg is open, and at most one is on its way to disk, quiescing or syncing: the open one is closed when the one before
//! it has synced. So at most two are dirty at any time. Per-txg state lives in [`units::Txg::SLOTS`] slots indexed by
//! [`units::Txg::slot`]: as many as OpenZFS has, which lets one quiesce while another syncs. A [`Tx`] is the right to
//! change something in one txg: it holds the txg open until it is dropped. What a `Tx` dirtied syncs together or not at
//! all.
//!
//! A pool whose devices fail is *suspended*: the txg that is being synced stays so until the pool goes on. Meanwhile
//! requests wait, or, of an impatient pool, fail; what they have dirtied stays dirty.
//!
//! [`Txgs`] is the state machine; the loop that drives it belongs to `pool`. [`throttle`] decides how long a writer waits,
//! `capacity` whether the devices can take what it writes, `admission` carries both out; `frees` divides what frees much.
//! A [`SpaceReservation`] is what a quota or the pool leaves to one dataset.
//!
//! Invariants: a txg is handed to be synced only when it has no holds; txgs sync in order, none is skipped; dirty bytes
//! are given back as their blocks reach the devices ([`Dirty`]), what is left of them when their txg has synced.

mod admission;
mod capacity;
mod frees;
mod phases;
mod space_reservation;
pub mod throttle;
mod txgs;

pub use capacity::{Claim, DeviceSpace, Reach};
pub use space_reservation::{Entry, SpaceReservation};
pub use txgs::{Dirty, Landed, Tx, Txgs};

#[cfg(test)]
mod tests;
