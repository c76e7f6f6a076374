//! What clients ask of the files of a mounted file system: sizes of the last requests, always counted.
//!
//! ```text
//!   read, write of a file whose blocks have `recordsize` ──▶ Counts: sums; from 16K requests on all are halved, so that
//!                                                               │    what was long ago is forgotten
//!                                                               └──▶ Counted: as they are at one moment
//! ```
//!
//! A small file has one block, as large as the file, and files keep the blocks that they were written with: requests to
//! neither say anything of the present `recordsize`. With another one the counts begin anew.
//!
//! Of reads one in [`LOOKED_AT`] counts for all of these. Writes are all counted, as it matters where the one before ended:
//! that is remembered of the last [`FILES`] files that were written.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

const LOOKED_AT: u64 = 16;
/// So many reads, or writes, are remembered at most.
const REMEMBERED: u64 = 16 << 10;
const FILES: usize = 16;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Bytes of the blocks of these files.
    pub record: u64,
    pub reads: u64,
    pub read_bytes: u64,
    /// Reads that had to wait for a device.
    pub misses: u64,
    pub writes: u64,
    pub written_bytes: u64,
    /// Writes that began where the one before to the same file had ended.
    pub in_row: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    counted: Counted,
    /// Files, and where the last write to each ended. The oldest gives way.
    ended: [(u64, u64); FILES],
    next: usize,
}

/// Whether a read is to be counted; most are not.
pub(crate) fn looks() -> bool {
    thread_local! {
        static READS: Cell<u64> = const { Cell::new(0) };
    }
    READS.replace(READS.get() + 1).is_multiple_of(LOOKED_AT)
}

/// What `work` answers, and whether it had to wait for that.
pub(crate) async fn watched<T>(work: impl Future<Output = T>) -> (T, bool) {
    let (mut work, mut waits) = (pin!(work), false);
    let answer = poll_fn(|cx| {
        let polled = work.as_mut().poll(cx);
        waits |= polled.is_pending();
        polled
    });
    (answer.await, waits)
}

impl Counts {
    /// For files with blocks of `record` bytes, if they are as `recordsize` has them now.
    fn of(&self, block: u64, record: u64) -> Option<MutexGuard<'_, Inner>> {
        // Sums are whole at any time.
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.counted.record != record {
            *inner = Inner { counted: Counted { record, ..Counted::default() }, ..Inner::default() };
        }
        (block == record).then_some(inner)
    }

    /// A read that is to be counted.
    pub fn read(&self, (block, record): (u64, u64), len: u64, is_hit: bool) {
        let Some(mut inner) = self.of(block, record).filter(|_| len > 0) else { return };
        let counted = &mut inner.counted;
        counted.reads += LOOKED_AT;
        counted.read_bytes += LOOKED_AT * len;
        counted.misses += if is_hit { 0 } else { LOOKED_AT };
        counted.forget_some();
    }

    pub fn wrote(&self, (block, record): (u64, u64), file: u64, offset: u64, len: u64) {
        let Some(mut inner) = self.of(block, record).filter(|_| len > 0) else { return };
        let end = offset.saturating_add(len);
        let follows = match inner.ended.iter_mut().find(|(known, _)| *known == file) {
            Some((_, ended)) => std::mem::replace(ended, end) == offset,
            None => {
                let next = inner.next;
                (inner.ended[next], inner.next) = ((file, end), (next + 1) % FILES);
                false
            }
        };
        let counted = &mut inner.counted;
        counted.writes += 1;
        counted.written_bytes += len;
        counted.in_row += u64::from(follows);
        counted.forget_some();
    }

    /// What was counted of files with blocks of `record` bytes.
    pub fn told(&self, record: u64) -> Counted {
        self.of(record, record).map(|inner| inner.counted.clone()).unwrap_or_default()
    }
}

impl Counted {
    fn forget_some(&mut self) {
        if self.reads < REMEMBERED && self.writes < REMEMBERED {
            return;
        }
        let Counted { record: _, reads, read_bytes, misses, writes, written_bytes, in_row } = self;
        [reads, read_bytes, misses, writes, written_bytes, in_row].into_iter().for_each(|sum| *sum /= 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: (u64, u64) = (128 << 10, 128 << 10);

    #[test]
    fn only_files_with_blocks_of_the_present_size_count() {
        let counts = Counts::default();
        counts.wrote((4096, 128 << 10), 1, 0, 4096);
        counts.read((1 << 20, 128 << 10), 8192, false);
        counts.read(RECORD, 0, false);
        assert_eq!(counts.told(128 << 10), Counted { record: 128 << 10, ..Counted::default() });
        counts.wrote(RECORD, 1, 0, 4096);
        counts.read(RECORD, 8192, false);
        counts.read(RECORD, 8192, true);
        let told = counts.told(128 << 10);
        assert_eq!((told.writes, told.written_bytes), (1, 4096));
        assert_eq!((told.reads, told.read_bytes, told.misses), (32, 32 * 8192, 16));
        assert_eq!(counts.told(16 << 10).writes, 0, "with records of another size it begins anew");
    }

    #[test]
    fn files_that_are_written_in_a_row_beside_each_other_are_told_from_pages_at_random() {
        let counts = Counts::default();
        for i in 0..100 {
            (0..FILES as u64).for_each(|file| counts.wrote(RECORD, file + 1, i * 8192, 8192));
        }
        let told = counts.told(128 << 10);
        assert_eq!((told.writes, told.in_row), (1600, 99 * FILES as u64));
        (0..40_000).for_each(|i| counts.wrote(RECORD, 1, i * 7919 % 1000 * 8192, 8192));
        let told = counts.told(128 << 10);
        assert!(told.in_row * 50 < told.writes && told.writes < REMEMBERED, "{told:?}");
    }

    #[test]
    fn what_waits_is_told_from_what_does_not() {
        let run = |work: std::pin::Pin<Box<dyn Future<Output = u8>>>| {
            let (mut work, waker) = (pin!(watched(work)), std::task::Waker::noop());
            loop {
                if let std::task::Poll::Ready(done) =
                    work.as_mut().poll(&mut std::task::Context::from_waker(waker))
                {
                    return done;
                }
            }
        };
        assert_eq!(run(Box::pin(async { 7 })), (7, false));
        let mut turns = 0;
        let later = poll_fn(move |_| {
            turns += 1;
            if turns > 2 { std::task::Poll::Ready(8) } else { std::task::Poll::Pending }
        });
        assert_eq!(run(Box::pin(later)), (8, true));
    }
}
