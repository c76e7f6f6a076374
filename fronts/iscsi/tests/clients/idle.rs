//! Many clients that do nothing beside one that works: what they cost it, and what they cost in memory.
//!
//! The idle ones are another process, this program again, so what this one grows by is the server's (what the kernel has
//! for sockets is not in it), and each has the descriptors that a process may have. `ISCSI_IDLE` is how many;
//! `cargo xtask idle` sets it to ten thousand.

use crate::initiator::Session;
use crate::real::Real;
use crate::{TARGET, disk};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How many there are by default: enough to notice that something is wrong.
const FEW: u16 = 500;
/// For that other process: the server's port, and how many.
const CLIENTS: &str = "ISCSI_IDLE_CLIENTS";
const PATIENCE: Duration = Duration::from_secs(20);
/// The client that works reads this often, and the best of some rounds counts.
const READS: u32 = 2000;
const ROUNDS: usize = 3;
/// A connection that logged in and does nothing costs no more, in bytes.
const COSTS_AT_MOST: u64 = 16 << 10;

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

fn log_in(port: u16, name: &str, isid: u16) -> Session {
    Session::log_in(port, TARGET, &format!("iqn.2026-11.org.example:{name}"), isid, PATIENCE).unwrap()
}

/// The process that is all the idle clients; they leave with it.
struct Clients(Child);

impl Clients {
    /// Returns when all have logged in.
    fn start(port: u16, count: u16) -> Clients {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(CLIENTS, format!("{port} {count}")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "all are in\n", "each needs a descriptor in both processes (ulimit -n)");
        Clients(child)
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether this process is to be the clients; then it was, when this returns.
pub fn was_clients() -> bool {
    let Ok(asked) = std::env::var(CLIENTS) else { return false };
    let (port, count) = asked.split_once(' ').unwrap();
    let (port, count): (u16, u16) = (port.parse().unwrap(), count.parse().unwrap());
    let clients: Vec<Session> = (0..count).map(|n| log_in(port, "idle", n)).collect();
    println!("all are in");
    // Until the process that started it ends it, or is gone.
    let _ = std::io::stdin().read(&mut [0]);
    drop(clients);
    true
}

pub fn idle_clients_cost_little_and_slow_nobody() {
    let count = std::env::var("ISCSI_IDLE").ok().map_or(FEW, |n| n.parse().unwrap());
    let server = Real::serve("idle", 1, || disk(64 << 20));
    let mut busy = log_in(server.ports[0], "busy", 1);
    for n in 0..64u32 {
        busy.write(n * 16, &[7; 8 << 10]).unwrap();
    }
    let alone = read_times(&mut busy);
    let before = resident();
    let begun = Instant::now();
    let idle = Clients::start(server.ports[0], count);
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
