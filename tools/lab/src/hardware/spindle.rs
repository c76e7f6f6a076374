//! A disk's arm at work: commands wait, and the one that is reached soonest goes next.
//!
//! ```text
//!   submit ─▶ waiting ─▶ choose: shortest positioning, oldest first past an age ─▶ seek, wait, transfer ─▶ done
//!                          background commands (a cache that destages) wait for the others, unless they are urgent
//! ```
//!
//! A read that follows the last one streams: the disk has gone on reading into its buffer, as far as a segment of that goes,
//! so that neither the command's overhead nor a turn is lost. A command of any kind that was waiting already when the one
//! before it ended, and begins where that did, goes on without overhead as well.
//!
//! Invariant: one command is at the head at a time, and each is answered once.

use super::mechanics::Mechanics;
use crate::parameters::Parameters;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use world::Instant;
use world::sync::oneshot;

/// What a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    pub offset: u64,
    pub len: u64,
    pub is_write: bool,
    /// It waits for those that are not, unless the spindle is [urged](Spindle::urge).
    pub is_background: bool,
}

/// What the arm has done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    pub reads: u64,
    pub writes: u64,
    pub bytes: u64,
    /// Seconds: in motion or waiting for the platter, and of data under the head.
    pub positioning: f64,
    pub transferring: f64,
}

impl Work {
    #[must_use]
    pub fn and(self, other: Work) -> Work {
        Work {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            bytes: self.bytes + other.bytes,
            positioning: self.positioning + other.positioning,
            transferring: self.transferring + other.transferring,
        }
    }

    /// What has been done since `before`.
    #[must_use]
    pub fn since(self, before: Work) -> Work {
        Work {
            reads: self.reads - before.reads,
            writes: self.writes - before.writes,
            bytes: self.bytes - before.bytes,
            positioning: self.positioning - before.positioning,
            transferring: self.transferring - before.transferring,
        }
    }
}

#[derive(Debug)]
pub struct Spindle {
    mechanics: Mechanics,
    overhead: f64,
    hit: f64,
    port: f64,
    segment: u64,
    depth: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Waiting>,
    is_running: bool,
    is_urgent: bool,
    cylinder: u64,
    /// Where the last command ended, when, and whether it read.
    end: u64,
    ended: f64,
    was_read: bool,
    work: Work,
}

#[derive(Debug)]
struct Waiting {
    command: Command,
    arrived: f64,
    done: oneshot::Sender<()>,
}

/// Older commands go before nearer ones.
const AGE_MAX: f64 = 1.0;

pub fn seconds(at: Instant) -> f64 {
    at.0 as f64 / 1e9
}

/// The first instant that is not before `at`, in seconds.
pub fn instant(at: f64) -> Instant {
    Instant((at * 1e9).ceil() as u64)
}

impl Spindle {
    /// From the parameters whose keys begin with `prefix`.
    pub fn of(parameters: &Parameters, prefix: &str, stretch: u64) -> Arc<Spindle> {
        let get = |key: &str| parameters.get(&format!("{prefix}{key}"));
        Arc::new(Spindle {
            mechanics: Mechanics::of(parameters, prefix, stretch),
            overhead: get("overhead") / 1e3,
            hit: get("hit") / 1e3,
            port: get("port") * 1e6,
            segment: (get("segment") * 1048576.0) as u64,
            depth: get("depth") as usize,
            state: Mutex::default(),
        })
    }

    pub fn mechanics(&self) -> &Mechanics {
        &self.mechanics
    }

    pub fn work(&self) -> Work {
        self.lock().work
    }

    /// Background commands count as others from now on, or no longer.
    pub fn urge(&self, is_urgent: bool) {
        self.lock().is_urgent = is_urgent;
    }

    /// Queues a command; the answer comes when its last byte has passed the head, or lies in the buffer.
    pub fn submit(self: &Arc<Spindle>, command: Command) -> oneshot::Receiver<()> {
        let (done, receiver) = oneshot::channel();
        let start = {
            let mut state = self.lock();
            state.waiting.push(Waiting { command, arrived: seconds(world::now()), done });
            !std::mem::replace(&mut state.is_running, true)
        };
        if start {
            let this = self.clone();
            world::spawn(async move { this.run().await });
        }
        receiver
    }

