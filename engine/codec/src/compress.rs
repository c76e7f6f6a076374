//! Compression of blocks, each with the framing OpenZFS puts around it.
//!
//! ```text
//!   lz4    | length, 32 bits, big-endian | block |
//!   zstd   | length, likewise | level and version | frame without magic |
//!   gzip   | zlib stream |
//!   lzjb   | groups: a byte of 8 flags, then 8 literals or back references |
//!   zle    | runs of literals and of zeros |
//! ```
//!
//! A block on disk is padded with zeros to whole sectors, and only lz4 and zstd say how long they are. The others
//! are read until the block is full; what follows is padding.
//!
//! Two directions, two attitudes. Encoding is ours: the caller passes a `dst` as large as compression is worth
//! having, and gives up on [`None`]. Decoding is hostile: `src` may be any bytes, and the answer is the block or
//! [`Kind::Corrupt`](units::Kind::Corrupt); `dst` then holds rubbish.

mod gzip;
mod lz4;
mod lzjb;
mod zle;
pub mod zstd;

use units::{Compression, Error, Result};

/// Encodes `src` into the start of `dst`: the bytes used, or `None` if they do not fit. Gzip and zstd also give up
/// when they fit with only a few bytes to spare.
pub fn compress(kind: Compression, src: &[u8], dst: &mut [u8]) -> Option<usize> {
    match kind {
        Compression::Off => None,
        Compression::Empty => crate::is_zero(src).then_some(0),
        Compression::Lzjb => lzjb::compress(src, dst),
        Compression::Zle => zle::compress(src, dst),
        Compression::Lz4 => lz4::compress(src, dst),
        Compression::Gzip(level) => gzip::compress(level, src, dst),
        Compression::Zstd(level) => zstd::compress(level, src, dst),
    }
}

/// Decodes `src`, which may be padded, into all of `dst`.
pub fn decompress(kind: Compression, src: &[u8], dst: &mut [u8]) -> Result<()> {
    let decoded = match kind {
        Compression::Off => copy(src, dst),
        Compression::Empty => {
            dst.fill(0);
            Some(())
        }
        Compression::Lzjb => lzjb::decompress(src, dst),
        Compression::Zle => zle::decompress(src, dst),
        Compression::Lz4 => lz4::decompress(src, dst),
        Compression::Gzip(_) => gzip::decompress(src, dst),
        Compression::Zstd(_) => zstd::decompress(src, dst),
    };
    decoded
        .ok_or_else(|| Error::corrupt(format!("decompress {} bytes of {kind:?} to {}", src.len(), dst.len())))
}

fn copy(src: &[u8], dst: &mut [u8]) -> Option<()> {
    dst.copy_from_slice(src.get(..dst.len())?);
    Some(())
}

#[cfg(test)]
mod tests;
