//! What becomes of a block's bytes before they have a place: nothing, a hole, an embedded pointer, or fewer bytes. Pure.

use crate::store::WriteSpec;
use ondisk::{BlockPointer, Embedded, EmbeddedKind, Hole};
use units::{Compression, Endian, Lsize, Psize};
use world::{Buf, IoBuf};

/// See the module.
#[derive(Debug)]
pub enum Prepared {
    /// No space needed: the pointer is complete.
    Done(BlockPointer),
    /// Bytes to be placed: `data` is as long as `psize` says.
    Place { data: Buf, psize: Psize, compression: Compression },
}

/// What the pool allows and asks for.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Compressed blocks are padded to a multiple of this: the smallest sector among the pool's devices.
    pub min_alloc: u64,
    /// Feature `embedded_data`: up to 112 compressed bytes go into the pointer.
    pub embed: bool,
    /// Feature `hole_birth`.
    pub hole_birth: bool,
    pub worst: Worst,
}

/// The most that a block may be charged for, whatever its place: where free space is in the smallest pieces, each
/// sector of the block is one part of a gang, and each part may need a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worst {
    /// Bytes of the largest sector among the devices that hold ordinary blocks.
    pub sector: u64,
    /// What such a sector is charged for, with the parity of a block of one sector.
    pub charge: u64,
}

impl Worst {
    /// Of devices without redundancy, in sectors of `sector` bytes.
    pub fn plain(sector: u64) -> Worst {
        Worst { sector, charge: sector }
    }

    /// The charge of `copies` copies of a block of `lsize` bytes, uncompressed.
    pub fn of_block(&self, lsize: u64, copies: u8) -> u64 {
        let (sectors, copies) = (lsize.div_ceil(self.sector).max(1), u64::from(copies.clamp(1, 3)));
        // A header joins two parts or three, and has one copy more than they: fewer headers than parts.
        let headers = if sectors > 1 { sectors * (copies + 1).min(3) } else { 0 };
        (sectors * copies + headers).saturating_mul(self.charge)
    }
}

/// From this pass of a txg's sync on nothing is compressed, so that a block written again in place has the same size
/// (`zfs_sync_pass_dont_compress`).
const PASS_WITHOUT_COMPRESSION: u32 = 6;

/// Decides what to write for `data`, which is taken over uncopied when it stays as it is.
pub fn prepare(data: Buf, spec: &WriteSpec, rules: &Rules) -> Prepared {
    let lsize = Lsize(data.len() as u64);
    let compression = if spec.pass >= PASS_WITHOUT_COMPRESSION { Compression::Off } else { spec.compression };
    let as_it_is = |data| Prepared::Place { data, psize: Psize(lsize.0), compression: Compression::Off };
    if compression == Compression::Off {
        return as_it_is(data);
    }
    if codec::is_zero(&data) {
        let birth = if rules.hole_birth { spec.txg } else { units::Txg::NONE };
        return Prepared::Done(BlockPointer::Hole(Hole { lsize, kind: spec.kind, level: spec.level, birth }));
    }
    // Less than an eighth saved is not worth decompressing for.
    let worthwhile = (lsize.0 - lsize.0 / 8) as usize;
    let mut out = IoBuf::scratch(worthwhile);
    let Some(len) = codec::compress::compress(compression, &data, &mut out) else { return as_it_is(data) };
    if rules.embed && len <= Embedded::PAYLOAD && spec.level == 0 && !spec.kind.has_fill() {
        let mut payload = [0; Embedded::PAYLOAD];
        payload[..len].copy_from_slice(&out[..len]);
        return Prepared::Done(BlockPointer::Embedded(Embedded {
            payload,
            etype: EmbeddedKind::Data,
            lsize,
            psize: Psize(len as u64),
            compression,
            kind: spec.kind,
            level: spec.level,
            birth: spec.txg,
            endian: Endian::NATIVE,
        }));
    }
    let psize = (len as u64).next_multiple_of(rules.min_alloc);
    if psize >= lsize.0 || psize > out.len() as u64 {
        return as_it_is(data);
    }
    out[len..psize as usize].fill(0);
    out.truncate(psize as usize);
    Prepared::Place { data: out.freeze(), psize: Psize(psize), compression }
}

/// Whether preparing this block takes longer than a hand-off to another core, which costs both cores some 20 us where it has
/// to be woken. Lz4 takes 10 us for 16K of dnodes, and passes over zeros at the end.
pub(crate) fn is_heavy(data: &[u8], spec: &WriteSpec) -> bool {
    if spec.compression == Compression::Off || data.len() < 8 << 10 {
        return false;
    }
    let is_metadata = spec.level > 0 || spec.kind.is_metadata();
    !(spec.compression == Compression::Lz4 && is_metadata && codec::filled(data) <= 16 << 10)
}
