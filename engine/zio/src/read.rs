//! Reading one block: a copy that passes its checksum, whatever it takes.

use crate::gang;
use crate::inner::Inner;
use crate::sick::Loss;
use crate::store::Bookmark;
use codec::checksum::{Checksummer, mac, sealed};
use ondisk::{BlockPointer, Dva, Embedded, EmbeddedKind, ObjectType, Plain};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Checksum, Compression, Endian, Error, Kind, Result};
use vdev::{Care, Priority, Verify};
use world::stages::{Stage, stage};
use world::{Buf, IoBuf};

/// A block's bytes as they are on disk, compressed or even encrypted, after they passed their checksum.
#[derive(Clone, Debug)]
pub struct Verified(pub Buf);

/// The logical bytes of a pointer that needs no device.
pub(crate) fn inline(bp: &BlockPointer) -> Result<Buf> {
    match bp {
        BlockPointer::Embedded(embedded) => expand(embedded),
        other => Ok(Buf::zeroed(other.lsize().0 as usize)),
    }
}

fn expand(embedded: &Embedded) -> Result<Buf> {
    if embedded.etype != EmbeddedKind::Data {
        return Err(Error::unsupported("read block: a redacted send stream left it out"));
    }
    decompress(embedded.compression, embedded.data(), embedded.lsize.0)
}

/// The logical bytes of a block, from its bytes on disk.
pub fn unpack(bp: &BlockPointer, Verified(data): &Verified) -> Result<Buf> {
    decompress(bp.compression(), data, bp.lsize().0)
}

fn decompress(compression: Compression, data: &[u8], lsize: u64) -> Result<Buf> {
    let mut out = IoBuf::scratch(lsize as usize);
    match compression {
        Compression::Off => {
            let same = data
                .get(..out.len())
                .ok_or_else(|| Error::corrupt("block is shorter than its pointer says"))?;
            out.copy_from_slice(same);
        }
        _ => codec::compress::decompress(compression, data, &mut out)?,
    }
    Ok(out.freeze())
}

/// The logical bytes of a block that is on devices.
pub(crate) async fn read(inner: &Arc<Inner>, bp: &BlockPointer, at: Bookmark, care: &Care) -> Result<Buf> {
    if bp.as_plain().is_none() {
        return inline(bp).map_err(|e| e.at(at));
    }
    // Of a block of dnodes only the bonus areas are ciphertext, and it is never compressed: what leads to other blocks
    // can be read without a key.
    if bp.is_encrypted() && bp.kind() != ObjectType::DNODE {
        return Err(Error::new(Kind::Encrypted, "read block").at(at));
    }
    let raw = read_raw_with(inner, bp, at, care).await?;
    unpack_here(inner, bp, at, raw).await
}

/// The logical bytes of a block that nothing has asked for yet, from its first copy. Where anything is not as it should be,
/// it leaves no trace and has no bytes: the read that needs the block meets that itself, tells of it, and knows other ways.
pub(crate) async fn read_quietly(
    inner: &Arc<Inner>,
    bp: &BlockPointer,
    at: Bookmark,
    priority: Priority,
) -> Result<Buf> {
    let Some(plain) = bp.as_plain() else { return inline(bp).map_err(|e| e.at(at)) };
    if bp.is_encrypted() && bp.kind() != ObjectType::DNODE {
        return Err(Error::new(Kind::Encrypted, "read block").at(at));
    }
    let (verify, bad) = (verifier(inner, plain), Arc::new(AtomicU64::new(0)));
    let care = care_of(plain, Care { bad: Some(bad.clone()), ..Care::hopeful(priority) });
    let first = plain.copies().next().ok_or_else(|| Error::corrupt("a block without a copy").at(at))?;
    let data = read_copy(inner, plain, first, &verify, &care).await?;
    if bad.load(Ordering::Relaxed) > 0 {
        return Err(Error::new(Kind::Checksum, "read block").at(at));
    }
    unpack_quietly(bp, Verified(data)).await.map_err(|e| e.at(at))
}

/// The logical bytes of a block from its bytes on disk, by another core where that takes long.
pub(crate) async fn unpack_here(
    inner: &Arc<Inner>,
    bp: &BlockPointer,
    at: Bookmark,
    Verified(data): Verified,
) -> Result<Buf> {
    let is_packed = bp.compression() != Compression::Off;
    unpack_quietly(bp, Verified(data)).await.map_err(|e| {
        if is_packed {
            inner.sick.note_lost(at, bp, Loss::Garbled);
        }
        e.at(at)
    })
}

