//! A workload as data: where, what, by how many, at what rate, for how long.
//!
//! ```text
//!   Description ─┬─ stores   places that hold bytes, by name: a path, a device, nbd://…
//!                └─ runs     one after the other ─┬─ elapsed, warm-up, interval, load
//!                                                 └─ streams   at once; each: stores, lanes, sizes, walk, mix, pace
//! ```
//!
//! A *lane* has one request under way at a time. A stream's *walk* is shared by its lanes on one store: lanes that go
//! through a store in sequence take one block after the other from it. A run's [`Load`] is divided among its streams by
//! their shares; a stream may have a rate of its own besides.
//!
//! Files of vdbench and fio, and the built-in profiles, all become this; what carries it out knows nothing of where it came
//! from. Pure data: no clock, no I/O.

use std::time::Duration;
use units::{Error, Result};

/// The most requests under way at once in one run.
pub const LANES_MAX: u64 = 65_536;
/// The most streams of all runs together, and the most stores: a file of a few lines can ask for millions.
pub const STREAMS_MAX: usize = 200_000;
pub const STORES_MAX: usize = 10_000;
/// The longest request, in bytes.
pub const REQUEST_MAX: u32 = 64 << 20;
/// Everything is done in these.
pub const SECTOR: u64 = 512;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Description {
    pub stores: Vec<Store>,
    pub runs: Vec<Run>,
}

impl Description {
    /// How many streams of one run have requests that are system calls of their thread, at most.
    pub fn streams_in_place(&self) -> usize {
        let of_run = |run: &Run| run.streams.iter().filter(|s| s.in_place).count();
        self.runs.iter().map(of_run).max().unwrap_or(0)
    }
}

/// A place that holds bytes. The file of a path that does not exist is made, and laid out, when its size is given.
#[derive(Clone, Debug, PartialEq)]
pub struct Store {
    pub name: String,
    /// A path, or a URL.
    pub place: String,
    /// Where the part that is used begins, in bytes.
    pub offset: u64,
    /// How much is used; `None` for all there is.
    pub size: Option<u64>,
    /// Past the cache of this machine, as O_DIRECT does. Over a network there is none.
    pub direct: bool,
    /// Each write is durable when it is answered.
    pub durable: bool,
    /// What this machine keeps of it in memory is dropped before a run, and each time that a stream begins with it again.
    pub cold: bool,
}

impl Store {
    pub fn new(name: impl Into<String>, place: impl Into<String>) -> Store {
        let (name, place) = (name.into(), place.into());
        Store { name, place, offset: 0, size: None, direct: false, durable: false, cold: false }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub name: String,
    /// Measured for so long; `None` until every stream has moved its amount.
    pub elapsed: Option<Duration>,
    /// Before that, and not in the summary.
    pub warmup: Duration,
    pub interval: Duration,
    /// Before the run begins.
    pub pause: Duration,
    pub load: Load,
    /// Whether the shares of the streams hold also where the load has no rate: a stream that is ahead waits.
    pub keeps_shares: bool,
    pub streams: Vec<Stream>,
}

impl Run {
    pub fn new(name: impl Into<String>) -> Run {
        Run {
            name: name.into(),
            elapsed: Some(Duration::from_secs(30)),
            warmup: Duration::ZERO,
            interval: Duration::from_secs(1),
            pause: Duration::ZERO,
            load: Load::Max,
            keeps_shares: false,
            streams: Vec::new(),
        }
    }

    /// How many requests may be under way at once.
    pub fn lanes(&self) -> u64 {
        self.streams.iter().map(Stream::lane_count).fold(0, u64::saturating_add)
    }
}

/// How much is asked for, by all streams of a run together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// The next request as soon as one is answered.
    Max,
    /// Requests in a second.
    PerSecond(f64),
    /// A part, in percent, of what the last run with [`Load::Max`] reached.
    OfMax(f64),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    pub name: String,
    /// By their index in the description.
    pub stores: Vec<usize>,
    pub lanes: Lanes,
    /// The part of the run's load, in percent.
    pub share: f64,
    /// A rate of its own, in requests per second.
    pub rate: Option<f64>,
    pub arrival: Arrival,
    /// 0 writes only, 100 reads only.
    pub read_percent: f64,
    pub read_sizes: Sizes,
    pub write_sizes: Sizes,
    pub walk: Walk,
    pub flush: Flush,
    /// Between the answer to a request and the next of the same lane.
    pub think: Duration,
    /// Ends when so many bytes were moved.
    pub amount: Option<u64>,
    /// Ends after so long, warm-up not included, when the run goes on for longer.
    pub elapsed: Option<Duration>,
    /// As of [`Store`], for this stream alone.
    pub direct: bool,
    pub durable: bool,
    /// A request to a path is a system call of the stream's thread, which does nothing else until it is answered.
    pub in_place: bool,
    /// The kernel is told whether the walk goes in sequence or at random.
    pub tells_order: bool,
    /// Blocks say what they are, and each that is read is checked.
    pub verify: bool,
}

