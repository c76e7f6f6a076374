//! What the trials leave on real files, judged by OpenZFS's own `zdb`.

#![allow(clippy::unwrap_used)]

mod power;
mod work;

use interop::harness;
use std::process::ExitCode;

fn main() -> ExitCode {
    harness::main(power::trials().into_iter().chain(work::trials()).collect())
}
