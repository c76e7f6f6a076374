//! One object, its log, a pool that syncs, and devices of which a crash keeps only what was flushed.

use super::super::{Log, Parts};
use crate::chain::{Chain, End, Source};
use dmu::{Dirty, NewObject, NoBlockAccounting, ObjSet, Object, Policy, SyncCtx, SyncMode, Tx};
use ondisk::{BlockPointer, Dva, LogRecord, ObjectType, ObjsetType, Plain, Record, ZilHeader};
use sim::Rng;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tunables::Tunables;
use txg::Txgs;
use units::{
    Checksum, Compression, Endian, Error, Kind, Lsize, ObjectId, ObjsetId, Psize, Result, Sectors, Txg,
    VdevId,
};
use world::{Buf, Pending};
use zio::{BlockStore, Bookmark, LogStore, MemStore, ReadClass, WriteSpec};

pub const BLOCK: u64 = 4096;
pub const BLOCKS: u64 = 64;
const SIZE: usize = (BLOCK * BLOCKS) as usize;
const WRITE: Duration = Duration::from_micros(100);
const FLUSH: Duration = Duration::from_micros(400);

/// What goes wrong: so many in a hundred.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trouble {
    pub failing_writes: u64,
    pub failing_allocations: u64,
    pub throughput: bool,
    pub slog: bool,
    /// No write takes much longer than the others.
    pub steady: bool,
}

/// A place that was given to the log.
#[derive(Clone, Debug)]
struct Space {
    birth: Txg,
    freed: Option<Txg>,
    content: Option<Buf>,
    is_durable: bool,
}

#[derive(Default)]
struct Devices {
    log: BTreeMap<u64, Space>,
    next: u64,
}

/// Data blocks are kept for ever: the log may name what was freed in a txg that never came to be.
struct Store {
    mem: MemStore,
    devices: Mutex<Devices>,
    trouble: Trouble,
    /// That the log has asked for.
    flushes: AtomicU64,
    /// Writes of the log that may wait behind others.
    patient: AtomicU64,
}

impl Store {
    fn unlucky(&self, percent: u64) -> bool {
        percent > 0 && world::random_u64() % 100 < percent
    }
}

impl BlockStore for Store {
    fn cached(&self, bp: &BlockPointer) -> Option<Buf> {
        self.mem.cached(bp)
    }

    fn read(&self, bp: &BlockPointer, at: Bookmark, class: ReadClass) -> Pending<Result<Buf>> {
        self.mem.read(bp, at, class)
    }

    fn write(&self, data: Buf, old: &BlockPointer, spec: WriteSpec) -> Pending<Result<BlockPointer>> {
        let written = self.mem.write(data, old, spec);
        Box::pin(async move {
            world::sleep(WRITE).await;
            written.await
        })
    }

    fn free(&self, _: &BlockPointer, _: Txg) {}

    fn charged(&self, bp: &BlockPointer) -> u64 {
        self.mem.charged(bp)
    }

    fn charge_max(&self, lsize: u64, copies: u8) -> u64 {
        self.mem.charge_max(lsize, copies)
    }
}

struct LogDevices(Arc<Store>);

impl LogStore for LogDevices {
    fn allocate_log(&self, size: u64, txg: Txg) -> Pending<Result<Plain>> {
        let store = self.0.clone();
        Box::pin(async move {
            if store.unlucky(store.trouble.failing_allocations) {
                return Err(Error::new(Kind::NoSpace, "allocate"));
            }
            let mut devices = store.devices.lock().unwrap();
            devices.next += size >> 9;
            let offset = devices.next;
            devices.log.insert(offset, Space { birth: txg, freed: None, content: None, is_durable: false });
            let dva = Dva { vdev: VdevId(0), asize: Sectors::of(size), offset: Sectors(offset), gang: false };
            Ok(Plain {
                dvas: [dva, Dva::default(), Dva::default()],
                lsize: Lsize(size),
                psize: Psize(size),
                compression: Compression::Off,
                checksum_kind: Checksum::Zilog2,
                kind: ObjectType::INTENT_LOG,
                level: 0,
                birth: txg,
                physical_birth: Txg::NONE,
                fill: 0,
                checksum: [0; 4],
                endian: Endian::NATIVE,
                dedup: false,
                rewritten: false,
                crypt: None,
            })
        })
    }

