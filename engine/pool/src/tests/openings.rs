//! A dataset is opened at the very time at which it is destroyed: the change comes between two given steps of
//! the opening, and each step has its turn.
//!
//! Nothing of the datasets is in memory, so that an opening waits for the disk many times. It is polled so often, and no
//! more until the change is done, or waits for the opening.

use super::{BLOCK, Rig, VOLUME, cache, fill, host, make_volume, noise, read_all, verify};
use crate::{OpenOptions, Pool, RollbackReach};
use dmu::Tx;
use dsl::DestroySpec;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use units::{Kind, Result};
use vdev::Layout;
use world::Buf;

const VOLUMES: u64 = 3;
const SIZE: u64 = 4 * BLOCK;
/// A change that is not done after this waits for the opening.
const PAUSE: Duration = Duration::from_secs(5);
/// Of an opening from the disk: fewer steps would have shown nothing.
const STEPS_MIN: u32 = 4;
/// Where all is in memory, logs are closed and a txg is waited for.
const STEPS_MIN_WARM: u32 = 3;

fn name(n: u64) -> String {
    format!("tank/v{n}")
}

/// A pool whose volumes have an intent log each.
fn left() -> Rig {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(1, async move {
        let pool = own.create().await;
        for n in 0..VOLUMES {
            make_volume(&pool, &name(n), SIZE).await;
            write(&pool, &name(n), 0).await;
            pool.snapshot(vec![snapshot(n)], Vec::new()).await.unwrap();
            write(&pool, &name(n), 1).await;
        }
        pool.export().await.unwrap();
    });
    rig
}

/// A snapshot of before the second block.
fn snapshot(n: u64) -> String {
    format!("{}@s", name(n))
}

fn block(n: u64) -> Vec<u8> {
    noise(n, BLOCK as usize)
}

/// Writes one block of a volume, and is done when it is in the intent log.
async fn write(pool: &Pool, name: &str, n: u64) {
    let volume = pool.open_volume(name).await.unwrap();
    volume.write_durable(n * BLOCK, Buf::copy_from(&block(n))).await.unwrap();
}

/// What a volume holds of which these blocks were written.
fn blocks(written: &[u64]) -> Vec<u8> {
    let of = |n| if written.contains(&n) { block(n) } else { vec![0; BLOCK as usize] };
    (0..SIZE / BLOCK).flat_map(of).collect()
}

async fn destroy(pool: Pool, n: u64) -> Result<()> {
    let spec = DestroySpec { names: vec![name(n)], recursive: true, ..Default::default() };
    pool.destroy_datasets(spec).await.map(drop)
}

/// Polls `work` so many times, lets `between` run to its end, and goes on. Answers too whether it came to that.
async fn interrupted<T>(
    work: impl Future<Output = T>,
    steps: u32,
    between: impl Future<Output = ()>,
) -> (T, bool) {
    let mut work = pin!(work);
    let mut polls = 0;
    let early = std::future::poll_fn(|cx| {
        if polls == steps {
            return Poll::Ready(None);
        }
        polls += 1;
        match work.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if polls == steps => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    });
    if let Some(done) = early.await {
        return (done, false);
    }
    between.await;
    (work.await, true)
}

/// The pool of a rig, of whose datasets nothing is in memory any more: opening a pool looks into each for its log.
async fn open_cold(rig: &Rig) -> Pool {
    let cache = cache();
    let options = OpenOptions {
        read_only: false,
        name: None,
        host: host(),
        force: false,
        missing_log: false,
        copy_over: false,
        cache: cache.clone(),
        hub: Default::default(),
        tunables: Default::default(),
    };
    let pool = crate::open(&rig.candidate().await, options).await.unwrap();
    pool.sync().await.unwrap();
    cache.clear();
    pool
}

/// What a step of the test has seen.
struct Seen {
    /// It came to that step.
    was_reached: bool,
    /// Volumes and what they must hold from now on.
    holds: Vec<(String, Vec<u8>)>,
}

impl Seen {
    fn of(was_reached: bool) -> Seen {
        Seen { was_reached, holds: Vec::new() }
    }
}

async fn check(pool: &Pool, holds: &[(String, Vec<u8>)], step: u32) {
    for (name, expected) in holds {
        assert!(
            read_all(pool, name).await.unwrap() == *expected,
            "at step {step}: '{name}' holds something else"
        );
    }
    assert_eq!(pool.problems(), Vec::<String>::new(), "at step {step}");
    verify(pool).await;
}

