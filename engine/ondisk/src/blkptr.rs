//! The pointer to a block: where its copies are, what it holds, when it was born, and its checksum.
//!
//! 128 bytes, sixteen words, in the byte order of the block that holds the pointer. Four kinds share the space:
//!
//! ```text
//!   word    plain                      encrypted            embedded             hole
//!   0  1    DVA 0                      DVA 0                payload              0
//!   2  3    DVA 1                      DVA 1                payload              -
//!   4  5    DVA 2                      salt, IV1            payload              -
//!   6       properties                 properties           properties           properties
//!   7       R, padding                 R, padding           payload              -
//!   8       padding                    padding              payload              -
//!   9       physical birth             physical birth       payload              -
//!   a       logical birth              logical birth        logical birth        logical birth
//!   b       fill                       IV2 | fill (32)      payload              -
//!   c  d    checksum                   checksum             payload              -
//!   e  f    checksum                   MAC                  payload              -
//! ```
//!
//! ```text
//!   word 6   63 62 61  60-56  55-48   47-40   39  38-32   31-16   15-0
//!           | B| D| X| level | type | cksum | E | comp | psize | lsize |     sizes in sectors, less one
//!           | B| D| X| level | type | etype | 1 | comp | psize (31-25) | lsize (24-0) |   in bytes, less one
//! ```
//!
//! B: the block is little endian (the *pointer* is in the order of its own block). D: dedup. X: encryption is
//! involved, see [`Crypt`]. E: embedded. R: rewritten, so that the physical birth says when it was allocated.
//!
//! A hole has no first DVA and is not embedded; it reads as zeros. One that was punched keeps its size, type,
//! level and birth (feature `hole_birth`); one never written is all zero.
//!
//! Decoding rejects codes and sizes that no version of the format writes; it does not know the pool, so it cannot
//! judge vdevs, offsets and births.

mod decode;
mod display;
mod encode;
#[cfg(test)]
pub(crate) mod tests;

use crate::dva::Dva;
use crate::object_type::ObjectType;
use units::{Asize, Checksum, Compression, Endian, Lsize, Psize, SECTOR, Txg};

pub const BLKPTR_SHIFT: u32 = 7;
pub const BLKPTR_SIZE: usize = 1 << BLKPTR_SHIFT;

/// See the module. All-zero bytes are [`BlockPointer::HOLE`].
#[derive(Clone, PartialEq, Eq)]
pub enum BlockPointer {
    Hole(Hole),
    Plain(Plain),
    Embedded(Embedded),
}

/// Nothing is stored: reads as `lsize` zeros. Other fields that a hole may still carry mean nothing and are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// On disk sizes are stored less one, so a hole never written claims one sector; trust the dnode instead.
    pub lsize: Lsize,
    pub kind: ObjectType,
    pub level: u8,
    pub birth: Txg,
}

/// One to three copies of a block on the devices.
#[derive(Clone, PartialEq, Eq)]
pub struct Plain {
    /// The copies, all equal; unused ones are empty and last. Two at most when [`Crypt::Encrypted`].
    pub dvas: [Dva; 3],
    pub lsize: Lsize,
    pub psize: Psize,
    pub compression: Compression,
    pub checksum_kind: Checksum,
    pub kind: ObjectType,
    /// 0 for data, else how many levels of block pointers lie below.
    pub level: u8,
    /// When the contents changed: what snapshots, send and free decide by.
    pub birth: Txg,
    /// When the bytes were written, if at another time than `birth` (dedup, cloning, device removal); else 0.
    pub physical_birth: Txg,
    /// How many blocks that are no holes lie below; for a block of dnodes, how many are in use.
    pub fill: u64,
    /// Of encrypted and authenticated blocks the last two words are the MAC.
    pub checksum: [u64; 4],
    /// The byte order of the block's contents.
    pub endian: Endian,
    pub dedup: bool,
    /// Moved by `zfs rewrite`: it was allocated at `physical_birth`, although its contents are older.
    pub rewritten: bool,
    pub crypt: Option<Crypt>,
}

/// What the X bit of a pointer asks for, by type and level of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crypt {
    /// Level 0 of an encrypted type: ciphertext. Salt and IV stand in the third DVA and in the upper half of fill.
    Encrypted { salt: u64, iv1: u64, iv2: u32 },
    /// Level 0 of another type: plain, with a MAC.
    Authenticated,
    /// Level 1 and up: the MAC words hold a checksum over the MACs below.
    IndirectMac,
}

/// The contents themselves, up to 112 compressed bytes, in place of a pointer to them.
#[derive(Clone, PartialEq, Eq)]
pub struct Embedded {
    /// Words 0-5, 7-9 and b-f, each little endian whatever the order of the pointer; the first `psize` bytes count.
    pub payload: [u8; Embedded::PAYLOAD],
    pub etype: EmbeddedKind,
    pub lsize: Lsize,
    pub psize: Psize,
    pub compression: Compression,
    pub kind: ObjectType,
    pub level: u8,
    pub birth: Txg,
    pub endian: Endian,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EmbeddedKind {
    Data = 0,
    Reserved = 1,
    /// No data: a redacted send stream left this block out.
    Redacted = 2,
}

impl Embedded {
    pub const PAYLOAD: usize = 112;

    /// The compressed contents.
    pub fn data(&self) -> &[u8] {
        self.payload.get(..self.psize.0 as usize).expect("a pointer embeds at most 112 bytes")
    }
}

impl Hole {
    /// Never written: 128 zero bytes.
    pub const NEVER_WRITTEN: Hole =
        Hole { lsize: Lsize(SECTOR), kind: ObjectType::NONE, level: 0, birth: Txg::NONE };
}

impl Default for BlockPointer {
    fn default() -> BlockPointer {
        BlockPointer::HOLE
    }
}

impl Plain {
    /// The copies there are.
    pub fn copies(&self) -> impl Iterator<Item = &Dva> {
        self.dvas.iter().filter(|dva| !dva.is_empty())
    }

