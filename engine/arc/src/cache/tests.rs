#![allow(clippy::disallowed_methods, reason = "real threads, to find what a single one cannot")]

use super::*;
use crate::block::{Opening, Origin, PrimaryCache};
use crate::candidates::Candidate;
use crate::charge::charge_of;
use crate::stats::Counts;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use units::{Checksum, Compression, Endian, Error, Lsize, Psize, Sectors, Txg, VdevId};

fn id(n: u64) -> BlockId {
    BlockId { opening: Opening::default(), vdev: VdevId(0), offset: Sectors(n * 8), birth: Txg(7) }
}

#[test]
fn pools_whose_blocks_are_alike_do_not_get_each_others() {
    let cache = Cache::new(64 << 20);
    let (one, other) = (cache.opening(), cache.opening());
    assert_ne!(one, other);
    let of = |opening| BlockId { opening, ..id(3) };
    cache.insert(Request::demand(of(one), Kind::Data), bytes(3, 1, 4096));
    assert!(cache.get(&of(other), Access::Demand).is_none());
    cache.evict(&of(other));
    assert!(cache.get(&of(one), Access::Demand).is_some());
}

fn demand(n: u64) -> Request {
    Request::demand(id(n), Kind::Data)
}

fn bytes(n: u64, version: u8, len: usize) -> Buf {
    let mut content = vec![version; len];
    content[..8].copy_from_slice(&n.to_le_bytes());
    Buf::copy_from(&content)
}

/// Polls a future that needs nothing from outside until it is ready.
fn run<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..1_000_000 {
        if let Poll::Ready(value) = work.as_mut().poll(&mut cx) {
            return value;
        }
        std::thread::yield_now();
    }
    panic!("the future waits for something that never comes");
}

/// A seeded generator (xorshift64*).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % below
    }
}

async fn pending_once() {
    let mut yielded = false;
    std::future::poll_fn(
        move |_| {
            if std::mem::replace(&mut yielded, true) { Poll::Ready(()) } else { Poll::Pending }
        },
    )
    .await;
}

#[test]
fn what_is_found_is_what_was_last_put_there_and_the_limit_holds() {
    for seed in 1..=8 {
        let mut dice = Dice(seed);
        let max = 1 << 20;
        let cache = Cache::with_shards(max, 2);
        let mut oracle: BTreeMap<u64, Buf> = BTreeMap::new();
        for step in 0..20_000u64 {
            let n = dice.roll(200);
            match dice.roll(100) {
                0..50 => {
                    let access = if dice.roll(4) == 0 { Access::Prefetch } else { Access::Demand };
                    if let Some(found) = cache.get(&id(n), access) {
                        assert_eq!(found[..], oracle[&n][..], "seed {seed}, step {step}");
                    }
                }
                50..85 => {
                    let buf = bytes(n, step as u8, 512 << dice.roll(8));
                    let kind = if dice.roll(3) == 0 { Kind::Metadata } else { Kind::Data };
                    cache.insert(Request { kind, ..demand(n) }, buf.clone());
                    oracle.insert(n, buf);
                }
                85..98 => {
                    cache.evict(&id(n));
                    oracle.remove(&n);
                    assert!(cache.get(&id(n), Access::Demand).is_none());
                }
                98 => cache.shrink_to(max / 2 + dice.roll(max)),
                _ => cache.relax(),
            }
            let stats = cache.stats();
            assert!(stats.size <= stats.limit && stats.limit <= max, "seed {seed}, step {step}: {stats:?}");
        }
        let stats = cache.stats();
        assert!(stats.data.demand_hits > 500 && stats.metadata.demand_hits > 500, "{stats:?}");
        let resident: u64 =
            (0..200).filter_map(|n| cache.get(&id(n), Access::Scan)).map(|b| charge_of(b.len())).sum();
        assert_eq!(resident, stats.size, "what is charged is what is there");
        cache.clear();
        assert_eq!((cache.stats().size, cache.stats().ghosts), (0, 0));
    }
}

