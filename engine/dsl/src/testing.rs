//! What tests share: a MOS over blocks in memory, and running what never has to wait.

use dmu::{Ledger, ObjSet, Policy, SyncCtx, Tx};
use futures_util::FutureExt;
use ondisk::{BlockPointer, ObjsetType};
use std::sync::Arc;
use units::{ObjsetId, Txg};
use zio::{BlockStore, MemStore};

/// Runs what never has to wait: memory answers at once.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never().expect("blocks in memory answer at once")
}

/// Gives blocks back at once: the owner of a set that no snapshot shares blocks with.
#[derive(Debug)]
struct FreeAtOnce(Arc<MemStore>, Txg);

impl Ledger for FreeAtOnce {
    fn born(&self, _: &BlockPointer) {}
    fn killed(&self, bp: &BlockPointer) {
        self.0.free(bp, self.1);
    }
}

/// A MOS, and the txg that is being synced.
pub struct Bench {
    pub store: Arc<MemStore>,
    pub mos: ObjSet,
    pub txg: Txg,
}

impl Bench {
    pub fn new() -> Bench {
        let store = Arc::new(MemStore::new());
        let mos = ObjSet::create(store.clone(), ObjsetId::MOS, ObjsetType::Meta, Policy::mos(), Txg::INITIAL);
        Bench { store, mos, txg: Txg::INITIAL }
    }

    pub fn tx(&self) -> Tx {
        Tx::syncing(self.txg)
    }

    /// Writes the MOS out, until nothing changes, and goes on to the next txg.
    pub fn sync(&mut self) {
        for pass in 1.. {
            let ledger = Arc::new(FreeAtOnce(self.store.clone(), self.txg));
            if run(self.mos.sync(&SyncCtx { txg: self.txg, pass, ledger })).unwrap().is_none() {
                break;
            }
        }
        self.txg = self.txg.next();
    }

    /// Forgets everything but what is on the disks.
    pub fn reopen(&mut self) {
        let root = self.mos.root();
        self.mos = run(ObjSet::open(self.store.clone(), ObjsetId::MOS, root, Policy::mos())).unwrap();
    }
}
