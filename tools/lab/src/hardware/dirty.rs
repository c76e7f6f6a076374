//! What a write-back cache holds that its disks do not have yet.
//!
//! ```text
//!   write ─▶ an extent, joined with its neighbours ─▶ take: pieces in ascending order from where the last was ─▶ destaged
//!                                                                                            └▶ a flush waits for what was
//!                                                                                               written before it
//! ```
//!
//! Each extent carries a number that grows with time; what is joined carries the older one, so that a flush, which waits for
//! all numbers up to its own, never misses a byte.

use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub struct Dirty {
    /// By offset: length and number. None touch.
    extents: BTreeMap<u64, (u64, u64)>,
    /// Taken, and not destaged yet: number and length by offset.
    moving: BTreeMap<u64, (u64, u64)>,
    /// How many extents carry each number.
    numbers: BTreeMap<u64, usize>,
    bytes: u64,
    number: u64,
    hand: u64,
}

impl Dirty {
    /// Bytes in the cache, those under way to a disk included.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether there is something to take.
    pub fn is_idle(&self) -> bool {
        self.extents.is_empty()
    }

    pub fn add(&mut self, offset: u64, len: u64) {
        self.number += 1;
        let (mut from, mut to, mut number) = (offset, offset + len, self.number);
        let touching: Vec<u64> = {
            let before = self.extents.range(..from).next_back().filter(|(at, (len, _))| *at + len >= from);
            let inside = self.extents.range(from..=to);
            before.into_iter().chain(inside).map(|(at, _)| *at).collect()
        };
        for at in touching {
            let (len, older) = self.extents.remove(&at).expect("it was just found");
            self.drop_number(older);
            self.bytes -= len;
            (from, to, number) = (from.min(at), to.max(at + len), number.min(older));
        }
        self.bytes += to - from;
        *self.numbers.entry(number).or_default() += 1;
        self.extents.insert(from, (to - from, number));
    }

    fn drop_number(&mut self, number: u64) {
        match self.numbers.get_mut(&number) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.numbers.remove(&number)),
        }
    }

    /// Whether all of a range is here, so that a read need not ask a disk.
    pub fn holds(&self, offset: u64, len: u64) -> bool {
        let within = |map: &BTreeMap<u64, (u64, u64)>, has: fn(&(u64, u64)) -> u64| {
            let found = map.range(..=offset).next_back();
            found.is_some_and(|(at, extent)| at + has(extent) >= offset + len)
        };
        within(&self.extents, |extent| extent.0) || within(&self.moving, |extent| extent.0)
    }

    /// The next piece for a disk, of at most so many bytes, none across a multiple of `cut`.
    pub fn take(&mut self, most: u64, cut: u64) -> Option<(u64, u64)> {
        let at = self.extents.range(self.hand..).next().or_else(|| self.extents.first_key_value());
        let (&offset, &(len, number)) = at?;
        let piece = len.min(most).min(cut - offset % cut);
        // The same place may be under way already, written again meanwhile: one after the other.
        if self.moving.contains_key(&offset) {
            return None;
        }
        self.extents.remove(&offset);
        if piece < len {
            *self.numbers.entry(number).or_default() += 1;
            self.extents.insert(offset + piece, (len - piece, number));
        }
        self.moving.insert(offset, (piece, number));
        self.hand = offset + piece;
        Some((offset, piece))
    }

    pub fn destaged(&mut self, offset: u64) {
        if let Some((len, number)) = self.moving.remove(&offset) {
            self.bytes -= len;
            self.drop_number(number);
        }
    }

    /// What a flush that begins now waits for.
    pub fn mark(&self) -> u64 {
        self.number
    }

    /// Whether all that was written before the mark is on the disks.
    pub fn is_clean(&self, mark: u64) -> bool {
        self.numbers.first_key_value().is_none_or(|(oldest, _)| *oldest > mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_joined_and_taken_in_order() {
        let mut dirty = Dirty::default();
        for offset in [8192, 0, 4096, 40960] {
            dirty.add(offset, 4096);
        }
        assert_eq!(dirty.bytes(), 16384);
        assert!(dirty.holds(4096, 8192) && !dirty.holds(8192, 8192));
        let mark = dirty.mark();
        assert_eq!(dirty.take(1 << 20, 8192), Some((0, 8192)));
        assert_eq!(dirty.take(1 << 20, 8192), Some((8192, 4096)));
        assert_eq!(dirty.take(1 << 20, 8192), Some((40960, 4096)));
        assert_eq!(dirty.take(1 << 20, 8192), None);
        dirty.add(20480, 4096);
        for offset in [0, 8192] {
            assert!(!dirty.is_clean(mark));
            dirty.destaged(offset);
        }
        dirty.destaged(40960);
        assert!(dirty.is_clean(mark) && !dirty.is_clean(dirty.mark()));
        assert_eq!(dirty.bytes(), 4096);
    }

    #[test]
    fn what_is_written_again_while_it_moves_is_destaged_again() {
        let mut dirty = Dirty::default();
        dirty.add(0, 4096);
        assert_eq!(dirty.take(1 << 20, 1 << 20), Some((0, 4096)));
        dirty.add(0, 4096);
        assert_eq!((dirty.bytes(), dirty.take(1 << 20, 1 << 20)), (8192, None));
        dirty.destaged(0);
        assert_eq!(dirty.take(1 << 20, 1 << 20), Some((0, 4096)));
        dirty.destaged(0);
        assert!(dirty.is_clean(dirty.mark()) && dirty.bytes() == 0);
    }
}
