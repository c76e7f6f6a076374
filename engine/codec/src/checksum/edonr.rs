//! Edon-R 512, as tweaked for the second round of the SHA-3 competition.
//!
//! A block of sixteen words is folded into a *double pipe* of sixteen by eight quasigroup operations, each of which
//! makes eight words out of twice eight:
//!
//! ```text
//!   row 1   p = reversed upper data * lower data     q = p * upper data
//!   row 2   p = upper pipe * p                       q = p * q
//!   row 3   p = p * lower pipe                       q = q * p
//!   row 4   p = reversed lower data * p              q = p * q
//!   pipe    lower ^= upper data ^ p                  upper ^= lower data ^ q
//! ```
//!
//! It is the fastest keyed function here on processors without vectors, and the only one not trusted to name a block
//! by itself.

const BLOCK_BYTES: usize = 128;

type Half = [u64; 8];

/// The state before any data, or after some whole blocks of it.
#[derive(Clone)]
pub struct Pipe {
    lower: Half,
    upper: Half,
    bytes: u64,
}

impl Pipe {
    /// The published start: the bytes 0x80, 0x81, ... read as big-endian words.
    const START: Pipe = {
        let mut words = [[0; 8]; 2];
        let mut i = 0;
        while i < 16 {
            words[i / 8][i % 8] = 0x8081_8283_8485_8687 + 0x0808_0808_0808_0808 * i as u64;
            i += 1;
        }
        Pipe { lower: words[0], upper: words[1], bytes: 0 }
    };

    /// The state keyed by a salt: it has taken in one block made of the salt's digest and the digest of that.
    pub fn keyed(salt: &[u8; 32]) -> Pipe {
        let mut block = [0; BLOCK_BYTES];
        let (first, second) = block.split_at_mut(64);
        first.copy_from_slice(&Pipe::START.digest(salt));
        second.copy_from_slice(&Pipe::START.digest(first));
        let mut pipe = Pipe::START;
        pipe.absorb(&block);
        pipe
    }

    /// The digest of all that was taken in, and `data`.
    pub fn digest(&self, data: &[u8]) -> [u8; 64] {
        let mut pipe = self.clone();
        let (blocks, tail) = data.as_chunks();
        blocks.iter().for_each(|block| pipe.absorb(block));
        pipe.finish(tail);
        let mut digest = [0; 64];
        for (bytes, word) in digest.as_chunks_mut::<8>().0.iter_mut().zip(pipe.upper) {
            *bytes = word.to_le_bytes();
        }
        digest
    }

    /// Padding: a one bit, zeros, the length in bits. It takes a second block if the tail leaves no room.
    fn finish(&mut self, tail: &[u8]) {
        let bits = (self.bytes + tail.len() as u64) * 8;
        let mut padded = [0; 2 * BLOCK_BYTES];
        padded[..tail.len()].copy_from_slice(tail);
        padded[tail.len()] = 0x80;
        let end = if tail.len() + 1 + 8 > BLOCK_BYTES { 2 * BLOCK_BYTES } else { BLOCK_BYTES };
        padded[end - 8..end].copy_from_slice(&bits.to_le_bytes());
        padded[..end].as_chunks().0.iter().for_each(|block| self.absorb(block));
    }

    fn absorb(&mut self, block: &[u8; BLOCK_BYTES]) {
        let (words, _) = block.as_chunks::<8>();
        let lower: Half = std::array::from_fn(|i| u64::from_le_bytes(words[i]));
        let upper: Half = std::array::from_fn(|i| u64::from_le_bytes(words[i + 8]));
        let (p, q) = self.rows(lower, upper);
        for i in 0..8 {
            self.lower[i] ^= upper[i] ^ p[i];
            self.upper[i] ^= lower[i] ^ q[i];
        }
        self.bytes += BLOCK_BYTES as u64;
    }

    #[inline(always)]
    fn rows(&self, lower: Half, upper: Half) -> (Half, Half) {
        let p = operate(reversed(upper), lower);
        let q = operate(p, upper);
        let p = operate(self.upper, p);
        let q = operate(p, q);
        let p = operate(p, self.lower);
        let q = operate(q, p);
        let p = operate(reversed(lower), p);
        (p, operate(p, q))
    }
}

fn reversed(mut half: Half) -> Half {
    half.reverse();
    half
}

