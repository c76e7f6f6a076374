//! Skein-512 in its keyed mode, as specified in version 1.3 of its paper.
//!
//! Skein hashes by *unique block iteration*: each block is enciphered under the chaining value and mixed into it, with
//! a tweak that tells what the block is, how many bytes have come so far, and whether it is the first or last.
//!
//! ```text
//!   zeros --key--> --configuration--> --data--> ... --> --output--> digest
//!         \_______ depends on salt only ____/
//! ```
//!
//! The cipher is Threefish-512: eight words, 72 rounds of add, rotate, xor, a key added after every fourth.

const BLOCK_BYTES: usize = 64;

type Block = [u64; 8];

/// What a block is for, as the tweak tells it.
#[derive(Clone, Copy)]
#[repr(u64)]
enum Purpose {
    Key = 0,
    Configuration = 4,
    Message = 48,
    Output = 63,
}

/// The chaining value after key and configuration.
#[derive(Clone)]
pub struct Keyed(Block);

impl Keyed {
    /// For digests of `output_bits`, which enter into the digest.
    pub fn new(key: &[u8; 32], output_bits: u64) -> Keyed {
        let mut configuration = [0; 32];
        configuration[..4].copy_from_slice(b"SHA3");
        configuration[4] = 1; // version of the scheme
        configuration[8..16].copy_from_slice(&output_bits.to_le_bytes());
        let keyed = iterate([0; 8], Purpose::Key, key);
        Keyed(iterate(keyed, Purpose::Configuration, &configuration))
    }

    /// The digest of `data`, of which the caller takes as many bits as it asked for.
    pub fn digest(&self, data: &[u8]) -> [u8; BLOCK_BYTES] {
        let chain = iterate(self.0, Purpose::Message, data);
        let output = iterate(chain, Purpose::Output, &0u64.to_le_bytes());
        let mut digest = [0; BLOCK_BYTES];
        for (bytes, word) in digest.as_chunks_mut::<8>().0.iter_mut().zip(output) {
            *bytes = word.to_le_bytes();
        }
        digest
    }
}

fn iterate(mut chain: Block, purpose: Purpose, data: &[u8]) -> Block {
    const FIRST: u64 = 1 << 62;
    const LAST: u64 = 1 << 63;
    let mut flags = (purpose as u64) << 56 | FIRST;
    // The last block is short, full or, for want of any data, empty; never missing.
    let (body, tail) = data.split_at(data.len().saturating_sub(1) / BLOCK_BYTES * BLOCK_BYTES);
    let mut position = 0;
    for bytes in body.as_chunks::<BLOCK_BYTES>().0 {
        position += BLOCK_BYTES as u64;
        absorb(&mut chain, [position, flags], bytes);
        flags &= !FIRST;
    }
    let mut last = [0; BLOCK_BYTES];
    last[..tail.len()].copy_from_slice(tail);
    absorb(&mut chain, [position + tail.len() as u64, flags | LAST], &last);
    chain
}

fn absorb(chain: &mut Block, tweak: [u64; 2], bytes: &[u8; BLOCK_BYTES]) {
    let (words, _) = bytes.as_chunks::<8>();
    let block: Block = std::array::from_fn(|i| u64::from_le_bytes(words[i]));
    let enciphered = threefish(chain, tweak, block);
    *chain = std::array::from_fn(|i| enciphered[i] ^ block[i]);
}

/// The words mixed with each other in each of four rounds. The permutation of words that the paper puts between
/// rounds is in these indexes; after four rounds every word is home again.
const PAIRS: [[(usize, usize); 4]; 4] = [
    [(0, 1), (2, 3), (4, 5), (6, 7)],
    [(2, 1), (4, 7), (6, 5), (0, 3)],
    [(4, 1), (6, 3), (0, 5), (2, 7)],
    [(6, 1), (0, 7), (2, 5), (4, 3)],
];

const ROTATIONS: [[[u32; 4]; 4]; 2] = [
    [[46, 36, 19, 37], [33, 27, 14, 42], [17, 49, 36, 39], [44, 9, 54, 56]],
    [[39, 30, 34, 24], [13, 50, 10, 17], [25, 29, 39, 43], [8, 35, 56, 22]],
];

/// One key before each four rounds, and one at the end.
const KEYS: usize = 72 / 4 + 1;