impl Stream {
    /// Reads of 4 KiB at random, one at a time.
    pub fn new(name: impl Into<String>, stores: Vec<usize>) -> Stream {
        Stream {
            name: name.into(),
            stores,
            lanes: Lanes::Each(1),
            share: 100.0,
            rate: None,
            arrival: Arrival::Even,
            read_percent: 100.0,
            read_sizes: Sizes::one(4096),
            write_sizes: Sizes::one(4096),
            walk: Walk::default(),
            flush: Flush::Never,
            think: Duration::ZERO,
            amount: None,
            elapsed: None,
            direct: false,
            durable: false,
            in_place: false,
            tells_order: false,
            verify: false,
        }
    }

    pub fn lane_count(&self) -> u64 {
        match self.lanes {
            Lanes::Each(n) => u64::from(n) * self.stores.len() as u64,
            Lanes::Together(n) => u64::from(n),
        }
    }

    /// What can be asked for at once, in bytes.
    pub fn longest(&self) -> u32 {
        self.sizes_in_use().map(Sizes::longest).max().unwrap_or(0)
    }

    /// The distributions that can be drawn from.
    pub fn sizes_in_use(&self) -> impl Iterator<Item = &Sizes> {
        let reads = (self.read_percent > 0.0).then_some(&self.read_sizes);
        let writes = (self.read_percent < 100.0).then_some(&self.write_sizes);
        reads.into_iter().chain(writes)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// So many on each store.
    Each(u32),
    /// So many in all; each goes from store to store, one request on each.
    Together(u32),
}

/// When the requests of a rate are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// At equal distances.
    Even,
    /// Independently of one another: the distances are distributed exponentially.
    Poisson,
    /// Distances anywhere between none and twice the mean, each as likely.
    Uniform,
    /// So many at once, then none until as many are due again.
    Bursts(u32),
}

/// After how many writes a lane makes what was written durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    Never,
    /// After so many of one lane.
    Every(u32),
    /// Once, when the stream is over.
    AtEnd,
}

/// Bytes of a request: some lengths, each with its weight, or any multiple of a unit in a range.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// Lengths in bytes; the weights need not sum up to 100.
    Weighted(Vec<(u32, f64)>),
    /// From `min` to `max`, both included, in steps of `unit`.
    Range { min: u32, max: u32, unit: u32 },
}

impl Sizes {
    pub fn one(len: u32) -> Sizes {
        Sizes::Weighted(vec![(len, 100.0)])
    }

    pub fn longest(&self) -> u32 {
        match self {
            Sizes::Weighted(sizes) => sizes.iter().map(|(len, _)| *len).max().unwrap_or(0),
            Sizes::Range { max, .. } => *max,
        }
    }

    /// The length, where there is one.
    pub fn only(&self) -> Option<u32> {
        match self {
            Sizes::Weighted(sizes) => {
                sizes.first().filter(|(first, _)| sizes.iter().all(|(len, _)| len == first))
            }
            Sizes::Range { min, max, .. } => return (min == max).then_some(*min),
        }
        .map(|(len, _)| *len)
    }

    /// What every length is a multiple of.
    pub fn unit(&self) -> u32 {
        match self {
            Sizes::Weighted(sizes) => sizes.iter().fold(0, |unit, (len, _)| common(unit, *len)),
            Sizes::Range { min, unit, .. } => common(*min, *unit),
        }
    }

    fn check(&self, whose: &str) -> Result<()> {
        let wrong = |what: &str| Err(Error::invalid(format!("{whose}: {what}")));
        let is_length = |len: u32| len > 0 && u64::from(len).is_multiple_of(SECTOR) && len <= REQUEST_MAX;
        let lengths_are_right = match self {
            Sizes::Weighted(sizes) => {
                let sum: f64 = sizes.iter().map(|(_, weight)| *weight).sum();
                let weights_are_right = sizes.iter().all(|(_, w)| w.is_finite() && *w >= 0.0);
                if sizes.is_empty() || !weights_are_right || sum <= 0.0 {
                    return wrong("the sizes of requests have weights, and not all of them are 0");
                }
                sizes.iter().all(|(len, _)| is_length(*len))
            }
            Sizes::Range { min, max, unit } => {
                if min > max {
                    return wrong("the smallest request is not larger than the largest");
                }
                is_length(*min) && is_length(*max) && is_length(*unit)
            }
        };
        match lengths_are_right {
            true => Ok(()),
            false => wrong("a request is a multiple of 512 bytes, and 64M at most"),
        }
    }
}

