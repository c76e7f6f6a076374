//! Gang blocks: one block in several places, for want of one place that is large enough.
//!
//! ```text
//!   pointer ── G ──▶ header, 512 bytes: pointer 0 │ pointer 1 │ pointer 2 │ … │ trailer with the header's checksum
//!                                          │           │           │
//!                                        part 0      part 1      part 2        each a block, or again a gang
//! ```
//!
//! The parts follow one another; together they are the block's bytes, and its checksum is over all of them. The
//! header's own checksum is bound to its place and birth. The pointer's `asize` is that of header and parts together.

use crate::inner::Inner;
use crate::prepare::Rules;
use crate::read::{has_mac, repair, verifier};
use crate::store::WriteSpec;
use crate::write::{class_of, place, write_copies};
use codec::checksum::sealed::{self, gang_verifier};
use metaslab::Request;
use ondisk::{BlockPointer, Dva, GangHeader, ObjectType, Plain};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::{Checksum, Compression, Endian, Error, Kind, Lsize, Psize, Result, Sectors, Txg};
use vdev::{Care, Priority, Verify};
use world::{Buf, IoBuf};

/// Bytes of a header, before padding to the device's sectors.
const HEADER: u64 = 512;
/// How deep gangs may nest. Three parts each: a block of 16 MiB in sectors of 512 bytes needs ten levels.
pub(crate) const MAX_DEPTH: usize = 12;

type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// Reads the block whose gang header `dva` names, and verifies the whole.
pub(crate) async fn read(
    inner: &Arc<Inner>,
    plain: &Plain,
    dva: &Dva,
    verify: &Verify,
    care: &Care,
) -> Result<Buf> {
    let mut out = IoBuf::scratch(plain.psize.0 as usize);
    let filled = read_parts(inner, plain, dva, &mut out, care, 0).await?;
    if filled != out.len() || !verify(&out) {
        return Err(Error::new(Kind::Checksum, "read gang block")
            .at(format!("vdev {} offset {}", dva.vdev, dva.offset)));
    }
    Ok(out.freeze())
}

async fn read_header(inner: &Arc<Inner>, plain: &Plain, dva: &Dva, care: &Care) -> Result<GangHeader> {
    let top = inner.top(dva)?;
    let words =
        gang_verifier(plain.dvas[0].vdev, plain.dvas[0].offset.bytes(), plain.resolved_physical_birth());
    let endian = plain.endian;
    // The header of an encrypted block keeps half of its checksum too, although it is no ciphertext.
    let has_mac = has_mac(plain);
    let check: Verify = Arc::new(move |bytes: &[u8]| {
        bytes.len() >= HEADER as usize
            && sealed::verify(Checksum::GangHeader, &bytes[..HEADER as usize], words, has_mac).is_some()
    });
    let buf = top.read_with(dva.offset.bytes(), HEADER as usize, check, care).await?;
    GangHeader::from_bytes(&buf[..HEADER as usize], endian)
}

/// Fills `out` with the parts in order; returns how much they filled.
fn read_parts<'a>(
    inner: &'a Arc<Inner>,
    plain: &'a Plain,
    dva: &'a Dva,
    out: &'a mut [u8],
    care: &'a Care,
    depth: usize,
) -> Boxed<'a, usize> {
    Box::pin(async move {
        if depth >= MAX_DEPTH {
            return Err(Error::corrupt("gang headers nest too deep"));
        }
        let header = read_header(inner, plain, dva, care).await?;
        let mut at = 0;
        for part in header.pointers.iter().filter_map(BlockPointer::as_plain) {
            let len = part.psize.0 as usize;
            let room = out
                .get_mut(at..at + len)
                .ok_or_else(|| Error::corrupt("the parts of a gang are longer than the block"))?;
            read_part(inner, part, room, care, depth).await?;
            at += len;
        }
        Ok(at)
    })
}

/// Reads a part from its first good copy; with every care, looks at the others too.
async fn read_part(
    inner: &Arc<Inner>,
    part: &Plain,
    room: &mut [u8],
    care: &Care,
    depth: usize,
) -> Result<()> {
    let verify = verifier(inner, part);
    let mut last = Error::corrupt("a gang's part has no place");
    let (mut found, mut bad) = (false, Vec::new());
    for dva in part.copies() {
        // A copy read only to be looked at must not spoil the good one.
        let mut spare = if found { vec![0; room.len()] } else { Vec::new() };
        let room = if found { &mut spare[..] } else { &mut *room };
        match read_copy(inner, part, dva, &verify, room, care, depth).await {
            Ok(()) => found = true,
            Err(e) => {
                bad.push(*dva);
                last = e;
            }
        }
        if found && !care.everything {
            break;
        }
    }
    if !found {
        return Err(last);
    }
    if let Some(count) = &care.bad {
        count.fetch_add(bad.len() as u64, Ordering::Relaxed);
    }
    if !bad.is_empty() && care.repair && inner.space.is_some() {
        repair(inner, part, &bad, &Buf::copy_from(room)).await;
    }
    Ok(())
}

