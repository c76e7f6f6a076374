//! OpenZFS's debugger as the judge of what we wrote.
//!
//! `zdb` exits with 0 when space leaked, so its line about leaks is required too; and it looks at the data of files and
//! volumes only when it is told to verify all checksums, twice `-c`.

use std::path::Path;

use crate::harness::Need;
use crate::programs::{command, find, output, said};

/// What `zdb` says of a pool without leaks.
const NO_LEAKS: &str = "No leaks (block sum matches space maps exactly)";

/// A `zdb` that knows the features of OpenZFS 2.2 and 2.3; Debian 12 has 2.1, and a newer one in its backports.
pub const OF_2_3: Need = Need::Other("zdb of OpenZFS 2.3", is_of_2_3);

fn is_of_2_3() -> bool {
    // It tells no version, but explains an option that came with block cloning.
    find("zdb").is_some() && said(&output(command("zdb").arg("--help"))).contains("--brt-stats")
}

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
