//! A mount in a directory, on a real pool on files, used by the programs that everybody uses.
//!
//! ```text
//!   tools      trees copied, compared, packed, searched and removed; git
//!   calls      what programs ask for by system calls: holes, locks, names that are gone, limits
//!   model      data and holes at random, against a file in memory
//!   leaving    killed clients; unmounting what is in use, or mounted elsewhere
//!   changing   options of a mount that is used
//!   called     what statistics call a file, whatever becomes of its name
//!   trouble    a full pool, damaged blocks; mappings, appending side by side
//! ```

#![allow(clippy::unwrap_used)]

mod bench;
mod called;
mod calls;
mod changing;
mod leaving;
mod model;
mod tools;
mod trouble;

use bench::OVER_IO_URING;
use interop::harness::{Need, Trial};
use std::process::ExitCode;

/// Whether the kernel offers it to mounts.
const SWITCH: &str = "/sys/module/fuse/parameters/enable_uring";

fn all() -> Vec<Trial> {
    let trials = [
        tools::trials(),
        calls::trials(),
        called::trials(),
        model::trials(),
        leaving::trials(),
        changing::trials(),
        trouble::trials(),
    ];
    trials.into_iter().flatten().collect()
}

fn is_offered() -> bool {
    std::fs::read_to_string(SWITCH).is_ok_and(|is_on| is_on.starts_with('Y'))
}

/// All trials run twice, if the kernel can have it so.
fn main() -> ExitCode {
    let before = std::fs::read(SWITCH);
    let was_off = before.is_ok() && !is_offered() && std::fs::write(SWITCH, "Y").is_ok();
    let need = Need::Other("FUSE over io_uring", is_offered);
    let again = all().into_iter().map(|trial| trial.also(OVER_IO_URING, need.clone()));
    let ended = interop::harness::main(all().into_iter().chain(again).collect());
    if was_off {
        let _ = std::fs::write(SWITCH, "N");
    }
    ended
}