async fn read_copy(
    inner: &Arc<Inner>,
    part: &Plain,
    dva: &Dva,
    verify: &Verify,
    room: &mut [u8],
    care: &Care,
    depth: usize,
) -> Result<()> {
    if !dva.gang {
        return read_leaf(inner, part, dva, verify, room, care).await;
    }
    let filled = read_parts(inner, part, dva, room, care, depth + 1).await?;
    if filled == room.len() && verify(room) {
        return Ok(());
    }
    Err(Error::new(Kind::Checksum, "read part of a gang"))
}

async fn read_leaf(
    inner: &Arc<Inner>,
    part: &Plain,
    dva: &Dva,
    verify: &Verify,
    room: &mut [u8],
    care: &Care,
) -> Result<()> {
    let top = inner.top(dva)?;
    let data = top.read_with(dva.offset.bytes(), part.psize.0 as usize, verify.clone(), care).await?;
    room.copy_from_slice(&data);
    Ok(())
}

/// Writes `data` as a gang and returns where its header is.
pub(crate) fn write<'a>(inner: &'a Arc<Inner>, data: &'a Buf, spec: &'a WriteSpec) -> Boxed<'a, [Dva; 3]> {
    Box::pin(async move {
        let min = unit(&inner.rules(), data.len() as u64);
        if data.len() as u64 <= min {
            return Err(Error::new(Kind::NoSpace, "write block"));
        }
        let space = inner.space()?;
        // A header that is lost loses all its parts, so it has one copy more than they.
        let copies = (spec.copies + 1).min(3);
        let class = class_of(space, spec, Psize(data.len() as u64));
        let mut dvas = space.allocate(&Request::new(class, Psize(HEADER), copies, spec.txg)).await?;
        let mut taken: Vec<BlockPointer> = Vec::new();
        let written = write_parts(inner, data, spec, min, &mut taken).await;
        let finished = match written {
            Ok(()) => finish(inner, &mut dvas, &taken, spec).await,
            Err(e) => Err(e),
        };
        if let Err(e) = finished {
            give_back(inner, &dvas, &taken, spec.txg);
            return Err(e);
        }
        Ok(dvas)
    })
}

/// Writes the parts: each as large as an even split allows, in whole sectors.
async fn write_parts(
    inner: &Arc<Inner>,
    data: &Buf,
    spec: &WriteSpec,
    min: u64,
    parts: &mut Vec<BlockPointer>,
) -> Result<()> {
    let mut at = 0;
    for range in split(data.len() as u64, min) {
        debug_assert_eq!(range.start, at);
        at = range.end;
        let data = data.slice(range.start as usize..range.end as usize);
        let dvas = match place(inner, &data, spec).await? {
            Some(dvas) => dvas,
            None => write(inner, &data, spec).await?,
        };
        parts.push(BlockPointer::Plain(part_pointer(inner, &data, spec, dvas)));
    }
    Ok(())
}

/// What parts are multiples of: the largest sector while that divides the block, so that no part wastes most of one.
fn unit(rules: &Rules, len: u64) -> u64 {
    if len > rules.worst.sector { rules.worst.sector } else { rules.min_alloc }
}

/// Splits a block among up to three parts, each but the last a multiple of `min`.
pub(crate) fn split(len: u64, min: u64) -> Vec<std::ops::Range<u64>> {
    let part = len.div_ceil(3).next_multiple_of(min);
    (0..3).map(|i| (i * part).min(len)..((i + 1) * part).min(len)).filter(|r| !r.is_empty()).collect()
}

fn part_pointer(inner: &Inner, data: &Buf, spec: &WriteSpec, dvas: [Dva; 3]) -> Plain {
    let len = data.len() as u64;
    Plain {
        dvas,
        lsize: Lsize(len),
        psize: Psize(len),
        compression: Compression::Off,
        checksum_kind: spec.checksum,
        kind: ObjectType::NONE,
        level: 0,
        birth: spec.txg,
        physical_birth: Txg::NONE,
        fill: 0,
        checksum: inner.checksummer().compute(spec.checksum, Endian::NATIVE, data),
        endian: Endian::NATIVE,
        dedup: false,
        rewritten: false,
        crypt: None,
    }
}

/// Writes the header at each of its places and completes their sizes.
async fn finish(
    inner: &Arc<Inner>,
    dvas: &mut [Dva; 3],
    parts: &[BlockPointer],
    spec: &WriteSpec,
) -> Result<()> {
    write_header(inner, dvas, parts, spec).await?;
    for (i, dva) in dvas.iter_mut().enumerate().filter(|(_, d)| d.asize.0 > 0) {
        let of_parts: u64 = parts.iter().filter_map(BlockPointer::as_plain).map(|p| p.dvas[i].asize.0).sum();
        dva.gang = true;
        dva.asize = Sectors(dva.asize.0 + of_parts);
    }
    Ok(())
}

