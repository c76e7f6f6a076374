//! Traces: what clients asked of a front, one request after the other, in a file.
//!
//! ```text
//!   file   "CENTRACE" · header piece · (place piece | request piece)* · end piece
//!   piece  kind u8 · length u32 · payload · CRC-64 u64 of all these          integers little-endian
//!
//!   H  header: JSON: version, program, statistic, start, hashed, cache
//!   P  place:  JSON: what requests were for, and its settings then; the first is place 0
//!   R  requests, see [`piece`]: about a dozen bytes each
//!   E  end: requests and dropped ones in all, length in nanoseconds
//! ```
//!
//! There are no data in a trace, and with hashed names no names. A file that ends anywhere is read to its last whole piece,
//! and said to be cut; bytes that are not what was written are refused with the place and the field. What is read is
//! bounded: a piece at a time.
//!
//! [`play`] makes its requests again on whatever takes them, and [`figures`] are what came of it, side by side.
//!
//! Not here: the recording itself (`probe`), what a trace is replayed on (`lab`, and the program for real pools).

pub mod figures;
pub mod header;
pub mod layout;
pub mod piece;
pub mod play;
pub mod present;
pub mod read;
pub mod request;
pub mod show;
pub mod summary;
pub mod write;

pub use figures::Figures;
pub use header::{Header, Place, Present};
pub use layout::Layout;
pub use read::{Contents, Part, Reader};
pub use request::{Op, Request};
pub use summary::Summary;
pub use write::Writer;
