//! From 128 bytes to one of the kinds of pointer.

use super::{BlockPointer, Crypt, Embedded, EmbeddedKind, Hole, Plain};
use crate::MAX_BLOCK_SIZE;
use crate::bytes::{Reader, bits};
use crate::dva::Dva;
use crate::object_type::ObjectType;
use units::{Checksum, Compression, Endian, Error, Lsize, Psize, Result, SECTOR_SHIFT, Txg};

/// The properties word, by field.
struct Prop(u64);

impl Prop {
    fn lsize(&self) -> Lsize {
        Lsize((bits(self.0, 0, 16) + 1) << SECTOR_SHIFT)
    }

    fn psize(&self) -> Psize {
        Psize((bits(self.0, 16, 16) + 1) << SECTOR_SHIFT)
    }

    fn embedded_lsize(&self) -> Lsize {
        Lsize(bits(self.0, 0, 25) + 1)
    }

    fn embedded_psize(&self) -> Psize {
        Psize(bits(self.0, 25, 7) + 1)
    }

    fn compression(&self) -> Result<Compression> {
        let code = bits(self.0, 32, 7) as u8;
        Compression::from_code(code).ok_or_else(|| corrupt("compression", code))
    }

    fn is_embedded(&self) -> bool {
        bits(self.0, 39, 1) == 1
    }

    /// In a plain pointer.
    fn checksum(&self) -> Result<Checksum> {
        let code = bits(self.0, 40, 8) as u8;
        Checksum::from_code(code).ok_or_else(|| corrupt("checksum", code))
    }

    /// In an embedded pointer, at the place of the checksum.
    fn etype(&self) -> Result<EmbeddedKind> {
        match bits(self.0, 40, 8) as u8 {
            0 => Ok(EmbeddedKind::Data),
            1 => Ok(EmbeddedKind::Reserved),
            2 => Ok(EmbeddedKind::Redacted),
            code => Err(corrupt("embedded type", code)),
        }
    }

    fn kind(&self) -> Result<ObjectType> {
        let kind = ObjectType(bits(self.0, 48, 8) as u8);
        if kind.is_valid() { Ok(kind) } else { Err(corrupt("object type", kind.0)) }
    }

    fn level(&self) -> u8 {
        bits(self.0, 56, 5) as u8
    }

    fn uses_crypt(&self) -> bool {
        bits(self.0, 61, 1) == 1
    }

    fn is_dedup(&self) -> bool {
        bits(self.0, 62, 1) == 1
    }

    fn endian(&self) -> Endian {
        if bits(self.0, 63, 1) == 1 { Endian::Little } else { Endian::Big }
    }
}

#[cold]
fn corrupt(field: &str, code: u8) -> Error {
    Error::corrupt(format!("block pointer: unknown {field} {code}"))
}

fn check_size(name: &str, size: u64) -> Result<()> {
    if size > MAX_BLOCK_SIZE {
        return Err(Error::corrupt(format!("block pointer: {name} of {size} bytes exceeds 16 MiB")));
    }
    Ok(())
}

impl BlockPointer {
    /// `bytes` are the 128 of one pointer, in the order of the block they were found in.
    pub fn from_bytes(bytes: &[u8], endian: Endian) -> Result<BlockPointer> {
        // Most of an indirect block of a small or sparse object.
        if bytes.first_chunk() == Some(&[0; BlockPointer::SIZE]) {
            return Ok(BlockPointer::HOLE);
        }
        BlockPointer::decode(&mut Reader::new(bytes, endian, "block pointer"))
    }

    /// All the pointers of an indirect block, in turn; a bad one is an error in its place.
    pub fn all_in(block: &[u8], endian: Endian) -> impl Iterator<Item = Result<BlockPointer>> {
        let (whole, _) = block.as_chunks::<{ BlockPointer::SIZE }>();
        whole.iter().map(move |bytes| BlockPointer::from_bytes(bytes, endian))
    }

    /// How many blocks are below a pointer in our byte order, or `None` for a hole: all that the sum over an indirect block
    /// needs, at a fraction of what decoding costs.
    pub fn fill_in(bytes: &[u8; BlockPointer::SIZE]) -> Result<Option<u64>> {
        // Most of a block that has few: holes that were never written.
        if *bytes == [0; BlockPointer::SIZE] {
            return Ok(None);
        }
        let words: [u64; 16] = Reader::new(bytes, Endian::NATIVE, "block pointer").u64s()?;
        let prop = Prop(words[6]);
        Ok(if prop.is_embedded() {
            Some(1)
        } else if words[0] == 0 && words[1] == 0 {
            None
        } else if prop.uses_crypt() {
            // Half of the word may be something else.
            Some(decode_plain(&words, &prop)?.fill)
        } else {
            Some(words[11])
        })
    }

