use super::*;
use crate::testing::{Numbers, assault, check_round_trip};
use units::{Sectors, VdevId};

pub(crate) fn any_dva(n: &mut Numbers) -> Dva {
    Dva {
        vdev: VdevId(n.bits(24) as u32),
        asize: Sectors(n.bits(24).max(1)),
        offset: Sectors(n.bits(63)),
        gang: n.flag(),
    }
}

fn any_size(n: &mut Numbers) -> u64 {
    (n.below(32768) + 1) * SECTOR
}

fn any_compression(n: &mut Numbers) -> Compression {
    use Compression::*;
    n.pick(&[Off, Lzjb, Gzip(1), Gzip(9), Zle, Lz4, Zstd(None)])
}

fn any_kind(n: &mut Numbers) -> ObjectType {
    n.pick(&[
        ObjectType::NONE,
        ObjectType::DNODE,
        ObjectType::ZVOL,
        ObjectType::ZAP_METADATA,
        ObjectType::SPACE_MAP,
    ])
}

fn any_endian(n: &mut Numbers) -> Endian {
    n.pick(&crate::testing::ORDERS)
}

pub(crate) fn any_plain(n: &mut Numbers) -> Plain {
    let (kind, level) = (any_kind(n), n.pick(&[0, 1, 31]));
    let mut dvas = [any_dva(n), Dva::EMPTY, Dva::EMPTY];
    for copy in &mut dvas[1..n.pick(&[1, 2, 3])] {
        *copy = any_dva(n);
    }
    let mut fill = n.bits(64);
    let crypt = n.flag().then(|| match (level, kind.is_encrypted()) {
        (0, true) => {
            (dvas[2], fill) = (Dva::EMPTY, n.bits(32));
            Crypt::Encrypted { salt: n.next(), iv1: n.next(), iv2: n.next() as u32 }
        }
        (0, false) => Crypt::Authenticated,
        _ => Crypt::IndirectMac,
    });
    Plain {
        dvas,
        lsize: Lsize(any_size(n)),
        psize: Psize(any_size(n)),
        compression: any_compression(n),
        checksum_kind: n.pick(&[Checksum::Off, Checksum::Fletcher4, Checksum::Zilog2, Checksum::Blake3]),
        kind,
        level,
        birth: Txg(n.bits(64)),
        physical_birth: Txg(n.bits(64)),
        fill,
        checksum: [n.next(), n.next(), n.next(), n.next()],
        endian: any_endian(n),
        dedup: n.flag(),
        rewritten: n.flag(),
        crypt,
    }
}

pub(crate) fn any_pointer(n: &mut Numbers) -> BlockPointer {
    match n.below(4) {
        0 => BlockPointer::Hole(Hole {
            lsize: Lsize(any_size(n)),
            kind: any_kind(n),
            level: n.below(32) as u8,
            birth: Txg(n.bits(64)),
        }),
        1 => {
            let mut payload = [0; 112];
            n.fill(&mut payload);
            BlockPointer::Embedded(Embedded {
                payload,
                etype: EmbeddedKind::Data,
                lsize: Lsize(n.below(16 << 20) + 1),
                psize: Psize(n.below(112) + 1),
                compression: any_compression(n),
                kind: any_kind(n),
                level: n.below(32) as u8,
                birth: Txg(n.bits(64)),
                endian: any_endian(n),
            })
        }
        _ => BlockPointer::Plain(any_plain(n)),
    }
}

#[test]
fn every_pointer_survives_the_round_trip_in_both_orders() {
    let mut n = Numbers(1);
    for _ in 0..2000 {
        check_round_trip(&any_pointer(&mut n), 128, BlockPointer::encode, BlockPointer::decode);
    }
}

#[test]
fn the_sum_over_an_indirect_block_is_that_of_its_decoded_pointers() {
    let mut n = Numbers(3);
    for _ in 0..2000 {
        let bp = any_pointer(&mut n);
        let expected = (!bp.is_hole()).then(|| bp.fill());
        assert_eq!(BlockPointer::fill_in(&bp.to_bytes(Endian::NATIVE)).unwrap(), expected, "{bp:?}");
    }
}

#[test]
fn a_hole_never_written_is_all_zero() {
    assert_eq!(BlockPointer::HOLE.to_bytes(Endian::Little), [0; 128]);
    assert_eq!(BlockPointer::from_bytes(&[0; 128], Endian::Big).unwrap(), BlockPointer::default());
}

