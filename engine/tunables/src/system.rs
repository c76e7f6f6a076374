//! Files in the manner of Solaris's `/etc/system`, where tunables were set for the next boot.
//!
//! ```text
//!   * a comment
//!   set zfs:zfs_nocacheflush = 1
//!   set zil_slog_bulk=0x4000000
//! ```
//!
//! The module's name may be left out. A file that served another machine names what this program does not have (other
//! modules, other tunables): that is named and passed over. A line of no such form, or a bad value, refuses the whole
//! file: a setting that was meant must not be lost.

use crate::Tunable;
use units::{Error, Result};

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// In its order.
    pub known: Vec<(Tunable, u64)>,
    /// Which lines were passed over, and why.
    pub skipped: Vec<String>,
}

/// Names that are spelled otherwise in documents, and the right ones.
const SPELLINGS: &[(&str, &str)] = &[("zfs_prefetch_disabled", "zfs_prefetch_disable")];

/// The settings of the file.
///
/// # Errors
/// The first line that makes no sense or has a bad value, by `file` and number; then nothing is to be set.
pub fn parse(file: &str, text: &str) -> Result<Settings> {
    let mut settings = Settings::default();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['*', '#']) {
            continue;
        }
        match setting(line).map_err(|e| Error::invalid(format!("{file}:{number}: {e}")))? {
            Ok(known) => settings.known.push(known),
            Err(why) => settings.skipped.push(format!("{file}:{number}: {why}")),
        }
    }
    Ok(settings)
}

/// The setting, or why it is passed over.
fn setting(line: &str) -> Result<Result<(Tunable, u64), String>> {
    let shape = || Error::invalid(format!("'{line}' is not of the form 'set zfs:NAME = VALUE'"));
    let assignment = line.strip_prefix("set").filter(|rest| rest.starts_with(char::is_whitespace));
    let (name, value) = assignment.and_then(|a| a.split_once('=')).ok_or_else(shape)?;
    let name = match name.trim().split_once(':') {
        None => name.trim(),
        Some(("zfs", name)) => name.trim(),
        Some((module, _)) => return Ok(Err(format!("module '{module}' is skipped: only 'zfs' is set here"))),
    };
    let right = SPELLINGS.iter().find(|(other, _)| *other == name).map(|(_, right)| *right);
    match Tunable::find(right.unwrap_or(name)) {
        Ok(tunable) => Ok(Ok((tunable, tunable.definition().parse(value)?))),
        Err(_) => Ok(Err(format!("'{name}' is skipped: there is no such tunable"))),
    }
}
