//! Whole pools in memory: each test changes one, and then compares every account with every block.

mod branches;
mod forged;

use crate::testing::{Pool, in_world};
use ondisk::{Feature, ObjsetType};
use units::Kind;

const FS: ObjsetType = ObjsetType::Zfs;
const VOL: ObjsetType = ObjsetType::Zvol;

#[test]
fn a_new_pool_opens_again_with_its_special_directories() {
    in_world(async {
        for version in [5000, 28] {
            let mut pool =
                Pool::new(version, if version == 5000 { &[Feature::Lz4Compress] } else { &[] }).await;
            pool.audit().await;
            pool.reopen().await;
            assert_eq!(pool.dsl.descendants("p").await.unwrap(), ["p"]);
            let root = pool.dsl.find("p").await.unwrap();
            let (_, origin) = pool.dsl.core().dataset(root.phys.prev_snap).await.unwrap();
            assert_eq!((origin.creation_txg.0, origin.num_children), (1, 2));
            assert_eq!(pool.dsl.objset_type(&root).await.unwrap(), FS);
            assert_eq!(root.phys.creation_txg.0, 1);
            let feature = pool.dsl.features().count("org.illumos:lz4_compress");
            assert_eq!(feature, (version == 5000).then_some(1));
        }
    });
}

#[test]
fn datasets_are_made_found_listed_and_charged() {
    in_world(async {
        let mut pool = Pool::modern().await;
        pool.create("p/a", FS, &[("compression", "lz4")]).await;
        pool.create("p/a/v", VOL, &[("refreservation", "1M"), ("org.x:note", "hello")]).await;
        pool.create("p/b", FS, &[]).await;
        pool.sync().await;
        pool.write("p/a/v", 0, 20).await;
        pool.sync().await;
        pool.audit().await;
        pool.reopen().await;
        pool.audit().await;
        assert_eq!(pool.dsl.descendants("p").await.unwrap(), ["p", "p/a", "p/a/v", "p/b"]);
        assert_eq!(pool.dsl.children("p").await.unwrap(), ["p/a", "p/b"]);
        let found = pool.dsl.find("p/a/v").await.unwrap();
        assert_eq!(pool.dsl.objset_type(&found).await.unwrap(), VOL);
        assert_eq!(pool.dsl.dataset_name(found.id).await.unwrap(), "p/a/v");
        for (missing, kind) in [("p/x", Kind::NotFound), ("q", Kind::NotFound), ("p/a@s", Kind::NotFound)] {
            assert_eq!(pool.dsl.find(missing).await.unwrap_err().kind(), kind, "{missing}");
        }
        let levels = pool.dsl.levels_of(&found).await.unwrap();
        let names = levels.chain().user_properties();
        assert_eq!(names.len(), 1);
    });
}

#[test]
fn what_cannot_be_made_is_refused_before_anything_changes() {
    in_world(async {
        let mut pool = Pool::modern().await;
        pool.create("p/v", VOL, &[]).await;
        pool.sync().await;
        let kind = async |pool: &Pool, name: &str| {
            let new = crate::NewDataset { name, kind: FS, props: &[] };
            pool.dsl.check_create(&new).await.unwrap_err().kind()
        };
        assert_eq!(kind(&pool, "p/v").await, Kind::Exists);
        assert_eq!(kind(&pool, "p/v/a").await, Kind::Invalid, "volumes have no children");
        assert_eq!(kind(&pool, "p/x/y").await, Kind::NotFound);
        assert_eq!(kind(&pool, "p/a@b").await, Kind::Invalid);
        assert_eq!(kind(&pool, "p").await, Kind::Exists);
        assert_eq!(pool.set("p", "checksum", "blake3").await.unwrap_err().kind(), Kind::Invalid);
        assert_eq!(pool.set("p", "dedup", "on").await.unwrap_err().kind(), Kind::Unsupported);
        pool.audit().await;
    });
}