    fn write_log(&self, at: &Plain, block: Buf, urgent: bool) -> Pending<Result<()>> {
        self.0.patient.fetch_add(u64::from(!urgent), Ordering::Relaxed);
        let (store, at) = (self.0.clone(), at.clone());
        Box::pin(async move {
            assert!(block.len() as u64 <= at.psize.0, "a block stays within its place");
            // Some take their time.
            let slow = if store.trouble.steady || !world::random_u64().is_multiple_of(8) { 50 } else { 3000 };
            world::sleep(WRITE + Duration::from_micros(world::random_u64() % slow)).await;
            if store.unlucky(store.trouble.failing_writes) {
                return Err(Error::new(Kind::Io, "write"));
            }
            let mut devices = store.devices.lock().unwrap();
            let space = devices.log.get_mut(&at.dvas[0].offset.0).unwrap();
            assert!(space.content.is_none() && space.freed.is_none(), "a log block is written once");
            space.content = Some(block);
            Ok(())
        })
    }

    fn free_log(&self, at: &Plain, txg: Txg) {
        let mut devices = self.0.devices.lock().unwrap();
        let space = devices.log.get_mut(&at.dvas[0].offset.0).unwrap();
        assert!(space.freed.is_none(), "freed twice");
        assert!(txg >= space.birth, "freed before it was allocated");
        space.freed = Some(txg);
    }

    fn flush(&self, _: Vec<VdevId>) -> Pending<Result<()>> {
        self.0.flushes.fetch_add(1, Ordering::Relaxed);
        self.flush_all()
    }

    fn flush_all(&self) -> Pending<Result<()>> {
        let store = self.0.clone();
        Box::pin(async move {
            let all = |store: &Store| -> Vec<u64> {
                let devices = store.devices.lock().unwrap();
                devices.log.iter().filter(|(_, s)| s.content.is_some()).map(|(at, _)| *at).collect()
            };
            let flushed = all(&store);
            world::sleep(FLUSH).await;
            let mut devices = store.devices.lock().unwrap();
            for at in flushed {
                devices.log.get_mut(&at).unwrap().is_durable = true;
            }
            Ok(())
        })
    }

    fn has_log_devices(&self) -> bool {
        self.0.trouble.slog
    }
}

/// What a crash has left of the places of the log.
#[derive(Default)]
struct Left(BTreeMap<u64, Buf>);

impl Source for Left {
    fn read_log(&self, bp: &BlockPointer, _: Bookmark, _: bool) -> Pending<Result<Buf>> {
        let plain = bp.as_plain().unwrap();
        let block = self.0.get(&plain.dvas[0].offset.0).cloned();
        let is_it = |block: &Buf| {
            codec::checksum::sealed::verify(Checksum::Zilog2, block, plain.checksum, false).is_some()
        };
        let read = block.filter(is_it).ok_or_else(|| Error::new(Kind::Checksum, "read a log block"));
        Box::pin(std::future::ready(read))
    }
}

/// What need not wait.
fn now<T>(work: impl Future<Output = T>) -> T {
    futures_util::FutureExt::now_or_never(work).unwrap()
}

/// One change, as the model has it: `None` for zeros.
struct Change {
    txg: Txg,
    at: usize,
    len: usize,
    bytes: Option<Vec<u8>>,
}

#[derive(Default)]
struct Model {
    /// By number, from 1.
    changes: Vec<Change>,
    /// All up to here were acknowledged by a commit.
    acknowledged: usize,
    /// The header in the last txg on disk.
    header: ZilHeader,
    synced: Txg,
}

#[derive(Clone)]
pub struct Rig(Arc<Inner>);

pub struct Inner {
    pub log: Log,
    pub txgs: Txgs,
    pub tunables: Arc<Tunables>,
    set: ObjSet,
    object: Object,
    store: Arc<Store>,
    model: Mutex<Model>,
    /// Changes are made one after another, so that their order is known.
    turn: world::sync::Mutex<()>,
    over: AtomicBool,
    destroy: AtomicBool,
}