/// As [`unpack_here`]; what makes no sense is not noted.
pub(crate) async fn unpack_quietly(bp: &BlockPointer, Verified(data): Verified) -> Result<Buf> {
    let (compression, lsize) = (bp.compression(), bp.lsize().0);
    if compression == Compression::Off {
        let short = || Error::corrupt("block is shorter than its pointer says");
        return if data.len() as u64 >= lsize { Ok(data.slice(0..lsize as usize)) } else { Err(short()) };
    }
    // Decompressing a large block takes long enough that the other requests of this core should not wait for it.
    if lsize >= 256 << 10 {
        return stage(Stage::Compute, world::compute(move || decompress(compression, &data, lsize))).await;
    }
    decompress(compression, &data, lsize)
}

/// The bytes on disk of a block, from the first copy that passes its checksum. A block of which something bad was met on
/// the way is noted, to be repaired by a task that may.
pub(crate) async fn read_raw(
    inner: &Arc<Inner>,
    bp: &BlockPointer,
    at: Bookmark,
    priority: Priority,
) -> Result<Verified> {
    read_raw_with(inner, bp, at, &Care::usual(priority)).await
}

/// As [`read_raw`], as thoroughly as asked.
pub(crate) async fn read_raw_with(
    inner: &Arc<Inner>,
    bp: &BlockPointer,
    at: Bookmark,
    care: &Care,
) -> Result<Verified> {
    let plain =
        bp.as_plain().ok_or_else(|| Error::corrupt("read block: the pointer names no place").at(at))?;
    let verify = verifier(inner, plain);
    let bad = Arc::new(AtomicU64::new(0));
    let care = care_of(plain, Care { bad: Some(bad.clone()), ..care.clone() });
    let mut last = None;
    for dva in plain.copies() {
        match read_copy(inner, plain, dva, &verify, &care).await {
            Ok(data) => {
                if care.blame && (last.is_some() || bad.load(Ordering::Relaxed) > 0) {
                    inner.sick.note(at, bp);
                }
                return Ok(Verified(data));
            }
            Err(e) => last = Some(e),
        }
    }
    let e = no_copy("read block", at, last);
    if care.blame && e.kind() == Kind::Checksum {
        // Whether it is lost, or was only freed since, is found out by the repair.
        inner.sick.note_lost(at, bp, Loss::NoCopy);
    }
    Err(e)
}

/// What the devices are to know of the block.
fn care_of(plain: &Plain, care: Care) -> Care {
    let is_proven = plain.checksum_kind != Checksum::Off;
    Care { born: Some(plain.resolved_physical_birth()), is_proven, ..care }
}

async fn read_copy(
    inner: &Arc<Inner>,
    plain: &Plain,
    dva: &Dva,
    verify: &Verify,
    care: &Care,
) -> Result<Buf> {
    if dva.gang {
        // Apart, as it is rare: a read is as large as the largest of what it may come to.
        return Box::pin(gang::read(inner, plain, dva, verify, care)).await;
    }
    inner.top(dva)?.read_with(dva.offset.bytes(), plain.psize.0 as usize, verify.clone(), care).await
}

/// Whether half of the block's checksum is a MAC. The root block of an object set carries its MACs inside, and its checksum
/// is whole.
pub(crate) fn has_mac(plain: &Plain) -> bool {
    plain.crypt.is_some() && plain.kind != ObjectType::OBJSET
}

/// Whether bytes are what `plain` points to.
pub(crate) fn verifier(inner: &Inner, plain: &Plain) -> Verify {
    let (checksummer, proof) = (inner.checksummer(), Proof::of(plain));
    Arc::new(move |bytes: &[u8]| proof.holds(&checksummer, bytes))
}

/// What of a pointer tells whether bytes are its block.
#[derive(Clone, Copy)]
pub(crate) struct Proof {
    kind: Checksum,
    endian: Endian,
    expected: [u64; 4],
    has_mac: bool,
    is_encrypted: bool,
}

