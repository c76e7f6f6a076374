//! Bytes on disk of blocks that were just read from the pool, until they are fed.
//!
//! In memory blocks are decompressed. What this program has compressed it compresses again to the same bytes; what another
//! implementation has compressed comes out otherwise, and would fail its checksum. Of pools with such blocks the bytes that
//! were read are kept for a moment: a few, for cache devices take in no more.

use arc::Candidate;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use world::Buf;

/// At most so many bytes are kept.
const BYTES_MAX: u64 = 16 << 20;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Larder(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    blocks: VecDeque<(Candidate, Buf)>,
    bytes: u64,
}

impl Larder {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The oldest give way.
    pub fn offer(&self, candidate: Candidate, raw: Buf) {
        let mut kept = self.lock();
        kept.bytes += raw.len() as u64;
        kept.blocks.push_back((candidate, raw));
        while kept.bytes > BYTES_MAX
            && let Some((_, oldest)) = kept.blocks.pop_front()
        {
            kept.bytes -= oldest.len() as u64;
        }
    }

    /// Up to `bytes_max` bytes of blocks, which are kept no longer.
    pub fn take(&self, bytes_max: u64) -> Vec<(Candidate, Buf)> {
        let (mut kept, mut taken, mut bytes) = (self.lock(), Vec::new(), 0);
        while let Some((_, raw)) = kept.blocks.front()
            && bytes + raw.len() as u64 <= bytes_max
            && let Some(block) = kept.blocks.pop_front()
        {
            bytes += block.1.len() as u64;
            taken.push(block);
        }
        kept.bytes -= bytes;
        taken
    }

    pub fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    pub fn clear(&self) {
        *self.lock() = Kept::default();
    }
}
