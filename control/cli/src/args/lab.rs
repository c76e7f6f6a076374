//! `lab`: what a change would bring, on modelled hardware.

use super::trace::{Changes, changes};
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Lab {
    #[command(subcommand)]
    pub what: LabWhat,
}

#[derive(Debug, Subcommand)]
pub enum LabWhat {
    /// List the experiments: what was measured, by which document
    List {
        /// As JSON
        #[arg(short, long)]
        json: bool,
    },
    /// Print every parameter of the models, with its source
    Parameters,
    /// Run experiments, and print what the documents measured beside what comes out here
    ///
    /// A ratio counts only where the figure before the change is within a quarter of the document's; the table says where it
    /// is not. The same seed gives the same figures.
    Run {
        /// Which
        #[arg(value_name = "NAME", required_unless_present = "all")]
        names: Vec<String>,
        /// All of them
        #[arg(long, conflicts_with = "names")]
        all: bool,
        /// What chance is drawn from
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How large, as a part of the experiment's own size: 0.1 is done in a tenth of the time, and less exact
        #[arg(long, default_value_t = 1.0, value_parser = scale)]
        scale: f64,
        /// Instead of all figures the chief one, with each parameter that is not known at both ends of its range
        ///
        /// All other parameters stay as they are. The largest swing of the ratio comes first. What takes long is run smaller
        /// than --scale says, and the table says how much.
        #[arg(long)]
        sensitivity: bool,
        /// As JSON, with all parameters
        #[arg(short, long)]
        json: bool,
    },
    /// Replay a trace of your own clients on modelled disks: as things are, and with a change
    ///
    /// Each operation is made when it came, or with --as-fast-as-possible when one before it is answered. Every block that
    /// is touched is there before; nothing else is on the pool. What can be set: volblocksize,
    /// layout=raidz2:8|mirror:2x4|stripe:3, disks=7200|15000|ssd, cache=SIZE, ratio=1.5 (what compression makes of data),
    /// ashift, and sync, logbias, compression, checksum, copies, primarycache, prefetch as volumes have them. The same seed
    /// gives the same figures.
    Replay {
        /// The trace
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// What is different after the change
        #[arg(long, value_name = "KEY=VALUE,…", value_parser = changes)]
        set: Vec<Changes>,
        /// What the trace does not say, or says otherwise, of things as they are
        #[arg(long, value_name = "KEY=VALUE,…", value_parser = changes)]
        present: Vec<Changes>,
        /// With as many operations at once as were recorded, each as soon as one is answered, rather than when it came
        #[arg(long)]
        as_fast_as_possible: bool,
        /// Begin with what the trace touches in the cache, rather than with an empty one
        #[arg(long)]
        warm: bool,
        /// What chance is drawn from
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// As JSON; times are in nanoseconds
        #[arg(short, long)]
        json: bool,
    },
}

fn scale(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("'{text}' is not a number"))?;
    if (0.01..=4.0).contains(&value) { Ok(value) } else { Err("it is between 0.01 and 4".into()) }
}
