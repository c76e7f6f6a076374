//! What is kept of statistics over time, and told of it.
//!
//! ```text
//!   probe ── Taps::open ──▶ Tap::take, once a second ──▶ Dataset ──┬─ Series of seconds ─┐
//!                                                                  ├─ of minutes         ├─ tail: a Block in memory
//!                                                                  └─ of hours           │    │ full, or a minute later
//!                                                                                        │    ▼
//!   readers ◀── Recorder::data: rows of the tail, of blocks in memory, of blocks on disk ◀── Store: one redb file
//! ```
//!
//! A *dataset* is what is kept of one statistic that is open. It is temporary, and ends when no reader asks for it any
//! more, or *saved*, and then goes on across restarts. Each sample is added to three series: by second, minute and hour. A
//! [`block::Block`] is a stretch of a series in columns, one for each value of the breakdown; encoded it is a row of the
//! store. Beside the samples stands the [`ledger`] of changes of settings, each with what the samples say of it.
//!
//! Time is the wall clock's, since people ask by it, and it may jump. A sample is labelled by the second that the clock
//! shows. After a step back the newer of two samples of one second counts. Nothing is thrown away for its age before the
//! clock has gone on evenly for an hour: a wrong clock costs labels, never history.
//!
//! Invariants: the parts of a sample add up to its value, at every granularity; memory and disk are bounded whatever is
//! opened; at most [`recorder::FLUSH_SECONDS`] of samples are lost in a crash; a store that is full or damaged stops
//! analytics from being kept, is named, and stops nothing else.
//!
//! Waiting for the disk is done by errands on a thread of their own, never on a loop of the engine.
//!
//! Not here: what is measured (`probe`), and how it is asked for and shown (`rest`, `shell`).

mod block;
mod bytes;
mod clock;
mod data;
mod dataset;
mod effect;
mod errands;
mod hub;
mod ledger;
mod read;
mod recorder;
mod store;
mod tap;

#[cfg(test)]
mod tests;

pub use errands::Errands;
pub use hub::OfHub;
pub use ledger::NewChange;
pub use recorder::{Limits, Recorder};
pub use tap::{Key, Taken, Tap, Tapped, Taps};
