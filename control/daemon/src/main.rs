//! The program: `cenote`, and under their own names `zpool` and `zfs`.
//!
//! ```text
//!   command line ──┬─ up, serve ──▶ serve: the appliance until it is told to end, with its socket and NBD
//!                  ├─ nbd ────────▶ one_shot: one volume, the same
//!                  ├─ zpool, zfs,
//!                  │  tunable,
//!                  │  shell ──────▶ cli ── Caller ─┬─ client: the daemon of this home, if one runs
//!                  │                               ├─ local: the appliance in this process, for as long as it takes
//!                  │                               └─ client::Remote: an appliance over HTTPS (shell --url)
//!                  ├─ password ──────▶ password: the API of that daemon, or the home
//!                  ├─ status, down, top ▶ the daemon of this home, which must run
//!                  ├─ ls, stat, find,
//!                  │  cat, cp, tar ──▶ rescue: files of a pool that is only read
//!                  ├─ doctor ────────▶ doctor: that daemon's facts, or a file of facts
//!                  ├─ trace, rehearse ▶ trace_file, rehearse: that daemon's clients, recorded; its volumes, cloned
//!                  ├─ work ──────────▶ work: a load on a place, and what it measures
//!                  ├─ inspect, bench,
//!                  │  lab ───────────▶ tools, lab: no appliance at all
//!                  └─ completions, man, help
//! ```
//!
//! Exit codes: 0, 1 when something failed, 2 when the words make no sense.

mod doctor;
mod kept;
mod lab;
mod local;
mod log;
mod manager;
mod nbd_tls;
mod one_shot;
mod page;
mod password;
mod promises;
mod rehearse;
mod report;
mod rescue;
mod serve;
mod shell;
mod socket;
mod tools;
mod trace_file;
mod up;
mod web;
mod work;

use appliance::{Home, HomeLock};
use cli::args::{self, Cenote, Command};
use cli::{Failure, Session};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long the home may be another's, and how often it is looked whether a daemon answers by now.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    let words = args::normalize(std::env::args_os().map(|w| w.to_string_lossy().into_owned()));
    if let Some(message) = args::not_yet(&words) {
        report::complain(&message);
        return ExitCode::from(2);
    }
    let Cenote { home, command } = match args::parse(&words) {
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
        Command::Up(args) => {
            let places = serve::Places {
                listen: args.listen.clone(),
                offered: args.offered.clone(),
                portals: args.portals.clone(),
                web: args.web.clone(),
            };
            serve::run(home, places, (&args.system, &args.files), Some(&args))
        }
        Command::Serve(args) => {
            let cli::args::Serve { listen, offered, portals, system, web, files } = args;
            serve::run(home, serve::Places { listen, offered, portals, web }, (&system, &files), None)
        }
        Command::Status(args) => {
            let mut daemon = running(home)?.ok_or_else(|| none_runs(home))?;
            with_caller(&mut daemon, line, |session| cli::status(session, &args))
        }
        Command::Down => down(home),
        Command::Password(args) => password::run(home, &args),
        Command::Page => page::run(home),
        Command::Nbd(args) => one_shot::run(home, &args),
        Command::Shell(args) if args.url.is_some() => shell::run_remote(home, &args),
        Command::Shell(args) => with_appliance(home, |caller| shell::run(home, caller, &args, None)),
        Command::Zpool(args) => with_session(home, line, |session| cli::zpool(session, &args.command)),
        Command::Zfs(args) => with_session(home, line, |session| cli::zfs(session, &args.command)),
        Command::Tunable(args) => with_session(home, line, |session| cli::tunable(session, &args.command)),
        Command::Completions { shell } => {
            let written = args::completions(shell, &mut std::io::stdout().lock());
            written.map_err(|e| Failure::Failed(format!("cannot write the completions: {e}")))
        }
        Command::Man { dir } => {
            let written = args::manual(dir.as_deref(), &mut std::io::stdout().lock());
            let place = dir.map(|dir| format!(" to {}", dir.display())).unwrap_or_default();
            written.map_err(|e| Failure::Failed(format!("cannot write the manual{place}: {e}")))
        }
        Command::Help { command } => {
            let text = args::help(&command).map_err(Failure::Usage)?;
            report::say(text.trim_end());
            Ok(())
        }
        Command::Ls(args) => rescue::ls(home, args),
        Command::Stat(args) => rescue::stat(home, args),
        Command::Find(args) => rescue::find(home, args),
        Command::Cat(args) => rescue::cat(home, args),
        Command::Cp(args) => rescue::cp(home, args),
        Command::Tar(args) => rescue::tar(home, args),
        Command::Top(args) => {
            let mut daemon = running(home)?.ok_or_else(|| none_runs(home))?;
            with_caller(&mut daemon, line, |session| cli::top::run(session, &args))
        }
        Command::Waterfall(args) => {
            let mut daemon = running(home)?.ok_or_else(|| none_runs(home))?;
            with_caller(&mut daemon, line, |session| cli::waterfall::run(session, &args))
        }
        Command::Arc(args) => {
            let mut daemon = running(home)?.ok_or_else(|| none_runs(home))?;
            with_caller(&mut daemon, line, |session| cli::arc::run(session, &args))
        }
        Command::Changes(args) => {
            let mut daemon = running(home)?.ok_or_else(|| none_runs(home))?;
            with_caller(&mut daemon, line, |session| cli::changes::run(session, &args))
        }
        Command::Calc(args) => cli::calc::run(&mut std::io::stdout(), &args),
        Command::Doctor(args) => doctor::run(home, args, line),
        Command::Inspect(args) => tools::inspect(args),
        Command::Work(args) => work::run(home, *args),
        Command::Bench(args) => tools::bench(home, args),
        Command::Lab(args) => lab::run(args),
        Command::Trace(args) => trace_file::run(home, args, line),
        Command::Rehearse(args) => rehearse::run(home, args, line),
    }
}

