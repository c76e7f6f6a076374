//! For tests: bytes from a seed, and the plain definitions to compare with.

/// Repeatable noise (xorshift).
pub fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// The bytes that published vectors spell in hexadecimal.
pub fn hex(digits: &str) -> Vec<u8> {
    let digit = |b: u8| (b as char).to_digit(16).expect("hexadecimal") as u8;
    digits.as_bytes().as_chunks::<2>().0.iter().map(|[high, low]| digit(*high) << 4 | digit(*low)).collect()
}

/// Slow and obvious.
pub mod oracle {
    use crate::checksum::{Words, read_u64};
    use units::Endian;

    pub fn fletcher4(endian: Endian, data: &[u8]) -> Words {
        let [mut a, mut b, mut c, mut d] = [0u64; 4];
        for word in data.chunks_exact(4) {
            let mut word: [u8; 4] = word.try_into().unwrap();
            if endian == Endian::Big {
                word.reverse();
            }
            a = a.wrapping_add(u32::from_le_bytes(word).into());
            b = b.wrapping_add(a);
            c = c.wrapping_add(b);
            d = d.wrapping_add(c);
        }
        [a, b, c, d]
    }

    pub fn fletcher2(endian: Endian, data: &[u8]) -> Words {
        let words: Vec<u64> =
            data.chunks_exact(8).map(|word| read_u64(endian, word.try_into().unwrap())).collect();
        let stream = |first: usize| {
            words.iter().skip(first).step_by(2).fold((0u64, 0u64), |(a, b), word| {
                let a = a.wrapping_add(*word);
                (a, b.wrapping_add(a))
            })
        };
        let ((a0, b0), (a1, b1)) = (stream(0), stream(1));
        [a0, a1, b0, b1]
    }
}
