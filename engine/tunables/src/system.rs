//! Files in the manner of Solaris's `/etc/system`, where tunables were set for the next boot.
//!
//! ```text
//!   * a comment
//!   set zfs:zfs_nocacheflush = 1
//!   set zil_slog_bulk=0x4000000
//! ```
//!
//! The module's name may be left out. What the kernel's file could say beyond that (other modules, `forceload`, the
//! operators `|` and `&`) is refused with its line, not passed over: a setting that was meant must not be lost.

use crate::Tunable;
use units::{Error, Result};

/// All settings of the file, in its order. Nothing is set unless all of it is understood.
///
/// # Errors
/// The first line that makes no sense, by `file` and number.
pub fn parse(file: &str, text: &str) -> Result<Vec<(Tunable, u64)>> {
    let mut settings = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['*', '#']) {
            continue;
        }
        settings.push(setting(line).map_err(|e| Error::invalid(format!("{file}:{number}: {e}")))?);
    }
    Ok(settings)
}

fn setting(line: &str) -> Result<(Tunable, u64)> {
    let shape = || Error::invalid(format!("'{line}' is not of the form 'set zfs:NAME = VALUE'"));
    let assignment = line.strip_prefix("set").filter(|rest| rest.starts_with(char::is_whitespace));
    let (name, value) = assignment.and_then(|a| a.split_once('=')).ok_or_else(shape)?;
    let name = match name.trim().split_once(':') {
        None => name.trim(),
        Some(("zfs", name)) => name.trim(),
        Some((module, _)) => {
            return Err(Error::invalid(format!("module '{module}': only 'zfs' can be set here")));
        }
    };
    let unknown = |_| Error::invalid(format!("there is no tunable '{name}'"));
    let tunable = Tunable::find(name).map_err(unknown)?;
    Ok((tunable, tunable.definition().parse(value)?))
}
