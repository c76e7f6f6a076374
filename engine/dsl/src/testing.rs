//! What tests share: a MOS over blocks in memory, a whole pool on one, and an audit of its space.

mod audit;

use dmu::{BlockAccounting, Dirty, NewObject, ObjSet, Policy, SyncCtx, Tx};
use futures_util::FutureExt;
use ondisk::{BlockPointer, Feature, ObjectType, ObjsetType};
use std::sync::{Arc, Mutex};
use units::{ObjectId, ObjsetId, Txg};
use world::Buf;
use zio::{BlockStore, MemStore};

use crate::core::weigh;
use crate::props::{PropName, Types, Value, When, parse_setting};
use crate::space::{Delta, PoolSpace};
use crate::{Dsl, NewDataset, NewPool};

/// Runs what never has to wait: memory answers at once.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never().expect("blocks in memory answer at once")
}

/// Runs a test in a world of its own.
pub fn in_world<F: Future<Output = ()> + Send + 'static>(test: F) {
    sim::run(7, sim::Config::default(), test);
}

/// Gives blocks of the MOS back at once, and adds up what came and went.
#[derive(Debug)]
struct FreeAtOnce(Arc<MemStore>, Txg, Mutex<Delta>);

impl BlockAccounting for FreeAtOnce {
    fn born(&self, bp: &BlockPointer) {
        *self.2.lock().unwrap() += weigh(self.0.as_ref(), bp);
    }
    fn killed(&self, bp: &BlockPointer) {
        *self.2.lock().unwrap() += -weigh(self.0.as_ref(), bp);
        self.0.free(bp, self.1);
    }
}

/// A MOS, and the txg that is being synced.
pub struct Bench {
    pub store: Arc<MemStore>,
    pub mos: ObjSet,
    pub txg: Txg,
    mos_delta: Delta,
}

impl Bench {
    pub fn new() -> Bench {
        let store = Arc::new(MemStore::new());
        let mos = ObjSet::create(store.clone(), ObjsetId::MOS, ObjsetType::Meta, Policy::mos(), Txg::INITIAL);
        Bench { store, mos, txg: Txg::INITIAL, mos_delta: Delta::default() }
    }

    pub fn tx(&self) -> Tx {
        Tx::syncing(self.txg)
    }

    /// Writes the MOS out once; answers whether there was anything to write.
    async fn sync_mos(&mut self, pass: u32) -> bool {
        let block_accounting = Arc::new(FreeAtOnce(self.store.clone(), self.txg, Mutex::default()));
        let ctx = SyncCtx {
            txg: self.txg,
            pass,
            block_accounting: block_accounting.clone(),
            dirty: Dirty::default(),
        };
        let written = self.mos.sync(&ctx).await.unwrap().is_some();
        self.mos_delta += *block_accounting.2.lock().unwrap();
        written
    }

    /// Writes the MOS out, until nothing changes, and goes on to the next txg.
    pub fn sync(&mut self) {
        run(async {
            let mut pass = 1;
            while self.sync_mos(pass).await {
                pass += 1;
            }
        });
        self.txg = self.txg.next();
    }

    /// Forgets everything but what is on the disks.
    pub fn reopen(&mut self) {
        let root = self.mos.root();
        self.mos = run(ObjSet::open(self.store.clone(), ObjsetId::MOS, root, Policy::mos())).unwrap();
    }
}

/// A pool in memory.
pub struct Pool {
    pub bench: Bench,
    pub dsl: Dsl,
}

pub const POOL_SIZE: u64 = 1 << 30;

impl Pool {
    pub async fn new(version: u64, features: &[Feature]) -> Pool {
        let bench = Bench::new();
        let space = PoolSpace { size: POOL_SIZE, everything: POOL_SIZE, slop: POOL_SIZE / 32, deferred: 0 };
        let new = NewPool { name: "p", host: "here", version, features, space, props: &[] };
        let tx = bench.tx();
        let (dsl, root) = Dsl::create_initial(bench.mos.clone(), &tx, &new).await.unwrap();
        let mut pool = Pool { bench, dsl };
        fill(root.objset(), &tx, 0, 3).await;
        pool.sync().await;
        pool
    }

