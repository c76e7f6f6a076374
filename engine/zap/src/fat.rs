//! The fat ZAP: an extendible hash table over the blocks of one object.
//!
//! ```text
//!   hash ── first bits ──▶ pointer table ──▶ leaf ── next bits ──▶ bucket ──▶ chain of entries
//!                          (header.rs)       (leaf/)
//!
//!   leaf full:     its entries are split over two leaves by one more bit of their hashes (grow.rs);
//!                  if the table has no bit more than the leaf, the table doubles first
//!   leaf empty:    if its sibling is empty too, one of them stands for both (shrink.rs)
//! ```
//!
//! Reading ([`read`]) goes from block to block of the store. Changing collects all new blocks in an [`Edit`] and
//! writes them only at the end: an error on the way, a damaged leaf for instance, leaves the ZAP as it was.

mod edit;
mod grow;
mod header;
pub(crate) mod read;
mod shrink;

pub(crate) use edit::{Edit, Mode};
use header::Header;
