//! Writing one block.

use crate::gang;
use crate::inner::Inner;
use crate::prepare::{Prepared, is_heavy, prepare};
use crate::store::WriteSpec;
use futures_util::future::join_all;
use metaslab::{Class, Request, Space};
use ondisk::{BlockPointer, Dva, ObjectType, Plain};
use std::sync::Arc;
use units::{Compression, Endian, Error, Kind, Lsize, Psize, Result, Txg};
use vdev::Priority;
use world::Buf;
use world::stages::{Stage, stage};

/// So much of the special devices, in percent, is left to metadata by the data of files: OpenZFS's default of
/// `zfs_special_class_metadata_reserve_pct`.
const METADATA_RESERVE: u64 = 25;

pub(crate) async fn write(
    inner: &Arc<Inner>,
    data: Buf,
    old: &BlockPointer,
    spec: &WriteSpec,
) -> Result<BlockPointer> {
    let rules = inner.rules();
    let lsize = Lsize(data.len() as u64);
    let prepared = if is_heavy(&data, spec) {
        let spec = *spec;
        stage(Stage::Compute, world::compute(move || prepare(data, &spec, &rules))).await
    } else {
        prepare(data, spec, &rules)
    };
    let (data, psize, compression) = match prepared {
        Prepared::Done(bp) => return Ok(bp),
        Prepared::Place { data, psize, compression } => (data, psize, compression),
    };
    let checksum = checksum_of(inner, &data, spec).await;
    if let Some(same) = unchanged(old, spec, psize, compression, checksum) {
        return Ok(same);
    }
    let mut plain = Plain {
        dvas: [Dva::default(); 3],
        lsize,
        psize,
        compression,
        checksum_kind: spec.checksum,
        kind: spec.kind,
        level: spec.level,
        birth: spec.txg,
        physical_birth: Txg::NONE,
        fill: spec.fill,
        checksum,
        endian: Endian::NATIVE,
        dedup: false,
        rewritten: false,
        crypt: None,
    };
    if let Some(old) = same_place(inner, old, spec, psize) {
        plain.dvas = old.dvas;
        match old.is_gang() {
            true => gang::rewrite(inner, old, &data, spec, 0).await?,
            false => write_copies(inner, &plain.dvas, &data, spec).await?,
        }
        return Ok(BlockPointer::Plain(plain));
    }
    plain.dvas = match place(inner, &data, spec).await? {
        Some(dvas) => dvas,
        None => gang::write(inner, &data, spec).await?,
    };
    Ok(BlockPointer::Plain(plain))
}

async fn checksum_of(inner: &Arc<Inner>, data: &Buf, spec: &WriteSpec) -> [u64; 4] {
    let (checksummer, kind) = (inner.checksummer(), spec.checksum);
    if kind.is_cryptographic() && data.len() >= 16 << 10 {
        let data = data.clone();
        return stage(
            Stage::Compute,
            world::compute(move || checksummer.compute(kind, Endian::NATIVE, &data)),
        )
        .await;
    }
    checksummer.compute(kind, Endian::NATIVE, data)
}

/// The old pointer, when a strong checksum says that its bytes are these: then nothing need be written.
fn unchanged(
    old: &BlockPointer,
    spec: &WriteSpec,
    psize: Psize,
    compression: Compression,
    checksum: [u64; 4],
) -> Option<BlockPointer> {
    let same = old.as_plain().filter(|p| {
        spec.checksum.is_cryptographic()
            && p.checksum_kind == spec.checksum
            && p.checksum == checksum
            && p.psize == psize
            && p.compression.code() == compression.code()
            && p.compression != Compression::Off
            && !p.dedup
            && p.crypt.is_none()
            && p.endian == Endian::NATIVE
            && p.copies().count() == usize::from(spec.copies)
    })?;
    Some(BlockPointer::Plain(same.clone()))
}