    async fn run(self: Arc<Spindle>) {
        loop {
            let now = seconds(world::now());
            let Some((waiting, until)) = self.lock().begin(&self, now) else { return };
            world::sleep_until(instant(until)).await;
            // A waiter that has gone has no use for it.
            let _ = waiting.done.send(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes the next command, and says when it is done; none when there is nothing to do.
    fn begin(&mut self, disk: &Spindle, now: f64) -> Option<(Waiting, f64)> {
        let Some(index) = self.choose(disk, now) else {
            self.is_running = false;
            return None;
        };
        let waiting = self.waiting.remove(index);
        let Command { offset, len, is_write, .. } = waiting.command;
        let mechanics = &disk.mechanics;
        let transfer = mechanics.transfer(offset, len);
        let (positioning, until) = match self.streams(disk, &waiting, now) {
            Some(ready) => (0.0, ready),
            None => {
                let begin = now + self.overhead(disk, &waiting);
                let positioning =
                    mechanics.positioning(self.cylinder, begin, mechanics.spot(offset), is_write);
                (positioning, begin + positioning + transfer)
            }
        };
        let work = &mut self.work;
        *(if is_write { &mut work.writes } else { &mut work.reads }) += 1;
        work.bytes += len;
        work.positioning += positioning;
        work.transferring += transfer;
        self.cylinder = mechanics.spot(offset + len - 1).cylinder;
        (self.end, self.was_read) = (offset + len, !is_write);
        // The clock counts whole nanoseconds: what follows must find the platter where this leaves it.
        self.ended = until;
        Some((waiting, until))
    }

    /// When a read that goes on from the last one is done: the disk has read on meanwhile.
    fn streams(&self, disk: &Spindle, next: &Waiting, now: f64) -> Option<f64> {
        let Command { offset, len, is_write, .. } = next.command;
        if is_write || !self.was_read || offset < self.end || offset >= self.end + disk.segment {
            return None;
        }
        let under_the_head = self.ended + disk.mechanics.transfer(self.end, offset + len - self.end);
        // Of what it has read on, the buffer holds a segment; the rest is still to come from now on.
        let ahead = disk.mechanics.transfer(self.end, disk.segment);
        let late = (now - self.ended - ahead).max(0.0);
        let buffered = under_the_head <= self.ended + ahead;
        let from_media = if buffered { under_the_head } else { under_the_head + late };
        Some(from_media.max(now + disk.hit + len as f64 / disk.port))
    }

    fn overhead(&self, disk: &Spindle, next: &Waiting) -> f64 {
        let goes_on = next.command.offset == self.end && self.was_read != next.command.is_write;
        if goes_on && next.arrived + 1e-9 < self.ended { 0.0 } else { disk.overhead }
    }

    fn choose(&self, disk: &Spindle, now: f64) -> Option<usize> {
        let foreground = self.waiting.iter().any(|w| !w.command.is_background);
        let counts = |w: &Waiting| self.is_urgent || !foreground || !w.command.is_background;
        let mut best: Option<(f64, usize)> = None;
        // The drive knows as many commands as it queues; the others wait in the host.
        for (i, waiting) in self.waiting.iter().enumerate().filter(|(_, w)| counts(w)).take(disk.depth) {
            let cost = match waiting {
                // The oldest of the old.
                w if now - w.arrived > AGE_MAX => w.arrived - now,
                w if self.streams(disk, w, now).is_some() => 0.0,
                Waiting { command, .. } => {
                    let begin = now + self.overhead(disk, waiting);
                    let spot = disk.mechanics.spot(command.offset);
                    disk.mechanics.positioning(self.cylinder, begin, spot, command.is_write)
                }
            };
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, i));
            }
        }
        best.map(|(_, i)| i)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::DISK_7200;
    use crate::parameters::Parameters;
    use std::time::Duration;

    fn run<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
        sim::run(1, sim::Config { shuffle: false, ..Default::default() }, work)
    }

