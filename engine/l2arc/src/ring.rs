//! Where on a cache device what may lie. Pure.
//!
//! ```text
//!   start ...... blocks, the newest last ...... hand │ being dropped │ evict ...... the oldest ...... end
//!                                               └── what is written next goes here
//! ```
//!
//! The hand comes around; before it writes, `evict` moves ahead of it, and what lay between is forgotten. In the first sweep
//! nothing lies ahead.

use ondisk::l2arc::{L2Header, LOG_SIZE, LogPointer};

/// See the module. All in bytes from the start of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    pub start: u64,
    pub end: u64,
    pub hand: u64,
    pub evict: u64,
    pub is_first_sweep: bool,
}

impl Ring {
    /// Of a device with nothing on it.
    pub fn new(start: u64, end: u64) -> Ring {
        Ring { start, end, hand: start, evict: start, is_first_sweep: true }
    }

    /// As a header left it: the hand stands behind the newest log.
    pub fn of(header: &L2Header) -> Ring {
        let newest = &header.newest[0];
        let behind = newest.daddr.saturating_add(newest.asize());
        let hand = if newest.is_none() { header.start } else { behind.clamp(header.start, header.end) };
        let L2Header { start, end, evict, .. } = *header;
        Ring { start, end, hand, evict, is_first_sweep: header.is_first_sweep() }
    }

    /// Whether a log and the blocks it tells of are still where they were written.
    pub fn holds(&self, log: &LogPointer) -> bool {
        let (first, asize) = (log.payload_start, log.asize());
        let Some(last) = log.daddr.checked_add(asize - 1) else { return false };
        let inside = first >= self.start && last < self.end && (self.start..self.end).contains(&log.daddr);
        // A run of blocks with its log never passes the end: it begins anew there.
        let in_order = first <= log.daddr && asize <= LOG_SIZE as u64;
        inside && in_order && (self.is_first_sweep || !self.is_dropped(first, last))
    }

    /// Whether bytes `first..=last` meet with what is dropped to make room. In a header that was written between the hand's
    /// return to the start and the next log, the hand is behind the last log yet: what lies behind that is dropped, and the
    /// start.
    fn is_dropped(&self, first: u64, last: u64) -> bool {
        match self.hand.cmp(&self.evict) {
            std::cmp::Ordering::Less => first < self.evict && last >= self.hand,
            std::cmp::Ordering::Equal => false,
            std::cmp::Ordering::Greater => first < self.evict || last >= self.hand,
        }
    }

    /// Whether a block lies where blocks are.
    pub fn has_room_for(&self, daddr: u64, asize: u64) -> bool {
        asize > 0 && daddr >= self.start && daddr.checked_add(asize).is_some_and(|end| end <= self.end)
    }

    /// Makes room for `len` bytes in one run at the hand: answers what is to be forgotten, one range or two. `ahead` bytes
    /// more are made free while it is at it. `None` when the device is smaller than that.
    pub fn make_room(&mut self, len: u64, ahead: u64) -> Option<Vec<std::ops::Range<u64>>> {
        if len > self.end - self.start {
            return None;
        }
        let mut dropped = Vec::new();
        if self.end - self.hand < len {
            // What is left at the end is too short. It is forgotten with what it held.
            if !self.is_first_sweep {
                dropped.push(self.evict.max(self.hand)..self.end);
            }
            (self.hand, self.evict, self.is_first_sweep) = (self.start, self.start, false);
        }
        let to = self.hand.saturating_add(len).saturating_add(ahead).min(self.end);
        if !self.is_first_sweep && to > self.evict {
            dropped.push(self.evict.max(self.hand)..to);
            self.evict = to;
        }
        dropped.retain(|range| !range.is_empty());
        Some(dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;
    use units::Compression;

    fn log(first: u64, daddr: u64, asize: u64) -> LogPointer {
        let mut pointer = LogPointer::new(daddr, asize, Compression::Lz4, [1; 4]);
        pointer.payload_start = first;
        pointer
    }

    #[test]
    fn a_log_is_held_while_no_part_of_its_run_was_dropped() {
        let first = Ring { start: 4096, end: 1 << 20, hand: 8192, evict: 4096, is_first_sweep: true };
        let later = Ring { evict: 65536, is_first_sweep: false, ..first };
        for (pointer, in_first, in_later) in [
            (log(4096, 4608, 512), true, true),
            (log(4096, 7680, 512), true, true),
            (log(8192, 9216, 512), true, false),
            (log(65536, 65536, 512), true, true),
            (log(60000, 66048, 512), true, false),
            (log(3584, 4608, 512), false, false),
            (log(4096, (1 << 20) - 512, 512), true, false),
            (log(65536, (1 << 20) - 512, 512), true, true),
            (log(65536, (1 << 20) - 512, 1024), false, false),
            (log(9000, 8192, 512), false, false),
            (log(65536, u64::MAX - 511, 512), false, false),
            (log(65536, 66048, 128 << 10), false, false),
        ] {
            assert_eq!((first.holds(&pointer), later.holds(&pointer)), (in_first, in_later), "{pointer:?}");
        }
        let returned = Ring { hand: 65536, evict: 8192, ..later };
        for (pointer, is_held) in [
            (log(4096, 4608, 512), false),
            (log(8000, 8192, 512), false),
            (log(8192, 9216, 512), true),
            (log(60000, 65024, 512), true),
            (log(60000, 65536, 512), false),
        ] {
            assert_eq!(returned.holds(&pointer), is_held, "{pointer:?}");
        }
    }

    #[test]
    fn the_hand_comes_around_and_what_was_there_is_forgotten_first() {
        let mut ring = Ring::new(1000, 11_000);
        assert_eq!(ring.make_room(4000, 0), Some(vec![]), "nothing lies ahead in the first sweep");
        ring.hand += 4000;
        assert_eq!(ring.make_room(4000, 0), Some(vec![]));
        ring.hand += 4000;
        assert_eq!(ring.make_room(4000, 1000).as_deref(), Some(&[Range { start: 1000, end: 6000 }][..]));
        assert_eq!((ring.hand, ring.evict, ring.is_first_sweep), (1000, 6000, false));
        ring.hand += 4000;
        assert_eq!(ring.make_room(1000, 0), Some(vec![]), "it was made free already");
        ring.hand += 1000;
        assert_eq!(ring.make_room(5000, 100).as_deref(), Some(&[Range { start: 6000, end: 11_000 }][..]));
        ring.hand += 5000;
        assert_eq!(ring.make_room(1, 0).as_deref(), Some(&[Range { start: 1000, end: 1001 }][..]));
        assert_eq!(ring.make_room(10_001, 0), None, "more than the device has");
    }

    /// Places by chance: at no time do two blocks that are not forgotten overlap.
    #[test]
    fn what_is_not_forgotten_is_never_overwritten() {
        let mut seed = 7u64;
        let mut next = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % n
        };
        for _ in 0..50 {
            let mut ring = Ring::new(512, 512 + 1000 + next(5000));
            let mut blocks: Vec<(u64, u64)> = Vec::new();
            for _ in 0..500 {
                let len = 1 + next(300);
                let dropped = ring.make_room(len, next(3) * next(200)).unwrap();
                blocks.retain(|(at, len)| !dropped.iter().any(|d| *at < d.end && at + len > d.start));
                let (from, to) = (ring.hand, ring.hand + len);
                assert!(to <= ring.end && from >= ring.start);
                assert!(!blocks.iter().any(|(at, len)| *at < to && at + len > from), "{ring:?} {blocks:?}");
                blocks.push((from, len));
                ring.hand = to;
            }
        }
    }
}
