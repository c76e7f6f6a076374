//! How much memory the cache, and what is dirty, may take of what the machine or the control group has. And what all takes.
//!
//! ```text
//!   memory ─┬─ 192 MiB    the program, its heap, and requests
//!           └─ the rest ─┬─ half   the cache, if zfs_arc_max does not say otherwise; less while little is left (pressure)
//!                        └─ half   everything else on the machine; zfs_dirty_data_max: a tenth of all, at most 4 GiB
//! ```

mod headroom;
pub(crate) mod pressure;
pub(crate) mod size;

use api::Memory;
use headroom::Limits;

/// When nothing can be found out.
const UNKNOWN: u64 = 1 << 30;
const PROGRAM: u64 = 192 << 20;
const CACHE_MIN: u64 = 64 << 20;
const DIRTY: std::ops::RangeInclusive<u64> = 16 << 20..=4 << 30;

/// What the engine takes while an administrator has not said otherwise, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Defaults {
    /// `zfs_arc_max`.
    pub cache: u64,
    /// `zfs_dirty_data_max`.
    pub dirty: u64,
}

impl Defaults {
    pub fn of_this_machine() -> Defaults {
        Defaults::of(Limits::of_this_process().total().unwrap_or(UNKNOWN))
    }

    fn of(memory: u64) -> Defaults {
        Defaults {
            cache: (memory.saturating_sub(PROGRAM) / 2).max(CACHE_MIN),
            dirty: (memory / 10).clamp(*DIRTY.start(), *DIRTY.end()),
        }
    }
}

/// `zfs_dirty_data_max` of an appliance on this machine that was told nothing else, in bytes.
#[must_use]
pub fn dirty_data_max() -> u64 {
    Defaults::of_this_machine().dirty
}

/// Bounds the buffers that are kept for those to come beside a cache that may have so much, and has so much compressed: what
/// the cache has not taken yet may wait for it, and when it is full, and requests with it, an eighth. What is compressed is
/// in no buffers.
pub(crate) fn bound_buffers(cache: u64, compressed: u64) {
    let in_buffers = cache.saturating_sub(compressed);
    world::buf::set_held_max(usize::try_from(in_buffers).unwrap_or(usize::MAX));
    world::buf::set_kept_max((cache / 8).clamp(16 << 20, 256 << 20) as usize);
}

/// See [`crate::Appliance::request_bytes`].
pub(crate) fn request_bytes(cache: u64) -> usize {
    (cache / 4).clamp(64 << 20, 512 << 20) as usize
}

/// What of the heap is free and in memory all the same: at most what the heap says of itself, and what is left of what the
/// kernel says.
fn freed(anonymous: u64, used: u64, free: u64) -> u64 {
    anonymous.saturating_sub(used).min(free)
}

/// Where the memory of this process is; `cache` and `dirty` as their owners count them. What of the cache is compressed is
/// on the heap.
pub(crate) fn account(cache: u64, compressed: u64, dirty: u64) -> Memory {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name| kib(&status, name).unwrap_or(0);
    let (held, kept) = (world::buf::held() as u64, world::buf::kept() as u64);
    let heap = world::heap().unwrap_or_default();
    let anonymous = of("RssAnon:");
    Memory {
        resident: of("VmRSS:"),
        cache,
        dirty,
        requests: (held + compressed).saturating_sub(cache + dirty + kept),
        kept,
        // What was asked for and never touched is not in memory.
        heap: heap.in_use.min(anonymous.saturating_sub(held)).saturating_sub(compressed),
        freed: freed(anonymous, held + heap.in_use, heap.free),
        program: of("RssFile:"),
    }
}

/// The line of that name, in bytes.
fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix(name))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_machine_keeps_room_for_the_program() {
        let of = |mib: u64| {
            let Defaults { cache, dirty } = Defaults::of(mib << 20);
            (cache >> 20, dirty >> 20)
        };
        assert_eq!(of(24 << 10), ((12 << 10) - 96, 2457));
        assert_eq!(of(64 << 10), ((32 << 10) - 96, 4096));
        assert_eq!(of(1024), (416, 102));
        assert_eq!(of(400), (104, 40));
        assert_eq!(of(128), (64, 16));
        assert!(Defaults::of_this_machine().cache >= CACHE_MIN);
    }
}
