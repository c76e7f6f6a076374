//! LZ4: a plain LZ4 block behind its length, for the reader of a padded sector could not tell where it ends.
//!
//! The C library is used because it stops as soon as `dst` is full and decodes half again as fast as the Rust
//! ones.
#![allow(unsafe_code)]

const HEADER: usize = 4;

pub fn compress(src: &[u8], dst: &mut [u8]) -> Option<usize> {
    let (header, body) = dst.split_first_chunk_mut::<HEADER>()?;
    let (src_len, capacity) = (i32::try_from(src.len()).ok()?, i32::try_from(body.len()).ok()?);
    // SAFETY: reads `src_len` bytes of `src`, writes at most `capacity` of `body`; both slices are as long.
    let length = unsafe {
        lz4_sys::LZ4_compress_default(src.as_ptr().cast(), body.as_mut_ptr().cast(), src_len, capacity)
    };
    let length = u32::try_from(length).ok().filter(|&length| length > 0)?;
    *header = length.to_be_bytes();
    Some(HEADER + length as usize)
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
