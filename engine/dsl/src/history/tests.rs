use super::*;
use crate::testing::{Bench, run};

fn stamp() -> Stamp {
    Stamp { host: "here".into(), time: WallTime { seconds: 77, nanos: 0 } }
}

fn lines(history: &History) -> Vec<String> {
    let records = run(history.records()).unwrap();
    records
        .iter()
        .map(|r| r.str(key::COMMAND).or_else(|_| r.str(key::INTERNAL_NAME)).unwrap().to_string())
        .collect()
}

#[test]
fn records_come_back_in_order_after_a_restart() {
    let mut bench = Bench::new();
    let history = run(History::create(&bench.mos, &bench.tx(), 0)).unwrap();
    let create = internal("create", "pool version 5000", None, bench.txg, &stamp());
    run(history.append(&bench.tx(), &create)).unwrap();
    run(history.append(&bench.tx(), &command("zpool create p", 0, &stamp()))).unwrap();
    run(history.append(&bench.tx(), &command("zfs create p/a", 0, &stamp()))).unwrap();
    bench.sync();
    let id = history.id();
    drop(history);
    bench.reopen();
    let history = run(History::open(&bench.mos, id)).unwrap();
    assert_eq!(lines(&history), ["create", "zpool create p", "zfs create p/a"]);
    let dataset = internal("set", "x=1", Some(("p/a", ObjectId(5))), bench.txg, &stamp());
    run(history.append(&bench.tx(), &dataset)).unwrap();
    assert_eq!(run(history.records()).unwrap()[3], dataset);
}

#[test]
fn the_first_command_stays_and_the_oldest_go_when_the_ring_is_full() {
    let mut bench = Bench::new();
    let history = run(History::create(&bench.mos, &bench.tx(), 0)).unwrap();
    run(history.append(&bench.tx(), &command("zpool create p", 0, &stamp()))).unwrap();
    for i in 0..3000 {
        let line = format!("zfs set n={i} {}", "x".repeat(i % 97));
        run(history.append(&bench.tx(), &command(&line, 0, &stamp()))).unwrap();
        if i % 500 == 0 {
            bench.sync();
        }
    }
    let lines = lines(&history);
    assert_eq!(lines[0], "zpool create p");
    assert!(lines[1..].iter().zip(&lines[2..]).all(|(a, b)| number(a) + 1 == number(b)));
    assert_eq!(number(lines.last().unwrap()), 2999);
    let ring = history.ring().unwrap();
    assert_eq!(ring.records_lost as usize + lines.len(), 3001);
    assert!(ring.end > 2 * ring.max_offset, "it went round");
}

fn number(line: &str) -> u64 {
    line.split(['=', ' ']).nth(3).unwrap().parse().unwrap()
}

#[test]
fn a_record_too_long_and_a_damaged_length_are_errors() {
    let bench = Bench::new();
    let history = run(History::create(&bench.mos, &bench.tx(), 0)).unwrap();
    let long = command(&"x".repeat(200 << 10), 0, &stamp());
    assert!(run(history.append(&bench.tx(), &long)).is_err());
    run(history.append(&bench.tx(), &command("zpool create p", 0, &stamp()))).unwrap();
    run(history.object.write(&bench.tx(), 0, &[0xff; 8])).unwrap();
    let error = run(history.records()).unwrap_err();
    assert_eq!(error.kind(), units::Kind::Corrupt);
}
