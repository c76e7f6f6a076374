//! Several pools of one process.

use super::{Rig, cache, fill, make_volume, noise, read_all, verify};
use vdev::Layout;

const SIZE: u64 = 2 << 20;

/// Pools that began alike have blocks of the same place and txg. In the cache that all pools of a process share they were
/// taken for each other's, and what came of that was written.
#[test]
fn pools_that_share_a_cache_have_their_own_blocks() {
    let rig = Rig::new(Layout::Stripe, 2, 96 << 20);
    let own = rig.clone();
    rig.run(1, async move {
        let cache = cache();
        let one = own.create_on("one", 0..1, cache.clone(), |_| true).await;
        let other = own.create_on("other", 1..2, cache, |_| true).await;
        for round in 0..3 {
            for (pool, name, seed) in [(&one, "one/v", 1), (&other, "other/v", 2)] {
                if round == 0 {
                    make_volume(pool, name, SIZE).await;
                }
                fill(pool, name, seed + round).await;
            }
            one.sync().await.unwrap();
            other.sync().await.unwrap();
            for (pool, name, seed) in [(&one, "one/v", 1), (&other, "other/v", 2)] {
                assert!(read_all(pool, name).await.unwrap() == noise(seed + round, SIZE as usize), "{name}");
                verify(pool).await;
            }
        }
        one.close().await.unwrap();
        other.close().await.unwrap();
    });
}
