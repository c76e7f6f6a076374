//! Where the labels of a device are, and what is where within one.
//!
//! ```text
//!   device   | L0 | L1 | boot area, 3.5 MiB | allocatable space ...       | L2 | L3 |
//!            0   256K 512K                  4M                     end - 512K  - 256K     (end rounded down to 256K)
//!
//!   label    | blank 8K | boot header 8K | nvlist 112K            | uberblock ring 128K          |
//!            0          8K               16K                      128K                         256K
//!                                        | packed list, 0 ... | T |  | slot | slot | slot | ...  |
//! ```
//!
//! T, a [`Trailer`], ends the boot header, the nvlist and each slot. Its checksum is seeded with the
//! offset of that part on the device, so that a label copied elsewhere is none.
//!
//! A slot is as large as the vdev's smallest write, but at least 1 KiB and at most 8 KiB. The uberblock of a txg goes
//! to slot `txg mod slots`, so that the last ones survive. Labels are written in two rounds, even ones first, so
//! that one of each pair is always whole.

use crate::trailer::Trailer;
use units::Txg;

pub const LABELS: u64 = 4;
pub const LABEL_SIZE: u64 = 256 << 10;
/// Of the blank part, and of the boot header.
pub const LABEL_PAD_SIZE: u64 = 8 << 10;
pub const BOOT_HEADER_OFFSET: u64 = 8 << 10;
pub const NVLIST_OFFSET: u64 = 16 << 10;
/// With its trailer.
pub const NVLIST_SIZE: u64 = 112 << 10;
/// What the packed list may take.
pub const NVLIST_MAX: u64 = NVLIST_SIZE - Trailer::SIZE as u64;
pub const RING_OFFSET: u64 = 128 << 10;
pub const RING_SIZE: u64 = 128 << 10;
pub const BOOT_AREA_OFFSET: u64 = 2 * LABEL_SIZE;
pub const BOOT_AREA_SIZE: u64 = 7 << 19;
/// Where offset 0 of every DVA is.
pub const DATA_OFFSET: u64 = BOOT_AREA_OFFSET + BOOT_AREA_SIZE;
/// The two labels at the end.
pub const LABELS_END_SIZE: u64 = 2 * LABEL_SIZE;
/// The smallest device OpenZFS accepts.
pub const MIN_DEVICE_SIZE: u64 = 64 << 20;

/// The layout of one device: a matter of its size alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelLayout {
    /// Rounded down to a whole number of labels.
    device_size: u64,
}

impl LabelLayout {
    /// `None` for a device too small to hold the labels and the boot area.
    pub fn new(device_size: u64) -> Option<LabelLayout> {
        let device_size = device_size / LABEL_SIZE * LABEL_SIZE;
        (device_size > DATA_OFFSET + LABELS_END_SIZE).then_some(LabelLayout { device_size })
    }

    /// The part of the device that is used at all.
    pub fn device_size(&self) -> u64 {
        self.device_size
    }

    /// Where label 0 to 3 begins.
    pub fn label(&self, index: u64) -> u64 {
        assert!(index < LABELS, "a device has four labels");
        if index < 2 { index * LABEL_SIZE } else { self.device_size - (LABELS - index) * LABEL_SIZE }
    }

    /// All four.
    pub fn labels(&self) -> [u64; LABELS as usize] {
        [self.label(0), self.label(1), self.label(2), self.label(3)]
    }

    /// The space DVAs can address, in bytes.
    pub fn data_size(&self) -> u64 {
        self.device_size - DATA_OFFSET - LABELS_END_SIZE
    }
}

/// The ring of uberblocks in each label of a vdev.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UberblockRing {
    shift: u32,
}

const SLOT_SHIFT_MIN: u32 = 10;
const SLOT_SHIFT_MAX: u32 = 13;
/// With multihost protection the last slot is left to its own writes.
const MULTIHOST_SLOTS: u64 = 1;

impl UberblockRing {
    /// `ashift` is that of the top-level vdev.
    pub fn new(ashift: u32) -> UberblockRing {
        UberblockRing { shift: ashift.clamp(SLOT_SHIFT_MIN, SLOT_SHIFT_MAX) }
    }

    pub fn slot_size(&self) -> u64 {
        1 << self.shift
    }

    pub fn slots(&self) -> u64 {
        RING_SIZE >> self.shift
    }

    /// Where slot `index` begins, from the start of the label.
    pub fn slot_offset(&self, index: u64) -> u64 {
        assert!(index < self.slots(), "slot {index} of {}", self.slots());
        RING_OFFSET + (index << self.shift)
    }

    /// The slot the uberblock of `txg` goes to.
    pub fn slot_of(&self, txg: Txg, multihost: bool) -> u64 {
        let reserved = if multihost { MULTIHOST_SLOTS } else { 0 };
        txg.0 % (self.slots() - reserved)
    }
}

/// What a label says about the pool it belongs to (pair `state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum PoolState {
    Active = 0,
    Exported = 1,
    Destroyed = 2,
    /// The device waits as a hot spare.
    Spare = 3,
    /// The device is a cache.
    L2Cache = 4,
}

impl PoolState {
    pub fn from_code(code: u64) -> Option<PoolState> {
        use PoolState::*;
        [Active, Exported, Destroyed, Spare, L2Cache].into_iter().find(|s| *s as u64 == code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_carries_two_labels_at_each_end() {
        let layout = LabelLayout::new((64 << 20) + 5000).unwrap();
        let mib = 1 << 20;
        assert_eq!(layout.labels(), [0, mib / 4, 64 * mib - mib / 2, 64 * mib - mib / 4]);
        assert_eq!(layout.data_size(), 64 * mib - 4 * mib - mib / 2);
        assert_eq!(DATA_OFFSET, 4 * mib);
        assert_eq!(LabelLayout::new(4 * mib + mib / 2), None);
    }

    #[test]
    fn slots_are_as_large_as_a_write_within_bounds() {
        for (ashift, size, slots) in [(9, 1024, 128), (12, 4096, 32), (13, 8192, 16), (16, 8192, 16)] {
            let ring = UberblockRing::new(ashift);
            assert_eq!((ring.slot_size(), ring.slots()), (size, slots));
            assert_eq!(ring.slot_offset(slots - 1) + size, LABEL_SIZE);
        }
        let ring = UberblockRing::new(12);
        assert_eq!((ring.slot_of(Txg(67), false), ring.slot_of(Txg(67), true)), (3, 5));
    }

    #[test]
    fn the_parts_of_a_label_fill_it() {
        assert_eq!(LABEL_PAD_SIZE, BOOT_HEADER_OFFSET);
        assert_eq!(BOOT_HEADER_OFFSET + LABEL_PAD_SIZE, NVLIST_OFFSET);
        assert_eq!(NVLIST_OFFSET + NVLIST_SIZE, RING_OFFSET);
        assert_eq!(RING_OFFSET + RING_SIZE, LABEL_SIZE);
    }
}
