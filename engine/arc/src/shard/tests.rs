use super::*;
use crate::block::{Opening, PrimaryCache};
use crate::lists::Part;
use std::collections::BTreeMap;
use units::{HashSet, Sectors, Txg, VdevId};

const BLOCK: u64 = 8352;

fn id(n: u64) -> BlockId {
    BlockId { opening: Opening::default(), vdev: VdevId(0), offset: Sectors(n * 32), birth: Txg(7) }
}

fn shard(blocks: u64) -> Shard {
    Shard::new(blocks * BLOCK, Default::default())
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

    /// Small numbers far more often: the k-th about as 1/k.
    fn skewed(&mut self, below: u64) -> u64 {
        let reach = 1 + self.roll(below);
        self.roll(reach)
    }
}

/// Whether a block was there; it is put in when it was not.
fn ask(shard: &mut Shard, n: u64) -> bool {
    if shard.get(&id(n), Access::Demand).is_some() {
        return true;
    }
    shard.admit(Request::demand(id(n), Kind::Data), Buf::zeroed(8192), &mut Leavers::default());
    false
}

/// Percent of hits.
fn hits(shard: &mut Shard, wanted: impl Iterator<Item = u64>) -> u64 {
    let (mut hits, mut all) = (0, 0);
    for n in wanted {
        hits += u64::from(ask(shard, n));
        all += 1;
    }
    hits * 100 / all
}

fn round(from: u64, len: u64, requests: u64) -> impl Iterator<Item = u64> {
    (0..requests).map(move |i| from + i % len)
}

/// New blocks, and as often one again of the last half a cacheful.
fn recent(from: u64, blocks: u64, requests: u64, mut dice: Dice) -> impl Iterator<Item = u64> {
    (0..requests).map(move |i| match i % 2 {
        0 => from + i / 2,
        _ => from + i / 2 - dice.roll((blocks / 2).min(i / 2 + 1)),
    })
}

/// What must be true of a shard at any time, by walking all of it.
pub(crate) fn check(shard: &Shard) {
    let mut seen = 0;
    for kind in Kind::ALL {
        let (mut epochs, mut within) = (BTreeMap::new(), 0);
        let horizon = &shard.sides[kind.index()].horizon;
        for part in [Part::Ahead, Part::Window, Part::Main, Part::Cold, Part::GhostWindow, Part::GhostMain] {
            let slots: Vec<u32> = shard.lists.slots(kind, part, false).collect();
            let mut back: Vec<u32> = shard.lists.slots(kind, part, true).collect();
            back.reverse();
            assert_eq!(slots, back, "a list is the same from both ends");
            assert_eq!(slots.len(), shard.lists.count(kind, part));
            let mut bytes = 0;
            for &slot in &slots {
                let entry = &shard.lists[slot];
                assert_eq!(
                    (entry.kind, entry.part, shard.map.get(&shard.lists.content(slot).block)),
                    (kind, part, Some(&slot))
                );
                assert_eq!(
                    shard.lists.content(slot).buf.is_some(),
                    Part::RESIDENT.contains(&part),
                    "a ghost holds no bytes"
                );
                if part != Part::Ahead && horizon.holds(entry.epoch) {
                    *epochs.entry(entry.epoch).or_insert(0) += entry.charge;
                    within += entry.charge;
                }
                bytes += entry.charge;
            }
            assert_eq!(bytes, shard.lists.bytes(kind, part));
            let is_ghost = matches!(part, Part::GhostWindow | Part::GhostMain);
            assert!(!is_ghost || bytes <= shard.limit, "ghosts are bounded");
            seen += slots.len();
        }
        for (epoch, bytes) in horizon.epochs() {
            assert_eq!(bytes, epochs.get(&epoch).copied().unwrap_or(0), "of epoch {epoch}");
        }
        assert_eq!(horizon.epochs().map(|(_, bytes)| bytes).sum::<u64>(), within);
        let target = shard.sides[kind.index()].target;
        assert!(target <= shard.max, "{target}");
    }
    assert_eq!(seen, shard.map.len(), "each block is in one list");
    assert!(shard.size() <= shard.limit);
    shard.cold.check(&shard.lists);
}

