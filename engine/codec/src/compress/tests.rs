use super::*;
use crate::testing::bytes;
use units::ZstdLevel;

const KINDS: [Compression; 8] = [
    Compression::Lzjb,
    Compression::Zle,
    Compression::Lz4,
    Compression::Gzip(1),
    Compression::Gzip(6),
    Compression::Zstd(None),
    Compression::Zstd(Some(ZstdLevel::Normal(7))),
    Compression::Zstd(Some(ZstdLevel::Fast(5))),
];

/// Blocks of different nature: text, noise, zeros, sparse, short period, a ramp, and lengths that are no sectors.
fn samples() -> Vec<Vec<u8>> {
    let text: Vec<u8> = include_bytes!("../compress.rs").iter().copied().cycle().take(20_000).collect();
    let mut sparse = vec![0; 8192];
    for (i, byte) in bytes(5, 300).into_iter().enumerate() {
        sparse[i * 27 % 8192] = byte;
    }
    let mut samples = vec![
        text,
        bytes(1, 4096),
        vec![0; 131_072],
        vec![255; 5000],
        sparse,
        (0..9999).map(|i| [1, 2, 3][i % 3]).collect(),
        (0..4096).map(|i| (i / 16) as u8).collect(),
    ];
    samples.extend((1..140).map(|length| bytes(length, length as usize).iter().map(|b| b & 3).collect()));
    samples
}

/// Encodes with as much room as any encoder could want, and pads as a sector would.
fn encode(kind: Compression, block: &[u8]) -> Vec<u8> {
    let mut encoded = vec![0; block.len() * 2 + 100];
    let length = compress(kind, block, &mut encoded).expect("there is room");
    encoded.truncate(length);
    encoded.resize(length.next_multiple_of(512), 0);
    encoded
}

#[test]
fn every_block_survives_the_round_trip_through_padded_sectors() {
    for kind in KINDS {
        for block in samples() {
            let mut decoded = vec![0xee; block.len()];
            decompress(kind, &encode(kind, &block), &mut decoded).unwrap();
            assert!(decoded == block, "{kind:?}, {} bytes", block.len());
        }
    }
}

#[test]
fn what_does_not_fit_is_given_up_and_what_just_fits_is_not() {
    for kind in KINDS {
        for block in samples().iter().take(7) {
            let mut room = vec![0; block.len() * 2 + 100];
            let length = compress(kind, block, &mut room).unwrap();
            // The libraries want to write a few bytes further than the end.
            let slack = if matches!(kind, Compression::Gzip(_) | Compression::Zstd(_)) { 64 } else { 0 };
            assert!(compress(kind, block, &mut room[..length + slack]).is_some(), "{kind:?}");
            for short in [0, 1, 3, 4, 5, length / 2, length - 1] {
                if short < length {
                    assert_eq!(
                        compress(kind, block, &mut room[..short]),
                        None,
                        "{kind:?}, {short} of {length}"
                    );
                }
            }
        }
    }
}

/// Lz4 sees little of the zeros at a block's end. What comes of it fits where it fits, and is about as long as what the
/// library makes of all, which looks for matches in another way in blocks beyond 64K.
#[test]
fn zeros_at_the_end_are_as_good_as_seen_by_lz4() {
    for seed in 0..400 {
        let random = bytes(seed, 16);
        let number = |i: usize| usize::from(u16::from_ne_bytes([random[i], random[i + 1]]));
        let filled = number(0) % [2, 40, 600, 9000][number(2) % 4];
        let zeros = number(4) % [20, 300, 3000, 65_536][number(6) % 4] + number(8) % 2 * 65_536;
        // Noise, few values, and what lz4 makes long runs of.
        let mask = [0xff, 3, 1, 0][number(10) % 4];
        let mut block: Vec<u8> = bytes(seed + 1000, filled).iter().map(|b| b & mask).collect();
        block.resize(filled + zeros, 0);
        let mut room = vec![0xee; block.len() * 2 + 100];
        let length = compress(Compression::Lz4, &block, &mut room).unwrap();
        let mut decoded = vec![0xee; block.len()];
        decompress(Compression::Lz4, &room[..length], &mut decoded).unwrap();
        assert!(decoded == block, "seed {seed}: {filled} bytes, {zeros} zeros");
        // One byte after the zeros, and the library sees them all.
        let mut whole = block.clone();
        whole.push(1);
        let seen = compress(Compression::Lz4, &whole, &mut room).unwrap();
        assert!(length <= seen * 5 / 4 + 32, "seed {seed}: {length} bytes, {seen} by the library");
        let mut exact = vec![0; length];
        assert_eq!(compress(Compression::Lz4, &block, &mut exact), Some(length), "seed {seed}");
        if length > 4 {
            assert_eq!(compress(Compression::Lz4, &block, &mut exact[..length - 1]), None, "seed {seed}");
        }
    }
}

