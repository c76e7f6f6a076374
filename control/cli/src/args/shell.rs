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
    /// Ask an appliance over HTTPS, as a user of it, rather than the one of this home
    #[arg(long, value_name = "https://HOST:PORT", requires = "user")]
    pub url: Option<String>,
    /// Who asks; the password is asked for
    #[arg(long, value_name = "NAME", requires = "url")]
    pub user: Option<String>,
    /// Read the password from the first line of a file
    #[arg(long, value_name = "FILE", requires = "url", value_hint = ValueHint::FilePath)]
    pub password_file: Option<PathBuf>,
    /// Trust this certificate, or those of this authority [default: tls/cert.pem in the home]
    #[arg(long, value_name = "FILE", requires = "url", value_hint = ValueHint::FilePath)]
    pub cacert: Option<PathBuf>,
    /// The name in the prompt [default: the machine's, or with --url the appliance's]
    #[arg(long, value_name = "NAME")]
    pub prompt_host: Option<String>,
    /// Print the prompt and each line that is read, as a person would have seen them
    #[arg(long)]
    pub transcript: bool,
}
