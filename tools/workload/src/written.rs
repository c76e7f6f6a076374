//! What a verified workload has written: the generation of every unit of a place.
//!
//! ```text
//!   one word for each unit     | busy | generation |      0: not written by this process, and anything may be there
//! ```
//!
//! A request takes the units it touches before it is made and gives them back after, so that what a read must find is
//! never in doubt. What is read is checked against seed, offset and generation ([`crate::stamp`]): it is damaged,
//! misdirected, stale or torn, or it is right.

use crate::stamp;
use std::sync::atomic::{AtomicU32, Ordering};
use units::{Error, Kind, Result};

/// A table of more units takes too much memory: this is 256 MiB.
const UNITS_MAX: u64 = 1 << 26;
const BUSY: u32 = 1 << 31;

#[derive(Debug)]
pub struct Written {
    unit: u64,
    seed: u64,
    words: Vec<AtomicU32>,
}

impl Written {
    /// For a place of `size` bytes, of which requests touch whole units.
    pub fn new(size: u64, unit: u64, seed: u64) -> Result<Written> {
        let count = size / unit.max(1);
        if count > UNITS_MAX {
            let what = format!(
                "verify keeps a word for each {unit} bytes, and {count} are too many: give a size, or longer requests"
            );
            return Err(Error::invalid(what));
        }
        Ok(Written { unit, seed, words: (0..count).map(|_| AtomicU32::new(0)).collect() })
    }

    fn words(&self, offset: u64, len: u64) -> &[AtomicU32] {
        let first = (offset / self.unit) as usize;
        let end = (offset.saturating_add(len).div_ceil(self.unit) as usize).min(self.words.len());
        self.words.get(first..end).unwrap_or(&[])
    }

    /// Takes a range, unless part of it is taken.
    pub fn take(&self, offset: u64, len: u64) -> bool {
        let words = self.words(offset, len);
        let is_busy = |word: &AtomicU32| word.fetch_or(BUSY, Ordering::Acquire) & BUSY != 0;
        match words.iter().position(is_busy) {
            None => true,
            Some(taken) => {
                words[..taken].iter().for_each(release);
                false
            }
        }
    }

    /// Gives back what was taken.
    pub fn release(&self, offset: u64, len: u64) {
        self.words(offset, len).iter().for_each(release);
    }

    /// Fills a buffer for a range that was taken with the next generation of each unit.
    pub fn fill(&self, offset: u64, buf: &mut [u8]) {
        let words = self.words(offset, buf.len() as u64);
        for ((i, part), word) in buf.chunks_mut(self.unit as usize).enumerate().zip(words) {
            let generation = u64::from(word.load(Ordering::Relaxed) & !BUSY) + 1;
            stamp::fill(part, self.seed, offset + i as u64 * self.unit, generation, 0);
        }
    }

    /// What [`Written::fill`] made has been written.
    pub fn done(&self, offset: u64, len: u64) {
        for word in self.words(offset, len) {
            let generation = (word.load(Ordering::Relaxed) & !BUSY) + 1;
            word.store(generation | BUSY, Ordering::Relaxed);
        }
    }

    /// Checks what was read from a range that is taken; returns how many units could be checked.
    pub fn check(&self, offset: u64, buf: &[u8]) -> Result<u64> {
        let mut checked = 0;
        let words = self.words(offset, buf.len() as u64);
        for ((i, part), word) in buf.chunks(self.unit as usize).enumerate().zip(words) {
            let generation = u64::from(word.load(Ordering::Relaxed) & !BUSY);
            if generation == 0 {
                continue;
            }
            let at = offset + i as u64 * self.unit;
            let found = stamp::check(part, self.seed, at)?;
            if found != generation {
                let what = format!("verify: stale, generation {found} instead of {generation}");
                return Err(Error::new(Kind::Corrupt, what).at(format!("at {at:#x}")));
            }
            checked += 1;
        }
        Ok(checked)
    }

    /// The ranges that hold what was written, none longer than `longest`.
    pub fn ranges(&self, longest: u64) -> impl Iterator<Item = (u64, u64)> {
        let per_range = (longest / self.unit).max(1) as usize;
        let is_written = |word: &AtomicU32| word.load(Ordering::Relaxed) & !BUSY != 0;
        self.words
            .chunks(per_range)
            .enumerate()
            .filter(move |(_, words)| words.iter().any(is_written))
            .map(move |(i, words)| ((i * per_range) as u64 * self.unit, words.len() as u64 * self.unit))
    }
}

fn release(word: &AtomicU32) {
    word.fetch_and(!BUSY, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_known_and_what_is_not_that_is_named() {
        let written = Written::new(1 << 20, 4096, 3).unwrap();
        let mut first = vec![0; 8192];
        assert!(written.take(8192, 8192));
        assert!(!written.take(4096, 8192), "its second unit is taken");
        assert!(written.take(4096, 4096), "what it had taken it gave back");
        written.fill(8192, &mut first);
        written.done(8192, 8192);
        assert_eq!(written.check(8192, &first).unwrap(), 2);
        assert_eq!(written.check(0, &vec![7; 8192]).unwrap(), 0, "what was never written may be anything");
        let mut second = vec![0; 4096];
        written.fill(8192, &mut second);
        written.done(8192, 4096);
        let stale = written.check(8192, &first[..4096]).unwrap_err().to_string();
        assert!(stale.contains("generation 1 instead of 2"), "{stale}");
        assert_eq!(written.check(8192, &[second, first[4096..].to_vec()].concat()).unwrap(), 2);
        written.release(8192, 8192);
        assert!(written.take(8192, 4096));
        assert_eq!(written.ranges(8192).collect::<Vec<_>>(), [(8192, 8192)]);
        assert!(Written::new(1 << 60, 512, 1).is_err());
    }
}