impl std::ops::Deref for Rig {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Rig {
    pub fn run<F: Future<Output = ()> + Send + 'static>(
        seed: u64,
        trouble: Trouble,
        test: impl FnOnce(Rig) -> F + Send + 'static,
    ) {
        sim::run(seed, sim::Config::default(), async move {
            let store = Arc::new(Store {
                mem: MemStore::new(),
                devices: Mutex::default(),
                trouble,
                flushes: AtomicU64::new(0),
                patient: AtomicU64::new(0),
            });
            let tunables = Tunables::new();
            let txgs = Txgs::new(Txg(9), &tunables);
            let policy = Policy { logbias_throughput: trouble.throughput, ..Policy::mos() };
            let set = ObjSet::create(store.clone(), ObjsetId(54), ObjsetType::Zvol, policy, Txg(9));
            let tx = Tx::syncing(Txg(9));
            let object = set.allocate(&tx, NewObject::new(ObjectType::ZVOL, BLOCK as u32)).await.unwrap();
            set.sync(&SyncCtx {
                txg: Txg(9),
                pass: 1,
                block_accounting: Arc::new(NoBlockAccounting),
                dirty: Dirty::default(),
            })
            .await
            .unwrap();
            let log = Log::open(Parts {
                objset: set.clone(),
                txgs: txgs.clone(),
                store: Arc::new(LogDevices(store.clone())),
                tunables: tunables.clone(),
                probe: probe::Probe::none(),
            });
            let rig = Rig(Arc::new(Inner {
                log,
                txgs,
                tunables,
                set,
                object,
                store,
                model: Mutex::new(Model { synced: Txg(9), ..Model::default() }),
                turn: world::sync::Mutex::new(()),
                over: AtomicBool::new(false),
                destroy: AtomicBool::new(false),
            }));
            let syncing = world::spawn(rig.clone().sync_loop());
            test(rig.clone()).await;
            rig.txgs.close();
            syncing.await;
        });
    }

    async fn sync_loop(self) {
        while let Some(txg) = self.txgs.next_to_sync().await {
            let tx = Tx::syncing(txg);
            if !self.is_over() {
                world::sleep(Duration::from_micros(world::random_u64() % 2000)).await;
            }
            self.log.sync(&tx).await;
            let ctx = SyncCtx {
                txg,
                pass: 1,
                block_accounting: Arc::new(NoBlockAccounting),
                dirty: Dirty::default(),
            };
            self.set.sync(&ctx).await.unwrap();
            if self.destroy.swap(false, Ordering::Relaxed) {
                self.log.destroy_with_dataset(&tx).await;
            }
            LogDevices(self.store.clone()).flush_all().await.unwrap();
            {
                let mut model = self.model.lock().unwrap();
                model.header = self.set.phys().zil_header;
                model.synced = txg;
            }
            self.log.synced(txg);
            self.txgs.done(txg);
        }
    }

    pub fn latency(&self) -> Duration {
        WRITE + FLUSH + Duration::from_micros(50)
    }

    pub fn flushes(&self) -> u64 {
        self.store.flushes.load(Ordering::Relaxed)
    }

    pub fn patient(&self) -> u64 {
        self.store.patient.load(Ordering::Relaxed)
    }

