//! The bonus areas of the DSL's objects: words of 64 bits, in the order in which they stand on disk.
//!
//! A bonus written by an old program may be shorter than today's: what is missing is zero.

use ondisk::{BlockPointer, Reader, Writer};
use units::{Endian, Error, Guid, ObjectId, Result, Txg};

use crate::space::DirSpace;

/// Reads up to `N` words; fewer on disk are zero.
pub fn words<const N: usize>(bonus: &[u8], what: &'static str) -> Result<[u64; N]> {
    let mut words = [0; N];
    let mut r = Reader::new(bonus, Endian::NATIVE, what);
    for word in words.iter_mut().take(bonus.len() / 8) {
        *word = r.u64()?;
    }
    Ok(words)
}

pub fn bytes(words: &[u64]) -> Vec<u8> {
    let mut bytes = vec![0; words.len() * 8];
    Writer::native(&mut bytes).u64s(words);
    bytes
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
    pub const SIZE: usize = 256;
    const WORDS: usize = DirPhys::SIZE / 8;
    const USED_BREAKDOWN: u64 = 1;

    pub fn decode(bonus: &[u8]) -> Result<DirPhys> {
        let w = words::<{ DirPhys::WORDS }>(bonus, "DSL directory")?;
        let breakdown = [w[13], w[14], w[15], w[16], w[17]];
        let space = DirSpace {
            used: w[5],
            compressed: w[6],
            uncompressed: w[7],
            quota: w[8],
            reserved: w[9],
            breakdown: (w[12] & DirPhys::USED_BREAKDOWN != 0).then_some(breakdown),
        };
        Ok(DirPhys {
            creation_time: w[0],
            head: ObjectId(w[1]),
            parent: ObjectId(w[2]),
            origin: ObjectId(w[3]),
            children: ObjectId(w[4]),
            space,
            props: ObjectId(w[10]),
            permissions: ObjectId(w[11]),
            flags: w[12],
            clones: ObjectId(w[18]),
        })
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut w = [0; DirPhys::WORDS];
        let space = &self.space;
        w[..13].copy_from_slice(&[
            self.creation_time,
            self.head.0,
            self.parent.0,
            self.origin.0,
            self.children.0,
            space.used,
            space.compressed,
            space.uncompressed,
            space.quota,
            space.reserved,
            self.props.0,
            self.permissions.0,
            self.flags & !DirPhys::USED_BREAKDOWN | u64::from(space.breakdown.is_some()),
        ]);
        w[13..18].copy_from_slice(&space.breakdown.unwrap_or_default());
        w[18] = self.clones.0;
        bytes(&w)
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
    pub const SIZE: usize = 320;
    /// A half received stream: not to be mounted.
    pub const INCONSISTENT: u64 = 1;
    pub const UNIQUE_ACCURATE: u64 = 4;
    /// A snapshot that goes when its last hold and clone do.
    pub const DEFER_DESTROY: u64 = 8;
    /// Names are compared without regard to case.
    pub const CASE_INSENSITIVE: u64 = 1 << 16;

    pub fn decode(bonus: &[u8]) -> Result<DatasetPhys> {
        const BP_AT: usize = 128;
        let short = || Error::corrupt(format!("DSL dataset: a bonus of {} bytes", bonus.len()));
        let w = words::<40>(bonus, "DSL dataset")?;
        let bp = bonus.get(BP_AT..BP_AT + BlockPointer::SIZE).ok_or_else(short)?;
        Ok(DatasetPhys {
            dir: ObjectId(w[0]),
            prev_snap: ObjectId(w[1]),
            prev_snap_txg: Txg(w[2]),
            next_snap: ObjectId(w[3]),
            snapnames: ObjectId(w[4]),
            num_children: w[5],
            creation_time: w[6],
            creation_txg: Txg(w[7]),
            deadlist: ObjectId(w[8]),
            referenced: w[9],
            compressed: w[10],
            uncompressed: w[11],
            unique: w[12],
            fsid: w[13],
            guid: Guid(w[14]),
            flags: w[15],
            bp: BlockPointer::from_bytes(bp, Endian::NATIVE)?,
            next_clones: ObjectId(w[32]),
            props: ObjectId(w[33]),
            userrefs: ObjectId(w[34]),
        })
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = bytes(&[
            self.dir.0,
            self.prev_snap.0,
            self.prev_snap_txg.0,
            self.next_snap.0,
            self.snapnames.0,
            self.num_children,
            self.creation_time,
            self.creation_txg.0,
            self.deadlist.0,
            self.referenced,
            self.compressed,
            self.uncompressed,
            self.unique,
            self.fsid,
            self.guid.0,
            self.flags,
        ]);
        out.extend(self.bp.to_bytes(Endian::NATIVE));
        out.extend(bytes(&[self.next_clones.0, self.props.0, self.userrefs.0]));
        out.resize(DatasetPhys::SIZE, 0);
        out
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

    /// Fields are compared with their places on disk, so that a swap of two cannot hide in a round trip.
    #[test]
    fn fields_stand_where_the_format_has_them() {
        let w: Vec<u64> = (1..=40).map(|n| n * 1000).collect();
        let dir = DirPhys::decode(&bytes(&w[..32])).unwrap();
        assert_eq!((dir.head.0, dir.parent.0, dir.children.0), (2000, 3000, 5000));
        assert_eq!((dir.space.used, dir.space.quota, dir.space.reserved), (6000, 9000, 10_000));
        assert_eq!((dir.props.0, dir.clones.0, dir.space.breakdown), (11_000, 19_000, None));
        let mut raw = bytes(&w);
        raw[128..256].fill(0);
        let ds = DatasetPhys::decode(&raw).unwrap();
        assert_eq!((ds.dir.0, ds.prev_snap_txg.0, ds.deadlist.0, ds.unique), (1000, 3000, 9000, 13_000));
        assert_eq!((ds.guid.0, ds.next_clones.0, ds.userrefs.0), (15_000, 33_000, 35_000));
        assert_eq!(DatasetPhys::decode(&ds.encode()).unwrap(), ds);
        assert_eq!(DirPhys::decode(&dir.encode()).unwrap(), dir);
        assert_eq!((ds.encode().len(), dir.encode().len()), (320, 256));
    }

    #[test]
    fn a_short_bonus_is_filled_with_zeros_or_refused() {
        assert_eq!(DirPhys::decode(&[0; 80]).unwrap(), DirPhys::default());
        assert!(DatasetPhys::decode(&[0; 80]).is_err());
    }
}
