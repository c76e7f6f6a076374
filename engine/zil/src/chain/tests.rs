use super::*;
use crate::testing::{Device, OBJSET, STYLES, Style, pointer, write};
use futures_util::FutureExt;
use ondisk::{LogRecord, Writer};

const NEW: Style = STYLES[0];

/// Everything a walk meets: numbers of pointers, whether written, and numbers of records.
fn walk(device: &Device, header: &ZilHeader) -> (Vec<(u64, bool)>, Vec<u64>, String, Option<String>) {
    let mut chain = Chain::new(device, OBJSET, header);
    let (mut links, mut records) = (Vec::new(), Vec::new());
    while let Some(link) = chain.next().now_or_never().unwrap() {
        links.push((link.number, link.block.is_some()));
        for (head, mut reader) in link.block.iter().flat_map(|block| block.records()) {
            assert_eq!(LogRecord::decode(&mut reader).unwrap().seq, head.seq);
            records.push(head.seq);
        }
    }
    let end = format!("{:?}", chain.end().unwrap());
    (links, records, end, chain.damage().map(|e| e.to_string()))
}

#[test]
fn a_log_is_read_to_the_block_that_was_never_written() {
    for style in STYLES {
        let (device, header) = Device::with_log(style, 3);
        let (links, records, end, damage) = walk(&device, &header);
        assert_eq!(links, [(1, true), (2, true), (3, true), (4, false)], "{style:?}");
        assert_eq!(records, [1, 2, 3, 4, 5, 6]);
        assert_eq!((end.as_str(), damage), ("NotCarriedOn", None));
    }
}

#[test]
fn no_log_is_no_link() {
    let (links, _, end, _) = walk(&Device::default(), &ZilHeader::default());
    assert_eq!((links, end.as_str()), (vec![], "NotCarriedOn"));
}

/// Where the next block would be lies one of an older log, intact in itself.
#[test]
fn remains_of_another_log_are_not_taken_for_the_next_block() {
    let (mut device, header) = Device::with_log(NEW, 2);
    let old = |number| pointer(NEW, 1234, number, number, Txg(5));
    device.put(NEW, &old(3), &old(4), &[write(77, 10)]);
    let (links, records, ..) = walk(&device, &header);
    assert_eq!(links.last(), Some(&(3, false)));
    assert_eq!(records, [1, 2, 3, 4]);
}

/// A pointer that does not count on would let a log lead back to itself.
#[test]
fn a_block_whose_pointer_does_not_count_on_is_not_of_the_log() {
    let (mut device, header) = Device::with_log(NEW, 2);
    let at = |number, place| pointer(NEW, 99, number, place, Txg(10));
    device.put(NEW, &at(2, 2), &at(1, 1), &[write(3, 10)]);
    let (links, records, end, _) = walk(&device, &header);
    assert_eq!(links, [(1, true), (2, false)]);
    assert_eq!((records, end.as_str()), (vec![1, 2], "NotCarriedOn"));
}

fn claimed(header: ZilHeader, block: u64, record: u64) -> ZilHeader {
    ZilHeader {
        claim_txg: Txg(11),
        claim_block_seq: block,
        claim_record_seq: record,
        flags: ZilHeader::CLAIM_RECORD_SEQ_VALID,
        ..header
    }
}

/// What came into a log after it was claimed is none of our business, and that it lacks what was claimed is.
#[test]
fn a_claimed_log_is_read_as_far_as_it_was_claimed() {
    let (device, header) = Device::with_log(NEW, 3);
    let seen = |block, record| walk(&device, &claimed(header.clone(), block, record));
    // As claiming all of it leaves it: the last block was never written.
    let (links, records, end, damage) = seen(4, 6);
    assert_eq!((links.len(), records.len(), end.as_str(), damage), (4, 6, "Claimed", None));
    // Cut in the midst of a block, because of what a record pointed to.
    let (links, records, end, damage) = seen(2, 3);
    assert_eq!((links.len(), records, end.as_str(), damage), (2, vec![1, 2, 3], "Claimed", None));
    let (links, records, _, damage) = seen(2, 2);
    assert_eq!((links, records, damage), (vec![(1, true), (2, false)], vec![1, 2], None));
    let (_, records, _, damage) = seen(6, 9);
    assert_eq!(records.len(), 6);
    let damage = damage.unwrap();
    assert!(damage.contains("ends at block 4 record 6") && damage.contains("block 6 record 9"), "{damage}");
}

