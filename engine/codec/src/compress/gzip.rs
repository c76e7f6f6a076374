//! Gzip: in truth a zlib stream (two bytes of header, deflate, Adler-32), from the days when compressing meant that.
//!
//! Any zlib stream will do for any reader, so the encoder is libdeflate, which works on whole buffers and is
//! several times as fast as zlib at the same level.

use libdeflater::{CompressionLvl, Compressor, Decompressor};
use std::cell::RefCell;

thread_local! {
    /// An encoder is large and belongs to a level; datasets of different levels seldom take turns.
    static ENCODER: RefCell<Option<(u8, Compressor)>> = const { RefCell::new(None) };
    static DECODER: RefCell<Option<Decompressor>> = const { RefCell::new(None) };
}

pub fn compress(level: u8, src: &[u8], dst: &mut [u8]) -> Option<usize> {
    let lvl = CompressionLvl::new(level.into()).ok()?;
    ENCODER.with_borrow_mut(|cached| {
        if cached.as_ref().is_none_or(|(of, _)| *of != level) {
            *cached = Some((level, Compressor::new(lvl)));
        }
        let (_, encoder) = cached.as_mut()?;
        encoder.zlib_compress(src, dst).ok()
    })
}

pub fn decompress(src: &[u8], dst: &mut [u8]) -> Option<()> {
    DECODER.with_borrow_mut(|cached| {
        let decoder = cached.get_or_insert_with(Decompressor::new);
        let length = decoder.zlib_decompress(src, dst).ok()?;
        (length == dst.len()).then_some(())
    })
}
