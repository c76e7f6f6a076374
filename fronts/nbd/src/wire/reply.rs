//! The heads of replies. What follows a head is named in its length and sent from where it lies.
//!
//! ```text
//!   simple       | magic 4 | error 4 | cookie 8 |  then the data of a read
//!   structured   | magic 4 | flags 2 | type 2 | cookie 8 | length 4 |  then length bytes:
//!                  none    -
//!                  data    offset 8, data
//!                  hole    offset 8, length 4
//!                  status  context 4, then (length 4, flags 4) for each extent
//!                  error   errno 4, message length 2, message
//! ```

use super::{ALLOCATION_ID, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, clip};
use crate::errno::Errno;
use flow::Extent;

const TYPE_NONE: u16 = 0;
const TYPE_DATA: u16 = 1;
const TYPE_HOLE: u16 = 2;
const TYPE_STATUS: u16 = 5;
const TYPE_ERROR: u16 = (1 << 15) + 1;

const FLAG_DONE: u16 = 1;

/// An extent that is not allocated, and one that reads as zeros: our holes are both.
const STATE_HOLE: u32 = 1 << 0;
const STATE_ZERO: u32 = 1 << 1;

pub(crate) fn simple(cookie: u64, error: u32) -> [u8; 16] {
    let mut head = [0; 16];
    head[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    head[4..8].copy_from_slice(&error.to_be_bytes());
    head[8..].copy_from_slice(&cookie.to_be_bytes());
    head
}

fn chunk(cookie: u64, kind: u16, done: bool, len: u32) -> [u8; 20] {
    let mut head = [0; 20];
    head[..4].copy_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
    head[4..6].copy_from_slice(&(if done { FLAG_DONE } else { 0 }).to_be_bytes());
    head[6..8].copy_from_slice(&kind.to_be_bytes());
    head[8..16].copy_from_slice(&cookie.to_be_bytes());
    head[16..].copy_from_slice(&len.to_be_bytes());
    head
}

/// The whole of an answer without content.
pub(crate) fn none(cookie: u64) -> [u8; 20] {
    chunk(cookie, TYPE_NONE, true, 0)
}

/// `len` bytes of data follow.
pub(crate) fn data(cookie: u64, done: bool, offset: u64, len: u32) -> [u8; 28] {
    let mut head = [0; 28];
    head[..20].copy_from_slice(&chunk(cookie, TYPE_DATA, done, len + 8));
    head[20..].copy_from_slice(&offset.to_be_bytes());
    head
}

pub(crate) fn hole(cookie: u64, done: bool, offset: u64, len: u32) -> [u8; 32] {
    let mut head = [0; 32];
    head[..20].copy_from_slice(&chunk(cookie, TYPE_HOLE, done, 12));
    head[20..28].copy_from_slice(&offset.to_be_bytes());
    head[28..].copy_from_slice(&len.to_be_bytes());
    head
}

/// The whole of an error, with its sentence for people.
pub(crate) fn error(cookie: u64, errno: Errno, message: &str) -> Vec<u8> {
    let message = clip(message);
    let mut bytes = chunk(cookie, TYPE_ERROR, true, 6 + message.len() as u32).to_vec();
    bytes.extend_from_slice(&errno.code().to_be_bytes());
    bytes.extend_from_slice(&(message.len() as u16).to_be_bytes());
    bytes.extend_from_slice(message.as_bytes());
    bytes
}

/// The whole of a block status for the context `base:allocation`. Extents are at most 4 GiB - 1 long here.
pub(crate) fn status(cookie: u64, extents: &[(u32, bool)]) -> Vec<u8> {
    let len = 4 + 8 * extents.len() as u32;
    let mut bytes = chunk(cookie, TYPE_STATUS, true, len).to_vec();
    bytes.extend_from_slice(&ALLOCATION_ID.to_be_bytes());
    for &(len, hole) in extents {
        bytes.extend_from_slice(&len.to_be_bytes());
        bytes.extend_from_slice(&(if hole { STATE_HOLE | STATE_ZERO } else { 0 }).to_be_bytes());
    }
    bytes
}

/// Extents as the wire wants them: neighbours of one kind joined, empty ones left out, cut at the end of the request.
pub(crate) fn joined(extents: &[Extent], request: u32, max: usize) -> Vec<(u32, bool)> {
    let mut joined: Vec<(u32, bool)> = Vec::new();
    let mut left = request;
    for extent in extents {
        let len = extent.len.min(u64::from(left)) as u32;
        left -= len;
        if len == 0 {
            continue;
        }
        let full = joined.len() == max;
        match joined.last_mut() {
            Some((last, hole)) if *hole == extent.hole => *last += len,
            _ if full => break,
            _ => joined.push((len, extent.hole)),
        }
    }
    joined
}
