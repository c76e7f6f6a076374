//! A mount in a directory, on a real pool on files, used by the programs that everybody uses.
//!
//! ```text
//!   tools      trees copied, compared, packed, searched and removed; git
//!   calls      what programs ask for by system calls: holes, locks, names that are gone, limits
//!   model      data and holes at random, against a file in memory
//!   leaving    killed clients; unmounting what is in use
//!   called     what statistics call a file, whatever becomes of its name
//!   trouble    a full pool, damaged blocks; mappings, appending side by side
//! ```

#![allow(clippy::unwrap_used)]

mod bench;
mod called;
mod calls;
mod leaving;
mod model;
mod tools;
mod trouble;

use std::process::ExitCode;

fn main() -> ExitCode {
    let trials = [
        tools::trials(),
        calls::trials(),
        called::trials(),
        model::trials(),
        leaving::trials(),
        trouble::trials(),
    ];
    interop::harness::main(trials.into_iter().flatten().collect())
}
