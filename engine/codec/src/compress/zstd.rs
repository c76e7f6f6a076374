//! Zstandard: a frame without its magic number, behind a header of eight bytes.
//!
//! ```text
//!   0         4       5               8
//!   | length  | level | version       |  frame: no magic, no content size, no checksum
//!     of the    code    of the library
//!     frame             that wrote it
//! ```
//!
//! All big-endian. The code of the level is OpenZFS's own: 1 to 19 for the normal levels, from 103 on for the fast
//! ones, which exist for certain numbers only. Big-endian machines once wrote `version, level` instead.

use super::lz4;
use std::cell::RefCell;
use units::ZstdLevel;
use zstd_safe::{CCtx, CParameter, DCtx, DParameter, FrameFormat};

const HEADER: usize = 8;
const DEFAULT: ZstdLevel = ZstdLevel::Normal(3);
const FAST_CODE: u8 = 103;
const FAST: [u16; 21] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 500, 1000];

/// From this level and size on, a cheap attempt decides whether the expensive one is made.
const ATTEMPT_FROM_LEVEL: u8 = 3;
const ATTEMPT_FROM_BYTES: usize = 128 << 10;

thread_local! {
    // Contexts are large, and most of what making one costs is first touching its memory.
    static ENCODER: RefCell<Option<CCtx<'static>>> = const { RefCell::new(None) };
    static DECODER: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
}

/// The code of a level in blocks and properties; `None` if there is no such level.
pub fn level_code(level: ZstdLevel) -> Option<u8> {
    match level {
        ZstdLevel::Normal(n) => (1..=19).contains(&n).then_some(n),
        ZstdLevel::Fast(n) => FAST.iter().position(|&fast| fast == n).map(|i| FAST_CODE + i as u8),
    }
}

pub fn level_from_code(code: u8) -> Option<ZstdLevel> {
    match code {
        1..=19 => Some(ZstdLevel::Normal(code)),
        _ => FAST.get(usize::from(code.checked_sub(FAST_CODE)?)).copied().map(ZstdLevel::Fast),
    }
}

/// The level with which a block was compressed.
pub fn level_of(block: &[u8]) -> Option<ZstdLevel> {
    let (_, rest) = block.split_first_chunk::<4>()?;
    let [first, .., last] = *rest.first_chunk::<4>()?;
    // The version has a zero as its highest byte, and only there: it is next to the level in either order.
    match rest[..4].iter().rev().position(|&b| b == 0)? {
        0 | 2 => level_from_code(first),
        _ => level_from_code(last),
    }
}

pub fn compress(level: Option<ZstdLevel>, src: &[u8], dst: &mut [u8]) -> Option<usize> {
    let level = level.unwrap_or(DEFAULT);
    if is_costly(level, src) && !is_promising(src, dst) {
        return None;
    }
    encode(level, src, dst)
}

fn is_costly(level: ZstdLevel, src: &[u8]) -> bool {
    src.len() >= ATTEMPT_FROM_BYTES && matches!(level, ZstdLevel::Normal(ATTEMPT_FROM_LEVEL..))
}

/// What neither lz4 nor the first level can make small enough, no level will, or hardly ever.
fn is_promising(src: &[u8], dst: &mut [u8]) -> bool {
    lz4::compress(src, dst).is_some() || encode(ZstdLevel::Normal(1), src, dst).is_some()
}

fn encode(level: ZstdLevel, src: &[u8], dst: &mut [u8]) -> Option<usize> {
    let code = level_code(level)?;
    let (header, frame) = dst.split_first_chunk_mut::<HEADER>()?;
    let length = ENCODER.with_borrow_mut(|cached| {
        if cached.is_none() {
            *cached = Some(encoder()?);
        }
        let encoder = cached.as_mut()?;
        encoder.set_parameter(CParameter::CompressionLevel(library_level(level))).ok()?;
        encoder.compress2(frame, src).ok()
    })?;
    let level_and_version = u32::from(code) << 24 | zstd_safe::version_number();
    header[..4].copy_from_slice(&u32::try_from(length).ok()?.to_be_bytes());
    header[4..].copy_from_slice(&level_and_version.to_be_bytes());
    Some(HEADER + length)
}

fn encoder() -> Option<CCtx<'static>> {
    let mut encoder = CCtx::try_create()?;
    encoder.set_parameter(CParameter::Format(FrameFormat::Magicless)).ok()?;
    encoder.set_parameter(CParameter::ChecksumFlag(false)).ok()?;
    encoder.set_parameter(CParameter::ContentSizeFlag(false)).ok()?;
    Some(encoder)
}

