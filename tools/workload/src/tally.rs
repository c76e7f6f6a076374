//! What was measured: response times, bytes, and how many requests were under way.
//!
//! ```text
//!   lane ── begin ─▶ requests under way ◀── their integral over time, divided by the time: the measured concurrency
//!        ── end ───▶ histograms, bytes        requests per second x mean service time: the same by Little's law
//! ```
//!
//! The two agree when every request that began in a span also ended in it. They part when requests do not come back, and
//! then no mean of those that did says anything: [`Figures::is_doubtful`].

use crate::histogram::Histogram;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use world::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
    Flush,
}

/// What came of a span of time.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub reads: Histogram,
    pub writes: Histogram,
    pub flushes: Histogram,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// The integral of the requests under way over time, in nanoseconds.
    area: u128,
    /// The times that the target took, summed up: response times count from when a request was due.
    service: u128,
    /// The squares of the response times, in seconds.
    squares: f64,
    /// How long it was.
    pub elapsed: Duration,
    /// What this process used meanwhile, user and system.
    pub cpu: Duration,
}

/// Farther apart than this part, the two measures of concurrency are told.
const APART: f64 = 0.1;

impl Figures {
    /// Of a span without requests, yet.
    pub fn of(elapsed: Duration, cpu: Duration) -> Figures {
        Figures { elapsed, cpu, ..Figures::default() }
    }

    /// Reads and writes.
    pub fn requests(&self) -> u64 {
        self.reads.count() + self.writes.count()
    }

    pub fn bytes(&self) -> u64 {
        self.bytes_read + self.bytes_written
    }

    fn seconds(&self) -> f64 {
        self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Reads and writes per second.
    pub fn rate(&self) -> f64 {
        self.requests() as f64 / self.seconds()
    }

    pub fn bytes_per_second(&self) -> f64 {
        self.bytes() as f64 / self.seconds()
    }

    /// Reads and writes together.
    pub fn responses(&self) -> Histogram {
        let mut all = self.reads.clone();
        all.merge(&self.writes);
        all
    }

    pub fn deviation(&self) -> Duration {
        let count = self.requests();
        if count == 0 {
            return Duration::ZERO;
        }
        let mean = self.responses().mean().as_secs_f64();
        let variance = self.squares / count as f64 - mean * mean;
        Duration::from_secs_f64(variance.max(0.0).sqrt())
    }

    /// Requests under way at once, as they were counted.
    pub fn measured_concurrency(&self) -> f64 {
        self.area as f64 / 1e9 / self.seconds()
    }

    /// Requests under way at once by Little's law: how many end in a second, times how long each took.
    pub fn concurrency_by_law(&self) -> f64 {
        self.service as f64 / 1e9 / self.seconds()
    }

    /// Whether the two differ by a tenth and more, and by half a request.
    pub fn is_doubtful(&self) -> bool {
        let (law, measured) = (self.concurrency_by_law(), self.measured_concurrency());
        (law - measured).abs() > (APART * measured).max(0.5)
    }

    pub fn cpu_per_request(&self) -> Duration {
        let requests = self.requests().max(1);
        Duration::from_nanos((self.cpu.as_nanos() / u128::from(requests)) as u64)
    }

    /// Adds what was measured at the same time elsewhere; the times stay.
    pub fn join(&mut self, other: &Figures) {
        self.reads.merge(&other.reads);
        self.writes.merge(&other.writes);
        self.flushes.merge(&other.flushes);
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
        self.area += other.area;
        self.service += other.service;
        self.squares += other.squares;
    }

    /// Adds what was measured next.
    pub fn follow(&mut self, other: &Figures) {
        self.join(other);
        self.elapsed += other.elapsed;
        self.cpu += other.cpu;
    }
}

/// A request that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub kind: Kind,
    /// When it should have begun, and when it did.
    pub due: Instant,
    pub begun: Instant,
    pub end: Instant,
    pub bytes: u64,
}

/// Counts for the lanes of one core.
#[derive(Debug, Default)]
pub struct Tally(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    figures: Figures,
    under_way: u64,
    changed: Instant,
}

