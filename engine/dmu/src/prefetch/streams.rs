//! Streams: which readers an object has, and what each of them will probably want next. Pure.
//!
//! ```text
//!            ┌ in the block of a seed or the next ─▶ forward ───┐
//!   read ────┼ in its block or the one before ─────▶ backward ──┼─▶ stream ── read where it is expected ─▶ Fetch
//!     │      └ three equal distances in a row ─────▶ in steps ──┘     │
//!     └ none of these ─▶ seed                                         └ long idle, and another wants its place: ends
//!
//!   forward  │         │         │         │         │         │
//!   reads    ├─1─┤├─2─┤├─3─┤                  2 stays in the block of 1: it brings nothing nearer
//!                           ├─ the window: as much as was read in order, in whole blocks, up to the stream's limit
//! ```
//!
//! Seeds are the last few reads that continued nothing, and streams are kept apart from them: readers at random push no
//! stream out. Backward is forward in the mirror: places are counted from the other end, and one code does for both.
//!
//! A stream's limit begins at [`AheadLimits::min`]. It grows by an eighth each time that something came too late, up to
//! [`AheadLimits::max`], and is halved when something was fetched in vain; from there it is doubled by what is read on.
//! Both counts are of the whole cache: a reader that takes room from others gives way as well.
//!
//! Invariants: a stream has never fetched more in advance than was read of it: bytes in order, or, in steps, blocks. It
//! fetches no block twice. A read costs no division where blocks have a power of two, and no memory but a stream's.

use std::ops::Range;
use zio::AheadLimits;

/// Reads that continued nothing and may be the first of a stream. A power of two.
const SEEDS: usize = 8;
/// A stream that was read within the last reads, so many for each stream, keeps its place: of more readers than there are
/// streams, some are read ahead of, rather than none.
const KEPT_FOR: u64 = 4;
/// A stream in steps was read so often when it is seen.
const STEPS_SEEN: u64 = 4;
/// No byte and no block has this number.
const NOWHERE: u64 = u64::MAX / 2;
/// Where the mirror counts from: more than there are blocks. Of bytes there it matters only which are the same.
const MIRROR: u64 = 1 << 62;

/// One read: its bytes, and the blocks that they are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Read {
    pub bytes: Range<u64>,
    pub blocks: Range<u64>,
}

impl Read {
    pub fn new(bytes: Range<u64>, block_size: u64) -> Read {
        let blocks = if block_size.is_power_of_two() {
            let shift = block_size.trailing_zeros();
            bytes.start >> shift..((bytes.end - 1) >> shift) + 1
        } else {
            bytes.start / block_size..(bytes.end - 1) / block_size + 1
        };
        Read { bytes, blocks }
    }

    fn len(&self) -> u64 {
        self.bytes.end.wrapping_sub(self.bytes.start)
    }

    /// The same places counted from the other end.
    fn mirrored(&self) -> Read {
        let mirrored = |range: &Range<u64>| MIRROR.wrapping_sub(range.end)..MIRROR.wrapping_sub(range.start);
        Read { bytes: mirrored(&self.bytes), blocks: mirrored(&self.blocks) }
    }
}

/// Blocks in the mirror as they are; there is none before the first.
fn unmirrored(blocks: &Range<u64>) -> Range<u64> {
    MIRROR.saturating_sub(blocks.end)..MIRROR.saturating_sub(blocks.start)
}

fn whole_blocks(bytes: u64, block_size: u64) -> u64 {
    if block_size.is_power_of_two() { bytes >> block_size.trailing_zeros() } else { bytes / block_size }
}

/// What to fetch now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fetch {
    /// Blocks side by side, and behind them those of which only the pointers are wanted. `from_end`: the last is wanted
    /// first.
    Run { blocks: Range<u64>, pointers: Range<u64>, from_end: bool },
    /// As many bytes at `first` and at each step from there.
    Steps { first: u64, len: u64, step: i64, times: u64 },
}