/// Runs a command against the daemon if there is one, else against an appliance in this process.
fn with_session(
    home: &Home,
    command: String,
    work: impl FnOnce(&mut Session<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    with_appliance(home, |caller| with_caller(caller, command, work))
}

fn with_appliance(
    home: &Home,
    work: impl FnOnce(&mut dyn api::Caller) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut local = match reach(home)? {
        Holder::Daemon(mut daemon) => return work(&mut daemon),
        Holder::Own(lock) => local::Local::start(home, lock),
    };
    let outcome = work(&mut local);
    // What the command did is on disk only when this is done.
    let closed = local.finish();
    outcome.and(closed)
}

fn with_caller(
    caller: &mut dyn api::Caller,
    command: String,
    work: impl FnOnce(&mut Session<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let is_watched = std::io::stderr().is_terminal() && std::io::stdout().is_terminal();
    let uid = u64::from(rustix::process::getuid().as_raw());
    let (out, err) = (&mut std::io::stdout(), &mut std::io::stderr());
    let mut session = Session { caller, out, err, is_watched, has_failed: false, command, uid };
    work(&mut session)?;
    // What was not there was said already.
    if session.has_failed { Err(Failure::Told) } else { Ok(()) }
}

/// What has the home.
#[derive(Debug)]
pub enum Holder {
    /// A daemon, which answers.
    Daemon(client::Client),
    /// This process.
    Own(HomeLock),
}

/// Waits until either has it: another command may, for a moment, and so may a daemon that starts and will answer soon.
pub fn reach(home: &Home) -> Result<Holder, Failure> {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(daemon) = running(home)? {
            return Ok(Holder::Daemon(daemon));
        }
        match home.lock(LOOK) {
            Ok(lock) => return Ok(Holder::Own(lock)),
            Err(e) if e.kind() == units::Kind::Busy && Instant::now() < until => {}
            Err(e) => return Err(report::cannot(&format!("open home {}", home.dir().display()), &e)),
        }
    }
}

/// The daemon of this home, if one runs.
pub fn running(home: &Home) -> Result<Option<client::Client>, Failure> {
    let client = client::Client::connect(&home.socket()).map_err(|e| {
        Failure::Failed(format!("cannot talk to the daemon of {}: {e}", home.dir().display()))
    })?;
    Ok(client.and_then(|mut client| client.is_answered().then_some(client)))
}

/// That a daemon must run for it.
pub fn none_runs(home: &Home) -> Failure {
    Failure::Failed(format!(
        "no daemon runs in {}; 'cenote up' or 'cenote serve' starts one",
        home.dir().display()
    ))
}

/// `cenote down`: where none runs there is nothing to end.
fn down(home: &Home) -> Result<(), Failure> {
    let Some(mut daemon) = running(home)? else {
        report::complain(&format!("no daemon runs in {}", home.dir().display()));
        return Ok(());
    };
    let call = |request| api::Call { command: String::new(), uid: 0, request };
    api::Caller::call(&mut daemon, call(api::Request::Shutdown))?;
    let ended = daemon.wait_for_end();
    ended.map_err(|e| Failure::Failed(format!("cannot wait for the daemon to end: {e}")))??;
    Ok(())
}
