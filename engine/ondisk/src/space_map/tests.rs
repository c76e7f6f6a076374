use super::*;
use crate::testing::{Numbers, ORDERS, assault, check_round_trip};

fn run(action: SpaceAction, offset: u64, len: u64) -> SpaceRun {
    SpaceRun { action, offset, len, vdev: None }
}

fn read(log: &SpaceMapLog, endian: Endian) -> Vec<SpaceMapEntry> {
    SpaceMapEntries::new(&log.to_bytes(endian), endian).collect::<Result<_>>().unwrap()
}

#[test]
fn headers_of_both_lengths_survive_the_round_trip() {
    let mut n = Numbers(50);
    let mut phys = SpaceMapPhys { object: ObjectId(7), length: 80, allocated: -5, histogram: None };
    check_round_trip(&phys, SpaceMapPhys::OLD_SIZE, SpaceMapPhys::encode, SpaceMapPhys::decode);
    phys.histogram = Some(std::array::from_fn(|_| n.bits(64)));
    check_round_trip(&phys, SpaceMapPhys::SIZE, SpaceMapPhys::encode, SpaceMapPhys::decode);
    assert_eq!(SpaceMapPhys::from_bonus(&phys.to_bonus()).unwrap(), phys);
}

#[test]
fn entries_stand_as_drawn() {
    let mut log = SpaceMapLog::new(0, 4096, true);
    log.debug(SpaceAction::Free, 2, Txg(37));
    log.run(run(SpaceAction::Free, 5, 8));
    log.run(SpaceRun { action: SpaceAction::Alloc, offset: 9, len: 3, vdev: Some(VdevId(6)) });
    let words: Vec<u64> =
        log.to_bytes(Endian::Little).as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)).collect();
    assert_eq!(
        words,
        [0x9008_0000_0000_0025, 0x0000_0000_0005_8007, 0xc000_0000_0200_0006, 0x0000_0000_0000_0009]
    );
    assert_eq!(log.length(), 32);
}

#[test]
fn what_is_written_is_read_back_in_both_orders() {
    let mut n = Numbers(51);
    for endian in ORDERS {
        let mut log = SpaceMapLog::new(8, 64, true);
        let mut expected = Vec::new();
        for _ in 0..200 {
            let action = n.pick(&[SpaceAction::Alloc, SpaceAction::Free]);
            let vdev = n.flag().then(|| VdevId(n.bits(24) as u32));
            let one = SpaceRun { action, offset: n.bits(40), len: n.bits(15) + 1, vdev };
            log.run(one);
            expected.push(SpaceMapEntry::Run(one));
        }
        let back: Vec<_> = read(&log, endian).into_iter().filter(|e| *e != SpaceMapEntry::Padding).collect();
        assert_eq!(back, expected);
    }
}

#[test]
fn without_the_feature_a_long_run_becomes_several_entries() {
    let mut log = SpaceMapLog::new(0, 4096, false);
    log.run(run(SpaceAction::Alloc, 100, 70_000));
    let expected = [(100, 32768), (32868, 32768), (65636, 4464)];
    let entries = expected.map(|(offset, len)| SpaceMapEntry::Run(run(SpaceAction::Alloc, offset, len)));
    assert_eq!(read(&log, Endian::Little), entries);
}

#[test]
fn an_entry_of_two_words_does_not_cross_blocks() {
    let mut log = SpaceMapLog::new(4096 - 8, 4096, true);
    log.run(run(SpaceAction::Alloc, 0, 1 << 20));
    let long = SpaceRun { vdev: Some(VdevId(0)), ..run(SpaceAction::Alloc, 0, 1 << 20) };
    assert_eq!(read(&log, Endian::Little), [SpaceMapEntry::Padding, SpaceMapEntry::Run(long)]);
    assert_eq!(log.length(), 4096 + 16);
}

#[test]
fn hostile_bytes_end_the_log_with_an_error_at_worst() {
    let mut log = SpaceMapLog::new(0, 4096, true);
    log.debug(SpaceAction::Alloc, 1, Txg(4));
    log.run(run(SpaceAction::Alloc, 0, 1 << 20));
    assault(&log.to_bytes(Endian::Little), |bytes, endian| {
        assert!(SpaceMapEntries::new(bytes, endian).count() <= bytes.len() / 8 + 1);
        let _ = SpaceMapPhys::decode(&mut Reader::new(bytes, endian, "test"));
    });
}
