//! Every tunable at its smallest and at its largest: slower perhaps, but nothing stands still and nothing spins.

use super::{BLOCK, Rig, VOLUME, fill, make_volume, noise, read_all, verify};
use crate::Pool;
use futures_util::future::{Either, select};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tunables::{Tunable, Tunables};
use units::Txg;
use vdev::Layout;
use world::Buf;

const BLOCKS: u64 = 128;
/// In simulated time. The longest delay of a writer is a tenth of a second.
const BOUND: Duration = Duration::from_secs(300);
/// Blocks may be freed one in a txg, and every write may end one.
const SYNCS: u64 = 3000;
/// A pool that is not used syncs nothing for ever.
const IDLE: Duration = Duration::from_secs(3600);
const SYNCS_IDLE: u64 = 10;

async fn work(pool: &Pool) {
    make_volume(pool, VOLUME, BLOCKS * BLOCK).await;
    fill(pool, VOLUME, 1).await;
    let volume = pool.open_volume(VOLUME).await.unwrap();
    let writers: Vec<_> = (0..8)
        .map(|i| {
            let volume = volume.clone();
            world::spawn(async move {
                for block in (i..BLOCKS).step_by(8) {
                    let data = Buf::copy_from(&noise(1000 + block, BLOCK as usize));
                    volume.write(block * BLOCK, data).await.unwrap();
                    if block % 32 < 8 {
                        volume.flush().await.unwrap();
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await;
    }
    volume.trim(0, 16 * BLOCK).await.unwrap();
    volume.flush().await.unwrap();
    drop(volume);
    let expected: Vec<u8> = (0..BLOCKS)
        .flat_map(|block| match block {
            0..16 => vec![0; BLOCK as usize],
            _ => noise(1000 + block, BLOCK as usize),
        })
        .collect();
    assert!(read_all(pool, VOLUME).await.unwrap() == expected);
    make_volume(pool, "tank/gone", BLOCKS * BLOCK).await;
    fill(pool, "tank/gone", 2).await;
    pool.change("destroy", |pool, tx| async move {
        let plan = pool.dsl().plan_destroy("tank/gone", false).await?;
        pool.dsl().destroy(&tx, &plan).await
    })
    .await
    .unwrap();
    while pool.dsl().has_frees().await.unwrap() {
        pool.sync().await.unwrap();
    }
    verify(pool).await;
}

/// The pool with the tunable as it is to be, from the start and changed in the midst of it all.
async fn under(rig: Rig, tunable: Tunable, value: u64) {
    let tunables = Tunables::new();
    tunables.set(tunable, value).unwrap();
    let pool = rig.create().await;
    pool.export().await.unwrap();
    let pool = rig.open_tuned(false, tunables.clone()).await.unwrap();
    let (began, first) = (world::now(), pool.txgs().synced_txg());
    let is_over = Arc::new(AtomicBool::new(false));
    let syncs = |since: Txg| pool.txgs().synced_txg().0 - since.0;
    let swinging = world::spawn(swing(tunables.clone(), is_over.clone(), tunable, value));
    // What never comes to its end syncs without end, too often to wait for the bound of time.
    let spins = async {
        while syncs(first) < SYNCS {
            world::sleep(Duration::from_millis(10)).await;
        }
    };
    let work = async { matches!(select(pin!(work(&pool)), pin!(spins)).await, Either::Left(_)) };
    let ended = world::timeout(BOUND, work).await;
    let (txgs, passed) = (syncs(first), world::now().since(began));
    assert!(ended == Some(true), "{tunable}={value}: not done after {passed:?}, {txgs} txgs");
    is_over.store(true, Ordering::Relaxed);
    swinging.await;
    tunables.set(tunable, value).unwrap();
    pool.sync().await.unwrap();
    let idle = pool.txgs().synced_txg();
    world::sleep(IDLE).await;
    assert!(syncs(idle) <= SYNCS_IDLE, "{tunable}={value}: {} txgs of nothing", syncs(idle));
    assert_eq!(pool.problems(), Vec::<String>::new(), "{tunable}={value}");
    pool.export().await.unwrap();
}

/// Between its default and this value.
async fn swing(tunables: Arc<Tunables>, is_over: Arc<AtomicBool>, tunable: Tunable, value: u64) {
    for turn in 0u64.. {
        world::sleep(Duration::from_millis(70)).await;
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let next = if turn % 2 == 0 { tunable.definition().default } else { value };
        tunables.set(tunable, next).unwrap();
    }
}

#[test]
fn with_every_tunable_at_its_smallest_and_its_largest_work_ends_and_rest_is_rest() {
    for &tunable in Tunable::ALL {
        let definition = tunable.definition();
        for value in [definition.min, definition.max] {
            let rig = Rig::new(Layout::Mirror, 2, 96 << 20);
            rig.run(1, under(rig.clone(), tunable, value));
        }
    }
}
