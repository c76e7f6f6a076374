//! Flushes that do not wait for a txg, and pools that lose their power afterwards.

use super::heal::place;
use super::{BLOCK, Rig, VOLUME, make_volume, noise, read_all, verify};
use crate::Pool;
use dsl::props::{Prop, PropName, Value};
use ondisk::ZilHeader;
use sim::Rng;
use std::sync::{Arc, Mutex};
use tunables::{Tunable, Tunables};
use units::Txg;
use vdev::Layout;
use world::Buf;
use zvol::Volume;

const SIZE: u64 = 128 * BLOCK;

async fn set(pool: &Pool, prop: Prop, value: u64) {
    pool.change("set", move |pool, tx| async move {
        pool.dsl().set(&tx, VOLUME, &PropName::Native(prop), &Value::Number(value)).await
    })
    .await
    .unwrap();
}

async fn header(pool: &Pool, name: &str) -> ZilHeader {
    pool.dsl().open_by_name(name).await.unwrap().objset().phys().zil_header
}

/// Bytes as they were written and flushed, beside those that may or may not be there.
#[derive(Clone)]
struct Model {
    bytes: Vec<u8>,
}

/// Random changes, each followed by a flush, or durable by itself.
async fn change(volume: &Volume, rng: &mut Rng, model: &mut Model) {
    let at = rng.below(SIZE / 512) * 512;
    let most = if rng.below(4) == 0 { 200 } else { 12 };
    let len = ((1 + rng.below(most)) * 512).min(SIZE - at);
    let range = at as usize..(at + len) as usize;
    match rng.below(8) {
        0 => {
            volume.zero(at, len).await.unwrap();
            model.bytes[range].fill(0);
        }
        1 => {
            let (from, to) = (at.next_multiple_of(BLOCK), (at + len) / BLOCK * BLOCK);
            volume.trim(at, len).await.unwrap();
            if from < to {
                model.bytes[from as usize..to as usize].fill(0);
            }
        }
        kind => {
            // Some compress to nothing, some well, some not at all.
            let data = match kind {
                2 => vec![0; len as usize],
                3 | 4 => vec![rng.next_u64() as u8; len as usize],
                _ => noise(rng.next_u64(), len as usize),
            };
            let buf = Buf::copy_from(&data);
            if rng.below(2) == 0 {
                volume.write_durable(at, buf).await.unwrap();
            } else {
                volume.write(at, buf).await.unwrap();
            }
            model.bytes[range].copy_from_slice(&data);
        }
    }
    volume.flush().await.unwrap();
}

#[test]
fn what_was_flushed_is_there_after_the_power_was_cut_on_every_layout() {
    for (seed, rig) in (0..).zip(Rig::all()) {
        let model = Arc::new(Mutex::new(Model { bytes: vec![0; SIZE as usize] }));
        let own = rig.clone();
        rig.run(seed, async move {
            let pool = own.create().await;
            make_volume(&pool, VOLUME, SIZE).await;
            pool.export().await.unwrap();
        });
        for round in 0..4u64 {
            let (own, shared) = (rig.clone(), model.clone());
            rig.run(seed * 10 + round, async move {
                let pool = own.open(false).await.unwrap();
                set(&pool, Prop::LogBias, round % 2).await;
                let volume = pool.open_volume(VOLUME).await.unwrap();
                let mut rng = Rng::new(seed * 10 + round);
                let mut model = shared.lock().unwrap().clone();
                for _ in 0..60 {
                    change(&volume, &mut rng, &mut model).await;
                    if rng.below(25) == 0 {
                        pool.sync().await.unwrap();
                    }
                }
                let stats = pool.intent_logs()[0].stats();
                assert!(stats.blocks > 40 && stats.fallbacks == 0, "{stats:?}");
                assert!(round % 2 == 0 || stats.indirect > 40, "{stats:?}");
                *shared.lock().unwrap() = model;
            });
            // Everything that was not flushed may be gone.
            rig.disks.power_cut(seed + round);
            let (own, shared) = (rig.clone(), model.clone());
            rig.run(100 + seed, async move {
                let wanted = shared.lock().unwrap().bytes.clone();
                let pool = own.open(false).await.unwrap();
                let found = read_all(&pool, VOLUME).await.unwrap();
                let wrong = (0..SIZE as usize).find(|&i| found[i] != wanted[i]);
                assert_eq!(wrong, None, "round {round}");
                verify(&pool).await;
                assert_eq!(pool.problems(), Vec::<String>::new());
                if round == 2 {
                    pool.export().await.unwrap();
                }
            });
        }
        let own = rig.clone();
        rig.run(7, async move {
            let pool = own.open(false).await.unwrap();
            assert_eq!(header(&pool, VOLUME).await, ZilHeader::default());
            pool.export().await.unwrap();
        });
    }
}

