//! When requests are due, and lanes of threads that make them.

use super::outcome::{Outcome, Sample};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How many requests come in a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// The next as soon as one is answered.
    AllItTakes,
    Fixed(f64),
    /// As `Fixed`, of more than is taken: latencies count from when a request was made.
    TooMany(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    pub reads: bool,
    pub block: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub asked: Asked,
    pub rate: Rate,
    /// For how long requests become due.
    pub length: Duration,
}

/// The requests of a row; lanes take one after the other.
#[derive(Debug)]
pub struct Schedule {
    plan: Plan,
    next: AtomicU64,
}

impl Schedule {
    pub fn new(plan: Plan) -> Schedule {
        Schedule { plan, next: AtomicU64::new(0) }
    }

    /// When the next request is due, now being `now`; `None` at the end.
    pub fn take(&self, now: Duration) -> Option<Duration> {
        let number = self.next.fetch_add(1, Ordering::Relaxed) as f64;
        let due = match self.plan.rate {
            Rate::AllItTakes => now,
            Rate::Fixed(rate) | Rate::TooMany(rate) => Duration::from_secs_f64(number / rate.max(1e-3)),
        };
        // What was due in time is made in any case, unless it is hopeless.
        let late = matches!(self.plan.rate, Rate::TooMany(_)) && now >= self.plan.length;
        (due < self.plan.length && !late).then_some(due)
    }

    /// Of a request that was due then, and made at `made`.
    pub fn sample(&self, due: Duration, made: Duration, end: Duration) -> Sample {
        let begin = if matches!(self.plan.rate, Rate::Fixed(_)) { due } else { made };
        Sample { begin, end }
    }
}

/// Where requests are made, one after the other.
pub trait Door: Send {
    fn request(&mut self, asked: Asked, offset: u64) -> io::Result<()>;
}

/// Places of requests: xorshift, which costs nothing.
#[derive(Debug)]
pub struct Places {
    seed: u64,
    count: u64,
    block: u64,
}

impl Places {
    pub fn new(lane: usize, size: u64, block: u32) -> Places {
        let seed = 0x9e37_79b9_7f4a_7c15 ^ (lane as u64 + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Places { seed, count: size / u64::from(block), block: block.into() }
    }

    pub fn next(&mut self) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed % self.count.max(1) * self.block
    }
}

/// Carries a plan out through all doors at once, at random places of `size` bytes.
pub fn run(doors: &mut [Box<dyn Door>], plan: Plan, size: u64) -> io::Result<Outcome> {
    let schedule = Schedule::new(plan);
    let began = Instant::now();
    let lane = |number: usize, door: &mut Box<dyn Door>| -> io::Result<Vec<Sample>> {
        let mut places = Places::new(number, size, plan.asked.block);
        let mut samples = Vec::new();
        while let Some(due) = schedule.take(began.elapsed()) {
            std::thread::sleep(due.saturating_sub(began.elapsed()));
            let made = began.elapsed();
            door.request(plan.asked, places.next())?;
            samples.push(schedule.sample(due, made, began.elapsed()));
        }
        Ok(samples)
    };
    let lane = &lane;
    let samples = std::thread::scope(|scope| {
        let spawn = |(number, door)| scope.spawn(move || lane(number, door));
        let lanes: Vec<_> = doors.iter_mut().enumerate().map(spawn).collect();
        let joined = lanes.into_iter().map(|lane| lane.join().unwrap_or_else(|_| Err(panicked())));
        joined.collect::<io::Result<Vec<_>>>()
    })?;
    Ok(Outcome::of(samples.into_iter().flatten().collect(), plan.length))
}

/// As [`run`], while the doors of `writers` write 1 MiB after the other, all that is taken.
pub fn run_beside(
    doors: &mut [Box<dyn Door>],
    writers: &mut [Box<dyn Door>],
    plan: Plan,
    size: u64,
) -> io::Result<Outcome> {
    const LARGE: u64 = 1 << 20;
    let over = AtomicBool::new(false);
    let next = AtomicU64::new(0);
    let write = |door: &mut Box<dyn Door>| -> io::Result<()> {
        while !over.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed) % (size / LARGE);
            door.request(Asked { reads: false, block: LARGE as u32 }, number * LARGE)?;
        }
        Ok(())
    };
    let write = &write;
    std::thread::scope(|scope| {
        let lanes: Vec<_> = writers.iter_mut().map(|door| scope.spawn(move || write(door))).collect();
        let outcome = run(doors, plan, size);
        over.store(true, Ordering::Relaxed);
        for lane in lanes {
            lane.join().unwrap_or_else(|_| Err(panicked()))?;
        }
        outcome
    })
}

fn panicked() -> io::Error {
    io::Error::other("a lane panicked")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a millisecond, and once a fifth of a second.
    struct Slow {
        served: u64,
    }

    impl Door for Slow {
        fn request(&mut self, _: Asked, _: u64) -> io::Result<()> {
            self.served += 1;
            std::thread::sleep(Duration::from_millis(if self.served == 20 { 200 } else { 1 }));
            Ok(())
        }
    }

    fn plan(rate: Rate) -> Plan {
        let asked = Asked { reads: true, block: 4096 };
        Plan { asked, rate, length: Duration::from_millis(500) }
    }

    #[test]
    fn those_that_wait_for_a_slow_one_are_slow_too() {
        let slow = |rate| {
            let mut doors: Vec<Box<dyn Door>> = vec![Box::new(Slow { served: 0 })];
            run(&mut doors, plan(rate), 1 << 20).unwrap()
        };
        let paced = slow(Rate::Fixed(100.0));
        assert_eq!(paced.latencies.count(), 50, "what is due is made");
        let late = paced.latencies.percentile(80.0);
        assert!(late >= Duration::from_millis(50), "a fifth of the requests was late, 80 %: {late:?}");
        assert!(paced.stall >= Duration::from_millis(200));
        let closed = slow(Rate::AllItTakes).latencies.percentile(80.0);
        assert!(closed < late, "a closed loop sees one slow request: {closed:?}");
    }

    #[test]
    fn what_is_too_much_ends_in_time() {
        let schedule = Schedule::new(plan(Rate::TooMany(1e6)));
        assert_eq!(schedule.take(Duration::ZERO), Some(Duration::ZERO));
        assert_eq!(schedule.take(Duration::from_millis(500)), None);
        let schedule = Schedule::new(plan(Rate::Fixed(4.0)));
        let due: Vec<_> = std::iter::from_fn(|| schedule.take(Duration::from_secs(9))).collect();
        assert_eq!(due, [0, 250].map(Duration::from_millis), "late, but due");
    }
}
