//! Walks over trees whose indirect blocks are on disk: what destroys, scrubs and resilvers wait for, and for how long.

use super::devices::device;
use super::{BLOCK, Rig, VOLUME, make_volume, noise, verify};
use crate::{Offline, Pool};
use dsl::DestroySpec;
use ondisk::dsl::{ScanFunc, ScanState};
use sim::{Model, Rng};
use std::sync::Arc;
use std::time::Duration;
use tunables::{Tunable, Tunables};
use units::ObjectId;
use vdev::{Layout, Priority};
use world::Buf;
use zio::{BlockStore, Bookmark};

/// What one level-1 block leads to: in each part one block is written.
const PART: u64 = 1024 * BLOCK;
const PARTS: u64 = 256;
const DISK: u64 = 192 << 20;
/// The pool's own books may take so much more or less.
const BOOKS: u64 = 512 << 10;

fn rig(model: Model, layout: Layout, count: usize) -> Rig {
    let rig = Rig::new(layout, count, DISK);
    (0..count).for_each(|i| drop(rig.disks.add(rig.path(i), DISK, model)));
    rig
}

/// Writes a block in every part in an order at random, some in each txg, so that the level-1 blocks lie apart.
async fn scatter(pool: &Pool, seed: u64) {
    let volume = pool.open_volume(VOLUME).await.unwrap();
    let (mut rng, mut order) = (Rng::new(seed), (0..PARTS).collect::<Vec<_>>());
    for n in 0..PARTS as usize {
        let other = n + rng.below(PARTS - n as u64) as usize;
        order.swap(n, other);
        let at = order[n] * PART + rng.below(1024) * BLOCK;
        volume.write(at, Buf::copy_from(&noise(at, BLOCK as usize))).await.unwrap();
        if n % 16 == 15 {
            pool.sync().await.unwrap();
        }
    }
    volume.flush().await.unwrap();
    pool.sync().await.unwrap();
}

async fn reopened(rig: &Rig, pool: Pool, tunables: &Arc<Tunables>) -> Pool {
    pool.export().await.unwrap();
    drop(pool);
    rig.open_tuned(false, tunables.clone()).await.unwrap()
}

fn allocated(pool: &Pool) -> u64 {
    pool.space().usage_total().allocated
}

/// Opened with nothing in memory, with a volume of 2 GiB in which little is written; and what was allocated without it.
async fn cold(rig: &Rig, tunables: &Arc<Tunables>) -> (Pool, u64) {
    let pool = rig.create().await;
    pool.sync().await.unwrap();
    let before = allocated(&pool);
    make_volume(&pool, VOLUME, PARTS * PART).await;
    scatter(&pool, 1).await;
    assert!(allocated(&pool) > before + PARTS * BLOCK);
    (reopened(rig, pool, tunables).await, before)
}

async fn begin_destroy(pool: &Pool) {
    let spec = DestroySpec { names: vec![VOLUME.into()], ..DestroySpec::default() };
    pool.destroy_datasets(spec).await.unwrap();
}

async fn destroyed(pool: &Pool) {
    for _ in 0..100_000 {
        if !pool.dsl().has_frees().await.unwrap() {
            return;
        }
        world::sleep(Duration::from_millis(10)).await;
    }
    panic!("it does not end: {:?}", pool.problems());
}

fn tuned(tunable: Tunable, value: u64) -> Arc<Tunables> {
    let tunables = Tunables::new();
    tunables.set(tunable, value).unwrap();
    tunables
}