#[test]
fn reservations_and_quotas_are_charged_and_enforced() {
    in_world(async {
        let mut pool = Pool::modern().await;
        pool.create("p/a", FS, &[("reservation", "8M")]).await;
        pool.create("p/a/b", FS, &[("refreservation", "2M")]).await;
        pool.sync().await;
        pool.audit().await;
        let a = pool.dsl.find("p/a").await.unwrap();
        assert_eq!(a.dir.space.reserved, 8 << 20);
        assert_eq!(pool.set("p/a", "quota", "1M").await.unwrap_err().kind(), Kind::NoSpace);
        pool.set("p/a", "quota", "16M").await.unwrap();
        assert_eq!(pool.set("p/a/b", "reservation", "20M").await.unwrap_err().kind(), Kind::NoSpace);
        pool.set("p/a", "reservation", "none").await.unwrap();
        pool.set("p/a/b", "refreservation", "4M").await.unwrap();
        pool.sync().await;
        pool.audit().await;
        let b = pool.dsl.find("p/a/b").await.unwrap();
        let available = pool.dsl.available(b.dir_id, &b.phys).await.unwrap();
        assert!(available > 14 << 20 && available < 16 << 20, "{available}");
        pool.write("p/a/b", 0, 600).await;
        pool.sync().await;
        pool.audit().await;
    });
}

#[test]
fn a_destroyed_dataset_leaves_nothing_behind() {
    in_world(async {
        for features in [vec![Feature::AsyncDestroy], vec![]] {
            let mut pool = Pool::new(5000, &features).await;
            pool.create("p/a", FS, &[("reservation", "1M")]).await;
            pool.create("p/a/v", VOL, &[("refreservation", "4M")]).await;
            pool.sync().await;
            pool.write("p/a/v", 0, 300).await;
            pool.sync().await;
            assert_eq!(pool.destroy("p/a", false).await.unwrap_err().kind(), Kind::Busy);
            pool.destroy("p/a", true).await.unwrap();
            pool.sync().await;
            assert_eq!(pool.dsl.has_frees().await.unwrap(), !features.is_empty());
            // Some blocks a txg, and a restart in the middle.
            pool.sync().await;
            pool.reopen().await;
            pool.drain().await;
            pool.audit().await;
            assert_eq!(pool.dsl.descendants("p").await.unwrap(), ["p"]);
            let root = pool.dsl.find("p").await.unwrap();
            assert_eq!(root.dir.space.breakdown.unwrap()[3], 0);
            assert_eq!(pool.dsl.features().count("com.delphix:async_destroy").unwrap_or(0), 0);
            assert!(pool.destroy("p", true).await.is_err(), "the pool's own file system stays");
        }
    });
}

#[test]
fn snapshots_hold_what_is_overwritten_and_let_go_of_it() {
    in_world(async {
        for version in [5000, 28] {
            let mut pool = if version == 5000 { Pool::modern().await } else { Pool::new(version, &[]).await };
            pool.create("p/v", VOL, &[("refreservation", "2M")]).await;
            pool.sync().await;
            for (i, name) in ["p/v@a", "p/v@b", "p/v@c", "p/v@d"].into_iter().enumerate() {
                pool.write("p/v", 7 * i as u64, 40).await;
                pool.sync().await;
                pool.audit().await;
                pool.dsl.snapshot(&pool.tx(), name).await.unwrap();
                pool.sync().await;
                pool.audit().await;
            }
            pool.write("p/v", 0, 90).await;
            pool.sync().await;
            pool.audit().await;
            assert_eq!(pool.destroy("p/v", false).await.unwrap_err().kind(), Kind::Busy);
            for name in ["p/v@b", "p/v@d", "p/v@a", "p/v@c"] {
                pool.destroy(name, false).await.unwrap();
                pool.drain().await;
                pool.audit().await;
                pool.reopen().await;
                pool.write("p/v", 3, 5).await;
                pool.sync().await;
                pool.audit().await;
            }
            assert!(pool.dsl.snapshots("p/v").await.unwrap().is_empty());
        }
    });
}

