//! Properties of datasets that clients notice.

use super::{BLOCK, Rig, VOLUME, fill, make_volume, noise, read_all};
use crate::Pool;
use dsl::props::{Prop, PropName, Value};
use units::Kind;
use vdev::Layout;
use world::Buf;

const SIZE: u64 = 64 * BLOCK;

async fn set(pool: &Pool, prop: Prop, value: u64) {
    let set = pool.change("set", move |pool, tx| async move {
        pool.dsl().set(&tx, VOLUME, &PropName::Native(prop), &Value::Number(value)).await
    });
    set.await.unwrap();
}

fn device_reads(pool: &Pool) -> u64 {
    pool.tree().leaves().iter().map(|leaf| leaf.stats.snapshot().read.ops).sum()
}

/// `primarycache` was accepted, and everything was kept in memory all the same.
#[test]
fn what_primarycache_excludes_is_read_again_and_all_else_is_not() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(1, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, SIZE).await;
        for (code, seed) in [(2, 1), (1, 2), (0, 3), (2, 4)] {
            set(&pool, Prop::PrimaryCache, code).await;
            fill(&pool, VOLUME, seed).await;
            pool.sync().await.unwrap();
            for _ in 0..2 {
                assert!(read_all(&pool, VOLUME).await.unwrap() == noise(seed, SIZE as usize));
            }
            let before = device_reads(&pool);
            assert!(read_all(&pool, VOLUME).await.unwrap() == noise(seed, SIZE as usize));
            let asked = device_reads(&pool) - before;
            assert_eq!(asked == 0, code == 2, "primarycache {code}: {asked} reads");
        }
        pool.export().await.unwrap();
    });
}

/// `readonly=on` of a volume was accepted, and its clients wrote on.
#[test]
fn a_volume_that_is_readonly_is_not_written_to_until_it_is_not() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(2, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, SIZE).await;
        fill(&pool, VOLUME, 1).await;
        let volume = pool.open_volume(VOLUME).await.unwrap();
        set(&pool, Prop::ReadOnly, 1).await;
        assert!(volume.is_read_only(), "also for those who have it open");
        let write = || volume.write(0, Buf::copy_from(&noise(9, BLOCK as usize)));
        assert_eq!(write().await.unwrap_err().kind(), Kind::ReadOnly);
        assert_eq!(volume.trim(0, BLOCK).await.unwrap_err().kind(), Kind::ReadOnly);
        volume.flush().await.unwrap();
        assert!(read_all(&pool, VOLUME).await.unwrap() == noise(1, SIZE as usize));
        set(&pool, Prop::ReadOnly, 0).await;
        write().await.unwrap();
        drop(volume);
        pool.export().await.unwrap();
    });
}