async fn write_header(
    inner: &Arc<Inner>,
    dvas: &[Dva; 3],
    parts: &[BlockPointer],
    spec: &WriteSpec,
) -> Result<()> {
    let mut header = IoBuf::zeroed(HEADER as usize);
    for (bytes, bp) in header.chunks_exact_mut(BlockPointer::SIZE).zip(parts) {
        bytes.copy_from_slice(&bp.to_bytes(Endian::NATIVE));
    }
    // Every copy of the header is bound to the place of the first.
    let words = gang_verifier(dvas[0].vdev, dvas[0].offset.bytes(), spec.txg);
    sealed::seal(Checksum::GangHeader, Endian::NATIVE, &mut header, words, None);
    write_copies(inner, dvas.as_slice(), &header.freeze(), spec).await
}

/// Writes `data` in the place of `old`, a gang block of the same txg and length: header and parts stay where they are.
pub(crate) fn rewrite<'a>(
    inner: &'a Arc<Inner>,
    old: &'a Plain,
    data: &'a Buf,
    spec: &'a WriteSpec,
    depth: usize,
) -> Boxed<'a, ()> {
    Box::pin(async move {
        let strange = || Error::corrupt("the parts of a gang are not as they were written");
        if depth >= MAX_DEPTH {
            return Err(strange());
        }
        let header = inner.header_of_gang(old).await?;
        let (mut parts, mut at) = (Vec::new(), 0);
        for part in header.pointers.iter().filter_map(BlockPointer::as_plain) {
            let end = at + part.psize.0 as usize;
            if end > data.len() {
                return Err(strange());
            }
            let bytes = data.slice(at..end);
            match part.is_gang() {
                true => rewrite(inner, part, &bytes, spec, depth + 1).await?,
                false => write_copies(inner, &part.dvas, &bytes, spec).await?,
            }
            parts.push(BlockPointer::Plain(part_pointer(inner, &bytes, spec, part.dvas)));
            at = end;
        }
        if at != data.len() {
            return Err(strange());
        }
        write_header(inner, &old.dvas, &parts, spec).await
    })
}

fn give_back(inner: &Inner, dvas: &[Dva; 3], parts: &[BlockPointer], txg: Txg) {
    let Some(space) = &inner.space else { return };
    let of_parts = parts.iter().filter_map(BlockPointer::as_plain).flat_map(|p| p.dvas);
    for dva in dvas.iter().copied().chain(of_parts).filter(|d| d.asize.0 > 0 && !d.gang) {
        // The txg fails with the write that brought us here; what cannot be taken back is lost with it.
        let _ = space.unallocate(&dva, txg);
    }
}

impl Inner {
    /// Frees header and parts of a gang block.
    pub(crate) async fn free_gang(self: &Arc<Inner>, plain: &Plain, txg: Txg) -> Result<()> {
        self.free_gang_at(plain, txg, 0).await
    }

    /// The header of a gang block, from its first good copy.
    pub(crate) async fn header_of_gang(self: &Arc<Inner>, plain: &Plain) -> Result<GangHeader> {
        let mut header = Err(Error::corrupt("a gang block without a header"));
        for dva in plain.copies().filter(|d| d.gang) {
            header = read_header(self, plain, dva, &Care::usual(Priority::AsyncRead)).await;
            if header.is_ok() {
                break;
            }
        }
        header
    }

    fn free_gang_at<'a>(self: &'a Arc<Inner>, plain: &'a Plain, txg: Txg, depth: usize) -> Boxed<'a, ()> {
        Box::pin(async move {
            if depth >= MAX_DEPTH {
                return Err(Error::corrupt("gang headers nest too deep"));
            }
            let space = self.space()?;
            // Some parts may be free already: there is no way back from here.
            let header = self.suspension.persist(|| self.header_of_gang(plain)).await?;
            for part in header.pointers.iter().filter_map(BlockPointer::as_plain) {
                if part.is_gang() {
                    self.free_gang_at(part, txg, depth + 1).await?;
                } else {
                    for dva in part.copies() {
                        space.free(dva, txg)?;
                    }
                }
            }
            for dva in plain.copies() {
                // Of a gang, the allocator takes the DVA to mean its header.
                space.free(dva, txg)?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn parts_cover_the_block_and_are_whole_sectors_but_the_last() {
        for len in (512..100_000).step_by(512) {
            for min in [512, 4096] {
                let parts = split(len, min);
                assert!((1..=3).contains(&parts.len()));
                assert_eq!((parts[0].start, parts[parts.len() - 1].end), (0, len));
                assert!(parts.windows(2).all(|w| w[0].end == w[1].start && w[0].end % min == 0));
            }
        }
    }
}