/// The quasigroup operation: each side is spread by a Latin square (five words added) and rotations, then three words
/// of one side are xored and added to three of the other.
///
/// The sums of four that several rows of a square share are written once.
#[inline(always)]
fn operate(x: Half, y: Half) -> Half {
    const CONSTANT: u64 = 0xaaaa_aaaa_aaaa_aaaa;
    let (even, odd) = (sum(&x, [0, 1, 4, 7]), sum(&x, [2, 3, 5, 6]));
    let s = [
        turn(even, x[2].wrapping_add(CONSTANT), 0),
        turn(even, x[3], 5),
        turn(even, x[6], 15),
        turn(odd, x[7], 22),
        turn(odd, x[1], 31),
        turn(sum(&x, [0, 4, 2, 3]), x[5], 40),
        turn(sum(&x, [1, 7, 5, 6]), x[0], 50),
        turn(odd, x[4], 59),
    ];
    let (a, b, c, d) =
        (sum(&y, [0, 1, 2, 5]), sum(&y, [0, 1, 3, 4]), sum(&y, [3, 4, 6, 7]), sum(&y, [2, 5, 6, 7]));
    let t = [
        turn(a, y[7].wrapping_add(!CONSTANT), 0),
        turn(b, y[6], 10),
        turn(a, y[3], 19),
        turn(c, y[2], 29),
        turn(b, y[5], 36),
        turn(d, y[4], 44),
        turn(d, y[1], 48),
        turn(c, y[0], 55),
    ];
    [
        meet(&s, [0, 4, 1], &t, [0, 1, 5]),
        meet(&s, [0, 4, 7], &t, [6, 7, 2]),
        meet(&s, [1, 7, 6], &t, [0, 1, 3]),
        meet(&s, [2, 3, 4], &t, [3, 4, 0]),
        meet(&s, [1, 7, 0], &t, [2, 5, 1]),
        meet(&s, [5, 6, 3], &t, [3, 4, 6]),
        meet(&s, [5, 6, 2], &t, [2, 5, 7]),
        meet(&s, [2, 3, 5], &t, [6, 7, 4]),
    ]
}

#[inline(always)]
fn sum(of: &Half, [a, b, c, d]: [usize; 4]) -> u64 {
    of[a].wrapping_add(of[b]).wrapping_add(of[c].wrapping_add(of[d]))
}

#[inline(always)]
fn turn(four: u64, fifth: u64, by: u32) -> u64 {
    four.wrapping_add(fifth).rotate_left(by)
}

#[inline(always)]
fn meet(s: &Half, [a, b, c]: [usize; 3], t: &Half, [d, e, f]: [usize; 3]) -> u64 {
    (s[a] ^ s[b] ^ s[c]).wrapping_add(t[d] ^ t[e] ^ t[f])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    #[test]
    fn the_published_digests_come_out() {
        let long = b"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnop\
                     jklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu";
        for (message, digest) in [
            (
                &b"abc"[..],
                "1b14db155f1d406594b8cef70a4362ec6b5de6a5daf50ec999e987c19d3049e2\
                           de5977bb05b1bb220050a1ea5b46a9f1740acafbf6b45032adc90c628372c22b",
            ),
            (
                long,
                "5351070dc51c3b2baca5a60d0252ccb4e4921a96fe5a69e76dad48fd21a0845a\
                    d57f880b3e4a907bc503151842bb949e1cba7439a6409a34b8436cb46921583c",
            ),
        ] {
            assert_eq!(Pipe::START.digest(message).to_vec(), hex(digest));
        }
    }

    /// 119 bytes are the most that leave room for the padding in one block.
    #[test]
    fn every_byte_and_the_length_count_around_the_ends_of_blocks() {
        let digests: std::collections::BTreeSet<_> =
            (0..400).map(|n| Pipe::START.digest(&vec![0; n])).collect();
        assert_eq!(digests.len(), 400);
    }

    #[test]
    fn the_key_is_one_block_before_the_data() {
        let salt = [3; 32];
        let first = Pipe::START.digest(&salt);
        let mut message = first.to_vec();
        message.extend(Pipe::START.digest(&first));
        message.extend(b"data");
        assert_eq!(Pipe::keyed(&salt).digest(b"data"), Pipe::START.digest(&message));
    }
}
