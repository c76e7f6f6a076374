//! Snapshots that are read while they go, in all the ways in which one can go, at random.
//!
//! ```text
//!   driver    write, snapshot, then: destroy | hold, destroy -d, release | clone, destroy -d, destroy the clone |
//!             roll back over it | promote | rename                            one at a time, each done or refused
//!   readers   open one, read it piece by piece for as long as they like, compare each byte
//! ```
//!
//! The pool is small: what is freed is written again soon. What was opened is read to its end, and is what it was.

use super::{Rig, VOLUME, cache, fill, make_volume, noise, read_all, verify};
use crate::{Pool, RollbackReach};
use arc::Cache;
use dsl::DestroySpec;
use sim::Rng;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use units::{Error, Kind, Result};
use vdev::Layout;
use world::Buf;

const SIZE: u64 = 2 << 20;
const READERS: u64 = 3;
const STEPS: u64 = 36;
const WAYS: u64 = 6;
const PIECE: u64 = 128 << 10;
/// Between two pieces. With the longest a reader outlasts what waits for it.
const PAUSE_MS_MAX: u64 = 250;
const TAG: &str = "keep";

struct Common {
    pool: Pool,
    cache: Arc<Cache>,
    /// What each snapshot holds, as a seed, under every name that it has had.
    known: Mutex<BTreeMap<String, u64>>,
    is_over: AtomicBool,
    read: AtomicU64,
}

impl Common {
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.known.lock().unwrap()
    }

    /// Reads one snapshot after the other.
    async fn read(self: Arc<Self>, mut rng: Rng) {
        while !self.is_over.load(Ordering::Relaxed) {
            let some = {
                let known = self.known();
                let at = rng.below(known.len().max(1) as u64) as usize;
                known.iter().nth(at).map(|(name, seed)| (name.clone(), *seed))
            };
            if let Some((name, seed)) = some {
                self.read_one(&name, seed, rng.below(PAUSE_MS_MAX)).await;
            }
            world::sleep(Duration::from_millis(rng.below(50))).await;
        }
    }

    async fn read_one(&self, name: &str, seed: u64, pause_ms: u64) {
        let volume = match self.pool.open_volume(name).await {
            Ok(volume) => volume,
            Err(e) if matches!(e.kind(), Kind::NotFound | Kind::Busy) => return,
            Err(e) => panic!("{name}: {e}"),
        };
        let wanted = noise(seed, SIZE as usize);
        for (at, wanted) in wanted.chunks(PIECE as usize).enumerate() {
            self.cache.clear();
            let parts = volume.read(at as u64 * PIECE, PIECE).await;
            let parts = parts.unwrap_or_else(|e| panic!("{name}, piece {at}: {e}"));
            let read: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
            assert!(read == wanted, "{name}, piece {at}: it holds something else");
            world::sleep(Duration::from_millis(pause_ms)).await;
        }
        self.read.fetch_add(1, Ordering::Relaxed);
    }
}

/// What makes snapshots go.
enum End {
    Destroy(DestroySpec),
    Release(String),
    Rollback(String),
}

impl End {
    async fn work(&self, pool: &Pool) -> Result<()> {
        let newer = RollbackReach { newer: true, clones: false };
        match self {
            End::Destroy(spec) => pool.destroy_datasets(spec.clone()).await.map(drop),
            End::Release(name) => pool.release(vec![name.clone()], TAG).await,
            End::Rollback(to) => pool.rollback(VOLUME, to, newer).await.map(drop),
        }
    }
}

struct Driver {
    common: Arc<Common>,
    rng: Rng,
    count: u64,
    /// How often something was done, and how often it was refused as a snapshot was open.
    tally: BTreeMap<&'static str, (u64, u64)>,
}

impl Driver {
    fn pool(&self) -> Pool {
        self.common.pool.clone()
    }

    /// Writes over all of the volume; answers the seed.
    async fn write(&mut self) -> u64 {
        self.count += 1;
        fill(&self.common.pool, VOLUME, self.count).await;
        self.count
    }

