//! The cache devices of one pool, and what is asked of them.

use crate::device::Device;
use crate::index::{Index, Place};
use crate::larder::Larder;
use crate::stats::{Counters, Stats};
use arc::{BlockId, Cache, Candidate, Kind, Opening, PrimaryCache};
use codec::checksum::Checksummer;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;
use tunables::{Tunable, Tunables};
use units::{Error, Guid, HashMap, ObjsetId, Txg};
use vdev::{Leaf, Priority, Tree};
use world::sync::Event;
use world::{Buf, OpenMode};

/// Headers are charged in steps of this, so that the cache is not told of each.
const CHARGE_STEP: u64 = 256 << 10;

/// What is known once the pool is.
#[derive(Debug)]
pub(crate) struct Setup {
    pub tunables: Arc<Tunables>,
    pub pool: Guid,
}

/// A cache device as the pool knows it.
#[derive(Clone, Debug)]
pub struct CacheDevice {
    pub guid: Guid,
    pub ashift: u32,
    pub leaf: Arc<Leaf>,
}

/// See the crate.
#[derive(Debug)]
pub struct L2arc {
    pub(crate) opening: Opening,
    pub(crate) cache: Arc<Cache>,
    pub(crate) tree: Arc<Tree>,
    pub(crate) setup: OnceLock<Setup>,
    devices: RwLock<Vec<Arc<Device>>>,
    next_id: AtomicU64,
    /// There are devices: without any nothing is asked, and nothing is kept for them.
    is_active: AtomicBool,
    index: Mutex<Index>,
    charged: Mutex<u64>,
    checksummer: Mutex<Arc<Checksummer>>,
    /// Object sets whose `secondarycache` is not `all`.
    policies: RwLock<HashMap<ObjsetId, PrimaryCache>>,
    synced: AtomicU64,
    pub(crate) larder: Larder,
    pub(crate) counters: Counters,
    /// Ends the feeding task.
    pub(crate) stop: Arc<Event>,
    pub(crate) wake: world::sync::Notify,
}

impl L2arc {
    /// Of the pool on `tree` whose blocks are those of `opening` in the cache.
    pub fn new(tree: Arc<Tree>, cache: Arc<Cache>, opening: Opening) -> L2arc {
        L2arc {
            opening,
            cache,
            tree,
            setup: OnceLock::new(),
            devices: RwLock::default(),
            next_id: AtomicU64::new(0),
            is_active: AtomicBool::new(false),
            index: Mutex::default(),
            charged: Mutex::new(0),
            checksummer: Mutex::new(Arc::new(Checksummer::unsalted())),
            policies: RwLock::default(),
            synced: AtomicU64::new(0),
            larder: Larder::default(),
            counters: Counters::default(),
            stop: Arc::default(),
            wake: world::sync::Notify::new(),
        }
    }

