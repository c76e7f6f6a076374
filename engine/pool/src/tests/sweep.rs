//! Free space is told to the devices, or written for the first time; what is allocated is not touched.

use super::devices::{device, made_whole};
use super::{Rig, VOLUME, fill, make_volume, noise, read_all, verify};
use crate::{Offline, Pool, Sweep, SweepState};
use sim::Rng;
use std::time::Duration;
use units::{Guid, Kind};
use vdev::Layout;

const SIZE: usize = 8 << 20;
const LONG: Duration = Duration::from_secs(3600);

fn leaves(pool: &Pool) -> Vec<Guid> {
    pool.tree().leaves().iter().map(|leaf| leaf.guid()).collect()
}

fn trimmed(pool: &Pool) -> Vec<u64> {
    pool.tree().leaves().iter().map(|leaf| leaf.stats.snapshot().trim.bytes).collect()
}

async fn ended(pool: &Pool, kind: Sweep) {
    let all_done = async {
        while leaves(pool).iter().any(|leaf| pool.sweep(*leaf, kind).state == SweepState::Active) {
            world::sleep(Duration::from_millis(100)).await;
        }
    };
    world::timeout(LONG, all_done).await.expect("a sweep comes to its end");
}

/// The share of a device that is free, by the allocator's count.
fn free_share(pool: &Pool) -> f64 {
    let usage = pool.space().usage_total();
    1.0 - usage.allocated_deflated as f64 / usage.space_deflated as f64
}

#[test]
fn all_that_is_free_is_swept_on_each_layout_and_nothing_else() {
    for rig in Rig::all() {
        for kind in [Sweep::Trim, Sweep::Initialize] {
            let own = rig.clone();
            rig.run(1, async move {
                let pool = own.create().await;
                make_volume(&pool, VOLUME, SIZE as u64).await;
                fill(&pool, VOLUME, 1).await;
                pool.sync().await.unwrap();
                for leaf in leaves(&pool) {
                    assert_eq!(pool.sweep(leaf, kind).state, SweepState::None);
                    pool.sweep_start(leaf, kind, None).await.unwrap();
                }
                // The pool is used meanwhile.
                fill(&pool, VOLUME, 2).await;
                ended(&pool, kind).await;
                for leaf in pool.tree().leaves() {
                    let status = pool.sweep(leaf.guid(), kind);
                    assert_eq!(status.state, SweepState::Complete);
                    let done = leaf.stats.snapshot();
                    let bytes = if kind == Sweep::Trim { done.trim.bytes } else { done.write.bytes };
                    let wanted = leaf.asize() as f64 * free_share(&pool) * 0.8;
                    assert!(bytes as f64 >= wanted, "{kind:?}: {bytes} of {wanted}");
                }
                assert!(read_all(&pool, VOLUME).await.unwrap() == noise(2, SIZE));
                verify(&pool).await;
                assert_eq!(pool.problems(), Vec::<String>::new());
                pool.export().await.unwrap();
                // What was said of it is on disk.
                let pool = own.open(false).await.unwrap();
                assert!(leaves(&pool).iter().all(|l| pool.sweep(*l, kind).state == SweepState::Complete));
                assert!(read_all(&pool, VOLUME).await.unwrap() == noise(2, SIZE));
                for leaf in leaves(&pool) {
                    pool.sweep_forget(leaf, kind).await.unwrap();
                    assert_eq!(pool.sweep(leaf, kind).state, SweepState::None);
                }
                verify(&pool).await;
                pool.export().await.unwrap();
            });
        }
    }
}

/// Slow enough to be interrupted: a part of a disk of 96 MiB a second.
const SLOW: Option<u64> = Some(1 << 20);

