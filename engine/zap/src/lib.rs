//! ZAP: objects that map names to values, in OpenZFS's format.
//!
//! Directories, properties, the list of datasets, feature counts: whatever ZFS keeps by name is in a ZAP. There are two
//! forms, and a ZAP goes from the first to the second on its own:
//!
//! ```text
//!   micro  one block of slots: short names, one 64-bit integer each                        micro.rs
//!   fat    an extendible hash table over the blocks of the object: names up to 255 bytes,
//!          values of up to 8 KiB of integers of 1, 2, 4 or 8 bytes                         fat/, leaf/
//! ```
//!
//! A key is hashed with the salt of the ZAP (`hash.rs`). Keys that collide are told apart by a small number, the
//! collision differentiator; (hash, differentiator) is also the order of listing and the position of a [`Cursor`].
//!
//! The calls of [`Zap`] read and write blocks of a [`Blocks`] store; the thinking about their bytes is done in plain
//! functions that know no store: `micro.rs`, `leaf/`, `fat/header.rs`, `block.rs` for foreign byte orders.
//!
//! A handle that is asked again keeps an index of a micro ZAP's names (`index.rs`, `kept.rs`), so that neither a lookup nor
//! a change has to look at all of them.
//!
//! Invariants: bytes are never trusted, and any damage is an error that names object and block, which ends all calls but
//! [`Zap::salvage`]; a change that fails has written nothing; what is written is little-endian, and equal to what OpenZFS
//! would read.
//!
//! Handles that are clones of one another take turns: many lookups at a time, or one change. A caller that opens an object
//! twice and changes it must see to that himself; in syncing context there is one writer anyway.
//!
//! Not here: what the names mean.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod block;
mod blocks;
mod cursor;
mod fat;
mod hash;
mod index;
mod kept;
mod key;
mod le;
mod leaf;
mod micro;
mod normalize;
mod object;
mod read;
mod salvage;
mod unicode5;
mod value;
mod write;

#[cfg(test)]
mod tests;

pub use blocks::Blocks;
pub use cursor::{Cursor, Page};
pub use key::{Key, LONG_NAME_MAX, Match, NAME_MAX, OwnedKey, int_name};
pub use normalize::Normalization;
pub use ondisk::zap::ZapFlags;
pub use salvage::{Gap, Salvaged};
pub use value::{Entry, Found, VALUE_MAX, Value};

use hash::Rules;
use kept::Kept;
use std::sync::Arc;
use units::{Error, Result};
use world::sync::RwLock;

/// An open ZAP. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Zap<S> {
    blocks: S,
    has_long_names: bool,
    /// A change replaces several blocks, and a lookup must not see some of them old and others new.
    turn: Arc<RwLock<()>>,
    kept: Arc<Kept>,
}

/// What a ZAP is created with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    pub normalization: Normalization,
    /// With any flag the ZAP is fat from the start.
    pub flags: ZapFlags,
}

/// Which form a ZAP has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Micro,
    Fat {
        leaves: u64,
        /// Blocks in use or freed in between, the header included.
        blocks: u64,
        /// The pointer table has two to this power pointers.
        table_shift: u32,
    },
}

/// What there is to know about a ZAP without looking at its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    pub form: Form,
    pub entries: u64,
    pub salt: u64,
    pub normalization: Normalization,
    pub flags: ZapFlags,
    pub block_size: usize,
}

impl<S: Blocks> Zap<S> {
    /// Opens the ZAP in these blocks. Nothing is read before it is needed.
    pub fn open(blocks: S) -> Zap<S> {
        Zap { blocks, has_long_names: false, turn: Arc::new(RwLock::new(())), kept: Arc::default() }
    }

    /// Lets names grow to [`LONG_NAME_MAX`]: for directories of a dataset with long names.
    #[must_use]
    pub fn with_long_names(self) -> Zap<S> {
        Zap { has_long_names: true, ..self }
    }

    /// Writes an empty ZAP into a new object. `salt` is any random number; it is made odd, as 0 is no salt.
    ///
    /// The blocks of a ZAP with flags keep the size that the object has, which must be a power of two.
    pub fn format(blocks: S, tx: &S::Tx, options: Options, salt: u64) -> Result<Zap<S>> {
        let rules = Rules { salt: salt | 1, norm: options.normalization, flags: options.flags };
        rules.check()?;
        let size = blocks.block_size();
        if options.flags == ZapFlags::default() {
            blocks.write_block(tx, 0, micro::format(size, &rules).freeze())?;
            return Ok(Zap::open(blocks));
        }
        if !size.is_power_of_two() || !leaf::SHIFTS.contains(&size.ilog2()) {
            return Err(Error::invalid(format!("a fat ZAP cannot have blocks of {size} bytes")));
        }
        fat::Edit::format(&blocks, size.ilog2(), rules).commit_whole(tx)?;
        Ok(Zap::open(blocks))
    }

    pub fn blocks(&self) -> &S {
        &self.blocks
    }
}