    /// Has the cache devices be these. What was on others is forgotten; those that are new are taken into use by the
    /// feeding task.
    pub fn set_devices(&self, wanted: Vec<CacheDevice>, mode: OpenMode) {
        let mut devices = self.devices.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *devices);
        let is_same = |device: &Device, new: &CacheDevice| {
            device.guid == new.guid && Arc::ptr_eq(&device.leaf, &new.leaf)
        };
        for device in before.iter().filter(|device| !wanted.iter().any(|new| is_same(device, new))) {
            let mut index = self.index();
            device.is_gone.store(true, Ordering::Relaxed);
            index.drop_device(device.id);
        }
        *devices = wanted
            .into_iter()
            .map(|new| match before.iter().find(|device| is_same(device, &new)) {
                Some(device) => device.clone(),
                None => {
                    let id = self.next_id.fetch_add(1, Ordering::Relaxed) as u16;
                    Arc::new(Device::new(id, new.guid, new.ashift.clamp(9, 16), new.leaf, mode))
                }
            })
            .collect();
        self.is_active.store(!devices.is_empty(), Ordering::Relaxed);
        if before.is_empty() != devices.is_empty() {
            self.cache.set_feeder(self.opening, !devices.is_empty());
        }
        if devices.is_empty() {
            self.larder.clear();
        }
        drop(devices);
        self.recharge();
        self.wake.notify_one();
    }

    /// A hit that takes longer is read from the pool. A flash device that works answers a thousand times sooner.
    fn read_limit(&self) -> Duration {
        Duration::from_millis(self.setup.get().map_or(500, |setup| setup.tunables.get(Tunable::L2ReadLimit)))
    }

    /// Whether blocks are worth a thought of this level.
    pub fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    pub fn set_checksummer(&self, checksummer: Arc<Checksummer>) {
        *self.checksummer.lock().unwrap_or_else(PoisonError::into_inner) = checksummer;
    }

    pub(crate) fn checksummer(&self) -> Arc<Checksummer> {
        self.checksummer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Blocks of this txg and older ones will not be written again in their places.
    pub fn set_synced(&self, txg: Txg) {
        self.synced.fetch_max(txg.0, Ordering::Relaxed);
    }

    pub(crate) fn synced(&self) -> Txg {
        Txg(self.synced.load(Ordering::Relaxed))
    }

    /// The property `secondarycache` of an object set. It holds for blocks that come into memory from now on.
    pub fn set_policy(&self, objset: ObjsetId, takes: PrimaryCache) {
        let mut policies = self.policies.write().unwrap_or_else(PoisonError::into_inner);
        match takes {
            PrimaryCache::All => policies.remove(&objset),
            other => policies.insert(objset, other),
        };
    }

    /// Whether blocks of this kind of an object set may come here.
    pub fn takes(&self, objset: ObjsetId, kind: Kind) -> bool {
        let policies = self.policies.read().unwrap_or_else(PoisonError::into_inner);
        policies.get(&objset).is_none_or(|takes| takes.keeps(kind))
    }

    /// Whether the bytes on disk of blocks that are read from the pool are wanted: those of this pool cannot be made again
    /// from what is in memory, because another implementation has compressed them.
    pub fn wants_raw(&self) -> bool {
        self.is_active() && self.counters.foreign.load(Ordering::Relaxed) > 0
    }

    /// Bytes of a block as they are on disk, which were just read. They are kept until they are fed or others push them out.
    pub fn offer_raw(&self, candidate: Candidate, raw: Buf) {
        self.larder.offer(candidate, raw);
    }

    /// The bytes on disk of a block, if they are on a cache device and `verify` says that they are these. Never an error,
    /// and never waits long: whatever is wrong, the pool is read instead.
    pub async fn read(
        &self,
        block: &BlockId,
        psize: u64,
        verify: &(dyn Fn(&[u8]) -> bool + Sync),
    ) -> Option<Buf> {
        if !self.is_active() {
            return None;
        }
        let Some(place) = self.index().get(block) else {
            self.counters.count(&self.counters.misses);
            return None;
        };
        let device = self.devices().into_iter().find(|device| device.id == place.device)?;
        if !self.may_ask(&device) {
            self.counters.count(&self.counters.passed_by);
            return None;
        }
        // In whole sectors, as the device wants it.
        let len = psize.next_multiple_of(1 << device.ashift) as usize;
        let reading = device.leaf.read_raw(place.daddr, len, Priority::SyncRead);
        let Ok(bytes) = device.ask(self.read_limit(), reading).await else {
            self.counters.count(&self.counters.read_errors);
            return None;
        };
        let bytes = bytes.slice(0..psize as usize);
        if place.psize() != psize || !verify(&bytes) {
            self.disbelieve(block, place);
            return None;
        }
        self.counters.count(&self.counters.hits);
        self.counters.read_bytes.fetch_add(psize, Ordering::Relaxed);
        device.reads.fetch_add(1, Ordering::Relaxed);
        device.read_bytes.fetch_add(psize, Ordering::Relaxed);
        Some(bytes)
    }

    fn may_ask(&self, device: &Device) -> bool {
        let no_rw = self.setup.get().is_some_and(|setup| setup.tunables.is_on(Tunable::L2NoRw));
        device.is_sound() && !(no_rw && device.is_writing.load(Ordering::Relaxed))
    }

    /// What was read is not the block: unless it was written over meanwhile, the device has it no more.
    fn disbelieve(&self, block: &BlockId, place: Place) {
        let mut index = self.index();
        if index.get(block) == Some(place) {
            index.forget(block);
            self.counters.count(&self.counters.bad_checksums);
        }
    }

    /// A block was freed.
    pub fn forget(&self, block: &BlockId) {
        if self.is_active() {
            self.index().forget(block);
        }
    }

    /// Whether a block is on a cache device.
    pub fn holds(&self, block: &BlockId) -> bool {
        self.index().get(block).is_some()
    }

    pub fn stats(&self) -> Stats {
        let index = self.index();
        Stats {
            counted: self.counters.read(),
            data: index.held(Kind::Data),
            metadata: index.held(Kind::Metadata),
            header_bytes: index.bytes(),
        }
    }

    /// Of the device `guid`: the bytes from which blocks were written, as far as the hand came, and all it has for them.
    pub fn filled(&self, guid: Guid) -> Option<(u64, u64)> {
        let device = self.devices().into_iter().find(|device| device.guid == guid)?;
        let journal = device.journal();
        let ring = journal.as_ref()?.ring;
        let whole = ring.end - ring.start;
        Some((if ring.is_first_sweep { ring.hand - ring.start } else { whole }, whole))
    }

    /// Bytes of blocks that were read from the device `guid` rather than from the pool; `None` when it is not in use.
    pub fn served(&self, guid: Guid) -> Option<u64> {
        let device = self.devices().into_iter().find(|device| device.guid == guid)?;
        Some(device.read_bytes.load(Ordering::Relaxed))
    }

    pub(crate) fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn devices(&self) -> Vec<Arc<Device>> {
        self.devices.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether so many more blocks may be remembered.
    pub(crate) fn has_room(&self, count: usize) -> bool {
        let percent = self.setup.get().map_or(0, |setup| setup.tunables.get(Tunable::L2MetaPercent));
        let limit = self.cache.stats().max / 100 * percent;
        self.index().has_room(count, limit)
    }

    /// Charges the cache in memory with what is remembered here. Called without the lock of the index.
    pub(crate) fn recharge(&self) {
        let mut charged = self.charged.lock().unwrap_or_else(PoisonError::into_inner);
        let now = (self.index().bytes() + self.larder.bytes()).next_multiple_of(CHARGE_STEP);
        if now != *charged {
            self.cache.charge_beside(*charged, now);
            *charged = now;
        }
    }

    /// Tells what is known once the pool is. Before, devices are not used.
    ///
    /// # Errors
    /// It was told before.
    pub(crate) fn set_up(&self, setup: Setup) -> Result<(), Error> {
        self.setup.set(setup).map_err(|_| Error::invalid("cache devices are fed already"))
    }
}

impl Drop for L2arc {
    fn drop(&mut self) {
        self.stop.set();
        self.wake.notify_all();
        if self.is_active() {
            self.cache.set_feeder(self.opening, false);
        }
        let charged = *self.charged.get_mut().unwrap_or_else(PoisonError::into_inner);
        if charged > 0 {
            self.cache.charge_beside(charged, 0);
        }
    }
}
