use super::*;
use crate::chain::{decode_header, decode_log};
use ondisk::Dva;
use ondisk::l2arc::EntryProp;
use units::{Lsize, Psize, Sectors, Txg, VdevId};

fn entry(n: u64, psize: u64) -> LogEntry {
    let prop = EntryProp {
        lsize: Lsize(psize),
        psize: Psize(psize),
        compression: Compression::Off,
        is_prefetch: false,
        is_metadata: false,
        is_protected: false,
        state: EntryProp::RECENT,
    };
    let dva = Dva { vdev: VdevId(0), asize: Sectors::of(psize), offset: Sectors(n), gang: false };
    LogEntry { dva, birth: Txg(4), prop, daddr: 0, level: 0 }
}

/// The chain of logs that a header leads to, read from a device in memory, as an import reads it.
fn chain(header: &L2Header, device: &[u8]) -> Vec<(LogPointer, Vec<LogEntry>)> {
    let (ring, mut next, mut found) = (Ring::of(header), header.newest, Vec::new());
    while !next[0].is_none() && ring.holds(&next[0]) {
        let pointer = next[0];
        let bytes = &device[pointer.daddr as usize..][..pointer.asize() as usize];
        let Ok(log) = decode_log(&pointer, bytes, header.log_entries) else { break };
        next = [next[1], log.previous];
        found.push((pointer, log.entries));
    }
    found
}

/// Blocks of chance sizes, written around the ring many times: whatever the header on the device leads to at any time is
/// there as it was written, and what is in a log is in its place.
#[test]
fn what_the_header_leads_to_is_there_however_often_the_hand_comes_around() {
    for ashift in [9, 12] {
        let frame = Frame::new(Guid(1), Guid(2), ashift, 7 << 20, 0).unwrap();
        let frame = Frame { log_entries: 5, ..frame };
        let mut journal = Journal::fresh(frame);
        let mut device = vec![0; 7 << 20];
        let (mut seed, mut sweeps, mut logs) = (9u64, 0, 0);
        let mut next = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % n
        };
        for n in 0..1500 {
            let count = (1 + next(5)).min(journal.left_in_log() as u64);
            let blocks: Vec<_> = (0..count).map(|i| entry(n * 8 + i, 512 * (1 + next(64)))).collect();
            let mut data = Vec::new();
            for block in &blocks {
                let from = data.len();
                data.resize(from + frame.asize(block.prop.psize.0) as usize, 0);
                data[from..from + 8].copy_from_slice(&block.dva.offset.0.to_le_bytes());
            }
            let hand = journal.ring.hand;
            journal.make_room(data.len() as u64, blocks.len(), next(2) * 100_000).unwrap();
            sweeps += u32::from(journal.ring.hand < hand);
            let staged = journal.stage(blocks, &mut data);
            device[staged.at as usize..][..data.len()].copy_from_slice(&data);
            journal.commit(&staged);
            let header = decode_header(&journal.encode_header()).unwrap();
            assert!(frame.is_of(&header) && header == journal.header());
            let found = chain(&header, &device);
            assert_eq!(found.len() as u64, header.logs, "ashift {ashift}, run {n}");
            assert_eq!(found.iter().map(|(log, _)| log.asize()).sum::<u64>(), header.logs_asize);
            for (log, entries) in &found {
                assert_eq!(entries.len(), 5);
                let mut place = log.payload_start;
                for entry in entries {
                    assert_eq!(entry.daddr, place, "blocks lie one behind the other");
                    let at = &device[place as usize..][..8];
                    assert_eq!(at, entry.dva.offset.0.to_le_bytes(), "ashift {ashift}, run {n}");
                    place += frame.asize(entry.prop.psize.0);
                }
                assert_eq!((place, log.payload_asize), (log.daddr, log.daddr - log.payload_start));
            }
            logs = logs.max(found.len());
            let pointers: Vec<_> = found.iter().map(|(log, _)| *log).collect();
            if n % 100 == 99 {
                let resumed = Journal::resume(frame, &header, &pointers);
                assert_eq!(resumed.header(), header, "an import goes on where the device was left");
                journal = resumed;
            }
        }
        assert!(sweeps > 3 && logs > 10, "{sweeps} sweeps, {logs} logs at most");
    }
}

/// The tunable was followed only from the next import on.
#[test]
fn a_device_in_use_gets_logs_and_loses_them() {
    let frame = Frame::new(Guid(1), Guid(2), 9, 83_886_080, 1 << 30).unwrap();
    let mut journal = Journal::fresh(frame);
    let mut device = vec![0; 83_886_080];
    let mut write = |journal: &mut Journal, n: u64| {
        journal.make_room(4096, 1, 0).unwrap();
        let mut data = vec![n as u8; 4096];
        let staged = journal.stage(vec![entry(n, 4096)], &mut data);
        device[staged.at as usize..][..data.len()].copy_from_slice(&data);
        journal.commit(&staged);
        let entries: Vec<u64> = chain(&journal.header(), &device)
            .iter()
            .flat_map(|(_, log)| log.iter().map(|entry| entry.dva.offset.0))
            .collect();
        entries
    };
    assert!((0..6).all(|n| write(&mut journal, n).is_empty()));
    assert!(journal.follow(0) && !journal.follow(0));
    let named = (6..14).fold(Vec::new(), |_, n| write(&mut journal, n));
    assert_eq!(named, [10, 11, 12, 13, 6, 7, 8, 9]);
    assert_eq!((journal.header().logs, journal.header().log_entries), (2, 4));
    assert!(journal.follow(1 << 30));
    assert!(write(&mut journal, 14).is_empty());
    assert_eq!((journal.header().logs, journal.header().log_entries), (0, 0));
}

#[test]
fn a_device_has_logs_from_a_size_on_and_one_without_room_for_blocks_is_not_used() {
    let frame = |psize, from| Frame::new(Guid(1), Guid(2), 9, psize, from);
    // What OpenZFS wrote of a device of 80 MiB.
    let of = frame(83_886_080, 0).unwrap();
    assert_eq!((of.start, of.end, of.log_entries), (4_194_816, 83_361_792, 4));
    assert_eq!(frame(83_886_080, 1 << 30).unwrap().log_entries, 0);
    assert_eq!(frame(17 << 30, 1 << 30).unwrap().log_entries, 1022);
    assert_eq!(frame(4 << 20, 0), None);
    let mut journal = Journal::fresh(frame(83_886_080, 1 << 30).unwrap());
    let room = journal.make_room(1 << 20, 256, 0).unwrap();
    assert!(room.dropped.is_empty() && !room.has_moved);
    let staged = journal.stage(vec![entry(1, 4096)], &mut vec![0; 4096]);
    journal.commit(&staged);
    assert!(!staged.has_log() && journal.header().newest[0].is_none());
    assert!(journal.make_room(80 << 20, 1, 0).is_none());

    let large = frame(1 << 30, 0).map(|f| Frame { sector: 4096, ..f }).unwrap();
    assert_eq!([512, 4096, 4608].map(|psize| large.asize(psize)), [4096, 4096, 8192]);
}
