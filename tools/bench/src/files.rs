//! What files cost, beside the file systems of the kernel and beside zfs-fuse and bindfs, on the same disk in the same run.
//!
//! ```text
//!   row ─┬─ cenote     a daemon, a pool on a file, its file system mounted by FUSE ┐
//!        ├─ ext4                                                                   │ each on a file of the same size in
//!        ├─ xfs        on loop devices, with O_DIRECT                              ├ the same directory, written once
//!        ├─ btrfs                                                                  │ before
//!        ├─ zfs-fuse   its own daemon, a pool on a file; if it is installed        │
//!        └─ bindfs     another ext4 behind FUSE: what FUSE alone costs             ┘
//!
//!   names             untar, find, stat of every file, rm -r                  names.rs, source_tree.rs
//!   object storage    64 threads at 1 MiB, straight on the engine             object_storage.rs
//!   large             sequential and at random, cold and warm, 4K to 1M       large.rs
//! ```
//!
//! Each row is measured everywhere before the next one begins, and that in several rounds: the machine's moods meet all.
//! Cold means that nothing of the file system is in memory: those of the kernel are mounted anew, pools are exported and
//! imported. Everything is used as its users do: with its defaults, and through the kernel's cache.
//!
//! What was mounted, started and made goes at the end, also after an error or an interruption ([`Stop`]). When the time
//! is up, the rows that are left are not measured, and the table says so.

mod args;
mod large;
mod names;
mod object_storage;
mod peers;
mod source_tree;
mod table;

pub use args::{Options, USAGE, parse};

use crate::Progress;
use crate::programs::Stop;
use peers::Slot;
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::{Error, Kind, Result};

/// Measures everything and returns it as Markdown. Not to be called from within a world.
pub fn run(options: &Options, progress: Progress) -> Result<String> {
    let stop = Stop::watch(options.limit);
    let scratch = Scratch::make(&options.dir)?;
    let mut text = format!("{}, {}\n", crate::place::title(&options.dir), rounds(options));
    let mut slots = Vec::new();
    if options.has("names") || options.has("large") {
        slots = peers::start(options, &scratch.0, &stop, progress)?;
    }
    if options.has("names") {
        let rows = names::measure(&mut slots, options, &scratch.0, &stop, progress)?;
        text += &format!("\n{}", table::names(&rows, &slots));
    }
    if options.has("objects") {
        let rows = object_storage::measure(options, &stop, progress)?;
        text += &format!("\n{}", table::objects(&rows));
    }
    if options.has("large") {
        let rows = large::measure(&mut slots, options, &stop, progress)?;
        text += &format!("\n{}", table::large(&rows, &slots));
    }
    for Slot { name, peer } in &slots {
        if let Err(why) = peer {
            text += &format!("\n{name}: {why}");
        }
    }
    if stop.was_asked() {
        stop.check()?;
    }
    if stop.is_over() {
        text += "\nThe time was up before all was measured; --minutes gives it more.";
    }
    progress("done, taking everything down");
    Ok(text.trim_end().to_string() + "\n")
}

fn rounds(options: &Options) -> String {
    let size = units::pretty_size(options.size);
    format!(
        "medians of {}; a large file of {size}, {:.1} s for each row of it, {} threads at random",
        options.rounds, options.seconds, options.streams
    )
}

/// The directory of a run, which goes with it, after all that is in it.
struct Scratch(PathBuf);

impl Scratch {
    fn make(dir: &Path) -> Result<Scratch> {
        let own = dir.join(format!("cenote-files-{}", std::process::id()));
        let failed = |e| Error::new(Kind::Io, "make").at(own.display()).because(e);
        std::fs::create_dir(&own).map_err(failed)?;
        Ok(Scratch(own))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is in no way harmful: the next run has another directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// One run of one row in one place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sample {
    /// Of data; none where only names are worked on.
    bytes: u64,
    ops: u64,
    elapsed: Duration,
    /// Of the process that serves the file system; none for those of the kernel.
    cpu: Option<Duration>,
}

impl Sample {
    fn mib_per_second(&self) -> f64 {
        self.bytes as f64 / f64::from(1 << 20) / self.elapsed.as_secs_f64().max(1e-9)
    }

    fn per_second(&self) -> f64 {
        self.ops as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// The middle one of what `of` says of each; none of none.
fn median(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> Option<f64> {
    let mut values: Vec<f64> = samples.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Does `work` in every place that is there, one after the other; a place where it fails is left out from then on.
fn everywhere(
    slots: &mut [Slot],
    stop: &Stop,
    samples: &mut [Vec<Sample>],
    mut work: impl FnMut(&mut dyn peers::Peer) -> Result<Sample>,
) -> Result<()> {
    for (slot, samples) in slots.iter_mut().zip(samples) {
        let Ok(peer) = &mut slot.peer else { continue };
        let done = work(peer.as_mut());
        match done {
            Ok(sample) => samples.push(sample),
            Err(e) if stop.was_asked() => return Err(e),
            Err(_) if stop.is_over() => return Ok(()),
            Err(e) => slot.peer = Err(e.to_string()),
        }
    }
    Ok(())
}