/// A hot set that fills half of the cache, and between its uses a scan over forty times the cache.
#[test]
fn a_hot_set_survives_a_long_scan() {
    let cache = Cache::with_shards(400 * 8352, 1);
    let block = |n| bytes(n, 1, 8192);
    let read = |n: u64| {
        run(cache.get_or_load(demand(n), || async move { Ok(block(n)) })).unwrap();
    };
    for _ in 0..3 {
        (0..200).for_each(read);
    }
    let before = cache.stats().data;
    let mut scanned = 1000;
    for _ in 0..80 {
        for _ in 0..200 {
            read(scanned);
            scanned += 1;
        }
        (0..200).for_each(read);
    }
    let after = cache.stats().data;
    let hot = (after.demand_hits - before.demand_hits) as f64 / (80.0 * 200.0);
    assert!(hot > 0.95, "only {hot:.2} of the hot set's uses were hits");
    // And a scan that is not interrupted.
    (0..16_000).for_each(|n| read(100_000 + n));
    let left = (0..200).filter(|&n| cache.get(&id(n), Access::Scan).is_some()).count();
    assert!(left > 190, "{left} of 200 hot blocks left");
}

#[test]
fn one_use_in_many_pieces_does_not_make_a_block_frequent() {
    let cache = Cache::with_shards(100 * 8352, 1);
    for n in 0..1000 {
        cache.insert(Request { origin: Some(origin(n)), ..demand(n) }, bytes(n, 0, 8192));
        for _ in 0..16 {
            cache.get(&id(n), Access::Demand).unwrap();
        }
    }
    let often = |candidate: &Candidate| candidate.is_frequent;
    assert!(found(&cache, &often).is_empty(), "a block that was used once counts as one that was used again");
    let again: Vec<BlockId> =
        found(&cache, &|_| true).iter().take(2).map(|candidate| candidate.block).collect();
    again.iter().chain([&id(999)]).for_each(|block| _ = cache.get(block, Access::Demand));
    assert_eq!(found(&cache, &often).len(), 2, "of the last one it goes on to be the same use");
}

/// The first of `blocks` that is not in memory.
fn gone(cache: &Cache, blocks: u64) -> u64 {
    (0..blocks).find(|&n| cache.peek(&id(n)).is_none()).unwrap()
}

#[test]
fn a_miss_on_a_ghost_moves_the_target() {
    let cache = Cache::with_shards(64 * (8192 + 160), 1);
    (0..80).for_each(|n| cache.insert(demand(n), bytes(n, 0, 8192)));
    let before = cache.stats();
    assert_eq!((before.ghosts, before.data.evicted), (16, 16));
    let gone = gone(&cache, 80);
    cache.insert(demand(gone), bytes(gone, 0, 8192));
    let after = cache.stats();
    assert_eq!(after.data.recent_ghost_hits, 1);
    assert!(after.data.recent_target > before.data.recent_target);
    assert_eq!(after.ghosts, 16, "one came back, and another left for it");
}

#[test]
fn metadata_that_is_missed_takes_room_from_data() {
    let cache = Cache::with_shards(128 * 8352, 1);
    let metadata = |n| Request::demand(id(10_000 + n), Kind::Metadata);
    for round in 0..40 {
        (0..128).for_each(|n| cache.insert(demand(round * 128 + n), bytes(n, 0, 8192)));
        for n in 0..64 {
            run(cache.get_or_load(metadata(n), || async move { Ok(bytes(n, 0, 8192)) })).unwrap();
        }
    }
    let stats = cache.stats();
    assert!(stats.metadata.recent_bytes + stats.metadata.frequent_bytes >= 60 * 8192, "{stats:?}");
    assert!(stats.metadata.demand_hits > 64 * 20, "{stats:?}");
}

#[test]
fn concurrent_misses_of_a_block_read_it_once() {
    let cache = Cache::new(8 << 20);
    let reads = AtomicUsize::new(0);
    let load = || async {
        reads.fetch_add(1, Ordering::Relaxed);
        pending_once().await;
        Ok(bytes(1, 9, 4096))
    };
    let all = run(join_all((0..10).map(|_| cache.get_or_load(demand(1), load))));
    assert!(all.into_iter().all(|r| r.unwrap()[100] == 9));
    assert_eq!(reads.load(Ordering::Relaxed), 1);
    let data = cache.stats().data;
    assert_eq!((data.demand_misses, data.joined, data.demand_hits), (10, 9, 0));
}

