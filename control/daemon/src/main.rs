//! The program: `cenote`, and under their own names `zpool` and `zfs`.
//!
//! ```text
//!   command line ──┬─ up, serve ──▶ serve: the appliance until it is told to end, with its socket and NBD
//!                  ├─ nbd ────────▶ one_shot: one volume, the same
//!                  ├─ zpool, zfs,
//!                  │  tunable ────▶ cli ── Caller ─┬─ client: the daemon of this home, if one runs
//!                  │                               └─ local: the appliance in this process, for as long as it takes
//!                  ├─ inspect, bench ▶ tools: no appliance at all
//!                  └─ completions, man
//! ```
//!
//! Exit codes: 0, 1 when something failed, 2 when the words make no sense.

mod local;
mod one_shot;
mod report;
mod serve;
mod socket;
mod tools;
mod up;

use appliance::Home;
use clap::Parser;
use cli::args::{self, Cenote, Command};
use cli::{Failure, Session};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words = args::normalize(std::env::args_os().map(|w| w.to_string_lossy().into_owned()));
    if let Some(message) = args::not_yet(&words) {
        report::complain(&message);
        return ExitCode::from(2);
    }
    let Cenote { home, command } = match Cenote::try_parse_from(&words) {
        Ok(cenote) => cenote,
        Err(e) => e.exit(),
    };
    let outcome = Home::find(home.as_deref())
        .map_err(|e| Failure::Failed(e.to_string()))
        .and_then(|home| run(&home, command, args::command_line(&words)));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if failure != Failure::Told {
                report::complain(&failure.to_string());
            }
            ExitCode::from(failure.code())
        }
    }
}

fn run(home: &Home, command: Command, line: String) -> Result<(), Failure> {
    match command {
        Command::Up(args) => serve::run(home, &args.listen, &args.system, Some(&args)),
        Command::Serve(args) => serve::run(home, &args.listen, &args.system, None),
        Command::Nbd(args) => one_shot::run(home, &args),
        Command::Zpool(args) => with_session(home, line, |session| cli::zpool(session, &args.command)),
        Command::Zfs(args) => with_session(home, line, |session| cli::zfs(session, &args.command)),
        Command::Tunable(args) => with_session(home, line, |session| cli::tunable(session, &args.command)),
        Command::Completions { shell } => {
            args::completions(shell, &mut std::io::stdout().lock());
            Ok(())
        }
        Command::Man { dir } => {
            let written = args::manual(dir.as_deref(), &mut std::io::stdout().lock());
            written.map_err(|e| Failure::Failed(format!("cannot write the manual: {e}")))
        }
        Command::Inspect(rest) => tools::inspect(&rest.words),
        Command::Bench(rest) => tools::bench(&rest.words),
    }
}

/// Runs a command against the daemon if there is one, else against an appliance in this process.
fn with_session(
    home: &Home,
    command: String,
    work: impl FnOnce(&mut Session<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::Failed(format!("cannot talk to the daemon: {e}"));
    if let Some(mut daemon) = client::Client::connect(&home.socket()).map_err(failed)? {
        return work(&mut session(&mut daemon, &mut std::io::stdout(), &mut std::io::stderr(), command));
    }
    let mut local = local::Local::start(home)?;
    let outcome = work(&mut session(&mut local, &mut std::io::stdout(), &mut std::io::stderr(), command));
    // What the command did is on disk only when this is done.
    let closed = local.finish();
    outcome.and(closed)
}

fn session<'a>(
    caller: &'a mut dyn api::Caller,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    command: String,
) -> Session<'a> {
    let is_watched = std::io::stderr().is_terminal() && std::io::stdout().is_terminal();
    let uid = u64::from(rustix::process::getuid().as_raw());
    Session { caller, out, err, is_watched, command, uid }
}
