//! What clients ask of a volume: sizes, places and times of the last requests, always counted.
//!
//! ```text
//!   read, write, flush ──▶ Counts: sums; from 16K requests on all are halved, so that what was long ago is forgotten
//!                             └──▶ Counted: as they are at one moment
//! ```
//!
//! Of reads one in [`LOOKED_AT`] is timed and counts for all of these: a read that is in memory takes some 11,000
//! instructions, of which a lock and two looks at the clock would be two in a hundred. Writes are all counted, as it matters
//! where the one before ended.
//!
//! Flushes and durable writes are counted by time: the busiest ten seconds of the last hour. When a volume has no client
//! any more its counts stay, for the next one ([`crate::Volumes`]); with blocks of another size they begin anew.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use world::Instant;

const LOOKED_AT: u64 = 16;
/// So many reads, or writes, are remembered at most.
const REMEMBERED: u64 = 16 << 10;
const WINDOW: Duration = Duration::from_secs(10);
const HOUR: Duration = Duration::from_secs(3600);

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Bytes of the volume's blocks.
    pub block: u64,
    pub reads: u64,
    pub read_bytes: u64,
    /// Reads that had to wait for a device.
    pub misses: u64,
    pub writes: u64,
    pub written_bytes: u64,
    /// Writes that began where the one before had ended.
    pub in_row: u64,
    /// The largest write, in bytes, and how many were as large.
    pub largest: u64,
    pub at_largest: u64,
    /// Writes of whole blocks, and those of them that began as far behind the beginning of one as the last that did.
    pub whole: u64,
    pub astray: u64,
    pub astray_by: u64,
    /// Nanoseconds of all reads and writes together.
    pub taken_ns: u64,
    /// Durable writes and flushes; none, if there were none in the last hour.
    pub sync_per_second: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    counted: Counted,
    /// Where the last write ended.
    ended: u64,
    window: Option<(Instant, u64)>,
    /// The rate of the busiest window, and when it was.
    busiest: Option<(Instant, u64)>,
}

impl Counts {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Sums are whole at any time.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When a read begins that is to be counted; most are not.
    pub fn look(&self) -> Option<Instant> {
        thread_local! {
            static READS: Cell<u64> = const { Cell::new(0) };
        }
        let reads = READS.get();
        READS.set(reads + 1);
        reads.is_multiple_of(LOOKED_AT).then(world::now)
    }

    /// A read ended that had been looked at.
    pub fn read(&self, len: u64, is_hit: bool, taken: Duration) {
        let counted = &mut self.lock().counted;
        counted.reads += LOOKED_AT;
        counted.read_bytes += LOOKED_AT * len;
        counted.misses += if is_hit { 0 } else { LOOKED_AT };
        counted.taken_ns = counted.taken_ns.saturating_add(nanoseconds(taken).saturating_mul(LOOKED_AT));
        counted.forget_some();
    }

    pub fn wrote(&self, block: u64, offset: u64, len: u64, taken: Duration) {
        let mut inner = self.lock();
        if inner.counted.block != block {
            let sync_per_second = inner.counted.sync_per_second;
            inner.counted = Counted { block, sync_per_second, ..Counted::default() };
        }
        let follows = inner.ended == offset && inner.counted.writes > 0;
        inner.ended = offset + len;
        let counted = &mut inner.counted;
        counted.writes += 1;
        counted.written_bytes += len;
        counted.in_row += u64::from(follows);
        if len > counted.largest {
            (counted.largest, counted.at_largest) = (len, 0);
        }
        counted.at_largest += u64::from(len == counted.largest);
        if block > 0 && len.is_multiple_of(block) {
            counted.whole += 1;
            let by = offset % block;
            if by != 0 {
                counted.astray = if by == counted.astray_by { counted.astray + 1 } else { 1 };
                counted.astray_by = by;
            }
        }
        counted.taken_ns = counted.taken_ns.saturating_add(nanoseconds(taken));
        counted.forget_some();
    }

    pub fn synced(&self, now: Instant) {
        let mut inner = self.lock();
        let (began, count) = inner.window.unwrap_or((now, 0));
        inner.window = Some((began, count + 1));
        inner.end_window(now);
    }

    pub fn told(&self, now: Instant) -> Counted {
        let mut inner = self.lock();
        inner.end_window(now);
        let busiest = inner.busiest.filter(|(at, _)| now.since(*at) < HOUR);
        let sync_per_second = busiest.map(|(_, rate)| rate);
        Counted { sync_per_second, ..inner.counted.clone() }
    }
}

impl Inner {
    fn end_window(&mut self, now: Instant) {
        let Some((began, count)) = self.window.filter(|(began, _)| now.since(*began) >= WINDOW) else {
            return;
        };
        self.window = None;
        let rate = count / now.since(began).as_secs().max(1);
        if self.busiest.is_none_or(|(at, busiest)| rate >= busiest || now.since(at) >= HOUR) {
            self.busiest = Some((now, rate));
        }
    }
}

impl Counted {
    fn forget_some(&mut self) {
        if self.reads < REMEMBERED && self.writes < REMEMBERED {
            return;
        }
        for sum in [
            &mut self.reads,
            &mut self.read_bytes,
            &mut self.misses,
            &mut self.writes,
            &mut self.written_bytes,
            &mut self.in_row,
            &mut self.at_largest,
            &mut self.whole,
            &mut self.astray,
            &mut self.taken_ns,
        ] {
            *sum /= 2;
        }
        if self.at_largest == 0 {
            self.largest = 0;
        }
    }
}

fn nanoseconds(taken: Duration) -> u64 {
    u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn writes(counts: &Counts, of: impl IntoIterator<Item = (u64, u64)>) {
        of.into_iter().for_each(|(offset, len)| counts.wrote(MIB, offset, len, Duration::from_micros(100)));
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let counts = Counts::default();
        writes(&counts, (0..2000).map(|i| (i * (512 << 10), 512 << 10)));
        let told = counts.lock().counted.clone();
        assert_eq!((told.largest, told.at_largest, told.in_row), (512 << 10, 2000, 1999));
        writes(&counts, (0..60_000).map(|i| ((i * 7919 % 1000) * MIB, 8192)));
        let told = counts.lock().counted.clone();
        assert!(told.at_largest < 300 && told.written_bytes / told.writes < 32 << 10, "{told:?}");
        assert!(told.in_row * 10 < told.writes);
    }

    #[test]
    fn whole_blocks_that_begin_in_the_midst_of_one_are_told_of_with_the_distance() {
        let counts = Counts::default();
        writes(&counts, (0..100).map(|i| (i * 3 * MIB + 32_256, MIB)));
        let told = counts.lock().counted.clone();
        assert_eq!((told.whole, told.astray, told.astray_by), (100, 100, 32_256));
        writes(&counts, (0..100).map(|i| (i * MIB, MIB)));
        let told = counts.lock().counted.clone();
        assert_eq!(told.astray, 100, "of 200 by now");
    }

    #[test]
    fn with_other_blocks_it_begins_anew() {
        let counts = Counts::default();
        writes(&counts, [(0, 4096), (8192, 4096)]);
        counts.wrote(4096, 0, 4096, Duration::ZERO);
        let told = counts.lock().counted.clone();
        assert_eq!((told.writes, told.block), (1, 4096));
    }
}
