use super::*;
use std::collections::BTreeSet;

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

fn limits() -> AheadLimits {
    AheadLimits { streams: 8, min: 4 * M, max: 64 * M, indirect: 64 * M, late: 0, unused: 0 }
}

/// Places at random, the same for the same seed.
fn places(seed: u64) -> impl Iterator<Item = u64> {
    let mut x = seed | 1;
    std::iter::repeat_with(move || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x
    })
}

/// The streams of an object, with what they fetched.
struct Watched {
    streams: Streams,
    block: u64,
    limits: AheadLimits,
    /// How many blocks, and the end of the last.
    fetched: u64,
    end: u64,
}

impl Watched {
    fn new(block: u64) -> Watched {
        Watched { streams: Streams::default(), block, limits: limits(), fetched: 0, end: 0 }
    }

    /// The blocks that are fetched after a read.
    fn read(&mut self, bytes: Range<u64>) -> Vec<u64> {
        let fetch = self.streams.observe(&Read::new(bytes, self.block), self.block, &self.limits);
        let blocks = fetch.map_or_else(Vec::new, |fetch| fetch.blocks(self.block, u64::MAX));
        let blocks: Vec<u64> = blocks.into_iter().flatten().collect();
        self.fetched += blocks.len() as u64;
        self.end = blocks.last().map_or(self.end, |last| last + 1);
        blocks
    }
}

/// How a reader goes on: in order, backward, or each time so far from the last.
#[derive(Clone, Copy, Debug)]
enum Way {
    Forward,
    Backward,
    Steps(i64),
}

impl Way {
    fn next(self, at: u64, request: u64) -> u64 {
        match self {
            Way::Forward => at + request,
            Way::Backward => at - request,
            Way::Steps(step) => at.strict_add_signed(step),
        }
    }
}

const WAYS: [Way; 6] = [
    Way::Forward,
    Way::Backward,
    Way::Steps(5 * M as i64),
    Way::Steps(-5 * M as i64),
    Way::Steps(4 * M as i64 + 4096 + 512),
    Way::Steps(-4 * M as i64 - 4096 - 512),
];

#[test]
fn a_reader_that_goes_on_as_before_is_seen_and_no_block_is_fetched_twice_or_before_as_much_was_read() {
    for (block, request) in [
        (16 * K, 16 * K),
        (16 * K, 4 * K),
        (16 * K, 128 * K),
        (128 * K, 512),
        (1024 * K, 1024 * K),
        (3 * K, 3 * K),
    ] {
        for way in WAYS {
            let mut object = Watched::new(block);
            let is_in_steps = matches!(way, Way::Steps(_));
            let (mut at, mut read, mut in_time, mut beyond) = (1 << 40, 0, 0, 0);
            let (mut ahead, mut touched) = (BTreeSet::new(), BTreeSet::new());
            for turn in 0..1500 {
                let mine = Read::new(at..at + request, block).blocks;
                in_time += u64::from(mine.clone().all(|blkid| ahead.contains(&blkid)));
                beyond -= mine.filter(|blkid| touched.insert(*blkid) && ahead.contains(blkid)).count() as u64;
                read += request;
                for blkid in object.read(at..at + request) {
                    assert!(ahead.insert(blkid), "{way:?}: block {blkid} is fetched twice");
                    assert!(!touched.contains(&blkid), "{way:?}: block {blkid} was read already");
                    beyond += 1;
                }
                let may = if is_in_steps { touched.len() as u64 } else { read / block };
                assert!(beyond <= may, "{way:?}, {block} by {request}: {beyond} ahead, {may} were read");
                assert!(beyond * block <= 4 * M, "{way:?}: {beyond} of {block} ahead and nothing is late");
                assert!(turn > 2 || !is_in_steps || ahead.is_empty(), "three equal distances are a reader");
                at = way.next(at, request);
            }
            assert!(in_time > 1400 - 4 * block / request, "{way:?}, {block} by {request}: {in_time} in time");
        }
    }
}

#[test]
fn one_read_and_reads_at_random_are_no_stream() {
    let mut object = Watched::new(16 * K);
    for at in [5000, 700, 91, 4400, 2] {
        assert!(object.read(at * 16 * K..(at + 1) * 16 * K).is_empty());
    }
    let mut object = Watched::new(16 * K);
    for place in places(3).take(10_000) {
        let at = place % (1 << 40) / (4 * K) * (4 * K);
        object.read(at..at + 4 * K);
    }
    assert_eq!(object.fetched, 0);
}