    /// Takes a snapshot of something new.
    async fn snapshot(&mut self) -> String {
        let seed = self.write().await;
        let name = format!("{VOLUME}@s{seed}");
        self.pool().snapshot(vec![name.clone()], Vec::new()).await.unwrap();
        self.common.known().insert(name.clone(), seed);
        self.write().await;
        name
    }

    async fn pause(&mut self) {
        world::sleep(Duration::from_millis(self.rng.below(800))).await;
    }

    /// Does it, again and again while it is refused.
    async fn done(&mut self, what: &'static str, end: End) {
        for _ in 0..100 {
            let done = end.work(&self.common.pool).await;
            let tally = self.tally.entry(what).or_default();
            match done {
                Ok(()) => {
                    tally.0 += 1;
                    return;
                }
                Err(e) if e.kind() == Kind::Busy => tally.1 += 1,
                Err(e) => panic!("{what}: {e}"),
            }
            self.pause().await;
        }
        panic!("{what}: it is refused for ever");
    }

    async fn destroy(&mut self, what: &'static str, name: &str, defer: bool) {
        let spec = DestroySpec { names: vec![name.into()], defer, ..DestroySpec::default() };
        self.done(what, End::Destroy(spec)).await;
    }

    async fn clone_of(&mut self, snapshot: &str) -> String {
        let name = format!("tank/c{}", self.count);
        self.pool().clone_snapshot(snapshot, &name, Vec::new()).await.unwrap();
        name
    }

    /// Gone are the snapshots of these names.
    async fn gone(&mut self, names: &[&str]) {
        for name in names {
            assert_eq!(self.pool().dsl().find(name).await.unwrap_err().kind(), Kind::NotFound, "{name}");
            self.common.known().remove(*name);
        }
        // Where it was something else is soon.
        for _ in 0..4 {
            self.write().await;
        }
    }

    async fn step(&mut self, way: u64) {
        let name = self.snapshot().await;
        self.pause().await;
        match way {
            0 => self.destroy("destroy", &name, false).await,
            1 => {
                self.pool().hold(vec![name.clone()], TAG).await.unwrap();
                self.destroy("defer", &name, true).await;
                self.pause().await;
                self.done("release", End::Release(name.clone())).await;
            }
            2 => {
                let clone = self.clone_of(&name).await;
                self.destroy("defer", &name, true).await;
                self.pause().await;
                self.destroy("destroy the last clone", &clone, false).await;
            }
            3 => {
                let newer = self.snapshot().await;
                for _ in 0..4 {
                    self.pause().await;
                }
                self.done("roll back", End::Rollback(name.clone())).await;
                self.gone(&[&newer]).await;
                self.destroy("destroy", &name, false).await;
            }
            4 => {
                let clone = self.clone_of(&name).await;
                let moved = name.replace(VOLUME, &clone);
                let seed = self.common.known()[&name];
                self.pool().promote(&clone).await.unwrap();
                self.common.known().insert(moved.clone(), seed);
                self.pause().await;
                self.destroy("defer", &moved, true).await;
                self.pool().promote(VOLUME).await.unwrap();
                self.pause().await;
                self.destroy("destroy the last clone", &clone, false).await;
                self.gone(&[&moved]).await;
            }
            _ => {
                let other = format!("{VOLUME}@r{}", self.count);
                let seed = self.common.known()[&name];
                self.common.known().insert(other.clone(), seed);
                self.pool().rename_snapshots(&name, &other).await.unwrap();
                self.pause().await;
                self.destroy("destroy", &other, false).await;
                self.gone(&[&other]).await;
            }
        }
        self.gone(&[&name]).await;
    }
}

