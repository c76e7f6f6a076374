//! The halves of a mirror that were each used without the other, and come together again in every way there is.
//!
//! ```text
//!   both ─▶ 0 alone, killed ─▶ 1 alone, killed ─▶ one of them open, the other one put back: online, reopen, clear,
//!                                                 detach and attach, replace
//!                                              ─▶ both there when the pool is opened
//! ```
//!
//! What was flushed to the half that the pool is open with is there afterwards, with either device alone, or the opening is
//! refused. Nothing is chosen of its own accord.

use super::devices::{look_at, made_whole};
use super::{BLOCK, Rig, VOLUME, fill, make_volume, noise, plainly, read_all, verify};
use crate::{Estranged, OpenOptions, Pool};
use sim::{Fault, Rng};
use vdev::{Aux, Layout, State};
use world::Buf;

/// Of a device a part is in use, so that what one side frees it soon uses for something else.
const DISK: u64 = 64 << 20;
const SIZE: u64 = 12 << 20;
const SEEDS: u64 = 24;

fn there(rig: &Rig, devices: &[usize]) {
    for i in 0..rig.count {
        let disk = rig.disks.get(rig.path(i)).unwrap();
        if devices.contains(&i) { disk.set_fault(Fault::default()) } else { disk.unplug() }
    }
}

/// Writes and flushes in so many txgs; `expected` is what the volume holds then. What one side leaves alone the other one
/// overwrites, and uses its place for something else.
async fn work(pool: &Pool, side: usize, seed: u64, txgs: u64, expected: &mut [u8]) {
    let (mut rng, volume) = (Rng::new(seed), pool.open_volume(VOLUME).await.unwrap());
    for _ in 0..txgs {
        for _ in 0..1 + rng.below(200) {
            let at = (rng.below(SIZE / BLOCK / 2) * 2 + side as u64) * BLOCK;
            let bytes = noise(rng.next_u64(), BLOCK as usize);
            volume.write(at, Buf::copy_from(&bytes)).await.unwrap();
            expected[at as usize..(at + BLOCK) as usize].copy_from_slice(&bytes);
        }
        volume.flush().await.unwrap();
        pool.sync().await.unwrap();
    }
}

async fn holds(pool: &Pool, expected: &[u8], when: &str) {
    pool.pipeline().cache().clear();
    assert!(read_all(pool, VOLUME).await.unwrap() == expected, "{when}");
}

/// A mirror whose devices went on alone for so many txgs each, and what each of them holds.
fn forked(seed: u64, txgs: [u64; 2]) -> (Rig, [Vec<u8>; 2]) {
    let rig = Rig::new(Layout::Mirror, 2, DISK);
    let own = rig.clone();
    rig.run(seed, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, SIZE).await;
        fill(&pool, VOLUME, 1).await;
        pool.sync().await.unwrap();
    });
    let mut sides = [0, 1].map(|_| noise(1, SIZE as usize));
    for (i, side) in sides.iter_mut().enumerate() {
        there(&rig, &[i]);
        let (own, mut expected, seed) = (rig.clone(), side.clone(), seed * 2 + i as u64);
        *side = rig.run(seed, async move {
            let pool = own.open(false).await.unwrap();
            work(&pool, i, seed, txgs[i], &mut expected).await;
            expected
        });
    }
    (rig, sides)
}

