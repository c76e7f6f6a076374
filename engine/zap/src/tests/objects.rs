//! ZAPs in objects, through transaction groups and reopening.

use super::{Numbers, now};
use crate::{Form, Options, Value, Zap};
use dmu::{Dirty, NewObject, NoBlockAccounting, ObjSet, Object, Policy, SyncCtx, Tx};
use ondisk::{ObjectType, ObjsetType};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{ObjectId, ObjsetId, Txg};
use zio::MemStore;

/// An object set in memory, and the txg that is open.
pub(super) struct Bench {
    pub store: Arc<MemStore>,
    pub set: ObjSet,
    pub txg: Txg,
}

impl Bench {
    pub fn new() -> Bench {
        let store = Arc::new(MemStore::new());
        let set = ObjSet::create(store.clone(), ObjsetId::MOS, ObjsetType::Meta, Policy::mos(), Txg(4));
        Bench { store, set, txg: Txg(4) }
    }

    pub fn tx(&self) -> Tx {
        Tx::syncing(self.txg)
    }

    pub fn sync(&mut self) {
        let ctx = SyncCtx {
            txg: self.txg,
            pass: 1,
            block_accounting: Arc::new(NoBlockAccounting),
            dirty: Dirty::default(),
        };
        now(self.set.sync(&ctx)).unwrap();
        self.txg = self.txg.next();
    }

    fn reopen(&mut self, id: ObjectId) -> Zap<Object> {
        self.set =
            now(ObjSet::open(self.store.clone(), self.set.id(), self.set.root(), Policy::mos())).unwrap();
        Zap::open(now(self.set.object(id)).unwrap())
    }
}

#[test]
fn a_zap_in_an_object_survives_txgs_and_reopening() {
    let mut bench = Bench::new();
    let object = now(bench.set.allocate(&bench.tx(), NewObject::new(ObjectType::ZAP_METADATA, 512))).unwrap();
    let id = object.id();
    let mut zap = Zap::format(object, &bench.tx(), Options::default(), 77).unwrap();
    let mut oracle = BTreeMap::new();
    let mut numbers = Numbers(8);
    for step in 0..12_000u64 {
        // Filled first, then emptied, so that leaves are split, joined, freed and allocated again within one txg.
        let name = format!("{:x} {}", numbers.below(2500), "of a long name that fills leaves".repeat(2));
        if numbers.below(100) < if step < 6000 { 20 } else { 80 } {
            assert_eq!(now(zap.remove(&bench.tx(), &name)).is_ok(), oracle.remove(&name).is_some());
        } else {
            now(zap.update(&bench.tx(), &name, step)).unwrap();
            oracle.insert(name, step);
        }
        if numbers.below(700) == 0 {
            bench.sync();
        }
        if numbers.below(2000) == 0 {
            bench.sync();
            zap = bench.reopen(id);
        }
    }
    assert!(matches!(now(zap.stats()).unwrap().form, Form::Fat { .. }));
    for name in std::mem::take(&mut oracle).into_keys() {
        now(zap.remove(&bench.tx(), &name)).unwrap();
    }
    now(zap.insert(&bench.tx(), "last", Value::text("one"))).unwrap();
    bench.sync();
    let zap = bench.reopen(id);
    let left: Vec<_> = now(zap.entries()).unwrap().iter().map(|e| e.name().into_owned()).collect();
    assert_eq!(left, ["last"]);
    now(zap.destroy(&bench.set, &bench.tx())).unwrap();
    bench.sync();
    assert!(now(bench.set.object(id)).is_err());
}
