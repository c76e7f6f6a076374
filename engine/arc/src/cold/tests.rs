#![allow(clippy::disallowed_methods, reason = "real threads, to find what a single one cannot")]

use super::*;
use crate::block::{Access, Opening, Request};
use crate::cache::Cache;
use crate::shard::{Leavers, Shard};
use crate::stats::Stats;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use units::{Sectors, Txg, VdevId};

const BLOCK: u64 = 8352;

fn id(n: u64) -> BlockId {
    BlockId { opening: Opening::default(), vdev: VdevId(0), offset: Sectors(n * 32), birth: Txg(7) }
}

fn demand(n: u64) -> Request {
    Request::demand(id(n), Kind::Data)
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

/// Of each 64 bytes 16 are noise: it becomes less than half.
fn bytes(n: u64, version: u64, len: usize) -> Buf {
    let mut dice = Dice(1 + n * 1000 + version);
    let mut content = vec![b'.'; len];
    for chunk in content.chunks_mut(64) {
        let noise = dice.roll(1 << 31).to_le_bytes();
        chunk[..8].copy_from_slice(&noise);
        chunk[8..16].copy_from_slice(&dice.roll(1 << 31).to_le_bytes());
    }
    content[..8].copy_from_slice(&n.to_le_bytes());
    Buf::copy_from(&content)
}

fn noise(n: u64, len: usize) -> Buf {
    let mut dice = Dice(1 + n);
    Buf::copy_from(&(0..len).map(|_| dice.roll(256) as u8).collect::<Vec<u8>>())
}

/// With one shard for so many blocks of 8 KiB, half of which may be cold.
fn cache(blocks: u64) -> Cache {
    let cache = Cache::new(blocks * BLOCK);
    cache.set_cold(50);
    cache
}

/// Asks for blocks, which are put in when they are not there, and are what they must be when they are.
fn ask(cache: &Cache, wanted: impl Iterator<Item = u64>) {
    for n in wanted {
        let content = bytes(n, 0, 8192);
        match cache.get(&id(n), Access::Demand) {
            Some(found) => assert_eq!(found[..], content[..], "block {n}"),
            None => cache.insert(demand(n), content),
        }
    }
}

/// A cache for 100 blocks of which 150 were wanted again and again; some are cold.
fn with_cold_blocks() -> (Cache, Vec<u64>) {
    let cache = cache(100);
    ask(&cache, (0..150 * 12).map(|i| i % 150));
    let cold = (0..150).filter(|n| cache.is_cold(&id(*n))).collect::<Vec<u64>>();
    assert!(cold.len() > 20, "{:?}", cache.stats());
    (cache, cold)
}

#[test]
fn what_is_found_is_what_was_last_put_there_and_the_limit_holds_with_a_cold_part() {
    for seed in 1..=8 {
        let (mut dice, max) = (Dice(seed), 1 << 20);
        let cache = Cache::new(max);
        cache.set_cold(50);
        let mut oracle: BTreeMap<u64, Buf> = BTreeMap::new();
        for step in 0..20_000u64 {
            let reach = 1 + dice.roll(400);
            let n = dice.roll(reach);
            let at = format!("seed {seed}, step {step}");
            match dice.roll(1000) {
                0..600 => {
                    let access = [Access::Demand, Access::Demand, Access::Prefetch][dice.roll(3) as usize];
                    match (cache.get(&id(n), access), oracle.get(&n)) {
                        (Some(found), Some(last)) => assert_eq!(found[..], last[..], "{at}"),
                        (Some(_), None) => panic!("{at}: {n} was freed"),
                        (None, Some(last)) => {
                            cache.insert(Request { kind: kind(n), ..demand(n) }, last.clone());
                        }
                        (None, None) => {}
                    }
                }
                600..850 => {
                    let len = 512 << dice.roll(8);
                    let buf = if n % 4 == 0 { noise(step, len) } else { bytes(n, step, len) };
                    cache.insert(Request { kind: kind(n), ..demand(n) }, buf.clone());
                    oracle.insert(n, buf);
                }
                850..900 => match cache.take(&id(n)) {
                    Some(taken) => assert_eq!(taken[..], oracle[&n][..], "{at}"),
                    None => assert!(cache.peek(&id(n)).is_none(), "{at}"),
                },
                900..960 => {
                    cache.evict(&id(n));
                    oracle.remove(&n);
                    assert!(cache.peek(&id(n)).is_none(), "{at}");
                }
                960..990 => {
                    if let Some(found) = cache.peek(&id(n)) {
                        assert_eq!(found[..], oracle[&n][..], "{at}");
                    }
                }
                990 => cache.shrink_to(max / 2 + dice.roll(max)),
                991 => cache.set_cold(25 * dice.roll(4)),
                992 => cache.charge_beside(cache.stats().beside, dice.roll(max / 4)),
                _ => cache.relax(),
            }
            let stats = cache.stats();
            assert!(stats.size <= stats.limit && stats.limit <= max, "{at}: {stats:?}");
            if step % 64 == 0 {
                cache.check();
            }
        }
        let stats = cache.stats();
        assert!(stats.data.cold_hits > 100 && stats.metadata.cold_hits > 20, "{stats:?}");
        cache.clear();
        cache.check();
        assert_eq!((cache.stats().size, cache.stats().ghosts), (0, 0));
    }
}

fn kind(n: u64) -> Kind {
    [Kind::Data, Kind::Metadata][n as usize % 3 / 2]
}

#[test]
fn more_than_fits_is_there_when_it_compresses_well() {
    let (cache, _) = with_cold_blocks();
    let before = cache.stats().data;
    ask(&cache, (0..150 * 10).map(|i| i % 150));
    let Stats { data, .. } = cache.stats();
    assert!(data.demand_hits - before.demand_hits >= 1480, "of 1500: {data:?}");
    assert!(data.cold_full_bytes > 2 * data.cold_bytes, "{data:?}");
    assert_eq!(data.demand_hits + cache.stats().admitted, 150 * 22);
}

#[test]
fn what_passes_once_is_not_compressed() {
    let cache = cache(100);
    ask(&cache, 0..5000);
    assert_eq!((cache.stats().data.cold_blocks, cache.stats().data.cold_hits), (0, 0));
}

#[test]
fn what_does_not_compress_is_not_kept_and_is_seldom_tried() {
    let mut shard = Shard::new(100 * BLOCK, Default::default());
    shard.set_cold(50, &mut Leavers::default());
    let mut tried = 0;
    let mut dice = Dice(5);
    for _ in 0..20_000 {
        let n = dice.roll(150);
        if shard.get(&id(n), Access::Demand).is_some() {
            continue;
        }
        let mut leavers = Leavers::default();
        shard.admit(demand(n), Buf::zeroed(8192), &mut leavers);
        while let Some(it) = leavers.cooling.pop() {
            tried += 1;
            shard.note_gain(false);
            assert_eq!(shard.cooled(&it, None, &mut leavers), Settled::Left);
        }
    }
    let evicted = shard.stats().data.evicted;
    assert!(evicted > 4000 && tried > 16, "{tried} of {evicted}");
    assert!(tried < 32 + evicted / 12, "{tried} of {evicted}");
    assert_eq!(shard.stats().size, shard.resident(Kind::Data));
}

/// A shard with a block that has left and is being compressed.
fn being_compressed() -> (Shard, Cooling) {
    let mut shard = Shard::new(10 * BLOCK, Default::default());
    shard.set_cold(50, &mut Leavers::default());
    for n in (0..15).cycle().take(600) {
        let mut leavers = Leavers::default();
        if shard.get(&id(n), Access::Demand).is_none() {
            shard.admit(demand(n), bytes(n, 0, 8192), &mut leavers);
        }
        if let Some(it) = leavers.cooling.pop() {
            return (shard, it);
        }
    }
    panic!("nothing used twice has left");
}

#[test]
fn what_happens_to_a_block_while_it_is_compressed_overtakes_it() {
    let settle = |shard: &mut Shard, it: &Cooling| {
        let settled = shard.cooled(it, Packed::of(&it.buf), &mut Leavers::default());
        crate::shard::tests::check(shard);
        settled
    };
    let (mut shard, it) = being_compressed();
    assert_eq!(settle(&mut shard, &it), Settled::Kept);
    assert!(shard.packed(&it.block).is_some());
    assert_eq!(settle(&mut shard, &it), Settled::Overtaken, "it is settled once");

    let (mut shard, it) = being_compressed();
    shard.remove(&it.block, &mut Leavers::default());
    assert_eq!(settle(&mut shard, &it), Settled::Overtaken);
    assert!(shard.packed(&it.block).is_none(), "freed");

    let (mut shard, it) = being_compressed();
    let request = Request::demand(it.block, Kind::Data);
    shard.admit(request, bytes(1, 9, 8192), &mut Leavers::default());
    assert_eq!(settle(&mut shard, &it), Settled::Overtaken);
    assert_eq!(shard.peek(&it.block).unwrap()[..], bytes(1, 9, 8192)[..], "written");

    let (mut shard, it) = being_compressed();
    shard.set_cold(0, &mut Leavers::default());
    assert_eq!(settle(&mut shard, &it), Settled::Left, "switched off");
    assert!(shard.packed(&it.block).is_none());
}

#[test]
fn an_overwrite_and_a_free_forget_the_compressed_bytes() {
    let (cache, cold) = with_cold_blocks();
    let (freed, written) = (cold[0], cold[1]);
    cache.evict(&id(freed));
    assert!(cache.get(&id(freed), Access::Demand).is_none() && cache.peek(&id(freed)).is_none());
    cache.insert(demand(written), bytes(written, 1, 8192));
    assert_eq!(cache.get(&id(written), Access::Demand).unwrap()[..], bytes(written, 1, 8192)[..]);
    assert!(!cache.is_cold(&id(written)));
    cache.check();
}

#[test]
fn what_is_taken_or_looked_at_is_there_though_it_is_compressed() {
    let (cache, cold) = with_cold_blocks();
    let n = cold[0];
    let before = cache.stats();
    assert_eq!(cache.peek(&id(n)).unwrap()[..], bytes(n, 0, 8192)[..]);
    assert_eq!(cache.get(&id(n), Access::Scan).unwrap()[..], bytes(n, 0, 8192)[..]);
    assert!(cache.is_cold(&id(n)), "neither is a use");
    assert_eq!(cache.stats().data.cold_hits, before.data.cold_hits);
    assert_eq!(cache.take(&id(n)).unwrap()[..], bytes(n, 0, 8192)[..]);
    assert!(cache.take(&id(n)).is_none() && cache.stats().size < before.size);
    assert_eq!(cache.stats().data.cold_hits, before.data.cold_hits + 1);
    cache.check();
}

#[test]
fn a_block_that_is_used_again_soon_comes_back() {
    let (cache, cold) = with_cold_blocks();
    let of = |n| (cache.get(&id(n), Access::Demand).unwrap(), cache.get(&id(n), Access::Demand).unwrap());
    for &n in &cold[..5] {
        if cache.is_cold(&id(n)) {
            let (first, again) = of(n);
            assert_eq!(first[..], again[..]);
            assert!(!cache.is_cold(&id(n)), "block {n}");
        }
    }
    cache.check();
}

#[test]
fn when_memory_is_short_the_cold_part_keeps_its_share_and_switched_off_it_is_given_back() {
    let (cache, _) = with_cold_blocks();
    cache.shrink_to(30 * BLOCK);
    let stats = cache.stats();
    assert!(stats.size <= 30 * BLOCK && stats.data.cold_bytes <= 15 * BLOCK, "{stats:?}");
    assert!(stats.data.cold_bytes > 5 * BLOCK, "both have become smaller: {stats:?}");
    cache.check();
    cache.relax();
    cache.set_cold(0);
    let stats = cache.stats();
    assert_eq!((stats.data.cold_blocks, stats.data.cold_bytes, stats.data.cold_full_bytes), (0, 0, 0));
    assert_eq!(stats.size, stats.data.recent_bytes + stats.data.frequent_bytes);
    cache.check();
    ask(&cache, (0..150 * 6).map(|i| i % 150));
    assert_eq!(cache.stats().data.cold_blocks, 0);
}

/// What is wanted again soon and then never needs all of the memory as it is.
#[test]
fn where_nothing_is_wanted_from_it_the_cold_part_becomes_small() {
    let cache = cache(100);
    let mut dice = Dice(3);
    ask(&cache, (0..60_000).map(|i| if i % 2 == 0 { i / 2 } else { i / 2 - dice.roll((i / 2 + 1).min(50)) }));
    let Stats { data, .. } = cache.stats();
    assert!(data.cold_bytes < 8 * BLOCK, "{data:?}");
    assert!(data.demand_hits > 29_000, "{data:?}");
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = work.as_mut().poll(&mut cx) {
            return value;
        }
        std::thread::yield_now();
    }
}

