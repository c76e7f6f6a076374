//! How much space there is and how much is taken, in raw and in deflated bytes.
//!
//! Raw bytes are those of the devices. Deflated bytes are what raw bytes are worth to users: on raidz, a typical block
//! (128 KiB) takes parity along, and the vdev's ratio divides that out again. Mirrors count one side only, so their ratio
//! is 1.

use std::ops::AddAssign;

/// Space of a vdev, a class or a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub space: u64,
    /// Allocated, with what is deferred.
    pub allocated: u64,
    /// Freed, but kept as it was for two txgs.
    pub deferred: u64,
    pub space_deflated: u64,
    pub allocated_deflated: u64,
    pub deferred_deflated: u64,
}

impl Usage {
    pub fn free(&self) -> u64 {
        self.space.saturating_sub(self.allocated)
    }

    /// The numbers of one vdev. `ratio` is in units of 1/512.
    pub(crate) fn of(space: u64, allocated: u64, deferred: u64, ratio: u64) -> Usage {
        let deflate = |bytes: u64| (bytes >> units::SECTOR_SHIFT) * ratio;
        Usage {
            space,
            allocated,
            deferred,
            space_deflated: deflate(space),
            allocated_deflated: deflate(allocated),
            deferred_deflated: deflate(deferred),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, o: Usage) {
        self.space += o.space;
        self.allocated += o.allocated;
        self.deferred += o.deferred;
        self.space_deflated += o.space_deflated;
        self.allocated_deflated += o.allocated_deflated;
        self.deferred_deflated += o.deferred_deflated;
    }
}

/// `spa_slop_shift`: 1/32 of the space is kept back.
const SLOP_SHIFT: u32 = 5;
const SLOP_MIN: u64 = 128 << 20;
const SLOP_MAX: u64 = 128 << 30;

/// The space that only the pool itself may fill, so that freeing, which needs a little space first, stays possible.
///
/// `space` is the deflated space of the normal class, `embedded_log` that of the embedded log, which is kept back already.
pub fn slop(space: u64, embedded_log: u64) -> u64 {
    let share = (space >> SLOP_SHIFT).min(SLOP_MAX);
    let share = share - embedded_log.min(share / 2);
    share.max(SLOP_MIN.min(space / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slop_is_a_thirty_second_within_bounds() {
        assert_eq!(slop(100 << 20, 0), 50 << 20, "at most half of a small pool");
        assert_eq!(slop(1 << 30, 0), 128 << 20);
        assert_eq!(slop(1 << 40, 0), 32 << 30);
        assert_eq!(slop(1 << 50, 0), 128 << 30);
        assert_eq!(slop(1 << 40, 8 << 30), 24 << 30);
        assert_eq!(slop(1 << 40, 100 << 30), 16 << 30, "the log counts for half of it at most");
        assert_eq!(slop(0, 0), 0);
    }

    #[test]
    fn deflation_takes_the_parity_out() {
        let usage = Usage::of(3 << 30, 3 << 20, 0, 341);
        assert_eq!(usage.space_deflated, (3 << 21) * 341);
        assert_eq!(Usage::of(1 << 20, 0, 0, 512).space_deflated, 1 << 20);
        assert_eq!(usage.free(), (3 << 30) - (3 << 20));
    }
}
