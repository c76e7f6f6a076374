//! Data errors: which blocks are in the log, for how long, and by what name they are listed.

use super::heal::place;
use super::{BLOCK, Rig, noise, verify};
use crate::{DataErrors, Pool};
use dsl::DestroySpec;
use dsl::error_log::{ErrorLog, LoggedError};
use dsl::props::{PropName, Types, Value, When, parse_setting};
use ondisk::mos::directory;
use ondisk::{BlockBookmark, BlockPointer, ObjectType};
use sim::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use units::{ObjectId, ObjsetId, Txg};
use vdev::Layout;
use world::Buf;
use zio::{BlockStore, Bookmark};
use zpl::{FileKind, NewFile};

/// With a log by bookmarks, and with one by head dataset.
const RELEASES: [&str; 2] = ["openzfs-2.1-linux", "openzfs-2.2"];
const FS: &str = "tank/fs";
const SIZE: u64 = 256 << 10;

fn uncached() -> Vec<(PropName, Value)> {
    vec![
        parse_setting("primarycache", "metadata", Types::FILESYSTEM, When::Create, &Default::default())
            .unwrap(),
    ]
}

/// A pool with the file `/dir/f` in a file system of which data is not cached.
async fn with_file(rig: &Rig, release: &str) -> Pool {
    let pool = rig.create_as(release).await;
    pool.create_dataset(FS, crate::Content::FileSystem(Default::default()), uncached()).await.unwrap();
    let fs = pool.open_file_system_for_writing(FS).await.unwrap();
    let dir =
        fs.root().await.unwrap().create(b"dir", &NewFile::new(FileKind::Directory, 0o755)).await.unwrap();
    let file = dir.create(b"f", &NewFile::new(FileKind::Regular, 0o644)).await.unwrap();
    file.write(0, &noise(1, SIZE as usize)).await.unwrap();
    pool.sync().await.unwrap();
    pool
}

/// The pointer to a block of a file as it is on disk.
async fn pointer(pool: &Pool, dataset: &str, object: ObjectId, level: i8, blkid: u64) -> BlockPointer {
    let found = pool.dsl().find(dataset).await.unwrap();
    let (_, phys) = pool.dsl().core().dataset(found.id).await.unwrap();
    let store: Arc<dyn BlockStore> = Arc::new(pool.pipeline().clone());
    let at = Bookmark { objset: ObjsetId(found.id.0), object, level, blkid };
    dmu::locate(&store, &phys.bp, at).await.unwrap()
}

/// Writes nonsense over all copies of a block of `/dir/f`, on a pool of one device.
async fn damage(rig: &Rig, pool: &Pool, level: i8, blkid: u64) {
    let file = pool.open_file_system(FS).await.unwrap().resolve(b"dir/f", false).await.unwrap();
    let bp = pointer(pool, FS, file.id().object, level, blkid).await;
    for dva in bp.as_plain().unwrap().copies() {
        let at = (4 << 20) + dva.offset.bytes();
        rig.disks.get(rig.path(0)).unwrap().poke(at, &noise(at, bp.psize().0 as usize));
    }
}

async fn read(pool: &Pool, dataset: &str) -> units::Result<()> {
    let file = pool.open_file_system(dataset).await?.resolve(b"dir/f", false).await?;
    file.read(0, SIZE as usize).await.map(drop)
}

fn names(errors: &DataErrors) -> Vec<String> {
    let name = |e: &crate::DataError| {
        let dataset = e.dataset.clone().unwrap_or_else(|| format!("<{:x}>", e.objset.0));
        format!("{dataset}:{}", e.path.clone().unwrap_or_else(|| format!("<{:x}>", e.object.0)))
    };
    errors.errors.iter().map(name).collect()
}

async fn listed(pool: &Pool) -> Vec<String> {
    names(pool.data_errors().await.as_ref())
}

async fn scrub(pool: &Pool) {
    pool.scrub().await.unwrap();
    pool.scrub_wait().await;
}

fn snapshots(name: &str) -> DestroySpec {
    DestroySpec { names: vec![name.into()], ..DestroySpec::default() }
}

