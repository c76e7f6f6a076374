//! Getting at files without mounting anything: the words of `ls`, `stat`, `find`, `cat`, `cp` and `tar`.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Which pool is meant, and when.
#[derive(Clone, Debug, Default, Args)]
pub struct Source {
    /// Look for the pool's devices in this directory, or on this device, and not among the imported pools; may be given
    /// several times. They are opened for reading only
    #[arg(short = 'd', value_name = "DIR|DEVICE", value_hint = ValueHint::AnyPath)]
    pub search: Vec<PathBuf>,
    /// Go back to the newest state of the pool that is not newer than this transaction group
    #[arg(short = 'T', value_name = "TXG")]
    pub txg: Option<u64>,
}

#[derive(Debug, Args)]
pub struct Ls {
    #[command(flatten)]
    pub source: Source,
    /// Show kind, mode, links, owner, group, size and time
    #[arg(short)]
    pub long: bool,
    /// Everything below, too
    #[arg(short = 'R')]
    pub recursive: bool,
    /// Directories or files [default: the names of the pools]
    #[arg(value_name = PLACE)]
    pub places: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Stat {
    #[command(flatten)]
    pub source: Source,
    /// Files of any kind
    #[arg(required = true, value_name = PLACE)]
    pub places: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Find {
    #[command(flatten)]
    pub source: Source,
    /// Those whose last name is like this; * stands for anything, ? for one character
    #[arg(long, short, value_name = "PATTERN")]
    pub name: Option<String>,
    /// Those of this kind: f, d, l, p, s, b or c, as find(1) has them
    #[arg(long = "type", short, value_name = "KIND", value_parser = kind)]
    pub kind: Option<char>,
    /// Those of at least this size
    #[arg(long, value_name = "SIZE", value_parser = super::size)]
    pub min_size: Option<u64>,
    /// Where to begin
    #[arg(required = true, value_name = PLACE)]
    pub places: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Cat {
    #[command(flatten)]
    pub source: Source,
    /// Files
    #[arg(required = true, value_name = PLACE)]
    pub places: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Cp {
    #[command(flatten)]
    pub source: Source,
    /// Directories with everything in them
    #[arg(short, visible_short_alias = 'a', visible_short_alias = 'R')]
    pub recursive: bool,
    /// Files, and behind them where they go on this machine: a directory that is there, or a new name
    #[arg(required = true, num_args = 2.., value_name = "DATASET[:PATH] TARGET")]
    pub places: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Tar {
    #[command(flatten)]
    pub source: Source,
    /// Write the archive to this new file, and not to the standard output
    #[arg(short, long, value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Directories or files
    #[arg(required = true, value_name = PLACE)]
    pub places: Vec<String>,
}

const PLACE: &str = "DATASET[:PATH]";

fn kind(text: &str) -> Result<char, String> {
    match text {
        "f" | "d" | "l" | "p" | "s" | "b" | "c" => Ok(text.chars().next().unwrap_or('f')),
        _ => Err("a kind is one of f, d, l, p, s, b and c".into()),
    }
}
