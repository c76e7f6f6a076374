//! Two ways to one unit, one of which dies under load.
//!
//! ```text
//!   worker ──▶ first: relay ──▶ portal 0 ──┐
//!      └─────▶ second ────────▶ portal 1 ──┴── unit         the relay is cut, or falls silent, in the middle
//! ```
//!
//! Each worker has blocks of its own and knows what it wrote last into each. What fails on one way is done again on the
//! other, as a multipath initiator does it; in the end every block is what it should be.

use crate::initiator::{BLOCK, Session};
use crate::real::Real;
use crate::{TARGET, disk};
use sim::Rng;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a way may be silent before it is given up.
const PATIENCE: Duration = Duration::from_millis(500);
const WORKERS: u16 = 4;
/// Blocks of 4 KiB that each worker has.
const BLOCKS: u64 = 64;
const UNIT: usize = 4 << 10;

/// How a way dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    /// Its connections are closed, and new ones refused.
    Cut,
    /// Nothing comes through any more, and neither end is told.
    Silent,
}

#[derive(Default)]
struct Relay {
    is_dead: AtomicBool,
    carried: AtomicU64,
    streams: Mutex<Vec<TcpStream>>,
}

impl Relay {
    /// A way to `port`, and where it begins.
    fn start(port: u16) -> (Arc<Relay>, u16) {
        let relay = Arc::new(Relay::default());
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let entry = listener.local_addr().unwrap().port();
        let own = relay.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if own.is_dead.load(SeqCst) {
                    return;
                }
                let (client, server) = (client.unwrap(), TcpStream::connect(("127.0.0.1", port)).unwrap());
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to, own) = (from.try_clone().unwrap(), to.try_clone().unwrap(), own.clone());
                    std::thread::spawn(move || own.carry(from, to));
                }
                own.streams.lock().unwrap().extend([client, server]);
            }
        });
        (relay, entry)
    }

    fn carry(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut buf = vec![0; 64 << 10];
        while let Ok(len @ 1..) = from.read(&mut buf) {
            if self.is_dead.load(SeqCst) || to.write_all(&buf[..len]).is_err() {
                return;
            }
            self.carried.fetch_add(len as u64, SeqCst);
        }
    }

    fn die(&self, death: Death) {
        self.is_dead.store(true, SeqCst);
        if death == Death::Cut {
            for stream in self.streams.lock().unwrap().iter() {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }
}

/// A worker with its two ways.
struct Worker {
    number: u16,
    ways: [u16; 2],
    way: usize,
    session: Option<Session>,
    logins: u16,
    /// What it wrote last into each block.
    stamps: Vec<u64>,
    changes_of_way: u64,
    longest: Duration,
}

impl Worker {
    fn session(&mut self) -> io::Result<&mut Session> {
        if self.session.is_none() {
            self.logins += 1;
            let initiator = format!("iqn.2026-11.org.example:worker{}", self.number);
            self.session =
                Some(Session::log_in(self.ways[self.way], TARGET, &initiator, self.logins, PATIENCE)?);
        }
        Ok(self.session.as_mut().expect("it was just made"))
    }

    /// Does it, on whichever way there is.
    fn act<T>(&mut self, act: impl Fn(&mut Session) -> io::Result<T>) -> T {
        let begun = Instant::now();
        for _ in 0..20 {
            if let Ok(done) = self.session().and_then(&act) {
                self.longest = self.longest.max(begun.elapsed());
                return done;
            }
            self.session = None;
            self.way = 1 - self.way;
            self.changes_of_way += 1;
        }
        panic!("no way leads to the unit");
    }

    fn lba(&self, block: u64) -> u32 {
        ((u64::from(self.number) * BLOCKS + block) * (UNIT / BLOCK) as u64) as u32
    }

    fn check(&mut self, block: u64) {
        let lba = self.lba(block);
        let back = self.act(|session| session.read(lba, (UNIT / BLOCK) as u16));
        assert_eq!(back, content(self.number, block, self.stamps[block as usize]), "block {block}");
    }

    fn work(&mut self, until: &AtomicBool, done: &AtomicU64) {
        let mut random = Rng::new(self.number.into());
        while !until.load(SeqCst) {
            let block = random.below(BLOCKS);
            if random.below(3) == 0 {
                self.check(block);
            } else {
                let (lba, stamp) = (self.lba(block), random.next_u64());
                let data = content(self.number, block, stamp);
                self.act(|session| session.write(lba, &data));
                self.stamps[block as usize] = stamp;
            }
            done.fetch_add(1, SeqCst);
        }
        (0..BLOCKS).for_each(|block| self.check(block));
    }
}

fn content(worker: u16, block: u64, stamp: u64) -> Vec<u8> {
    match stamp {
        0 => vec![0; UNIT],
        _ => [u64::from(worker), block, stamp, !stamp].map(u64::to_be_bytes).as_flattened().repeat(UNIT / 32),
    }
}

pub fn one_of_two_portals_dies_under_load_and_io_goes_on() {
    for death in [Death::Cut, Death::Silent] {
        let server = Real::serve("failover", 2, || disk(64 << 20));
        let (relay, entry) = Relay::start(server.ports[0]);
        let (until, done) = (AtomicBool::new(false), AtomicU64::new(0));
        let ways = [entry, server.ports[1]];
        let (before, after) = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..WORKERS)
                .map(|number| {
                    let (until, done) = (&until, &done);
                    scope.spawn(move || {
                        let mut worker = Worker {
                            number,
                            ways,
                            way: 0,
                            session: None,
                            logins: 0,
                            stamps: vec![0; BLOCKS as usize],
                            changes_of_way: 0,
                            longest: Duration::ZERO,
                        };
                        worker.work(until, done);
                        worker
                    })
                })
                .collect();
            wait_for(&done, 500);
            relay.die(death);
            let before = done.load(SeqCst);
            wait_for(&done, before + 500);
            until.store(true, SeqCst);
            for worker in workers {
                let worker = worker.join().expect("a worker finds what it wrote");
                assert!(worker.changes_of_way >= 1, "{death:?}: it was on the way that died");
                assert_eq!(worker.way, 1, "{death:?}");
                println!(
                    "failover: {death:?}: worker {}: the longest pause {:?}",
                    worker.number, worker.longest
                );
                assert!(worker.longest < PATIENCE * 3, "{death:?}: {:?}", worker.longest);
            }
            (before, done.load(SeqCst))
        });
        assert!(relay.carried.load(SeqCst) > 500 * 512, "{death:?}: the first way was used");
        println!("failover: {death:?}: {before} operations before, {} after", after - before);
        relay.die(Death::Cut);
    }
}

fn wait_for(done: &AtomicU64, count: u64) {
    let begun = Instant::now();
    while done.load(SeqCst) < count {
        assert!(begun.elapsed() < Duration::from_secs(30), "I/O does not go on");
        std::thread::sleep(Duration::from_millis(5));
    }
}