impl Proof {
    pub fn of(plain: &Plain) -> Proof {
        Proof {
            kind: plain.checksum_kind,
            endian: plain.endian,
            expected: plain.checksum,
            has_mac: has_mac(plain),
            is_encrypted: plain.crypt.is_some(),
        }
    }

    pub fn holds(&self, checksummer: &Checksummer, bytes: &[u8]) -> bool {
        let &Proof { kind, endian, expected, has_mac, is_encrypted } = self;
        if kind == Checksum::Off {
            return true;
        }
        if kind.is_self_contained() {
            // A block of the intent log: the pointer's words are what it was sealed with.
            return sealed::verify(kind, bytes, expected, is_encrypted).is_some();
        }
        let computed = checksummer.compute(kind, endian, bytes);
        if has_mac { mac::matches(kind, computed, expected) } else { computed == expected }
    }
}

/// Writes good bytes over bad copies; what cannot be written stays for the next scrub.
pub(crate) async fn repair(inner: &Arc<Inner>, plain: &Plain, bad: &[Dva], data: &Buf) {
    for dva in bad.iter().filter(|d| !d.gang && d.asize.0 >= plain.psize.0 >> units::SECTOR_SHIFT) {
        let Ok(top) = inner.top(dva) else { continue };
        top.heal(dva.offset.bytes(), data.clone()).await;
    }
}

/// What a look at every copy of a block found, behind each the redundancy of its vdev.
#[derive(Clone, Debug)]
pub struct Checked {
    /// From the first copy that passed.
    pub data: Verified,
    /// How many places had something wrong: devices within vdevs, and whole copies.
    pub bad: u64,
}

/// Checks all there is of a block that something bad was met of, and repairs that.
pub(crate) async fn heal(inner: &Arc<Inner>, bp: &BlockPointer, at: Bookmark, blame: bool) -> Result<()> {
    let Some(plain) = bp.as_plain() else { return Ok(()) };
    let Found { data, bad } = look_at_all(inner, plain, at, &Care { blame, ..Care::repair() }).await?;
    if !bad.is_empty() && inner.space.is_some() {
        repair(inner, plain, &bad, &data).await;
    }
    Ok(())
}

/// Counts what is bad of a block as errors of its devices.
pub(crate) async fn blame(inner: &Arc<Inner>, bp: &BlockPointer, at: Bookmark) {
    if let Some(plain) = bp.as_plain() {
        // What was found before is known already.
        let _ = look_at_all(inner, plain, at, &Care::check(Arc::default())).await;
    }
}

/// Checks all there is of a block and leaves it as it is.
pub(crate) async fn check(inner: &Arc<Inner>, bp: &BlockPointer, at: Bookmark) -> Result<Checked> {
    let plain =
        bp.as_plain().ok_or_else(|| Error::corrupt("check block: the pointer names no place").at(at))?;
    let count = Arc::new(AtomicU64::new(0));
    let care = Care { blame: inner.is_steady(), ..Care::check(count.clone()) };
    let Found { data, bad } = look_at_all(inner, plain, at, &care).await?;
    Ok(Checked { data: Verified(data), bad: count.load(Ordering::Relaxed) + bad.len() as u64 })
}

struct Found {
    data: Buf,
    /// Copies that could not be made good from within their vdev.
    bad: Vec<Dva>,
}

async fn look_at_all(inner: &Arc<Inner>, plain: &Plain, at: Bookmark, care: &Care) -> Result<Found> {
    let verify = verifier(inner, plain);
    let care = &care_of(plain, care.clone());
    let (mut good, mut bad, mut cause) = (None, Vec::new(), None);
    for dva in plain.copies() {
        match read_copy(inner, plain, dva, &verify, care).await {
            Ok(data) => good = Some(data),
            Err(e) => {
                bad.push(*dva);
                cause = Some(e);
            }
        }
    }
    match good {
        Some(data) => Ok(Found { data, bad }),
        None => Err(no_copy("check block", at, cause)),
    }
}

/// That all copies are wrong is the rule, and needs no cause; that a device is gone is worth saying.
fn no_copy(doing: &str, at: Bookmark, cause: Option<Error>) -> Error {
    let e = Error::new(Kind::Checksum, doing).at(at);
    match cause {
        Some(cause) if cause.kind() != Kind::Checksum => e.because(cause),
        _ => e,
    }
}
