//! Directories, datasets and lists whose checksums are right and whose contents cannot be: each is an error that says so.

use super::VOL;
use crate::bpobj::Bpobj;
use crate::deadlist::Deadlist;
use crate::testing::{Pool, in_world};
use crate::{DestroySpec, NewClone};
use dmu::Object;
use ondisk::{BpobjPhys, BpobjSize, ObjsetType, Plain};
use std::future::Future;
use units::{Kind, Result, Txg};

async fn modern() -> Pool {
    let mut pool = Pool::modern().await;
    pool.create("p/a", ObjsetType::Zfs, &[]).await;
    pool.create("p/a/b", VOL, &[]).await;
    pool.sync().await;
    pool
}

/// What it says; it may be nothing but an error of damage.
async fn damage<T: std::fmt::Debug>(work: impl Future<Output = Result<T>>) -> String {
    let e = work.await.expect_err("damage was believed");
    assert_eq!(e.kind(), Kind::Corrupt, "{e}");
    e.to_string()
}

/// A head dataset that says it has children passed for a snapshot, was opened and changed as a head all the same, and the
/// sync met the promise that a snapshot is never dirty: it panicked.
#[test]
fn a_head_dataset_that_is_a_snapshot_is_refused() {
    in_world(async {
        let pool = modern().await;
        let found = pool.dsl.find("p/a").await.unwrap();
        pool.dsl.core().update_dataset(&pool.tx(), found.id, |phys| phys.num_children = 1).await.unwrap();
        let said = damage(pool.dsl.find("p/a")).await;
        assert!(said.contains("is a snapshot") && said.contains("'p/a'"), "{said}");
    });
}

/// The count of a snapshot's clones was added to whatever it was, and at its end that was a panic in the sync: here each
/// word of each structure is at its end once, and all that makes or unmakes something beside it is done.
#[test]
fn no_word_of_a_dataset_or_a_directory_at_its_end_is_a_panic() {
    in_world(async {
        for (name, is_directory) in
            [("p/a", false), ("p/a@1", false), ("p", false), ("p/a", true), ("p", true)]
        {
            for word in 0.. {
                let mut pool = modern().await;
                pool.dsl.snapshot_all(&pool.tx(), &["p/a@1".into()], &[]).await.unwrap();
                pool.sync().await;
                let found = pool.dsl.find(name).await.unwrap();
                let id = if is_directory { found.dir_id } else { found.id };
                let object = pool.dsl.core().mos().object(id).await.unwrap();
                let mut bonus = object.bonus().to_vec();
                let Some(bytes) = bonus.get_mut(word * 8..word * 8 + 8) else { break };
                bytes.fill(0xff);
                object.set_bonus(&pool.tx(), bonus).unwrap();
                // Each may fail.
                let tx = &pool.tx();
                let new = NewClone { origin: "p/a@1", name: "p/clone", props: &[] };
                _ = pool.dsl.clone_snapshot(tx, &new).await;
                _ = pool.dsl.promote(tx, "p/clone").await;
                _ = pool.dsl.snapshot_all(tx, &["p/a@2".into(), "p/clone@2".into()], &[]).await;
                _ = pool.dsl.rollback(tx, "p/a", "p/a@2").await;
                let spec = DestroySpec {
                    names: vec!["p/a".into()],
                    recursive: true,
                    clones: true,
                    ..DestroySpec::default()
                };
                if let Ok(plan) = pool.dsl.plan_destroy_of(&spec).await {
                    _ = pool.dsl.destroy(tx, &plan).await;
                }
            }
        }
    });
}

/// A directory that is its own descendant made the list of datasets grow until memory was used up.
#[test]
fn a_directory_below_itself_is_told_and_ends_the_list() {
    in_world(async {
        let pool = modern().await;
        let (a, b) = (pool.dsl.find("p/a").await.unwrap(), pool.dsl.find("p/a/b").await.unwrap());
        let children = pool.dsl.core().table(b.dir.children).await.unwrap();
        children.insert(&pool.tx(), "again", a.dir_id.0).await.unwrap();
        let said = damage(pool.dsl.descendants("p")).await;
        assert!(said.contains("two places in the tree"), "{said}");
    });
}

