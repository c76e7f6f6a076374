//! `cenote shell`: the contexts of an appliance, typed, piped or given.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Without commands it reads lines from the terminal, or from whatever the standard input is; a script ends at the first
/// command that fails.
#[derive(Debug, Args)]
pub struct Shell {
    /// Carry this out; several are separated by ';', or given one after the other
    #[arg(short = 'c', value_name = "COMMANDS")]
    pub commands: Vec<String>,
    /// Read commands from a file
    #[arg(conflicts_with = "commands", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// The name in the prompt [default: the machine's]
    #[arg(long, value_name = "NAME")]
    pub prompt_host: Option<String>,
    /// Print the prompt and each line that is read, as a person would have seen them
    #[arg(long)]
    pub transcript: bool,
}
