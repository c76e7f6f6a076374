use super::*;
use crate::testing::bytes as random;

const ENDIANS: [Endian; 2] = [Endian::Little, Endian::Big];
const KINDS: [Checksum; 4] = [Checksum::Label, Checksum::GangHeader, Checksum::Zilog, Checksum::Zilog2];
const VERIFIER: Words = [0x1111, 0x2222, 0x3333, 1];

/// A block of 8 KiB of which, if it is a log block, the first 5,000 bytes are in use.
fn sealed(kind: Checksum, endian: Endian, mac: Option<[u64; 2]>) -> Vec<u8> {
    let mut block = random(1, 8192);
    block[LOG_USED_AT..LOG_USED_AT + 8].copy_from_slice(&write_u64(endian, 5000));
    seal(kind, endian, &mut block, VERIFIER, mac);
    block
}

#[test]
fn a_sealed_block_verifies_and_tells_the_order_of_its_writer() {
    for kind in KINDS {
        for endian in ENDIANS {
            assert_eq!(verify(kind, &sealed(kind, endian, None), VERIFIER, false), Some(endian), "{kind:?}");
        }
    }
}

#[test]
fn a_flipped_bit_is_found_wherever_the_seal_reaches() {
    for kind in KINDS {
        for endian in ENDIANS {
            let mut block = sealed(kind, endian, None);
            for i in
                (0..block.len()).step_by(61).chain([136, 140, 144, 151, 152, 183, 8152, 8159, 8160, 8191])
            {
                block[i] ^= 4;
                assert_eq!(verify(kind, &block, VERIFIER, false), None, "{kind:?}, byte {i}");
                block[i] ^= 4;
            }
        }
    }
}

#[test]
fn a_block_written_to_the_wrong_place_does_not_verify() {
    for kind in KINDS {
        let mut elsewhere = VERIFIER;
        elsewhere[3] += 1;
        assert_eq!(verify(kind, &sealed(kind, Endian::Little, None), elsewhere, false), None, "{kind:?}");
    }
}

#[test]
fn a_log_block_is_covered_to_the_end_of_the_page_in_use() {
    let mut block = random(2, 16384);
    block[LOG_USED_AT..LOG_USED_AT + 8].copy_from_slice(&write_u64(Endian::Little, 4097));
    seal(Checksum::Zilog2, Endian::Little, &mut block, VERIFIER, None);
    block[8192] ^= 1;
    assert!(verify(Checksum::Zilog2, &block, VERIFIER, false).is_some(), "free space is not covered");
    block[8191] ^= 1;
    assert!(verify(Checksum::Zilog2, &block, VERIFIER, false).is_none(), "the page in use is");
}

#[test]
fn a_log_block_that_lies_about_its_use_does_not_verify() {
    for used in [0, 8193, 1 << 40, u64::MAX] {
        let mut block = sealed(Checksum::Zilog2, Endian::Little, None);
        block[LOG_USED_AT..LOG_USED_AT + 8].copy_from_slice(&write_u64(Endian::Little, used));
        assert_eq!(verify(Checksum::Zilog2, &block, VERIFIER, false), None, "{used} bytes used");
    }
}

#[test]
fn an_encrypted_log_block_keeps_its_mac_and_verifies_without_the_key() {
    for kind in [Checksum::Zilog, Checksum::Zilog2] {
        let block = sealed(kind, Endian::Big, Some([7, 8]));
        assert_eq!(verify(kind, &block, VERIFIER, true), Some(Endian::Big));
        assert_eq!(verify(kind, &block, VERIFIER, false), None, "the MAC is no checksum");
    }
}

#[test]
fn blocks_too_small_for_a_trailer_do_not_verify() {
    for kind in KINDS {
        for length in [0, 39, 40, 143, 183, 184] {
            assert_eq!(verify(kind, &vec![0; length], VERIFIER, false), None, "{kind:?}, {length} bytes");
        }
    }
}

/// The seal of a label as its definition reads: the verifier in place, SHA-256 over the whole.
#[test]
fn a_label_is_sealed_by_the_digest_of_itself_with_the_verifier_in_place() {
    let mut block = vec![0; 1024];
    seal(Checksum::Label, Endian::Little, &mut block, label_verifier(131_072), None);
    let mut view = block.clone();
    view[984..992].copy_from_slice(&0x0210_da7a_b10c_7a11u64.to_le_bytes());
    view[992..1024].fill(0);
    view[992..1000].copy_from_slice(&131_072u64.to_le_bytes());
    let digest: [u8; 32] = sha2::Sha256::digest(&view).into();
    for i in 0..4 {
        let word = u64::from_be_bytes(digest[8 * i..8 * i + 8].try_into().unwrap());
        assert_eq!(block[992 + 8 * i..1000 + 8 * i], word.to_le_bytes());
    }
}