/// A client that had just got EIO read "Applications are unaffected", and after a restart "all pools are healthy".
#[test]
fn what_a_client_could_not_read_is_listed_by_its_name_at_once_and_until_it_is_written_anew() {
    for release in RELEASES {
        let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
        let own = rig.clone();
        rig.run(1, async move {
            let rig = own;
            let pool = with_file(&rig, release).await;
            damage(&rig, &pool, 0, 1).await;
            assert_eq!(listed(&pool).await, Vec::<String>::new(), "nobody has met it");
            read(&pool, FS).await.unwrap_err();
            assert_eq!(listed(&pool).await, ["tank/fs:/dir/f"]);
            pool.export().await.unwrap();
            drop(pool);
            let pool = rig.open(true).await.unwrap();
            assert_eq!(listed(&pool).await, ["tank/fs:/dir/f"], "read-only");
            pool.export().await.unwrap();
            drop(pool);
            let pool = rig.open(false).await.unwrap();
            assert_eq!((listed(&pool).await, pool.data_error_count()), (vec!["tank/fs:/dir/f".into()], 1));
            // Another block of the file does not help; this one does.
            let fs = pool.open_file_system_for_writing(FS).await.unwrap();
            let file = fs.resolve(b"dir/f", false).await.unwrap();
            file.write(0, &noise(2, 128 << 10)).await.unwrap();
            pool.sync().await.unwrap();
            assert_eq!(listed(&pool).await, ["tank/fs:/dir/f"]);
            file.write(128 << 10, &noise(2, 128 << 10)).await.unwrap();
            pool.sync().await.unwrap();
            assert_eq!(listed(&pool).await, Vec::<String>::new());
            pool.sync().await.unwrap();
            assert_eq!(pool.data_error_count(), 0, "it left the log as well");
            read(&pool, FS).await.unwrap();
            drop((fs, file));
            verify(&pool).await;
            pool.export().await.unwrap();
        });
    }
}

/// "No known data errors" beneath "with 1 errors".
#[test]
fn what_a_scrub_found_is_known_after_an_import_and_gone_after_the_next_scrub_once_it_is_freed() {
    for release in RELEASES {
        let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
        let own = rig.clone();
        rig.run(2, async move {
            let rig = own;
            let pool = with_file(&rig, release).await;
            damage(&rig, &pool, 0, 0).await;
            scrub(&pool).await;
            assert_eq!(pool.scan_status().unwrap().errors, 1);
            assert_eq!(listed(&pool).await, ["tank/fs:/dir/f"]);
            let logged = |log| {
                let pool = pool.clone();
                async move { pool.dsl().error_log_len(log).await.unwrap() }
            };
            assert_eq!((logged(ErrorLog::Scrub).await, logged(ErrorLog::Last).await), (0, 1));
            pool.export().await.unwrap();
            drop(pool);
            let pool = rig.open(false).await.unwrap();
            assert_eq!((pool.data_error_count(), listed(&pool).await), (1, vec!["tank/fs:/dir/f".into()]));
            // A scrub that is canceled has not seen that it is gone.
            pool.scrub().await.unwrap();
            pool.scrub_stop().await.unwrap();
            assert_eq!(listed(&pool).await, ["tank/fs:/dir/f"]);
            let dir = pool.open_file_system_for_writing(FS).await.unwrap().resolve(b"dir", false).await;
            dir.unwrap().unlink(b"f").await.unwrap();
            pool.sync().await.unwrap();
            scrub(&pool).await;
            assert_eq!((pool.data_error_count(), listed(&pool).await), (0, Vec::new()));
            assert_eq!(pool.scan_status().unwrap().errors, 0);
            verify(&pool).await;
            pool.export().await.unwrap();
        });
    }
}

/// A device was away, and the only other one had rotted: what comes back with it is lost no longer.
#[test]
fn what_can_be_had_again_leaves_the_list() {
    for release in RELEASES {
        let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
        let own = rig.clone();
        rig.run(3, async move {
            let rig = own;
            let pool = with_file(&rig, release).await;
            let file = pool.open_file_system(FS).await.unwrap().resolve(b"dir/f", false).await.unwrap();
            let bp = pointer(&pool, FS, file.id().object, 0, 1).await;
            let (disk, len) = (rig.disks.get(rig.path(0)).unwrap(), bp.psize().0 as usize);
            let whole = disk.peek(place(&bp), len);
            disk.poke(place(&bp), &noise(1, len));
            read(&pool, FS).await.unwrap_err();
            world::sleep(std::time::Duration::from_secs(60)).await;
            assert_eq!(listed(&pool).await, ["tank/fs:/dir/f"]);
            disk.poke(place(&bp), &whole);
            scrub(&pool).await;
            assert_eq!((pool.data_error_count(), listed(&pool).await), (0, Vec::new()));
            // It is noted again, if it rots again.
            disk.poke(place(&bp), &noise(1, len));
            pool.export().await.unwrap();
            drop((file, pool));
            let pool = rig.open(false).await.unwrap();
            read(&pool, FS).await.unwrap_err();
            assert_eq!(listed(&pool).await, ["tank/fs:/dir/f"]);
            pool.export().await.unwrap();
        });
    }
}

