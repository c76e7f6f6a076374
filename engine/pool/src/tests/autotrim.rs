//! What is freed is told to the devices, and nothing else.

use super::{Rig, VOLUME, fill, make_volume, noise, read_all, verify};
use crate::Pool;
use dsl::DestroySpec;
use std::time::Duration;

const SIZE: u64 = 8 << 20;
const OTHER: &str = "tank/other";
const REST: Duration = Duration::from_secs(60);

fn trimmed(pool: &Pool) -> u64 {
    pool.tree().leaves().iter().map(|leaf| leaf.stats.snapshot().trim.bytes).sum()
}

async fn destroy(pool: &Pool, name: &str) {
    let spec = DestroySpec { names: vec![name.into()], recursive: true, clones: false, defer: false };
    pool.destroy_datasets(spec).await.unwrap();
}

/// A volume comes and goes, and what was freed ripens.
async fn remake(pool: &Pool, seed: u64) {
    make_volume(pool, VOLUME, SIZE).await;
    fill(pool, VOLUME, seed).await;
    pool.sync().await.unwrap();
    destroy(pool, VOLUME).await;
    for i in 0..4 {
        fill(pool, OTHER, seed + i).await;
        pool.sync().await.unwrap();
    }
    world::sleep(REST).await;
}

/// `autotrim=on` was accepted, kept, shown, and did nothing.
#[test]
fn freed_space_is_trimmed_while_autotrim_is_on_and_nothing_else_is() {
    for rig in Rig::all() {
        let own = rig.clone();
        rig.run(1, async move {
            let pool = own.create().await;
            make_volume(&pool, OTHER, 1 << 20).await;
            remake(&pool, 1).await;
            assert_eq!(trimmed(&pool), 0, "it is off");
            pool.set_property("autotrim", "on").await.unwrap();
            remake(&pool, 2).await;
            let told = trimmed(&pool);
            assert!(told >= SIZE / 2, "{told} bytes");
            assert!(read_all(&pool, OTHER).await.unwrap() == noise(5, 1 << 20));
            verify(&pool).await;
            // It is remembered, and ends where it is switched off.
            pool.export().await.unwrap();
            let pool = own.open(false).await.unwrap();
            fill(&pool, OTHER, 9).await;
            pool.sync().await.unwrap();
            fill(&pool, OTHER, 10).await;
            for _ in 0..4 {
                make_volume(&pool, VOLUME, SIZE).await;
                destroy(&pool, VOLUME).await;
            }
            world::sleep(REST).await;
            assert!(trimmed(&pool) > 0, "an opened pool goes on");
            pool.set_property("autotrim", "off").await.unwrap();
            let told = trimmed(&pool);
            fill(&pool, OTHER, 11).await;
            pool.sync().await.unwrap();
            world::sleep(REST).await;
            assert_eq!(trimmed(&pool), told);
            assert!(read_all(&pool, OTHER).await.unwrap() == noise(11, 1 << 20));
            pool.export().await.unwrap();
        });
    }
}
