use super::*;
use crate::blkptr::tests::any_pointer;
use crate::testing::{Numbers, ORDERS, assault, check_round_trip};

pub(crate) fn any_dnode(n: &mut Numbers, slots_max: u64) -> DnodePhys {
    let pointers = n.below(3) as usize + 1;
    let slots = n.below(slots_max) as usize + 1;
    let has_spill = n.flag() && DnodePhys::bonus_max(slots, pointers, false) >= 128;
    let mut bonus = vec![0; n.below(DnodePhys::bonus_max(slots, pointers, has_spill) as u64 + 1) as usize];
    n.fill(&mut bonus);
    let spill = if has_spill { DnodeFlags::SPILL_BLKPTR } else { DnodeFlags::default() };
    let mut dnode = DnodePhys {
        kind: n.pick(&[ObjectType::ZVOL, ObjectType::DNODE, ObjectType::ZAP_METADATA]),
        indirect_shift: n.pick(&[10, 12, 17]),
        levels: n.below(12) as u8 + 1,
        bonus_kind: n.pick(&[
            ObjectType::NONE,
            ObjectType::DSL_DIR,
            ObjectType::SA,
            ObjectType::UINT32_METADATA,
        ]),
        checksum: n.next() as u8,
        compression: n.next() as u8,
        flags: DnodeFlags(n.next() as u8).without(DnodeFlags::SPILL_BLKPTR).with(spill),
        data_block_sectors: n.below(32768) as u16 + 1,
        extra_slots: slots as u8 - 1,
        max_block_id: 0,
        used: n.bits(64),
        blkptrs: (0..pointers).map(|_| any_pointer(n)).collect(),
        bonus,
        spill: has_spill.then(|| any_pointer(n)),
    };
    dnode.max_block_id = n.bits(64) % reach(&dnode, pointers);
    dnode
}

/// Of an object set.
pub(crate) fn any_meta_dnode(n: &mut Numbers) -> DnodePhys {
    let mut dnode = any_dnode(n, 1);
    (dnode.kind, dnode.data_block_sectors) = (ObjectType::DNODE, (DNODE_BLOCK_SIZE / DNODE_SIZE) as u16);
    dnode.max_block_id %= reach(&dnode, dnode.blkptrs.len());
    dnode
}

#[test]
fn every_dnode_survives_the_round_trip_in_both_orders() {
    let mut n = Numbers(3);
    for _ in 0..500 {
        let dnode = any_dnode(&mut n, 32);
        check_round_trip(&dnode, dnode.size(), DnodePhys::encode, DnodePhys::decode);
    }
}

/// A last block of 2^60 in an object of one level kept a walk over its blocks busy for ever.
#[test]
fn a_last_block_that_the_levels_do_not_reach_is_refused() {
    let mut dnode = any_dnode(&mut Numbers(5), 1);
    (dnode.indirect_shift, dnode.levels, dnode.data_block_sectors) = (10, 2, 1);
    let reach = 8 * dnode.blkptrs.len() as u64;
    let read = |max| {
        let dnode = DnodePhys { max_block_id: max, ..dnode.clone() };
        DnodePhys::from_bytes(&dnode.to_bytes(Endian::Little), Endian::Little)
    };
    assert!(read(reach - 1).is_ok());
    assert!(read(reach).unwrap_err().to_string().contains("which 2 levels do not reach"));
    assert!(read(u64::MAX).is_err());
}

#[test]
fn fields_stand_where_they_are_drawn() {
    let mut n = Numbers(4);
    let mut dnode = any_dnode(&mut n, 1);
    dnode.blkptrs = vec![BlockPointer::HOLE];
    dnode.flags = DnodeFlags::SPILL_BLKPTR.with(DnodeFlags::USED_BYTES);
    dnode.spill = Some(any_pointer(&mut n));
    dnode.bonus_kind = ObjectType::DSL_DIR;
    dnode.bonus = [1u64.to_ne_bytes(), 2u64.to_ne_bytes()].concat();
    for endian in ORDERS {
        let bytes = dnode.to_bytes(endian);
        let spill = dnode.spill.as_ref().unwrap();
        assert_eq!(bytes.len(), 512);
        assert_eq!(bytes[..4], [dnode.kind.0, dnode.indirect_shift, dnode.levels, 1]);
        assert_eq!(bytes[7], 5);
        assert_eq!(bytes[512 - 128..], spill.to_bytes(endian));
        let mut bonus = Reader::new(&bytes[192..208], endian, "bonus");
        assert_eq!((bonus.u64().unwrap(), bonus.u64().unwrap()), (1, 2), "the bonus is in the block's order");
    }
}

#[test]
fn a_free_slot_is_zeros_and_is_read_by_its_type_alone() {
    assert_eq!(DnodePhys::free().to_bytes(Endian::Little), [0; 512]);
    let mut junk = [0xff; 512];
    junk[0] = 0;
    assert_eq!(DnodePhys::from_bytes(&junk, Endian::Little).unwrap(), DnodePhys::free());
}

#[test]
fn what_does_not_fit_a_dnode_is_refused_by_name() {
    let mut n = Numbers(5);
    let mut dnode = any_dnode(&mut n, 1);
    dnode.flags = DnodeFlags::default();
    dnode.spill = None;
    dnode.blkptrs = vec![BlockPointer::HOLE; 3];
    dnode.bonus.clear();
    dnode.max_block_id = 0;
    let good = dnode.to_bytes(Endian::Little);
    for (at, value, words) in [
        (0, 99, "unknown object type 99"),
        (1, 6, "indirect blocks of 2^6"),
        (2, 13, "13 levels"),
        (3, 4, "4 block pointers"),
        (4, 99, "unknown bonus type 99"),
        (9, 0xff, "data blocks of"),
        (10, 65, "a bonus of 65 bytes where 64 fit"),
        (12, 1, "needs 960 bytes"),
        (12, 32, "33 slots"),
    ] {
        let mut bad = good.clone();
        bad[at] = value;
        let e = DnodePhys::from_bytes(&bad, Endian::Little).unwrap_err().to_string();
        assert!(e.contains(words), "{e}");
    }
}

#[test]
fn spans_grow_by_the_pointers_of_an_indirect_block() {
    let dnode = DnodePhys { indirect_shift: 17, levels: 6, ..DnodePhys::default() };
    assert_eq!((dnode.span(0), dnode.span(1), dnode.span(2)), (Some(1), Some(1024), Some(1 << 20)));
    assert_eq!(dnode.span(7), None);
    assert_eq!(dnode.pointers_per_indirect(), 1024);
}

#[test]
fn hostile_bytes_never_panic() {
    let mut n = Numbers(6);
    for _ in 0..4 {
        let good = any_dnode(&mut n, 4).to_bytes(Endian::Little);
        assault(&good, |bytes, endian| {
            if let Ok(dnode) = DnodePhys::from_bytes(bytes, endian) {
                let _ = (dnode.used_bytes(), dnode.span(dnode.levels));
                dnode.to_bytes(endian);
            }
        });
    }
}