pub(super) fn estranged(refused: &units::Error) -> Option<&Estranged> {
    let cause: &(dyn std::error::Error + 'static) = refused.cause()?;
    cause.downcast_ref()
}

/// Each device alone has this, after both have everything.
fn each_has(rig: &Rig, expected: &[u8], when: &str) {
    for i in 0..rig.count {
        there(rig, &[i]);
        let (own, expected, when) = (rig.clone(), expected.to_vec(), format!("{when}, device {i} alone"));
        rig.run(9, async move {
            let pool = own.open(true).await.unwrap();
            holds(&pool, &expected, &when).await;
            pool.close().await.unwrap();
        });
    }
}

/// As many states as a ring has: what is further back is not known to be another.
const RING: u64 = 32;

/// The pool was opened by the ring of the device that was put back, in a tree that had been written over since.
#[test]
fn a_half_that_went_on_alone_is_not_taken_back() {
    for seed in 0..SEEDS {
        let mut rng = Rng::new(seed);
        let txgs = [2 + rng.below(60), 2 + rng.below(6)];
        let (rig, sides) = forked(seed, txgs);
        let (open, away, way) = ((seed / 5 % 2) as usize, (1 - seed / 5 % 2) as usize, seed % 5);
        let when = format!("seed {seed}: {txgs:?} txgs, open with {open}, way {way}");
        there(&rig, &[open]);
        let (own, mut expected, said) = (rig.clone(), sides[open].clone(), when.clone());
        let is_orderly = rng.below(2) == 0;
        let more = 1 + rng.below(20);
        let (expected, is_taken) = rig.run(seed, async move {
            let pool = own.open(false).await.unwrap();
            work(&pool, open, seed + 100, rng.below(4), &mut expected).await;
            there(&own, &[0, 1]);
            let leaf = pool.tree().leaves().swap_remove(away);
            match way {
                0 => drop(pool.online(leaf.guid()).await.unwrap()),
                1 => pool.reopen().await.unwrap(),
                2 => drop(pool.clear(None).await),
                3 => {
                    pool.detach(leaf.guid()).await.unwrap();
                    let other = pool.tree().leaves()[0].guid();
                    pool.attach(other, look_at(&format!("disk{away}")), false, 12).await.unwrap();
                }
                _ => pool.attach(leaf.guid(), look_at(&format!("disk{away}")), true, 12).await.unwrap(),
            }
            let is_taken = way >= 3 || leaf.is_usable();
            if !is_taken {
                assert_eq!(leaf.health().state, State::CannotOpen, "{said}");
                assert_eq!(leaf.health().aux, Aux::WentOn, "{said}");
                let why = leaf.detail().unwrap();
                assert!(why.starts_with("it was used without the pool, from txg "), "{said}: {why}");
            } else if way < 3 {
                assert!(txgs[open] + 8 > RING && txgs[away] < txgs[open], "{said}: it is known");
            }
            holds(&pool, &expected, &said).await;
            work(&pool, open, seed + 200, more, &mut expected).await;
            if is_taken {
                made_whole(&pool).await;
                assert_eq!(verify(&pool).await.repairable, 0, "{said}");
            }
            if is_orderly {
                pool.close().await.unwrap();
            }
            (expected, is_taken)
        });
        there(&rig, &[0, 1]);
        if is_taken {
            each_has(&rig, &expected, &when);
            continue;
        }
        // The next start is refused as long as that is known, and nothing of the open half is lost.
        let (own, said, held) = (rig.clone(), when.clone(), expected.clone());
        let is_refused = rig.run(seed, async move {
            match own.open(false).await {
                Ok(pool) => {
                    holds(&pool, &held, &said).await;
                    made_whole(&pool).await;
                    assert_eq!(verify(&pool).await.repairable, 0, "{said}");
                    pool.close().await.unwrap();
                    false
                }
                Err(e) => estranged(&e).is_some() || panic!("{said}: {e}"),
            }
        });
        if !is_refused {
            assert!(txgs[open] + more + 16 > RING, "{when}: it is known");
            each_has(&rig, &expected, &when);
            continue;
        }
        there(&rig, &[open]);
        let own = rig.clone();
        rig.run(seed, async move {
            let pool = own.open(false).await.unwrap();
            holds(&pool, &expected, &when).await;
            verify(&pool).await;
            pool.close().await.unwrap();
        });
    }
}

/// By force the newest wins; then the other is nothing but behind, also in the txgs that both had.
#[test]
fn halves_that_went_on_alone_are_strangers_until_one_is_copied_over_the_other() {
    for seed in 0..SEEDS / 2 {
        let mut rng = Rng::new(seed);
        // In a third of them the ring of one side does not reach back to the fork.
        let txgs = match seed % 3 {
            0 => [20 + rng.below(20), 70 + rng.below(20)],
            _ => [2 + rng.below(60), 2 + rng.below(60)],
        };
        let (rig, sides) = forked(seed, txgs);
        there(&rig, &[0, 1]);
        let (own, when) = (rig.clone(), format!("seed {seed}: {txgs:?} txgs"));
        let said = when.clone();
        let expected = rig.run(seed, async move {
            let pool = match own.open(false).await {
                Ok(pool) => {
                    assert!(txgs[0].max(txgs[1]) + 16 > RING, "{said}: it is known");
                    pool
                }
                Err(refused) => {
                    let lost = &estranged(&refused).unwrap_or_else(|| panic!("{said}: {refused}")).others;
                    assert_eq!(lost.len(), 1, "{said}");
                    let by_force = OpenOptions { copy_over: true, ..plainly() };
                    crate::open(&own.candidate().await, by_force).await.unwrap()
                }
            };
            let found = read_all(&pool, VOLUME).await.unwrap();
            let mut expected = sides.into_iter().find(|side| *side == found).expect("it is one of the two");
            if seed % 2 == 0 {
                // Killed before it is whole, and before it is known in the pool what it lacks.
                return expected;
            }
            holds(&pool, &expected, &said).await;
            work(&pool, 0, seed, 1, &mut expected).await;
            made_whole(&pool).await;
            assert_eq!(verify(&pool).await.repairable, 0, "{said}");
            expected
        });
        let (own, said, held) = (rig.clone(), when.clone(), expected.clone());
        rig.run(seed, async move {
            let pool = own.open(false).await.unwrap_or_else(|e| panic!("{said}: {e}"));
            holds(&pool, &held, &said).await;
            made_whole(&pool).await;
            assert_eq!(verify(&pool).await.repairable, 0, "{said}");
            let errors: Vec<u64> = pool.tree().leaves().iter().map(|leaf| leaf.errors().checksum).collect();
            assert_eq!(errors, [0, 0], "{said}");
            pool.close().await.unwrap();
        });
        each_has(&rig, &expected, &when);
    }
}

/// Not each device gets each state, and the first one is written twice: each of them was taken for one that lacks
/// everything.
#[test]
fn no_device_of_a_pool_of_many_vdevs_is_taken_for_one_that_went_on_alone() {
    for seed in 0..8 {
        let rig = Rig::new(Layout::Stripe, 8, DISK);
        let (own, mut expected) = (rig.clone(), noise(1, SIZE as usize));
        let mut expected = rig.run(seed, async move {
            let pool = own.create().await;
            make_volume(&pool, VOLUME, SIZE).await;
            fill(&pool, VOLUME, 1).await;
            work(&pool, 0, seed, seed % 4, &mut expected).await;
            expected
        });
        for round in 0..4 {
            let own = rig.clone();
            expected = rig.run(seed * 10 + round, async move {
                let pool = own.open(false).await.unwrap();
                let missing: Vec<_> =
                    pool.tree().leaves().iter().map(|leaf| leaf.missing().ranges()).collect();
                assert!(missing.iter().all(Vec::is_empty), "seed {seed}, round {round}: {missing:?}");
                work(&pool, 0, seed + round, 3 * round, &mut expected).await;
                expected
            });
        }
    }
}

/// The first changes went into the txg of the creation once more: a device that did not get that state had another one of
/// the same txg, as good as the newer.
#[test]
fn what_a_new_pool_of_many_vdevs_is_given_first_is_there_after_a_kill() {
    for seed in 0..16 {
        let rig = Rig::new(Layout::Stripe, 8, DISK);
        let own = rig.clone();
        rig.run(seed, async move {
            let pool = own.create().await;
            make_volume(&pool, VOLUME, SIZE).await;
            pool.sync().await.unwrap();
        });
        let own = rig.clone();
        rig.run(seed, async move {
            let pool = own.open(false).await.unwrap();
            assert!(pool.open_volume(VOLUME).await.is_ok(), "seed {seed}");
        });
    }
}
