use super::*;
use crate::testing::{bytes, hex, oracle};

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
fn sha512_is_cut_to_256_bits_as_published_in_the_order_of_the_writer() {
    // FIPS 180-4, SHA-512/256 of "abc".
    let digest = hex("53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23");
    check_digest(&Checksummer::unsalted(), Checksum::Sha512, b"abc", &digest);
}

#[test]
fn blake3_is_keyed_by_the_salt_as_published() {
    // From the vectors of its authors.
    let summer = Checksummer::new(&Salt(*b"whats the Elvish word for friend"));
    let digest = hex("92b2b75604ed3c761f9d6f62392c8a9227ad0ea3f09573e783f1498a4ed60d26");
    check_digest(&summer, Checksum::Blake3, b"", &digest);
}

#[test]
fn skein_and_edonr_are_keyed_by_the_salt_and_cut_to_256_bits() {
    let summer = Checksummer::new(&Salt([5; 32]));
    let data = bytes(4, 1024);
    let skein = skein::Keyed::new(&[5; 32], 256).digest(&data);
    check_digest(&summer, Checksum::Skein, &data, &skein[..32]);
    let edonr = edonr::Pipe::keyed(&[5; 32]).digest(&data);
    check_digest(&summer, Checksum::EdonR, &data, &edonr[..32]);
}

#[test]
fn only_the_keyed_functions_depend_on_the_salt() {
    let (one, other) = (Checksummer::unsalted(), Checksummer::new(&Salt([1; 32])));
    for kind in (0..=255).filter_map(Checksum::from_code) {
        let keyed = matches!(kind, Checksum::Skein | Checksum::EdonR | Checksum::Blake3);
        let words = [&one, &other].map(|summer| summer.compute(kind, Endian::Little, &[7; 512]));
        assert_eq!(words[0] != words[1], keyed, "{kind:?}");
    }
}

/// The words are the digest, cut in the byte order of the host that wrote the block.
fn check_digest(summer: &Checksummer, kind: Checksum, data: &[u8], digest: &[u8]) {
    for endian in ENDIANS {
        let words = summer.compute(kind, endian, data);
        let bytes: Vec<u8> = words.into_iter().flat_map(|word| write_u64(endian, word)).collect();
        assert_eq!(bytes, digest, "{kind:?} {endian:?}");
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
