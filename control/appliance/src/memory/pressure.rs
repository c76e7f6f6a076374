//! The cache gives memory back while the machine, or the control group, has little left.
//!
//! ```text
//!    left │                                         the cache's limit
//!         │   more than twice the reserve           grows by half of what is over the reserve, up to zfs_arc_max
//!    2 r ─┤
//!         │                                         stays
//!      r ─┤
//!         │   less than the reserve r               what is missing goes, down to a floor
//!       0 └
//! ```
//!
//! The reserve is a tenth of the memory, between 24 MiB and 512 MiB. Where the kernel tells of stalls (PSI), an eighth of
//! the cache goes for each look at which processes had waited for memory for a tenth of the time, if less than a quarter
//! of the memory is left: else what they wait for is a limit of their own, as when another container is too small for
//! what it does.
//!
//! What the cache had compressed was on the heap, which keeps it: the heap is trimmed when much of that has gone.
//!
//! The kernel is asked ten times a second, which costs less than a millisecond in each second. It ends processes only
//! when nothing is left: the reserve is for what others take between two looks. Clients of ours take little of it, since
//! what they write is bounded by `zfs_dirty_data_max`, and what they ask by the bound on requests.

use super::headroom::{Headroom, Limits};
use std::time::Duration;

const EACH: Duration = Duration::from_millis(100);
/// The cache keeps so much, if it may have it: without its metadata every request waits for devices.
const FLOOR: u64 = 32 << 20;

/// Compressed blocks that have gone, in bytes, from which on the heap is trimmed.
const TRIMMED: u64 = 4 << 20;

/// What is known at one look.
#[derive(Clone, Copy, Debug)]
struct Seen {
    left: Headroom,
    /// Processes waited for memory for a tenth of the time, or more.
    is_stalled: bool,
}

/// The cache, in bytes: what it has, what it may have now, and what it may have at most.
#[derive(Clone, Copy, Debug)]
struct Size {
    size: u64,
    limit: u64,
    max: u64,
}

fn reserve(total: u64) -> u64 {
    (total / 10).clamp(24 << 20, 512 << 20)
}

/// What the cache may have from now on.
fn next(cache: Size, seen: Seen) -> u64 {
    let (reserve, floor) = (reserve(seen.left.total), FLOOR.min(cache.max));
    // A limit that the cache has not reached is no memory that it could give.
    let has = cache.size.min(cache.limit);
    let missing = reserve.saturating_sub(seen.left.available);
    let wanted = if missing > 0 {
        has.saturating_sub(missing)
    } else if seen.is_stalled && seen.left.available < seen.left.total / 4 {
        has - has / 8
    } else if seen.left.available > 2 * reserve {
        cache.limit.saturating_add((seen.left.available - reserve) / 2)
    } else {
        cache.limit
    };
    wanted.clamp(floor, cache.max)
}

/// Lets the cache follow the memory that is left, for ever.
pub(crate) async fn follow(cache: &arc::Cache) {
    let limits = Limits::of_this_process();
    let mut stalled = limits.stalled();
    // Bytes of compressed blocks: when buffers were bounded, and the most since the heap was trimmed.
    let (mut bounded, mut most) = (0, 0);
    loop {
        world::sleep(EACH).await;
        let Some(left) = limits.least() else { continue };
        let before = std::mem::replace(&mut stalled, limits.stalled());
        let waited = stalled.zip(before).map_or(0, |(now, before)| now.saturating_sub(before));
        let is_stalled = u128::from(waited) * 10 >= EACH.as_micros();
        let stats = cache.stats();
        // What is remembered of cache devices, and by cores, is part of what the cache may have, and does not go first.
        let beside = stats.beside;
        let size = Size { size: stats.size + beside, limit: stats.limit + beside, max: stats.max };
        let limit = next(size, Seen { left, is_stalled });
        if limit != size.limit {
            cache.shrink_to(limit);
        }
        let cold = cache.stats().cold_bytes();
        if limit != size.limit || cold.abs_diff(bounded) > limit / 64 {
            super::bound_buffers(limit, cold);
            bounded = cold;
        }
        most = cold.max(most);
        if most - cold >= TRIMMED {
            most = cold;
            world::compute(world::trim_heap).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: u64 = 1 << 20;

    fn seen(available: u64) -> Seen {
        Seen { left: Headroom { total: 1000 * M, available }, is_stalled: false }
    }

    #[test]
    fn what_is_missing_goes_and_comes_back_when_there_is_room() {
        let full = Size { size: 400 * M, limit: 512 * M, max: 512 * M };
        assert_eq!(next(full, seen(100 * M)), 512 * M, "the reserve is there");
        assert_eq!(next(full, seen(60 * M)), 360 * M, "40 MiB are missing");
        assert_eq!(next(full, seen(0)), 300 * M);
        let small = Size { size: 40 * M, limit: 100 * M, max: 512 * M };
        assert_eq!(next(small, seen(0)), FLOOR, "and no less");
        assert_eq!(next(small, seen(200 * M)), 100 * M, "not yet");
        assert_eq!(next(small, seen(300 * M)), 200 * M);
        assert_eq!(next(small, seen(1000 * M)), 512 * M, "at most zfs_arc_max");
    }

    #[test]
    fn a_stall_takes_an_eighth() {
        let cache = Size { size: 400 * M, limit: 512 * M, max: 512 * M };
        assert_eq!(next(cache, Seen { is_stalled: true, ..seen(240 * M) }), 350 * M);
        assert_eq!(
            next(cache, Seen { is_stalled: true, ..seen(900 * M) }),
            512 * M,
            "another group is short, not the machine"
        );
    }

    #[test]
    fn a_limit_below_the_floor_holds() {
        let cache = Size { size: 9 * M, limit: 10 * M, max: 10 * M };
        assert_eq!(next(cache, seen(0)), 10 * M);
    }

    #[test]
    fn memory_that_others_take_and_give_back_is_followed_without_swinging() {
        // A machine of 1024 MiB: 128 MiB are the program's, the others' change, the cache fills what it may have at once.
        let mut cache = Size { size: 0, limit: 512 * M, max: 512 * M };
        let mut worst = u64::MAX;
        for turn in 0..400 {
            let others = match turn / 100 {
                0 => 100,
                1 => 100 + (turn % 100) * 7,
                2 => 793,
                _ => 50,
            };
            let free = (1024 * M).saturating_sub(128 * M + others * M + cache.size);
            worst = worst.min(free);
            let limit = next(cache, seen(free));
            cache = Size { size: limit, limit, ..cache };
        }
        assert_eq!(cache.limit, 512 * M);
        assert!(worst > 50 * M, "{worst}");
    }
}
