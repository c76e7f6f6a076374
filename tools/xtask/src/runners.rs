//! Commands that only start a program of another crate, with the profile it wants.

use std::process::Command;

use crate::{Failure, house, root};

/// Unpacks the golden pools and prints where they are; arguments are explained by `golden --help`.
pub fn golden(arguments: &[String]) -> Result<bool, Failure> {
    run(&["run", "--quiet", "--package", "interop", "--bin", "golden", "--"], arguments)
}

/// Prints the benchmark's table; arguments are explained when they make no sense.
pub fn bench(arguments: &[String]) -> Result<bool, Failure> {
    run(&["run", "--quiet", "--release", "--package", "bench", "--", "engine"], arguments)
}

fn run(cargo: &[&str], arguments: &[String]) -> Result<bool, Failure> {
    let status = Command::new(house::cargo()).current_dir(root()).args(cargo).args(arguments).status()?;
    Ok(status.success())
}