/// Goes through the steps of `work` until one is never reached, each on a pool that was just opened.
fn at_each_step<F>(steps_min: u32, work: fn(Pool, u32) -> F)
where
    F: Future<Output = Seen> + Send + 'static,
{
    let left = left();
    for steps in 0.. {
        let rig = Rig { disks: left.disks.fork(), ..left.clone() };
        let own = rig.clone();
        let was_reached = rig.run(u64::from(steps), async move {
            let pool = open_cold(&own).await;
            let seen = work(pool.clone(), steps).await;
            for _ in 0..2 {
                pool.sync().await.unwrap_or_else(|e| panic!("at step {steps}: {e}"));
            }
            check(&pool, &seen.holds, steps).await;
            pool.export().await.unwrap();
            drop(pool);
            let pool = open_cold(&own).await;
            check(&pool, &seen.holds, steps).await;
            pool.export().await.unwrap();
            seen.was_reached
        });
        if !was_reached {
            assert!(steps >= steps_min, "{steps} steps");
            return;
        }
    }
}

/// An opening that had read the dataset before it was destroyed, and its blocks after that, left it listed as open: every
/// sync from then on met "open object: not found", and the pool was suspended.
#[test]
fn a_dataset_that_is_opened_while_it_is_destroyed_is_open_or_destroyed() {
    at_each_step(STEPS_MIN, |pool, steps| async move {
        let own = pool.clone();
        let opening = async move { own.dsl().open_by_name(&name(0)).await };
        let mut destroying = None;
        let (opened, was_reached) = interrupted(opening, steps, async {
            destroying = Some(world::spawn(destroy(pool.clone(), 0)));
            world::sleep(PAUSE).await;
        })
        .await;
        let Some(destroying) = destroying else { return Seen::of(was_reached) };
        match (destroying.await, opened) {
            (Ok(()), Err(e)) if e.kind() == Kind::NotFound => {}
            (Err(e), Ok(dataset)) if e.kind() == Kind::Busy => {
                // It is used by this test until a sync has seen it.
                pool.sync().await.unwrap();
                drop(dataset);
            }
            (destroyed, opened) => panic!("at step {steps}: {destroyed:?}, {opened:?}"),
        }
        Seen::of(was_reached)
    });
}

/// The removal of a log device listed the datasets and then opened each: one that was destroyed in between made it fail.
#[test]
fn all_logs_are_emptied_while_a_dataset_is_destroyed() {
    at_each_step(STEPS_MIN, |pool, steps| async move {
        let own = pool.clone();
        let emptying = async move { own.empty_logs().await };
        let mut destroying = None;
        let (emptied, was_reached) = interrupted(emptying, steps, async {
            destroying = Some(world::spawn(destroy(pool.clone(), VOLUMES - 1)));
            world::sleep(PAUSE).await;
        })
        .await;
        emptied.unwrap_or_else(|e| panic!("at step {steps}: {e}"));
        let Some(destroying) = destroying else { return Seen::of(was_reached) };
        match destroying.await {
            Ok(()) => {
                assert_eq!(pool.dsl().find(&name(VOLUMES - 1)).await.unwrap_err().kind(), Kind::NotFound)
            }
            // Its log is being emptied.
            Err(e) if e.kind() == Kind::Busy => {}
            Err(e) => panic!("at step {steps}: {e}"),
        }
        Seen::of(was_reached)
    });
}