/// Four threads over one small cache: each finds what belongs to the block, and no block is read by two at once.
#[test]
fn threads_share_the_cache_and_each_others_reads() {
    let cache = Cache::with_shards(1 << 20, 2);
    let reading: Vec<AtomicUsize> = (0..300).map(|_| AtomicUsize::new(0)).collect();
    let reads = AtomicUsize::new(0);
    std::thread::scope(|s| {
        for seed in 1..=4 {
            let (cache, reading, reads) = (&cache, &reading, &reads);
            s.spawn(move || {
                let mut dice = Dice(seed);
                for _ in 0..20_000 {
                    let n = dice.roll(300);
                    let load = || async {
                        reads.fetch_add(1, Ordering::Relaxed);
                        assert_eq!(
                            reading[n as usize].fetch_add(1, Ordering::SeqCst),
                            0,
                            "block {n} is read twice"
                        );
                        std::thread::yield_now();
                        reading[n as usize].fetch_sub(1, Ordering::SeqCst);
                        Ok(bytes(n, 3, 4096 << (n % 3)))
                    };
                    let found = run(cache.get_or_load(demand(n), load)).unwrap();
                    assert_eq!((&found[..8], found[9]), (&n.to_le_bytes()[..], 3));
                }
            });
        }
    });
    let stats = cache.stats();
    assert!(stats.size <= stats.limit);
    let Counts { demand_hits, demand_misses, joined, .. } = stats.data;
    assert_eq!(demand_hits + demand_misses, 80_000);
    assert_eq!(demand_misses, joined + reads.load(Ordering::Relaxed) as u64);
}

#[test]
fn a_request_may_be_spawned() {
    fn spawnable<T: Send>(_: T) {}
    let cache = Cache::new(8 << 20);
    spawnable(cache.get_or_load(demand(1), || async { Ok(Buf::empty()) }));
}

#[test]
fn a_failed_read_fails_all_who_waited_and_is_not_kept() {
    let cache = Cache::new(8 << 20);
    let load = || async {
        pending_once().await;
        Err(Error::new(units::Kind::Checksum, "read block"))
    };
    for result in run(join_all((0..3).map(|_| cache.get_or_load(demand(1), load)))) {
        assert_eq!(result.unwrap_err().kind(), units::Kind::Checksum);
    }
    let again = run(cache.get_or_load(demand(1), || async { Ok(bytes(1, 1, 512)) }));
    assert_eq!(again.unwrap().len(), 512);
}

#[test]
fn when_the_reading_request_is_dropped_a_waiting_one_reads() {
    let cache = Cache::new(8 << 20);
    let mut cx = Context::from_waker(Waker::noop());
    let mut first = Box::pin(cache.get_or_load(demand(1), std::future::pending::<Result<Buf>>));
    assert!(first.as_mut().poll(&mut cx).is_pending());
    let mut second = pin!(cache.get_or_load(demand(1), || async { Ok(bytes(1, 2, 512)) }));
    assert!(second.as_mut().poll(&mut cx).is_pending());
    drop(first);
    assert_eq!(run(second).unwrap()[9], 2);
}

/// A block rewritten in place while it was being read: the reader may see the old bytes, the cache must not.
#[test]
fn a_read_that_was_overtaken_by_a_write_is_not_admitted() {
    let cache = Cache::new(8 << 20);
    let read = run(cache.get_or_load(demand(1), || async {
        cache.insert(demand(1), bytes(1, 2, 512));
        Ok(bytes(1, 1, 512))
    }));
    assert_eq!(read.unwrap()[9], 1);
    assert_eq!(cache.get(&id(1), Access::Demand).unwrap()[9], 2);
    let read = run(cache.get_or_load(demand(3), || async {
        cache.evict(&id(3));
        Ok(bytes(3, 1, 512))
    }));
    assert!(read.is_ok() && cache.get(&id(3), Access::Demand).is_none());
}