fn library_level(level: ZstdLevel) -> i32 {
    match level {
        ZstdLevel::Normal(n) => n.into(),
        ZstdLevel::Fast(n) => -i32::from(n),
    }
}

pub fn decompress(src: &[u8], dst: &mut [u8]) -> Option<()> {
    // A level that does not exist shows that this is no block of ours, whatever follows.
    level_of(src)?;
    let (header, frame) = src.split_first_chunk::<HEADER>()?;
    let length = u32::from_be_bytes(*header.first_chunk()?);
    let frame = frame.get(..length as usize)?;
    DECODER.with_borrow_mut(|cached| {
        if cached.is_none() {
            *cached = Some(decoder()?);
        }
        let length = cached.as_mut()?.decompress(dst, frame).ok()?;
        (length == dst.len()).then_some(())
    })
}

fn decoder() -> Option<DCtx<'static>> {
    let mut decoder = DCtx::try_create()?;
    decoder.set_parameter(DParameter::Format(FrameFormat::Magicless)).ok()?;
    Some(decoder)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The codes are `enum zio_zstd_levels`.
    #[test]
    fn levels_have_their_codes_on_disk() {
        for (level, code) in [
            (ZstdLevel::Normal(1), Some(1)),
            (ZstdLevel::Normal(19), Some(19)),
            (ZstdLevel::Normal(0), None),
            (ZstdLevel::Normal(20), None),
            (ZstdLevel::Fast(1), Some(103)),
            (ZstdLevel::Fast(10), Some(112)),
            (ZstdLevel::Fast(20), Some(113)),
            (ZstdLevel::Fast(100), Some(121)),
            (ZstdLevel::Fast(500), Some(122)),
            (ZstdLevel::Fast(1000), Some(123)),
            (ZstdLevel::Fast(15), None),
        ] {
            assert_eq!(level_code(level), code, "{level:?}");
        }
        let known: Vec<u8> = (0..=255).filter(|&code| level_from_code(code).is_some()).collect();
        assert_eq!(known, (1..=19).chain(103..=123).collect::<Vec<_>>());
        for code in known {
            assert_eq!(level_from_code(code).and_then(level_code), Some(code));
        }
    }

    #[test]
    fn the_level_is_found_in_either_order_of_the_header() {
        let of = |meta: [u8; 4]| level_of(&[[0, 0, 0, 9], meta].concat());
        assert_eq!(of([3, 0, 0x28, 0xa5]), Some(ZstdLevel::Normal(3)));
        assert_eq!(of([0, 0x28, 0xa5, 103]), Some(ZstdLevel::Fast(1)));
        assert_eq!(of([3, 0, 0x29, 0]), Some(ZstdLevel::Normal(3)), "a version that ends in a zero byte");
        assert_eq!(of([3, 1, 0x28, 0xa5]), None, "no version has more than two bytes");
        assert_eq!(of([77, 0, 0x28, 0xa5]), None, "no such level");
        assert_eq!(level_of(&[0; 7]), None);
    }

    #[test]
    fn the_frame_has_no_magic_no_size_and_no_checksum() {
        let mut dst = [0xee; 200];
        let length = compress(None, &[7; 100], &mut dst).unwrap();
        assert_eq!(dst[..4], ((length - HEADER) as u32).to_be_bytes());
        assert_eq!(dst[4], 3);
        // Frame header descriptor: no size field, no single segment, no checksum, no dictionary.
        assert_eq!(dst[HEADER], 0);
    }

    #[test]
    fn every_level_can_be_read_back_and_tells_itself() {
        let block: Vec<u8> = include_bytes!("zstd.rs").iter().copied().cycle().take(140_000).collect();
        let mut dst = vec![0; block.len()];
        let mut back = vec![0; block.len()];
        for level in (0..=255).filter_map(level_from_code) {
            let length = compress(Some(level), &block, &mut dst).expect("text shrinks");
            assert_eq!(level_of(&dst), Some(level));
            decompress(&dst[..length], &mut back).unwrap();
            assert!(back == block, "{level:?}");
        }
    }

    #[test]
    fn a_level_that_does_not_exist_leaves_the_block_as_it_is() {
        assert_eq!(compress(Some(ZstdLevel::Fast(11)), &[0; 4096], &mut [0; 4096]), None);
    }

    #[test]
    fn noise_is_given_up_whether_or_not_it_is_tried_cheaply_first() {
        for length in [4096, ATTEMPT_FROM_BYTES] {
            let noise = crate::testing::bytes(3, length);
            let mut dst = vec![0; length - length / 8];
            assert_eq!(compress(Some(ZstdLevel::Normal(9)), &noise, &mut dst), None);
        }
    }
}
