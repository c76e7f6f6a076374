//! A pool that is full.

use super::{BLOCK, Rig, make_volume, noise, verify};
use crate::Pool;
use units::Kind;
use vdev::Layout;
use world::Buf;

/// Writes until there is no room; answers how many blocks went in.
async fn write_until_full(pool: &Pool, name: &str) -> u64 {
    let volume = pool.open_volume(name).await.unwrap();
    for block in 0..volume.size() / BLOCK {
        let data = Buf::copy_from(&noise(block, BLOCK as usize));
        let written = match volume.write(block * BLOCK, data).await {
            Ok(()) if block % 64 == 63 => volume.flush().await,
            other => other,
        };
        if let Err(e) = written {
            assert_eq!(e.kind(), Kind::NoSpace, "{e}");
            return block;
        }
    }
    panic!("a volume larger than the pool was written to its end");
}

#[test]
fn a_full_pool_says_so_and_frees_still_work() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(1, async move {
        let pool = own.create().await;
        make_volume(&pool, "tank/a", 1 << 30).await;
        let written = write_until_full(&pool, "tank/a").await;
        assert!(written * BLOCK > 30 << 20, "only {written} blocks");
        let report = pool.report();
        assert!(report.free > 0, "nothing is left of the slop space");

        let volume = pool.open_volume("tank/a").await.unwrap();
        volume.trim(0, written / 2 * BLOCK).await.unwrap();
        for _ in 0..5 {
            pool.sync().await.unwrap();
            pool.change("touch", |pool, tx| async move { pool.0.touch(&tx).await }).await.unwrap();
        }
        assert!(pool.report().allocated < report.allocated * 3 / 4);
        volume.write(0, Buf::copy_from(&noise(9, BLOCK as usize))).await.unwrap();
        volume.flush().await.unwrap();
        verify(&pool).await;
        assert_eq!(pool.problems(), Vec::<String>::new());
        pool.export().await.unwrap();
        drop((volume, pool));
        let pool = own.open(false).await.unwrap();
        verify(&pool).await;
        pool.export().await.unwrap();
    });
}
