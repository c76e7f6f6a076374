//! Directories and datasets as the DSL works with them: the format's structures, with the space where the accounts
//! need it and names as in OpenZFS's source. What stands where on disk is `ondisk`'s.

use ondisk::{BlockPointer, DatasetFlags, DslDatasetPhys, DslDirPhys, Space, UsedBreakdown};
use units::{Guid, ObjectId, Result, Txg};

use crate::space::DirSpace;

/// A bonus written by an old program may be shorter than today's: what is missing is zero.
fn whole(bonus: &[u8], size: usize) -> Vec<u8> {
    let mut whole = bonus.to_vec();
    whole.resize(size.max(bonus.len()), 0);
    whole
}

/// A directory: a node of the tree of datasets, and where its space is charged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirPhys {
    pub creation_time: u64,
    /// 0 in the special directories `$MOS` and `$FREE`.
    pub head: ObjectId,
    /// 0 in the pool's.
    pub parent: ObjectId,
    /// The snapshot this is a clone of; `$ORIGIN@$ORIGIN` for what is no clone.
    pub origin: ObjectId,
    pub children: ObjectId,
    pub space: DirSpace,
    pub props: ObjectId,
    pub permissions: ObjectId,
    pub flags: u64,
    /// Clones of this directory's snapshots.
    pub clones: ObjectId,
}

impl DirPhys {
    pub fn decode(bonus: &[u8]) -> Result<DirPhys> {
        let phys = DslDirPhys::from_bonus(&whole(bonus, DslDirPhys::SIZE))?;
        let parts = &phys.used_breakdown;
        let parts =
            [parts.head, parts.snapshots, parts.children, parts.children_reserved, parts.refreservation];
        let space = DirSpace {
            used: phys.space.used,
            compressed: phys.space.compressed,
            uncompressed: phys.space.uncompressed,
            quota: phys.quota,
            reserved: phys.reservation,
            breakdown: (phys.flags & DslDirPhys::USED_BREAKDOWN != 0).then_some(parts),
        };
        Ok(DirPhys {
            creation_time: phys.creation_time,
            head: phys.head_dataset,
            parent: phys.parent,
            origin: phys.origin,
            children: phys.children,
            space,
            props: phys.properties,
            permissions: phys.delegations,
            flags: phys.flags,
            clones: phys.clones,
        })
    }

    pub fn encode(&self) -> Vec<u8> {
        let DirSpace { used, compressed, uncompressed, quota, reserved, breakdown } = self.space;
        let [head, snapshots, children, children_reserved, refreservation] = breakdown.unwrap_or_default();
        let keeps = if breakdown.is_some() { DslDirPhys::USED_BREAKDOWN } else { 0 };
        let phys = DslDirPhys {
            creation_time: self.creation_time,
            head_dataset: self.head,
            parent: self.parent,
            origin: self.origin,
            children: self.children,
            space: Space { used, compressed, uncompressed },
            quota,
            reservation: reserved,
            properties: self.props,
            delegations: self.permissions,
            flags: self.flags & !DslDirPhys::USED_BREAKDOWN | keeps,
            used_breakdown: UsedBreakdown { head, snapshots, children, children_reserved, refreservation },
            clones: self.clones,
        };
        phys.to_bonus()
    }
}

/// A head dataset or a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatasetPhys {
    pub dir: ObjectId,
    pub prev_snap: ObjectId,
    pub prev_snap_txg: Txg,
    /// 0 in a head; in a snapshot, the next snapshot or the head.
    pub next_snap: ObjectId,
    /// Only in a head.
    pub snapnames: ObjectId,
    /// Of a snapshot: the next one and its clones. 0 in a head.
    pub num_children: u64,
    pub creation_time: u64,
    pub creation_txg: Txg,
    pub deadlist: ObjectId,
    pub referenced: u64,
    pub compressed: u64,
    pub uncompressed: u64,
    /// What only this dataset holds.
    pub unique: u64,
    pub fsid: u64,
    pub guid: Guid,
    pub flags: u64,
    pub bp: BlockPointer,
    pub next_clones: ObjectId,
    /// Only in a snapshot, and only if it has properties of its own.
    pub props: ObjectId,
    pub userrefs: ObjectId,
}

