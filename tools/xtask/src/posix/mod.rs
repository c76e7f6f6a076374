//! `cargo xtask posix SUITE`: the suites that others wrote for file systems, on a mount of ours.
//!
//! ```text
//!   pjdfstest [FILE...]     POSIX system calls, 238 files                expected: fronts/fuse/tests/posix/pjdfstest.txt
//!   fsx [SEEDS [OPS]]       data and holes at random, from xfstests            nothing may fail
//!   fsstress [SEEDS [OPS]]  names and data by many processes, from xfstests    nothing may hang, be lost or be left
//!   xfstests [TEST...]      the generic tests that apply to FUSE               expected: .../xfstests.txt
//!   build                   source trees are cloned and built on the mount
//!   all                     each of these, as it is without words of its own
//! ```
//!
//! Each run has a pool of its own, on a file below `target/posix`, served by a daemon of its own. At the end nothing may
//! prevent unmounting, and the exported pool must be whole: to `cenote inspect verify`, and to zdb where there is one.
//!
//! `POSIX_SUITES` names a directory that has `pjdfstest` and `xfstests`, built; without it they are cloned and built below
//! `target/posix/suites`, once. `POSIX_CENOTE` names the program that serves; without it that of this workspace is built.
//!
//! It needs root, `/dev/fuse`, git, a C compiler and autotools; xfstests also what its own README names.
//!
//! A failure that is expected stands in a file, with its reason; one that is not, and one that is expected and does not
//! happen, are findings, as is a test that does not run.

mod build;
mod expected;
mod pjdfstest;
mod random;
mod rig;
mod xfstests;

use crate::Failure;

const SUITES: &str =
    "pjdfstest [FILE...], fsx [SEEDS [OPS]], fsstress [SEEDS [OPS]], xfstests [TEST...], build or all";

pub fn run(arguments: &[String]) -> Result<bool, Failure> {
    let (suite, rest) = arguments.split_first().ok_or(format!("which suite? {SUITES}"))?;
    let number = |at: usize, default: u64| rest.get(at).map_or(Ok(default), |text| text.parse());
    match suite.as_str() {
        "pjdfstest" => pjdfstest::run(rest),
        "fsx" => random::fsx(number(0, 24)?, number(1, 50_000)?),
        "fsstress" => random::fsstress(number(0, 3)?, number(1, 2000)?),
        "xfstests" => xfstests::run(rest),
        "build" => build::run(),
        "all" => all(),
        _ => Err(format!("no such suite: {suite}; there are {SUITES}").into()),
    }
}

fn all() -> Result<bool, Failure> {
    let mut passed = true;
    for suite in ["pjdfstest", "fsx", "fsstress", "xfstests", "build"] {
        println!("=== {suite}");
        passed &= run(&[suite.to_string()]).unwrap_or_else(|failure| {
            println!("{suite}: {failure}");
            false
        });
    }
    Ok(passed)
}
