//! The chores of this repository, in Rust rather than shell: `cargo xtask COMMAND`.
//!
//! ```text
//!   check      everything CI does, in CI's order: [`check`] runs the steps below and cargo's own
//!   tools      what the tests need of others: [`debian`], [`zdb`]
//!   layers     arrows between crates point down: [`layers`] against the order in [`house`]; inside a crate [`circles`]
//!   tidy       what rots unseen, and may only become less: [`tidy`]
//!   licences   every crate we build from may be given away under MIT and Apache-2.0: [`licences`]
//!   dist       what users install: [`dist`]
//!   plots      the pictures of docs/performance.md: [`plots`]
//!   site       the documents as pages: [`site`]
//!   golden     the pools that OpenZFS made, unpacked: [`runners`]
//!   bench      what the engine costs beside the bare file and other servers, as a table: [`runners`]
//!   idle       what ten thousand idle clients cost one that works, and conformance: libiscsi's whole suite: [`runners`]
//!   torture    hours of random work and power cuts: [`runners`]
//!   sim        one case of these again, aloud: [`runners`]
//!   posix      suites of others for file systems, on a mount: [`posix`]
//! ```
//!
//! A check never stops at its first finding: it returns all of them as a list of sentences, and an empty list is a
//! pass. Nothing is checked in CI that cannot be run at a desk by the same command.
//!
//! Not here: tests. A test belongs to the crate whose promise it proves.

mod check;
mod circles;
mod debian;
mod dist;
mod house;
mod imports;
mod layers;
mod licences;
mod npm;
mod plots;
mod posix;
mod runners;
mod site;
mod tidy;
mod trials;
mod zdb;

use std::path::PathBuf;
use std::process::ExitCode;

/// What went wrong, in words for the terminal.
type Failure = Box<dyn std::error::Error>;

/// A sentence for each thing a check found wrong.
type Findings = Vec<String>;

const USAGE: &str = "\
cargo xtask COMMAND

  check               all that CI runs: tools, format, lints, layers, tidy, licences, documentation, tests
  tools               provide the programs that the tests need
  layers              the arrows between crates point down, and inside of a crate no large circle is left
  tidy                files, links, pictures, words and dependencies that rot unseen
  licences            the licences of every crate we build from
  dist [--try]        packages for Debian, RPM, Gentoo, a tarball, a container image; --try installs and starts each
  plots               draw the pictures of docs/performance.md from its tables
  site                the documents as pages, by mdbook
  golden [ARGS]       unpack the golden pools, print where they are
  bench [ARGS]        what the engine costs beside the bare file and other servers, as a table; about five minutes
  idle [N]            what N idle iSCSI clients (10000) cost one that works, and what each costs in memory
  conformance         libiscsi's whole conformance suite, on memory and on volumes through the daemon
  torture [ARGS]      random work in the simulator: [--seeds N] [--from SEED] [--ops N];
                      --power: the power-cut proof: [--letters N] [--every-setup] [--seeds N] [--zdb-every N];
                      --forged: pools whose bytes lie: [POOL] [--seeds N] [--from SEED] [--minutes N];
                      --suspended: devices that fail and come back: [--seeds N] [--from SEED] [--minutes N];
                      --hosts: hosts that fill up: [--seeds N] [--from SEED] [--minutes N];
                      --devices: devices that come and go: [--seeds N] [--from SEED] [--minutes N] [--zdb-every N];
                      --kill N: kill the daemon under load so often
  sim CASE            replay one case of these by its seed or name, everything printed
  posix SUITE         suites of others for file systems, on a mount: pjdfstest, fsx, fsstress, xfstests, build
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("", &[][..]),
    };
    let done = match command {
        "check" => check::run(),
        "tools" => Ok(debian::provide().is_empty()),
        "layers" => report("layers", layers::check()),
        "tidy" => report("tidy", tidy::check()),
        "licences" => report("licences", licences::check()),
        "dist" => dist::run(rest),
        "site" => site::build(),
        "plots" => plots::draw(),
        "golden" => runners::golden(rest),
        "bench" => runners::bench(rest),
        "idle" => runners::idle(rest),
        "conformance" => runners::conformance(),
        "torture" => runners::torture(rest),
        "sim" => runners::sim(rest),
        "posix" => posix::run(rest),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("xtask {command}: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Prints what a check found; true when it found nothing.
fn report(name: &str, findings: Result<Findings, Failure>) -> Result<bool, Failure> {
    let findings = findings?;
    for finding in &findings {
        println!("{name}: {finding}");
    }
    Ok(findings.is_empty())
}

/// The directory of the workspace.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map(PathBuf::from).unwrap_or(here)
}