#[test]
fn whatever_is_asked_the_lists_and_the_horizon_are_those_of_the_blocks() {
    for seed in 1..=12 {
        let (mut dice, mut leavers) = (Dice(seed), Leavers::default());
        let mut shard = Shard::new((1 << 20) + (seed << 15), Default::default());
        for step in 0..6_000 {
            let n = dice.skewed(300);
            let access =
                [Access::Demand, Access::Demand, Access::Prefetch, Access::Scan][dice.roll(4) as usize];
            match dice.roll(100) {
                0..45 => _ = shard.get(&id(n), access),
                45..90 => {
                    let kind = [Kind::Data, Kind::Metadata][n as usize % 3 / 2];
                    let access = if access == Access::Scan { Access::Demand } else { access };
                    let (block, primary) = (id(n), PrimaryCache::All);
                    let request = Request { block, kind, access, primary, origin: None };
                    shard.admit(request, Buf::zeroed(512 << dice.roll(9)), &mut leavers);
                }
                90..94 => shard.remove(&id(n), &mut leavers),
                94..96 => _ = shard.take(&id(n), &mut leavers),
                96 => shard.set_limit((512 << 10) + dice.roll(1 << 20), &mut leavers),
                97 => shard.set_limit(u64::MAX, &mut leavers),
                98 => shard.set_beside(dice.roll(400 << 10), &mut leavers),
                _ if dice.roll(40) == 0 => shard.clear(&mut leavers),
                _ => {}
            }
            assert!(shard.size() <= shard.limit, "seed {seed}, step {step}");
            if step % 16 == 0 {
                check(&shard);
            }
        }
        assert!(
            shard.stats.data.recent_ghost_hits > 20 && shard.stats.data.frequent_ghost_hits > 5,
            "{:?}",
            shard.stats
        );
    }
}

#[test]
fn of_a_loop_that_is_larger_than_the_memory_what_fits_stays() {
    for blocks in [100, 1000] {
        let mut shard = shard(blocks);
        hits(&mut shard, round(0, blocks * 11 / 10, blocks * 12));
        let hits = hits(&mut shard, round(0, blocks * 11 / 10, blocks * 11));
        assert!(hits >= 80, "{hits} % of a loop whose ten elevenths fit into {blocks} blocks");
    }
}

#[test]
fn what_is_wanted_again_soon_and_then_never_is_there() {
    let mut shard = shard(1000);
    let hits = hits(&mut shard, recent(0, 1000, 40_000, Dice(3)));
    assert!(hits >= 49, "{hits} %");
}

#[test]
fn blocks_that_are_wanted_once_do_not_push_out_what_is_wanted_often() {
    let mut shard = shard(1000);
    let mut dice = Dice(11);
    hits(&mut shard, (0..20_000).map(|_| dice.roll(600)));
    hits(&mut shard, 10_000..40_000);
    let left = (0..600).filter(|&n| shard.peek(&id(n)).is_some()).count();
    assert!(left >= 590, "{left} of 600 are left after thirty cachefuls of others");
}

