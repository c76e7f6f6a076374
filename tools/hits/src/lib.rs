//! How often a block is in memory: the engine's own cache beside the policies of the literature, on shapes with seeds.
//!
//! ```text
//!   shape, seed, size of the cache ──▶ Trace ──┬─▶ arc::Cache, the real one        ┐
//!                                              ├─▶ LRU 2Q ARC CAR S3-FIFO W-TinyLFU ├─▶ hits / requests ─▶ table
//!                                              └─▶ Belady, which knows what comes   ┘
//! ```
//!
//! A request names a block, its kind and its size; a policy says whether the block was there, and has it afterwards
//! unless it chose not to. All are charged alike for a block, as the engine charges: whole pages and what it takes to know
//! the block. The first quarter of a trace warms the caches and is not counted. There is no time and no input or output in
//! it, so a row is the same for the same seed.
//!
//! The references are written from their papers, with sizes in bytes where these count blocks. Belady evicts what is wanted
//! again last, or does not take it in: with blocks of one size nothing can do better; with several sizes it is a mark, not a
//! proof.
//!
//! Not here: reading ahead, writes, and what a hit costs (`arc/benches`).

mod lists;
mod policy;
mod shape;
mod table;

pub use policy::Policy;
pub use shape::{Block, Shape, Trace};
pub use table::{render, render_json};

use units::{Error, Result};

pub const USAGE: &str = "\
usage: cenote bench hits [-j] [--shapes A,B] [--percent 1,5,20] [--requests N] [--blocks N] [--seed N]
  --shapes     which of loop, scan, recent, zipf.8, zipf1, oltp, files, listing, volume (all)
  --percent    sizes of the cache, in percent of the set (1,5,20)
  --requests   for each cell; the first quarter is not counted (400000)
  --blocks     of 8 KiB in a set, or as many bytes in files (32768)
  --seed       of the traces (1)";

/// What is to be simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub shapes: Vec<Shape>,
    /// Sizes of the cache, in percent of the set.
    pub percent: Vec<f64>,
    pub requests: usize,
    pub blocks: u64,
    pub seed: u64,
    pub json: bool,
}

impl Default for Options {
    fn default() -> Options {
        let shapes = Shape::ALL.to_vec();
        Options {
            shapes,
            percent: vec![1.0, 5.0, 20.0],
            requests: 400_000,
            blocks: 32_768,
            seed: 1,
            json: false,
        }
    }
}

/// One line of the table: a shape at one size of the cache.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub shape: Shape,
    pub percent: f64,
    /// Bytes the cache may hold.
    pub cache: u64,
    pub requests: usize,
    pub seed: u64,
    pub ratios: Vec<Ratio>,
}

/// What one policy had, in percent of the requests that were counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    pub policy: Policy,
    pub all: f64,
    /// Of the metadata; `None` in a shape without.
    pub metadata: Option<f64>,
}

impl Row {
    pub fn of(&self, policy: Policy) -> Option<&Ratio> {
        self.ratios.iter().find(|ratio| ratio.policy == policy)
    }

    /// The best of those that do not know what comes, the engine's own left aside.
    pub fn best(&self) -> Option<&Ratio> {
        let online = self.ratios.iter().filter(|r| !matches!(r.policy, Policy::Own | Policy::Belady));
        online.max_by(|a, b| a.all.total_cmp(&b.all))
    }

    /// Percentage points by which the engine's own is below the best; negative when it is above.
    pub fn behind(&self) -> Option<f64> {
        Some(self.best()?.all - self.of(Policy::Own)?.all)
    }
}

/// Reads the words after `bench hits`; `None` when they make no sense.
pub fn parse(words: &[&str]) -> Option<Options> {
    let mut options = Options::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "-j" | "--json" => options.json = true,
            "--shapes" => {
                options.shapes = words.next()?.split(',').map(Shape::named).collect::<Option<_>>()?
            }
            "--percent" => options.percent = words.next()?.split(',').map(percent).collect::<Option<_>>()?,
            "--requests" => options.requests = words.next()?.parse().ok().filter(|n| *n >= 4)?,
            "--blocks" => options.blocks = words.next()?.parse().ok().filter(|n| *n >= 1000)?,
            "--seed" => options.seed = words.next()?.parse().ok()?,
            _ => return None,
        }
    }
    Some(options)
}

fn percent(word: &str) -> Option<f64> {
    word.parse().ok().filter(|p| *p > 0.0 && *p <= 100.0)
}

/// Simulates every cell. `progress` is told of each row before it is made.
///
/// # Errors
/// `Invalid`: a cache so small that it holds fewer than 16 blocks.
pub fn run(options: &Options, progress: fn(&str)) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for &shape in &options.shapes {
        for &percent in &options.percent {
            progress(&format!("hits: {} at {percent} %", shape.name()));
            rows.push(row(options, shape, percent)?);
        }
    }
    Ok(rows)
}

fn row(options: &Options, shape: Shape, percent: f64) -> Result<Row> {
    let cache = (shape::set_bytes(options.blocks) as f64 * percent / 100.0) as u64;
    if cache < 16 * shape::LARGEST {
        let why =
            format!("a cache of {percent} % holds fewer than 16 blocks: say more --blocks or --percent");
        return Err(Error::invalid(why));
    }
    let trace = Trace::new(shape, options, cache);
    let ratios = Policy::ALL.iter().map(|&policy| ratio(policy, &trace, cache)).collect();
    Ok(Row { shape, percent, cache, requests: options.requests, seed: options.seed, ratios })
}

fn ratio(policy: Policy, trace: &Trace, cache: u64) -> Ratio {
    let mut simulated = policy.start(cache, trace);
    let (mut hits, mut asked) = ([0u64; 2], [0u64; 2]);
    for (i, block) in trace.requests.iter().enumerate() {
        let is_hit = simulated.ask(block);
        if i >= trace.requests.len() / 4 {
            asked[block.kind as usize] += 1;
            hits[block.kind as usize] += u64::from(is_hit);
        }
    }
    let of = |hits: u64, asked: u64| hits as f64 * 100.0 / asked as f64;
    let metadata = (asked[1] > 0).then(|| of(hits[1], asked[1]));
    Ratio { policy, all: of(hits.iter().sum(), asked.iter().sum()), metadata }
}

#[cfg(test)]
mod tests;
