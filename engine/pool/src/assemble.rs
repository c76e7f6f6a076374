//! The knots: where a lower layer needs something that lives above it.
//!
//! ```text
//!   metaslab::SpaceLog    space maps are objects of the MOS, which is written through the allocator ─▶ MosSpaceLog
//!   dmu::BlockAccounting  the MOS frees its own blocks at once, and its space is charged later      ─▶ MosBlockAccounting
//! ```

use dmu::{BlockAccounting, NewObject, ObjSet, Object, Tx};
use dsl::core::Core;
use dsl::space::Delta;
use futures_util::stream::{self, StreamExt};
use metaslab::{MapInfo, MapWrite, SpaceLog};
use ondisk::{BlockPointer, Feature, ObjectType, SpaceMapPhys};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{Error, Kind, ObjectId, Result, Txg, VdevId};
use vdev::Tree;
use world::Boxed;
use world::Pending;
use zio::{BlockStore, Pipeline};

/// Space maps as objects of the MOS. The MOS is opened through the allocator, so it is put in afterwards.
pub(crate) struct MosSpaceLog {
    tree: Arc<Tree>,
    /// Taken out again when the pool closes, and by the end of the [`Knot`]: the MOS leads back here, and the circle would
    /// keep the devices open.
    tied: Mutex<Option<Tied>>,
}

/// The upper end of the knot.
#[derive(Clone)]
struct Tied {
    mos: ObjSet,
    /// New space maps have one.
    has_histogram: bool,
    /// To count the maps that have a histogram, which is a feature.
    core: Option<Core>,
}

/// The opening of a pool, and then the pool itself, has this: with it the knot goes, also when opening fails half way or a
/// pool is given up without being closed.
pub(crate) struct Knot(Arc<MosSpaceLog>);

impl std::ops::Deref for Knot {
    type Target = MosSpaceLog;

    fn deref(&self) -> &MosSpaceLog {
        &self.0
    }
}

impl Drop for Knot {
    fn drop(&mut self) {
        self.0.cut();
    }
}

/// Bytes of a block of a new map. OpenZFS has 128K with its log of space maps, so that a map is seldom written, and 16K
/// without it, as here ([why](../../docs/rfd/0005-no-log-space-maps.md)): the last block of a map is written in each txg
/// that takes space from its metaslab, twice.
const BLOCK_SIZE: u32 = 16 << 10;

/// log2 of the bytes of an indirect block of a space map: small, for maps are appended to in every txg.
const INDIRECT_SHIFT: u8 = 14;

