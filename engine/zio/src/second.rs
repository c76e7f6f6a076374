//! The second level of the cache, on cache devices: which blocks may go there, and a read that looks there first.
//!
//! ```text
//!   missed in memory ─▶ on a cache device, and what is read there is the block? ─▶ yes: as read from the pool
//!                                                                               └▶ no: the pool
//! ```
//!
//! A scrub, a repair and all that asks for the bytes of a copy never come here: they are about the pool's devices.

use crate::inner::Inner;
use crate::read::{self, Verified, unpack_here, verifier};
use crate::store::Bookmark;
use arc::{BlockId, Candidate, Kind, Origin};
use ondisk::{BlockPointer, ObjectType};
use std::sync::Arc;
use units::{Checksum, Compression, ObjsetId, Result};
use vdev::Care;
use world::Buf;

/// What a second level needs to know of a block; `None` of one that may not go there.
pub(crate) fn origin(inner: &Inner, bp: &BlockPointer, objset: ObjsetId, kind: Kind) -> Option<Origin> {
    if !inner.second.is_active() {
        return None;
    }
    let plain = bp.as_plain()?;
    // What has no checksum could not be told from rubbish, and of ciphertext there is no plain text in memory.
    let is_provable = plain.checksum_kind != Checksum::Off
        && plain.checksum_kind != Checksum::NoParity
        && !plain.checksum_kind.is_self_contained()
        && plain.crypt.is_none();
    (is_provable && inner.second.takes(objset, kind)).then(|| Origin {
        asize: plain.dvas[0].asize,
        gang: plain.dvas[0].gang,
        lsize: plain.lsize,
        psize: plain.psize,
        compression: plain.compression,
        checksum_kind: plain.checksum_kind,
        checksum: plain.checksum,
        endian: plain.endian,
    })
}

/// A block that is wanted and not in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Missed {
    pub block: BlockId,
    pub kind: Kind,
    pub origin: Option<Origin>,
    /// It is only read ahead.
    pub is_prefetch: bool,
}

/// The logical bytes of a block, from a cache device or else from the pool.
pub(crate) async fn read(
    inner: &Arc<Inner>,
    bp: &BlockPointer,
    at: Bookmark,
    care: &Care,
    missed: Missed,
) -> Result<Buf> {
    if let Some(plain) =
        bp.as_plain().filter(|plain| is_readable(plain.crypt.is_some(), bp) && inner.second.is_active())
        && plain.checksum_kind != Checksum::Off
    {
        let verify = verifier(inner, plain);
        let found = Box::pin(inner.second.read(&missed.block, plain.psize.0, &|bytes| verify(bytes))).await;
        if let Some(raw) = found {
            return Box::pin(unpack_here(inner, bp, at, Verified(raw))).await;
        }
    }
    if missed.is_prefetch {
        return read::read_quietly(inner, bp, at, vdev::Priority::AsyncRead).await;
    }
    let keeps_raw =
        missed.origin.filter(|origin| origin.compression != Compression::Off && inner.second.wants_raw());
    let Some(origin) = keeps_raw else { return read::read(inner, bp, at, care).await };
    let raw = read::read_raw_with(inner, bp, at, care).await?;
    let Missed { block, kind, .. } = missed;
    let candidate = Candidate { block, kind, origin, is_prefetch: false, is_frequent: false };
    inner.second.offer_raw(candidate, raw.0.clone());
    unpack_here(inner, bp, at, raw).await
}

/// As [`read::read`] has it: what is encrypted can be read where no key is needed.
fn is_readable(is_encrypted: bool, bp: &BlockPointer) -> bool {
    !is_encrypted || bp.kind() == ObjectType::DNODE
}
