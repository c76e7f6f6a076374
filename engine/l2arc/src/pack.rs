//! The bytes on disk of blocks, made again from those in memory, and proven. Pure.

use crate::journal::Frame;
use arc::{BlockId, Candidate, Kind, Origin};
use codec::checksum::Checksummer;
use ondisk::Dva;
use ondisk::l2arc::{EntryProp, LogEntry};
use units::Compression;
use world::Buf;

/// A block, its bytes, and whether these are the ones on disk already.
pub(crate) type Item = (Candidate, Buf, bool);

/// What is to be written in one piece.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    /// Each block in whole sectors.
    pub data: Vec<u8>,
    /// Without places.
    pub entries: Vec<LogEntry>,
    pub blocks: Vec<(BlockId, Kind)>,
    /// Blocks whose bytes on disk could not be made.
    pub foreign: Vec<BlockId>,
}

pub(crate) fn pack(items: Vec<Item>, frame: &Frame, checksummer: &Checksummer) -> Packed {
    let mut packed = Packed::default();
    for (candidate, buf, is_raw) in items {
        let (from, origin) = (packed.data.len(), &candidate.origin);
        let is_made = if is_raw {
            append(&buf, origin, &mut packed.data)
        } else {
            make(&buf, origin, &mut packed.data)
        };
        let is_proven = is_made && {
            let bytes = &packed.data[from..];
            checksummer.compute(origin.checksum_kind, origin.endian, bytes) == origin.checksum
        };
        if !is_proven {
            packed.data.truncate(from);
            packed.foreign.push(candidate.block);
            continue;
        }
        packed.data.resize(from + frame.asize(origin.psize.0) as usize, 0);
        packed.entries.push(entry_of(&candidate));
        packed.blocks.push((candidate.block, candidate.kind));
    }
    packed
}

/// Appends the bytes on disk of a block from its logical ones, as [`zio`'s way of writing](codec::compress) makes them.
fn make(logical: &[u8], origin: &Origin, data: &mut Vec<u8>) -> bool {
    if origin.compression == Compression::Off {
        return append(logical, origin, data);
    }
    let (from, psize) = (data.len(), origin.psize.0 as usize);
    // The room that a block had when it was written: whether it is given up may depend on it.
    let room = logical.len() - logical.len() / 8;
    data.resize(from + room.max(psize), 0);
    match codec::compress::compress(origin.compression, logical, &mut data[from..from + room]) {
        Some(len) if len <= psize => {
            data.truncate(from + len);
            data.resize(from + psize, 0);
            true
        }
        _ => false,
    }
}

fn append(bytes: &[u8], origin: &Origin, data: &mut Vec<u8>) -> bool {
    let bytes = bytes.get(..origin.psize.0 as usize);
    bytes.is_some_and(|bytes| {
        data.extend_from_slice(bytes);
        true
    })
}

fn entry_of(candidate: &Candidate) -> LogEntry {
    let Candidate { block, origin, .. } = candidate;
    LogEntry {
        dva: Dva { vdev: block.vdev, asize: origin.asize, offset: block.offset, gang: origin.gang },
        birth: block.birth,
        prop: EntryProp {
            lsize: origin.lsize,
            psize: origin.psize,
            compression: origin.compression,
            is_prefetch: candidate.is_prefetch,
            is_metadata: candidate.kind == Kind::Metadata,
            is_protected: false,
            state: if candidate.is_frequent { EntryProp::FREQUENT } else { EntryProp::RECENT },
        },
        daddr: 0,
        level: 0,
    }
}

#[cfg(test)]
mod tests;
