use super::*;
use units::{Checksum, Endian, Guid, Lsize, Psize, Sectors, Txg, VdevId};

fn item(logical: &[u8], compression: Compression, is_raw: bool) -> (Item, Vec<u8>) {
    let mut disk = logical.to_vec();
    if compression != Compression::Off {
        let mut out = vec![0; logical.len() - logical.len() / 8];
        let len = codec::compress::compress(compression, logical, &mut out).unwrap();
        out.truncate(len);
        out.resize(len.next_multiple_of(4096), 0);
        disk = out;
    }
    let psize = disk.len() as u64;
    let checksum = Checksummer::unsalted().compute(Checksum::Fletcher4, Endian::NATIVE, &disk);
    let origin = Origin {
        asize: Sectors::of(psize),
        gang: false,
        lsize: Lsize(logical.len() as u64),
        psize: Psize(psize),
        compression,
        checksum_kind: Checksum::Fletcher4,
        checksum,
        endian: Endian::NATIVE,
    };
    let block =
        BlockId { opening: Default::default(), vdev: VdevId(1), offset: Sectors(psize), birth: Txg(9) };
    let candidate = Candidate { block, kind: Kind::Data, origin, is_prefetch: false, is_frequent: true };
    let bytes = if is_raw { &disk } else { logical };
    ((candidate, Buf::copy_from(bytes), is_raw), disk)
}

#[test]
fn what_is_packed_is_what_is_on_disk_whatever_it_was_compressed_with() {
    let text: Vec<u8> = (0..32_768u32).map(|i| (i / 40 % 200) as u8).collect();
    let frame = Frame::new(Guid(1), Guid(2), 12, 1 << 30, 0).unwrap();
    let kinds = [
        Compression::Off,
        Compression::Lz4,
        Compression::Gzip(6),
        Compression::Zstd(None),
        Compression::Lzjb,
    ];
    let (items, disks): (Vec<_>, Vec<_>) =
        kinds.into_iter().flat_map(|kind| [item(&text, kind, false), item(&text, kind, true)]).unzip();
    let packed = pack(items, &frame, &Checksummer::unsalted());
    assert!(packed.foreign.is_empty());
    assert_eq!(packed.blocks.len(), 10);
    assert!(packed.data == disks.concat(), "each fills whole sectors of 4 KiB here");
}

#[test]
fn what_does_not_come_out_the_same_is_not_packed_and_said_to_be_so() {
    let text = vec![7; 16_384];
    let frame = Frame::new(Guid(1), Guid(2), 9, 1 << 30, 0).unwrap();
    let (mut other, _) = item(&text, Compression::Lz4, false);
    other.0.origin.checksum[2] ^= 1;
    let (mut short, _) = item(&text, Compression::Off, true);
    short.1 = short.1.slice(0..8192);
    let (good, disk) = item(&text, Compression::Gzip(9), false);
    let packed = pack(vec![other.clone(), good.clone(), short.clone()], &frame, &Checksummer::unsalted());
    assert_eq!(packed.foreign, [other.0.block, short.0.block]);
    assert_eq!(packed.blocks, [(good.0.block, Kind::Data)]);
    assert!(packed.data == disk && packed.entries.len() == 1);
}
