use super::*;
use crate::{Access, Cache, Opening, Request};
use sim::Rng;
use std::sync::Arc;
use units::{Sectors, Txg, VdevId};

const BLOCK: usize = 8 << 10;

fn id(n: u64) -> BlockId {
    BlockId { opening: Opening(0), vdev: VdevId(0), offset: Sectors(16 * n), birth: Txg(4) }
}

fn bytes(n: u64, version: u8) -> Buf {
    let mut bytes = vec![version; BLOCK];
    bytes[..8].copy_from_slice(&n.to_le_bytes());
    Buf::copy_from(&bytes)
}

fn insert(cache: &Cache, n: u64, version: u8) {
    cache.insert(Request::demand(id(n), Kind::Data), bytes(n, version));
}

fn get(cache: &Cache, n: u64) -> Option<Buf> {
    cache.get(&id(n), Access::Demand)
}

/// The bytes that the core's table has of a block, no use of it.
fn at_hand(cache: &Cache, n: u64) -> Option<Buf> {
    let (table, _) = cache.table()?;
    let places = table.lock();
    places.place(&id(n)).and_then(|at| places.held[at].buf.clone())
}

fn on_a_core(work: impl FnOnce(Arc<Cache>) + Send + 'static) {
    sim::run(1, sim::Config::default(), async move { work(Arc::new(Cache::new(64 << 20))) });
}

#[test]
fn a_hit_is_at_hand_from_then_on_and_no_use_of_the_shard_until_some_of_it_was_replaced() {
    on_a_core(|cache| {
        insert(&cache, 1, 1);
        assert!(at_hand(&cache, 1).is_none());
        let first = get(&cache, 1).unwrap();
        let second = get(&cache, 1).unwrap();
        assert_eq!((first.as_ptr(), &first[..]), (second.as_ptr(), &bytes(1, 1)[..]));
        assert_eq!(at_hand(&cache, 1).unwrap().as_ptr(), first.as_ptr());
        // Both count as hits; a thread of no core asks the shard alone.
        assert_eq!(cache.stats().data.demand_hits, 2);
    });
}

#[test]
fn what_leaves_the_cache_is_at_hand_nowhere() {
    on_a_core(|cache| {
        for way in 0..5 {
            insert(&cache, 1, 1);
            get(&cache, 1).unwrap();
            assert!(at_hand(&cache, 1).is_some());
            match way {
                0 => cache.evict(&id(1)),
                1 => drop(cache.take(&id(1)).unwrap()),
                2 => cache.clear(),
                3 => cache.shrink_to(0),
                _ => insert(&cache, 1, 2),
            }
            cache.relax();
            assert!(at_hand(&cache, 1).is_none(), "way {way}");
            assert_eq!(get(&cache, 1).map(|buf| buf[BLOCK - 1]), (way == 4).then_some(2), "way {way}");
            cache.clear();
        }
    });
}

#[test]
fn what_is_taken_out_has_one_holder() {
    on_a_core(|cache| {
        insert(&cache, 1, 1);
        get(&cache, 1).unwrap();
        let mut taken = cache.take(&id(1)).unwrap();
        let place = taken.as_ptr();
        taken.make_mut()[9] = 7;
        assert_eq!((taken.as_ptr(), taken[9]), (place, 7));
    });
}

/// The blocks that clients ask for stay, although only tables know of it.
#[test]
fn what_is_used_at_hand_outlives_what_is_not() {
    on_a_core(|cache| {
        let fits = (64 << 20) / BLOCK as u64;
        let hot = 0..fits / 8;
        hot.clone().for_each(|n| insert(&cache, n, 1));
        for round in 0..60 {
            hot.clone().for_each(|n| drop(get(&cache, n)));
            // One block after the other that is used once.
            (0..fits / 4).for_each(|n| insert(&cache, 1_000_000 * (round + 1) + n, 1));
        }
        let kept = hot.clone().filter(|&n| cache.peek(&id(n)).is_some()).count() as u64;
        assert!(kept > fits / 8 * 95 / 100, "{kept} of {} are left", fits / 8);
    });
}

#[test]
fn a_name_is_found_while_its_block_is_at_hand_and_never_another_block() {
    on_a_core(|cache| {
        let mut rng = Rng::new(7);
        let (trees, blocks) = (3, 20_000);
        (0..trees * blocks).for_each(|n| insert(&cache, n, 1));
        let (mut asked, mut found) = (0, 0);
        for _ in 0..400_000 {
            let (tree, index) = (rng.below(trees), rng.below(80));
            let name = Name { tree: tree + 1, index };
            let n = tree * blocks + index;
            match cache.get_named(name) {
                Some(buf) => {
                    found += 1;
                    assert_eq!(buf[..8], n.to_le_bytes(), "{name:?}");
                }
                None => drop(cache.get_and_name(&id(n), name)),
            }
            asked += 1;
            if rng.below(50) == 0 {
                cache.evict(&id(n));
                assert!(cache.get_named(name).is_none());
                insert(&cache, n, 1);
            }
        }
        assert!(found > asked * 9 / 10, "{found} of {asked}");
    });
}

