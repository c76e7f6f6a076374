//! The appliance's own figures for other programs that keep them: read by Prometheus, or sent to a collector by OTLP.
//!
//! ```text
//!   Facts ── families: one row for each ──▶ Metric ─┬─ prometheus ──▶ text of GET /metrics
//!                                                   └─ otlp ──▶ JSON ──▶ Exporter: queue ─▶ thread ─▶ POST
//! ```
//!
//! A figure is a row of one table, and so both have the same figures under the same names, each by its own rules.
//!
//! Invariants: a collector that does not answer holds up nothing, and what waits for it is bounded; a header that may hold a
//! secret is in no error and no log line.
//!
//! Not here: how the facts are found (`appliance`), and who may read them (`rest`).

mod exporter;
mod families;
mod otlp;
mod prometheus;

pub use exporter::{Exporter, State, Target};
pub use families::{Api, Buckets, Facts, Kind, Metric, Sampled, Value, families};
pub use otlp::{Moment, Series, document};
pub use prometheus::text;
