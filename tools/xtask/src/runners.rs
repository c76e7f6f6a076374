//! Commands that only start a program of another crate, with the profile it wants: `dist`, as packages have it, where the
//! figures are the result; `release`, which is built sooner, where only the work is to be done fast.

use std::process::Command;

use crate::{Failure, house, root};

/// Unpacks the golden pools and prints where they are; arguments are explained by `golden --help`.
pub fn golden(arguments: &[String]) -> Result<bool, Failure> {
    run(&["run", "--quiet", "--package", "interop", "--bin", "golden", "--"], arguments)
}

/// Prints the benchmark's table; arguments are explained when they make no sense.
pub fn bench(arguments: &[String]) -> Result<bool, Failure> {
    run(&["run", "--quiet", "--profile", "dist", "--package", "bench", "--", "engine"], arguments)
}

/// Long runs of the torture: random work, with `--power` the power-cut proof, with `--forged` pools whose bytes lie, with
/// `--suspended` devices that fail and come back, with `--hosts` hosts that fill up, with `--devices` devices that come and
/// go, with `--kill` the daemon's. Other arguments are explained by the program that takes them.
pub fn torture(arguments: &[String]) -> Result<bool, Failure> {
    if let [kill, count] = arguments
        && kill == "--kill"
    {
        return kill_the_daemon(count);
    }
    let is_mode =
        |a: &String| ["--power", "--forged", "--suspended", "--devices", "--hosts"].contains(&a.as_str());
    let (modes, rest): (Vec<String>, Vec<String>) = arguments.iter().cloned().partition(is_mode);
    let mode = modes.first().map_or("work", |mode| mode.trim_start_matches('-'));
    run(&[&TORTURE[..], &[mode]].concat(), &rest)
}

/// Kills the daemon under load, `count` times, and looks whether it has kept what it promised.
fn kill_the_daemon(count: &str) -> Result<bool, Failure> {
    let test = ["test", "--quiet", "--release", "--package", "cenote", "--test", "kill", "--", "any_kill"];
    let mut cargo = Command::new(house::cargo());
    let status = cargo.current_dir(root()).args(test).env("CENOTE_KILLS", count).status()?;
    Ok(status.success())
}

/// Opens `count` connections that do nothing beside one that works, and prints what they cost.
pub fn idle(arguments: &[String]) -> Result<bool, Failure> {
    let count = arguments.first().map_or("10000", String::as_str);
    let test = [
        "test",
        "--quiet",
        "--profile",
        "dist",
        "--package",
        "iscsi",
        "--test",
        "clients",
        "--",
        "idle_clients",
    ];
    let mut cargo = Command::new(house::cargo());
    Ok(cargo.current_dir(root()).args(test).env("ISCSI_IDLE", count).status()?.success())
}

/// Runs libiscsi's conformance suite, on units in memory and on volumes through the daemon, and prints the sums.
pub fn conformance() -> Result<bool, Failure> {
    let mut passed = true;
    for (package, test) in [("iscsi", "clients"), ("cenote", "e2e")] {
        let test =
            ["test", "--quiet", "--release", "--package", package, "--test", test, "--", "conformance_test"];
        let mut cargo = Command::new(house::cargo());
        passed &= cargo.current_dir(root()).args(test).env("CONFORMANCE", "1").status()?.success();
    }
    Ok(passed)
}

/// Replays one case, by its seed or its name, and prints all that happens.
pub fn sim(arguments: &[String]) -> Result<bool, Failure> {
    run(&[&TORTURE[..], &["replay"]].concat(), arguments)
}

const TORTURE: [&str; 6] = ["run", "--quiet", "--release", "--package", "torture", "--"];

fn run(cargo: &[&str], arguments: &[String]) -> Result<bool, Failure> {
    let status = Command::new(house::cargo()).current_dir(root()).args(cargo).args(arguments).status()?;
    Ok(status.success())
}