impl State {
    fn advance(&mut self, now: Instant) {
        // Lanes look at the clock before they come here, and may come in another order.
        if now > self.changed {
            self.figures.area += now.since(self.changed).as_nanos() * u128::from(self.under_way);
            self.changed = now;
        }
    }
}

impl Tally {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn begin(&self, now: Instant) {
        let mut state = self.lock();
        state.advance(now);
        state.under_way += 1;
    }

    pub fn end(&self, ended: &Ended) {
        let Ended { kind, due, begun, end, bytes } = *ended;
        let mut state = self.lock();
        state.advance(end);
        state.under_way = state.under_way.saturating_sub(1);
        let figures = &mut state.figures;
        let response = end.since(due);
        figures.service += end.since(begun).as_nanos();
        match kind {
            Kind::Read => {
                figures.reads.record(response);
                figures.bytes_read += bytes;
            }
            Kind::Write => {
                figures.writes.record(response);
                figures.bytes_written += bytes;
            }
            Kind::Flush => return figures.flushes.record(response),
        }
        figures.squares += response.as_secs_f64().powi(2);
    }

    /// One that has failed counts for nothing.
    pub fn give_up(&self, now: Instant) {
        let mut state = self.lock();
        state.advance(now);
        state.under_way = state.under_way.saturating_sub(1);
    }

    /// What was measured since the last time; `elapsed` and `cpu` are not set.
    pub fn take(&self, now: Instant) -> Figures {
        let mut state = self.lock();
        state.advance(now);
        std::mem::take(&mut state.figures)
    }
}

/// User and system time of this process.
pub fn cpu_time() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(t.tv_sec.max(0) as u64, t.tv_nsec.clamp(0, 999_999_999) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }

    fn ended(due: u64, begun: u64, end: u64) -> Ended {
        Ended { kind: Kind::Read, due: at(due), begun: at(begun), end: at(end), bytes: 4096 }
    }

    #[test]
    fn law_and_measure_agree_when_all_comes_back() {
        let tally = Tally::default();
        tally.take(at(0));
        // Two lanes, each request takes 10 ms, for a second.
        for turn in 0..100 {
            tally.begin(at(turn * 10));
            tally.begin(at(turn * 10));
            tally.end(&ended(turn * 10, turn * 10, turn * 10 + 10));
            tally.end(&ended(turn * 10, turn * 10, turn * 10 + 10));
        }
        let mut figures = tally.take(at(1000));
        figures.elapsed = Duration::from_secs(1);
        assert_eq!((figures.rate(), figures.bytes_per_second()), (200.0, 200.0 * 4096.0));
        assert!((figures.concurrency_by_law() - 2.0).abs() < 1e-9, "{}", figures.concurrency_by_law());
        assert!((figures.measured_concurrency() - 2.0).abs() < 1e-9);
        assert!(!figures.is_doubtful());
        assert!(figures.deviation() < Duration::from_micros(1));
    }

    #[test]
    fn requests_that_do_not_come_back_are_told() {
        let tally = Tally::default();
        tally.take(at(0));
        for _ in 0..8 {
            tally.begin(at(0));
        }
        tally.end(&ended(0, 0, 500));
        let mut figures = tally.take(at(1000));
        figures.elapsed = Duration::from_secs(1);
        assert!((figures.measured_concurrency() - 7.5).abs() < 1e-9);
        assert!(figures.is_doubtful());
        // What is still under way counts in the next span.
        let mut next = tally.take(at(2000));
        next.elapsed = Duration::from_secs(1);
        assert!((next.measured_concurrency() - 7.0).abs() < 1e-9);
        figures.follow(&next);
        assert_eq!(figures.elapsed, Duration::from_secs(2));
    }

    #[test]
    fn response_counts_from_when_a_request_was_due() {
        let tally = Tally::default();
        tally.begin(at(100));
        tally.end(&ended(0, 100, 110));
        let mut figures = tally.take(at(1000));
        figures.elapsed = Duration::from_secs(1);
        assert_eq!(figures.reads.max(), Duration::from_millis(110));
        assert!((figures.concurrency_by_law() - 0.01).abs() < 1e-9, "the target had it for 10 ms");
    }
}