#[test]
fn more_distances_than_one_are_no_steps() {
    let mut object = Watched::new(16 * K);
    let mut at = 1 << 40;
    for turn in 0..1000u64 {
        assert!(object.read(at..at + 16 * K).is_empty());
        at += (4 + turn * turn) * 16 * K;
    }
}

/// Many readers at once, each in its way, and readers at random between them.
#[test]
fn readers_of_every_kind_together_are_all_seen_and_little_is_fetched_in_vain() {
    for seed in 1..=40 {
        let (block, request) = if seed % 2 == 0 { (16 * K, 16 * K) } else { (128 * K, 32 * K) };
        let mut dice = places(seed);
        let mut roll = |below: u64| (dice.next().unwrap() >> 11) % below;
        let mut object = Watched::new(block);
        let readers = 1 + roll(7) as usize;
        let ways: Vec<Way> = (0..readers).map(|_| WAYS[roll(WAYS.len() as u64) as usize]).collect();
        let mut at: Vec<u64> = (1..=readers as u64).map(|i| (i << 40) + roll(1 << 20) * block).collect();
        let (mut ahead, mut touched) = (BTreeSet::new(), BTreeSet::new());
        let (mut in_time, mut turns) = (0, 0);
        for _ in 0..4000 {
            if roll(4) == 0 {
                let place = roll(1 << 24) * block + (20 << 40);
                assert!(object.read(place..place + request).is_empty(), "seed {seed}");
                continue;
            }
            // Each reads a few times in a row, as requests come in.
            let i = roll(readers as u64) as usize;
            for _ in 0..=roll(6) {
                let mine = Read::new(at[i]..at[i] + request, block).blocks;
                in_time +=
                    u64::from(mine.clone().all(|blkid| ahead.contains(&blkid) || touched.contains(&blkid)));
                turns += 1;
                touched.extend(mine);
                ahead.extend(object.read(at[i]..at[i] + request));
                at[i] = ways[i].next(at[i], request);
            }
        }
        assert!(in_time * 10 > turns * 8, "seed {seed}, {ways:?}: {in_time} of {turns} in time");
        let in_vain = ahead.difference(&touched).count() as u64;
        assert!(
            in_vain * block <= readers as u64 * 4 * M,
            "seed {seed}, {ways:?} of {block}: {in_vain} blocks beyond"
        );
        assert!(
            object.fetched as usize <= ahead.len() + ahead.len() / 50,
            "seed {seed}: blocks are fetched again"
        );
    }
}

#[test]
fn of_more_readers_than_streams_some_are_read_ahead_of_rather_than_none() {
    let mut object = Watched::new(16 * K);
    let mut fetched = [0; 12];
    for turn in 0..400 {
        for (i, fetched) in fetched.iter_mut().enumerate() {
            let at = ((i as u64 + 1) << 40) + turn * 16 * K;
            *fetched += object.read(at..at + 16 * K).len();
        }
    }
    assert_eq!(fetched.iter().filter(|fetched| **fetched > 300).count(), 8, "{fetched:?}");
    // Where they have ended, others begin.
    for turn in 0..400 {
        let at = (40 << 40) + turn * 16 * K;
        object.read(at..at + 16 * K);
    }
    assert!(object.read((40 << 40) + 400 * 16 * K..(40 << 40) + 401 * 16 * K).is_empty());
    assert!(object.streams.streams.iter().any(|stream| stream.next == (40 << 40) + 401 * 16 * K));
}

/// The most that is fetched and not read yet, of a reader in order for `turns` reads of a block.
fn reach(object: &mut Watched, from: u64, turns: u64) -> u64 {
    let ahead = (from..from + turns).map(|blkid| {
        object.read(blkid * object.block..(blkid + 1) * object.block);
        object.end.saturating_sub(blkid + 1) * object.block
    });
    ahead.max().unwrap_or(0)
}

#[test]
fn a_window_grows_by_what_came_too_late_and_shrinks_by_what_was_never_used() {
    let mut object = Watched::new(128 * K);
    assert_eq!(reach(&mut object, 0, 1000), 4 * M);
    let mut at = 1000;
    let mut turn = |object: &mut Watched, late, unused| {
        (object.limits.late, object.limits.unused) = (late, unused);
        let most = reach(object, at, 600);
        at += 600;
        most
    };
    assert!((4 * M..5 * M).contains(&turn(&mut object, 1, 0)), "an eighth more");
    let mut most = 0;
    for late in 2..60 {
        most = turn(&mut object, late, 0);
    }
    assert!((60 * M..=64 * M).contains(&most), "{most}");
    let stays = turn(&mut object, 60, 0);
    assert!(stays >= most - M, "{stays} after {most}");
    for unused in 1..10 {
        let (before, now) = (most, turn(&mut object, 60, unused));
        // What was asked for before is still ahead at first.
        most = turn(&mut object, 60, unused);
        assert!(now <= before && most <= before.div_ceil(2).max(4 * M), "{before}, {now}, {most}");
    }
    assert_eq!(most, 4 * M, "and comes back to where it began");
}

