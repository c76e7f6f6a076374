//! Checksums of encrypted blocks: two words of checksum, two words of message authentication code.
//!
//! ```text
//!   words of the pointer    0        1        2        3
//!   plain block             ------- checksum of 256 bits ------
//!   encrypted block         checksum, 128 bits |  MAC, 128 bits
//! ```
//!
//! Without the key the MAC cannot be checked, but the first half can: damage is found and healed by a scrub that
//! knows no key. Object set blocks carry their MACs inside and keep the whole checksum.

use super::Words;
use units::{Checksum, Strength};

/// The half of a checksum that an encrypted block keeps. A strong digest is simply cut; the words of a weak one
/// are not equally random, so the second half is folded into the first.
pub fn truncate(kind: Checksum, words: Words) -> [u64; 2] {
    let [a, b, c, d] = words;
    if folds(kind) { [a ^ c, b ^ d] } else { [a, b] }
}

/// The words of the pointer to an encrypted block.
pub fn combine(kind: Checksum, words: Words, mac: [u64; 2]) -> Words {
    let [a, b] = truncate(kind, words);
    [a, b, mac[0], mac[1]]
}

/// Whether the checksum of a pointer's encrypted block is `computed`, as far as can be told without the key.
pub fn matches(kind: Checksum, computed: Words, pointer: Words) -> bool {
    truncate(kind, computed) == pointer[..2]
}

/// Edon-R is among the folded: it was never trusted to name a block by its checksum alone. So are the functions
/// of log blocks, labels and gang headers, even where they are SHA-256.
fn folds(kind: Checksum) -> bool {
    kind.row().strength != Strength::Names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pointer_to_an_encrypted_block_matches_its_data_whatever_the_mac() {
        for kind in [Checksum::Fletcher4, Checksum::EdonR, Checksum::Sha256, Checksum::Zilog2] {
            let pointer = combine(kind, [1, 2, 3, 4], [5, 6]);
            assert_eq!(pointer[2..], [5, 6]);
            assert!(matches(kind, [1, 2, 3, 4], pointer));
            assert!(!matches(kind, [1, 3, 3, 4], pointer));
        }
        assert_eq!(truncate(Checksum::Fletcher4, [1, 2, 4, 8]), [5, 10]);
        assert_eq!(truncate(Checksum::EdonR, [1, 2, 4, 8]), [5, 10]);
        assert_eq!(truncate(Checksum::Blake3, [1, 2, 4, 8]), [1, 2]);
    }
}
