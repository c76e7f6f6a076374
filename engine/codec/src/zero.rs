//! The questions asked of every block before it is compressed: is it a hole, and how much of it is zeros at its end?

/// Bytes looked at before asking whether to go on. Real data nearly always answers within the first of them;
/// within one, the compiler turns the fold into vector instructions.
const STRIDE: usize = 128;

/// Whether every byte is zero. An empty slice is.
pub fn is_zero(data: &[u8]) -> bool {
    let (strides, rest) = data.as_chunks::<STRIDE>();
    strides.iter().all(stride_is_zero) && rest.iter().all(|&b| b == 0)
}

/// The bytes before the zeros at the end, and up to 127 of these. A slice of zeros has none.
pub fn filled(data: &[u8]) -> usize {
    let (strides, rest) = data.as_chunks::<STRIDE>();
    if rest.iter().any(|&b| b != 0) {
        return data.len();
    }
    strides.iter().rposition(|stride| !stride_is_zero(stride)).map_or(0, |last| (last + 1) * STRIDE)
}

fn stride_is_zero(stride: &[u8; STRIDE]) -> bool {
    let (words, _) = stride.as_chunks::<8>();
    words.iter().fold(0, |all, word| all | u64::from_ne_bytes(*word)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bit_anywhere_makes_a_block_not_zero() {
        for length in [0, 1, 7, 8, 127, 128, 129, 512, 1000] {
            let mut data = vec![0; length];
            assert!(is_zero(&data), "{length}");
            for i in 0..length {
                data[i] = 1 << (i % 8);
                assert!(!is_zero(&data), "bit in byte {i} of {length}");
                data[i] = 0;
            }
        }
    }

    #[test]
    fn zeros_are_counted_from_the_end() {
        for length in [0, 1, 127, 128, 129, 1000] {
            let mut data = vec![0; length];
            assert_eq!(filled(&data), 0, "{length}");
            for i in 0..length {
                data[i] = 1;
                let filled = filled(&data);
                assert!((i + 1..=length.min(i + STRIDE)).contains(&filled), "{filled}: byte {i} of {length}");
                data[i] = 0;
            }
        }
    }
}
