//! A dataset is opened at the very time at which it is destroyed: the change comes between two given steps of
//! the opening, and each step has its turn.
//!
//! Nothing of the datasets is in memory, so that an opening waits for the disk many times. It is polled so often, and no
//! more until the change is done, or waits for the opening.

use super::{BLOCK, Rig, cache, host, make_volume, verify};
use crate::{OpenOptions, Pool};
use dsl::DestroySpec;
use std::pin::pin;
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
            let volume = pool.open_volume(&name(n)).await.unwrap();
            volume.write_durable(0, Buf::copy_from(&[1; BLOCK as usize])).await.unwrap();
        }
        pool.export().await.unwrap();
    });
    rig
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
        cache: cache.clone(),
        hub: Default::default(),
        tunables: Default::default(),
    };
    let pool = crate::open(&rig.candidate().await, options).await.unwrap();
    pool.sync().await.unwrap();
    cache.clear();
    pool
}

/// Goes through the steps of `work` until one is never reached, each on a pool that was just opened.
fn at_each_step<F>(work: fn(Pool, u32) -> F)
where
    F: Future<Output = bool> + Send + 'static,
{
    let left = left();
    for steps in 0.. {
        let rig = Rig { disks: left.disks.fork(), ..left.clone() };
        let own = rig.clone();
        let was_reached = rig.run(u64::from(steps), async move {
            let pool = open_cold(&own).await;
            let was_reached = work(pool.clone(), steps).await;
            for _ in 0..2 {
                pool.sync().await.unwrap_or_else(|e| panic!("at step {steps}: {e}"));
            }
            assert_eq!(pool.problems(), Vec::<String>::new(), "at step {steps}");
            verify(&pool).await;
            pool.export().await.unwrap();
            was_reached
        });
        if !was_reached {
            assert!(steps >= STEPS_MIN, "{steps} steps");
            return;
        }
    }
}

/// An opening that had read the dataset before it was destroyed, and its blocks after that, left it listed as open: every
/// sync from then on met "open object: not found", and the pool was suspended.
#[test]
fn a_dataset_that_is_opened_while_it_is_destroyed_is_open_or_destroyed() {
    at_each_step(|pool, steps| async move {
        let own = pool.clone();
        let opening = async move { own.dsl().open_by_name(&name(0)).await };
        let mut destroying = None;
        let (opened, was_reached) = interrupted(opening, steps, async {
            destroying = Some(world::spawn(destroy(pool.clone(), 0)));
            world::sleep(PAUSE).await;
        })
        .await;
        let Some(destroying) = destroying else { return was_reached };
        match (destroying.await, opened) {
            (Ok(()), Err(e)) if e.kind() == Kind::NotFound => {}
            (Err(e), Ok(dataset)) if e.kind() == Kind::Busy => {
                // It is used by this test until a sync has seen it.
                pool.sync().await.unwrap();
                drop(dataset);
            }
            (destroyed, opened) => panic!("at step {steps}: {destroyed:?}, {opened:?}"),
        }
        was_reached
    });
}

/// The removal of a log device listed the datasets and then opened each: one that was destroyed in between made it fail.
#[test]
fn all_logs_are_emptied_while_a_dataset_is_destroyed() {
    at_each_step(|pool, steps| async move {
        let own = pool.clone();
        let emptying = async move { own.empty_logs().await };
        let mut destroying = None;
        let (emptied, was_reached) = interrupted(emptying, steps, async {
            destroying = Some(world::spawn(destroy(pool.clone(), VOLUMES - 1)));
            world::sleep(PAUSE).await;
        })
        .await;
        emptied.unwrap_or_else(|e| panic!("at step {steps}: {e}"));
        let Some(destroying) = destroying else { return was_reached };
        match destroying.await {
            Ok(()) => {
                assert_eq!(pool.dsl().find(&name(VOLUMES - 1)).await.unwrap_err().kind(), Kind::NotFound)
            }
            // Its log is being emptied.
            Err(e) if e.kind() == Kind::Busy => {}
            Err(e) => panic!("at step {steps}: {e}"),
        }
        was_reached
    });
}