#[test]
fn the_distances_hold_as_they_are_set() {
    let most = |min, max| {
        let mut object = Watched::new(16 * K);
        (object.limits.min, object.limits.max) = (min, max);
        reach(&mut object, 0, 2000)
    };
    assert_eq!(most(M, 64 * M), M);
    assert_eq!(most(4 * M, M / 2), M / 2, "the larger gives way");
    assert_eq!(most(0, 64 * M), 32 * K, "two blocks");
    assert_eq!(most(4 * M, 0), 0);
    let of_pointers = |indirect| {
        let mut streams = Streams::default();
        let limits = AheadLimits { indirect, ..limits() };
        let fetches = (0..2000).filter_map(|blkid: u64| {
            let read = Read::new(blkid * 16 * K..(blkid + 1) * 16 * K, 16 * K);
            streams.observe(&read, 16 * K, &limits)
        });
        let pointers = fetches.map(|fetch| fetch.pointers(u64::MAX)).map(|of| of.end - of.start);
        pointers.max().unwrap() * 16 * K
    };
    assert_eq!(of_pointers(8 * M), 8 * M);
    assert_eq!(of_pointers(0), 0);
    let mut object = Watched::new(16 * K);
    object.limits.streams = 1;
    for turn in 0..50 {
        for i in [0, 1] {
            let at = (i << 40) + turn * 16 * K;
            object.read(at..at + 16 * K);
        }
    }
    assert_eq!(object.streams.streams.len(), 1);
}

#[test]
fn nothing_is_fetched_beyond_either_end() {
    for way in [Way::Backward, Way::Steps(-3 * M as i64)] {
        let (block, mut at) = (16 * K, 300 * M);
        let mut streams = Streams::default();
        while let Some(next) = at.checked_sub(3 * M) {
            let fetch = streams.observe(&Read::new(at..at + block, block), block, &limits());
            let blocks = fetch.map_or_else(Vec::new, |fetch| fetch.blocks(block, u64::MAX));
            assert!(blocks.iter().all(|range| range.end <= at / block), "{way:?} at {at}: {blocks:?}");
            at = if matches!(way, Way::Backward) { at - block } else { next };
        }
    }
    let fetch = Fetch::Run { blocks: 5..90, pointers: 90..200, from_end: false };
    assert!(fetch.blocks(K, 50).into_iter().flatten().eq(5..51) && fetch.pointers(50).is_empty());
    let fetch = Fetch::Steps { first: 10 * K, len: K, step: 20 * K as i64, times: 9 };
    assert_eq!(fetch.blocks(K, 50), [10..11, 30..31, 50..51]);
}

/// Bytes fetched in advance and not asked for, for each byte that is, by requests of 1 MiB at random, aligned to `align`,
/// that arrive in parts.
fn in_vain(seed: u64, block: u64, part: u64, align: u64) -> f64 {
    let (mut object, lun, requests) = (Watched::new(block), 8 << 30, 500);
    let mut in_vain = 0;
    for place in places(seed).take(requests) {
        let at = (place % (lun - 1024 * K)) / align * align;
        let end = (at + 1024 * K).div_ceil(block);
        for offset in (at..at + 1024 * K).step_by(part as usize) {
            let fetch = object.read(offset..offset + part);
            in_vain += fetch.into_iter().filter(|blkid| *blkid >= end).count() as u64 * block;
        }
    }
    in_vain as f64 / (requests as u64 * 1024 * K) as f64
}

#[test]
fn a_request_at_random_that_arrives_in_parts_fetches_nothing_else_from_a_large_block() {
    for seed in 1..20 {
        for part in [4 * K, 64 * K, 256 * K, 512 * K, 1024 * K] {
            let aligned = in_vain(seed, 1024 * K, part, 1024 * K);
            assert!(
                aligned < 0.02,
                "seed {seed}, parts of {part}: {aligned} bytes in vain for each asked for"
            );
            for block in [16 * K, 128 * K, 1024 * K] {
                let anywhere = in_vain(seed, block, part, 4 * K);
                assert!(anywhere <= 1.05, "seed {seed}, blocks of {block}, parts of {part}: {anywhere}");
            }
        }
    }
}