/// A removal that had listed the datasets looked for one by the name that it had had: it failed on each rename.
#[test]
fn all_logs_are_emptied_while_datasets_are_renamed() {
    at_each_step(STEPS_MIN, |pool, steps| async move {
        let own = pool.clone();
        let emptying = async move { own.empty_logs().await };
        let mut renaming = None;
        let (emptied, was_reached) = interrupted(emptying, steps, async {
            // The last one takes the name of the first.
            let rename = async |pool: &Pool, from: String, to: String| {
                let work =
                    move |pool: Pool, tx: Arc<Tx>| async move { pool.dsl().rename(&tx, &from, &to).await };
                pool.change("rename", work).await
            };
            let own = pool.clone();
            renaming = Some(world::spawn(async move {
                rename(&own, name(0), "tank/first".into()).await.unwrap();
                rename(&own, name(VOLUMES - 1), name(0)).await.unwrap();
            }));
            world::sleep(PAUSE).await;
        })
        .await;
        emptied.unwrap_or_else(|e| panic!("at step {steps}: {e}"));
        let Some(renaming) = renaming else { return Seen::of(was_reached) };
        renaming.await;
        assert_eq!(pool.dsl().find(&name(VOLUMES - 1)).await.unwrap_err().kind(), Kind::NotFound);
        write(&pool, "tank/first", 3).await;
        let holds = vec![
            ("tank/first".into(), blocks(&[0, 1, 3])),
            (name(0), blocks(&[0, 1])),
            (name(1), blocks(&[0, 1])),
        ];
        Seen { was_reached, holds }
    });
}

/// A dataset that is rolled back while its log is being emptied is as its snapshot, or as it was: the log of what is no
/// more is neither freed twice nor written into what is there now.
#[test]
fn all_logs_are_emptied_while_a_dataset_is_rolled_back() {
    at_each_step(STEPS_MIN_WARM, |pool, steps| async move {
        for n in 0..VOLUMES {
            write(&pool, &name(n), 2).await;
        }
        let own = pool.clone();
        rolled_back_at(&pool, steps, async move { own.empty_logs().await }, &[0, 1, 2]).await
    });
}

/// An opening that had read the dataset before it was rolled back, and was done after that, wrote what was no more over
/// what was there.
#[test]
fn a_dataset_that_is_opened_while_it_is_rolled_back_is_opened_as_its_snapshot() {
    at_each_step(STEPS_MIN, |pool, steps| async move {
        let own = pool.clone();
        let opening = async move { own.dsl().open_by_name(&name(0)).await.map(drop) };
        rolled_back_at(&pool, steps, opening, &[0, 1]).await
    });
}

/// Rolls the first volume, of which these blocks were written, back at a step of `work`, and writes to it then.
async fn rolled_back_at(
    pool: &Pool,
    steps: u32,
    work: impl Future<Output = Result<()>>,
    written: &[u64],
) -> Seen {
    let mut rolling = None;
    let (done, was_reached) = interrupted(work, steps, async {
        let own = pool.clone();
        let reach = RollbackReach { newer: true, clones: false };
        rolling = Some(world::spawn(async move { own.rollback(&name(0), &snapshot(0), reach).await }));
        world::sleep(PAUSE).await;
    })
    .await;
    done.unwrap_or_else(|e| panic!("at step {steps}: {e}"));
    let Some(rolling) = rolling else { return Seen::of(was_reached) };
    let mut written = match rolling.await {
        Ok(_) => vec![0],
        Err(e) if e.kind() == Kind::Busy => written.to_vec(),
        Err(e) => panic!("at step {steps}: {e}"),
    };
    write(pool, &name(0), 3).await;
    written.push(3);
    Seen { was_reached, holds: vec![(name(0), blocks(&written))] }
}

/// A destroy that finds nothing in its way may still be overtaken by an opening: what was written then was never synced, and
/// the pool failed some txgs later.
#[test]
fn what_is_written_to_a_volume_that_is_gone_is_an_error_and_harms_nothing() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(41, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, 1 << 20).await;
        fill(&pool, VOLUME, 1).await;
        let volume = pool.open_volume(VOLUME).await.unwrap();
        volume.write(0, Buf::copy_from(&[1; 4096])).await.unwrap();
        let spec = DestroySpec { names: vec![VOLUME.into()], ..DestroySpec::default() };
        pool.destroy_datasets(spec).await.unwrap();
        make_volume(&pool, VOLUME, 1 << 20).await;
        for txg in 0..12 {
            let done = volume.write(txg * 4096, Buf::copy_from(&[2; 4096])).await;
            assert_eq!(done.unwrap_err().kind(), Kind::NotFound);
            assert_eq!(volume.zero(0, 8192).await.unwrap_err().kind(), Kind::NotFound);
            fill(&pool, VOLUME, 2 + txg).await;
            pool.sync().await.unwrap();
        }
        drop(volume);
        assert!(read_all(&pool, VOLUME).await.unwrap() == noise(13, 1 << 20));
        verify(&pool).await;
        pool.export().await.unwrap();
    });
}