    /// A pool with the features that everything here makes use of.
    pub async fn modern() -> Pool {
        use Feature::*;
        let features =
            [EnabledTxg, HoleBirth, Lz4Compress, EmptyBpobj, AsyncDestroy, LargeBlocks, ExtensibleDataset];
        Pool::new(5000, &features).await
    }

    pub fn tx(&self) -> Tx {
        self.bench.tx()
    }

    /// Writes this txg out as the pool does, and goes on to the next.
    pub async fn sync(&mut self) {
        let tx = self.tx();
        self.dsl.process_frees(&tx, 50).await.unwrap();
        for pass in 1..20 {
            self.dsl.sync_datasets(&tx, pass).await.unwrap();
            let delta = std::mem::take(&mut self.bench.mos_delta);
            // From here on a txg charges the MOS for what it only then writes; the rest is next txg's.
            if pass < 3 {
                self.dsl.charge_mos(&tx, delta).await.unwrap();
            } else {
                self.bench.mos_delta = delta;
            }
            if !self.bench.sync_mos(pass).await {
                break;
            }
            assert!(pass < 19, "the sync does not come to rest");
        }
        self.dsl.close_idle().await;
        self.bench.txg = self.bench.txg.next();
    }

    /// Lets txgs pass until nothing waits to be freed.
    pub async fn drain(&mut self) {
        for _ in 0..1000 {
            self.sync().await;
            if !self.dsl.has_frees().await.unwrap() {
                return;
            }
        }
        panic!("there is always something to free");
    }

    /// Forgets everything but what is on the disks.
    pub async fn reopen(&mut self) {
        self.bench.reopen();
        let space = self.dsl.pool_space();
        self.dsl = Dsl::open(self.bench.mos.clone(), self.dsl.core().version(), "p", "here").await.unwrap();
        self.dsl.set_pool_space(space);
    }

    pub async fn create(&mut self, name: &str, kind: ObjsetType, props: &[(&str, &str)]) {
        let types = if kind == ObjsetType::Zvol { Types::VOLUME } else { Types::FILESYSTEM };
        let props: Vec<_> = props.iter().map(|(name, text)| setting(name, text, types)).collect();
        let tx = self.tx();
        let new = NewDataset { name, kind, props: &props };
        let dataset = self.dsl.create(&tx, &new).await.unwrap();
        fill(dataset.objset(), &tx, 0, 1).await;
    }

    pub async fn set(&mut self, name: &str, prop: &str, text: &str) -> units::Result<()> {
        let types = self.dsl.types_of(&self.dsl.find(name).await?).await?;
        let (prop, value) = parse_setting(prop, text, types, When::Later, &Default::default())?;
        self.dsl.set(&self.tx(), name, &prop, &value).await
    }

    /// Writes `count` blocks from `first` on, with new content.
    pub async fn write(&mut self, name: &str, first: u64, count: u64) {
        let dataset = self.dsl.open_by_name(name).await.unwrap();
        fill(dataset.objset(), &self.tx(), first, count).await;
    }

    pub async fn destroy(&mut self, name: &str, recursive: bool) -> units::Result<()> {
        let plan = self.dsl.plan_destroy(name, recursive).await?;
        self.dsl.destroy(&self.tx(), &plan).await
    }

    /// Compares the accounts with a walk over every block.
    pub async fn audit(&self) {
        audit::audit(self).await;
    }
}

pub fn setting(name: &str, text: &str, types: Types) -> (PropName, Value) {
    parse_setting(name, text, types, When::Create, &Default::default()).unwrap()
}

/// Object 1 of a set is plain data in blocks of 4 KiB.
async fn fill(set: &ObjSet, tx: &Tx, first: u64, count: u64) {
    let object = match set.object(ObjectId(1)).await {
        Ok(object) => object,
        Err(_) => set
            .claim(tx, ObjectId(1), &NewObject::new(ObjectType::ZVOL, 4096).with_indirect_shift(10))
            .unwrap(),
    };
    for blkid in first..first + count {
        let byte = (world::random_u64() % 255) as u8 + 1;
        object.write_block(tx, blkid, Buf::copy_from(&[byte; 4096])).unwrap();
    }
}
