//! Tells the crate the name of the profile it is built with, which cargo puts only into the path of the output:
//! `target/dist/build/bench-…/out` or, with a named target, `target/x86_64-…/dist/build/bench-…/out`.

use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for a build script"));
    let directory = out.ancestors().nth(3).and_then(|profile| profile.file_name()).unwrap_or_default();
    let name = match directory.to_string_lossy().as_ref() {
        "debug" => "dev".to_owned(),
        name => name.to_owned(),
    };
    println!("cargo:rustc-env=BENCH_PROFILE={name}");
}