impl DatasetPhys {
    /// A half received stream: not to be mounted.
    pub const INCONSISTENT: u64 = DatasetFlags::INCONSISTENT.0;
    pub const UNIQUE_ACCURATE: u64 = DatasetFlags::UNIQUE_ACCURATE.0;
    /// A snapshot that goes when its last hold and clone do.
    pub const DEFER_DESTROY: u64 = DatasetFlags::DEFER_DESTROY.0;
    /// Names are compared without regard to case.
    pub const CASE_INSENSITIVE: u64 = DatasetFlags::CASE_INSENSITIVE.0;

    pub fn decode(bonus: &[u8]) -> Result<DatasetPhys> {
        let phys = DslDatasetPhys::from_bonus(bonus)?;
        Ok(DatasetPhys {
            dir: phys.dir,
            prev_snap: phys.previous,
            prev_snap_txg: phys.previous_txg,
            next_snap: phys.next,
            snapnames: phys.snapshot_names,
            num_children: phys.children,
            creation_time: phys.creation_time,
            creation_txg: phys.creation_txg,
            deadlist: phys.deadlist,
            referenced: phys.referenced.used,
            compressed: phys.referenced.compressed,
            uncompressed: phys.referenced.uncompressed,
            unique: phys.unique,
            fsid: phys.fsid_guid,
            guid: phys.guid,
            flags: phys.flags.0,
            bp: phys.root,
            next_clones: phys.next_clones,
            props: phys.properties,
            userrefs: phys.holds,
        })
    }

    pub fn encode(&self) -> Vec<u8> {
        let phys = DslDatasetPhys {
            dir: self.dir,
            previous: self.prev_snap,
            previous_txg: self.prev_snap_txg,
            next: self.next_snap,
            snapshot_names: self.snapnames,
            children: self.num_children,
            creation_time: self.creation_time,
            creation_txg: self.creation_txg,
            deadlist: self.deadlist,
            referenced: Space {
                used: self.referenced,
                compressed: self.compressed,
                uncompressed: self.uncompressed,
            },
            unique: self.unique,
            fsid_guid: self.fsid,
            guid: self.guid,
            flags: DatasetFlags(self.flags),
            root: self.bp.clone(),
            next_clones: self.next_clones,
            properties: self.props,
            holds: self.userrefs,
        };
        phys.to_bonus()
    }

    pub fn is_snapshot(&self) -> bool {
        self.num_children != 0
    }

    pub fn has(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each word of the bonus is another number, so that a swap of two fields cannot hide in a round trip.
    #[test]
    fn nothing_is_lost_or_swapped_on_the_way_to_disk_and_back() {
        let raw = |words: u64| (1..=words).flat_map(|n| (n * 1000).to_ne_bytes()).collect::<Vec<u8>>();
        let dir = DirPhys::decode(&raw(32)).unwrap();
        assert_eq!((dir.head.0, dir.parent.0, dir.children.0), (2000, 3000, 5000));
        assert_eq!((dir.space.used, dir.space.quota, dir.space.reserved), (6000, 9000, 10_000));
        assert_eq!((dir.props.0, dir.clones.0, dir.space.breakdown), (11_000, 19_000, None));
        let mut bonus = raw(40);
        bonus[128..256].fill(0);
        let ds = DatasetPhys::decode(&bonus).unwrap();
        assert_eq!((ds.dir.0, ds.prev_snap_txg.0, ds.deadlist.0, ds.unique), (1000, 3000, 9000, 13_000));
        assert_eq!((ds.guid.0, ds.next_clones.0, ds.userrefs.0), (15_000, 33_000, 35_000));
        assert_eq!(DatasetPhys::decode(&ds.encode()).unwrap(), ds);
        assert_eq!(DirPhys::decode(&dir.encode()).unwrap(), dir);
    }

    #[test]
    fn a_short_bonus_is_filled_with_zeros_or_refused() {
        assert_eq!(DirPhys::decode(&[0; 80]).unwrap(), DirPhys::default());
        assert!(DatasetPhys::decode(&[0; 80]).is_err());
    }
}