#[test]
fn with_head_errlog_every_dataset_that_has_the_block_is_named_and_no_other() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(4, async move {
        let rig = own;
        let pool = with_file(&rig, "openzfs-2.2").await;
        let snap = |name: &str| pool.snapshot(vec![name.into()], Vec::new());
        snap("tank/fs@a").await.unwrap();
        pool.clone_snapshot("tank/fs@a", "tank/c", uncached()).await.unwrap();
        snap("tank/c@b").await.unwrap();
        damage(&rig, &pool, 0, 1).await;
        read(&pool, "tank/c").await.unwrap_err();
        let all = ["tank/c:/dir/f", "tank/c@b:/dir/f", "tank/fs:/dir/f", "tank/fs@a:/dir/f"];
        let sorted = || async {
            let mut names = listed(&pool).await;
            names.sort();
            names
        };
        assert_eq!(sorted().await, ["tank/c:/dir/f"], "where it was met, for now");
        world::sleep(std::time::Duration::from_secs(60)).await;
        assert_eq!(sorted().await, all);
        let fs = pool.open_file_system_for_writing(FS).await.unwrap();
        fs.resolve(b"dir", false).await.unwrap().unlink(b"f").await.unwrap();
        pool.sync().await.unwrap();
        drop(fs);
        assert_eq!(sorted().await, ["tank/c:/dir/f", "tank/c@b:/dir/f", "tank/fs@a:/dir/f"]);
        // The snapshot is the clone's from now on, and its errors with it.
        pool.promote("tank/c").await.unwrap();
        assert_eq!(sorted().await, ["tank/c:/dir/f", "tank/c@a:/dir/f", "tank/c@b:/dir/f"]);
        pool.destroy_datasets(snapshots(FS)).await.unwrap();
        assert_eq!(sorted().await, ["tank/c:/dir/f", "tank/c@a:/dir/f", "tank/c@b:/dir/f"]);
        scrub(&pool).await;
        assert_eq!(sorted().await, ["tank/c:/dir/f", "tank/c@a:/dir/f", "tank/c@b:/dir/f"]);
        let all = DestroySpec { recursive: true, ..snapshots("tank/c") };
        pool.destroy_datasets(all).await.unwrap();
        assert_eq!(sorted().await, Vec::<String>::new());
        pool.sync().await.unwrap();
        assert_eq!(pool.data_error_count(), 0);
        pool.export().await.unwrap();
    });
}

#[test]
fn a_log_by_bookmarks_becomes_one_by_heads_when_the_feature_is_enabled() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(5, async move {
        let pool = with_file(&own, "openzfs-2.1-linux").await;
        pool.snapshot(vec!["tank/fs@a".into()], Vec::new()).await.unwrap();
        damage(&own, &pool, 0, 1).await;
        read(&pool, FS).await.unwrap_err();
        world::sleep(std::time::Duration::from_secs(60)).await;
        assert_eq!(listed(&pool).await, ["tank/fs:/dir/f"]);
        let stale = LoggedError {
            at: BlockBookmark { objset: ObjsetId(99), object: ObjectId(1), level: 0, block: 1 },
            birth: Txg::NONE,
        };
        pool.change("log", move |pool, tx| async move {
            pool.dsl().log_errors(&tx, ErrorLog::Scrub, &[stale]).await
        })
        .await
        .unwrap();
        let upgrade = |pool: Pool, tx: Arc<dmu::Tx>| async move { pool.upgrade_error_logs(&tx).await };
        pool.change("enable", upgrade).await.unwrap();
        assert!(pool.dsl().logs_errors_by_head());
        assert_eq!(listed(&pool).await, ["tank/fs:/dir/f", "tank/fs@a:/dir/f"]);
        assert_eq!(pool.data_error_count(), 1);
        pool.export().await.unwrap();
    });
}

#[test]
fn an_indirect_block_that_is_lost_is_listed_as_its_file_and_one_of_the_dnodes_as_an_object() {
    for release in RELEASES {
        let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
        let own = rig.clone();
        rig.run(6, async move {
            let pool = with_file(&own, release).await;
            damage(&own, &pool, 1, 0).await;
            pool.export().await.unwrap();
            drop(pool);
            let pool = own.open(false).await.unwrap();
            read(&pool, FS).await.unwrap_err();
            assert_eq!(listed(&pool).await, ["tank/fs:/dir/f"]);
            scrub(&pool).await;
            assert_eq!(listed(&pool).await, ["tank/fs:/dir/f"]);
            let bp = pointer(&pool, FS, ObjectId(0), 0, 0).await;
            for dva in bp.as_plain().unwrap().copies() {
                own.disks
                    .get(own.path(0))
                    .unwrap()
                    .poke((4 << 20) + dva.offset.bytes(), &noise(1, bp.psize().0 as usize));
            }
            pool.export().await.unwrap();
            drop(pool);
            let pool = own.open(false).await.unwrap();
            read(&pool, FS).await.unwrap_err();
            // The file itself cannot be looked up any more.
            let names = listed(&pool).await;
            assert!(names.contains(&"tank/fs:<0>".to_string()), "{names:?}");
            pool.export().await.unwrap();
        });
    }
}

