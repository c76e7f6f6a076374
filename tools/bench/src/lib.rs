//! What the engine costs, beside what the bare file costs, and what NBD costs, beside other servers of files.
//!
//! ```text
//!   rows ── rig ─┬─ raw file ┐ the same size, pattern and depth, one after the other, several rounds
//!                └─ engine   ┘ ─▶ medians, and their ratio ─▶ cell ─▶ table
//!
//!   servers ── client ─┬─ a pool of ours, served by this program ┐ processes of their own: what a server used is
//!                      ├─ nbdkit file                            │ its alone; one client for all, one after the
//!                      └─ qemu-nbd                               ┘ other, several rounds
//! ```
//!
//! Machines are shared and noisy, so no throughput stands alone: each is printed with the figure of the bare file, or of
//! the other servers, from the same rounds, and with the CPU time it took, which drifts least. Cold means that the pool
//! was exported and opened again with an empty cache; on a disk, file and pool alike are used with O_DIRECT. For reads at
//! random the cache is a sixteenth of the volume, so that they stay cold.
//!
//! Every row of the engine runs in each of the given directories: in memory, to see what the code costs; on a disk, to
//! see what users get. Not here: the workloads themselves (`workload`), and any judgement of the numbers.

pub mod args;
pub mod caches;
mod cell;
mod command;
pub mod files;
pub mod filesync;
pub mod growth;
pub mod iscsi;
pub mod latency;
mod loop_device;
pub mod mds_survey;
pub mod metadata;
mod place;
mod programs;
mod rig;
mod rows;
mod servers;
pub mod sync;
mod table;
mod volume_pool;
pub mod xattrtest;

pub use cell::{Cell, Figure};
pub use command::{Command, USAGE};
pub use servers::Served;
pub use table::render;

use std::path::PathBuf;
use units::{Error, Result};

/// The cargo profile of this build. What is published is measured with `dist`; others cost more.
pub const PROFILE: &str = env!("BENCH_PROFILE");

/// Is told what comes next.
pub type Progress = fn(&str);

/// A half of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The engine beside the bare file, in every directory.
    Engine,
    /// NBD beside other servers.
    Nbd,
}

impl Part {
    #[must_use]
    pub fn parse(word: &str) -> Option<Part> {
        match word {
            "engine" => Some(Part::Engine),
            "nbd" => Some(Part::Nbd),
            _ => None,
        }
    }
}

/// Where, how long and how large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Each is measured by itself; the servers only in the first.
    pub dirs: Vec<PathBuf>,
    /// Bytes of the volume; those written and read by each sequential row.
    pub size: u64,
    /// Seconds of each row at random.
    pub seconds: u64,
    pub rounds: usize,
    /// Seconds of each row of writes that goes on through many txgs; none, if there are to be none of them.
    pub sustained: Option<u64>,
    /// All, if it is none.
    pub only: Option<Part>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            dirs: place::default_dirs(),
            size: 512 << 20,
            seconds: 1,
            rounds: 3,
            sustained: None,
            only: None,
        }
    }
}

/// Measures everything and returns it as Markdown. `own` are the words that make this program run a [`Command`].
pub fn engine(options: &Options, own: &[&str], progress: Progress) -> Result<String> {
    let first = options.dirs.first().ok_or_else(|| Error::invalid("no directory to measure in"))?;
    let mut text = place::machine(options);
    let wants = |part| options.only.is_none_or(|only| only == part);
    for dir in options.dirs.iter().filter(|_| wants(Part::Engine)) {
        let (dir, options) = (dir.clone(), options.clone());
        let title = place::title(&dir);
        progress(&format!("{title}:"));
        let cells = linux::block_on(async move { rows::all(&dir, &options, progress).await })?;
        text += &format!("\n**{title}**\n\n{}", render(&cells));
    }
    if wants(Part::Nbd) {
        progress("NBD:");
        let rows = servers::measure(first, options, own, progress)?;
        text += &format!("\n**NBD, {}**\n\n{}", place::title(first), servers::render(&rows));
    }
    Ok(text)
}