/// Old programs noted only the block.
#[test]
fn a_log_claimed_without_a_record_number_is_read_up_to_its_block() {
    let (device, header) = Device::with_log(NEW, 3);
    let header = ZilHeader { claim_txg: Txg(11), claim_block_seq: 4, ..header };
    let (_, records, _, damage) = walk(&device, &header);
    assert_eq!((records.len(), damage), (6, None));
}

#[test]
fn a_device_that_is_gone_is_told_from_a_block_never_written() {
    let (mut device, header) = Device::with_log(NEW, 3);
    device.gone.insert(2);
    let (links, records, end, damage) = walk(&device, &header);
    assert_eq!((links, records, damage), (vec![(1, true), (2, false)], vec![1, 2], None));
    assert!(end.starts_with("Unreadable"), "{end}");
    let (.., damage) = walk(&device, &claimed(header, 4, 6));
    assert!(damage.is_some());
}

/// Checksums are right here: it is the writer that lies. Records before the lie count.
#[test]
fn lengths_that_cannot_be_end_the_log() {
    for style in STYLES {
        let at = |number| pointer(style, 99, number, number, Txg(10));
        let header = ZilHeader { log: at(1), ..ZilHeader::default() };
        let mut good = vec![0; write(1, 10).length()];
        write(1, 10).encode(&mut Writer::new(&mut good, style.endian));
        for length in [0_u64, 24, 33, 1 << 40, u64::MAX - 7] {
            let mut body = [good.clone(), good.clone()].concat();
            let bytes = match style.endian {
                Endian::Little => length.to_le_bytes(),
                Endian::Big => length.to_be_bytes(),
            };
            body[good.len() + 8..good.len() + 16].copy_from_slice(&bytes);
            let mut device = Device::default();
            device.put_raw(style, &at(1), &at(2), &body, None);
            let (_, records, end, _) = walk(&device, &header);
            assert_eq!(records, [1], "{length:#x}");
            assert!(end.starts_with("Malformed"), "{end}");
        }
        // The same record again: numbers only rise.
        let mut device = Device::default();
        device.put_raw(style, &at(1), &at(2), &[good.clone(), good].concat(), None);
        let (_, records, end, _) = walk(&device, &header);
        assert!(records == [1] && end.starts_with("Malformed"), "{end}");
    }
}

#[test]
fn a_block_that_claims_to_use_more_than_it_has_is_no_block() {
    let style = Style { checksum: Checksum::Zilog, endian: Endian::Little };
    let at = |number| pointer(style, 99, number, number, Txg(10));
    let header = ZilHeader { log: at(1), ..ZilHeader::default() };
    for used in [4096 - 183, 1 << 40, u64::MAX] {
        let mut device = Device::default();
        device.put_raw(style, &at(1), &at(2), &[], Some(used));
        let (links, records, end, _) = walk(&device, &header);
        assert_eq!((links, records), (vec![(1, false)], vec![]));
        assert!(end.starts_with("Malformed"), "{end}");
    }
}

/// A device whose first two answers for each block are something else.
struct Flaky(Device, std::sync::Mutex<std::collections::BTreeMap<u64, u32>>);

impl Source for Flaky {
    fn read_log(&self, bp: &BlockPointer, at: Bookmark, must_be_there: bool) -> Pending<Result<Buf>> {
        let mut asked = self.1.lock().unwrap();
        let asked = asked.entry(at.blkid).or_default();
        *asked += 1;
        match *asked {
            ..3 => Box::pin(std::future::ready(Err(Error::new(Kind::Checksum, "read block")))),
            _ => self.0.read_log(bp, at, must_be_there),
        }
    }
}

/// Only one side of a mirror had the log, and flipped bits now and then: three walks met six blocks, three and one. The
/// volume could not be opened, or what the last walk did not meet was not freed.
#[test]
fn what_was_claimed_is_read_again_when_it_is_not_what_it_was() {
    let (device, header) = Device::with_log(NEW, 3);
    let claimed = ZilHeader {
        claim_txg: Txg(11),
        claim_block_seq: 4,
        claim_record_seq: 6,
        flags: ZilHeader::CLAIM_RECORD_SEQ_VALID,
        ..header.clone()
    };
    let flaky = Flaky(device, Default::default());
    let met = |header: &ZilHeader| {
        let mut chain = Chain::new(&flaky, OBJSET, header);
        let mut blocks = 0;
        while let Some(link) = chain.next().now_or_never().unwrap() {
            blocks += u32::from(link.block.is_some());
        }
        (blocks, chain.damage().map(|e| e.to_string()))
    };
    assert_eq!(met(&header).0, 0, "what was not claimed ends there");
    flaky.1.lock().unwrap().clear();
    assert_eq!(met(&claimed), (3, None));
}
