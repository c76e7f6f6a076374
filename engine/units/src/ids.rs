//! Identifiers. Each is a number on disk and nothing else in common with the others.

use std::fmt;

/// A transaction group. The pool is consistent at the end of each one, and only there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Txg(pub u64);

impl Txg {
    /// "Never": the birth of a hole, and of a block not yet written.
    pub const NONE: Txg = Txg(0);
    /// The txg in which `zpool create` writes the first state of a pool.
    pub const INITIAL: Txg = Txg(4);
    /// How many slots per-txg state has: for a txg that is open, one that quiesces, one that syncs, and one just done.
    pub const SLOTS: usize = 4;

    pub fn next(self) -> Txg {
        Txg(self.0 + 1)
    }

    /// The txg `n` before this one, or [`Txg::NONE`].
    pub fn back(self, n: u64) -> Txg {
        Txg(self.0.saturating_sub(n))
    }

    /// Which of the [`Txg::SLOTS`] slots of per-txg state belongs to this txg.
    pub fn slot(self) -> usize {
        (self.0 % Txg::SLOTS as u64) as usize
    }
}

impl fmt::Display for Txg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The random number by which pools, vdevs, datasets and snapshots are known for life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(pub u64);

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of an object within its object set. 0 is the meta-dnode, which holds all the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u64);

impl ObjectId {
    pub const META_DNODE: ObjectId = ObjectId(0);

    /// On disk, "no such object" is written as 0.
    pub fn some(self) -> Option<ObjectId> {
        (self.0 != 0).then_some(self)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of an object set: 0 for the MOS, else the MOS object of its dataset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjsetId(pub u64);

impl ObjsetId {
    pub const MOS: ObjsetId = ObjsetId(0);
}

impl fmt::Display for ObjsetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The index of a top-level vdev, as stored in every DVA: 24 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VdevId(pub u32);

impl fmt::Display for VdevId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