impl Fetch {
    /// The blocks up to `last`.
    pub fn blocks(&self, block_size: u64, last: u64) -> Vec<Range<u64>> {
        let inside = |blocks: Range<u64>| blocks.start..blocks.end.min(last.saturating_add(1));
        let all: Vec<Range<u64>> = match self {
            Fetch::Run { blocks, .. } => vec![inside(blocks.clone())],
            Fetch::Steps { first, len, step, times } => (0..*times as i64)
                .map_while(|i| first.checked_add_signed(step.checked_mul(i)?))
                .map(|at| inside(Read::new(at..at.saturating_add(*len), block_size).blocks))
                .collect(),
        };
        all.into_iter().filter(|blocks| !blocks.is_empty()).collect()
    }

    /// The blocks up to `last` beyond those, of which only the pointers are wanted.
    pub fn pointers(&self, last: u64) -> Range<u64> {
        match self {
            Fetch::Run { pointers, .. } => pointers.start..pointers.end.min(last.saturating_add(1)),
            Fetch::Steps { .. } => 0..0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Forward,
    Backward,
    Steps,
}

#[derive(Clone, Debug)]
struct Stream {
    kind: Kind,
    /// A read that begins here continues the stream, or one that begins up to `slack` later: the number of a block, of a
    /// backward stream in the mirror; of one in steps, of a byte.
    expected: u64,
    slack: u64,
    /// The byte after the last one read in order, and the block after those that were read; in steps, at first.
    next: u64,
    end: u64,
    /// Bytes read in order; in steps, blocks.
    run: u64,
    /// The block after the last one asked for in advance; in steps, how many steps from here were.
    fetched: u64,
    step: i64,
    /// The window, in bytes, is no larger.
    limit: u64,
    /// Of the whole cache, when the limit was last set.
    late: u64,
    unused: u64,
    /// When it was read last, in reads of the object.
    read_at: u64,
}

impl Stream {
    /// Of two reads in order, forward as `kind` looks at them.
    fn in_order(kind: Kind, first: &Read, block_size: u64, limits: &AheadLimits) -> Stream {
        Stream {
            kind,
            expected: first.blocks.end - 1,
            slack: 1,
            next: first.bytes.end,
            end: first.blocks.end,
            run: first.len(),
            fetched: first.blocks.end,
            step: 0,
            limit: least(block_size, limits),
            late: limits.late,
            unused: limits.unused,
            read_at: 0,
        }
    }

    /// After `read`, which was the last of [`STEPS_SEEN`].
    fn in_steps(read: &Read, step: i64, block_size: u64, limits: &AheadLimits) -> Stream {
        let least = whole_blocks(read.len() + block_size - 1, block_size);
        Stream {
            expected: read.bytes.start.wrapping_add_signed(step),
            slack: 0,
            run: STEPS_SEEN * least,
            fetched: 0,
            step,
            ..Stream::in_order(Kind::Steps, read, block_size, limits)
        }
    }

    /// A read of the stream, as it looks at places.
    fn advance(&mut self, read: &Read, block_size: u64, limits: &AheadLimits) -> Option<Range<u64>> {
        if read.blocks.end <= self.end {
            // In a block that was read before: it counts when it is in order, and brings no other block nearer.
            if read.bytes.start == self.next {
                self.run += read.len();
                self.next = read.bytes.end;
            }
            return None;
        }
        self.run += read.len();
        self.next = read.bytes.end;
        self.end = read.blocks.end;
        self.expected = self.end - 1;
        let start = self.fetched.max(self.end);
        // Ask in halves of the window, not block by block, so that neighbours reach the disk together.
        let window = whole_blocks(self.run.min(self.limit), block_size);
        if start > self.end + window / 2 {
            return None;
        }
        self.adjust(block_size, limits);
        let window = whole_blocks(self.run.min(self.limit), block_size);
        if start >= self.end + window {
            return None;
        }
        self.fetched = self.end + window;
        Some(start..self.fetched)
    }

    /// A read where a stream in steps expected one.
    fn step(&mut self, read: &Read, block_size: u64, limits: &AheadLimits) -> Option<Fetch> {
        self.expected = read.bytes.start.wrapping_add_signed(self.step);
        self.run += read.blocks.end - read.blocks.start;
        self.fetched = self.fetched.saturating_sub(1);
        self.reach(read, block_size, limits)
    }

    fn reach(&mut self, read: &Read, block_size: u64, limits: &AheadLimits) -> Option<Fetch> {
        // Where steps are no whole blocks, a read may be in one more than the next.
        let is_even =
            whole_blocks(self.step.unsigned_abs(), block_size) * block_size == self.step.unsigned_abs();
        let most = match is_even {
            true => read.blocks.end - read.blocks.start,
            false => whole_blocks(read.len() + 2 * block_size - 2, block_size),
        };
        let window = |stream: &Stream| stream.run.min(whole_blocks(stream.limit, block_size)) / most;
        if self.fetched > window(self) / 2 {
            return None;
        }
        self.adjust(block_size, limits);
        let (from, to) = (self.fetched, window(self));
        let first =
            read.bytes.start.checked_add_signed(self.step.checked_mul(i64::try_from(from + 1).ok()?)?)?;
        if from >= to {
            return None;
        }
        self.fetched = to;
        Some(Fetch::Steps { first, len: read.len(), step: self.step, times: to - from })
    }

    fn adjust(&mut self, block_size: u64, limits: &AheadLimits) {
        let least = least(block_size, limits);
        if limits.unused != self.unused {
            self.limit = (self.limit / 2).max(2 * block_size);
        } else if self.limit < least {
            self.limit = (self.limit * 2).max(2 * block_size).min(least);
        } else if limits.late != self.late {
            self.limit += self.limit / 8;
        }
        self.limit = self.limit.min(limits.max);
        (self.late, self.unused) = (limits.late, limits.unused);
    }
}

/// Where the limit of a stream begins.
fn least(block_size: u64, limits: &AheadLimits) -> u64 {
    limits.min.max(2 * block_size).min(limits.max)
}

/// The readers of one object.
#[derive(Debug)]
pub(super) struct Streams {
    streams: Vec<Stream>,
    /// Of the seeds, side by side, so that they are looked through fast: where they begin and end in bytes and in blocks.
    starts: [u64; SEEDS],
    ends: [u64; SEEDS],
    first_blocks: [u64; SEEDS],
    end_blocks: [u64; SEEDS],
    next_seed: usize,
    reads: u64,
}

impl Default for Streams {
    fn default() -> Streams {
        let none = [NOWHERE; SEEDS];
        Streams {
            streams: Vec::new(),
            starts: none,
            ends: none,
            first_blocks: none,
            end_blocks: none,
            next_seed: 0,
            reads: 0,
        }
    }
}

impl Streams {
    /// Takes note of a read; answers what to fetch now.
    pub fn observe(&mut self, read: &Read, block_size: u64, limits: &AheadLimits) -> Option<Fetch> {
        self.reads += 1;
        let begins = [read.blocks.start, MIRROR - read.blocks.end, read.bytes.start];
        let is_continued = |s: &Stream| begins[s.kind as usize].wrapping_sub(s.expected) <= s.slack;
        if let Some(i) = self.streams.iter().position(is_continued) {
            let stream = &mut self.streams[i];
            stream.read_at = self.reads;
            return match stream.kind {
                Kind::Steps => stream.step(read, block_size, limits),
                _ => in_order(stream, read, block_size, limits),
            };
        }
        self.sow(read, block_size, limits)
    }

    /// A read that continues no stream: with seeds it may be one.
    #[inline(never)]
    fn sow(&mut self, read: &Read, block_size: u64, limits: &AheadLimits) -> Option<Fetch> {
        for i in 0..SEEDS {
            let is_forward = read.blocks.start.wrapping_sub(self.end_blocks[i].wrapping_sub(1)) <= 1;
            let is_backward = (self.first_blocks[i] + 1).wrapping_sub(read.blocks.end) <= 1;
            if is_forward || is_backward {
                return self.sprout(i, read, block_size, limits);
            }
        }
        if let Some(step) = self.step_to(read, block_size) {
            let mut stream = Stream::in_steps(read, step, block_size, limits);
            let fetch = stream.reach(read, block_size, limits);
            return self.begin(stream, limits).then_some(fetch).flatten();
        }
        let i = self.next_seed;
        self.next_seed = (i + 1) % SEEDS;
        (self.starts[i], self.ends[i]) = (read.bytes.start, read.bytes.end);
        (self.first_blocks[i], self.end_blocks[i]) = (read.blocks.start, read.blocks.end);
        None
    }

    /// A read in the blocks of a seed, or beside them.
    fn sprout(&mut self, i: usize, read: &Read, block_size: u64, limits: &AheadLimits) -> Option<Fetch> {
        let seed =
            Read { bytes: self.starts[i]..self.ends[i], blocks: self.first_blocks[i]..self.end_blocks[i] };
        let kind = if read.blocks.end > seed.blocks.end || read.bytes.start == seed.bytes.end {
            Kind::Forward
        } else if read.blocks.start < seed.blocks.start || read.bytes.end == seed.bytes.start {
            Kind::Backward
        } else {
            // Again what was read, or part of it.
            return None;
        };
        let first = if kind == Kind::Backward { seed.mirrored() } else { seed };
        let mut stream = Stream::in_order(kind, &first, block_size, limits);
        let fetch = in_order(&mut stream, read, block_size, limits);
        [self.starts[i], self.ends[i], self.first_blocks[i], self.end_blocks[i]] = [NOWHERE; 4];
        self.begin(stream, limits).then_some(fetch).flatten()
    }

    /// The distance, when this read and three seeds are each as far from the next as the others, and far enough that no
    /// block is in two of them.
    fn step_to(&self, read: &Read, block_size: u64) -> Option<i64> {
        let start = read.bytes.start;
        let apart = block_size + read.len();
        for before in self.starts {
            let step = start.wrapping_sub(before);
            let has = |place| self.starts.contains(&place);
            if has(before.wrapping_sub(step)) && has(before.wrapping_sub(step.wrapping_mul(2))) {
                let step = step as i64;
                return (before != NOWHERE && step.unsigned_abs() >= apart).then_some(step);
            }
        }
        None
    }

    /// Gives a stream a place, if need be that of the one longest idle; false when all were read just now.
    fn begin(&mut self, mut stream: Stream, limits: &AheadLimits) -> bool {
        stream.read_at = self.reads;
        let kept = KEPT_FOR * self.streams.len() as u64;
        while self.streams.len() >= limits.streams {
            let idle = self.streams.iter().enumerate().min_by_key(|(_, s)| s.read_at);
            let Some((i, longest)) = idle.map(|(i, s)| (i, s.read_at)) else { return false };
            if self.streams.len() == limits.streams && self.reads - longest < kept {
                return false;
            }
            self.streams.swap_remove(i);
        }
        self.streams.push(stream);
        true
    }
}

/// A read of a stream forward or backward.
fn in_order(stream: &mut Stream, read: &Read, block_size: u64, limits: &AheadLimits) -> Option<Fetch> {
    let is_backward = stream.kind == Kind::Backward;
    let blocks = match is_backward {
        true => stream.advance(&read.mirrored(), block_size, limits),
        false => stream.advance(read, block_size, limits),
    }?;
    let reach = whole_blocks(stream.run.min(limits.indirect), block_size);
    let pointers = blocks.end..blocks.end + reach;
    Some(match is_backward {
        true => Fetch::Run { blocks: unmirrored(&blocks), pointers: unmirrored(&pointers), from_end: true },
        false => Fetch::Run { blocks, pointers, from_end: false },
    })
}

#[cfg(test)]
mod tests;