/// Each phase is unlike the one before, and what was good for that is bad for it.
#[test]
fn a_change_of_what_is_asked_is_followed_within_a_few_cachefuls() {
    const BLOCKS: u64 = 1000;
    let mut shard = shard(BLOCKS);
    let again = |shard: &mut Shard, from: u64, seed| {
        hits(shard, recent(from, BLOCKS, 4 * BLOCKS, Dice(seed)));
        let after = hits(shard, recent(from + 4 * BLOCKS, BLOCKS, 4 * BLOCKS, Dice(seed + 1)));
        assert!(after >= 45, "recent: {after} %");
    };
    let around = |shard: &mut Shard, from: u64| {
        hits(shard, round(from, BLOCKS * 11 / 10, 6 * BLOCKS));
        let after = hits(shard, round(from, BLOCKS * 11 / 10, 4 * BLOCKS));
        assert!(after >= 70, "loop: {after} %");
    };
    let often = |shard: &mut Shard, from: u64, seed| {
        let mut dice = Dice(seed);
        hits(shard, (0..4 * BLOCKS).map(|_| from + dice.roll(BLOCKS * 8 / 10)));
        let after = hits(shard, (0..4 * BLOCKS).map(|_| from + dice.roll(BLOCKS * 8 / 10)));
        assert!(after >= 97, "often: {after} %");
    };
    for turn in 0..3 {
        let from = (turn + 1) * 1_000_000;
        around(&mut shard, from);
        again(&mut shard, from + 100_000, turn + 1);
        often(&mut shard, from + 200_000, turn + 7);
        again(&mut shard, from + 300_000, turn + 3);
        check(&shard);
    }
}

/// Streams that read ahead, more in all than the window has at its smallest, beside blocks that are wanted often.
#[test]
fn what_was_read_ahead_is_there_when_it_is_asked_for() {
    let mut shard = shard(1000);
    hits(&mut shard, round(0, 1100, 12_000));
    assert!(shard.sides[0].target < 1000 * BLOCK / 32, "the loop has made the window small");
    let (mut missed, mut leavers) = (0, Leavers::default());
    for i in 0..20_000u64 {
        let ahead = Request { access: Access::Prefetch, ..Request::demand(id(10_000 + i), Kind::Data) };
        shard.admit(ahead, Buf::zeroed(8192), &mut leavers);
        if i >= 200 {
            missed += u64::from(shard.get(&id(10_000 + i - 200), Access::Demand).is_none());
        }
        ask(&mut shard, i % 1100);
    }
    assert_eq!(missed, 0, "of 19800 that were read ahead");
    assert_eq!(shard.stats.data.prefetched_used, 19_800);
    let kept = hits(&mut shard, round(0, 1100, 1100));
    assert!(kept > 50, "{kept} % of the loop are still there");
}

/// Clients that read blocks of 1 MiB in pieces find each until they are through, though the window has room for none.
#[test]
fn a_large_block_stays_while_it_is_read_in_pieces() {
    let mut shard = Shard::new(40 << 20, Default::default());
    hits(&mut shard, round(0, 5500, 60_000));
    assert!(shard.sides[0].target < 1 << 20, "the loop has made the window small");
    let large = |n: u64| Request::demand(id(100_000 + n), Kind::Data);
    let mut missed = 0;
    for turn in 0..200 {
        for piece in 0..16 {
            for client in 0..3 {
                let request = large(3 * turn + client);
                if shard.get(&request.block, Access::Demand).is_none() {
                    missed += u64::from(piece > 0);
                    shard.admit(request, Buf::zeroed(1 << 20), &mut Leavers::default());
                }
            }
            ask(&mut shard, (turn * 16 + piece) % 5500);
        }
    }
    assert_eq!(missed, 0, "of pieces after the first");
}

/// What leaves must have been offered to a second level before: it is near the end of one of the lists that are looked
/// through.
#[test]
fn what_leaves_next_is_near_the_end_of_the_lists_that_a_second_level_is_fed_from() {
    const BLOCKS: u64 = 1000;
    for seed in 1..=4 {
        let (mut shard, mut dice) = (shard(BLOCKS), Dice(seed));
        let (mut evicted, mut far) = (0, 0);
        for step in 0..30_000u64 {
            let n = if step / 5000 % 2 == 0 { dice.skewed(4000) } else { step };
            if shard.get(&id(n), Access::Demand).is_some() {
                continue;
            }
            let head = |part| shard.lists.slots(Kind::Data, part, false).take(BLOCKS as usize / 16);
            let near: Vec<BlockId> = head(Part::Window)
                .chain(head(Part::Main))
                .map(|slot| shard.lists.content(slot).block)
                .collect();
            let mut leavers = Leavers::default();
            shard.admit(Request::demand(id(n), Kind::Data), Buf::zeroed(8192), &mut leavers);
            evicted += leavers.evicted.len();
            far += leavers.evicted.iter().filter(|(block, ..)| !near.contains(block)).count();
        }
        assert!(evicted > 5000 && far * 50 < evicted, "seed {seed}: {far} of {evicted} came from further");
    }
}

