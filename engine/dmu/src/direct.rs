//! Which requests go past the cache (`O_DIRECT`, the property `direct`).
//!
//! ```text
//!                 O_DIRECT, whole pages   O_DIRECT, else   other, whole pages   other, else
//!   disabled         cache                   cache            cache                cache
//!   standard         past it                 cache            cache                cache
//!   always           past it                 cache            past it              cache
//! ```
//!
//! "Whole pages": offset and length are multiples of [`PAGE`]. What goes past the cache leaves nothing there, but coherence
//! comes first: what is in the cache, or dirty in a txg, is served from there.
//!
//! A misaligned one is served as any other, as OpenZFS does unless `zfs_dio_strict` is set, where it answers `EINVAL`.
//!
//! Not here: how a block is read past the cache ([`crate::Object::read_block_past_cache`]).

/// Requests are aligned by this many bytes.
pub const PAGE: u64 = 4096;

/// The property `direct`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Direct {
    Disabled,
    #[default]
    Standard,
    Always,
}

impl Direct {
    const ALL: [Direct; 3] = [Direct::Disabled, Direct::Standard, Direct::Always];

    /// The one of this number in the property's table; the default for any other.
    pub fn of(code: u64) -> Direct {
        Direct::ALL.into_iter().find(|direct| *direct as u64 == code).unwrap_or_default()
    }

    /// Whether a request goes past the cache. `is_asked`: its file was opened with `O_DIRECT`.
    pub fn takes(self, is_asked: bool, offset: u64, len: u64) -> bool {
        let is_wanted = match self {
            Direct::Disabled => false,
            Direct::Standard => is_asked,
            Direct::Always => true,
        };
        is_wanted && len > 0 && (offset | len).is_multiple_of(PAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_goes_past_the_cache_by_property_flag_and_alignment() {
        let aligned = [(0, PAGE), (PAGE, 3 * PAGE), (1 << 40, 1 << 20)];
        let others = [(0, 512), (512, PAGE), (PAGE, PAGE + 1), (1, PAGE), (0, 0)];
        for is_asked in [false, true] {
            for (direct, takes) in
                [(Direct::Disabled, false), (Direct::Standard, is_asked), (Direct::Always, true)]
            {
                let says = |(offset, len): (u64, u64)| direct.takes(is_asked, offset, len);
                assert!(aligned.iter().all(|&range| says(range) == takes), "{direct:?} {is_asked}");
                assert!(!others.iter().any(|&range| says(range)), "{direct:?} {is_asked}");
            }
        }
    }
}