    pub fn over(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub fn destroy_in_next_sync(&self) {
        self.destroy.store(true, Ordering::Relaxed);
    }

    pub fn set_mode(&self, sync: SyncMode) {
        self.set.set_policy(Policy { sync, ..self.set.policy() });
    }

    pub async fn write(&self, at: u64, bytes: Vec<u8>) {
        let _turn = self.turn.lock().await;
        let tx = self.txgs.begin().await.unwrap();
        let data = Buf::copy_from(&bytes);
        if data.len() as u64 == BLOCK && at.is_multiple_of(BLOCK) {
            self.object.write_block(&tx, at / BLOCK, data.clone()).unwrap();
        } else {
            self.object.write(&tx, at, &data).await.unwrap();
        }
        self.log.write(&tx, &self.object, at, &[data]);
        // A record is one change. Much data is several records, each up to a boundary.
        let is_whole = bytes.len() <= 7680 && !self.store.trouble.throughput;
        let (mut from, end) = (at as usize, at as usize + bytes.len());
        while from < end {
            let to =
                if is_whole { end } else { end.min(from / BLOCK as usize * BLOCK as usize + BLOCK as usize) };
            let part = bytes[from - at as usize..to - at as usize].to_vec();
            let change = Change { txg: tx.txg(), at: from, len: to - from, bytes: Some(part) };
            self.model.lock().unwrap().changes.push(change);
            from = to;
        }
    }

    pub async fn write_to(&self, block: u64) {
        self.write(block * BLOCK, vec![block as u8 + 1; BLOCK as usize]).await;
    }

    pub async fn trim(&self, first: u64, count: u64) {
        let _turn = self.turn.lock().await;
        let tx = self.txgs.begin().await.unwrap();
        self.object.free_blocks(&tx, first..first + count).unwrap();
        self.log.truncate(&tx, self.object.id(), first * BLOCK, count * BLOCK);
        let change = Change {
            txg: tx.txg(),
            at: (first * BLOCK) as usize,
            len: (count * BLOCK) as usize,
            bytes: None,
        };
        self.model.lock().unwrap().changes.push(change);
    }

    pub async fn commit(&self) {
        let made = self.model.lock().unwrap().changes.len();
        self.log.commit().await.unwrap();
        let mut model = self.model.lock().unwrap();
        model.acknowledged = model.acknowledged.max(made);
    }

    /// Closes the log as an export does.
    pub async fn leave(&self) {
        self.log.close().await;
        let tx = self.txgs.begin_unthrottled();
        self.log.destroy(&tx);
        drop(tx);
        self.txgs.sync().await.unwrap();
        assert_eq!(self.set.phys().zil_header, ZilHeader::default());
        assert_eq!(self.log_space(), 0, "blocks of the log are left");
    }

    /// How many places the log has.
    pub fn log_space(&self) -> usize {
        self.store.devices.lock().unwrap().log.values().filter(|s| s.freed.is_none()).count()
    }

    /// What would be found if the power went now.
    pub fn crash(&self, rng: &mut Rng) {
        let model = self.model.lock().unwrap();
        let devices = self.store.devices.lock().unwrap();
        let mut image = vec![0; SIZE];
        let stable = model.changes.iter().take_while(|c| c.txg <= model.synced).count();
        model.changes[..stable].iter().for_each(|c| c.apply(&mut image));
        let chain = self.replay(&model, &devices, &mut image, rng);
        self.check_space(&model, &devices, &chain);
        // The image is that of some moment not before the last commit.
        let mut expected = vec![0; SIZE];
        let first = model.acknowledged.max(stable);
        model.changes[..first].iter().for_each(|c| c.apply(&mut expected));
        let mut rest = model.changes[first..].iter();
        while expected != image {
            let Some(next) = rest.next() else { panic!("what was acknowledged is not all there") };
            next.apply(&mut expected);
        }
    }

    /// Repeats what a reader finds of the chain, and returns its places.
    fn replay(&self, model: &Model, devices: &Devices, image: &mut [u8], rng: &mut Rng) -> Vec<u64> {
        let mut left = Left::default();
        for (offset, space) in &devices.log {
            // What was not flushed may be there or not.
            let content = space.content.as_ref().filter(|_| space.is_durable || rng.below(2) == 0);
            left.0.extend(content.map(|block| (*offset, block.clone())));
        }
        let mut chain = Chain::new(&left, self.set.id(), &model.header);
        let (mut places, mut seq) = (Vec::new(), 0);
        while let Some(link) = now(chain.next()) {
            let offset = link.pointer.as_plain().unwrap().dvas[0].offset.0;
            let space = &devices.log[&offset];
            assert!(space.freed.is_none_or(|freed| freed > model.synced), "the log leads to a freed block");
            places.push(offset);
            for (header, mut bytes) in link.block.iter().flat_map(|block| block.records()) {
                assert!(seq == 0 || header.seq == seq + 1, "records are counted without a gap");
                seq = header.seq;
                if header.txg > model.synced {
                    self.repeat(&LogRecord::decode(&mut bytes).unwrap().record, image);
                }
            }
        }
        assert!(matches!(chain.end(), None | Some(End::NotCarriedOn)), "{chain:?}");
        places
    }

    fn repeat(&self, record: &Record<'_>, image: &mut [u8]) {
        match record {
            Record::Write(write) if write.is_indirect() => {
                let at = Bookmark { objset: ObjsetId(54), object: ObjectId(1), level: 0, blkid: 0 };
                let block = now(self.store.read(&write.pointer, at, ReadClass::Demand)).unwrap();
                let start = (write.offset / BLOCK * BLOCK) as usize;
                image[start..start + BLOCK as usize].copy_from_slice(&block[..BLOCK as usize]);
            }
            Record::Write(write) => {
                image[write.offset as usize..][..write.data.len()].copy_from_slice(write.data);
            }
            Record::Truncate(t) => image[t.offset as usize..][..t.length as usize].fill(0),
            other => panic!("nobody logged {other:?}"),
        }
    }

    /// What the synced txgs have allocated and not freed must be found from the header, or it is lost.
    fn check_space(&self, model: &Model, devices: &Devices, chain: &[u64]) {
        for (offset, space) in &devices.log {
            let in_use = space.birth <= model.synced && space.freed.is_none_or(|freed| freed > model.synced);
            assert!(!in_use || chain.contains(offset), "space {offset} of {:?} is lost", space.birth);
        }
    }
}

impl Change {
    fn apply(&self, image: &mut [u8]) {
        let range = &mut image[self.at..self.at + self.len];
        match &self.bytes {
            Some(bytes) => range.copy_from_slice(bytes),
            None => range.fill(0),
        }
    }
}