/// A snapshot's txg after that of the next made a range that ends before it begins, and looking it up panicked.
#[test]
fn a_range_of_a_deadlist_that_goes_back_in_time_is_damage() {
    in_world(async {
        let mut pool = modern().await;
        let snapshots = ["p/a@1".to_string()];
        pool.dsl.snapshot_all(&pool.tx(), &snapshots, &[]).await.unwrap();
        pool.sync().await;
        let core = pool.dsl.core();
        let head = pool.dsl.find("p/a").await.unwrap();
        let deadlist = Deadlist::open(core, head.phys.deadlist).await.unwrap();
        assert!(deadlist.space_range(core, Txg(7), Txg(7)).await.is_ok());
        let said = damage(deadlist.space_range(core, Txg(9), Txg(7))).await;
        assert!(said.contains("a range from txg 9 back to 7"), "{said}");
    });
}

async fn list(pool: &Pool) -> (Bpobj, Object) {
    let list = Bpobj::create(pool.dsl.core(), &pool.tx(), 4096).await.unwrap();
    let object = pool.dsl.core().mos().object(list.id()).await.unwrap();
    (list, object)
}

fn header(object: &Object, pool: &Pool, change: impl FnOnce(&mut BpobjPhys)) {
    let mut header = BpobjPhys::from_bonus(&object.bonus()).unwrap();
    assert!(header.size >= BpobjSize::SubLists);
    change(&mut header);
    object.set_bonus(&pool.tx(), header.to_bonus()).unwrap();
}

/// A list of 2^40 pointers was walked pointer by pointer, and those that were not there counted as holes: for hours.
#[test]
fn a_list_claims_no_more_pointers_than_its_object_holds() {
    in_world(async {
        let pool = modern().await;
        let (list, object) = list(&pool).await;
        header(&object, &pool, |header| header.pointers = 1 << 40);
        let said = damage(list.all(pool.dsl.core())).await;
        assert!(said.contains("pointers where"), "{said}");
        header(&object, &pool, |header| header.pointers = 3);
        let said = damage(list.all(pool.dsl.core())).await;
        assert!(said.contains("entry 0") && said.contains("hole"), "{said}");
    });
}

#[test]
fn a_list_below_itself_ends_every_walk() {
    in_world(async {
        let pool = modern().await;
        let core = pool.dsl.core();
        let ((outer, outer_object), (inner, _)) = (list(&pool).await, list(&pool).await);
        let head = pool.dsl.find("p/a").await.unwrap();
        assert!(head.phys.bp.as_plain().is_some_and(|plain: &Plain| plain.birth > Txg(0)));
        inner.enqueue(core, &pool.tx(), std::slice::from_ref(&head.phys.bp)).await.unwrap();
        outer.enqueue_list(core, &pool.tx(), inner.id()).await.unwrap();
        assert_eq!(outer.all(core).await.unwrap().len(), 1);
        // The list of lists now names the outer list itself.
        let lists = BpobjPhys::from_bonus(&outer_object.bonus()).unwrap().sub_lists;
        let lists = core.mos().object(lists).await.unwrap();
        lists.write(&pool.tx(), 0, &outer.id().0.to_ne_bytes()).await.unwrap();
        assert!(damage(outer.all(core)).await.contains("below itself"));
        assert!(damage(outer.take(core, &pool.tx(), 10)).await.contains("below itself"));
        assert!(damage(Bpobj::destroy(core, &pool.tx(), outer.id())).await.contains("below itself"));
    });
}

/// Sums beyond 2^63 panicked where they were subtracted.
#[test]
fn sums_that_no_pool_can_have_are_computed_with() {
    in_world(async {
        let mut pool = modern().await;
        let found = pool.dsl.find("p/a/b").await.unwrap();
        let tx = pool.tx();
        let dirs = [found.dir_id, pool.dsl.find("p/a").await.unwrap().dir_id];
        for dir in dirs {
            let core = pool.dsl.core();
            core.update_dir(&tx, dir, |phys| (phys.space.used, phys.space.reserved) = (u64::MAX, 1 << 63))
                .await
                .unwrap();
        }
        let forged =
            |phys: &mut crate::phys::DatasetPhys| (phys.unique, phys.referenced) = (u64::MAX, u64::MAX);
        pool.dsl.core().update_dataset(&tx, found.id, forged).await.unwrap();
        pool.write("p/a/b", 0, 4).await;
        pool.sync().await;
        pool.destroy("p/a/b", true).await.unwrap();
        pool.sync().await;
        assert_eq!(pool.dsl.find("p/a/b").await.unwrap_err().kind(), Kind::NotFound);
    });
}
