//! Which blocks of dnodes a txg dirties for the first time, by the numbers of the objects that are dirty already. Pure.

use crate::attrs::SLOT;
use ondisk::BlockPointer;
use std::ops::Range;
use units::ObjectId;

/// Bytes of a block of dnodes.
pub(crate) const DNODES: u64 = 16 << 10;
/// Bytes of an indirect block of the meta-dnode.
pub(crate) const INDIRECT: u64 = 128 << 10;
/// The dnodes that one level-1 block of the meta-dnode leads to.
const DNODES_BELOW: u64 = DNODES / SLOT * (INDIRECT / BlockPointer::SIZE as u64);

/// Of which dnodes one is the first that a txg has dirtied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FirstIn {
    pub block: bool,
    pub group: bool,
    pub set: bool,
}

impl FirstIn {
    /// `is_any` says whether one of these numbers is dirty. Number 0, the meta-dnode, is dirty with any of them.
    pub fn of(id: ObjectId, is_any: impl Fn(Range<ObjectId>) -> bool) -> FirstIn {
        let first = |count: u64| {
            let start = id.0 / count * count;
            !is_any(ObjectId(start.max(1))..ObjectId(start.saturating_add(count)))
        };
        FirstIn {
            block: first(DNODES / SLOT),
            group: first(DNODES_BELOW),
            set: !is_any(ObjectId(1)..ObjectId(u64::MAX)),
        }
    }
}