/// Nobody was promised what one device alone has of a log. Claimed it is a promise, which that device may not take with it.
#[test]
fn what_is_claimed_of_a_log_is_on_every_device_that_can_have_it() {
    for (seed, bias) in [(31, 0), (32, 1)] {
        let rig = Rig::new(Layout::Mirror, 3, 96 << 20);
        let own = rig.clone();
        rig.run(seed, async move {
            let pool = own.create().await;
            make_volume(&pool, VOLUME, SIZE).await;
            set(&pool, Prop::LogBias, bias).await;
            let volume = pool.open_volume(VOLUME).await.unwrap();
            for at in 0..40 {
                let data = Buf::copy_from(&noise(at, BLOCK as usize));
                volume.write_durable(at * BLOCK, data).await.unwrap();
            }
        });
        rig.disks.power_cut(seed);
        let own = rig.clone();
        let blocks: Vec<(u64, usize)> = rig.run(seed, async move {
            let pool = own.open(true).await.unwrap();
            let dataset = pool.dsl().open_by_name(VOLUME).await.unwrap();
            let header = dataset.objset().phys().zil_header;
            let mut chain = zil::Chain::new(pool.pipeline(), dataset.objset().id(), &header);
            let mut blocks = Vec::new();
            while let Some(link) = chain.next().await {
                let Some(block) = link.block else { continue };
                blocks.push(link.pointer);
                for (_, mut reader) in block.records() {
                    let data = ondisk::zil::pointers(&mut reader).unwrap();
                    blocks.extend(data.into_iter().filter(|bp| !bp.is_hole()));
                }
            }
            let written = blocks.iter().filter_map(|bp| Some((place(bp), bp.as_plain()?.psize.0 as usize)));
            written.collect()
        });
        assert!(blocks.len() > 10, "{}", blocks.len());
        let disk = |n: usize| rig.disks.get(format!("/sim/disk{n}")).unwrap();
        for &(at, len) in &blocks {
            disk(1).poke(at, &vec![0; len]);
            disk(2).poke(at, &vec![0; len]);
        }
        let own = rig.clone();
        rig.run(seed, async move {
            let pool = own.open(false).await.unwrap();
            assert_eq!(pool.problems(), Vec::<String>::new(), "no device is to blame");
            drop(pool);
        });
        for &(at, len) in &blocks {
            for n in [1, 2] {
                assert!(disk(n).peek(at, len) == disk(0).peek(at, len), "{len} bytes at {at} of disk {n}");
            }
        }
    }
}

