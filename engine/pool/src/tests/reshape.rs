//! Vdevs that come and go while the pool is in use.

use super::{BLOCK, Rig, cache, fill, host, make_volume, noise, read_all, verify};
use crate::{OpenOptions, Pool};
use sim::{Disks, Model};
use std::path::Path;
use units::{Kind, VdevId};
use vdev::{AuxKind, Bias, Group, Layout, NewLeaf, State, VdevType};

const SIZE: u64 = 96 << 20;

fn leaves(names: &[&str]) -> Vec<NewLeaf> {
    names.iter().map(|n| NewLeaf::look_at(Path::new(&format!("/sim/{n}"))).unwrap()).collect()
}

pub(super) fn group(bias: Bias, layout: Layout, names: &[&str]) -> Group {
    Group { layout, bias, leaves: leaves(names) }
}

pub(super) fn rig_with(extra: &[&str]) -> Rig {
    let rig = Rig::new(Layout::Stripe, 1, SIZE);
    extra.iter().for_each(|name| drop(rig.disks.add(format!("/sim/{name}"), SIZE, Model::NVME)));
    rig
}

pub(super) async fn open_all(read_only: bool) -> Pool {
    open_all_tuned(read_only, Default::default()).await
}

pub(super) async fn open_all_tuned(read_only: bool, tunables: std::sync::Arc<tunables::Tunables>) -> Pool {
    let found = crate::scan_dirs(&[Path::new("/sim")]).await.unwrap();
    let options = OpenOptions {
        read_only,
        name: None,
        host: host(),
        force: false,
        missing_log: false,
        copy_over: false,
        cache: cache(),
        hub: Default::default(),
        tunables,
    };
    crate::open(&found[0], options).await.unwrap()
}

/// Exports the pool and lets go of its devices.
async fn leave(pool: Pool) {
    pool.export().await.unwrap();
}

async fn labels(name: &str) -> vdev::label::read::Labels {
    let disk = vdev::Device::whole(format!("/sim/{name}")).open(world::OpenMode::ReadOnly).await.unwrap();
    vdev::label::read::read_labels(&disk).await
}

fn kinds(pool: &Pool) -> Vec<VdevType> {
    pool.tree().spec().children.iter().map(|t| t.vdev_type).collect()
}

#[test]
fn a_log_comes_and_leaves_a_hole_and_the_next_one_stands_behind_it() {
    let rig = rig_with(&["log", "a", "b"]);
    let own = rig.clone();
    rig.run(1, async move {
        let pool = own.create().await;
        make_volume(&pool, "tank/v", 64 * BLOCK).await;
        pool.add_vdevs(&[group(Bias::Log, Layout::Stripe, &["log"])], 0).await.unwrap();
        let top = pool.tree().top(VdevId(1)).unwrap();
        assert!(top.is_log && top.is_usable());
        assert_eq!(pool.space().usage(metaslab::Class::Log).allocated, 0);
        let label = labels("log").await;
        let label = label.best(None).unwrap();
        assert_eq!((label.u64("is_log").unwrap(), label.u64("vdev_children").unwrap()), (1, 2));
        fill(&pool, "tank/v", 3).await;
        write_synced(&pool, 1).await;
        assert!(pool.space().usage(metaslab::Class::Log).allocated > 0, "the log is where it belongs");
        verify(&pool).await;

        pool.remove_log(VdevId(1)).await.unwrap();
        let (before, fallbacks) = (log_blocks(&pool), pool.intent_logs()[0].stats().fallbacks);
        write_synced(&pool, 8).await;
        // The first commit of a chain waits for its txg, and needs no block then.
        let after = (log_blocks(&pool), pool.intent_logs()[0].stats().fallbacks);
        assert!(
            after.0 >= before + 6,
            "there is a log again, elsewhere: {before} and {fallbacks}, then {after:?}"
        );
        assert!(after.1 <= fallbacks + 2, "{before} and {fallbacks}, then {after:?}");
        fill(&pool, "tank/v", 3).await;
        assert!(pool.tree().top(VdevId(1)).is_none());
        assert_eq!(kinds(&pool), [VdevType::File, VdevType::Hole]);
        assert!(labels("log").await.is_empty(), "they are wiped");
        verify(&pool).await;
        leave(pool).await;

        let pool = open_all(false).await;
        assert_eq!(kinds(&pool), [VdevType::File, VdevType::Hole]);
        let mirror = group(Bias::Log, Layout::Mirror, &["a", "b"]);
        pool.add_vdevs(&[mirror], 12).await.unwrap();
        assert_eq!(kinds(&pool), [VdevType::File, VdevType::Hole, VdevType::Mirror]);
        leave(pool).await;

        let pool = open_all(false).await;
        assert_eq!(read_all(&pool, "tank/v").await.unwrap(), noise(3, 64 * BLOCK as usize));
        let top = pool.tree().top(VdevId(2)).unwrap();
        assert!(top.is_log && top.leaves().len() == 2);
        pool.remove_log(VdevId(2)).await.unwrap();
        leave(pool).await;
        let pool = open_all(true).await;
        assert_eq!(kinds(&pool), [VdevType::File, VdevType::Hole, VdevType::Hole]);
        assert_eq!(pool.tree().health().state, State::Online);
        verify(&pool).await;
    });
}