#[test]
fn a_snapshot_that_is_being_read_does_not_go_in_any_way() {
    let mut all: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for seed in 0..3 {
        let rig = Rig::new(Layout::Stripe, 1, 64 << 20);
        let own = rig.clone();
        let (tally, read) = rig.run(seed, async move {
            let cache = cache();
            let pool = own.create_on("tank", 0..1, cache.clone(), |_| true).await;
            make_volume(&pool, VOLUME, SIZE).await;
            let common = Arc::new(Common {
                pool: pool.clone(),
                cache,
                known: Mutex::default(),
                is_over: AtomicBool::new(false),
                read: AtomicU64::new(0),
            });
            let readers: Vec<_> = (0..READERS)
                .map(|n| world::spawn(common.clone().read(Rng::new(seed * READERS + n))))
                .collect();
            let mut driver =
                Driver { common: common.clone(), rng: Rng::new(!seed), count: 0, tally: BTreeMap::new() };
            for n in 0..STEPS {
                driver.step(n % WAYS).await;
            }
            common.is_over.store(true, Ordering::Relaxed);
            for reader in readers {
                reader.await;
            }
            let end = noise(driver.count, SIZE as usize);
            assert!(read_all(&pool, VOLUME).await.unwrap() == end);
            assert_eq!(pool.dsl().snapshots(VOLUME).await.unwrap(), []);
            assert_eq!(pool.problems(), Vec::<String>::new());
            verify(&pool).await;
            let read = common.read.load(Ordering::Relaxed);
            let tally = std::mem::take(&mut driver.tally);
            drop((driver, common));
            pool.export().await.unwrap();
            (tally, read)
        });
        assert!(read > STEPS / 2, "seed {seed}: {read} were read to the end");
        for (what, (done, refused)) in tally {
            let sum = all.entry(what).or_default();
            *sum = (sum.0 + done, sum.1 + refused);
        }
    }
    // Each way has met readers, and has come to its end.
    let ways = ["destroy", "release", "destroy the last clone", "roll back"];
    assert!(ways.iter().all(|way| all[way].0 > 0 && all[way].1 > 0), "{all:?}");
}

/// What has a head dataset open when it goes reads nothing of it from the devices any more.
#[test]
fn a_volume_that_is_gone_is_not_read_where_others_write() {
    let rig = Rig::new(Layout::Stripe, 1, 64 << 20);
    let own = rig.clone();
    rig.run(7, async move {
        let cache = cache();
        let pool = own.create_on("tank", 0..1, cache.clone(), |_| true).await;
        make_volume(&pool, VOLUME, SIZE).await;
        fill(&pool, VOLUME, 1).await;
        pool.sync().await.unwrap();
        let volume = pool.open_volume(VOLUME).await.unwrap();
        let spec = DestroySpec { names: vec![VOLUME.into()], ..DestroySpec::default() };
        pool.destroy_datasets(spec).await.unwrap();
        make_volume(&pool, VOLUME, SIZE).await;
        for seed in 2..30 {
            cache.clear();
            let refused = |e: Error| assert_eq!(e.kind(), Kind::NotFound, "{e}");
            refused(volume.read(0, PIECE).await.map(drop).unwrap_err());
            fill(&pool, VOLUME, seed).await;
            pool.sync().await.unwrap();
        }
        assert!(volume.write(0, Buf::copy_from(&[2; 4096])).await.is_err());
        drop(volume);
        verify(&pool).await;
        pool.export().await.unwrap();
    });
}

/// What is closed to openers is opened by none, and then by all again.
#[test]
fn what_is_about_to_go_is_not_opened() {
    let rig = Rig::new(Layout::Stripe, 1, 64 << 20);
    let own = rig.clone();
    rig.run(8, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, SIZE).await;
        let name = format!("{VOLUME}@s");
        pool.snapshot(vec![name.clone()], Vec::new()).await.unwrap();
        let closed = pool.dsl().close_to_openers(std::slice::from_ref(&name)).await.unwrap();
        let again = pool.dsl().close_to_openers(&[name.clone(), "tank/none".into()]).await.unwrap();
        drop(closed);
        let refused = pool.open_volume(&name).await.unwrap_err();
        assert_eq!(refused.kind(), Kind::Busy);
        pool.open_volume(VOLUME).await.unwrap();
        drop(again);
        pool.open_volume(&name).await.unwrap();
        pool.export().await.unwrap();
    });
}