#[test]
fn a_log_is_thrown_away_where_that_was_asked_for_and_that_is_told() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(1, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, SIZE).await;
        let volume = pool.open_volume(VOLUME).await.unwrap();
        // The first goes with a txg, since there is no log yet.
        for block in 0..2 {
            volume.write_durable(block * BLOCK, Buf::copy_from(&noise(block, BLOCK as usize))).await.unwrap();
        }
    });
    rig.disks.power_cut(1);
    let own = rig.clone();
    rig.run(2, async move {
        let tunables = Tunables::new();
        tunables.set(Tunable::ZilReplayDisable, 1).unwrap();
        let pool = own.open_tuned(false, tunables).await.unwrap();
        let found = read_all(&pool, VOLUME).await.unwrap();
        assert_eq!(found[..BLOCK as usize], noise(0, BLOCK as usize)[..]);
        assert!(found[BLOCK as usize..].iter().all(|b| *b == 0), "it was only in the log");
        let told = "'tank/v': 1 records of its intent log were thrown away: zil_replay_disable";
        assert_eq!(pool.problems(), [told]);
        assert_eq!(header(&pool, VOLUME).await, ZilHeader::default());
        verify(&pool).await;
        pool.export().await.unwrap();
    });
}

#[test]
fn a_flush_needs_no_txg_and_sync_acts_on_an_open_volume() {
    let rig = Rig::new(Layout::Mirror, 2, 96 << 20);
    let own = rig.clone();
    rig.run(3, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, SIZE).await;
        let volume = pool.open_volume(VOLUME).await.unwrap();
        volume.write_durable(0, Buf::copy_from(&noise(1, 4096))).await.unwrap();
        let txg = pool.txgs().synced_txg();
        for i in 0..10u64 {
            volume.write_durable(i * 4096, Buf::copy_from(&noise(i, 4096))).await.unwrap();
        }
        assert_eq!(pool.txgs().synced_txg(), txg, "they went into the log");
        set(&pool, Prop::Sync, 1).await;
        let (before, log) = (pool.intent_logs()[0].stats(), pool.intent_logs()[0].clone());
        volume.write(0, Buf::copy_from(&noise(2, 4096))).await.unwrap();
        volume.zero(8192, 4096).await.unwrap();
        assert_eq!(log.stats().commits, before.commits + 2, "always");
        set(&pool, Prop::Sync, 2).await;
        let (before, txg) = (log.stats(), pool.txgs().synced_txg());
        volume.write_durable(0, Buf::copy_from(&noise(3, 4096))).await.unwrap();
        assert_eq!((log.stats(), pool.txgs().synced_txg()), (before, txg), "disabled");
        set(&pool, Prop::Sync, 0).await;
        volume.flush().await.unwrap();
        assert!(pool.txgs().synced_txg() > txg);
        pool.export().await.unwrap();
    });
}

#[test]
fn a_volume_that_is_destroyed_takes_its_log_with_it_and_a_snapshot_has_none_to_care_for() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(4, async move {
        let pool = own.create().await;
        let empty = {
            pool.sync().await.unwrap();
            pool.space().usage_total().allocated_deflated
        };
        make_volume(&pool, VOLUME, SIZE).await;
        let volume = pool.open_volume(VOLUME).await.unwrap();
        for i in 0..20u64 {
            volume.write_durable(i * 4096, Buf::copy_from(&noise(i, 4096))).await.unwrap();
        }
        let name = format!("{VOLUME}@s");
        pool.change("snapshot", move |pool, tx| async move {
            // What this txg wrote to the volume must be in it.
            pool.dsl().sync_datasets(&tx, 1).await?;
            pool.dsl().snapshot(&tx, &name).await
        })
        .await
        .unwrap();
        volume.write_durable(0, Buf::copy_from(&noise(77, 4096))).await.unwrap();
        verify(&pool).await;
        drop(volume);
        pool.change("destroy", |pool, tx| async move {
            let plan = pool.dsl().plan_destroy(VOLUME, true).await?;
            pool.dsl().destroy(&tx, &plan).await
        })
        .await
        .unwrap();
        for _ in 0..6 {
            pool.change("wait", |_, _| async { Ok(()) }).await.unwrap();
        }
        assert_eq!(pool.problems(), Vec::<String>::new());
        assert!(pool.intent_logs().is_empty());
        let left = pool.space().usage_total().allocated_deflated;
        assert!(left < empty + (600 << 10), "{left} bytes are in use, {empty} were");
        assert!(pool.uberblock().txg > Txg(1));
        pool.export().await.unwrap();
    });
}
