//! What metaslabs need from above: space maps are objects of the pool's meta object set.
//!
//! `pool` implements this over the DMU. Bytes are given and taken in native order, whatever the order on disk.
//!
//! ```text
//!   metaslab array of a vdev      object of u64: the space map of each metaslab, 0 = never dirtied: all free
//!   space map object              bonus: SpaceMapPhys; data: entries up to its `length`
//! ```

use ondisk::SpaceMapPhys;
use units::{ObjectId, Result, Txg, VdevId};
use world::Pending;

/// A space map object as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapInfo {
    pub object: ObjectId,
    /// The size of the object's blocks in bytes: long entries do not straddle them.
    pub block_size: u64,
    pub header: SpaceMapPhys,
}

/// What is to be written to a space map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapWrite {
    /// Free everything first: the bytes are the whole map.
    pub truncate: bool,
    /// Where the bytes go: the end of what is there, or 0.
    pub at: u64,
    pub bytes: Vec<u8>,
    /// The header as it is afterwards.
    pub header: SpaceMapPhys,
}

pub trait SpaceLog: Send + Sync + 'static {
    /// The space map objects of a vdev's metaslabs, in order; what is missing at the end or 0 was never made.
    fn array(&self, vdev: VdevId) -> Pending<Result<Vec<ObjectId>>>;

    fn info(&self, map: ObjectId) -> Pending<Result<MapInfo>>;

    /// The first `length` bytes. A length beyond the object's data is an error, not zeros.
    fn read(&self, map: ObjectId, length: u64) -> Pending<Result<Vec<u8>>>;

    /// Makes an empty map and enters it in the array of `vdev` at `index`. Its header has a histogram if the pool has
    /// the feature `spacemap_histogram`.
    fn create(&self, vdev: VdevId, index: u64, txg: Txg) -> Pending<Result<MapInfo>>;

    fn write(&self, map: ObjectId, write: MapWrite, txg: Txg) -> Pending<Result<()>>;
}
