//! Rounds of work, export and import on every layout, beside a model in memory.

use super::{BLOCK, Rig, make_volume, read_all, verify};
use crate::Pool;
use sim::Rng;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;
use world::Buf;

type Model = BTreeMap<String, Vec<u8>>;

const SIZE: u64 = 64 * BLOCK;

async fn write(pool: &Pool, model: &mut Model, rng: &mut Rng, name: &str) {
    let volume = pool.open_volume(name).await.unwrap();
    let bytes = model.get_mut(name).unwrap();
    let at = rng.below(bytes.len() as u64 / 512) * 512;
    let len = (1 + rng.below(40)).min(bytes.len() as u64 / 512 - at / 512) * 512;
    let range = at as usize..(at + len) as usize;
    if rng.below(4) == 0 {
        volume.zero(at, len).await.unwrap();
        bytes[range].fill(0);
    } else {
        let data: Vec<u8> = (0..len).map(|i| (at + i / 64) as u8 ^ rng.next_u64() as u8 & 3).collect();
        volume.write(at, Buf::copy_from(&data)).await.unwrap();
        bytes[range].copy_from_slice(&data);
    }
}

async fn resize(pool: &Pool, model: &mut Model, rng: &mut Rng, name: &str) {
    let size = (1 + rng.below(96)) * BLOCK;
    let volume = pool.open_volume(name).await.unwrap();
    pool.change("resize", move |_, tx| async move { volume.resize(&tx, size).await }).await.unwrap();
    model.get_mut(name).unwrap().resize(size as usize, 0);
}

async fn destroy(pool: &Pool, model: &mut Model, name: &str) {
    let name_of = name.to_string();
    pool.change("destroy", move |pool, tx| async move {
        let plan = pool.dsl().plan_destroy(&name_of, false).await?;
        pool.dsl().destroy(&tx, &plan).await
    })
    .await
    .unwrap();
    model.remove(name);
}

/// Connections of clients have a loop for themselves for a while.
async fn make_busy(core: usize) {
    let time = Duration::from_millis(300);
    world::sleep(time).await;
    world::spawn_on(core, async move { world::count_serving(time) }).await;
}

async fn step(pool: &Pool, model: &mut Model, rng: &mut Rng) {
    let n = rng.below(model.len().max(1) as u64) as usize;
    let any = model.keys().nth(n).cloned();
    match (rng.below(20), any) {
        (0, Some(name)) => destroy(pool, model, &name).await,
        (1 | 2, Some(name)) => resize(pool, model, rng, &name).await,
        (3, Some(_)) => pool.sync().await.unwrap(),
        (4, Some(_)) if rng.below(2) == 0 => make_busy(rng.below(2) as usize).await,
        (4, _) | (_, None) => {
            let name = format!("tank/v{}", rng.next_u64());
            make_volume(pool, &name, SIZE).await;
            model.insert(name, vec![0; SIZE as usize]);
        }
        (_, Some(name)) => write(pool, model, rng, &name).await,
    }
}

async fn agrees(pool: &Pool, model: &Model) {
    let names: Vec<String> = pool.dsl().children("tank").await.unwrap();
    assert_eq!(names, model.keys().cloned().collect::<Vec<_>>());
    for (name, bytes) in model {
        assert!(read_all(pool, name).await.unwrap() == *bytes, "{name} differs from its model");
    }
}

#[test]
fn volumes_hold_what_was_written_to_them_over_many_imports_on_every_layout() {
    for (seed, rig) in (0..).zip(Rig::all()) {
        let own = rig.clone();
        rig.run(seed, async move {
            let rig = own;
            let (mut model, mut rng) = (Model::new(), Rng::new(seed));
            let mut pool = rig.create().await;
            for round in 0..4 {
                for _ in 0..40 {
                    step(&pool, &mut model, &mut rng).await;
                }
                agrees(&pool, &model).await;
                if round % 2 == 0 {
                    pool.export().await.unwrap()
                } else {
                    pool.close().await.unwrap()
                }
                drop(pool);
                pool = rig.open(false).await.unwrap();
                agrees(&pool, &model).await;
                verify(&pool).await;
            }
            assert_eq!(pool.problems(), Vec::<String>::new());
            pool.export().await.unwrap();
        });
    }
}

#[test]
fn the_sync_goes_to_the_loop_that_clients_need_less_and_ends_there_too() {
    let rig = Rig::all().remove(0);
    let own = rig.clone();
    rig.run(3, async move {
        let pool = own.create().await;
        make_volume(&pool, "tank/v", SIZE).await;
        let volume = pool.open_volume("tank/v").await.unwrap();
        let place = || pool.0.syncs_on.load(Ordering::Relaxed);
        for busy in [0, 1, 1, 0] {
            make_busy(busy).await;
            volume.write(0, Buf::copy_from(&[7; 512])).await.unwrap();
            pool.sync().await.unwrap();
            volume.write(0, Buf::copy_from(&[8; 512])).await.unwrap();
            pool.sync().await.unwrap();
            assert_eq!(place(), 1 - busy);
        }
        // On its way to the other loop while the pool is closed.
        make_busy(1).await;
        volume.write(0, Buf::copy_from(&[9; 512])).await.unwrap();
        pool.export().await.unwrap();
        drop((volume, pool));
        let pool = own.open(false).await.unwrap();
        assert_eq!(read_all(&pool, "tank/v").await.unwrap()[..512], [9; 512]);
        pool.export().await.unwrap();
    });
}
