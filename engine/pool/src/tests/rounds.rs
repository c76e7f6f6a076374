//! Rounds of work, export and import on every layout, beside a model in memory.

use super::{BLOCK, Rig, make_volume, read_all, verify};
use crate::Pool;
use sim::Rng;
use std::collections::BTreeMap;
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

async fn step(pool: &Pool, model: &mut Model, rng: &mut Rng) {
    let n = rng.below(model.len().max(1) as u64) as usize;
    let any = model.keys().nth(n).cloned();
    match (rng.below(20), any) {
        (0, Some(name)) => destroy(pool, model, &name).await,
        (1 | 2, Some(name)) => resize(pool, model, rng, &name).await,
        (3, Some(_)) => pool.sync().await.unwrap(),
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
