//! How long it takes until caches serve most reads, by the rate at which a cache device is fed.
//!
//! ```text
//!   readers at random, at one rate ─┬─ memory ──────── a sixth of the data
//!                                   ├─ cache device ◀─ fed with 8 MiB, 32 MiB, 166 MB in each second
//!                                   └─ disks           what is left: from 83 % of the reads down to 10 %
//! ```
//!
//! The machine is that of `warm-up`. Its data are smaller than the 700 GB of the document, and memory with them, so times
//! are told for each GiB of data: twice the data takes twice as long.

use super::warm_up::{Feed, Shape, on_the_machine};
use crate::experiment::{Ask, Better, Case, Experiment, Pair, Row, Said};
use crate::models::{DISK_7200, SSD_SATA, WARM_UP};
use crate::parameters::Parameters;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use units::{Error, Result};

pub const EXPERIMENT: Experiment = Experiment {
    name: "warm-up-time",
    about: "S1, 2011: a cache device that is fed with 8 MB/s takes a day to be of use; with 166 MB/s an hour",
    modelled: "the machine of warm-up; readers at random at one rate, of blocks of 64K, over data of six times the memory",
    remark: "There is no boost (l2arc_write_boost is 0), and a pass is made once a second (l2arc_feed_again is 0), as it was \
             then. The document tells of no times; 700 GB are 652 GiB.",
    chief: 3,
    quick: 0.25,
    parameters: || Parameters::of(&[WARM_UP, DISK_7200, SSD_SATA]),
    run,
};

/// GiB, at full size; and the part of it that is memory.
const SET: f64 = 4.0;
const MEMORY: u64 = 6;
const GIB: u64 = 1 << 30;
const RECORD: u64 = 64 << 10;
/// Together they turn over more than the fastest feed takes.
const READERS: u64 = 200;
const READS_PER_SECOND: u64 = 4000;
/// Shares of reads that are not served by disks, in percent.
const SHARES: [u64; 4] = [25, 50, 75, 90];
/// It is looked so often, at the reads since.
const LOOK: Duration = Duration::from_millis(500);
/// What is slower has something wrong with it: the time in which the slowest feed writes all data five times.
const PATIENCE: u64 = 5;

/// Seconds for each GiB until each of [`SHARES`].
type Times = [f64; SHARES.len()];

fn run(parameters: &Parameters, ask: &Ask) -> Result<Vec<Row>> {
    let headroom = parameters.count("headroom-then");
    let feed = |rate| Feed { rate, headroom, again: false, no_prefetch: true };
    let rates = [parameters.get("feed-then") * 1048576.0, 33_554_432.0, parameters.get("feed-advised") * 1e6];
    let known: [Cell<Option<Times>>; 3] = Default::default();
    let times = |which: usize| -> Result<Times> {
        let times = match known[which].get() {
            Some(times) => times,
            None => one(parameters, ask, feed(rates[which]))?,
        };
        known[which].set(Some(times));
        Ok(times)
    };
    let mut cases: Vec<Case<'_>> = Vec::new();
    for (before, name) in [(0, "8 MiB/s, 166 MB/s"), (1, "32 MiB/s, 166 MB/s")] {
        for (i, share) in SHARES.into_iter().enumerate() {
            let times = &times;
            cases.push(Box::new(move || {
                let lab = Pair { before: times(before)?[i], after: times(2)?[i] };
                let case = format!("{name}; until {share} % of the reads");
                Ok(Row { case, unit: "s/GiB", better: Better::Less, lab, said: Said::Nothing })
            }));
        }
    }
    ask.rows(cases)
}

fn one(parameters: &Parameters, ask: &Ask, feed: Feed) -> Result<Times> {
    let set = ask.scaled(SET * 16.0, 4) * (GIB / 16);
    let patience = Duration::from_secs(PATIENCE * set / feed.rate.min(8e6) as u64);
    on_the_machine(
        parameters,
        ask.seed,
        feed,
        Shape { set, record: RECORD, memory: set / MEMORY },
        move |pool, volume| async move {
            let reads = Arc::new(AtomicU64::new(0));
            for _ in 0..READERS {
                let (volume, reads) = (volume.clone(), reads.clone());
                drop(world::spawn(async move {
                    let each = Duration::from_nanos(READERS * 1_000_000_000 / READS_PER_SECOND);
                    let mut next = world::now();
                    loop {
                        let block = world::random_u64() % (set / RECORD);
                        if volume.read(block * RECORD, RECORD).await.is_err() {
                            return;
                        }
                        reads.fetch_add(1, Ordering::Relaxed);
                        next = next.after(each).max(world::now());
                        world::sleep_until(next).await;
                    }
                }));
            }
            // Reads of data that neither memory nor the cache device had.
            let of_disks = || {
                let (memory, device) =
                    (pool.pipeline().cache().stats(), pool.pipeline().second_level().stats());
                (memory.data.demand_misses + memory.metadata.demand_misses)
                    .saturating_sub(device.counted.hits)
            };
            let begun = world::now();
            let (mut times, mut reached) = ([0.0; SHARES.len()], 0);
            let mut before = (reads.load(Ordering::Relaxed), of_disks());
            while reached < SHARES.len() {
                world::sleep(LOOK).await;
                let now = (reads.load(Ordering::Relaxed), of_disks());
                let (all, slow) = (now.0 - before.0, now.1 - before.1);
                before = now;
                let served = all.saturating_sub(slow) * 100 / all.max(1);
                let passed = world::now().since(begun);
                while reached < SHARES.len() && served >= SHARES[reached] {
                    times[reached] = passed.as_secs_f64() * GIB as f64 / set as f64;
                    reached += 1;
                }
                if passed > patience {
                    return Err(Error::new(units::Kind::Invalid, "warm up").because(format!(
                        "after {passed:?} {served} % of the reads are served by memory and the cache device"
                    )));
                }
            }
            Ok(times)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_faster_feed_is_of_use_sooner_and_more_is_served_later() {
        let ask = Ask { scale: 1.0 / 16.0, ..Ask::default() };
        let times = |rate| {
            let feed = Feed { rate, headroom: 2, again: false, no_prefetch: true };
            one(&(EXPERIMENT.parameters)(), &ask, feed).unwrap()
        };
        let (slow, fast) = (times(8_388_608.0), times(33_554_432.0));
        assert!(slow.is_sorted() && fast.is_sorted(), "{slow:?} {fast:?}");
        assert!(slow[0] > fast[0] && slow[3] > 1.5 * fast[3], "{slow:?} {fast:?}");
    }
}
