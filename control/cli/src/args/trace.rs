//! `trace` and `rehearse`: what clients ask, recorded, and made again.

use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Trace {
    #[command(subcommand)]
    pub what: TraceWhat,
}

#[derive(Debug, Subcommand)]
pub enum TraceWhat {
    /// Record what clients ask of the daemon: which operation, when, of which LUN, where, how much, and how long it took
    ///
    /// No data are recorded. It goes on until it is ended, with Ctrl-C, or until the time or the size is reached; what is
    /// written is whole at any moment. Clients never wait for the recording: operations for which it has no room are
    /// dropped, and counted.
    Record {
        /// iscsi, nbd or fs, with filters such as [op=write] or [dataset=tank/db]
        #[arg(value_name = "FRONT[FILTERS]")]
        front: String,
        /// Where it is written
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// End after so long
        #[arg(long, value_name = "N")]
        seconds: Option<u64>,
        /// End when the file has this size
        #[arg(long, value_name = "SIZE", value_parser = super::size, default_value = "1G")]
        limit: u64,
        /// Have digests in place of the names of datasets, LUNs and clients
        #[arg(long)]
        hash_names: bool,
        /// As JSON, at the end
        #[arg(short, long)]
        json: bool,
    },
    /// Show what is in a trace: operations by kind and size, response times, rates, and of which LUNs
    Show {
        /// Which
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// As JSON; times are in nanoseconds
        #[arg(short, long)]
        json: bool,
    },
}

/// What is replayed on a clone.
#[derive(Debug, Args)]
pub struct Rehearse {
    /// A trace of it
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The volume that is cloned
    #[arg(value_name = "VOLUME")]
    pub volume: String,
    /// What is different on the second clone: volblocksize, and other properties of volumes
    #[arg(long, value_name = "PROPERTY=VALUE,…", required = true, value_parser = changes)]
    pub set: Vec<Changes>,
    /// With as many operations at once as were recorded, each as soon as one is answered, rather than when it came
    #[arg(long)]
    pub as_fast_as_possible: bool,
    /// As JSON
    #[arg(short, long)]
    pub json: bool,
}

/// Settings in one word: `volblocksize=16K,sync=always`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes(pub Vec<(String, String)>);

impl Changes {
    /// Those of several words, in their order.
    pub fn all(words: Vec<Changes>) -> Vec<(String, String)> {
        words.into_iter().flat_map(|changes| changes.0).collect()
    }
}

pub fn changes(text: &str) -> Result<Changes, String> {
    let one = |word: &str| match word.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => {
            Ok((key.to_string(), value.to_string()))
        }
        _ => Err(format!("'{word}' is no setting, as volblocksize=16K is")),
    };
    text.split(',').map(one).collect::<Result<_, _>>().map(Changes)
}
