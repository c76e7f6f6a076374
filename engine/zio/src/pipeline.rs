//! The block store of a real pool.

use crate::inner::Inner;
use crate::prepare::Rules;
use crate::second::{self, Missed};
use crate::store::{BlockStore, Bookmark, ReadClass, WriteSpec};
use crate::suspend::is_steadfast;
use crate::{ReadAhead, Sick, Suspension, Young, ahead, read, write};
use arc::{Access, Cache, Kind as CacheKind, Name, PrimaryCache, Request};
use l2arc::L2arc;
use metaslab::Space;
use ondisk::BlockPointer;
use std::sync::{Arc, Mutex, PoisonError};
use tunables::Tunables;
use units::{Error, ObjsetId, Result, Txg};
use vdev::{Care, Tree};
use world::sync::Semaphore;
use world::{Buf, Pending, boxed};

/// What a pipeline is made of.
#[derive(Debug)]
pub struct Options {
    pub devices: Arc<Tree>,
    /// `None` for a pool opened read-only.
    pub space: Option<Arc<Space>>,
    pub cache: Arc<Cache>,
    pub tunables: Arc<Tunables>,
    pub checksummer: Arc<codec::checksum::Checksummer>,
    pub rules: Rules,
}

/// See the crate. Clones are the same pipeline.
#[derive(Clone, Debug)]
pub struct Pipeline(pub(crate) Arc<Inner>);

/// Writes under way are counted in units of this many bytes, at most this many of them: 64 MiB.
pub(crate) const WRITE_UNIT: u64 = 4 << 10;
const WRITE_UNITS: usize = 16 << 10;

impl Pipeline {
    pub fn new(options: Options) -> Pipeline {
        let Options { devices, space, cache, tunables, checksummer, rules } = options;
        let suspension = Arc::<Suspension>::default();
        let ahead = ReadAhead::new(tunables, cache.ahead().clone(), suspension.clone());
        let is_writable = space.is_some();
        let opening = cache.opening();
        let second = Arc::new(L2arc::new(devices.clone(), cache.clone(), opening));
        second.set_checksummer(checksummer.clone());
        Pipeline(Arc::new(Inner {
            devices,
            space,
            opening,
            second,
            cache,
            checksummer: Mutex::new(checksummer),
            rules: Mutex::new(rules),
            writing: Semaphore::new(WRITE_UNITS),
            freed_gangs: Mutex::default(),
            problems: Mutex::default(),
            sick: Sick::new(is_writable),
            young: Young::default(),
            suspension,
            ahead: Arc::new(ahead),
        }))
    }

    /// Where the sync's I/O waits when devices fail it.
    pub fn suspension(&self) -> &Arc<Suspension> {
        &self.0.suspension
    }