#[test]
fn a_tree_with_snapshots_goes_as_a_whole() {
    in_world(async {
        let mut pool = Pool::modern().await;
        pool.create("p/a", FS, &[]).await;
        pool.create("p/a/v", VOL, &[]).await;
        pool.sync().await;
        for (n, snapshot) in ["p/a/v@1", "p/a@1", "p/a/v@2"].into_iter().enumerate() {
            pool.write("p/a/v", n as u64, 10).await;
            pool.sync().await;
            pool.dsl.snapshot(&pool.tx(), snapshot).await.unwrap();
            pool.sync().await;
        }
        pool.destroy("p/a", true).await.unwrap();
        pool.drain().await;
        pool.audit().await;
        assert_eq!(pool.dsl.descendants("p").await.unwrap(), ["p"]);
    });
}

#[test]
fn a_renamed_dataset_takes_its_children_and_its_space_along() {
    in_world(async {
        let mut pool = Pool::modern().await;
        pool.create("p/a", FS, &[("compression", "off"), ("reservation", "3M")]).await;
        pool.create("p/a/v", VOL, &[("reservation", "1M")]).await;
        pool.create("p/b", FS, &[]).await;
        pool.sync().await;
        pool.write("p/a/v", 0, 12).await;
        pool.sync().await;
        pool.dsl.snapshot(&pool.tx(), "p/a/v@s").await.unwrap();
        pool.dsl.rename(&pool.tx(), "p/a/v@s", "p/a/v@t").await.unwrap();
        pool.dsl.rename(&pool.tx(), "p/a/v", "p/b/w").await.unwrap();
        pool.dsl.rename(&pool.tx(), "p/a", "p/b/a").await.unwrap();
        pool.sync().await;
        pool.audit().await;
        pool.reopen().await;
        assert_eq!(pool.dsl.descendants("p").await.unwrap(), ["p", "p/b", "p/b/a", "p/b/w"]);
        assert_eq!(pool.dsl.snapshots("p/b/w").await.unwrap()[0].0, "p/b/w@t");
        for (from, to, kind) in [
            ("p/b", "p/b/x", Kind::Invalid),
            ("p/b", "p", Kind::Invalid),
            ("p/b/w", "p/b/a", Kind::Exists),
            ("p/b/a", "p/b/w/a", Kind::Invalid),
            ("p/b/a", "p/x/a", Kind::NotFound),
            ("p", "q", Kind::Invalid),
            ("p/b/w@t", "p/b@t", Kind::Invalid),
        ] {
            assert_eq!(pool.dsl.check_rename(from, to).await.unwrap_err().kind(), kind, "{from} {to}");
        }
    });
}

#[test]
fn properties_follow_the_tree_and_leave_a_record() {
    in_world(async {
        use crate::props::{Prop, PropName, Source, Value};
        let mut pool = Pool::modern().await;
        pool.create("p/a", FS, &[]).await;
        pool.create("p/a/v", VOL, &[]).await;
        pool.sync().await;
        pool.set("p/a", "compression", "off").await.unwrap();
        let compression = PropName::Native(Prop::Compression);
        let get =
            async |pool: &Pool, name: &str| pool.dsl.property(name, &compression).await.unwrap().unwrap();
        assert_eq!(get(&pool, "p/a/v").await, (Value::Number(2), Source::Inherited("p/a".into())));
        let open = pool.dsl.open_by_name("p/a/v").await.unwrap();
        assert_eq!(open.objset().policy().compression, units::Compression::Off);
        pool.dsl.inherit(&pool.tx(), "p/a", &compression, false).await.unwrap();
        assert_eq!(get(&pool, "p/a/v").await, (Value::Number(1), Source::Default));
        assert_eq!(open.objset().policy().compression, units::Compression::Lz4);
        pool.sync().await;
        pool.audit().await;
        let records = pool.dsl.history().unwrap().records().await.unwrap();
        let names: Vec<_> = records.iter().map(|r| r.str("internal_name").unwrap()).collect();
        assert_eq!(names, ["create", "create", "set", "inherit"]);
    });
}