/// The greatest common divisor; of 0 and n it is n.
pub(crate) fn common(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common(b, a % b) }
}

/// Where requests go.
#[derive(Clone, Debug, PartialEq)]
pub struct Walk {
    /// How many of 100 requests go somewhere else; the others follow where the last ended.
    pub seek_percent: f64,
    /// Where those go.
    pub spread: Spread,
    /// How many of 100 reads, and of 100 writes, go into the first `hit_area` bytes: what a cache would hold.
    pub read_hit_percent: f64,
    pub write_hit_percent: f64,
    pub hit_area: u64,
    /// What offsets are multiples of; `None`: of the length of the request.
    pub align: Option<u32>,
    /// Whether a sequence begins again at its end; else the stream is over there.
    pub wraps: bool,
    /// The part of the store that it keeps to.
    pub range: Option<Part>,
}

/// From where to where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Percent(u64, u64),
    Bytes(u64, u64),
}

impl Part {
    /// In bytes, of a store that has `size`.
    pub fn of(self, size: u64) -> (u64, u64) {
        let percent = |p: u64| (u128::from(size) * u128::from(p) / 100) as u64;
        let (from, to) = match self {
            Part::Percent(from, to) => (percent(from), percent(to)),
            Part::Bytes(from, to) => (from, to),
        };
        (from.min(size) / SECTOR * SECTOR, to.min(size) / SECTOR * SECTOR)
    }
}

impl Default for Walk {
    fn default() -> Walk {
        Walk {
            seek_percent: 100.0,
            spread: Spread::Uniform,
            read_hit_percent: 0.0,
            write_hit_percent: 0.0,
            hit_area: 1 << 20,
            align: None,
            wraps: true,
            range: None,
        }
    }
}

impl Walk {
    pub fn sequential() -> Walk {
        Walk { seek_percent: 0.0, ..Walk::default() }
    }
}

/// How likely each block is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    Uniform,
    /// Each once, in an order by chance, before any comes again: of a stream with requests of one length, all of which go
    /// somewhere else.
    EachOnce,
    /// The k-th most likely block has a weight of 1 / k^theta; where it lies is scattered.
    Zipf(f64),
    /// Self-similar: the part `h` of the blocks, scattered, takes 1 - `h` of the requests, and so on inside of it.
    Pareto(f64),
}

