//! What the cache devices of a pool have done, and what they hold.

use crate::index::Held;
use std::sync::atomic::{AtomicU64, Ordering};

/// Declares counters and the same as plain numbers.
macro_rules! counters {
    ($($(#[doc = $about:literal])* $name:ident,)*) => {
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub $name: AtomicU64,)*
        }

        /// Since the pool was opened.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counted {
            $($(#[doc = $about])* pub $name: u64,)*
        }

        impl Counters {
            pub fn read(&self) -> Counted {
                Counted { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }

        impl std::ops::AddAssign for Counted {
            fn add_assign(&mut self, other: Counted) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    /// Blocks that were not in memory and came from a cache device.
    hits,
    /// Blocks that were not in memory and are on no cache device.
    misses,
    /// On a device that is not asked at present.
    passed_by,
    /// Reads that gave an error or no answer in time.
    read_errors,
    /// Reads whose bytes were not the block's.
    bad_checksums,
    read_bytes,
    /// Blocks that were written to cache devices.
    fed,
    /// With logs, headers and what fills sectors.
    written_bytes,
    write_errors,
    /// Blocks that were written over before they were freed.
    evicted,
    /// Blocks that were found again at import.
    rebuilt,
    /// Blocks of which the bytes on disk could not be made again from those in memory.
    foreign,
    /// Times that nothing was fed for want of memory to remember it in.
    no_memory,
    /// Passes that found something to write, and those of them that ended because that was as much as `l2arc_write_max`.
    passes,
    /// See the one before.
    cut_short,
}

impl Counters {
    pub fn count(&self, counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Of all cache devices of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub counted: Counted,
    pub data: Held,
    pub metadata: Held,
    /// The memory that it takes to know what is where.
    pub header_bytes: u64,
}