    fn spindle() -> Arc<Spindle> {
        Spindle::of(&Parameters::of(&[DISK_7200]), "disk-", 1)
    }

    fn command(offset: u64, len: u64, is_write: bool) -> Command {
        Command { offset, len, is_write, is_background: false }
    }

    async fn elapsed(work: impl Future<Output = ()>) -> Duration {
        let began = world::now();
        work.await;
        world::now().since(began)
    }

    async fn one(disk: &Arc<Spindle>, command: Command) {
        disk.submit(command).await.unwrap();
    }

    #[test]
    fn a_row_of_reads_runs_at_the_speed_of_the_platter() {
        for (piece, ahead) in [(128 << 10, false), (1 << 20, false), (128 << 10, true)] {
            let rate = run(async move {
                let disk = spindle();
                let count = (64 << 20) / piece;
                let took = elapsed(async {
                    let mut before = None;
                    for i in 0..count {
                        let next = disk.submit(command(i * piece, piece, false));
                        let last = if ahead { before.replace(next) } else { Some(next) };
                        if let Some(last) = last {
                            last.await.unwrap();
                        }
                    }
                    if let Some(last) = before {
                        last.await.unwrap();
                    }
                });
                64.0 * 1.048_576 / took.await.as_secs_f64()
            });
            assert!((140.0..180.0).contains(&rate), "{piece} {ahead}: {rate} MB/s");
        }
    }

    #[test]
    fn writes_in_a_row_one_after_the_other_lose_a_turn_each() {
        let took = run(async {
            let disk = spindle();
            one(&disk, command(0, 4096, true)).await;
            elapsed(async {
                for i in 1..101 {
                    one(&disk, command(i * 4096, 4096, true)).await;
                }
            })
            .await
        });
        let turns = took.as_secs_f64() / disk_turn() / 100.0;
        assert!((0.98..1.05).contains(&turns), "{turns}");
    }

    fn disk_turn() -> f64 {
        spindle().mechanics().turn
    }

    #[test]
    fn a_queue_makes_random_reads_cheaper() {
        let mean = |depth: usize| {
            run(async move {
                let (disk, mut rng) = (spindle(), sim::Rng::new(3));
                let mut offsets = (0..800).map(|_| rng.below(disk.mechanics().capacity() / 4096) * 4096);
                let took = elapsed(async {
                    let mut waiting = futures_util::stream::FuturesUnordered::new();
                    let mut left = true;
                    while left || !waiting.is_empty() {
                        while left && waiting.len() < depth {
                            match offsets.next() {
                                Some(offset) => waiting.push(disk.submit(command(offset, 4096, false))),
                                None => left = false,
                            }
                        }
                        futures_util::StreamExt::next(&mut waiting).await;
                    }
                });
                took.await.as_secs_f64() * 1e3 / 800.0
            })
        };
        let (one, ten, many) = (mean(1), mean(10), mean(32));
        // 11.6, 6.7 and 5.0 ms by another simulation of the same mechanics, without overhead.
        assert!(
            (11.0..12.6).contains(&one) && (6.2..7.6).contains(&ten) && (4.5..5.9).contains(&many),
            "{one} {ten} {many}"
        );
    }

    #[test]
    fn background_waits_unless_it_is_urgent() {
        for urgent in [false, true] {
            let (reads, writes) = run(async move {
                let disk = spindle();
                disk.urge(urgent);
                let far = disk.mechanics().capacity() / 2;
                let write = Command { offset: 0, len: 4096, is_write: true, is_background: true };
                let first = disk.submit(command(0, 4096, false));
                let write = disk.submit(write);
                let read = disk.submit(command(far, 4096, false));
                first.await.unwrap();
                let write = elapsed(async { write.await.unwrap() });
                let read = elapsed(async { read.await.unwrap() });
                futures_util::join!(read, write)
            });
            assert_eq!(reads < writes, !urgent, "{urgent}");
        }
    }
}
