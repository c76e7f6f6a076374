//! OpenZFS's debugger as the judge of what we wrote.
//!
//! `zdb` exits with 0 when space leaked, so its line about leaks is required too; and it looks at the data of files and
//! volumes only when it is told to verify all checksums, twice `-c`.

use std::path::Path;

use crate::programs::{command, output, said};

/// What `zdb` says of a pool without leaks.
const NO_LEAKS: &str = "No leaks (block sum matches space maps exactly)";

/// Reads every block of `pool`, whose devices are the files in `directory`, and compares the space maps with what is
/// referenced. The judgement is an error's text when it is not clean.
pub fn judge(directory: &Path, pool: &str) -> Result<(), String> {
    let mut zdb = command("zdb");
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
