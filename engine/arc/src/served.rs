//! The last few blocks a shard served, so that one use in many pieces counts once.
//!
//! A block of 128 KiB read by 32 requests of 4 KiB is one use. Time would tell too (OpenZFS asks for 62 ms between two
//! uses), but reading a clock costs as much as the rest of a hit.

/// Enough for a few streams interleaved within one shard.
const REMEMBERED: usize = 8;

#[derive(Debug)]
pub(crate) struct Served {
    slots: [u32; REMEMBERED],
    next: usize,
}

impl Served {
    pub(crate) fn new() -> Served {
        Served { slots: [u32::MAX; REMEMBERED], next: 0 }
    }

    /// Whether it is one of these.
    pub(crate) fn is_recent(&self, slot: u32) -> bool {
        self.slots.contains(&slot)
    }

    /// Notes that `slot` is served; true when that begins a new use of it.
    pub(crate) fn note(&mut self, slot: u32) -> bool {
        if self.is_recent(slot) {
            return false;
        }
        self.slots[self.next] = slot;
        self.next = (self.next + 1) % REMEMBERED;
        true
    }
}
