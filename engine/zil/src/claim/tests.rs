use super::*;
use crate::testing::{Device, OBJSET, STYLES, pointer, record, write};
use futures_util::FutureExt;
use ondisk::Record;
use ondisk::zil::Write;
use units::Checksum;

const FIRST: Txg = Txg(10);

fn claimed(device: &Device, header: &ZilHeader) -> (Claim, Vec<u64>) {
    let claim = claim(device, OBJSET, header, FIRST).now_or_never().unwrap().unwrap();
    (claim, std::mem::take(&mut device.claimed.lock().unwrap()))
}

/// A pointer to data at a place.
fn data(place: u64, birth: Txg) -> BlockPointer {
    let style = crate::testing::Style { checksum: Checksum::Fletcher4, ..STYLES[0] };
    pointer(style, 0, 0, place, birth)
}

fn indirect(seq: u64, bp: BlockPointer) -> ondisk::LogRecord<'static> {
    let write = Write { object: ObjectId(1), offset: 0, length: 4096, pointer: bp, data: &[] };
    record(seq, 10, Record::Write(write))
}

/// The block after the last is allocated too: it must not be allocated again while the header leads to it.
#[test]
fn every_block_of_the_chain_is_claimed_and_the_header_says_how_far() {
    for style in STYLES {
        let (device, header) = Device::with_log(style, 3);
        let (claim, places) = claimed(&device, &header);
        assert_eq!(places, [1, 2, 3, 4]);
        assert_eq!(*device.spread.lock().unwrap(), [1, 2, 3], "what was written");
        assert_eq!((claim.blocks, claim.records), (4, 6));
        let header = claim.header;
        assert_eq!((header.claim_txg, header.claim_block_seq, header.claim_record_seq), (FIRST, 4, 6));
        assert_eq!(header.flags, ZilHeader::REPLAY_NEEDED | ZilHeader::CLAIM_RECORD_SEQ_VALID);
        assert!(claim.cut.is_none());
    }
}

#[test]
fn blocks_of_txgs_on_disk_are_allocated_already() {
    let (device, header) = Device::with_log(STYLES[0], 1);
    let claim = claim(&device, OBJSET, &header, Txg(11)).now_or_never().unwrap().unwrap();
    assert_eq!(claim.header.claim_block_seq, 2);
    assert!(device.claimed.lock().unwrap().is_empty());
}

/// Two records may point to one block: it is claimed once, and so freed once.
#[test]
fn blocks_that_records_point_to_are_claimed_once() {
    let style = STYLES[0];
    let at = |number| pointer(style, 99, number, number, FIRST);
    let mut device = Device::default();
    let records = [indirect(1, data(50, FIRST)), indirect(2, data(50, FIRST)), indirect(3, data(60, Txg(9)))];
    device.put(style, &at(1), &at(2), &records);
    device.blocks.insert(50, vec![1; 4096]);
    let header = ZilHeader { log: at(1), ..ZilHeader::default() };
    let (claim, places) = claimed(&device, &header);
    assert_eq!((claim.records, places), (3, vec![1, 50, 2]));
    assert_eq!(*device.spread.lock().unwrap(), [1, 50, 50], "not what is in its place for long");
    let freed = crate::replay::blocks(&device, OBJSET, &claim.header).now_or_never().unwrap();
    let mut freed: Vec<u64> = freed.iter().map(crate::testing::place).collect();
    freed.sort_unstable();
    assert_eq!(freed, [1, 2, 50]);
}

/// The block of data was on its way when the machine stopped: a waiter for the record waited for it too.
#[test]
fn a_record_whose_block_was_not_written_ends_the_log() {
    let style = STYLES[0];
    let at = |number| pointer(style, 99, number, number, FIRST);
    let mut device = Device::default();
    device.put(style, &at(1), &at(2), &[write(1, 10), indirect(2, data(50, FIRST)), write(3, 10)]);
    device.put(style, &at(2), &at(3), &[write(4, 10)]);
    let header = ZilHeader { log: at(1), ..ZilHeader::default() };
    let (claim, places) = claimed(&device, &header);
    assert_eq!((claim.records, places), (1, vec![1]));
    assert_eq!((claim.header.claim_block_seq, claim.header.claim_record_seq), (1, 1));
    assert!(claim.cut.is_none(), "so a log ends");
    // And a later reader sees no more.
    let mut chain = Chain::new(&device, OBJSET, &claim.header);
    let link = chain.next().now_or_never().unwrap().unwrap();
    assert_eq!(link.block.unwrap().len(), 1);
    assert!(chain.next().now_or_never().unwrap().is_none() && chain.damage().is_none());
}