#[test]
fn a_trim_is_suspended_goes_on_where_it_was_also_after_import_and_is_canceled() {
    let rig = Rig::new(Layout::Mirror, 2, 96 << 20);
    let own = rig.clone();
    rig.run(2, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, SIZE as u64).await;
        fill(&pool, VOLUME, 1).await;
        pool.sync().await.unwrap();
        let [first, second] = leaves(&pool)[..] else { panic!("two devices") };
        pool.sweep_start(first, Sweep::Trim, SLOW).await.unwrap();
        world::sleep(Duration::from_secs(20)).await;
        pool.sweep_suspend(first, Sweep::Trim).await.unwrap();
        let half = pool.sweep(first, Sweep::Trim);
        assert_eq!(half.state, SweepState::Suspended);
        assert!(half.position > 0, "{half:?}");
        let told = trimmed(&pool);
        assert!(
            told[0] > 1 << 20 && told[0] < 60 << 20 && told[1] == 0,
            "only so fast, and no other: {told:?}"
        );
        world::sleep(Duration::from_secs(60)).await;
        assert_eq!(trimmed(&pool), told, "it rests");
        let pool = {
            pool.export().await.unwrap();
            own.open(false).await.unwrap()
        };
        let again = crate::SweepStatus { begun: half.begun, ..pool.sweep(first, Sweep::Trim) };
        assert_eq!(again, half);
        // The rate is kept, and so is what is done.
        pool.sweep_start(first, Sweep::Trim, None).await.unwrap();
        world::sleep(Duration::from_secs(5)).await;
        let pool = {
            pool.export().await.unwrap();
            own.open(false).await.unwrap()
        };
        let later = pool.sweep(first, Sweep::Trim);
        assert!(later.state == SweepState::Active && later.position > half.position, "{later:?}");
        ended(&pool, Sweep::Trim).await;
        assert!(trimmed(&pool)[0] < 80 << 20, "what was done is not done again: {:?}", trimmed(&pool));
        pool.sweep_start(second, Sweep::Trim, SLOW).await.unwrap();
        pool.sweep_cancel(second, Sweep::Trim).await.unwrap();
        let given_up = pool.sweep(second, Sweep::Trim);
        assert_eq!((given_up.state, given_up.position), (SweepState::Canceled, 0));
        verify(&pool).await;
        pool.export().await.unwrap();
    });
}

#[test]
fn what_makes_no_sense_is_refused() {
    let rig = Rig::new(Layout::Mirror, 2, 96 << 20);
    let own = rig.clone();
    rig.run(3, async move {
        let pool = own.create().await;
        let leaf = device(&pool, "disk0");
        let said = |e: units::Error| (e.kind(), e.to_string());
        for kind in [Sweep::Trim, Sweep::Initialize] {
            let none = pool.sweep_suspend(leaf, kind).await.map_err(said).unwrap_err();
            assert!(none.0 == Kind::Invalid && none.1.contains("there is no active"), "{none:?}");
            assert_eq!(pool.sweep_cancel(leaf, kind).await.unwrap_err().kind(), Kind::Invalid);
            assert_eq!(pool.sweep_start(Guid(7), kind, None).await.unwrap_err().kind(), Kind::NotFound);
            pool.sweep_start(leaf, kind, SLOW).await.unwrap();
            let busy = pool.sweep_start(leaf, kind, None).await.map_err(said).unwrap_err();
            assert!(busy.0 == Kind::Busy && busy.1.contains("currently"), "{busy:?}");
            assert_eq!(pool.sweep_forget(leaf, kind).await.unwrap_err().kind(), Kind::Busy);
            pool.sweep_cancel(leaf, kind).await.unwrap();
        }
        pool.offline(leaf, Offline::Lasting).await.unwrap();
        let away = pool.sweep_start(leaf, Sweep::Trim, None).await.map_err(said).unwrap_err();
        assert!(away.1.contains("zpool online"), "{away:?}");
        pool.export().await.unwrap();
    });
}

/// Writers, sweeps of both kinds, devices that go and come, and a pool that is closed in the midst of it.
#[test]
fn sweeps_at_random_times_touch_nothing_that_is_in_use() {
    for seed in 0..6 {
        let rig = Rig::new(Layout::Mirror, 2, 96 << 20);
        let own = rig.clone();
        rig.run(seed, async move {
            let mut rng = Rng::new(seed);
            let mut pool = own.create().await;
            make_volume(&pool, VOLUME, SIZE as u64).await;
            let mut last = 0;
            for round in 1..20 {
                let all = leaves(&pool);
                let leaf = all[rng.below(all.len() as u64) as usize];
                let kind = if rng.below(2) == 0 { Sweep::Trim } else { Sweep::Initialize };
                match rng.below(7) {
                    0 | 1 => drop(pool.sweep_start(leaf, kind, Some(1 + rng.below(64 << 20))).await),
                    2 => drop(pool.sweep_suspend(leaf, kind).await),
                    3 => drop(pool.sweep_cancel(leaf, kind).await),
                    4 => {
                        if pool.offline(leaf, Offline::Temporary).await.is_ok() {
                            world::sleep(Duration::from_millis(rng.below(3000))).await;
                            pool.online(leaf).await.unwrap();
                        }
                        made_whole(&pool).await;
                    }
                    5 => {
                        pool.export().await.unwrap();
                        pool = own.open(false).await.unwrap();
                    }
                    _ => {
                        fill(&pool, VOLUME, round).await;
                        last = round;
                    }
                }
                world::sleep(Duration::from_millis(rng.below(4000))).await;
                if last > 0 {
                    assert!(
                        read_all(&pool, VOLUME).await.unwrap() == noise(last, SIZE),
                        "seed {seed}, round {round}"
                    );
                }
            }
            verify(&pool).await;
            pool.export().await.unwrap();
        });
    }
}