    pub fn decode(r: &mut Reader<'_>) -> Result<BlockPointer> {
        let words: [u64; 16] = r.u64s()?;
        let prop = Prop(words[6]);
        if prop.is_embedded() {
            return decode_embedded(&words, &prop).map(BlockPointer::Embedded);
        }
        if words[0] == 0 && words[1] == 0 {
            return decode_hole(&words, &prop).map(BlockPointer::Hole);
        }
        decode_plain(&words, &prop).map(BlockPointer::Plain)
    }
}

fn decode_hole(words: &[u64; 16], prop: &Prop) -> Result<Hole> {
    check_size("lsize", prop.lsize().0)?;
    Ok(Hole { lsize: prop.lsize(), kind: prop.kind()?, level: prop.level(), birth: Txg(words[10]) })
}

fn decode_embedded(words: &[u64; 16], prop: &Prop) -> Result<Embedded> {
    let etype = prop.etype()?;
    // A redacted pointer has neither size nor payload, and the bits of both are meaningless.
    let (lsize, psize) = match etype {
        EmbeddedKind::Data => (prop.embedded_lsize(), prop.embedded_psize()),
        _ => (Lsize(0), Psize(0)),
    };
    check_size("lsize", lsize.0)?;
    if psize.0 > Embedded::PAYLOAD as u64 {
        return Err(Error::corrupt(format!("block pointer: {} embedded bytes do not fit 112", psize.0)));
    }
    let compression = match etype {
        EmbeddedKind::Data => prop.compression()?,
        _ => prop.compression().unwrap_or(Compression::Off),
    };
    Ok(Embedded {
        payload: gather_payload(words),
        etype,
        lsize,
        psize,
        compression,
        kind: prop.kind()?,
        level: prop.level(),
        birth: Txg(words[10]),
        endian: prop.endian(),
    })
}

/// Whether word `index` of an embedded pointer carries payload: all but properties and birth.
pub(super) fn carries_payload(index: usize) -> bool {
    index != 6 && index != 10
}

fn gather_payload(words: &[u64; 16]) -> [u8; Embedded::PAYLOAD] {
    let mut payload = [0; Embedded::PAYLOAD];
    let carriers = words.iter().enumerate().filter(|(i, _)| carries_payload(*i));
    for (chunk, (_, word)) in payload.as_chunks_mut::<8>().0.iter_mut().zip(carriers) {
        *chunk = word.to_le_bytes();
    }
    payload
}

fn decode_plain(words: &[u64; 16], prop: &Prop) -> Result<Plain> {
    let &[d0, d1, d2, d3, d4, d5, _, prop2, _, physical_birth, birth, fill, c0, c1, c2, c3] = words;
    let (kind, level) = (prop.kind()?, prop.level());
    let crypt = prop.uses_crypt().then(|| match (level, kind.is_encrypted()) {
        (0, true) => Crypt::Encrypted { salt: d4, iv1: d5, iv2: (fill >> 32) as u32 },
        (0, false) => Crypt::Authenticated,
        _ => Crypt::IndirectMac,
    });
    let is_encrypted = matches!(crypt, Some(Crypt::Encrypted { .. }));
    let third = if is_encrypted { Dva::EMPTY } else { Dva::from_words([d4, d5]) };
    let dvas = [Dva::from_words([d0, d1]), Dva::from_words([d2, d3]), third];
    if dvas[0].asize.0 == 0 {
        return Err(Error::corrupt("block pointer: its first copy has no size"));
    }
    check_size("lsize", prop.lsize().0)?;
    check_size("psize", prop.psize().0)?;
    Ok(Plain {
        dvas,
        lsize: prop.lsize(),
        psize: prop.psize(),
        compression: prop.compression()?,
        checksum_kind: prop.checksum()?,
        kind,
        level,
        birth: Txg(birth),
        physical_birth: Txg(physical_birth),
        fill: if is_encrypted { bits(fill, 0, 32) } else { fill },
        checksum: [c0, c1, c2, c3],
        endian: prop.endian(),
        dedup: prop.is_dedup(),
        rewritten: prop2 >> 63 == 1,
        crypt,
    })
}