    pub fn is_gang(&self) -> bool {
        self.dvas[0].gang
    }

    /// When the bytes were written; caches and scrubs identify a block by it and its first DVA.
    pub fn resolved_physical_birth(&self) -> Txg {
        if self.physical_birth == Txg::NONE { self.birth } else { self.physical_birth }
    }

    /// When the block was allocated: what decides whether a snapshot holds its space.
    pub fn allocation_birth(&self) -> Txg {
        if self.rewritten { self.resolved_physical_birth() } else { self.birth }
    }

    /// Bytes taken from the devices by all copies.
    pub fn asize(&self) -> Asize {
        Asize(self.dvas.iter().map(|dva| dva.asize.bytes()).sum())
    }
}

impl BlockPointer {
    pub const SIZE: usize = BLKPTR_SIZE;
    /// Never written.
    pub const HOLE: BlockPointer = BlockPointer::Hole(Hole::NEVER_WRITTEN);

    pub fn is_hole(&self) -> bool {
        matches!(self, BlockPointer::Hole(_))
    }

    pub fn is_embedded(&self) -> bool {
        matches!(self, BlockPointer::Embedded(_))
    }

    pub fn is_redacted(&self) -> bool {
        matches!(self, BlockPointer::Embedded(e) if e.etype == EmbeddedKind::Redacted)
    }

    pub fn is_gang(&self) -> bool {
        self.as_plain().is_some_and(Plain::is_gang)
    }

    pub fn is_dedup(&self) -> bool {
        self.as_plain().is_some_and(|p| p.dedup)
    }

    /// The contents are ciphertext.
    pub fn is_encrypted(&self) -> bool {
        self.as_plain().is_some_and(|p| matches!(p.crypt, Some(Crypt::Encrypted { .. })))
    }

    pub fn is_metadata(&self) -> bool {
        self.level() > 0 || self.kind().is_metadata()
    }

    pub fn as_plain(&self) -> Option<&Plain> {
        match self {
            BlockPointer::Plain(plain) => Some(plain),
            _ => None,
        }
    }

    pub fn as_embedded(&self) -> Option<&Embedded> {
        match self {
            BlockPointer::Embedded(embedded) => Some(embedded),
            _ => None,
        }
    }

    pub fn lsize(&self) -> Lsize {
        match self {
            BlockPointer::Hole(hole) => hole.lsize,
            BlockPointer::Plain(plain) => plain.lsize,
            BlockPointer::Embedded(embedded) => embedded.lsize,
        }
    }

    /// Zero when nothing is on the devices.
    pub fn psize(&self) -> Psize {
        self.as_plain().map_or(Psize(0), |p| p.psize)
    }

    /// Zero when nothing is on the devices.
    pub fn asize(&self) -> Asize {
        self.as_plain().map_or(Asize(0), Plain::asize)
    }

    pub fn level(&self) -> u8 {
        match self {
            BlockPointer::Hole(hole) => hole.level,
            BlockPointer::Plain(plain) => plain.level,
            BlockPointer::Embedded(embedded) => embedded.level,
        }
    }

    pub fn kind(&self) -> ObjectType {
        match self {
            BlockPointer::Hole(hole) => hole.kind,
            BlockPointer::Plain(plain) => plain.kind,
            BlockPointer::Embedded(embedded) => embedded.kind,
        }
    }

    /// The logical birth: when the contents changed.
    pub fn birth(&self) -> Txg {
        match self {
            BlockPointer::Hole(hole) => hole.birth,
            BlockPointer::Plain(plain) => plain.birth,
            BlockPointer::Embedded(embedded) => embedded.birth,
        }
    }

    /// When the bytes were written; [`Txg::NONE`] if none were.
    pub fn physical_birth(&self) -> Txg {
        self.as_plain().map_or(Txg::NONE, Plain::resolved_physical_birth)
    }

    /// When it was allocated; differs from [`BlockPointer::birth`] only for rewritten blocks.
    pub fn allocation_birth(&self) -> Txg {
        self.as_plain().map_or(self.birth(), Plain::allocation_birth)
    }

    pub fn fill(&self) -> u64 {
        match self {
            BlockPointer::Hole(_) => 0,
            BlockPointer::Plain(plain) => plain.fill,
            BlockPointer::Embedded(_) => 1,
        }
    }

    /// The byte order of the contents. Zeros have none, so a hole answers with ours.
    pub fn endian(&self) -> Endian {
        match self {
            BlockPointer::Hole(_) => Endian::NATIVE,
            BlockPointer::Plain(plain) => plain.endian,
            BlockPointer::Embedded(embedded) => embedded.endian,
        }
    }

    pub fn compression(&self) -> Compression {
        match self {
            BlockPointer::Hole(_) => Compression::Off,
            BlockPointer::Plain(plain) => plain.compression,
            BlockPointer::Embedded(embedded) => embedded.compression,
        }
    }

    /// What the block's contents are verified by; nothing for holes and embedded blocks.
    pub fn checksum_kind(&self) -> Checksum {
        self.as_plain().map_or(Checksum::Off, |p| p.checksum_kind)
    }

    /// The copies on the devices.
    pub fn dvas(&self) -> &[Dva] {
        let Some(plain) = self.as_plain() else { return &[] };
        let copies = plain.dvas.iter().take_while(|dva| !dva.is_empty()).count();
        plain.dvas.get(..copies).unwrap_or_default()
    }
}
