//! RAIDZ: single, double and triple parity with no write hole.
//!
//! A block is laid across the children as its own stripe, as wide as the block needs. Because a stripe is never updated
//! in place, a crash leaves the old block or the new one.
//!
//! ```text
//!   4 children, 1 parity, a block of 5 sectors          P parity, D data, X skip
//!   c0  c1  c2  c3
//!    .  P0  D0  D2        one parity sector per row; the whole rounded up to a multiple of parity + 1, so that
//!   D4  P1  D1  D3        no hole is left that nothing fits into
//!    X
//! ```
//!
//! [`map`] says where each sector lies, [`columns`] splits a block into them and puts it together again, `suspect` lists
//! whom not to believe; all three are pure. `read` and `write` carry it out. The arithmetic of parity is in `codec`.
//!
//! Invariants: no child holds two columns of one block; a block that was rebuilt is returned only after its checksum
//! agreed.
//!
//! Not here: vdevs that were expanded, whose older blocks are narrower; they are refused when the tree is opened.

pub(crate) mod columns;
pub mod map;
pub(crate) mod read;
mod suspect;
pub(crate) mod write;
