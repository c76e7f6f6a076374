//! Volumes that shrink and grow under their writers.

use super::{BLOCK, Rig, VOLUME, make_volume, read_all, verify};
use crate::Pool;
use sim::Rng;
use std::time::Duration;
use units::Kind;
use vdev::Layout;
use world::Buf;
use zvol::Volume;

const SIZE: u64 = 64 * BLOCK;
const SMALL: u64 = 16 * BLOCK;

async fn resize(pool: &Pool, volume: &Volume, size: u64) {
    let volume = volume.clone();
    pool.change("resize", move |_, tx| async move { volume.resize(&tx, size).await }).await.unwrap();
}

/// Writes, zeros and trims in the part that comes and goes, until the end has moved.
async fn write(volume: Volume, mut rng: Rng) {
    loop {
        let offset = SMALL + rng.below((SIZE - SMALL) / 512 - 40) * 512;
        let len = 512 * (1 + rng.below(40));
        let done = match rng.below(8) {
            0 => volume.zero(offset, len).await,
            1 => volume.trim(offset, len).await,
            kind => volume.write_parts(offset, vec![Buf::copy_from(&vec![7; len as usize])], kind == 2).await,
        };
        match done {
            Err(e) if e.kind() == Kind::Invalid => return,
            done => done.unwrap(),
        }
        if rng.below(4) == 0 {
            world::sleep(Duration::from_micros(rng.below(200))).await;
        }
    }
}

/// A write that had passed its check, and then waited, was made beyond the end that the volume had by then; so was one that
/// went into a later txg than the resize, before that was made. Grown again, the volume showed it.
#[test]
fn what_is_cut_off_stays_away_whatever_was_being_written_there() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    for seed in 0..6 {
        let (own, first) = (rig.clone(), seed == 0);
        rig.run(seed, async move {
            let pool = match first {
                true => own.create().await,
                false => own.open(false).await.unwrap(),
            };
            if first {
                make_volume(&pool, VOLUME, SIZE).await;
            }
            let volume = pool.open_volume(VOLUME).await.unwrap();
            let mut rng = Rng::new(seed);
            for _ in 0..15 {
                let start = |i| world::spawn(write(volume.clone(), Rng::new(rng.next_u64() + i)));
                let writers: Vec<_> = (0..6).map(start).collect();
                world::sleep(Duration::from_micros(rng.below(3000))).await;
                resize(&pool, &volume, SMALL).await;
                for writer in writers {
                    writer.await;
                }
                if rng.below(2) == 0 {
                    pool.sync().await.unwrap();
                }
                resize(&pool, &volume, SIZE).await;
                let bytes = read_all(&pool, VOLUME).await.unwrap();
                let left = bytes[SMALL as usize..].iter().position(|byte| *byte != 0);
                assert_eq!(left, None, "seed {seed}");
            }
            verify(&pool).await;
            assert_eq!(pool.problems(), Vec::<String>::new());
            drop(volume);
            pool.export().await.unwrap();
        });
    }
}
