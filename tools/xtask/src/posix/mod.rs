//! `cargo xtask posix SUITE`: the suites that others wrote for file systems, on a mount of ours.
//!
//! ```text
//!   pjdfstest [FILE...]     POSIX system calls, 238 files                expected: fronts/fuse/tests/posix/pjdfstest.txt
//!   fsx [SEEDS [OPS]]       data and holes at random, from xfstests            nothing may fail
//!   fsstress [SEEDS]        names and data by many processes, from xfstests    nothing may hang or be left
//!   xfstests [TEST...]      the generic tests that apply to FUSE               expected: .../xfstests.txt
//!   build                   a source tree is cloned and built on the mount
//! ```
//!
//! Suites are cloned and built below `target/posix`, once, or taken from the directory that `POSIX_SUITES` names. Each run
//! has a pool of its own, on a file, served by the daemon of this workspace. It needs root, `/dev/fuse`, git, a C compiler
//! and autotools.
//!
//! A failure that is expected stands in a file, with its reason; one that is not, and one that is expected and does not
//! happen, are findings.

mod expected;
mod rig;
mod suites;

use crate::Failure;

const SUITES: &str = "pjdfstest [FILE...], fsx [SEEDS [OPS]], fsstress [SEEDS], xfstests [TEST...] or build";

pub fn run(arguments: &[String]) -> Result<bool, Failure> {
    let (suite, rest) = arguments.split_first().ok_or(format!("which suite? {SUITES}"))?;
    let number = |at: usize, default: u64| rest.get(at).and_then(|n| n.parse().ok()).unwrap_or(default);
    match suite.as_str() {
        "pjdfstest" => suites::pjdfstest(rest),
        "fsx" => suites::fsx(number(0, 4), number(1, 20_000)),
        "fsstress" => suites::fsstress(number(0, 2)),
        "xfstests" => suites::xfstests(rest),
        "build" => suites::build(),
        _ => Err(format!("no such suite: {suite}; there are {SUITES}").into()),
    }
}
