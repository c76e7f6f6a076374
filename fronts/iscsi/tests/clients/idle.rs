//! Many clients that do nothing beside one that works: what they cost it, and what they cost in memory.
//!
//! The clients are in this process too, with a descriptor each and no buffers, so what the process grows by is the
//! server's. `ISCSI_IDLE` is how many; `cargo xtask idle` sets it to ten thousand.

use crate::initiator::Session;
use crate::real::Real;
use crate::{TARGET, disk};
use std::time::{Duration, Instant};

/// How many there are when nobody says: enough to notice that something is wrong.
const FEW: u16 = 300;
const PATIENCE: Duration = Duration::from_secs(20);
/// The client that works reads this often, and the best of some rounds counts.
const READS: u32 = 2000;
const ROUNDS: usize = 3;
/// A connection that logged in and does nothing costs no more, in bytes.
const COSTS_AT_MOST: u64 = 24 << 10;

/// Resident memory of this process, in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// The mean time of a read, and the longest.
fn read_times(session: &mut Session) -> (Duration, Duration) {
    let rounds = (0..ROUNDS).map(|_| {
        let (begun, mut longest) = (Instant::now(), Duration::ZERO);
        for n in 0..READS {
            let one = Instant::now();
            session.read(n * 8 % 1024, 8).unwrap();
            longest = longest.max(one.elapsed());
        }
        (begun.elapsed() / READS, longest)
    });
    rounds.min().unwrap()
}

pub fn idle_clients_cost_little_and_slow_nobody() {
    let count = std::env::var("ISCSI_IDLE").ok().map_or(FEW, |n| n.parse().unwrap());
    let needed = 2 * u64::from(count) + 200;
    assert!(rise_descriptors_to(needed), "this needs {needed} descriptors: raise the limit (ulimit -n)");
    let server = Real::serve("idle", 1, || disk(64 << 20));
    let log_in = |name: &str, isid| {
        Session::log_in(server.ports[0], TARGET, &format!("iqn.2026-11.org.example:{name}"), isid, PATIENCE)
            .unwrap()
    };
    let mut busy = log_in("busy", 1);
    for n in 0..64u32 {
        busy.write(n * 16, &[7; 8 << 10]).unwrap();
    }
    let alone = read_times(&mut busy);
    let before = resident();
    let begun = Instant::now();
    let idle: Vec<Session> = (0..count).map(|n| log_in("idle", n)).collect();
    let logins = begun.elapsed();
    let each = resident().saturating_sub(before) / u64::from(count);
    let among = read_times(&mut busy);
    drop(idle);
    println!(
        "idle: {count} connections, logged in within {logins:?}: {each} bytes each; a 4K read takes {:?} alone (longest \
         {:?}), {:?} among them (longest {:?})",
        alone.0, alone.1, among.0, among.1
    );
    assert!(each <= COSTS_AT_MOST, "{each} bytes for a connection that does nothing");
    // The machine of a test has other things to do; ten times would be our doing.
    assert!(among.0 < alone.0 * 10, "{:?} instead of {:?}", among.0, alone.0);
}

fn rise_descriptors_to(needed: u64) -> bool {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return true;
    }
    let maximum = limit.maximum.map(|maximum| maximum.max(needed));
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum }).is_ok()
        || setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).is_ok()
            && limit.maximum.is_none_or(|maximum| maximum >= needed)
}