#[test]
fn hostile_logs_are_listed_as_far_as_they_make_sense_and_nothing_else_is_freed_with_them() {
    for release in RELEASES {
        let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
        let own = rig.clone();
        rig.run(7, async move {
            let pool = with_file(&own, release).await;
            let (objects, by_head) = (pool.mos().objects(), pool.dsl().logs_errors_by_head());
            let spoil = move |pool: Pool, tx: Arc<dmu::Tx>| async move {
                let core = pool.dsl().core();
                let table = dsl::zaps::create(pool.mos(), &tx, ObjectType::ERROR_LOG).await?;
                let name = |n: usize| "f".repeat(n);
                for key in ["", ":::", "0:0:0:0:0", "zz:1:0:1", &name(255), "1:2:7f:3"] {
                    if !key.is_empty() {
                        table.update(&tx, key, 1u64).await?;
                    }
                }
                // Heads that lead to the object directory, to the log itself, and nowhere.
                for (head, leads_to) in
                    [(1u64, 1), (2, table.blocks().id().0), (3, 0), (4, u64::MAX), (5, 1 << 47)]
                {
                    table.update(&tx, &zap::int_name(head), leads_to).await?;
                }
                // Places that there cannot be.
                for (object, block) in [(1u64 << 60, 0), (5, u64::MAX), (u64::MAX, 1)] {
                    table.update(&tx, &format!("36:{object:x}:0:{block:x}"), &[0u8][..]).await?;
                }
                core.directory().update(&tx, directory::ERROR_LOG_LAST, table.blocks().id().0).await?;
                // And a log that is none.
                core.directory().update(&tx, directory::ERROR_LOG_SCRUB, 1u64).await
            };
            pool.change("spoil", spoil).await.unwrap();
            pool.load_errors().await;
            let errors = pool.data_errors().await;
            assert!(errors.more > 0, "{errors:?}");
            assert!(errors.errors.len() <= 3, "{errors:?}");
            damage(&own, &pool, 0, 1).await;
            read(&pool, FS).await.unwrap_err();
            world::sleep(std::time::Duration::from_secs(60)).await;
            assert!(listed(&pool).await.contains(&"tank/fs:/dir/f".to_string()));
            scrub(&pool).await;
            assert_eq!(listed(&pool).await, ["tank/fs:/dir/f"]);
            assert_eq!(pool.data_error_count(), 1);
            // The log, and with heads the table of one; the one that is its own head was freed once.
            assert_eq!(pool.mos().objects(), objects + if by_head { 2 } else { 1 });
            pool.export().await.unwrap();
            drop(pool);
            own.open(false).await.unwrap().export().await.unwrap();
        });
    }
}

#[test]
fn a_hundred_thousand_errors_are_listed_in_part_and_counted() {
    for release in RELEASES {
        let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
        let own = rig.clone();
        rig.run(8, async move {
            let pool = with_file(&own, release).await;
            let head = pool.dsl().find(FS).await.unwrap().id;
            for part in 0..10u64 {
                let log = move |pool: Pool, tx: Arc<dmu::Tx>| async move {
                    let of = |i: u64| LoggedError {
                        at: BlockBookmark {
                            objset: ObjsetId(head.0),
                            object: ObjectId(i),
                            level: 0,
                            block: 0,
                        },
                        birth: Txg::NONE,
                    };
                    let errors: Vec<LoggedError> = (part * 10_000..(part + 1) * 10_000).map(of).collect();
                    pool.dsl().log_errors(&tx, ErrorLog::Last, &errors).await
                };
                pool.change("log", log).await.unwrap();
            }
            pool.load_errors().await;
            assert_eq!(pool.data_error_count(), 100_000);
            let errors = pool.data_errors().await;
            assert!(errors.errors.len() <= 1000, "{}", errors.errors.len());
            assert!(errors.more > 90_000, "{}", errors.more);
            scrub(&pool).await;
            assert_eq!((pool.data_error_count(), listed(&pool).await), (0, Vec::new()));
            verify(&pool).await;
            pool.export().await.unwrap();
        });
    }
}

mod at_random;
