//! From a pointer to its 128 bytes.

use super::decode::carries_payload;
use super::{BlockPointer, Crypt, Embedded, EmbeddedKind, Hole, Plain};
use crate::bytes::{Writer, place};
use units::{Endian, SECTOR_SHIFT};

impl BlockPointer {
    pub fn to_bytes(&self, endian: Endian) -> [u8; BlockPointer::SIZE] {
        let mut bytes = [0; BlockPointer::SIZE];
        self.encode(&mut Writer::new(&mut bytes, endian));
        bytes
    }

    pub fn encode(&self, w: &mut Writer<'_>) {
        w.u64s(&match self {
            BlockPointer::Hole(hole) => hole_words(hole),
            BlockPointer::Plain(plain) => plain_words(plain),
            BlockPointer::Embedded(embedded) => embedded_words(embedded),
        });
    }
}

/// A size in bytes as the field of sectors less one.
fn sectors_less_one(bytes: u64) -> u64 {
    debug_assert!(bytes > 0 && bytes.is_multiple_of(1 << SECTOR_SHIFT), "block of {bytes} bytes");
    (bytes >> SECTOR_SHIFT) - 1
}

fn byte_order(endian: Endian) -> u64 {
    place((endian == Endian::Little).into(), 63, 1)
}

fn hole_words(hole: &Hole) -> [u64; 16] {
    let mut words = [0; 16];
    words[6] = place(sectors_less_one(hole.lsize.0), 0, 16)
        | place(hole.kind.0.into(), 48, 8)
        | place(hole.level.into(), 56, 5);
    words[10] = hole.birth.0;
    words
}

fn embedded_words(e: &Embedded) -> [u64; 16] {
    let sizes = match e.etype {
        EmbeddedKind::Data => place(e.lsize.0 - 1, 0, 25) | place(e.psize.0 - 1, 25, 7),
        _ => 0,
    };
    let mut words = [0; 16];
    let carriers = words.iter_mut().enumerate().filter(|(i, _)| carries_payload(*i));
    for (chunk, (_, word)) in e.payload.as_chunks::<8>().0.iter().zip(carriers) {
        *word = u64::from_le_bytes(*chunk);
    }
    words[6] = sizes
        | place(e.compression.code().into(), 32, 7)
        | place(1, 39, 1)
        | place(e.etype as u64, 40, 8)
        | place(e.kind.0.into(), 48, 8)
        | place(e.level.into(), 56, 5)
        | byte_order(e.endian);
    words[10] = e.birth.0;
    words
}

fn plain_words(p: &Plain) -> [u64; 16] {
    let [d0, d1] = p.dvas[0].to_words();
    let [d2, d3] = p.dvas[1].to_words();
    let ([d4, d5], fill) = match p.crypt {
        Some(Crypt::Encrypted { salt, iv1, iv2 }) => {
            ([salt, iv1], place(p.fill, 0, 32) | place(iv2.into(), 32, 32))
        }
        _ => (p.dvas[2].to_words(), p.fill),
    };
    let prop = place(sectors_less_one(p.lsize.0), 0, 16)
        | place(sectors_less_one(p.psize.0), 16, 16)
        | place(p.compression.code().into(), 32, 7)
        | place(p.checksum_kind.code().into(), 40, 8)
        | place(p.kind.0.into(), 48, 8)
        | place(p.level.into(), 56, 5)
        | place(p.crypt.is_some().into(), 61, 1)
        | place(p.dedup.into(), 62, 1)
        | byte_order(p.endian);
    let prop2 = place(p.rewritten.into(), 63, 1);
    let [c0, c1, c2, c3] = p.checksum;
    [d0, d1, d2, d3, d4, d5, prop, prop2, 0, p.physical_birth.0, p.birth.0, fill, c0, c1, c2, c3]
}
