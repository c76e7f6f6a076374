//! `cenote ls`, `stat`, `find`, `cat`, `cp`, `tar`: where the pools are that they read.
//!
//! ```text
//!   -d given ───────────────▶ the devices there, in use or not
//!   no daemon runs ─────────▶ the devices of the home's pools, and the home is locked meanwhile
//!   a daemon runs ──────────▶ the same devices, beside the daemon, which is asked to sync first
//! ```
//!
//! The devices are opened for reading only, in all three cases.

use crate::report;
use api::{Call, Caller, Request};
use appliance::{Home, HomeLock};
use cli::Failure;
use cli::args::rescue::{Cat, Cp, Find, Ls, Source, Stat, Tar};
use rescue::{Command, Origin, Output, Search, What};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;
use units::{Kind, Txg};

const PATIENCE: Duration = Duration::from_secs(10);

pub fn ls(home: &Home, args: Ls) -> Result<(), Failure> {
    run(home, args.source, args.places, What::List { long: args.long, recursive: args.recursive })
}

pub fn stat(home: &Home, args: Stat) -> Result<(), Failure> {
    run(home, args.source, args.places, What::Stat)
}

pub fn find(home: &Home, args: Find) -> Result<(), Failure> {
    let search = Search { name: args.name, kind: args.kind, size_min: args.min_size };
    run(home, args.source, args.places, What::Find(search))
}

pub fn cat(home: &Home, args: Cat) -> Result<(), Failure> {
    run(home, args.source, args.places, What::Cat)
}

pub fn cp(home: &Home, mut args: Cp) -> Result<(), Failure> {
    let target = args.places.pop().ok_or_else(|| Failure::Usage("where shall the copy go?".into()))?;
    let target = PathBuf::from(target);
    run(home, args.source, args.places, What::Copy { target, recursive: args.recursive })
}

pub fn tar(home: &Home, args: Tar) -> Result<(), Failure> {
    if args.file.is_none() && std::io::stdout().is_terminal() {
        return Err(Failure::Usage("an archive is not for a terminal: -f names a file".into()));
    }
    run(home, args.source, args.places, What::Archive { file: args.file })
}

fn run(home: &Home, source: Source, places: Vec<String>, what: What) -> Result<(), Failure> {
    let (origin, _lock) = match source.search.is_empty() {
        false => (Origin::Search(source.search), None),
        true => imported(home)?,
    };
    let command = Command { what, places, txg: source.txg.map(Txg) };
    let is_watched = std::io::stderr().is_terminal();
    let output = Output::new(Box::new(std::io::stdout()), Box::new(std::io::stderr()), is_watched);
    match linux::block_on(rescue::run(command, origin, output)) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::Told),
        // The reader of what is printed is gone.
        Err(e) if e.kind() == Kind::Cancelled => Err(Failure::Told),
        Err(e) => Err(Failure::Failed(e.to_string())),
    }
}

fn imported(home: &Home) -> Result<(Origin, Option<HomeLock>), Failure> {
    let failed = |e: units::Error| report::cannot(&format!("open home {}", home.dir().display()), &e);
    let daemon = crate::running(home)?;
    let lock = match daemon {
        Some(mut daemon) => {
            // So that what was written until now is there to be read.
            let request = Request::PoolSync { names: Vec::new() };
            let _ = daemon.call(Call { command: String::new(), uid: 0, request });
            None
        }
        None => Some(home.lock(PATIENCE).map_err(failed)?),
    };
    let known = home.pools().map_err(failed)?.into_iter();
    let pools =
        known.map(|pool| (pool.name, pool.devices.into_iter().map(PathBuf::from).collect())).collect();
    let is_live = lock.is_none();
    Ok((Origin::Imported { pools, is_live }, lock))
}
