//! The head of a list of block pointers.

use super::Space;
use crate::bytes::{Reader, Writer};
use units::{Endian, ObjectId, Result};

/// Bonus of an object whose blocks hold block pointers, and which may include other such objects.
///
/// ```text
///    0  pointers here   8  bytes                        16 bytes, before pool version 3 ...
///   16  compressed     24  uncompressed                 32 bytes: with accounting
///   32  object with the numbers of included lists   40  how many       48 bytes: with sub-lists
///   48  pointers that were freed (livelists)            56 bytes: with frees
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BpobjPhys {
    pub size: BpobjSize,
    /// Pointers in this object's own blocks.
    pub pointers: u64,
    /// Of all, those in included lists too.
    pub space: Space,
    pub sub_lists: ObjectId,
    pub sub_list_count: u64,
    /// Among `pointers`, those that say "freed": only in livelists.
    pub freed: u64,
}

/// How much of the structure there is; what is not there counts as zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BpobjSize {
    /// 16 bytes.
    Count,
    /// 32 bytes.
    Accounting,
    /// 48 bytes.
    SubLists,
    /// 56 bytes.
    Freed,
}

impl BpobjSize {
    pub fn bytes(self) -> usize {
        match self {
            BpobjSize::Count => 16,
            BpobjSize::Accounting => 32,
            BpobjSize::SubLists => 48,
            BpobjSize::Freed => 56,
        }
    }

    fn from_bytes(bytes: usize) -> Option<BpobjSize> {
        use BpobjSize::*;
        [Count, Accounting, SubLists, Freed].into_iter().find(|s| s.bytes() == bytes)
    }
}

impl BpobjPhys {
    /// An empty list.
    pub fn new(size: BpobjSize) -> BpobjPhys {
        BpobjPhys {
            size,
            pointers: 0,
            space: Space::default(),
            sub_lists: ObjectId(0),
            sub_list_count: 0,
            freed: 0,
        }
    }

    /// Reads all that is left of `r`: the length of the bonus says what is in it.
    pub fn decode(r: &mut Reader<'_>) -> Result<BpobjPhys> {
        let size = BpobjSize::from_bytes(r.remaining())
            .ok_or_else(|| r.corrupt(format_args!("a bonus of {} bytes", r.remaining())))?;
        let mut phys = BpobjPhys::new(size);
        [phys.pointers, phys.space.used] = r.u64s()?;
        if size >= BpobjSize::Accounting {
            [phys.space.compressed, phys.space.uncompressed] = r.u64s()?;
        }
        if size >= BpobjSize::SubLists {
            [phys.sub_lists.0, phys.sub_list_count] = r.u64s()?;
        }
        if size >= BpobjSize::Freed {
            phys.freed = r.u64()?;
        }
        Ok(phys)
    }

    pub fn encode(&self, w: &mut Writer<'_>) {
        w.u64s(&[self.pointers, self.space.used]);
        if self.size >= BpobjSize::Accounting {
            w.u64s(&[self.space.compressed, self.space.uncompressed]);
        }
        if self.size >= BpobjSize::SubLists {
            w.u64s(&[self.sub_lists.0, self.sub_list_count]);
        }
        if self.size >= BpobjSize::Freed {
            w.u64(self.freed);
        }
    }

    pub fn from_bonus(bonus: &[u8]) -> Result<BpobjPhys> {
        BpobjPhys::decode(&mut Reader::new(bonus, Endian::NATIVE, "bpobj"))
    }

    pub fn to_bonus(&self) -> Vec<u8> {
        let mut bonus = vec![0; self.size.bytes()];
        self.encode(&mut Writer::native(&mut bonus));
        bonus
    }
}
