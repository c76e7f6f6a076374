//! The DSL dataset: one state of a volume or file system, live or snapshot.

use super::Space;
use crate::blkptr::BlockPointer;
use crate::bytes::{Reader, Writer, bonus};
use units::{Guid, ObjectId, Result, Txg};

/// Bonus of 320 bytes.
///
/// ```text
///     0  directory   8  previous snapshot   16  its txg   24  next snapshot (or head)   32  ZAP of snapshot names
///    40  children   48  creation time   56  creation txg   64  deadlist
///    72  referenced   80  compressed   88  uncompressed   96  unique
///   104  fsid guid  112  guid  120  flags
///   128  block pointer to the object set
///   256  ZAP of next clones  264  ZAP of properties  272  ZAP of holds  280  padding to 320
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DslDatasetPhys {
    pub dir: ObjectId,
    pub previous: ObjectId,
    pub previous_txg: Txg,
    /// Of a snapshot: the next one, or the head. Of a head: 0.
    pub next: ObjectId,
    /// Of a head: its snapshots by name. Of a snapshot: 0.
    pub snapshot_names: ObjectId,
    /// Of a snapshot: how many point to it as their previous one, the next and clones. Of a head: 0.
    pub children: u64,
    /// Seconds since 1970.
    pub creation_time: u64,
    pub creation_txg: Txg,
    pub deadlist: ObjectId,
    /// All blocks reachable from here, shared or not.
    pub referenced: Space,
    /// Bytes that would be freed with it.
    pub unique: u64,
    /// 56 bits; changed where it would collide with another's on this machine.
    pub fsid_guid: u64,
    /// For life.
    pub guid: Guid,
    pub flags: DatasetFlags,
    pub root: BlockPointer,
    pub next_clones: ObjectId,
    /// Properties of a snapshot; those of a head are in its directory.
    pub properties: ObjectId,
    pub holds: ObjectId,
}

/// A set of the `DS_FLAG_*` bits. Unknown bits are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatasetFlags(pub u64);

impl DatasetFlags {
    /// Half received or half destroyed: it must not be opened.
    pub const INCONSISTENT: DatasetFlags = DatasetFlags(1);
    pub const NO_PROMOTE: DatasetFlags = DatasetFlags(1 << 1);
    /// `unique` of a head can be trusted.
    pub const UNIQUE_ACCURATE: DatasetFlags = DatasetFlags(1 << 2);
    /// Destroyed as soon as its last hold or clone is gone.
    pub const DEFER_DESTROY: DatasetFlags = DatasetFlags(1 << 3);
    /// Names in it ignore case.
    pub const CASE_INSENSITIVE: DatasetFlags = DatasetFlags(1 << 16);

    pub fn has(self, flag: DatasetFlags) -> bool {
        self.0 & flag.0 == flag.0
    }

    #[must_use]
    pub fn with(self, flag: DatasetFlags) -> DatasetFlags {
        DatasetFlags(self.0 | flag.0)
    }

    #[must_use]
    pub fn without(self, flag: DatasetFlags) -> DatasetFlags {
        DatasetFlags(self.0 & !flag.0)
    }
}

impl DslDatasetPhys {
    pub const SIZE: usize = 320;

    /// Only a snapshot has children.
    pub fn is_snapshot(&self) -> bool {
        self.children != 0
    }

    pub fn decode(r: &mut Reader<'_>) -> Result<DslDatasetPhys> {
        let [dir, previous, previous_txg, next, snapshot_names] = r.u64s()?;
        let [children, creation_time, creation_txg, deadlist] = r.u64s()?;
        let [used, compressed, uncompressed, unique] = r.u64s()?;
        let [fsid_guid, guid, flags] = r.u64s()?;
        let root = BlockPointer::decode(r)?;
        let [next_clones, properties, holds] = r.u64s()?;
        r.skip(40)?;
        Ok(DslDatasetPhys {
            dir: ObjectId(dir),
            previous: ObjectId(previous),
            previous_txg: Txg(previous_txg),
            next: ObjectId(next),
            snapshot_names: ObjectId(snapshot_names),
            children,
            creation_time,
            creation_txg: Txg(creation_txg),
            deadlist: ObjectId(deadlist),
            referenced: Space { used, compressed, uncompressed },
            unique,
            fsid_guid,
            guid: Guid(guid),
            flags: DatasetFlags(flags),
            root,
            next_clones: ObjectId(next_clones),
            properties: ObjectId(properties),
            holds: ObjectId(holds),
        })
    }

    pub fn encode(&self, w: &mut Writer<'_>) {
        let s = &self.referenced;
        w.u64s(&[self.dir.0, self.previous.0, self.previous_txg.0, self.next.0, self.snapshot_names.0]);
        w.u64s(&[self.children, self.creation_time, self.creation_txg.0, self.deadlist.0]);
        w.u64s(&[s.used, s.compressed, s.uncompressed, self.unique]);
        w.u64s(&[self.fsid_guid, self.guid.0, self.flags.0]);
        self.root.encode(w);
        w.u64s(&[self.next_clones.0, self.properties.0, self.holds.0]);
        w.zeros(40);
    }
}

bonus!(DslDatasetPhys, "DSL dataset");
