use super::*;
use crate::testing::{Numbers, ORDERS, assault, check_round_trip};
use units::{Sectors, VdevId};

fn any_pointer(n: &mut Numbers) -> LogPointer {
    let asize = (1 + n.below(128)) * SECTOR;
    let compression = n.pick(&[Compression::Off, Compression::Lz4]);
    let checksum = [n.next(), n.next(), n.next(), n.next()];
    let fresh = LogPointer::new(n.bits(40), asize, compression, checksum);
    assert_eq!((fresh.asize(), fresh.compression()), (asize, Some(compression)));
    LogPointer { payload_asize: n.bits(30), payload_start: n.bits(40), ..fresh }
}

fn any_entry(n: &mut Numbers) -> LogEntry {
    let prop = EntryProp {
        lsize: Lsize((1 + n.below(32768)) * SECTOR),
        psize: Psize((1 + n.below(32768)) * SECTOR),
        compression: n.pick(&[Compression::Off, Compression::Lz4]),
        is_prefetch: n.flag(),
        is_metadata: n.flag(),
        is_protected: n.flag(),
        state: n.below(7) as u8,
    };
    let dva = Dva {
        vdev: VdevId(n.bits(24) as u32),
        asize: Sectors(n.bits(24)),
        offset: Sectors(n.bits(63)),
        gang: n.flag(),
    };
    LogEntry { dva, birth: Txg(n.next()), prop, daddr: n.next(), level: n.bits(8) }
}

fn any_header(n: &mut Numbers) -> L2Header {
    let (start, end) = (4_194_816 + n.bits(20), (8 << 20) + n.bits(40));
    L2Header {
        version: 1,
        pool: Guid(n.next()),
        vdev: Guid(n.next()),
        log_entries: n.below(1023),
        evict: start + n.below(end - start),
        flags: n.below(2),
        start,
        end,
        newest: [any_pointer(n), any_pointer(n)],
        logs_asize: n.next(),
        logs: n.next(),
        trim: TrimState { time: n.next(), state: n.bits(2) },
    }
}

fn any_log(n: &mut Numbers, entries: usize) -> LogBlock {
    LogBlock { previous: any_pointer(n), entries: (0..entries).map(|_| any_entry(n)).collect() }
}

/// Any other makes OpenZFS panic when it rebuilds the device.
#[test]
fn an_entry_is_of_a_kind_that_openzfs_knows() {
    let mut n = Numbers(81);
    for is_metadata in [false, true] {
        let prop = EntryProp { is_metadata, ..any_entry(&mut n).prop };
        assert_eq!(prop.encode() >> 48 & 0xff, if is_metadata { 2 } else { 1 });
    }
}

#[test]
fn headers_logs_and_entries_survive_the_round_trip_in_both_orders() {
    let mut n = Numbers(80);
    for entries in [0, 1, 4, LOG_ENTRIES] {
        check_round_trip(&any_header(&mut n), L2Header::FIELDS, L2Header::encode, L2Header::decode);
        check_round_trip(&any_entry(&mut n), LogEntry::SIZE, LogEntry::encode, LogEntry::decode);
        let log = any_log(&mut n, entries);
        check_round_trip(&log, LOG_SIZE, LogBlock::encode, |r| {
            let log = LogBlock::decode(r, entries as u64)?;
            r.rest();
            Ok(log)
        });
    }
}

#[test]
fn the_magic_tells_the_byte_order() {
    let mut n = Numbers(81);
    let (header, log) = (any_header(&mut n), any_log(&mut n, 4));
    for endian in ORDERS {
        let mut bytes = vec![0; LOG_SIZE];
        log.encode(&mut Writer::new(&mut bytes, endian));
        assert_eq!((LogBlock::endian_of(&bytes), L2Header::endian_of(&bytes)), (Some(endian), None));
        header.encode(&mut Writer::new(&mut bytes, endian));
        assert_eq!((LogBlock::endian_of(&bytes), L2Header::endian_of(&bytes)), (None, Some(endian)));
    }
    assert_eq!((L2Header::endian_of(&[0; 512]), L2Header::endian_of(&[1; 7])), (None, None));
}

#[test]
fn a_header_that_contradicts_itself_is_refused() {
    let good = any_header(&mut Numbers(82));
    let refused = |change: fn(&mut L2Header)| {
        let mut header = good.clone();
        change(&mut header);
        let mut bytes = [0; L2Header::SIZE];
        header.encode(&mut Writer::native(&mut bytes));
        L2Header::decode(&mut Reader::new(&bytes, Endian::NATIVE, "header")).unwrap_err().to_string()
    };
    assert!(refused(|h| h.version = 2).contains("version 2, known is 1"));
    assert!(refused(|h| h.evict = h.end + 1).contains("evict"));
    assert!(refused(|h| h.evict = h.start - 1).contains("evict"));
    assert!(refused(|h| h.end = h.start).contains("start"));
    assert!(refused(|h| h.log_entries = 1023).contains("1023 entries"));
}

#[test]
fn larger_devices_have_more_entries_in_a_log() {
    // What OpenZFS wrote on a device of 80 MiB, and the bounds.
    assert_eq!(entries_for(83_361_792 - 4_194_816), 4);
    assert_eq!(entries_for(16 << 30), 1022);
    assert_eq!(entries_for(1 << 50), 1022);
    assert_eq!(entries_for(1), 0);
}

#[test]
fn hostile_bytes_never_panic() {
    let mut n = Numbers(83);
    let mut bytes = [0; L2Header::SIZE];
    any_header(&mut n).encode(&mut Writer::new(&mut bytes, Endian::Little));
    assault(&bytes, |bytes, endian| {
        drop(L2Header::decode(&mut Reader::new(bytes, endian, "header")));
    });
    let mut bytes = vec![0; 1024];
    let log = any_log(&mut n, 4);
    let mut whole = vec![0; LOG_SIZE];
    log.encode(&mut Writer::new(&mut whole, Endian::Little));
    bytes.copy_from_slice(&whole[..1024]);
    assault(&bytes, |bytes, endian| {
        let found = LogBlock::decode(&mut Reader::new(bytes, endian, "log"), 4);
        if let Ok(log) = found {
            let _ = (log.previous.asize(), log.previous.compression(), log.previous.is_none());
        }
    });
}
