//! `work`: one description of a load, for any place.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// What is done, and where.
#[derive(Clone, Debug, Default, Args)]
pub struct Work {
    /// A parameter file of vdbench, a job file of fio, or the name of a built-in workload
    #[arg(value_name = "FILE|NAME", required_unless_present = "list", value_hint = ValueHint::FilePath)]
    pub what: Option<String>,
    /// Where a built-in workload works: paths of files and devices, nbd://, nbd+unix:// and iscsi:// URLs; of filesync,
    /// xattrtest and mds-survey their own words, options behind a '--'
    #[arg(value_name = "PLACE", value_hint = ValueHint::AnyPath)]
    pub places: Vec<String>,
    /// List the built-in workloads
    #[arg(long)]
    pub list: bool,
    /// Measure for so long, whatever the file says: 30, 90s, 5m, 1h
    #[arg(long, value_name = "TIME")]
    pub elapsed: Option<String>,
    /// Do so much before, uncounted, whatever the file says
    #[arg(long, value_name = "TIME")]
    pub warmup: Option<String>,
    /// A line after so long, whatever the file says
    #[arg(long, value_name = "TIME")]
    pub interval: Option<String>,
    /// So many operations per second in all, whatever the file says
    #[arg(long, value_name = "N")]
    pub rate: Option<f64>,
    /// How much of each place is used; a file is made that large, and laid out
    #[arg(long, value_name = "SIZE", value_parser = super::size)]
    pub size: Option<u64>,
    /// Go past the cache of this machine, whatever the file says
    #[arg(long)]
    pub direct: bool,
    /// Put other places in: NAME=PLACE for the storage NAME of a vdbench file, or OLD=NEW for a place
    #[arg(long, value_name = "NAME=PLACE", value_parser = super::setting)]
    pub lun: Vec<(String, String)>,
    /// Write blocks that say what they are; check each that is read, and all of them at the end
    #[arg(long)]
    pub verify: bool,
    /// Go through 1, 2, 4 … DEPTH operations at once, and mark the knee of the curve
    #[arg(long, value_name = "DEPTH", num_args = 0..=1, default_missing_value = "256")]
    pub saturate: Option<u64>,
    /// Write a log of histograms that the tools of HdrHistogram read
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub hdr: Option<PathBuf>,
    /// What places, sizes and bytes are drawn from
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The format of the file, when its first line does not show it
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub format: Option<Format>,
    /// As JSON, at the end
    #[arg(short, long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    Vdbench,
    Fio,
}
