//! Reading in order: small blocks that lie side by side come together, and no block answers for another.

use super::heal::{block, place};
use super::{BLOCK, Rig, VOLUME, fill, make_volume, noise};
use crate::Pool;
use units::{Kind, Result};
use vdev::{Layout, Priority};

const SIZE: usize = 4 << 20;
const BLOCKS: u64 = SIZE as u64 / BLOCK;

/// Block after block, as a client in order asks.
async fn in_order(pool: &Pool) -> Vec<Result<Vec<u8>>> {
    let volume = pool.open_volume(VOLUME).await.unwrap();
    let mut blocks = Vec::new();
    for blkid in 0..BLOCKS {
        let read = volume.read(blkid * BLOCK, BLOCK).await;
        blocks.push(read.map(|parts| parts.iter().flat_map(|part| part.to_vec()).collect()));
    }
    blocks
}

/// Operations that were read ahead at the devices: alone, and with others.
fn ahead(pool: &Pool) -> (u64, u64) {
    let classes = pool.tree().leaves().into_iter().map(|leaf| {
        let class = leaf.stats.snapshot().classes[Priority::AsyncRead.index()].clone();
        (class.individual.iter().sum::<u64>(), class.aggregated.iter().sum::<u64>())
    });
    classes.fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
}

async fn cold(rig: &Rig, seed: u64) -> Pool {
    let pool = rig.create().await;
    make_volume(&pool, VOLUME, SIZE as u64).await;
    fill(&pool, VOLUME, seed).await;
    pool.export().await.unwrap();
    drop(pool);
    rig.open(false).await.unwrap()
}

/// Each block of 8K was a task, a place in the queue and a hand-over by itself.
#[test]
fn neighbours_are_read_with_one_operation_of_a_device_that_stands_alone() {
    for rig in Rig::all() {
        let (own, stands_alone) = (rig.clone(), rig.redundancy() == 0);
        rig.run(1, async move {
            let pool = cold(&own, 1).await;
            let read = in_order(&pool).await;
            let read: Vec<u8> = read.into_iter().flat_map(Result::unwrap).collect();
            assert!(read == noise(1, SIZE));
            let (alone, together) = ahead(&pool);
            assert!(alone + together > 0, "it was read ahead");
            if stands_alone {
                assert!(alone + together <= BLOCKS / 8, "{alone} alone, {together} with others");
            }
            let errors: u64 = pool.tree().leaves().iter().map(|leaf| leaf.errors().checksum).sum();
            assert_eq!(errors, 0);
            pool.export().await.unwrap();
        });
    }
}

#[test]
fn a_bad_block_among_neighbours_is_the_only_one_that_fails_and_is_counted() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(2, async move {
        let pool = cold(&own, 3).await;
        let bad = [BLOCKS / 2, BLOCKS / 2 + 1, BLOCKS - 20];
        for blkid in bad {
            let (_, bp) = block(&pool, blkid).await;
            own.disks.get(own.path(0)).unwrap().poke(place(&bp), &[7; 512]);
        }
        let all = noise(3, SIZE);
        for (blkid, read) in in_order(&pool).await.into_iter().enumerate() {
            if bad.contains(&(blkid as u64)) {
                assert_eq!(read.unwrap_err().kind(), Kind::Checksum, "block {blkid}");
            } else {
                let at = blkid * BLOCK as usize;
                assert!(read.unwrap() == all[at..at + BLOCK as usize], "block {blkid}");
            }
        }
        let errors = pool.tree().leaves()[0].errors();
        assert!(errors.checksum >= bad.len() as u64 && errors.read == 0, "{errors:?}");
        pool.export().await.unwrap();
    });
}
