//! Copies of one block in several places: what they have in common is hashed once.
//!
//! ```text
//!   label 0   | configuration, zeros … | magic | words 0 |        the common part is long, and its hash is the same
//!   label 2   | configuration, zeros … | magic | words 2 |        as far as the bytes are
//!             └──── common part ───────┘
//! ```
//!
//! A hash is taken for known only after all the bytes have been compared, which is some twenty times faster than to hash
//! them.

use super::{MAGIC, Words, bytes, read_u64, trailer_of, words, write_u64};
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::VecDeque;
use units::{Checksum, Endian};

/// The labels of a device are of two kinds when a commit was cut short.
const KINDS: usize = 2;

thread_local! {
    static REMEMBERED: RefCell<Hashes> = const { RefCell::new(Hashes::new(0)) };
}

/// Makes all [`Copies`] on this thread remember so many common parts, from now on and together: for programs that open the
/// same few devices thousands of times. It costs as many times the size of a label in memory.
pub fn remember_hashes(most: usize) {
    REMEMBERED.with_borrow_mut(|hashes| hashes.most = most);
}

/// Seals and verifies blocks, as [`Checksum::Label`], of which some have all but their trailer in common.
#[derive(Debug)]
pub struct Copies(Hashes);

impl Default for Copies {
    fn default() -> Copies {
        Copies(Hashes::new(KINDS))
    }
}

impl Copies {
    /// As [`seal`](super::seal); it panics as that does.
    pub fn seal(&mut self, endian: Endian, block: &mut [u8], verifier: Words) {
        let trailer = trailer_of(Checksum::Label, block.len());
        let (common, end) = block.split_at_mut(trailer.expect("a sealed block has room for its trailer"));
        end[..8].copy_from_slice(&write_u64(endian, MAGIC));
        let computed = self.checksum(common, &end[..8], &bytes(endian, verifier));
        end[8..].copy_from_slice(&bytes(endian, computed));
    }

    /// As [`verify`](super::verify).
    pub fn verify(&mut self, block: &[u8], verifier: Words) -> Option<Endian> {
        let (common, end) = block.split_at(trailer_of(Checksum::Label, block.len())?);
        let (magic, found) = end.split_first_chunk::<8>()?;
        let endian = [Endian::Little, Endian::Big].into_iter().find(|&e| read_u64(e, *magic) == MAGIC)?;
        let computed = self.checksum(common, magic, &bytes(endian, verifier));
        (computed == words(endian, found.first_chunk()?)).then_some(endian)
    }

    fn checksum(&mut self, common: &[u8], magic: &[u8], verifier: &[u8]) -> Words {
        let hash = REMEMBERED.with_borrow_mut(|all| {
            let hashes = if all.most > 0 { all } else { &mut self.0 };
            hashes.of(common)
        });
        words(Endian::Big, &hash.chain_update(magic).chain_update(verifier).finalize().into())
    }
}

/// The hashes of the blocks seen last, the newest first.
struct Hashes {
    most: usize,
    known: VecDeque<(Vec<u8>, Sha256)>,
}

impl std::fmt::Debug for Hashes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} hashes", self.known.len(), self.most)
    }
}

impl Hashes {
    const fn new(most: usize) -> Hashes {
        Hashes { most, known: VecDeque::new() }
    }

    fn of(&mut self, block: &[u8]) -> Sha256 {
        let at = self.known.iter().position(|(known, _)| known == block);
        let entry = at.and_then(|at| self.known.remove(at));
        let entry = entry.unwrap_or_else(|| (block.to_vec(), Sha256::new_with_prefix(block)));
        let hash = entry.1.clone();
        self.known.push_front(entry);
        self.known.truncate(self.most);
        hash
    }
}

#[cfg(test)]
mod tests {
    use super::super::seal;
    use super::*;
    use crate::testing::bytes as random;

    fn as_if_each_were_alone() {
        let mut copies = Copies::default();
        for (seed, endian) in [(5, Endian::Little), (6, Endian::Big), (5, Endian::Big), (7, Endian::Little)] {
            for place in 0..3 {
                let verifier = [place, 0, 0, 0];
                let mut alone = random(seed, 8192);
                let mut copy = alone.clone();
                seal(Checksum::Label, endian, &mut alone, verifier, None);
                copies.seal(endian, &mut copy, verifier);
                assert_eq!(copy, alone);
                assert_eq!(copies.verify(&copy, verifier), Some(endian));
                assert_eq!(copies.verify(&copy, [place + 1, 0, 0, 0]), None, "written to another place");
                for at in [0, 8151, 8152, 8160, 8191] {
                    copy[at] ^= 4;
                    assert_eq!(copies.verify(&copy, verifier), None, "byte {at}");
                    copy[at] ^= 4;
                }
            }
        }
        assert_eq!(copies.verify(&[0; 39], [0; 4]), None);
    }

    #[test]
    fn copies_are_sealed_and_verified_as_if_each_were_alone() {
        as_if_each_were_alone();
        remember_hashes(3);
        as_if_each_were_alone();
        as_if_each_were_alone();
        remember_hashes(0);
    }

    #[test]
    fn the_blocks_seen_last_are_known() {
        let mut hashes = Hashes::new(2);
        for block in [[1], [2], [1], [3]] {
            assert_eq!(hashes.of(&block).finalize(), Sha256::digest(block));
        }
        let known: Vec<&[u8]> = hashes.known.iter().map(|(block, _)| &block[..]).collect();
        assert_eq!(known, [&[3][..], &[1]]);
    }
}
