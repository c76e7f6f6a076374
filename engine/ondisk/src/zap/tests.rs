use super::*;
use crate::bytes::{Reader, Writer};
use crate::testing::{Numbers, assault, check_round_trip};

fn any_chunk(n: &mut Numbers) -> LeafChunk {
    let mut bytes = [0; CHUNK_ARRAY_BYTES];
    n.fill(&mut bytes);
    match n.below(3) {
        0 => LeafChunk::Array(LeafArray { bytes, next: n.next() as u16 }),
        1 => LeafChunk::Free(LeafFree { next: n.next() as u16 }),
        _ => LeafChunk::Entry(LeafEntry {
            value_int_size: n.pick(&[1, 2, 4, 8]),
            next: n.next() as u16,
            name_chunk: n.next() as u16,
            name_len: n.next() as u16,
            value_chunk: n.next() as u16,
            value_count: n.next() as u16,
            differentiator: n.next() as u32,
            hash: n.next(),
        }),
    }
}

fn any_header(n: &mut Numbers) -> ZapHeader {
    ZapHeader {
        table: PointerTable {
            first_block: n.bits(64),
            blocks: n.bits(64),
            shift: n.below(63) + 1,
            next_first_block: n.bits(64),
            blocks_copied: n.bits(64),
        },
        free_block: n.bits(64),
        leaves: n.bits(64),
        entries: n.bits(64),
        salt: n.bits(64),
        normalization: n.bits(64),
        flags: ZapFlags(n.bits(64)),
    }
}

fn any_leaf(n: &mut Numbers) -> LeafHeader {
    LeafHeader {
        prefix: n.bits(64),
        prefix_len: n.below(65) as u16,
        free_chunks: n.next() as u16,
        entries: n.next() as u16,
        first_free: n.next() as u16,
        flags: n.next() as u8,
    }
}

fn decode_entry(r: &mut Reader<'_>) -> units::Result<MicroEntry> {
    MicroEntry::decode(r).map(Option::unwrap_or_default)
}

#[test]
fn all_structures_survive_the_round_trip_in_both_orders() {
    let mut n = Numbers(40);
    for _ in 0..300 {
        check_round_trip(&any_chunk(&mut n), CHUNK_SIZE, LeafChunk::encode, LeafChunk::decode);
        check_round_trip(&any_header(&mut n), ZapHeader::SIZE, ZapHeader::encode, ZapHeader::decode);
        check_round_trip(&any_leaf(&mut n), LEAF_HEADER_SIZE, LeafHeader::encode, LeafHeader::decode);
        let micro = MicroHeader { salt: n.next(), normalization: n.bits(64) };
        check_round_trip(&micro, MICRO_HEADER_SIZE, MicroHeader::encode, MicroHeader::decode);
        let name = vec![b'x'; 1 + n.below(49) as usize];
        let entry = MicroEntry { value: n.next(), differentiator: n.next() as u32, name };
        check_round_trip(&entry, MICRO_ENTRY_SIZE, MicroEntry::encode, decode_entry);
    }
}

#[test]
fn a_leaf_of_16_kib_has_638_chunks() {
    let g = LeafGeometry::new(14);
    assert_eq!((g.buckets(), g.chunks()), (512, 638));
    assert_eq!(g.chunk_offset(0), 48 + 1024);
    assert!(g.chunk_offset(638) <= 16384);
    assert_eq!(ZapHeader::embedded_shift(14), 10);
}

#[test]
fn the_first_word_tells_the_kind_of_block() {
    let word = |w: u64| w.to_le_bytes();
    assert_eq!(ZapBlock::of(&word(ZapBlock::MICRO), Endian::Little), Some(ZapBlock::Micro));
    assert_eq!(ZapBlock::of(&word(ZapBlock::HEADER), Endian::Little), Some(ZapBlock::Header));
    assert_eq!(ZapBlock::of(&word(7), Endian::Little), None);
    assert_eq!(ZapBlock::of(&[], Endian::Little), None);
}

#[test]
fn hostile_bytes_never_panic() {
    let mut n = Numbers(41);
    let mut good = [0; ZapHeader::SIZE + LEAF_HEADER_SIZE + CHUNK_SIZE + MICRO_ENTRY_SIZE];
    let mut w = Writer::new(&mut good, Endian::Little);
    any_header(&mut n).encode(&mut w);
    any_leaf(&mut n).encode(&mut w);
    any_chunk(&mut n).encode(&mut w);
    assault(&good, |bytes, endian| {
        let mut r = Reader::new(bytes, endian, "test");
        let _ = ZapHeader::decode(&mut r);
        let _ = LeafHeader::decode(&mut r);
        let _ = LeafChunk::decode(&mut r);
        let _ = MicroEntry::decode(&mut r);
        let _ = MicroHeader::decode(&mut Reader::new(bytes, endian, "test"));
    });
}
