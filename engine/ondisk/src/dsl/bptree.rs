//! Datasets being destroyed in the background (feature `async_destroy`).

use super::Space;
use crate::blkptr::BlockPointer;
use crate::bookmark::BlockBookmark;
use crate::bytes::{Reader, Writer, bonus};
use units::{Result, Txg};

/// Bonus of an object that is an array of [`BptreeEntry`]; those from `begin` up to `end` are yet to be freed.
///
/// ```text
///   0  begin   8  end   16  bytes   24  compressed   32  uncompressed
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BptreePhys {
    pub begin: u64,
    pub end: u64,
    pub space: Space,
}

/// A tree of blocks to be freed: 168 bytes.
///
/// ```text
///   0  block pointer   128  free only what was born after this txg   136  where to go on (32 bytes)
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BptreeEntry {
    pub root: BlockPointer,
    pub birth: Txg,
    pub resume: BlockBookmark,
}

impl BptreePhys {
    pub const SIZE: usize = 40;

    pub fn decode(r: &mut Reader<'_>) -> Result<BptreePhys> {
        let [begin, end, used, compressed, uncompressed] = r.u64s()?;
        Ok(BptreePhys { begin, end, space: Space { used, compressed, uncompressed } })
    }

    pub fn encode(&self, w: &mut Writer<'_>) {
        let s = &self.space;
        w.u64s(&[self.begin, self.end, s.used, s.compressed, s.uncompressed]);
    }
}

bonus!(BptreePhys, "bptree");

impl BptreeEntry {
    pub const SIZE: usize = 168;

    pub fn decode(r: &mut Reader<'_>) -> Result<BptreeEntry> {
        let root = BlockPointer::decode(r)?;
        Ok(BptreeEntry { root, birth: Txg(r.u64()?), resume: BlockBookmark::from_words(r.u64s()?) })
    }

    pub fn encode(&self, w: &mut Writer<'_>) {
        self.root.encode(w);
        w.u64(self.birth.0);
        w.u64s(&self.resume.to_words());
    }
}
