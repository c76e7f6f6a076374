//! Pools and OpenZFS: its pools read here, ours judged by its `zdb`.
//!
//! One program, so that the engine is linked once; each file is about one thing. `cargo test -p interop --test openzfs NAME`
//! runs the trials whose names contain NAME.

#![allow(clippy::unwrap_used)]

mod caches;
mod common;
mod dirty;
mod files;
mod judge;
mod logs;
mod newest;
mod records;
mod reshape;
mod trees;
mod verify;
mod volumes;

use interop::harness;
use std::process::ExitCode;

fn main() -> ExitCode {
    let all = [
        caches::trials(),
        dirty::trials(),
        files::trials(),
        judge::trials(),
        logs::trials(),
        newest::trials(),
        records::trials(),
        reshape::trials(),
        trees::trials(),
        verify::trials(),
        volumes::trials(),
    ];
    harness::main(all.into_iter().flatten().collect())
}