#[test]
fn a_log_that_was_used_can_be_removed_once_its_blocks_are_free() {
    let rig = rig_with(&["log"]);
    let own = rig.clone();
    rig.run(2, async move {
        let pool = own.create().await;
        pool.add_vdevs(&[group(Bias::Log, Layout::Stripe, &["log"])], 0).await.unwrap();
        let placed = |pool: &Pool, txg| {
            let request = metaslab::Request::new(metaslab::Class::Log, units::Psize(8192), 1, txg);
            pool.space().try_allocate(&request).unwrap()
        };
        let tx = pool.txgs().begin_unthrottled();
        let metaslab::Placement::Placed(dvas) = placed(&pool, tx.txg()) else { panic!("it is loaded") };
        assert_eq!(dvas[0].vdev, VdevId(1));
        drop(tx);
        pool.sync().await.unwrap();
        let refused = pool.remove_log(VdevId(1)).await.unwrap_err();
        assert_eq!(refused.kind(), Kind::Busy);
        assert!(pool.tree().top(VdevId(1)).is_some(), "it serves on");
        let tx = pool.txgs().begin_unthrottled();
        let metaslab::Placement::Placed(again) = placed(&pool, tx.txg()) else { panic!("it is loaded") };
        for dva in [dvas[0], again[0]] {
            assert_eq!(dva.vdev, VdevId(1), "it is open for allocation again");
            pool.space().free(&dva, tx.txg()).unwrap();
        }
        drop(tx);
        pool.remove_log(VdevId(1)).await.unwrap();
        verify(&pool).await;
        leave(pool).await;
        verify(&open_all(true).await).await;
    });
}

#[test]
fn a_new_vdev_takes_data_and_the_pool_needs_it_from_then_on() {
    let rig = rig_with(&["more"]);
    let own = rig.clone();
    rig.run(3, async move {
        let pool = own.create().await;
        let before = pool.report().size;
        pool.add_vdevs(&[group(Bias::Normal, Layout::Stripe, &["more"])], 0).await.unwrap();
        assert_eq!(pool.report().size, 2 * before);
        make_volume(&pool, "tank/v", 1024 * BLOCK).await;
        fill(&pool, "tank/v", 5).await;
        assert!(pool.space().usage_of_vdev(VdevId(1)).unwrap().allocated > 1 << 20);
        assert_eq!(pool.remove_log(VdevId(1)).await.unwrap_err().kind(), Kind::Unsupported);
        leave(pool).await;
        let pool = open_all(false).await;
        assert_eq!(read_all(&pool, "tank/v").await.unwrap(), noise(5, 1024 * BLOCK as usize));
        verify(&pool).await;
    });
}

#[test]
fn special_vdevs_make_their_feature_active() {
    let rig = rig_with(&["special"]);
    let own = rig.clone();
    rig.run(4, async move {
        let pool = own.create().await;
        pool.add_vdevs(&[group(Bias::Special, Layout::Stripe, &["special"])], 0).await.unwrap();
        let feature = ondisk::Feature::AllocationClasses;
        assert!(pool.dsl().features().is_active(feature));
        pool.sync().await.unwrap();
        let space = pool.dsl().pool_space();
        assert!(space.everything > space.size, "what may be freed is in devices of all classes: {space:?}");
        leave(pool).await;
        let pool = open_all(false).await;
        assert_eq!(pool.tree().top(VdevId(1)).unwrap().bias(), Bias::Special);
        assert!(pool.dsl().features().is_active(feature));
        verify(&pool).await;
    });
}

