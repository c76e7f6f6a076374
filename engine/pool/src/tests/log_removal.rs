//! A log device comes and goes while datasets come, go and change places.

use super::reshape::open_all;
use super::{BLOCK, Rig, make_volume, noise, verify};
use crate::{Content, Pool, RollbackReach};
use dsl::DestroySpec;
use sim::{Model, Rng};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use units::{Kind, Result};
use vdev::{Bias, Group, Layout, NewLeaf};
use world::Buf;

const SIZE: u64 = 16 * BLOCK;
const LOG: &str = "/sim/log";

/// File systems for volumes to be in, and names that volumes may have.
const ABOVE: [&str; 3] = ["tank", "tank/a", "tank/a/b"];

fn rig() -> Rig {
    let rig = Rig::new(Layout::Stripe, 1, 128 << 20);
    rig.disks.add(LOG, 96 << 20, Model::NVME);
    rig
}

/// What another change may have made impossible.
fn unless_overtaken(done: Result<()>) {
    if let Err(e) = done {
        let may_be = [Kind::NotFound, Kind::Exists, Kind::Busy, Kind::Invalid];
        assert!(may_be.contains(&e.kind()), "{e}");
    }
}

fn any<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize]
}

fn volume(rng: &mut Rng) -> String {
    format!("{}/v{}", any(rng, &ABOVE), rng.below(2))
}

fn snapshot(rng: &mut Rng) -> String {
    format!("{}@s{}", volume(rng), rng.below(2))
}

/// One administrative change of any kind.
async fn change(pool: &Pool, rng: &mut Rng) -> Result<()> {
    let (name, other, at) = (volume(rng), volume(rng), snapshot(rng));
    let files = Content::FileSystem(zpl::NewFileSystem::default());
    match rng.below(12) {
        0 => pool.create_dataset(any(rng, &ABOVE[1..]), files, Vec::new()).await,
        1..=3 => {
            let content = Content::Volume { size: SIZE, block_size: BLOCK };
            pool.create_dataset(&name, content, Vec::new()).await
        }
        4 | 5 => pool.snapshot(vec![at], Vec::new()).await,
        6 => pool.clone_snapshot(&at, &other, Vec::new()).await,
        7 => pool.promote(&name).await,
        8 => {
            let (name, _) = at.split_once('@').unwrap();
            pool.rollback(name, &at, RollbackReach { newer: true, clones: true }).await.map(drop)
        }
        9 => {
            let work = move |pool: Pool, tx: Arc<dmu::Tx>| async move {
                pool.dsl().rename(&tx, &name, &other).await
            };
            pool.change("rename", work).await
        }
        kind => {
            let top = if kind == 10 { any(rng, &ABOVE[1..]).to_string() } else { name };
            let spec = DestroySpec { names: vec![top], recursive: true, clones: true, ..Default::default() };
            pool.destroy_datasets(spec).await.map(drop)
        }
    }
}

/// A synchronous write of a volume that was opened for it, and is not destroyed meanwhile.
async fn write(pool: &Pool, rng: &mut Rng) -> Result<()> {
    let name = volume(rng);
    let reading = pool.reading().await;
    let _held = pool.dsl().open_by_name(&name).await?;
    let volume = pool.open_volume(&name).await?;
    drop(reading);
    let at = rng.below(SIZE / 512) * 512;
    volume.write_durable(at, Buf::copy_from(&noise(at, 512))).await
}

/// Every dataset is looked up, and opened.
async fn open_each(pool: &Pool) -> Result<()> {
    for name in pool.dsl().descendants("tank").await? {
        pool.dsl().open_by_name(&name).await?;
    }
    Ok(())
}

async fn come_and_go(pool: &Pool) -> Result<()> {
    let leaves = vec![NewLeaf::look_at(Path::new(LOG))?];
    pool.add_vdevs(&[Group { layout: Layout::Stripe, bias: Bias::Log, leaves }], 0).await?;
    world::sleep(Duration::from_millis(world::random_u64() % 30)).await;
    let top = pool.tree().tops().into_iter().find(|top| top.is_log).unwrap();
    // Writes never pause: it may take several tries.
    for _ in 0..100 {
        match pool.remove_log(top.id).await {
            Err(e) if e.kind() == Kind::Busy => {}
            done => return done,
        }
    }
    panic!("the log device is not to be removed");
}

/// What a task does again and again.
#[derive(Clone, Copy)]
enum Work {
    Change,
    Write,
    Open,
}

/// Starts work that is repeated until `done`.
fn repeat(pool: &Pool, seed: u64, done: &Arc<AtomicBool>, work: Work) -> world::Task<()> {
    let (pool, done) = (pool.clone(), done.clone());
    world::spawn(async move {
        let mut rng = Rng::new(seed);
        while !done.load(Ordering::Relaxed) {
            unless_overtaken(match work {
                Work::Change => change(&pool, &mut rng).await,
                Work::Write => write(&pool, &mut rng).await,
                Work::Open => open_each(&pool).await,
            });
            world::sleep(Duration::from_micros(rng.below(2000))).await;
        }
    })
}

/// A dataset that was destroyed while the removal of a log device was opening it stayed listed as open: every sync after
/// that failed on it, and the pool was suspended.
#[test]
fn a_log_device_is_removed_in_the_midst_of_destroying_renaming_and_rolling_back() {
    for seed in 0..12 {
        let rig = rig();
        let own = rig.clone();
        rig.run(seed, async move {
            let pool = own.create().await;
            for name in &ABOVE[1..] {
                pool.create_dataset(name, Content::FileSystem(Default::default()), Vec::new()).await.unwrap();
            }
            for above in ABOVE {
                make_volume(&pool, &format!("{above}/v0"), SIZE).await;
            }
            pool.export().await.unwrap();
        });
        rig.run(100 + seed, async move {
            // Nothing is in memory yet.
            let pool = open_all(false).await;
            let done = Arc::new(AtomicBool::new(false));
            let mut tasks = Vec::new();
            for i in 0..2 {
                let seed = 1000 * seed + 10 * i;
                for (k, work) in (0..).zip([Work::Change, Work::Write, Work::Open]) {
                    tasks.push(repeat(&pool, seed + k, &done, work));
                }
            }
            for _ in 0..8 {
                come_and_go(&pool).await.unwrap();
            }
            done.store(true, Ordering::Relaxed);
            for task in tasks {
                task.await;
            }
            pool.sync().await.unwrap();
            assert_eq!(pool.problems(), Vec::<String>::new(), "seed {seed}");
            let there: BTreeSet<_> = pool.dsl().heads().await.unwrap().into_keys().collect();
            let logs = pool.intent_logs();
            assert!(logs.iter().all(|log| there.iter().any(|id| id.0 == log.objset().id().0)));
            verify(&pool).await;
            pool.export().await.unwrap();
        });
        rig.run(200 + seed, async move {
            let pool = open_all(false).await;
            verify(&pool).await;
            assert_eq!(pool.problems(), Vec::<String>::new(), "seed {seed}");
            pool.export().await.unwrap();
        });
    }
}