/// Any bytes at all may stand where a compressed block should. The decoder may be content with them or not; it
/// stays within its slices, which the address of a panic would show.
#[test]
fn hostile_input_ends_in_an_error_or_a_block_but_never_in_a_panic() {
    for kind in KINDS {
        for (seed, block) in samples().into_iter().enumerate().take(40) {
            let encoded = encode(kind, &block);
            let noise = bytes(seed as u64, 600);
            let mut dst = vec![0; block.len()];
            for round in 0..200 {
                let mut mutant = encoded.clone();
                for hit in noise[round..].chunks(3).take(1 + round % 5) {
                    let at = (usize::from(hit[0]) << 8 | usize::from(hit[1]))
                        % mutant.len().min(1 << (3 + round % 14));
                    mutant[at] ^= hit[2] | 1;
                }
                mutant.truncate(mutant.len() - round * mutant.len() / 400);
                let _ = decompress(kind, &mutant, &mut dst);
            }
            let _ = decompress(kind, &noise, &mut dst);
            assert!(decompress(kind, &[], &mut dst).is_err());
        }
    }
}

#[test]
fn a_block_longer_or_shorter_than_its_frame_says_is_an_error() {
    let block = &samples()[0];
    let encoded = encode(Compression::Lz4, block);
    assert!(decompress(Compression::Lz4, &encoded, &mut vec![0; block.len() - 1]).is_err());
    assert!(decompress(Compression::Lz4, &encoded, &mut vec![0; block.len() + 1]).is_err());
}

#[test]
fn zle_encodes_runs_as_documented() {
    let mut dst = [0; 16];
    let n = compress(Compression::Zle, &[0, 0, 0, 7, 0, 8, 0, 0], &mut dst).unwrap();
    assert_eq!(dst[..n], [64 + 2, 2, 7, 0, 8, 64 + 1]);
}

#[test]
fn lzjb_encodes_flags_literals_and_references_as_documented() {
    let block: Vec<u8> = b"abcabcabc".iter().copied().chain(bytes(1, 100)).collect();
    let mut dst = [0; 256];
    compress(Compression::Lzjb, &block, &mut dst).unwrap();
    // Three literals, then six bytes from three back: 6 - 3 in the upper six bits, 3 in the lower ten.
    assert_eq!(dst[..6], [0b1000 | dst[0] & 0xf0, b'a', b'b', b'c', 3 << 2, 3]);
}

#[test]
fn a_reference_before_the_start_or_to_itself_is_refused() {
    let mut dst = [0; 16];
    assert!(decompress(Compression::Lzjb, &[0b10, 1, 0, 2, 0, 0, 0, 0], &mut dst).is_err());
    assert!(decompress(Compression::Lzjb, &[0b10, 1, 0, 0, 0, 0, 0, 0], &mut dst).is_err());
    assert!(decompress(Compression::Lzjb, &[0b10, 1, 0x34, 1], &mut dst).is_ok());
    assert_eq!(dst, [1; 16]);
}

#[test]
fn no_compression_copies_and_an_empty_block_is_zeros() {
    let mut dst = [9; 4];
    decompress(Compression::Off, &[1, 2, 3, 4, 5], &mut dst).unwrap();
    assert_eq!(dst, [1, 2, 3, 4]);
    assert!(decompress(Compression::Off, &[1], &mut dst).is_err());
    decompress(Compression::Empty, &[], &mut dst).unwrap();
    assert_eq!(dst, [0; 4]);
    assert_eq!(compress(Compression::Empty, &[0; 9], &mut dst), Some(0));
    assert_eq!(compress(Compression::Empty, &[1; 9], &mut dst), None);
    assert_eq!(compress(Compression::Off, &[0; 9], &mut dst), None);
}

/// "hello" as zlib itself writes it, followed by what a sector would add.
#[test]
fn gzip_reads_a_zlib_stream_and_ignores_what_follows() {
    let mut stream =
        vec![0x78, 0x9c, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x06, 0x2c, 0x02, 0x15, 0, 0, 0];
    let mut dst = [0; 5];
    decompress(Compression::Gzip(6), &stream, &mut dst).unwrap();
    assert_eq!(&dst, b"hello");
    stream[12] ^= 1;
    assert!(decompress(Compression::Gzip(6), &stream, &mut dst).is_err(), "the Adler-32 is wrong");
}