fn example() -> Plain {
    let at = |offset| Dva { vdev: VdevId(0), asize: Sectors(8), offset: Sectors(offset), gang: false };
    Plain {
        dvas: [at(0x2000), at(0x12000), at(0x22000)],
        lsize: Lsize(0x1000),
        psize: Psize(0x400),
        compression: Compression::Lz4,
        checksum_kind: Checksum::Fletcher4,
        kind: ObjectType::OBJSET,
        level: 0,
        birth: Txg(37),
        physical_birth: Txg(0),
        fill: 42,
        checksum: [1, 2, 3, 4],
        endian: Endian::Little,
        dedup: false,
        rewritten: false,
        crypt: None,
    }
}

#[test]
fn fields_stand_where_they_are_drawn() {
    let bytes = BlockPointer::Plain(example()).to_bytes(Endian::Little);
    let word = |i: usize| u64::from_le_bytes(bytes[i * 8..i * 8 + 8].try_into().unwrap());
    assert_eq!(word(6), 0x800b_070f_0001_0007);
    assert_eq!([word(9), word(10), word(11), word(12), word(15)], [0, 37, 42, 1, 4]);
}

#[test]
fn a_pointer_reads_as_zdb_writes_it() {
    assert_eq!(
        BlockPointer::Plain(example()).to_string(),
        "DVA[0]=<0:400000:1000> DVA[1]=<0:2400000:1000> DVA[2]=<0:4400000:1000> [L0 DMU objset] fletcher4 lz4 \
         unencrypted LE contiguous unique triple size=1000L/400P birth=37L/37P fill=42 \
         cksum=0000000000000001:0000000000000002:0000000000000003:0000000000000004"
    );
    assert_eq!(BlockPointer::HOLE.to_string(), "HOLE [L0 unallocated] size=200L birth=0L");
}

#[test]
fn the_salt_and_iv_of_an_encrypted_block_take_the_third_copy() {
    let mut plain = example();
    plain.kind = ObjectType::ZVOL;
    plain.dvas[2] = Dva::EMPTY;
    plain.crypt = Some(Crypt::Encrypted { salt: 0x11, iv1: 0x22, iv2: 0x33 });
    let bytes = BlockPointer::Plain(plain.clone()).to_bytes(Endian::Big);
    assert_eq!((bytes[39], bytes[47], bytes[91], bytes[95]), (0x11, 0x22, 0x33, 42));
    let back = BlockPointer::from_bytes(&bytes, Endian::Big).unwrap();
    assert!(back.is_encrypted());
    assert_eq!((back.dvas().len(), back.fill()), (2, 42));
    assert_eq!(back, BlockPointer::Plain(plain));
}

#[test]
fn a_rewritten_block_was_allocated_at_its_physical_birth() {
    let mut plain = example();
    plain.physical_birth = Txg(90);
    assert_eq!((plain.resolved_physical_birth(), plain.allocation_birth()), (Txg(90), Txg(37)));
    plain.rewritten = true;
    assert_eq!(plain.allocation_birth(), Txg(90));
}

#[test]
fn codes_nobody_writes_are_refused_by_name() {
    let good = BlockPointer::Plain(example()).to_bytes(Endian::Little);
    let refuse = |at: usize, value: u8, words: &str| {
        let mut bad = good;
        bad[at] = value;
        let e = BlockPointer::from_bytes(&bad, Endian::Little).unwrap_err().to_string();
        assert!(e.contains(words), "{e}");
    };
    refuse(48 + 4, 99, "unknown compression 99");
    refuse(48 + 5, 99, "unknown checksum 99");
    refuse(48 + 6, 99, "unknown object type 99");
    refuse(48 + 1, 0x80, "lsize of");
    refuse(0, 0, "no size");
}

#[test]
fn hostile_bytes_never_panic() {
    let mut n = Numbers(2);
    for _ in 0..8 {
        let good = any_pointer(&mut n).to_bytes(Endian::Little);
        assault(&good, |bytes, endian| {
            if let Ok(pointer) = BlockPointer::from_bytes(bytes, endian) {
                let _ = pointer.to_string();
                let _ = (pointer.asize(), pointer.fill(), pointer.dvas().len());
                pointer.to_bytes(endian);
            }
        });
    }
}
