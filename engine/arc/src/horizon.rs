//! What a plain list by last use would still have: the measure that the window is judged by.
//!
//! ```text
//!   epochs   … ░ ░ ░ │ ▓ ▓ ▓ ▓ ▓ ▓ now      each use puts its block's bytes into the epoch of now, out of its former one
//!                    └ far                  ▓ sums to what the cache may have; a block last used before `far` had left LRU
//! ```
//!
//! A block carries the epoch of its last use. An epoch ends when a thirty-second part of the memory was used in it, and the
//! oldest epochs fall behind the horizon when all within it have more bytes than the memory. Whether LRU would still have a
//! block is thus one comparison, right to about a thirty-second of the memory, and a use costs a few stores; blocks that
//! left count as well while their names are known. No list is kept for it.
//!
//! Epochs are also the clock by which use counts age.

/// Epochs that are told apart. What was last used sixteen cachefuls of uses ago is beyond the horizon in any case.
const RING: usize = 512;
/// A block that is used again within so many of them stays where it is: most hits then write nothing here, and what is used
/// now and then is taken for a little older than it is.
const LATELY: Epoch = 8;
/// An epoch has this part of the memory.
pub(crate) const EPOCHS: u64 = 32;

/// A number of an epoch. They are never used up: 2^32 are a hundred million cachefuls.
pub(crate) type Epoch = u32;
/// Of a block that was not used yet.
pub(crate) const NEVER: Epoch = u32::MAX;

#[derive(Debug)]
pub(crate) struct Horizon {
    /// Bytes of the blocks last used in each epoch from `far` to `now`.
    bytes: Box<[u64; RING]>,
    now: Epoch,
    far: Epoch,
    /// Of all these.
    within: u64,
    /// What these may be.
    memory: u64,
}

impl Horizon {
    pub(crate) fn new(memory: u64) -> Horizon {
        Horizon { bytes: Box::new([0; RING]), now: 0, far: 0, within: 0, memory }
    }

    pub(crate) fn now(&self) -> Epoch {
        self.now
    }

    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    pub(crate) fn set_memory(&mut self, memory: u64) {
        self.memory = memory;
    }

    /// Whether a use now is not worth noting after one then.
    pub(crate) fn is_lately(&self, epoch: Epoch) -> bool {
        self.now.wrapping_sub(epoch) < LATELY
    }

    /// Whether LRU would still have what was last used then.
    pub(crate) fn holds(&self, epoch: Epoch) -> bool {
        epoch >= self.far && epoch != NEVER
    }

    /// Notes a use of a block that was last used in `epoch`; returns the epoch that it has from now on.
    pub(crate) fn touch(&mut self, epoch: Epoch, charge: u64) -> Epoch {
        let now = self.now;
        if epoch == now {
            return now;
        }
        self.leave(epoch, charge);
        let used = &mut self.bytes[now as usize % RING];
        *used += charge;
        self.within += charge;
        if *used > self.memory / EPOCHS {
            self.next();
        }
        while self.within > self.memory && self.far < self.now {
            self.drop_far();
        }
        now
    }

    /// Forgets a block that was last used in `epoch`.
    pub(crate) fn leave(&mut self, epoch: Epoch, charge: u64) {
        if self.holds(epoch) {
            self.bytes[epoch as usize % RING] -= charge;
            self.within -= charge;
        }
    }

    /// Has a block in an epoch again, after it has left with other bytes.
    pub(crate) fn join(&mut self, epoch: Epoch, charge: u64) {
        if self.holds(epoch) {
            self.bytes[epoch as usize % RING] += charge;
            self.within += charge;
        }
    }

    fn next(&mut self) {
        if self.now - self.far == RING as u32 - 1 {
            self.drop_far();
        }
        self.now += 1;
    }

    fn drop_far(&mut self) {
        self.within -= std::mem::take(&mut self.bytes[self.far as usize % RING]);
        self.far += 1;
    }

    /// The bytes of each epoch within the horizon, for tests.
    #[cfg(test)]
    pub(crate) fn epochs(&self) -> impl Iterator<Item = (Epoch, u64)> + '_ {
        (self.far..=self.now).map(|epoch| (epoch, self.bytes[epoch as usize % RING]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Against a real LRU: they differ by no more than blocks within two epochs of its end.
    #[test]
    fn the_horizon_is_where_a_list_by_last_use_would_end() {
        for seed in 1..=6u64 {
            let (mut horizon, mut lru, mut last) = (Horizon::new(128 * 10), VecDeque::new(), [NEVER; 400]);
            let (mut dice, mut unlike) = (seed * 0x9e37_79b9, 0);
            for step in 0..40_000u64 {
                dice ^= dice << 13;
                dice ^= dice >> 7;
                dice ^= dice << 17;
                let block = match step / 10_000 % 2 {
                    0 => (dice % 400).min(dice / 400 % 400) as usize,
                    _ => (step % (100 + 10 * seed)) as usize,
                };
                let depth = lru.iter().position(|&other| other == block);
                let (has, near_end) =
                    (depth.is_some_and(|depth| depth < 128), depth.is_some_and(|d| d.abs_diff(128) <= 8));
                if last[block] != NEVER && horizon.holds(last[block]) != has && !near_end {
                    unlike += 1;
                }
                lru.retain(|&other| other != block);
                lru.push_front(block);
                last[block] = horizon.touch(last[block], 10);
                assert!(horizon.epochs().map(|(_, bytes)| bytes).sum::<u64>() == horizon.within);
            }
            assert_eq!(unlike, 0, "seed {seed}");
        }
    }
}
