//! What the write side asks of the tunables, read once for each block.

use crate::log::largest_block;
use tunables::{Tunable, Tunables};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Bytes: the largest log block, a multiple of their unit.
    pub max_block_size: u64,
    /// Bytes: data up to this length are in one record, however little is left in the block.
    pub max_copied: u64,
    /// Bytes: from this length on a write is logged by pointer, unless there are log devices.
    pub immediate_write_size: u64,
    /// Writes that are not whole blocks are never logged by pointer, and blocks must be larger than `immediate_write_size`
    /// for it rather than writes.
    pub whole_blocks_only: bool,
    /// Bytes: what one commit writes to log devices beyond this waits behind what others wait for.
    pub slog_bulk: u64,
    /// How long a commit may wait for others to join it, in percent of what the last one took.
    pub commit_timeout_percent: u64,
    pub no_cache_flush: bool,
}

impl Settings {
    pub fn of(tunables: &Tunables) -> Settings {
        Settings {
            max_block_size: largest_block(tunables.get(Tunable::ZilMaxBlockSize)),
            max_copied: tunables.get(Tunable::ZilMaxCopied),
            immediate_write_size: tunables.get(Tunable::ImmediateWriteSize),
            whole_blocks_only: tunables.is_on(Tunable::ZilWholeBlocksOnly),
            slog_bulk: tunables.get(Tunable::ZilSlogBulk),
            commit_timeout_percent: tunables.get(Tunable::CommitTimeoutPercent),
            no_cache_flush: tunables.is_on(Tunable::ZilNoCacheFlush),
        }
    }
}