impl Description {
    /// Whether it can be carried out; the error names the stream or run, and what is wrong with it.
    pub fn check(&self) -> Result<()> {
        if self.runs.is_empty() {
            return Err(Error::invalid("the workload has no run"));
        }
        let mut maximum_is_known = false;
        for run in &self.runs {
            self.check_run(run)?;
            match run.load {
                Load::Max => maximum_is_known = true,
                Load::OfMax(_) if !maximum_is_known => {
                    let what = "a run at a part of the maximum follows one at the maximum";
                    return Err(Error::invalid(format!("run '{}': {what}", run.name)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_run(&self, run: &Run) -> Result<()> {
        let wrong = |what: String| Err(Error::invalid(format!("run '{}': {what}", run.name)));
        if run.streams.is_empty() {
            return wrong("it has no workload".into());
        }
        if run.lanes() > LANES_MAX {
            return wrong(format!("{} requests at once; {LANES_MAX} is the most", run.lanes()));
        }
        if run.interval.is_zero() {
            return wrong("the interval is longer than 0".into());
        }
        let is_endless = |s: &Stream| s.amount.is_none() && s.elapsed.is_none() && s.walk.wraps;
        if run.elapsed.is_none() && run.streams.iter().any(is_endless) {
            return wrong("it has neither a time nor an amount, and would never end".into());
        }
        let rate = match run.load {
            Load::Max => 1.0,
            Load::PerSecond(rate) | Load::OfMax(rate) => rate,
        };
        if !is_positive(rate) {
            return wrong("a rate is a number above 0".into());
        }
        run.streams.iter().try_for_each(|stream| self.check_stream(stream))
    }

    fn check_stream(&self, stream: &Stream) -> Result<()> {
        let name = format!("workload '{}'", stream.name);
        let wrong = |what: &str| Err(Error::invalid(format!("{name}: {what}")));
        if stream.stores.is_empty() || stream.stores.iter().any(|s| *s >= self.stores.len()) {
            return wrong("it has no place to work on");
        }
        if stream.lane_count() == 0 {
            return wrong("it has no thread");
        }
        let Walk { seek_percent, read_hit_percent, write_hit_percent, align, spread, .. } = stream.walk;
        let percents = [seek_percent, read_hit_percent, write_hit_percent, stream.read_percent];
        if !percents.iter().all(|p| (0.0..=100.0).contains(p)) {
            return wrong("a percentage is between 0 and 100");
        }
        if !is_positive(stream.share) || stream.rate.is_some_and(|rate| !is_positive(rate)) {
            return wrong("a rate or a share of it is a number above 0");
        }
        if align.is_some_and(|align| align == 0 || !u64::from(align).is_multiple_of(SECTOR)) {
            return wrong("an alignment is a multiple of 512");
        }
        match spread {
            Spread::Zipf(theta) if !(theta > 0.0 && theta <= 10.0) => {
                return wrong("zipf has a theta above 0 and at most 10");
            }
            Spread::EachOnce
                if seek_percent < 100.0
                    || stream.sizes_in_use().any(|s| s.only() != Some(stream.longest())) =>
            {
                return wrong(
                    "each block can come once where all requests are of one length, and none is in sequence",
                );
            }
            Spread::Pareto(h) if !(h > 0.0 && h < 1.0) => return wrong("pareto has an h between 0 and 1"),
            _ => {}
        }
        if stream.arrival == Arrival::Bursts(0) || stream.flush == Flush::Every(0) {
            return wrong("a burst has at least one request, and a flush follows at least one write");
        }
        stream.sizes_in_use().try_for_each(|sizes| sizes.check(&name))
    }
}

fn is_positive(rate: f64) -> bool {
    rate.is_finite() && rate > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(change: impl Fn(&mut Run)) -> Description {
        let mut run = Run::new("run");
        run.streams.push(Stream::new("stream", vec![0]));
        change(&mut run);
        Description { stores: vec![Store::new("a", "/tmp/a")], runs: vec![run] }
    }

    #[test]
    fn what_cannot_be_carried_out_is_named() {
        description(|_| {}).check().unwrap();
        let wrong: [(&str, fn(&mut Run)); 14] = [
            ("no workload", |run| run.streams.clear()),
            ("no place", |run| run.streams[0].stores = vec![1]),
            ("no place", |run| run.streams[0].stores.clear()),
            ("no thread", |run| run.streams[0].lanes = Lanes::Together(0)),
            ("65536 is the most", |run| run.streams[0].lanes = Lanes::Each(65_537)),
            ("never end", |run| run.elapsed = None),
            ("interval", |run| run.interval = Duration::ZERO),
            ("a rate", |run| run.load = Load::PerSecond(0.0)),
            ("a rate", |run| run.streams[0].rate = Some(f64::NAN)),
            ("follows one at the maximum", |run| run.load = Load::OfMax(50.0)),
            ("percentage", |run| run.streams[0].walk.seek_percent = 101.0),
            ("multiple of 512", |run| run.streams[0].read_sizes = Sizes::one(1000)),
            ("weights", |run| run.streams[0].read_sizes = Sizes::Weighted(vec![(4096, 0.0)])),
            ("not larger", |run| {
                run.streams[0].read_sizes = Sizes::Range { min: 8192, max: 4096, unit: 4096 }
            }),
        ];
        for (what, change) in wrong {
            let error = description(change).check().unwrap_err().to_string();
            assert!(error.contains(what), "{what}: {error}");
        }
        assert!(Description::default().check().is_err());
    }

    #[test]
    fn what_is_never_drawn_is_not_checked() {
        description(|run| run.streams[0].write_sizes = Sizes::one(1)).check().unwrap();
    }

    #[test]
    fn lanes_are_counted_over_all_stores() {
        let mut stream = Stream::new("s", vec![0, 1, 2, 3]);
        stream.lanes = Lanes::Each(128);
        assert_eq!(stream.lane_count(), 512);
        stream.lanes = Lanes::Together(32);
        assert_eq!(stream.lane_count(), 32);
    }

    #[test]
    fn the_unit_of_sizes_divides_them_all() {
        let sizes = Sizes::Weighted(vec![(8192, 50.0), (12_288, 30.0), (16_384, 20.0)]);
        assert_eq!((sizes.unit(), sizes.longest()), (4096, 16_384));
        assert_eq!(Sizes::Range { min: 4096, max: 65_536, unit: 1024 }.unit(), 1024);
    }
}
