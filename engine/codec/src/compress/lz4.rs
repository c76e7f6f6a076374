//! LZ4: a plain LZ4 block behind its length, for the reader of a padded sector could not tell where it ends.
//!
//! The C library is used because it stops as soon as `dst` is full and decodes half again as fast as the Rust
//! ones.
#![allow(unsafe_code)]

const HEADER: usize = 4;
/// The end of a block that is zeros is not shown to the library, but for so many of its bytes.
const TAIL: usize = 64;
/// Fewer zeros than these beyond it are no gain, nor are they behind more than so many bytes.
const GAIN: usize = 1 << 10;
const SHOWN_MAX: usize = 16 << 10;

/// The format's: a length in a token goes on in further bytes from here on, the last bytes are literals, and a match has
/// no fewer bytes than these.
const LONG: usize = 15;
const LAST_LITERALS: usize = 5;
const MATCH_MIN: usize = 4;

pub fn compress(src: &[u8], dst: &mut [u8]) -> Option<usize> {
    let (header, body) = dst.split_first_chunk_mut::<HEADER>()?;
    // An indirect block of 128K often has a few pointers, and the library would go over its zeros word by word.
    let shown = crate::filled(src) + TAIL;
    let length = match src.len().checked_sub(shown) {
        Some(more) if more >= GAIN && shown <= SHOWN_MAX => {
            let length = block(&src[..shown], body)?;
            lengthen(body, length, more)?
        }
        _ => block(src, body)?,
    };
    *header = u32::try_from(length).ok()?.to_be_bytes();
    Some(HEADER + length)
}

fn block(src: &[u8], body: &mut [u8]) -> Option<usize> {
    let (src_len, capacity) = (i32::try_from(src.len()).ok()?, i32::try_from(body.len()).ok()?);
    // SAFETY: reads `src_len` bytes of `src`, writes at most `capacity` of `body`; both slices are as long.
    let length = unsafe {
        lz4_sys::LZ4_compress_default(src.as_ptr().cast(), body.as_mut_ptr().cast(), src_len, capacity)
    };
    usize::try_from(length).ok().filter(|&length| length > 0)
}

/// Appends `more` zeros, at least [`GAIN`], to what the block in the first `length` bytes of `body` holds, which ends with
/// a zero; answers the new length, or `None` where there is no room. The last sequence, which has literals only, goes on
/// with a match of what lies one byte before, and the last literals follow.
fn lengthen(body: &mut [u8], length: usize, more: usize) -> Option<usize> {
    let last = last_sequence(&body[..length])?;
    let beyond = more - LAST_LITERALS - MATCH_MIN;
    body[last] |= beyond.min(LONG) as u8;
    let mut out = body.get_mut(length..)?.iter_mut();
    let mut put = |byte: u8| out.next().map(|place| *place = byte);
    // The offset, little-endian.
    put(1)?;
    put(0)?;
    if let Some(rest) = beyond.checked_sub(LONG) {
        for _ in 0..rest / 255 {
            put(255)?;
        }
        put((rest % 255) as u8)?;
    }
    put((LAST_LITERALS << 4) as u8)?;
    for _ in 0..LAST_LITERALS {
        put(0)?;
    }
    let left = out.len();
    Some(body.len() - left)
}

/// Where the token of a block's last sequence is.
fn last_sequence(block: &[u8]) -> Option<usize> {
    // Passes over the further bytes of a length, and answers the length.
    let long = |start: usize, next: &mut usize| {
        if start < LONG {
            return Some(start);
        }
        let further = block.get(*next..)?;
        let last = further.iter().position(|&byte| byte < 255)?;
        *next += last + 1;
        Some(LONG + 255 * last + usize::from(further[last]))
    };
    let mut token = 0;
    loop {
        let (byte, mut next) = (usize::from(*block.get(token)?), token + 1);
        let literals = long(byte >> 4, &mut next)?;
        next += literals;
        if next >= block.len() {
            return Some(token);
        }
        next += 2;
        long(byte & LONG, &mut next)?;
        token = next;
    }
}

pub fn decompress(src: &[u8], dst: &mut [u8]) -> Option<()> {
    let (header, body) = src.split_first_chunk::<HEADER>()?;
    let body = body.get(..u32::from_be_bytes(*header) as usize)?;
    let (body_len, capacity) = (i32::try_from(body.len()).ok()?, i32::try_from(dst.len()).ok()?);
    // SAFETY: reads at most `body_len` bytes of `body` and writes at most `capacity` of `dst`, whatever the bytes
    // say: this is the library's decoder for untrusted input.
    let length = unsafe {
        lz4_sys::LZ4_decompress_safe(body.as_ptr().cast(), dst.as_mut_ptr().cast(), body_len, capacity)
    };
    (length == capacity).then_some(())
}