fn threefish(key: &Block, [low, high]: [u64; 2], mut block: Block) -> Block {
    const PARITY_OF_ZEROS: u64 = 0x1bd1_1bda_a9fc_1a22;
    let parity = key.iter().fold(PARITY_OF_ZEROS, |parity, word| parity ^ word);
    let [a, b, c, d, e, f, g, h] = *key;
    let key = Key { words: [a, b, c, d, e, f, g, h, parity], tweak: [low, high, low ^ high] };
    // Spelled out, not looped over, so that every index and rotation is a constant.
    key.four_rounds::<0>(&mut block);
    key.four_rounds::<1>(&mut block);
    key.four_rounds::<2>(&mut block);
    key.four_rounds::<3>(&mut block);
    key.four_rounds::<4>(&mut block);
    key.four_rounds::<5>(&mut block);
    key.four_rounds::<6>(&mut block);
    key.four_rounds::<7>(&mut block);
    key.four_rounds::<8>(&mut block);
    key.four_rounds::<9>(&mut block);
    key.four_rounds::<10>(&mut block);
    key.four_rounds::<11>(&mut block);
    key.four_rounds::<12>(&mut block);
    key.four_rounds::<13>(&mut block);
    key.four_rounds::<14>(&mut block);
    key.four_rounds::<15>(&mut block);
    key.four_rounds::<16>(&mut block);
    key.four_rounds::<17>(&mut block);
    key.add::<{ KEYS - 1 }>(&mut block);
    block
}

/// Key and tweak, each with its parity.
struct Key {
    words: [u64; 9],
    tweak: [u64; 3],
}

impl Key {
    #[inline(always)]
    fn four_rounds<const STEP: usize>(&self, block: &mut Block) {
        self.add::<STEP>(block);
        for (pairs, rotations) in PAIRS.iter().zip(&ROTATIONS[STEP % 2]) {
            for (&(a, b), rotation) in pairs.iter().zip(rotations) {
                block[a] = block[a].wrapping_add(block[b]);
                block[b] = block[b].rotate_left(*rotation) ^ block[a];
            }
        }
    }

    /// The words of a step begin one later than those of the step before.
    #[inline(always)]
    fn add<const STEP: usize>(&self, block: &mut Block) {
        for (i, word) in block.iter_mut().enumerate() {
            *word = word.wrapping_add(self.words[(STEP + i) % 9]);
        }
        block[5] = block[5].wrapping_add(self.tweak[STEP % 3]);
        block[6] = block[6].wrapping_add(self.tweak[(STEP + 1) % 3]);
        block[7] = block[7].wrapping_add(STEP as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    const KEY: &str = "cb41f1706cde09651203c2d0efbaddf847a0d315cb2e53ff8bac41da0002672e";

    /// From the known answers published with version 1.3: messages with a key of 32 bytes, 512 bits of output.
    #[test]
    fn the_published_keyed_digests_come_out() {
        let keyed = Keyed::new(&hex(KEY).try_into().unwrap(), 512);
        let message = hex("d3090c72167517f7c7ad82a70c2fd3f6443f608301591e598eadb195e8357135ba26fede2ee18741\
                           7f816048d00fc23512737a2113709a77e4170c49a94b7fdff45ff579a72287743102e7766c35ca5a\
                           bc5dfe2f63a1e726ce5fbd2926db03a2");
        for (length, digest) in [
            (
                8,
                "0c1f1921253dd8e5c2d4c5f4099f851042d91147892705829161f5fc64d89785\
                 226eb6e187068493ee4c78a4b7c0f55a8cbbb1a5982c2daf638fc6a74b16b0d7",
            ),
            (
                96,
                "d10e3ba81855ac087fbf5a3bc1f99b27d05f98ba22441138026225d34a418b93\
                  fd9e8dfaf5120757451adabe050d0eb59d271b0fe1bbf04badbcf9ba25a8791b",
            ),
        ] {
            assert_eq!(keyed.digest(&message[..length]).to_vec(), hex(digest), "{length} bytes");
        }
    }

    /// Likewise without a key, for the output of 256 bits that blocks have: the first block then is the
    /// configuration.
    #[test]
    fn the_published_digests_of_256_bits_come_out() {
        let mut plain = Keyed::new(&[0; 32], 256);
        let mut configuration = *b"SHA3\x01\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
        configuration[8..16].copy_from_slice(&256u64.to_le_bytes());
        plain.0 = iterate([0; 8], Purpose::Configuration, &configuration);
        let falling: Vec<u8> = (0x80..=0xff).rev().collect();
        for (message, digest) in [
            (falling, "1a6a5ba08e74a864b5cb052cfb9b2fa128203230a4d9923a329f5427c477a4db"),
            (vec![0; 128], "2d0e2e241972df39be822a8c682105c64747faf8a10ec032881de7dc67887cc2"),
        ] {
            assert_eq!(plain.digest(&message)[..32], hex(digest));
        }
    }

    #[test]
    fn every_byte_and_the_length_count() {
        let keyed = Keyed::new(&[7; 32], 256);
        let digests: std::collections::BTreeSet<_> = (0..200).map(|n| keyed.digest(&vec![0; n])).collect();
        assert_eq!(digests.len(), 200);
    }
}