/// Hits on compressed blocks, blocks that are being compressed, and reads of others, by four threads at once.
#[test]
fn threads_share_the_cold_part_and_each_others_reads() {
    let cache = cache(100);
    let reading: Vec<AtomicUsize> = (0..160).map(|_| AtomicUsize::new(0)).collect();
    let reads = AtomicUsize::new(0);
    std::thread::scope(|s| {
        for seed in 1..=4 {
            let (cache, reading, reads) = (&cache, &reading, &reads);
            s.spawn(move || {
                let mut dice = Dice(seed);
                for _ in 0..20_000 {
                    let n = dice.roll(160);
                    let load = || async {
                        reads.fetch_add(1, Ordering::Relaxed);
                        let others = reading[n as usize].fetch_add(1, Ordering::SeqCst);
                        assert_eq!(others, 0, "block {n} is read twice");
                        std::thread::yield_now();
                        reading[n as usize].fetch_sub(1, Ordering::SeqCst);
                        Ok(bytes(n, 0, 8192))
                    };
                    let found = run(cache.get_or_load(demand(n), load)).unwrap();
                    assert_eq!(found[..], bytes(n, 0, 8192)[..]);
                }
            });
        }
    });
    cache.check();
    let Stats { size, limit, data, .. } = cache.stats();
    assert!(size <= limit);
    assert_eq!(data.demand_hits + data.demand_misses, 80_000);
    assert_eq!(data.demand_misses, data.joined + reads.load(Ordering::Relaxed) as u64);
    assert!(data.cold_hits > 1000, "{data:?}");
}