#[test]
fn writers_learn_what_room_is_left() {
    in_world(async {
        use txg::Entry;
        let mut pool = Pool::modern().await;
        pool.create("p/a", FS, &[("quota", "8M")]).await;
        pool.create("p/a/v", VOL, &[]).await;
        pool.sync().await;
        let volume = pool.dsl.open_by_name("p/a/v").await.unwrap();
        let publish =
            async |pool: &Pool| pool.dsl.publish_space_reservations(pool.bench.txg.back(1)).await.unwrap();
        publish(&pool).await;
        assert_eq!(volume.space_reservation().enter(pool.bench.txg, 8 << 20), Entry::Go);
        assert_eq!(volume.space_reservation().enter(pool.bench.txg, 4096), Entry::Wait);
        pool.write("p/a/v", 0, 2000).await;
        pool.sync().await;
        publish(&pool).await;
        assert_eq!(
            volume.space_reservation().enter(pool.bench.txg, 4096),
            Entry::Full,
            "the quota of the parent"
        );
        pool.set("p/a", "quota", "none").await.unwrap();
        pool.sync().await;
        publish(&pool).await;
        assert_eq!(volume.space_reservation().enter(pool.bench.txg, 4096), Entry::Go);
    });
}

/// All that were ever made or looked at stayed open until the pool was closed; each txg asked about every one of them what
/// room it had, and each kept its memory.
#[test]
fn a_dataset_stays_open_while_it_is_used_or_dirty_and_no_longer() {
    in_world(async {
        let mut pool = Pool::modern().await;
        pool.create("p/a", FS, &[]).await;
        pool.create("p/v", VOL, &[]).await;
        let is_open = async |pool: &Pool, name: &str| {
            let id = pool.dsl.find(name).await.unwrap().id;
            pool.dsl.close_idle().await;
            pool.dsl.opened().contains_key(&id)
        };
        assert!(is_open(&pool, "p/v").await, "it is not on disk yet");
        pool.sync().await;
        assert!(!is_open(&pool, "p/a").await && !is_open(&pool, "p/v").await);
        let used = pool.dsl.open_by_name("p/v").await.unwrap();
        let (set, space_reservation) = (used.objset().clone(), used.space_reservation().clone());
        let object = set.object(units::ObjectId(1)).await.unwrap();
        assert!(is_open(&pool, "p/v").await);
        drop(used);
        assert!(is_open(&pool, "p/v").await, "its object set is used");
        drop(set);
        drop(space_reservation);
        assert!(is_open(&pool, "p/v").await, "an object of it is used");
        object.write_block(&pool.tx(), 5, world::Buf::zeroed(4096)).unwrap();
        drop(object);
        assert!(is_open(&pool, "p/v").await, "it is dirty");
        pool.sync().await;
        assert!(!is_open(&pool, "p/v").await);
        // What is opened anew goes on where the other ended.
        pool.write("p/v", 1, 40).await;
        pool.sync().await;
        pool.write("p/v", 20, 40).await;
        pool.sync().await;
        pool.audit().await;
        pool.reopen().await;
        pool.audit().await;
    });
}

#[test]
fn who_keeps_something_of_datasets_is_told_what_was_touched() {
    in_world(async {
        let mut pool = Pool::modern().await;
        pool.create("p/a", FS, &[]).await;
        let (seen, all) = pool.dsl.touched_since(None);
        assert_eq!(all, None, "who knows nothing asks about everything");
        pool.create("p/a/v", VOL, &[]).await;
        pool.set("p/a", "org.x:note", "hello").await.unwrap();
        pool.dsl.rename(&pool.tx(), "p/a/v", "p/w").await.unwrap();
        pool.sync().await;
        pool.destroy("p/w", false).await.unwrap();
        let (now, touched) = pool.dsl.touched_since(Some(seen));
        let touched = touched.unwrap().into_iter();
        let named: Vec<_> = touched.map(|t| (t.name, t.property.map(|p| p.as_str().to_string()))).collect();
        let whole = |name: &str| (name.to_string(), None);
        let note = ("p/a".to_string(), Some("org.x:note".to_string()));
        assert_eq!(named, [whole("p/a/v"), note, whole("p/a/v"), whole("p/w"), whole("p/w")]);
        assert_eq!(pool.dsl.touched_since(Some(now)), (now, Some(Vec::new())));
        for _ in 0..2000 {
            pool.dsl.touch("p", None);
        }
        assert_eq!(pool.dsl.touched_since(Some(now)), (now + 2000, None), "the log does not go back as far");
        assert_eq!(pool.dsl.touched_since(Some(now + 1999)).1.unwrap().len(), 1);
    });
}
