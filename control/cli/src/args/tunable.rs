//! `tunable`: what may be changed while the engine runs.

use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show some
    #[command(
        after_help = "Examples:\n  cenote tunable get zfs_nocacheflush\n  cenote tunable get -Hp zfs_arc_max zil_slog_bulk"
    )]
    Get(Get),
    /// Change some at once; they are kept in the home
    ///
    /// Values are whole numbers, also hexadecimal (0x10); sizes may have a unit (64K, 1G); switches are 0 or 1. All are
    /// checked before the first is changed.
    #[command(
        after_help = "Examples:\n  cenote tunable set zfs_txg_timeout=10\n  cenote tunable set zil_slog_bulk=128M \
                            zfs_immediate_write_sz=64K\n\nEverywhere, if every device's cache is protected:\n  cenote tunable set \
                            zfs_nocacheflush=1"
    )]
    Set(Set),
    /// Show all, with their defaults and what they are for
    #[command(after_help = "Examples:\n  cenote tunable list\n  cenote tunable list -j")]
    List(List),
    /// Set what a file in the manner of /etc/system says; all of it or nothing
    ///
    /// Lines are "set zfs:NAME = VALUE", with or without the module's name; comments begin with an asterisk.
    #[command(
        after_help = "Example, a file with two lines:\n  * every array here has a battery\n  set zfs:zfs_nocacheflush = \
                            1\n\n  cenote tunable load /etc/system"
    )]
    Load {
        /// The file
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
}

#[derive(Debug, Args)]
pub struct Get {
    #[command(flatten)]
    pub style: Style,
    /// Which
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Set {
    /// What to set
    #[arg(required = true, value_name = "NAME=VALUE", value_parser = super::setting)]
    pub settings: Vec<(String, String)>,
}

#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    pub style: Style,
}

#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Style {
    /// No header, and tabs between columns
    #[arg(short = 'H')]
    pub scripted: bool,
    /// Exact numbers
    #[arg(short = 'p')]
    pub exact: bool,
    /// As JSON, with ranges and units
    #[arg(short, long)]
    pub json: bool,
}
