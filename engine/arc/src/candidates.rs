//! What a second level may take from here, ahead of its eviction.
//!
//! ```text
//!   candidates(list, headroom) ─▶ each shard: from the longest in the list on ─▶ offer ─▶ is it wanted? ─▶ found
//!   peek(block) ─▶ its bytes, when it is still there
//! ```
//!
//! Only names are handed out: the bytes are asked for when they are about to be written, so that looking pins no memory.
//! While nothing has left for want of room the newest come first, as nothing is about to leave.

use crate::block::{BlockId, Kind, Opening, Origin};

/// Blocks that are in memory: of a kind those that are kept, or those that came lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    pub kind: Kind,
    pub is_frequent: bool,
}

impl List {
    /// In the order in which their blocks are worth most in a second level.
    pub const BY_WORTH: [List; 4] = [
        List { kind: Kind::Metadata, is_frequent: true },
        List { kind: Kind::Metadata, is_frequent: false },
        List { kind: Kind::Data, is_frequent: true },
        List { kind: Kind::Data, is_frequent: false },
    ];
}

/// A block that may go to a second level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub block: BlockId,
    pub kind: Kind,
    pub origin: Origin,
    /// It was read ahead and not asked for yet.
    pub is_prefetch: bool,
    /// It was used more than once.
    pub is_frequent: bool,
}

/// What is looked for, and what was found.
pub struct Wanted<'a> {
    pub opening: Opening,
    pub newest_first: bool,
    /// Blocks that were read ahead and not asked for yet as well.
    pub prefetched: bool,
    /// Asked under a shard's lock of each that comes into question.
    pub is_wanted: &'a dyn Fn(&Candidate) -> bool,
    /// Bytes on disk and blocks that are enough.
    pub bytes_max: u64,
    pub blocks_max: usize,
    pub found: Vec<Candidate>,
    pub bytes: u64,
}

impl Wanted<'_> {
    pub fn is_full(&self) -> bool {
        self.bytes >= self.bytes_max || self.found.len() >= self.blocks_max
    }

    pub(crate) fn offer(&mut self, candidate: Candidate) {
        let fits = self.bytes + candidate.origin.psize.0 <= self.bytes_max;
        if candidate.block.opening == self.opening && fits && (self.is_wanted)(&candidate) {
            self.bytes += candidate.origin.psize.0;
            self.found.push(candidate);
        }
    }
}

impl std::fmt::Debug for Wanted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wanted").field("found", &self.found.len()).finish_non_exhaustive()
    }
}
