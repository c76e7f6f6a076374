//! What OpenZFS wrote is read as its own debugger reads it, and written again to the same bytes.
//!
//! The files are parts of pools made by OpenZFS 2.3.9, with trailing zeros cut off: labels and uberblocks of several
//! pools, and blocks of the MOS of the pool `basic`. `*.label.txt` is what `zdb -l` says about the label.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "golden files are read from the source tree")]

use ondisk::{
    BlockPointer, DatasetFlags, DnodePhys, DslDatasetPhys, DslDirPhys, HistoryPhys, LabelLayout, NvList,
    ObjectType, ObjsetPhys, ObjsetSize, ObjsetType, SpaceAction, SpaceMapEntries, SpaceMapEntry, SpaceMapLog,
    SpaceMapPhys, Uberblock, UberblockRing, Writer, history,
};
use units::{Endian, Guid, ObjectId, Txg};

fn golden(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// With the zeros put back that were cut off.
fn golden_block(name: &str, size: usize) -> Vec<u8> {
    let mut block = golden(name);
    block.resize(size, 0);
    block
}

const LABELS: [&str; 9] =
    ["basic", "rz1-0", "mir2-0", "dr-0", "rzx-0", "rmv-0", "aux-cache", "aux-spare", "v1"];

#[test]
fn labels_read_as_zdb_reads_them_and_are_packed_to_the_same_bytes() {
    for name in LABELS {
        let raw = golden_block(&format!("{name}.label"), 112 << 10);
        let (list, used) = NvList::decode_prefix(&raw).unwrap();
        assert_eq!(list.encode(), raw[..used], "{name}");
        assert!(raw[used..].iter().all(|&b| b == 0), "{name}");
        assert_eq!(list.to_string(), String::from_utf8(golden(&format!("{name}.label.txt"))).unwrap());
    }
}

#[test]
fn a_label_answers_typed_questions() {
    let label = NvList::decode(&golden_block("rz1-0.label", 112 << 10)).unwrap();
    assert_eq!(label.str("name").unwrap(), "rz1");
    assert_eq!(label.txg("txg").unwrap(), Txg(42));
    let tree = label.list("vdev_tree").unwrap();
    assert_eq!((tree.str("type").unwrap(), tree.u64("nparity").unwrap()), ("raidz", 1));
    let paths: Vec<_> = tree.lists("children").unwrap().iter().map(|c| c.str("path").unwrap()).collect();
    assert_eq!(paths, ["/dev/p5", "/dev/p6", "/dev/p7"]);
    assert!(label.list("features_for_read").unwrap().is_flagged("com.delphix:hole_birth"));
}

#[test]
fn the_configuration_in_the_mos_is_packed_to_the_same_bytes() {
    let raw = golden_block("basic.config", 16 << 10);
    let (list, used) = NvList::decode_prefix(&raw).unwrap();
    assert_eq!(list.encode(), raw[..used]);
    assert_eq!(list.str("name").unwrap(), "basic");
}

#[test]
fn uberblocks_are_read_and_written_to_the_same_bytes() {
    for (name, txg, version, ashift, slot) in [
        ("basic", 50, 5000, 9, 50),
        ("rz1-0", 42, 5000, 9, 42),
        ("v1", 97, 1, 9, 97),
        ("dr-0", 39, 5000, 12, 7),
    ] {
        let raw = golden(&format!("{name}.uberblock"));
        let uberblock = Uberblock::from_slot(&raw).unwrap();
        assert_eq!((uberblock.txg, uberblock.version), (Txg(txg), version), "{name}");
        let mut back = [0; Uberblock::SIZE];
        uberblock.encode(&mut Writer::new(&mut back, Endian::Little));
        assert_eq!(back.as_slice(), raw, "{name}");
        // OpenZFS found this one in the slot we would look in.
        assert_eq!(UberblockRing::new(ashift).slot_of(uberblock.txg, false), slot, "{name}");
    }
}

#[test]
fn the_root_pointer_reads_as_zdb_writes_it() {
    let uberblock = Uberblock::from_slot(&golden("basic.uberblock")).unwrap();
    assert_eq!((uberblock.guid_sum, uberblock.timestamp), (5731430166871981600, 1795214271));
    assert_eq!(
        uberblock.root.to_string(),
        "DVA[0]=<0:3030c00:200> DVA[1]=<0:112a600:200> DVA[2]=<0:4019800:200> [L0 DMU objset] fletcher4 lz4 \
         unencrypted LE contiguous unique triple size=1000L/200P birth=50L/50P fill=67 \
         cksum=0000000719f51fb6:000002e2d30cc02f:000098fdb9c7bb9e:001587d654bbbfa8"
    );
}

#[test]
fn the_root_of_the_mos_is_read_and_written_to_the_same_bytes() {
    let raw = golden_block("basic.objset", 4096);
    let objset = ObjsetPhys::from_bytes(&raw, Endian::Little).unwrap();
    assert_eq!((objset.kind, objset.size), (ObjsetType::Meta, ObjsetSize::V3));
    let meta = &objset.meta_dnode;
    assert_eq!(
        (meta.kind, meta.levels, meta.max_block_id, meta.used_bytes()),
        (ObjectType::DNODE, 2, 3, 21504)
    );
    assert_eq!(objset.to_bytes(Endian::Little), raw);
}

#[test]
fn an_indirect_block_is_read_and_written_to_the_same_bytes() {
    let raw = golden_block("basic.indirect", 128 << 10);
    let pointers: Vec<_> = BlockPointer::all_in(&raw, Endian::Little).collect::<Result<_, _>>().unwrap();
    assert_eq!(pointers.len(), 1024);
    let births: Vec<_> = pointers.iter().filter(|p| !p.is_hole()).map(|p| (p.birth().0, p.fill())).collect();
    assert_eq!(births, [(25, 1), (50, 32), (50, 17), (50, 17)]);
    let back: Vec<u8> = pointers.iter().flat_map(|p| p.to_bytes(Endian::Little)).collect();
    assert_eq!(back, raw);
}

/// The dnodes of a block of the MOS, by object number.
fn dnodes(first: u64) -> Vec<(u64, DnodePhys)> {
    let raw = golden_block(&format!("basic.dnodes-{first}"), 16 << 10);
    let mut dnodes = Vec::new();
    let mut at = 0;
    while at < raw.len() {
        let dnode = DnodePhys::from_bytes(&raw[at..], Endian::Little).unwrap();
        assert_eq!(dnode.to_bytes(Endian::Little), raw[at..at + dnode.size()]);
        let size = dnode.size();
        dnodes.push((first + at as u64 / 512, dnode));
        at += size;
    }
    dnodes
}

fn dnode(object: u64) -> DnodePhys {
    let all = dnodes(object / 32 * 32);
    all.into_iter().find(|(number, _)| *number == object).unwrap().1
}

#[test]
fn dnodes_are_read_and_written_to_the_same_bytes() {
    assert_eq!(dnodes(32).iter().filter(|(_, d)| !d.is_free()).count(), 32);
    assert_eq!(dnodes(96).iter().filter(|(_, d)| !d.is_free()).count(), 17);
}

#[test]
fn the_root_dataset_is_what_zdb_says() {
    let bonus = dnode(32).bonus;
    let dir = DslDirPhys::from_bonus(&bonus).unwrap();
    assert_eq!(dir.to_bonus(), bonus);
    assert_eq!((dir.head_dataset, dir.origin, dir.children), (ObjectId(54), ObjectId(48), ObjectId(34)));
    assert_eq!((dir.space.used, dir.space.compressed, dir.space.uncompressed), (10107392, 9356800, 33737728));
    assert_eq!((dir.flags, dir.used_breakdown.head, dir.used_breakdown.children), (1, 6634496, 3472896));

    let bonus = dnode(54).bonus;
    let head = DslDatasetPhys::from_bonus(&bonus).unwrap();
    assert_eq!(head.to_bonus(), bonus);
    assert_eq!((head.dir, head.previous, head.snapshot_names), (ObjectId(32), ObjectId(48), ObjectId(55)));
    assert_eq!((head.unique, head.guid), (6634496, Guid(11873871944309825527)));
    assert_eq!((head.flags, head.is_snapshot()), (DatasetFlags::UNIQUE_ACCURATE, false));
    assert_eq!((head.root.birth(), head.root.fill(), head.root.dvas().len()), (Txg(28), 5588, 2));
}

#[test]
fn a_space_map_adds_up_to_what_its_header_says_is_allocated() {
    let header = SpaceMapPhys::from_bonus(&dnode(110).bonus).unwrap();
    assert_eq!((header.length, header.allocated), (0xa0, 0x7e00));
    assert_eq!(header.histogram.unwrap()[1..5], [10, 6, 5, 3]);
    let raw = golden_block("basic.spacemap", 0xa0);
    let entries: Vec<_> = SpaceMapEntries::new(&raw, Endian::Little).collect::<Result<_, _>>().unwrap();
    assert_eq!(entries[0], SpaceMapEntry::Debug { action: SpaceAction::Alloc, sync_pass: 1, txg: Txg(41) });
    let mut log = SpaceMapLog::new(0, 128 << 10, true);
    let mut allocated = 0;
    for entry in entries {
        match entry {
            SpaceMapEntry::Run(run) => {
                let bytes = (run.len << 9) as i64;
                allocated += if run.action == SpaceAction::Alloc { bytes } else { -bytes };
                log.run(run);
            }
            SpaceMapEntry::Debug { action, sync_pass, txg } => log.debug(action, sync_pass, txg),
            SpaceMapEntry::Padding => {}
        }
    }
    assert_eq!(allocated, header.allocated);
    assert_eq!(log.to_bytes(Endian::Little), raw);
}

#[test]
fn the_history_is_read_record_by_record() {
    let phys = HistoryPhys::from_bonus(&dnode(60).bonus).unwrap();
    assert_eq!((phys.create_len, phys.max_offset, phys.begin, phys.end), (13624, 251658, 13624, 18616));
    let raw = golden_block("basic.history", phys.end as usize);
    let mut commands = Vec::new();
    let mut at = 0;
    while let Some((record, used)) = history::decode_record(&raw[at..]).unwrap() {
        assert_eq!(history::encode_record(&record), raw[at..at + used]);
        commands.extend(record.opt_str(history::key::COMMAND).unwrap().map(str::to_string));
        at += used;
    }
    assert_eq!(at as u64, phys.end, "the last record ends where the header says");
    assert_eq!(commands.last().unwrap(), "zpool export basic");
}

#[test]
fn the_asize_of_a_vdev_is_what_its_device_leaves_for_data() {
    // `basic` is a device of 256 MiB; OpenZFS stores the space between the labels, in whole metaslabs at most.
    let label = NvList::decode(&golden_block("basic.label", 112 << 10)).unwrap();
    let asize = label.list("vdev_tree").unwrap().u64("asize").unwrap();
    assert_eq!(asize, LabelLayout::new(256 << 20).unwrap().data_size());
}
