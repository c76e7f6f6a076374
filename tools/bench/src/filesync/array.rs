//! On the model of an array with a battery: what a flush costs where it is not needed.
//!
//! Such an array keeps what it was given, flushed or not. Some of them take a flush literally all the same and write
//! their whole cache to their disks before they answer; `zfs_nocacheflush` says not to ask. Both runs are made here, on a
//! simulated device and in simulated time, so that the figures are the model's and the engine's, never the machine's:
//!
//! ```text
//!   write(FUA) ─▶ intent log ─▶ write to the array: into its cache, fast
//!                             └▶ flush: destages everything, slow      ◀── left out by zfs_nocacheflush=1
//! ```

use super::{Options, Outcome, volume};
use crate::volume_pool::{VOLUME, VolumePool};
use disk::NbdVolume;
use sim::{Disks, Model};
use std::path::Path;
use std::sync::Arc;
use units::Result;
use vdev::NewLeaf;

const DEVICE: &str = "/lab/array";
const DEVICE_SIZE: u64 = 8 << 30;
/// Of simulated chance; the figures are the same in every run.
const SEED: u64 = 2530;

/// One number of streams, both ways.
#[derive(Clone, Debug)]
pub struct Pair {
    pub streams: usize,
    /// The array is told to flush.
    pub flushing: Outcome,
    /// It is not, because of `zfs_nocacheflush`.
    pub quiet: Outcome,
}

impl Pair {
    /// How many times faster it is without flushes.
    pub fn ratio(&self) -> f64 {
        self.flushing.elapsed.as_secs_f64() / self.quiet.elapsed.as_secs_f64().max(1e-9)
    }
}

/// Both runs for 1, 2, 4 … streams, up to those of `options`. Not to be called from within a world.
pub fn run(options: Options) -> Result<Vec<Pair>> {
    let doubling = std::iter::successors(Some(1), |n| Some(n * 2));
    let mut all: Vec<usize> = doubling.take_while(|n| *n < options.streams).collect();
    all.push(options.streams);
    let pair = |streams| {
        let options = Options { streams, ..options };
        Ok(Pair { streams, flushing: one(options, false)?, quiet: one(options, true)? })
    };
    all.into_iter().map(pair).collect()
}

fn one(options: Options, no_cache_flush: bool) -> Result<Outcome> {
    let disks = Disks::new();
    disks.add(DEVICE, DEVICE_SIZE, Model::ARRAY);
    sim::run_with(&disks, SEED, sim::Config::default(), async move {
        let leaf = NewLeaf::look_at(Path::new(DEVICE))?;
        let rig = VolumePool { no_cache_flush, ..VolumePool::plain(vec![leaf]) };
        let pool = rig.create().await?;
        let lun = NbdVolume::new(pool.open_volume(VOLUME).await?);
        let outcome = volume::run(Arc::new(lun), options).await?;
        pool.export().await?;
        Ok(outcome)
    })
}

/// The two runs of each number of streams, as lines of the tool, then the table of all.
pub fn render(pairs: &[Pair]) -> String {
    let mut text = String::new();
    for pair in pairs {
        let streams = if pair.streams == 1 { "1 stream".into() } else { format!("{} streams", pair.streams) };
        text += &format!("{streams}, zfs_nocacheflush=0\n{}", super::render(&pair.flushing));
        text += &format!("{streams}, zfs_nocacheflush=1\n{}\n", super::render(&pair.quiet));
    }
    text += "| streams | with flushes, s | zfs_nocacheflush=1, s | ratio | files/s with | files/s without |\n\
             |---:|---:|---:|---:|---:|---:|\n";
    for pair in pairs {
        text += &format!(
            "| {} | {:.2} | {:.2} | {:.1}x | {:.0} | {:.0} |\n",
            pair.streams,
            pair.flushing.elapsed.as_secs_f64(),
            pair.quiet.elapsed.as_secs_f64(),
            pair.ratio(),
            pair.flushing.per_second(),
            pair.quiet.per_second(),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A site with such an array measured 59.04 s with flushes and 7.05 s without: 8.4 times.
    #[test]
    fn flushes_that_are_not_needed_cost_at_least_five_times() {
        let pairs = run(Options { count: 300, streams: 8 }).unwrap();
        assert_eq!(pairs.iter().map(|p| p.streams).collect::<Vec<_>>(), [1, 2, 4, 8]);
        for pair in &pairs {
            assert_eq!(pair.flushing.latencies.count(), 300);
        }
        assert!(pairs[0].ratio() >= 5.0, "{}", render(&pairs));
        assert!(render(&pairs).contains("| 8 | "));
    }
}
