//! Blocks that carry their own checksum: labels, gang headers, log blocks.
//!
//! Nothing that points to such a block knows its contents when the pointer is written, or nothing points to it at
//! all. So the block ends with a trailer (new log blocks: has it in their header) of 40 bytes:
//!
//! ```text
//!   block of n bytes       |            covered            | magic | w0 w1 w2 w3 |     label, gang header,
//!                          0                             n-40    n-32           n     old log block
//!   log block, new         | pad next nused | magic | w0 w1 w2 w3 |  covered  |  free |
//!                          0               144     152           184     nused up to 4K
//! ```
//!
//! The checksum also binds the block to its place: while it is computed, the four words hold a *verifier* that
//! only the rightful reader can know, so that a block written to the wrong place fails.
//!
//! ```text
//!   seal     words := verifier;  words := checksum of all that is covered
//!   verify   the same over a view of the block; compare with the words found
//! ```
//!
//! The magic tells the byte order of the writer, in which the words, and fletcher's view of the data, are.
//!
//! A label's configuration stands in several places: [`Copies`].

mod copies;

pub use copies::{Copies, remember_hashes};

use super::{Words, fletcher2, fletcher4, mac, read_u64, words, write_u64};
use sha2::Digest;
use units::{Checksum, Endian, Txg, VdevId};

const MAGIC: u64 = 0x0210_da7a_b10c_7a11;
/// Magic and four words.
pub const TRAILER_BYTES: usize = 40;

/// Where a log block's header tells how many of its bytes are in use, and where its trailer lies.
const LOG_USED_AT: usize = 136;
const LOG_TRAILER_AT: usize = 144;
/// A log block is covered up to the next multiple of this.
const LOG_GRAIN: u64 = 4096;

/// A label is bound to its offset on the device, in bytes.
pub fn label_verifier(offset: u64) -> Words {
    [offset, 0, 0, 0]
}

/// A gang header is bound to its first address and to the txg in which it was allocated. `offset` is in bytes.
pub fn gang_verifier(vdev: VdevId, offset: u64, birth: Txg) -> Words {
    [vdev.0.into(), offset, birth.0, 0]
}

/// Writes magic and checksum into `block`. The verifier of a log block is the words in the pointer to it. An
/// encrypted log block keeps `mac` in the second half of its words.
///
/// Panics if the block has no room for what its kind demands: blocks to be sealed are our own.
pub fn seal(kind: Checksum, endian: Endian, block: &mut [u8], verifier: Words, mac: Option<[u64; 2]>) {
    let trailer = trailer_of(kind, block.len()).expect("a sealed block has room for its trailer");
    block[trailer..trailer + 8].copy_from_slice(&write_u64(endian, MAGIC));
    let covered = covered(kind, endian, block).expect("a log block uses no more bytes than it has");
    let computed = checksum(kind, endian, &block[..covered], trailer + 8, verifier);
    let sealed = mac.map_or(computed, |mac| mac::combine(kind, computed, mac));
    block[trailer + 8..trailer + TRAILER_BYTES].copy_from_slice(&bytes(endian, sealed));
}

/// The byte order of the writer, if `block` is intact and was written to where the verifier says.
pub fn verify(kind: Checksum, block: &[u8], verifier: Words, encrypted: bool) -> Option<Endian> {
    let trailer = trailer_of(kind, block.len())?;
    let (magic, found) = block[trailer..trailer + TRAILER_BYTES].split_first_chunk::<8>()?;
    let endian = [Endian::Little, Endian::Big].into_iter().find(|&e| read_u64(e, *magic) == MAGIC)?;
    let covered = covered(kind, endian, block)?;
    let computed = checksum(kind, endian, &block[..covered], trailer + 8, verifier);
    let found = words(endian, found.first_chunk()?);
    let intact = if encrypted { mac::matches(kind, computed, found) } else { computed == found };
    intact.then_some(endian)
}

fn trailer_of(kind: Checksum, length: usize) -> Option<usize> {
    debug_assert!(kind.is_self_contained(), "{kind:?} lies in the pointer");
    match kind {
        Checksum::Zilog2 => (length >= LOG_TRAILER_AT + TRAILER_BYTES).then_some(LOG_TRAILER_AT),
        _ => length.checked_sub(TRAILER_BYTES),
    }
}

/// How many bytes of the block the checksum is about.
fn covered(kind: Checksum, endian: Endian, block: &[u8]) -> Option<usize> {
    if kind != Checksum::Zilog2 {
        return Some(block.len());
    }
    let used = read_u64(endian, *block[LOG_USED_AT..].first_chunk()?);
    let covered = used.checked_next_multiple_of(LOG_GRAIN)?;
    // A block that claims to use nothing would not even cover its own words.
    (covered > 0 && covered <= block.len() as u64).then_some(covered as usize)
}

/// The checksum of `covered` seen with `verifier` in place of the words at `at`.
fn checksum(kind: Checksum, endian: Endian, covered: &[u8], at: usize, verifier: Words) -> Words {
    let parts = [&covered[..at], &bytes(endian, verifier), &covered[at + 32..]];
    match kind {
        Checksum::Zilog => parts.iter().fold([0; 4], |sums, part| fletcher2::resume(sums, endian, part)),
        Checksum::Zilog2 => parts.iter().fold([0; 4], |sums, part| fletcher4::resume(sums, endian, part)),
        _ => {
            let hash = parts.iter().fold(sha2::Sha256::new(), |hash, part| hash.chain_update(part));
            words(Endian::Big, &hash.finalize().into())
        }
    }
}

fn bytes(endian: Endian, words: Words) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (to, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *to = write_u64(endian, word);
    }
    bytes
}

#[cfg(test)]
mod tests;
