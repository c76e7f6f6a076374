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
//! xfstests' users (`fsgqa` and others) and its mount helper are made for the time of the run, the users in a mount
//! namespace of its own. A test of it that does not end in ten minutes is ended, and has failed.
//!
//! A failure that is expected stands in a file, with its reason; one that is not, and one that is expected and does not
//! happen, are findings, as is a test that does not run. At the end stands a table in Markdown: what ran, what passed, and
//! what is excused and why.

mod account;
mod build;
mod expected;
mod patience;
mod pjdfstest;
mod random;
mod rig;
mod xfstests;

use crate::Failure;
use account::Account;

const SUITES: &str =
    "pjdfstest [FILE...], fsx [SEEDS [OPS]], fsstress [SEEDS [OPS]], xfstests [TEST...], build or all";

pub fn run(arguments: &[String]) -> Result<bool, Failure> {
    let (suite, rest) = arguments.split_first().ok_or(format!("which suite? {SUITES}"))?;
    let accounts = match suite.as_str() {
        "all" | "xfstests" if !xfstests::is_inside() => return xfstests::in_namespace(arguments),
        "all" => all(),
        _ => vec![one(suite, rest)?],
    };
    println!("\n{}", account::table(&accounts));
    Ok(accounts.iter().all(Account::is_well))
}

fn one(suite: &str, rest: &[String]) -> Result<Account, Failure> {
    let number = |at: usize, default: u64| rest.get(at).map_or(Ok(default), |text| text.parse());
    match suite {
        "pjdfstest" => pjdfstest::run(rest),
        "fsx" => random::fsx(number(0, 24)?, number(1, 50_000)?),
        "fsstress" => random::fsstress(number(0, 3)?, number(1, 2000)?),
        "xfstests" => xfstests::run(rest),
        "build" => build::run(),
        _ => Err(format!("no such suite: {suite}; there are {SUITES}").into()),
    }
}

fn all() -> Vec<Account> {
    let mut accounts = Vec::new();
    for suite in ["pjdfstest", "fsx", "fsstress", "xfstests", "build"] {
        println!("=== {suite}");
        accounts.push(one(suite, &[]).unwrap_or_else(|failure| {
            println!("{suite}: {failure}");
            let mut account = Account::new(suite, failure.to_string(), String::new());
            account.findings = 1;
            account
        }));
    }
    accounts
}
