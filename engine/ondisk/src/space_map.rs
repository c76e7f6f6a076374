//! Space maps: what was allocated and freed in a region, as a log that is replayed to know what is free.
//!
//! The object's blocks hold words, its bonus says how many of them count and how much is allocated in sum:
//!
//! ```text
//!            63 62 61 60 59        50 49                 0
//!   debug   |1 0 | act  | sync pass  |        txg         |      what follows was written then; all zero: padding
//!
//!            63 62               16  15  14              0
//!   one     |0 |     offset        | t |      run - 1     |      t: 0 allocated, 1 freed
//!
//!            63 62 61 60 59        24 23                 0
//!   two     |1 1 | pad  |   run - 1  |       vdev         |      vdev 0 if there is none
//!           |t |                 offset                   |
//! ```
//!
//! Offsets and runs count units of 2^shift bytes, where shift is that of the vdev for the map of a metaslab (and the
//! offset counts from the start of the metaslab), and 9 in the log space map of the whole pool. An entry of two words
//! never crosses from one block of the object to the next. It needs the feature `spacemap_v2`.

mod log;
#[cfg(test)]
mod tests;

pub use log::{SpaceMapEntries, SpaceMapLog};

use crate::bytes::{Reader, Writer};
use units::{Endian, ObjectId, Result, Txg, VdevId};

/// What happened to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpaceAction {
    Alloc,
    Free,
}

/// One entry of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceMapEntry {
    Run(SpaceRun),
    /// The entries up to the next such were written by this txg, in this pass.
    Debug {
        action: SpaceAction,
        sync_pass: u16,
        txg: Txg,
    },
    /// Fills the last word of a block that an entry of two words did not fit.
    Padding,
}

/// `len` units from `offset` on; see the module for the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceRun {
    pub action: SpaceAction,
    pub offset: u64,
    pub len: u64,
    /// In the log of the whole pool only.
    pub vdev: Option<VdevId>,
}

/// The bonus of a space map object.
///
/// ```text
///   0  object number (unused)   8  bytes in use   16  bytes allocated (signed)
///   24  padding to 64           64  histogram: bucket i counts free runs of 2^(i + shift) bytes and more
/// ```
///
/// Without the feature `spacemap_histogram` it ends after 24 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceMapPhys {
    pub object: ObjectId,
    /// Bytes of the object that count.
    pub length: u64,
    /// Allocated minus freed, in bytes.
    pub allocated: i64,
    pub histogram: Option<[u64; SpaceMapPhys::BUCKETS]>,
}

impl SpaceMapPhys {
    pub const BUCKETS: usize = 32;
    /// With the histogram.
    pub const SIZE: usize = 320;
    pub const OLD_SIZE: usize = 24;

    /// Reads all that is left of `r`: the length of the bonus says whether there is a histogram.
    pub fn decode(r: &mut Reader<'_>) -> Result<SpaceMapPhys> {
        let [object, length, allocated] = r.u64s()?;
        let histogram = if r.is_empty() {
            None
        } else {
            r.skip(40)?;
            Some(r.u64s()?)
        };
        if !length.is_multiple_of(8) {
            return Err(r.corrupt(format_args!("{length} bytes are no whole words")));
        }
        Ok(SpaceMapPhys { object: ObjectId(object), length, allocated: allocated as i64, histogram })
    }

    pub fn encode(&self, w: &mut Writer<'_>) {
        w.u64s(&[self.object.0, self.length, self.allocated as u64]);
        if let Some(histogram) = &self.histogram {
            w.zeros(40);
            w.u64s(histogram);
        }
    }

    pub fn from_bonus(bonus: &[u8]) -> Result<SpaceMapPhys> {
        SpaceMapPhys::decode(&mut Reader::new(bonus, Endian::NATIVE, "space map"))
    }

    pub fn to_bonus(&self) -> Vec<u8> {
        let size = if self.histogram.is_some() { SpaceMapPhys::SIZE } else { SpaceMapPhys::OLD_SIZE };
        let mut bonus = vec![0; size];
        self.encode(&mut Writer::native(&mut bonus));
        bonus
    }
}
