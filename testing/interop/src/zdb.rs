//! OpenZFS's debugger as the judge of what we wrote.
//!
//! `zdb` exits with 0 when space leaked, so its line about leaks is required too; and it looks at the data of files and
//! volumes only when it is told to verify all checksums, twice `-c`.
//!
//! There are two judges. The one of the machine's release is asked about pools with our default features: on Debian 12
//! it is that of OpenZFS 2.1, which knows no later ones. A newer one, which `cargo xtask check` unpacks below the target
//! directory where the release has none, is asked about all others.

use std::path::Path;
use std::process::Command;

use crate::archive::target_directory;
use crate::harness::Need;
use crate::programs::{command, find, output, said};

/// What `zdb` says of a pool without leaks.
const NO_LEAKS: &str = "No leaks (block sum matches space maps exactly)";

/// A `zdb` that knows the features of OpenZFS 2.2 and 2.3.
pub const OF_2_3: Need = Need::Other("zdb of OpenZFS 2.3", || of_2_3().is_some());

fn of_2_3() -> Option<Command> {
    let installed = find("zdb").map(Command::new).filter(|_| is_of_2_3(&mut command("zdb")));
    installed.or_else(unpacked)
}

/// The one that does not belong to the release.
fn unpacked() -> Option<Command> {
    let place = target_directory().join("zdb");
    let libraries: Vec<_> = std::fs::read_dir(place.join("lib")).ok()?.flatten().map(|e| e.path()).collect();
    let zdb = || {
        let mut zdb = Command::new(place.join("sbin/zdb"));
        zdb.env("LD_LIBRARY_PATH", std::env::join_paths(&libraries).unwrap_or_default());
        zdb
    };
    (place.join("sbin/zdb").is_file() && is_of_2_3(&mut zdb())).then(zdb)
}

/// It tells no version, but explains an option that came with block cloning.
fn is_of_2_3(zdb: &mut Command) -> bool {
    said(&output(zdb.arg("--help"))).contains("--brt-stats")
}

/// Reads every block of `pool`, whose devices are the files in `directory`, and compares the space maps with what is
/// referenced. The judgement is an error's text when it is not clean.
pub fn judge(directory: &Path, pool: &str) -> Result<(), String> {
    judge_by(command("zdb"), directory, pool)
}

fn judge_by(mut zdb: Command, directory: &Path, pool: &str) -> Result<(), String> {
    zdb.args(["-e", "-p"]).arg(directory).args(["-bcc", pool]);
    let output = output(&mut zdb);
    let said = said(&output);
    if output.status.success() && said.contains(NO_LEAKS) {
        return Ok(());
    }
    Err(format!("{zdb:?}: {}\n{said}", output.status))
}

/// Requires a clean judgement.
///
/// # Panics
/// When it is not clean.
pub fn assert_clean(directory: &Path, pool: &str) {
    if let Err(judgement) = judge(directory, pool) {
        panic!("{judgement}");
    }
}

/// Requires a clean judgement of the newer judge, by a test that needs [`OF_2_3`].
///
/// # Panics
/// When it is not clean.
pub fn assert_clean_by_2_3(directory: &Path, pool: &str) {
    let zdb = of_2_3().expect("the test says that it needs a zdb of OpenZFS 2.3");
    if let Err(judgement) = judge_by(zdb, directory, pool) {
        panic!("{judgement}");
    }
}

/// What `zdb` says of the intent logs of `pool`, record by record.
///
/// # Panics
/// When it cannot read the pool.
pub fn intent_logs(directory: &Path, pool: &str) -> String {
    intent_logs_by(command("zdb"), directory, pool)
}

/// The same from the newer judge, which knows all kinds of records, by a test that needs [`OF_2_3`].
///
/// # Panics
/// When it cannot read the pool.
pub fn intent_logs_by_2_3(directory: &Path, pool: &str) -> String {
    intent_logs_by(of_2_3().expect("the test says that it needs a zdb of OpenZFS 2.3"), directory, pool)
}

fn intent_logs_by(mut zdb: Command, directory: &Path, pool: &str) -> String {
    zdb.args(["-e", "-p"]).arg(directory).args(["-ivv", pool]);
    let output = output(&mut zdb);
    let said = said(&output);
    assert!(output.status.success(), "{zdb:?}: {}\n{said}", output.status);
    said
}