#[test]
fn policy_and_scans_leave_nothing_behind() {
    let cache = Cache::new(8 << 20);
    let load = |request| run(cache.get_or_load(request, || async { Ok(bytes(1, 1, 512)) })).unwrap();
    load(Request { primary: PrimaryCache::None, ..demand(1) });
    load(Request { primary: PrimaryCache::Metadata, ..demand(1) });
    load(Request { access: Access::Scan, ..demand(1) });
    assert_eq!(cache.stats().size, 0);
    load(Request { primary: PrimaryCache::Metadata, ..Request::demand(id(1), Kind::Metadata) });
    assert!(cache.stats().size > 0);
    cache.insert(Request { primary: PrimaryCache::None, ..demand(1) }, bytes(1, 2, 512));
    assert!(cache.get(&id(1), Access::Demand).is_none(), "the older bytes must not be found");
}

#[test]
fn the_first_demand_on_a_prefetched_block_is_its_first_use() {
    let cache = Cache::with_shards(64 * 8352, 1);
    let ahead = Request { access: Access::Prefetch, origin: Some(origin(1)), ..demand(1) };
    cache.insert(ahead, bytes(1, 0, 8192));
    (100..120).for_each(|n| cache.insert(demand(n), bytes(n, 0, 8192)));
    cache.get(&id(1), Access::Demand).unwrap();
    assert_eq!(cache.stats().data.prefetched_used, 1);
    assert!(found(&cache, &|candidate| candidate.is_frequent).is_empty(), "one use is not two");
    (200..220).for_each(|n| cache.insert(demand(n), bytes(n, 0, 8192)));
    cache.get(&id(1), Access::Demand).unwrap();
    assert_eq!(found(&cache, &|candidate| candidate.is_frequent).len(), 1);
    assert_eq!(cache.stats().data.prefetched_used, 1);
}

/// What is read ahead, begun and not landed.
fn begin_ahead(cache: &Arc<Cache>, n: u64) -> crate::Loading {
    cache
        .begin(Request { access: Access::Prefetch, ..demand(n) })
        .expect("it is neither there nor being read")
}

#[test]
fn what_is_read_ahead_is_used_in_time_or_late_or_never() {
    let cache = Arc::new(Cache::with_shards(8 * 8352, 1));
    let told = || {
        let data = cache.stats().data;
        (data.prefetched_used, data.prefetched_late, data.prefetched_unused)
    };
    begin_ahead(&cache, 1).land(Ok(bytes(1, 0, 8192))).unwrap();
    cache.get(&id(1), Access::Demand).unwrap();
    assert_eq!(told(), (1, 0, 0));

    let late = begin_ahead(&cache, 2);
    let wanted = || cache.get_or_load(demand(2), || async { panic!("it is being read") });
    let (first, second) = (pin!(wanted()), pin!(wanted()));
    let both = futures_util::future::join(first, second);
    let mut both = pin!(both);
    let mut context = Context::from_waker(Waker::noop());
    assert!(both.as_mut().poll(&mut context).is_pending());
    late.land(Ok(bytes(2, 0, 8192))).unwrap();
    assert!(both.as_mut().poll(&mut context).is_ready());
    assert_eq!(told(), (1, 1, 0), "one block is late once");

    begin_ahead(&cache, 3).land(Ok(bytes(3, 0, 8192))).unwrap();
    begin_ahead(&cache, 4).land(Ok(bytes(4, 0, 8192))).unwrap();
    cache.evict(&id(4));
    assert_eq!(told(), (1, 1, 1), "freed before it was asked for");
    (100..140).for_each(|n| cache.insert(demand(n), bytes(n, 0, 8192)));
    assert_eq!(told(), (1, 1, 2), "left before it was asked for; 1 and 2 were asked for");
    assert_eq!((cache.ahead().late(), cache.ahead().unused()), (1, 2));
    assert_eq!(cache.ahead().room(), 8 * 8352);
}

#[test]
fn a_guess_that_fails_fails_no_request_that_waits_for_it() {
    let cache = Arc::new(Cache::with_shards(8 * 8352, 1));
    let guess = begin_ahead(&cache, 1);
    let mut wanted = pin!(cache.get_or_load(demand(1), || async { Ok(bytes(1, 7, 8192)) }));
    let mut context = Context::from_waker(Waker::noop());
    assert!(wanted.as_mut().poll(&mut context).is_pending());
    assert!(guess.land(Err(Error::new(units::Kind::Checksum, "read"))).is_err());
    let Poll::Ready(Ok(read)) = wanted.as_mut().poll(&mut context) else { panic!("it reads itself") };
    assert_eq!(read[..], bytes(1, 7, 8192)[..]);
}