    pub fn rules(&self) -> Rules {
        *self.0.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_rules(&self, rules: Rules) {
        *self.0.rules.lock().unwrap_or_else(PoisonError::into_inner) = rules;
    }

    /// Once the pool's salt is known, which itself must be read.
    pub fn set_checksummer(&self, checksummer: Arc<codec::checksum::Checksummer>) {
        self.0.second.set_checksummer(checksummer.clone());
        *self.0.checksummer.lock().unwrap_or_else(PoisonError::into_inner) = checksummer;
    }

    /// The cache devices.
    pub fn second_level(&self) -> &Arc<L2arc> {
        &self.0.second
    }

    pub fn cache(&self) -> &Arc<Cache> {
        &self.0.cache
    }

    pub fn devices(&self) -> &Arc<Tree> {
        &self.0.devices
    }

    /// Frees what the gang blocks among the freed held. Called in each pass of a sync, before free space is written out.
    pub async fn settle_frees(&self) -> Result<()> {
        let gangs = std::mem::take(&mut *self.0.freed_gangs.lock().unwrap_or_else(PoisonError::into_inner));
        for (plain, txg) in gangs {
            self.0.free_gang(&plain, txg).await?;
        }
        Ok(())
    }

    /// `txg`, which was being synced, is on disk: from now on none of its blocks is written again in its place.
    pub fn txg_synced(&self, txg: Txg) {
        self.0.young.grow_up();
        self.0.second.set_synced(txg);
    }

    /// The frees that could not be carried out since the last call.
    pub fn take_problems(&self) -> Vec<Error> {
        std::mem::take(&mut *self.0.problems.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The blocks of which reads met something bad.
    pub fn sick(&self) -> &Sick {
        &self.0.sick
    }

    /// Reads every copy of a block and every sector of its redundancy, and writes again what is bad. The caller knows that
    /// the place is still this block's, and stays it meanwhile.
    /// `blame`: what is bad counts as an error of its device, since that was not done when it was met.
    pub async fn heal_block(&self, bp: &BlockPointer, at: Bookmark, blame: bool) -> Result<()> {
        read::heal(&self.0, bp, at, blame).await
    }

    /// Counts what is bad of a block as errors of its devices. The caller knows that the place is still this block's.
    pub async fn blame_for(&self, bp: &BlockPointer, at: Bookmark) {
        read::blame(&self.0, bp, at).await;
    }

    /// Looks as thoroughly, but writes nothing: counts what is bad and hands out the bytes on disk. In a pool that is
    /// written to the place may be another block's by now, so that is no error of a device yet: [`Pipeline::blame_for`].
    pub async fn check_block(&self, bp: &BlockPointer, at: Bookmark) -> Result<read::Checked> {
        read::check(&self.0, bp, at).await
    }

    /// Reads and verifies a block without decompressing it, for walks that only check.
    pub async fn read_raw(&self, bp: &BlockPointer, at: Bookmark) -> Result<read::Verified> {
        read::read_raw(&self.0, bp, at, vdev::Priority::Scrub).await
    }
}

pub(crate) fn cache_kind(bp: &BlockPointer) -> CacheKind {
    if bp.is_metadata() { CacheKind::Metadata } else { CacheKind::Data }
}

impl BlockStore for Pipeline {
    fn cached(&self, bp: &BlockPointer) -> Option<Buf> {
        let block = self.0.cache_id(bp)?;
        self.0.cache.get(&block, Access::Demand).or_else(|| self.0.young.get(&block))
    }

    fn cached_and_named(&self, bp: &BlockPointer, name: Name) -> Option<Buf> {
        let block = self.0.cache_id(bp)?;
        self.0.cache.get_and_name(&block, name).or_else(|| self.0.young.get(&block))
    }

    fn cached_named(&self, name: Name) -> Option<Buf> {
        self.0.cache.get_named(name)
    }

    fn number_tree(&self) -> u64 {
        self.0.cache.number_tree()
    }

    fn take_cached(&self, bp: &BlockPointer) -> Option<Buf> {
        let block = self.0.cache_id(bp)?;
        // What this txg may write again stays with it.
        self.0.young.get(&block).or_else(|| self.0.cache.take(&block))
    }

    fn read(&self, bp: &BlockPointer, at: Bookmark, class: ReadClass) -> Pending<Result<Buf>> {
        let (inner, bp, is_steadfast) = (self.0.clone(), bp.clone(), is_steadfast());
        boxed(|| async move {
            let Some(block) = inner.cache_id(&bp) else { return read::inline(&bp).map_err(|e| e.at(at)) };
            // Before the cache: that must not take in what is about to be replaced.
            if let Some(young) = inner.young.get(&block) {
                return Ok(young);
            }
            let priority = match class {
                ReadClass::Demand | ReadClass::Passing => vdev::Priority::SyncRead,
                ReadClass::Prefetch | ReadClass::Ahead => vdev::Priority::AsyncRead,
                ReadClass::Scan | ReadClass::Walk | ReadClass::ScanAhead => vdev::Priority::Scrub,
            };
            match class {
                ReadClass::Scan | ReadClass::Passing => {
                    return read::read(&inner, &bp, at, &Care::usual(priority)).await;
                }
                ReadClass::Ahead | ReadClass::ScanAhead => {
                    return read::read_quietly(&inner, &bp, at, priority).await;
                }
                ReadClass::Walk => {
                    let care = Care { blame: inner.is_steady(), ..Care::usual(priority) };
                    return read::read(&inner, &bp, at, &care).await;
                }
                ReadClass::Demand | ReadClass::Prefetch => {}
            }
            let access = if class == ReadClass::Prefetch { Access::Prefetch } else { Access::Demand };
            let kind = cache_kind(&bp);
            let origin = second::origin(&inner, &bp, at.objset, kind);
            let request = || Request { access, origin, ..Request::demand(block, kind) };
            let missed = Missed { block, kind, origin, is_prefetch: access == Access::Prefetch };
            let care = Care::usual(priority);
            let mut again = false;
            loop {
                let begun = inner.suspension.resumed();
                let load = || second::read(&inner, &bp, at, &care, missed);
                match inner.cache.get_or_load(request(), load).await {
                    Err(e) if is_steadfast => inner.outlast(&bp, e, begun, &mut again).await?,
                    done => return done,
                }
            }
        })
    }

    fn read_ahead(&self, blocks: Vec<(BlockPointer, Bookmark)>) {
        ahead::begin(&self.0, blocks);
    }

    fn ahead(&self) -> Arc<ReadAhead> {
        self.0.ahead.clone()
    }

    fn write(&self, data: Buf, old: &BlockPointer, spec: WriteSpec) -> Pending<Result<BlockPointer>> {
        let (inner, old) = (self.0.clone(), old.clone());
        boxed(|| async move {
            let units = (data.len() as u64).div_ceil(WRITE_UNIT).min(WRITE_UNITS as u64) as usize;
            // The log's writes have a bound of their own, and must not queue behind a sync that waits for its devices.
            let _room = match spec.urgent {
                true => None,
                false => Some(inner.writing.acquire(units).await),
            };
            let bp = write::write(&inner, data.clone(), &old, &spec).await.map_err(|e| e.at(spec.at))?;
            if let Some(block) = inner.cache_id(&bp) {
                inner.young.note(block, &bp, &data, &spec);
                if spec.keep {
                    let kind = cache_kind(&bp);
                    let origin = second::origin(&inner, &bp, spec.at.objset, kind);
                    inner.cache.insert(Request { origin, ..Request::demand(block, kind) }, data);
                }
            }
            Ok(bp)
        })
    }

    fn hasten(&self) {
        self.0.devices.hasten();
    }

    fn free(&self, bp: &BlockPointer, txg: Txg) {
        let (Some(plain), Some(space)) = (bp.as_plain(), &self.0.space) else { return };
        if let Some(block) = self.0.cache_id(bp) {
            self.0.cache.evict(&block);
            self.0.second.forget(&block);
        }
        if plain.is_gang() {
            self.0.freed_gangs.lock().unwrap_or_else(PoisonError::into_inner).push((plain.clone(), txg));
            return;
        }
        for dva in plain.copies() {
            if let Err(e) = space.free(dva, txg) {
                self.0.note_problem(e);
            }
        }
    }

    fn set_second_level(&self, objset: ObjsetId, takes: PrimaryCache) {
        self.0.second.set_policy(objset, takes);
    }

    fn charged(&self, bp: &BlockPointer) -> u64 {
        let Some(plain) = bp.as_plain() else { return 0 };
        plain
            .copies()
            .map(|dva| {
                self.0
                    .devices
                    .top(dva.vdev)
                    .map_or(dva.asize.bytes(), |top| dva.asize.0 * top.deflate_ratio())
            })
            .sum()
    }

    fn charge_max(&self, lsize: u64, copies: u8) -> u64 {
        self.0.rules().worst.of_block(lsize, copies)
    }
}