/// A loop has made the window small, and blocks that are read once pass through it. Answers how many of them a second level
/// had not been shown when they left, and how large the window was in the end.
fn not_shown(is_fed: bool, between_looks: u64, bound: u64) -> (usize, u64) {
    let mut shard = shard(1000);
    hits(&mut shard, round(0, 1100, 12_000));
    let feeder = Opening::default();
    shard.set_feeder(feeder, is_fed);
    let (mut shown, mut lost) = (HashSet::default(), 0);
    for n in 10_000..20_000 {
        let mut leavers = Leavers::default();
        shard.admit(Request::demand(id(n), Kind::Data), Buf::zeroed(8192), &mut leavers);
        let left = leavers.evicted.iter().map(|(block, ..)| block);
        lost += left.filter(|block| **block != id(n) && !shown.contains(*block)).count();
        if n % between_looks == 0 {
            shard.look(feeder, bound);
            let slots = shard
                .lists
                .slots(Kind::Data, Part::Window, false)
                .map(|slot| shard.lists.content(slot).block);
            shown.extend(slots.chain((0..1100).map(id)));
        }
        assert!(shard.size() <= shard.limit);
    }
    check(&shard);
    (lost, shard.lists.bytes(Kind::Data, Part::Window) / BLOCK)
}

/// Cache devices are fed once a second, and a small window is passed through within that.
#[test]
fn while_there_are_cache_devices_no_block_leaves_the_window_before_it_was_looked_at() {
    let (lost, window) = not_shown(false, 100, u64::MAX);
    assert!(lost > 5000 && window < 64, "without: {lost} not shown, {window} blocks in the window");
    let (lost, window) = not_shown(true, 100, u64::MAX);
    assert!(lost < 50 && window < 300, "{lost} not shown, {window} blocks in the window");
    let (_, window) = not_shown(true, 100, 40 * BLOCK);
    assert!(window < 64, "no more than is taken in: {window} blocks");
    let (_, window) = not_shown(true, 5000, u64::MAX);
    assert!(window <= 501, "half of the memory at most: {window} blocks");
}

/// A volume that is sixteen times the memory, read at random: its indirect blocks take half of that, and a quarter is
/// what metadata begins with.
#[test]
fn metadata_that_is_missed_all_the_time_gets_its_memory_soon() {
    let (pointers, volume) = (1024, 128 * 1024);
    let mut shard = Shard::new(32 << 20, Default::default());
    let (indirect, data) = (Buf::zeroed(128 << 10), Buf::zeroed(4 << 10));
    let mut dice = Dice(11);
    let mut misses = |reads: u64| {
        let mut misses = 0;
        for _ in 0..reads {
            let block = dice.roll(volume);
            let asked = [(volume + block / pointers, Kind::Metadata, &indirect), (block, Kind::Data, &data)];
            for (n, kind, bytes) in asked {
                if shard.get(&id(n), Access::Demand).is_none() {
                    misses += u64::from(kind == Kind::Metadata);
                    shard.admit(Request::demand(id(n), kind), bytes.clone(), &mut Leavers::default());
                }
            }
        }
        misses
    };
    let begun = misses(15_000);
    assert!(begun < 3_000, "{begun} at first");
    let then = misses(20_000);
    assert!(then < 40, "{then} afterwards");
    check(&shard);
}