/// Against a model: whatever is asked, and whatever leaves meanwhile, the bytes are those of the last insertion.
#[test]
fn random_work_finds_the_newest_bytes_or_none() {
    for seed in 0..4 {
        on_a_core(move |cache| {
            if seed % 2 == 1 {
                cache.set_cold(50);
            }
            let mut rng = Rng::new(seed);
            let mut newest: units::HashMap<u64, u8> = Default::default();
            for _ in 0..200_000 {
                let all = if rng.below(2) == 0 { 40 } else { 12_000 };
                let n = rng.below(all);
                match rng.below(20) {
                    0 => {
                        cache.evict(&id(n));
                        newest.remove(&n);
                    }
                    1 => {
                        let taken = cache.take(&id(n));
                        assert!(taken.is_none_or(|buf| Some(&buf[9]) == newest.get(&n)));
                        newest.remove(&n);
                    }
                    2..5 => {
                        let version = rng.below(256) as u8;
                        insert(&cache, n, version);
                        newest.insert(n, version);
                    }
                    5 if rng.below(2000) == 0 => {
                        cache.shrink_to(rng.below(32 << 20));
                        cache.relax();
                    }
                    _ => {
                        let found = match rng.below(2) {
                            0 => get(&cache, n),
                            _ => {
                                // A tree has changed when one of its blocks was written.
                                let version = newest.get(&n).copied().unwrap_or(0);
                                let name = Name { tree: 1 + u64::from(version), index: n };
                                cache.get_named(name).or_else(|| cache.get_and_name(&id(n), name))
                            }
                        };
                        if let Some(buf) = found {
                            assert_eq!((&buf[..8], Some(&buf[9])), (&n.to_le_bytes()[..], newest.get(&n)));
                        }
                    }
                }
            }
            assert!(cache.stats().size <= cache.stats().limit);
            assert!(cache.stats().at_hand > 1000);
            assert_no_more_than_shards_have(&cache, 0, 2);
        });
    }
}

/// Each on a thread of its own: what one takes out the others do not find.
#[test]
#[allow(clippy::disallowed_methods, reason = "real threads, to find what a single one cannot")]
fn cores_see_what_leaves() {
    let cache = Arc::new(Cache::new(64 << 20));
    let newest: Arc<Vec<std::sync::atomic::AtomicU64>> =
        Arc::new((0..64).map(|_| Default::default()).collect());
    let threads: Vec<_> = (0..4)
        .map(|core| {
            let (cache, newest) = (cache.clone(), newest.clone());
            std::thread::spawn(move || {
                let mut rng = Rng::new(core);
                for _ in 0..100_000 {
                    let n = rng.below(64);
                    let at = core as usize;
                    if core == 0 && rng.below(8) == 0 {
                        let version = newest[n as usize].load(Ordering::Acquire) + 1;
                        // As a block that is freed and another in its place: it has another birth.
                        cache.evict(&BlockId { birth: Txg(version - 1), ..id(n) });
                        let block = BlockId { birth: Txg(version), ..id(n) };
                        cache.insert(Request::demand(block, Kind::Data), bytes(n, version as u8));
                        newest[n as usize].store(version, Ordering::Release);
                    } else {
                        let version = newest[n as usize].load(Ordering::Acquire);
                        let block = BlockId { birth: Txg(version), ..id(n) };
                        if let Some(buf) = cache.get_at(at, 4, &block) {
                            assert_eq!((&buf[..8], buf[9]), (&n.to_le_bytes()[..], version as u8));
                        }
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    (0..4).for_each(|core| assert_no_more_than_shards_have(&cache, core, 4));
}

/// A table keeps no memory that the shards have given up.
fn assert_no_more_than_shards_have(cache: &Cache, core: usize, cores: usize) {
    let (table, _) = cache.near.of(core, cores, 64 << 20, |_| ());
    for held in table.lock().held.iter().filter(|held| held.buf.is_some()) {
        assert!(cache.shard(&held.block).peek(&held.block).is_some(), "{:?}", held.block);
    }
}

/// A table has room for the blocks of a volume that is as large as a quarter of the cache.
#[test]
fn most_of_what_is_read_at_random_is_found_by_its_name() {
    sim::run(1, sim::Config::default(), async {
        let cache = Cache::new(512 << 20);
        let blocks = 8192;
        let zeros = Buf::zeroed(BLOCK);
        (0..blocks).for_each(|n| cache.insert(Request::demand(id(n), Kind::Data), zeros.clone()));
        let mut rng = Rng::new(5);
        let mut read = |times| {
            (0..times)
                .filter(|_| {
                    let n = rng.below(blocks);
                    let name = Name { tree: 7, index: n };
                    let found = cache.get_named(name).is_some();
                    found || cache.get_and_name(&id(n), name).is_none()
                })
                .count()
        };
        read(10 * blocks);
        let found = read(100_000);
        assert!(found > 95_000, "{found} of 100000");
    });
}