impl MosSpaceLog {
    pub fn new(tree: Arc<Tree>) -> Arc<MosSpaceLog> {
        Arc::new(MosSpaceLog { tree, tied: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Tied>> {
        self.tied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ties the knot.
    pub fn tie(self: &Arc<Self>, mos: ObjSet, has_histogram: bool) -> Knot {
        *self.lock() = Some(Tied { mos, has_histogram, core: None });
        Knot(self.clone())
    }

    /// Ties the other end, before the first map is made.
    pub fn tie_features(&self, core: Core) {
        self.lock().as_mut().expect("the knot is tied from the MOS's end first").core = Some(core);
    }

    /// Cuts it, when the pool closes.
    pub fn cut(&self) {
        *self.lock() = None;
    }

    fn tied(&self) -> Result<Tied> {
        self.lock().clone().ok_or_else(|| Error::new(Kind::Cancelled, "use space maps: the pool is closed"))
    }

    /// Makes a map that belongs to no metaslab.
    pub fn create_map<'a>(&'a self, tx: &'a Tx, block_size: u32) -> Boxed<'a, Result<ObjectId>> {
        Box::pin(async move { Ok(self.tied()?.create(tx, block_size).await?.id()) })
    }

    fn array_of(&self, vdev: VdevId) -> Option<ObjectId> {
        let spec = self.tree.spec();
        let top = spec.children.iter().find(|t| t.id == Some(u64::from(vdev.0)))?;
        top.metaslab_array()
    }
}

impl Tied {
    /// An empty space map.
    async fn create(&self, tx: &Tx, block_size: u32) -> Result<Object> {
        let core = self.core.as_ref().expect("the knot is tied before the first map is made");
        let header = SpaceMapPhys {
            object: ObjectId(0),
            length: 0,
            allocated: 0,
            histogram: self.has_histogram.then_some([0; SpaceMapPhys::BUCKETS]),
        };
        let new = NewObject::new(ObjectType::SPACE_MAP, block_size)
            .with_indirect_shift(INDIRECT_SHIFT)
            .with_bonus(ObjectType::SPACE_MAP_HEADER, header.to_bonus());
        let object = self.mos.allocate(tx, new).await?;
        if self.has_histogram {
            core.features().add(tx, Feature::SpacemapHistogram, 1).await?;
        }
        Ok(object)
    }
}

async fn map_object(mos: ObjSet, map: ObjectId) -> Result<Object> {
    mos.object(map).await.map_err(|e| e.at(format!("space map {map}")))
}

fn info_of(object: &Object) -> Result<MapInfo> {
    let place = || format!("space map {}", object.id());
    let header = SpaceMapPhys::from_bonus(&object.bonus()).map_err(|e| e.at(place()))?;
    let room = object.attrs().size_bound();
    if header.length > room {
        return Err(Error::corrupt(format!("its length, {}, is more than its {room} bytes", header.length))
            .at(place()));
    }
    Ok(MapInfo { object: object.id(), block_size: object.block_size(), header })
}

/// Blocks of a map that are read at once.
const AT_ONCE: usize = 16;

/// The first `length` bytes. Maps have no holes: so what is taken in memory is bounded by what is on the devices, whatever
/// length a damaged map claims.
async fn read_map(object: &Object, length: u64) -> Result<Vec<u8>> {
    let corrupt = |e: String| Error::corrupt(e).at(format!("space map {}", object.id()));
    let mut bytes = Vec::new();
    let blocks = stream::iter(0..length.div_ceil(object.block_size()));
    let mut blocks =
        blocks.map(async |blkid| (blkid, object.read_block_if_any(blkid).await)).buffered(AT_ONCE);
    while let Some((blkid, block)) = blocks.next().await {
        let block =
            block?.ok_or_else(|| corrupt(format!("block {blkid} of its {length} bytes is a hole")))?;
        let len = (length - bytes.len() as u64).min(block.len() as u64) as usize;
        bytes.extend_from_slice(&block[..len]);
    }
    if bytes.len() as u64 == length {
        Ok(bytes)
    } else {
        Err(corrupt(format!("its length, {length}, is more than it has")))
    }
}

impl SpaceLog for MosSpaceLog {
    fn array(&self, vdev: VdevId) -> Pending<Result<Vec<ObjectId>>> {
        let (tied, array) = (self.tied(), self.array_of(vdev));
        Box::pin(async move {
            let mos = tied?.mos;
            let Some(array) = array else { return Ok(Vec::new()) };
            let object =
                mos.object(array).await.map_err(|e| e.at(format!("metaslab array of vdev {vdev}")))?;
            let len = object.attrs().size_bound().min(8 << 20) as usize;
            let bytes = object.read(0, len).await?;
            Ok(bytes.as_chunks().0.iter().map(|word| ObjectId(u64::from_ne_bytes(*word))).collect())
        })
    }

    fn info(&self, map: ObjectId) -> Pending<Result<MapInfo>> {
        let tied = self.tied();
        Box::pin(async move { info_of(&map_object(tied?.mos, map).await?) })
    }

    fn read(&self, map: ObjectId, length: u64) -> Pending<Result<Vec<u8>>> {
        let tied = self.tied();
        Box::pin(async move {
            let mos = tied?.mos;
            read_map(&map_object(mos, map).await?, length).await
        })
    }

    fn create(&self, vdev: VdevId, index: u64, txg: Txg) -> Pending<Result<MapInfo>> {
        let (tied, array) = (self.tied(), self.array_of(vdev));
        Box::pin(async move {
            let tied = tied?;
            let tx = Tx::syncing(txg);
            let array = array.ok_or_else(|| Error::corrupt(format!("vdev {vdev} has no metaslab array")))?;
            let object = tied.create(&tx, BLOCK_SIZE).await?;
            let mos = tied.mos;
            let array = mos.object(array).await?;
            array.write(&tx, index * 8, &object.id().0.to_ne_bytes()).await?;
            info_of(&object)
        })
    }

    fn write(&self, map: ObjectId, write: MapWrite, txg: Txg) -> Pending<Result<()>> {
        let tied = self.tied();
        Box::pin(async move {
            let mos = tied?.mos;
            let tx = Tx::syncing(txg);
            let object = map_object(mos, map).await?;
            if write.truncate {
                object.free_range(&tx, 0, u64::MAX).await?;
            }
            object.write(&tx, write.at, &write.bytes).await?;
            // On disk a map does not name itself; old ones that do are left to.
            object.set_bonus(&tx, write.header.to_bonus())
        })
    }
}

impl std::fmt::Debug for MosSpaceLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MosSpaceLog")
    }
}

/// The MOS has no snapshots: what it replaces is free at once. Its space is charged to a directory that is itself in the
/// MOS, so the sums wait here until the next txg.
#[derive(Debug)]
pub(crate) struct MosBlockAccounting {
    pub pipeline: Pipeline,
    pub txg: Txg,
    pub delta: Arc<Mutex<Delta>>,
}

impl MosBlockAccounting {
    fn add(&self, change: impl FnOnce(&mut Delta)) {
        change(&mut self.delta.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl BlockAccounting for MosBlockAccounting {
    fn born(&self, bp: &BlockPointer) {
        let weight = dsl::core::weigh(&self.pipeline as &dyn BlockStore, bp);
        self.add(|sum| *sum += weight);
    }

    fn killed(&self, bp: &BlockPointer) {
        let weight = dsl::core::weigh(&self.pipeline as &dyn BlockStore, bp);
        self.pipeline.free(bp, self.txg);
        self.add(|sum| *sum = *sum - weight);
    }
}