/// The block that this very txg has written before, if the new bytes fit there exactly and no reader needs what stands
/// there.
fn same_place<'a>(inner: &Inner, old: &'a BlockPointer, spec: &WriteSpec, psize: Psize) -> Option<&'a Plain> {
    old.as_plain()
        .filter(|p| spec.pass > 1 && p.birth == spec.txg && p.psize == psize)
        .filter(|_| inner.cache_id(old).is_some_and(|block| inner.young.get(&block).is_some()))
}

/// Takes space for a block and writes it there. `None` when the pool has no run of space that long; space that the host
/// lacks below a device is another matter, and an error.
pub(crate) async fn place(inner: &Arc<Inner>, data: &Buf, spec: &WriteSpec) -> Result<Option<[Dva; 3]>> {
    let space = inner.space()?;
    let psize = Psize(data.len() as u64);
    let request = Request::new(class_of(space, spec, psize), psize, spec.copies, spec.txg);
    let dvas = match space.allocate(&request).await {
        Ok(dvas) => dvas,
        Err(e) if e.kind() == Kind::NoSpace => return Ok(None),
        Err(e) => return Err(e),
    };
    match write_copies(inner, &dvas, data, spec).await {
        Ok(()) => Ok(Some(dvas)),
        Err(e) => {
            for dva in dvas.iter().filter(|d| d.asize.0 > 0) {
                space.unallocate(dva, spec.txg)?;
            }
            Err(e)
        }
    }
}

/// Where a block belongs: metadata on the special devices, tables of deduplicated blocks on their own, and small blocks
/// of files beside the metadata while enough of the special devices is left for that.
pub(crate) fn class_of(space: &Space, spec: &WriteSpec, psize: Psize) -> Class {
    if [ObjectType::DDT_ZAP, ObjectType::DDT_STATS].contains(&spec.kind) {
        return Class::Dedup;
    }
    if spec.level > 0 || spec.kind.is_metadata() {
        return Class::Special;
    }
    let is_small = spec.kind == ObjectType::PLAIN_FILE_CONTENTS && psize.0 <= spec.special_up_to;
    let has_room = || {
        let special = space.usage(Class::Special);
        special.allocated < special.space / 100 * (100 - METADATA_RESERVE)
    };
    if is_small && space.has_class(Class::Special) && has_room() { Class::Special } else { Class::Normal }
}

/// Writes each copy, all at once. One copy that is stored is enough to go on: the devices count their errors, and reads
/// and scrub make good what is missing. When no device takes it, it waits for one: only what the intent log writes in
/// advance has another way, and fails.
pub(crate) async fn write_copies(
    inner: &Arc<Inner>,
    dvas: &[Dva],
    data: &Buf,
    spec: &WriteSpec,
) -> Result<()> {
    let write = || write_each(inner, dvas, data, spec.priority());
    if spec.urgent { write().await } else { inner.suspension.persist(write).await }
}

async fn write_each(inner: &Arc<Inner>, dvas: &[Dva], data: &Buf, priority: Priority) -> Result<()> {
    let write =
        |dva: Dva| async move { inner.top(&dva)?.write(dva.offset.bytes(), data.clone(), priority).await };
    let mut copies = dvas.iter().copied().filter(|d| d.asize.0 > 0);
    // As nearly all blocks have it: one copy is waited for here, and the others by what waits for several.
    if let (Some(only), None) = (copies.next(), copies.next()) {
        return write(only).await;
    }
    let writes = dvas.iter().copied().filter(|d| d.asize.0 > 0).map(write);
    let results = join_all(writes).await;
    if results.iter().any(Result::is_ok) {
        return Ok(());
    }
    // What the host lacks can be given to it: it is told first.
    let errors = results.into_iter().filter_map(Result::err);
    let worst = errors.min_by_key(|e| e.kind() != Kind::NoSpace);
    Err(worst.unwrap_or_else(|| Error::corrupt("a block without a copy")))
}