#[test]
fn spares_and_caches_are_known_after_an_export_and_leave_again() {
    let rig = rig_with(&["spare", "cache", "small"]);
    let own = rig.clone();
    rig.run(5, async move {
        let pool = own.create().await;
        pool.add_side_devices(AuxKind::Spare, &leaves(&["spare"])).await.unwrap();
        pool.add_side_devices(AuxKind::Cache, &leaves(&["cache"])).await.unwrap();
        let again = pool.add_side_devices(AuxKind::Spare, &leaves(&["spare"])).await;
        assert_eq!(again.unwrap_err().kind(), Kind::Invalid);
        assert_eq!(labels("spare").await.owner().unwrap().state, ondisk::PoolState::Spare);
        assert_eq!(labels("cache").await.owner().unwrap().state, ondisk::PoolState::L2Cache);
        leave(pool).await;

        let pool = open_all(false).await;
        let status = pool.tree().status();
        let states = |all: &[vdev::VdevStatus]| all.iter().map(|s| s.health.state).collect::<Vec<_>>();
        assert_eq!(
            (states(&status.spares), states(&status.caches)),
            (vec![State::Online], vec![State::Online])
        );
        assert!(pool.problems().is_empty());
        pool.remove_side_device(AuxKind::Spare, status.spares[0].guid).await.unwrap();
        pool.remove_side_device(AuxKind::Cache, status.caches[0].guid).await.unwrap();
        assert!(labels("cache").await.is_empty());
        let gone = pool.remove_side_device(AuxKind::Cache, status.caches[0].guid).await;
        assert_eq!(gone.unwrap_err().kind(), Kind::NotFound);
        leave(pool).await;
        let status = open_all(true).await.tree().status();
        assert!(status.spares.is_empty() && status.caches.is_empty());
    });
}

/// Synchronous writes, one after another, of what is there already.
async fn write_synced(pool: &Pool, count: u64) {
    let volume = pool.open_volume("tank/v").await.unwrap();
    for i in 0..count {
        let bytes = volume.read(i * BLOCK, 512).await.unwrap();
        volume.write(i * BLOCK, bytes[0].clone()).await.unwrap();
        volume.flush().await.unwrap();
    }
}

fn log_blocks(pool: &Pool) -> u64 {
    pool.intent_logs().iter().map(|log| log.stats().blocks).sum()
}

/// Adds a mirrored log, removes it, adds a vdev for data, writing meanwhile.
async fn reshape(pool: Pool) {
    pool.add_vdevs(&[group(Bias::Log, Layout::Mirror, &["a", "b"])], 0).await.unwrap();
    fill(&pool, "tank/v", 8).await;
    pool.remove_log(VdevId(1)).await.unwrap();
    pool.add_vdevs(&[group(Bias::Normal, Layout::Stripe, &["more"])], 0).await.unwrap();
    fill(&pool, "tank/v", 9).await;
}

#[test]
fn a_power_cut_at_any_flush_leaves_a_whole_pool() {
    let rig = rig_with(&["a", "b", "more"]);
    let own = rig.clone();
    rig.run(6, async move {
        let pool = own.create().await;
        make_volume(&pool, "tank/v", 32 * BLOCK).await;
        fill(&pool, "tank/v", 7).await;
        pool.close().await.unwrap();
    });
    let before = rig.disks.fork();
    let run = |disks: &Disks| {
        sim::run_until_cut(disks, 7, Default::default(), async { reshape(open_all(false).await).await })
    };
    let whole = before.fork();
    let start = whole.flushes();
    run(&whole);
    let flushes = whole.flushes() - start;
    assert!(flushes > 20, "{flushes}");
    for cut in 1..=flushes {
        let disks = before.fork();
        disks.cut_at_flush(cut);
        run(&disks);
        disks.power_cut(cut);
        sim::run_with(&disks, cut, Default::default(), async move {
            let pool = open_all(false).await;
            let bytes = read_all(&pool, "tank/v").await.unwrap();
            assert_eq!(bytes.len() as u64, 32 * BLOCK);
            verify(&pool).await;
            leave(pool).await;
            verify(&open_all(true).await).await;
        });
    }
}
