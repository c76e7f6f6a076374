//! The shell of the appliance: contexts that are entered, objects that are edited and committed.
//!
//! ```text
//!   zfs:> shares project mysql                                 words lead down, from context to context
//!   zfs:shares mysql (uncommitted)> set logbias=latency        what is set is a draft ...
//!                          logbias = latency (uncommitted)
//!   zfs:shares mysql (uncommitted)> commit                     ... until it is committed: one request
//!   zfs:>                                                      and one is where the line began that led here
//!
//!   a line ── words ──▶ shell: the stack of contexts ──┬─ shares  san  analytics ...   what each context understands
//!                                                      ├─ said                         words declared with their requests
//!                                                      ├─ draft, show                  what is set, how it is shown
//!                                                      └─ api::Caller ──▶ Request     all that leaves this crate
//! ```
//!
//! A line may lead through several contexts and end in a command: `shares select mysql show` does its work there and
//! leaves everything where it was. A `set` at the end of such a line is committed at once.
//!
//! Everything is asked of the appliance through [`api::Caller`]: the shell can do nothing that the API cannot.
//!
//! Not here: what any of it means (`appliance`), and how requests travel (`client`).

mod alerts;
mod analytics;
mod automatic;
mod changes;
mod commands;
mod complete;
mod context;
mod csv;
mod dispatch;
mod draft;
mod hardware;
mod help;
mod interactive;
mod maintenance;
mod said;
mod san;
mod san_objects;
mod schema;
mod services;
mod shares;
mod shell;
mod show;
mod snapshots;
mod vocabulary;
mod words;

#[cfg(test)]
mod tests;

pub use interactive::interact;
pub use shell::Shell;

use std::io::{self, BufRead, Write};

/// Runs commands from a file or pipe, or those given on the command line, up to the first that fails.
///
/// With `transcript`, each is printed behind the prompt at which a person would have typed it.
pub fn run_script(
    shell: &mut Shell<'_>,
    script: impl BufRead,
    transcript: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<bool> {
    let mut begun = String::new();
    let mut lines = script.lines();
    loop {
        let line = match lines.next().transpose()? {
            Some(line) => line,
            // The last line ends in a backslash, and nothing follows.
            None if !begun.is_empty() => String::new(),
            None => return Ok(true),
        };
        if let Some(more) = words::continued(&line) {
            begun.push_str(more);
            continue;
        }
        let line = std::mem::take(&mut begun) + &line;
        if transcript {
            writeln!(out, "{}{}", shell.prompt(), line.trim())?;
        }
        for command in words::commands(&line) {
            let result = shell.run(&command);
            out.write_all(shell.take_output().as_bytes())?;
            out.flush()?;
            if let Err(e) = result {
                writeln!(err, "error: {e}")?;
                return Ok(false);
            }
            if shell.has_ended() {
                return Ok(true);
            }
        }
    }
}
