//! A pool that one opens while another is about to leave it: as another process does, or requests of a killed one that are
//! still on their way to the devices.

use super::{BLOCK, Rig, VOLUME, fill, make_volume, noise, read_all, verify};
use sim::{Disks, Model, Rng};
use std::time::Duration;
use units::Kind;
use vdev::Layout;

const SIZE: u64 = 16 * BLOCK;
const ROUNDS: u64 = 60;

/// Much happens between the first look at a pool and the moment when its devices are taken.
fn slow_to_read(layout: Layout, count: usize) -> Rig {
    let rig = Rig { disks: Disks::new(), layout, count };
    for i in 0..count {
        rig.disks.add(rig.path(i), 96 << 20, Model { read: Duration::from_millis(3), ..Model::NVME });
    }
    rig
}

/// What is opened is never older than what the one before has written last.
#[test]
fn a_pool_is_opened_as_its_last_owner_left_it() {
    for (seed, rig) in [(1, slow_to_read(Layout::Stripe, 1)), (2, slow_to_read(Layout::Mirror, 2))] {
        let own = rig.clone();
        rig.run(seed, async move {
            let mut rng = Rng::new(seed);
            let mut pool = own.create().await;
            make_volume(&pool, VOLUME, SIZE).await;
            for round in 0..ROUNDS {
                let (before, rest) = (pool, Duration::from_micros(rng.below(100_000)));
                let leaving = world::spawn(async move {
                    world::sleep(rest).await;
                    fill(&before, VOLUME, round).await;
                    // No log has this.
                    make_volume(&before, &format!("tank/{round}"), BLOCK).await;
                    before.close().await.unwrap();
                });
                pool = loop {
                    match own.open(false).await {
                        Ok(pool) => break pool,
                        Err(e) => assert_eq!(e.kind(), Kind::Busy, "round {round}: {e}"),
                    }
                    world::sleep(Duration::from_micros(rng.below(9000))).await;
                };
                leaving.await;
                let made = pool.open_volume(&format!("tank/{round}")).await;
                assert!(made.is_ok(), "round {round}: what was made last is lost: {made:?}");
                drop(made);
                assert!(read_all(&pool, VOLUME).await.unwrap() == noise(round, SIZE as usize));
            }
            verify(&pool).await;
            pool.close().await.unwrap();
        });
    }
}
