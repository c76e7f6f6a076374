//! A pool that was left can be opened again at once, whatever was still under way.

use super::{BLOCK, Rig, VOLUME, fill, make_volume, noise, verify};
use crate::Pool;
use sim::{Fault, Rng};
use units::Kind;
use vdev::Layout;
use world::Buf;

const SIZE: u64 = 64 * BLOCK;
const ROUNDS: u64 = 25;

/// Reads in order, so that more is read in advance, writes, flushes; some of it goes on by itself when this returns.
async fn work(pool: &Pool, rng: &mut Rng) {
    let volume = pool.open_volume(VOLUME).await.unwrap();
    for _ in 0..1 + rng.below(3) {
        let (volume, at) = (volume.clone(), rng.below(SIZE / BLOCK / 2));
        drop(world::spawn(async move {
            for i in 0..16 {
                if volume.read((at + i) * BLOCK, BLOCK).await.is_err() {
                    return;
                }
            }
        }));
    }
    let (at, seed) = (rng.below(SIZE / BLOCK) * BLOCK, rng.next_u64());
    volume.write(at, Buf::copy_from(&noise(seed, BLOCK as usize))).await.unwrap();
    if rng.below(2) == 0 {
        let flushed = world::spawn(async move { volume.flush().await });
        if rng.below(2) == 0 {
            flushed.await.unwrap();
        }
    }
}

#[test]
fn a_pool_is_opened_again_the_moment_it_was_left() {
    let rigs = [
        (1, Rig::new(Layout::Stripe, 1, 96 << 20)),
        (2, Rig::new(Layout::Mirror, 2, 96 << 20)),
        (3, Rig::new(Layout::Raidz { parity: 1 }, 3, 96 << 20)),
        (4, Rig::new(Layout::Mirror, 3, 96 << 20)),
    ];
    for (seed, rig) in rigs {
        let own = rig.clone();
        rig.run(seed, async move {
            let pool = own.create().await;
            make_volume(&pool, VOLUME, SIZE).await;
            fill(&pool, VOLUME, seed).await;
            pool.export().await.unwrap();
            let mut rng = Rng::new(seed);
            // A pool that was left is still held: that is not what closes its devices.
            let mut left = vec![pool];
            for round in 0..ROUNDS {
                let pool = own.open(false).await.unwrap_or_else(|e| panic!("round {round}: {e}"));
                if seed == 4 {
                    // A copy that fails now and then: the group looks into it by itself.
                    let fault =
                        Fault { write_errors_ppm: 20_000, read_errors_ppm: 20_000, ..Fault::default() };
                    own.disks.get(own.path(0)).unwrap().set_fault(fault);
                }
                work(&pool, &mut rng).await;
                let way = rng.below(3);
                if way == 0 { pool.close().await } else { pool.export().await }.unwrap();
                if seed == 4 {
                    own.disks.get(own.path(0)).unwrap().set_fault(Fault::default());
                }
                left.push(pool);
            }
            assert!(left.iter().all(|pool| pool.tree().leaves().iter().all(|leaf| leaf.detail().is_some())));
        });
    }
}

#[test]
fn a_closed_pool_says_so_to_whoever_still_reads() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(5, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, SIZE).await;
        fill(&pool, VOLUME, 5).await;
        pool.export().await.unwrap();
        let pool = own.open(false).await.unwrap();
        let volume = pool.open_volume(VOLUME).await.unwrap();
        pool.export().await.unwrap();
        let error = volume.read(0, BLOCK).await.unwrap_err();
        assert!(error.to_string().contains("closed with its pool"), "{error}");
        assert_eq!(pool.tree().leaves()[0].errors().read, 0, "no fault of the device");
        let pool = own.open(true).await.unwrap();
        pool.export().await.unwrap();
        own.open(false).await.unwrap().export().await.unwrap();
    });
}

/// Two pools were called alike, and what was asked of one of them came to the other or failed, where the MOS of a pool
/// called it as its labels did not.
#[test]
fn a_pool_has_the_name_of_its_labels_and_its_mos_has_it_from_then_on() {
    let rig = Rig::all().remove(0);
    let own = rig.clone();
    rig.run(5, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, BLOCK).await;
        pool.export().await.unwrap();
        for refused in ["a/b", "a@b", "mirror", ""] {
            assert_eq!(own.open_labelled(refused).await.unwrap_err().kind(), Kind::Invalid, "{refused}");
        }
        let pool = own.open_labelled("other").await.unwrap();
        assert_eq!(pool.name(), "other");
        assert_eq!(pool.dsl().children("other").await.unwrap().len(), 1);
        make_volume(&pool, "other/new", BLOCK).await;
        pool.export().await.unwrap();
        let pool = own.open(false).await.unwrap();
        assert_eq!((pool.name(), pool.config().name.as_str()), ("other".into(), "other"));
        verify(&pool).await;
        pool.export().await.unwrap();
    });
}

/// It was busy for as long as its last txg took, when no program had it any more.
#[test]
fn a_dataset_that_is_being_synced_can_be_destroyed() {
    let rig = Rig::all().remove(0);
    let own = rig.clone();
    rig.run(6, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, SIZE).await;
        let volume = pool.open_volume(VOLUME).await.unwrap();
        for block in 0..SIZE / BLOCK {
            let noise = Buf::copy_from(&noise(block, BLOCK as usize));
            volume.write(block * BLOCK, noise).await.unwrap();
        }
        drop(volume);
        let syncing = {
            let pool = pool.clone();
            world::spawn(async move { pool.sync().await.unwrap() })
        };
        let mut syncing = std::pin::pin!(syncing);
        let mut planned = 0;
        while world::timeout(std::time::Duration::from_micros(50), &mut syncing).await.is_none() {
            assert_eq!(pool.dsl().plan_destroy(VOLUME, false).await.unwrap().names, [VOLUME]);
            planned += 1;
        }
        assert!(planned > 3, "{planned}: a sync that was too short shows nothing");
        pool.export().await.unwrap();
    });
}