#[test]
fn only_valid_blocks_are_shown_to_the_listener() {
    struct Seen(Arc<Mutex<Vec<u64>>>);
    impl EvictionListener for Seen {
        fn evicted(&self, block: BlockId, _: Kind, buf: &Buf) {
            assert_eq!(buf[8], 1, "replaced bytes are not evicted ones");
            self.0.lock().unwrap().push(block.offset.0 / 8);
        }
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let cache = Cache::with_shards(4 * 8352, 1).listen(Box::new(Seen(seen.clone())));
    cache.insert(demand(1), bytes(1, 0, 8192));
    cache.insert(demand(1), bytes(1, 1, 8192));
    cache.insert(demand(2), bytes(2, 1, 8192));
    cache.evict(&id(2));
    (3..7).for_each(|n| cache.insert(demand(n), bytes(n, 1, 8192)));
    let seen = seen.lock().unwrap();
    let left: Vec<u64> = [1, 3, 4, 5, 6].into_iter().filter(|&n| cache.peek(&id(n)).is_none()).collect();
    assert_eq!((seen.len(), &seen[..]), (1, &left[..]), "of five one has no room in four");
}

#[test]
fn a_block_larger_than_half_a_shard_is_refused() {
    let cache = Cache::with_shards(1 << 20, 1);
    cache.insert(demand(1), bytes(1, 0, 4096));
    cache.insert(demand(1), bytes(1, 0, 600 << 10));
    assert!(cache.get(&id(1), Access::Demand).is_none());
    assert_eq!(cache.stats().refused, 1);
    assert!(Cache::new(64 << 20).shards.len() == 1 && Cache::new(1 << 40).shards.len() == 64);
    let cache = Cache::new(1 << 40);
    cache.set_max(64 << 20);
    cache.insert(demand(1), bytes(1, 0, 500 << 10));
    assert_eq!((cache.stats().refused, cache.get(&id(1), Access::Demand).is_some()), (0, true));
}

/// Overwriting part of a block copied all of it, since the cache had it too.
#[test]
fn what_is_taken_is_its_takers_alone_and_a_ghost_is_not_taken() {
    let cache = Cache::with_shards(10 * 8352, 1);
    cache.insert(demand(1), bytes(1, 1, 8192));
    let place = cache.get(&id(1), Access::Demand).unwrap().as_ptr();
    let mut taken = cache.take(&id(1)).unwrap();
    assert_eq!(taken.make_mut().as_ptr(), place, "it is changed where it is");
    assert!(cache.get(&id(1), Access::Demand).is_none() && cache.take(&id(1)).is_none());
    assert_eq!(cache.stats().size, 0);
    for n in 2..30 {
        cache.insert(demand(n), bytes(n, 1, 8192));
    }
    let gone = (2..30).find(|&n| cache.peek(&id(n)).is_none()).unwrap();
    assert!(cache.take(&id(gone)).is_none(), "it has left");
    assert!(cache.stats().ghosts > 0 && cache.stats().size <= 10 * 8352);
    cache.insert(demand(gone), bytes(gone, 2, 8192));
    assert_eq!(&cache.take(&id(gone)).unwrap()[..], &bytes(gone, 2, 8192)[..]);
}

fn origin(n: u64) -> Origin {
    Origin {
        asize: Sectors(8),
        gang: false,
        lsize: Lsize(4096),
        psize: Psize(4096),
        compression: Compression::Off,
        checksum_kind: Checksum::Fletcher4,
        checksum: [n; 4],
        endian: Endian::NATIVE,
    }
}

fn looked_for(cache: &Cache, list: List, newest_first: bool, prefetched: bool, blocks: usize) -> Vec<u64> {
    let mut wanted = Wanted {
        opening: Opening::default(),
        newest_first,
        prefetched,
        is_wanted: &|candidate| candidate.block.offset.0 != 8 * 2,
        bytes_max: 1 << 20,
        blocks_max: blocks,
        found: Vec::new(),
        bytes: 0,
    };
    cache.candidates(list, 1 << 20, &mut wanted);
    wanted.found.iter().map(|found| found.block.offset.0 / 8).collect()
}

/// All that would be offered to a second level.
fn found(cache: &Cache, is_wanted: &dyn Fn(&Candidate) -> bool) -> Vec<Candidate> {
    let (newest_first, prefetched) = (false, true);
    let (bytes_max, blocks_max) = (u64::MAX, usize::MAX);
    let opening = Opening::default();
    let mut wanted = Wanted {
        opening,
        newest_first,
        prefetched,
        is_wanted,
        bytes_max,
        blocks_max,
        found: Vec::new(),
        bytes: 0,
    };
    List::BY_WORTH.into_iter().for_each(|list| cache.candidates(list, u64::MAX, &mut wanted));
    wanted.found
}

#[test]
fn a_second_level_is_offered_what_leaves_next_and_nothing_that_may_not_go_there() {
    let cache = Cache::with_shards(1 << 20, 1);
    for n in 0..6 {
        let origin = (n != 3).then(|| origin(n));
        cache.insert(Request { origin, ..demand(n) }, bytes(n, 1, 4096));
    }
    let ahead = Request { access: Access::Prefetch, origin: Some(origin(6)), ..demand(6) };
    cache.insert(ahead, bytes(6, 1, 4096));
    cache.insert(
        Request { origin: Some(origin(7)), ..Request::demand(id(7), Kind::Metadata) },
        bytes(7, 1, 4096),
    );
    let [_, metadata, frequent, recent] = List::BY_WORTH;
    let before = cache.stats();
    assert_eq!(looked_for(&cache, recent, false, false, 9), [0, 1, 4, 5], "2 is not wanted, 3 may not go");
    assert_eq!(looked_for(&cache, recent, true, true, 9), [6, 5, 4, 1, 0]);
    assert_eq!(looked_for(&cache, recent, false, false, 2), [0, 1]);
    assert_eq!(looked_for(&cache, metadata, false, false, 9), [7]);
    assert!(looked_for(&cache, frequent, false, false, 9).is_empty());
    assert!(cache.peek(&id(5)).is_some() && cache.peek(&id(9)).is_none());
    assert_eq!(cache.stats(), before, "looking is no use of a block");
}

#[test]
fn what_others_hold_of_the_memory_is_not_there_for_blocks() {
    let cache = Cache::with_shards(1 << 20, 2);
    (0..200).for_each(|n| cache.insert(demand(n), bytes(n, 1, 4096)));
    assert!(!cache.is_warm() && cache.stats().size > 512 << 10);
    cache.charge_beside(0, 512 << 10);
    let stats = cache.stats();
    assert!(stats.size <= 512 << 10 && stats.limit == 512 << 10 && stats.beside == 512 << 10, "{stats:?}");
    assert!(cache.is_warm());
    cache.shrink_to(768 << 10);
    assert_eq!(cache.stats().limit, 256 << 10);
    cache.charge_beside(512 << 10, 0);
    cache.relax();
    assert_eq!((cache.stats().limit, cache.stats().beside), (1 << 20, 0));
}

/// A little metadata beside data that is wanted at random, as a volume has it: missing some of it again and again must make
/// room for all of it, however many misses of data speak against that.
#[test]
fn a_little_metadata_is_not_pushed_out_by_much_data() {
    let cache = Cache::with_shards(128 * 8352, 1);
    let mut dice = Dice(5);
    let mut misses = 0;
    for step in 0..40_000 {
        for (n, kind) in [(10_000 + dice.roll(12), Kind::Metadata), (dice.roll(160), Kind::Data)] {
            if cache.get(&id(n), Access::Demand).is_none() {
                cache.insert(Request { kind, ..demand(n) }, bytes(n, 0, 8192));
                misses += u64::from(kind == Kind::Metadata && step >= 20_000);
            }
        }
    }
    assert!(misses < 400, "{misses} of 20000 uses of metadata missed");
}
