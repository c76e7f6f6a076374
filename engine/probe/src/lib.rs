//! What the engine and the fronts know of themselves: statistics, by name, each told where it happens.
//!
//! ```text
//!   statistics()   the table: name, unit, breakdowns, cost, explanation, family
//!   Query          iscsi.ops[op=read][latency>=10ms][lun]
//!   Hub            a daemon's statistics that are open
//!     ├ probe(family, labels) ─▶ Probe ── tell(event) ──▶ every open statistic of the family, on this thread
//!     ├ source(name, …)          what is asked instead: sizes, utilization
//!     ├ open(query) ─▶ Opened ── take() ─▶ Sample         value and parts, whose sum it is
//!     └ record(query) ─▶ Recording ── take() ─▶ Taped     each event by itself, as many as there is room for
//!   Timed          where the time of a request went, by the stages that it waited in
//!   Io             what is counted of each client whether it is read or not, besides
//! ```
//!
//! An event costs one load where nothing of its family is open. Where something is, this thread adds to memory that
//! only it writes, once for all open statistics that need the same of an event. Nothing is sampled and nothing is lost;
//! a reader never stops a writer. A breakdown by words is bounded: the rest is [`Key::Other`], and the sum still agrees.
//!
//! Not here: what is kept over time, and what is made of it (analytics); what `zpool iostat` shows, which each leaf counts
//! always (`vdev`).

mod breakdown;
mod counter;
mod event;
mod histogram;
mod hub;
mod io;
mod names;
mod quantity;
mod query;
mod rows;
mod sample;
mod sharded;
mod source;
mod stages;
mod statistics;
mod tape;

pub use breakdown::{Breakdown, Quantity};
pub use event::{Event, Label, labels_of};
pub use histogram::{Histogram, Scale};
pub use hub::{Hub, Opened, Probe, Recording, Registration};
pub use io::{Io, IoSnapshot, OpSnapshot};
pub use names::Op;
pub use query::{Compare, Filter, Operand, Query};
pub use sample::{Key, Mark, Reading, Sample, WORDS_MAX};
pub use stages::{Timed, WORK, tell_work};
pub use statistics::{Cost, Family, Measure, RESERVED, StatUnit, Statistic, Taken, statistics};
pub use tape::{Entry, PLACES_MAX, Taped};
