use super::*;
use crate::testing::{bytes, oracle};

const ENDIANS: [Endian; 2] = [Endian::Little, Endian::Big];

#[test]
fn sha256_words_are_the_published_digest_in_big_endian_whoever_wrote_the_block() {
    // FIPS 180-2, "abc".
    let expected =
        [0xba78_16bf_8f01_cfea, 0x4141_40de_5dae_2223, 0xb003_61a3_9617_7a9c, 0xb410_ff61_f200_15ad];
    for endian in ENDIANS {
        assert_eq!(Checksummer::unsalted().compute(Checksum::Sha256, endian, b"abc"), expected);
    }
}

#[test]
fn fletcher2_sums_two_streams_of_words_in_the_order_of_the_writer() {
    let data = bytes(3, 4096);
    for endian in ENDIANS {
        let words = Checksummer::unsalted().compute(Checksum::Fletcher2, endian, &data);
        assert_eq!(words, oracle::fletcher2(endian, &data));
    }
}

#[test]
fn blocks_without_a_checksum_have_four_zeros() {
    for kind in [Checksum::Off, Checksum::NoParity] {
        assert_eq!(Checksummer::unsalted().compute(kind, Endian::NATIVE, &[1; 512]), [0; 4]);
    }
}

#[test]
fn the_salt_stays_out_of_logs() {
    assert!(!format!("{:?}", Checksummer::new(&Salt([0xab; 32]))).contains("171"));
}
