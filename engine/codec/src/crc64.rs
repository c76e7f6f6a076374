//! CRC-64 as ZAP objects hash names with it: the ECMA-182 polynomial, reflected, without the usual inversion of
//! start and end values. A ZAP starts from its own salt instead.

/// x^64 + x^62 + x^57 + ... + x^4 + x + 1, lowest power in the highest bit.
const POLYNOMIAL: u64 = 0xc96c_5795_d787_0f42;

/// The effect of each value of the lowest byte after it has been shifted out.
pub const TABLE: [u64; 256] = table();

const fn table() -> [u64; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (POLYNOMIAL * (crc & 1));
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// Carries `crc` over `bytes`.
pub fn update(crc: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(crc, |crc, &byte| (crc >> 8) ^ TABLE[(crc as u8 ^ byte) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CRC-64/XZ is the same polynomial with start and end inverted; its check value is published.
    #[test]
    fn the_published_check_value_comes_out() {
        assert_eq!(!update(!0, b"123456789"), 0x995d_c9bb_df19_39fa);
    }

    #[test]
    fn a_name_may_be_hashed_in_pieces() {
        assert_eq!(update(update(42, b"vol"), b"size"), update(42, b"volsize"));
    }
}
