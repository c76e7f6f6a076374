//! Sizes: what of a device can be allocated, in which units, and how it is cut into metaslabs.
//!
//! ```text
//!   device  │L0│L1│ boot area │            allocatable: asize            │L2│L3│ tail < 256 KiB, unused
//!           0     512K        4M                              psize - 512K     psize
//! ```
//!
//! All of this is format: another implementation computes the same numbers from the same device, and stores some of
//! them in the pool's configuration.

use ondisk::label::{DATA_OFFSET, LABEL_SIZE, LABELS_END_SIZE};
use units::{Error, Result};

pub const ASHIFT_MIN: u32 = 9;
pub const ASHIFT_MAX: u32 = 16;
/// The largest ashift that is chosen on the word of the device alone: a larger one wastes too much space to be
/// taken without being asked for.
pub const ASHIFT_AUTO_MAX: u32 = 14;

/// The bytes of a device of `size` that count: whole labels.
pub fn leaf_psize(size: u64) -> u64 {
    size & !(LABEL_SIZE - 1)
}

/// The allocatable bytes of a device whose usable bytes are `psize`.
pub fn leaf_asize(psize: u64) -> u64 {
    psize.saturating_sub(DATA_OFFSET + LABELS_END_SIZE)
}

/// Chooses the ashift of a new top-level vdev.
///
/// `requested` is the `ashift` property, 0 for "as the device says"; a request below what the device can do is
/// treated as not made. `logical` is the smallest unit the device accepts, `physical` the one it likes.
pub fn choose_ashift(requested: u32, logical: u32, physical: u32) -> Result<u32> {
    if requested != 0 && !(ASHIFT_MIN..=ASHIFT_MAX).contains(&requested) {
        return Err(Error::invalid(format!(
            "ashift={requested}: use {ASHIFT_MIN} to {ASHIFT_MAX}, or 0 for automatic"
        )));
    }
    if logical > ASHIFT_MAX {
        return Err(Error::unsupported(format!("device with sectors of 2^{logical} bytes")));
    }
    if requested >= logical && requested != 0 {
        return Ok(requested);
    }
    let natural = if physical > logical && physical <= ASHIFT_AUTO_MAX { physical } else { logical };
    Ok(natural.max(ASHIFT_MIN))
}

/// The preferred unit of a group of devices whose strictest logical ashift is `logical`: the largest physical one
/// that may be chosen automatically.
pub fn best_physical(logical: u32, a: u32, b: u32) -> u32 {
    let eligible = |x: u32| x > logical && x <= ASHIFT_AUTO_MAX;
    match (eligible(a), eligible(b)) {
        (true, false) => a,
        (false, true) => b,
        _ => a.max(b),
    }
}

/// A metaslab is not smaller than the largest block.
const METASLAB_SHIFT_MIN: u32 = 24;
/// What is aimed at where nothing else decides: 512 MiB.
const METASLAB_SHIFT_DEFAULT: u32 = 29;
/// Larger metaslabs take too long to load: 16 GiB.
const METASLAB_SHIFT_MAX: u32 = 34;
const METASLABS_MIN: u64 = 16;
const METASLABS_DEFAULT: u64 = 200;
const METASLABS_MAX: u64 = 1 << 17;

/// Chooses the size of the metaslabs of a new top-level vdev, as a power of two.
///
/// ```text
///   asize          metaslabs
///   below 8 GiB    about 16
///   to 100 GiB     one per 512 MiB
///   to 3 TiB       about 200
///   to 2 PiB       one per 16 GiB
///   above          about 2^17
/// ```
pub fn metaslab_shift(asize: u64) -> u32 {
    let count = asize >> METASLAB_SHIFT_DEFAULT;
    let shift = if count < METASLABS_MIN {
        highest_bit(asize / METASLABS_MIN)
    } else if count > METASLABS_DEFAULT {
        highest_bit(asize / METASLABS_DEFAULT)
    } else {
        METASLAB_SHIFT_DEFAULT
    };
    if shift > METASLAB_SHIFT_MAX && (asize >> METASLAB_SHIFT_MAX) > METASLABS_MAX {
        return highest_bit(asize / METASLABS_MAX);
    }
    shift.clamp(METASLAB_SHIFT_MIN, METASLAB_SHIFT_MAX)
}

/// The position of the highest set bit, counted from 1; 0 for 0.
fn highest_bit(n: u64) -> u32 {
    u64::BITS - n.leading_zeros()
}

/// How many bytes of a vdev whose 128 KiB block takes `asize_128k` count as space for data, in units of 1/512: by
/// this ratio allocated space is reported without the parity that a typical block needs.
pub fn deflate_ratio(asize_128k: u64) -> u64 {
    (128 << 10) / (asize_128k >> units::SECTOR_SHIFT).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metaslab_sizes_are_those_of_pools_made_by_openzfs() {
        for (asize, shift) in [
            (95_944_704, 24),
            (237_502_464, 24),
            (383_778_816, 25),
            (62_390_272, 24),
            (10 << 30, 29),
            (100 << 30, 29),
            (1 << 40, 33),
            (10 << 40, 34),
            (3 << 50, 35),
        ] {
            assert_eq!(metaslab_shift(asize), shift, "{asize}");
        }
    }

    #[test]
    fn a_device_keeps_whole_labels_and_gives_up_both_ends() {
        assert_eq!(leaf_asize(leaf_psize(83_886_080)), 79_167_488);
        assert_eq!(leaf_psize((64 << 20) + 12345), 64 << 20);
        assert_eq!(leaf_asize(0), 0);
    }

    #[test]
    fn the_ashift_follows_the_request_then_the_device() {
        assert_eq!(choose_ashift(0, 9, 9).unwrap(), 9);
        assert_eq!(choose_ashift(0, 9, 12).unwrap(), 12);
        assert_eq!(choose_ashift(0, 9, 15).unwrap(), 9);
        assert_eq!(choose_ashift(13, 9, 12).unwrap(), 13);
        assert_eq!(choose_ashift(9, 12, 12).unwrap(), 12);
        assert_eq!(choose_ashift(9, 9, 12).unwrap(), 9);
        assert!(choose_ashift(8, 9, 9).is_err());
        assert!(choose_ashift(17, 9, 9).is_err());
        assert!(choose_ashift(0, 17, 17).is_err());
    }

    #[test]
    fn space_is_deflated_by_the_parity_of_a_128k_block() {
        assert_eq!(deflate_ratio(128 << 10), 512);
        assert_eq!(deflate_ratio(384 << 9), 341);
    }
}
