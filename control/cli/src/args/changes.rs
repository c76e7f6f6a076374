//! `changes`: what was set, what came of it, and the way back.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Changes {
    #[command(subcommand)]
    pub deed: Option<Deed>,
    /// As JSON
    #[arg(short, long)]
    pub json: bool,
    /// All that are kept, rather than the last twenty
    #[arg(short, long)]
    pub all: bool,
    /// One of them, with the figures before and after
    #[arg(value_name = "NUMBER")]
    pub number: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub enum Deed {
    /// Set what it was before: an ordinary change, which is refused where it was set again since
    #[command(after_help = "Example:\n  cenote changes undo 7")]
    Undo {
        /// The change
        number: u64,
    },
}