fn without() -> Arc<Tunables> {
    tuned(Tunable::TraverseIndirectPrefetchLimit, 0)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Walk {
    Destroy,
    Scrub,
    /// Of one disk that missed a block in each part.
    Resilver,
}

async fn time_of(rig: &Rig, walk: Walk, tunables: &Arc<Tunables>) -> Duration {
    let (mut pool, _) = cold(rig, tunables).await;
    if walk == Walk::Resilver {
        pool.offline(device(&pool, "disk1"), Offline::Lasting).await.unwrap();
        scatter(&pool, 5).await;
        pool = reopened(rig, pool, tunables).await;
    }
    let start = world::now();
    match walk {
        Walk::Destroy => {
            begin_destroy(&pool).await;
            destroyed(&pool).await;
        }
        Walk::Scrub => pool.scrub().await.unwrap(),
        Walk::Resilver => drop(pool.online(device(&pool, "disk1")).await.unwrap()),
    }
    pool.scrub_wait().await;
    let took = world::now().since(start);
    if walk != Walk::Destroy {
        let scan = pool.scan_status().unwrap();
        let func = if walk == Walk::Scrub { ScanFunc::Scrub } else { ScanFunc::Resilver };
        assert_eq!((scan.func, scan.state, scan.errors), (func, ScanState::Finished, 0));
    }
    pool.export().await.unwrap();
    took
}

fn time(model: Model, layout: Layout, count: usize, walk: Walk, tunables: Arc<Tunables>) -> Duration {
    let rig = rig(model, layout, count);
    let own = rig.clone();
    rig.run(1, async move { time_of(&own, walk, &tunables).await })
}

/// `cargo test -p pool --lib -- --ignored --nocapture walks::figures`
#[test]
#[ignore = "it prints, and proves nothing"]
#[allow(clippy::disallowed_macros, reason = "the figures are for a terminal")]
fn figures() {
    for (name, model) in [("HDD", Model::HDD), ("SSD", Model::SSD), ("NVMe", Model::NVME)] {
        for (layout, count) in [
            (Layout::Stripe, 1),
            (Layout::Stripe, 4),
            (Layout::Mirror, 2),
            (Layout::Raidz { parity: 1 }, 4),
            (Layout::Raidz { parity: 2 }, 8),
        ] {
            for walk in [Walk::Destroy, Walk::Scrub, Walk::Resilver] {
                if walk == Walk::Resilver && layout == Layout::Stripe {
                    continue;
                }
                let before = time(model, layout, count, walk, without());
                let after = time(model, layout, count, walk, Tunables::new());
                let ratio = before.as_secs_f64() / after.as_secs_f64();
                eprintln!("{count} {name} {layout:?}, {walk:?}: {before:.2?}, {after:.2?}: {ratio:.2}");
            }
        }
    }
}

#[test]
fn a_walk_on_hard_disks_waits_for_several_at_once() {
    for (walk, percent) in [(Walk::Destroy, 50), (Walk::Scrub, 65)] {
        let time = |tunables| time(Model::HDD, Layout::Stripe, 4, walk, tunables);
        let (before, after) = (time(without()), time(Tunables::new()));
        assert!(after * 100 <= before * percent, "{walk:?}: {before:?}, and ahead {after:?}");
        if walk == Walk::Scrub {
            assert_eq!(time(tuned(Tunable::NoScrubPrefetch, 1)), before, "as it is switched");
        }
    }
}

/// Spoils the first copy of every third level-1 block, and of one also the second. Answers how many.
async fn spoil(rig: &Rig, pool: &Pool) -> u64 {
    let volume = pool.dsl().open_by_name(VOLUME).await.unwrap();
    let store: Arc<dyn BlockStore> = Arc::new(pool.pipeline().clone());
    let mut spoiled = 0;
    for blkid in (0..PARTS).step_by(3) {
        let at = Bookmark { objset: volume.objset().id(), object: ObjectId(1), level: 1, blkid };
        let bp = dmu::locate(&store, &volume.objset().root(), at).await.unwrap();
        let copies = if blkid == 9 { 2 } else { 1 };
        for dva in &bp.dvas()[..copies] {
            // Addresses of blocks begin behind the first two labels and the boot area.
            rig.spoil(0, (4 << 20) + dva.offset.bytes(), 512, blkid);
        }
        spoiled += 1;
    }
    pool.dsl().close_dataset(volume.id());
    spoiled
}

#[test]
fn a_bad_block_ahead_of_a_destroy_costs_nothing_but_what_hangs_from_it_and_counts_once() {
    let of = |tunables: Arc<Tunables>| {
        let rig = rig(Model::NVME, Layout::Stripe, 1);
        let own = rig.clone();
        rig.run(3, async move {
            let (pool, before) = cold(&own, &tunables).await;
            let spoiled = spoil(&own, &pool).await;
            let pool = reopened(&own, pool, &tunables).await;
            begin_destroy(&pool).await;
            destroyed(&pool).await;
            pool.sync().await.unwrap();
            let left = allocated(&pool).saturating_sub(before);
            assert!(left < BOOKS, "{left} bytes are left of the volume");
            verify(&pool).await;
            let errors = pool.tree().leaves()[0].errors();
            pool.export().await.unwrap();
            assert!(errors.checksum >= spoiled, "{errors:?}");
            errors
        })
    };
    assert_eq!(of(Tunables::new()), of(without()));
}

/// What the walk read, in its own class, and ahead of itself.
fn reads(pool: &Pool) -> [u64; 2] {
    [Priority::Scrub, Priority::AsyncRead].map(|class| {
        let classes = pool.tree().leaves().into_iter().map(|leaf| leaf.stats.snapshot());
        classes.map(|all| all.classes[class.index()].ops).sum()
    })
}

#[test]
fn a_destroy_reads_each_block_once_ends_with_the_pool_and_goes_on_with_it() {
    let rig = rig(Model::HDD, Layout::Stripe, 4);
    let own = rig.clone();
    rig.run(4, async move {
        // A level-1 block and what it leads to are two.
        let tunables = tuned(Tunable::AsyncBlockMaxBlocks, 64);
        let (pool, before) = cold(&own, &tunables).await;
        begin_destroy(&pool).await;
        world::sleep(Duration::from_millis(300)).await;
        let start = world::now();
        pool.export().await.unwrap();
        assert!(world::now().since(start) < Duration::from_secs(2));
        let first = reads(&pool);
        world::sleep(Duration::from_secs(1)).await;
        assert_eq!(reads(&pool), first, "nothing is read for a pool that is closed");
        drop(pool);
        let pool = own.open_tuned(false, tunables).await.unwrap();
        assert!(pool.dsl().has_frees().await.unwrap(), "it was broken off");
        pool.change("a txg", |pool, tx| async move { pool.0.touch(&tx).await }).await.unwrap();
        destroyed(&pool).await;
        pool.sync().await.unwrap();
        assert!(allocated(&pool).saturating_sub(before) < BOOKS);
        let [by_itself, ahead] = [0, 1].map(|n| first[n] + reads(&pool)[n]);
        assert!(ahead >= PARTS / 2 && by_itself + ahead <= PARTS * 3 / 2, "{by_itself}, and {ahead} ahead");
        verify(&pool).await;
        pool.export().await.unwrap();
    });
}
