//! The configuration as one text file.
//!
//! ```text
//!   cenote configuration 1 SHA-256 of all that follows, in hexadecimal
//!   { "san.targets": { "iqn...": { ... } }, ..., "store": { "schema": 1 } }
//! ```
//!
//! Independent of how the database lays its file out, so that a backup outlives it. The seal is against damage, not
//! against forgery. It holds the secrets that the configuration holds, and so has mode 0600.

use crate::records::{Everything, Reader};
use codec::checksum::Checksummer;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use units::{Checksum, Endian, Error, Result};

/// A configuration is small; a file that is named by mistake need not be.
const TEXT_MAX: u64 = 64 << 20;
const FIRST: &str = "cenote configuration 1 ";

/// All that was committed, as the file's text.
pub(crate) fn text(reader: &Reader) -> Result<String> {
    let tables = serde_json::to_string_pretty(&reader.everything()?)
        .map_err(|e| Error::corrupt("configuration").because(e))?;
    Ok(sealed(&tables))
}

/// The text of a backup that holds these tables, as JSON.
pub fn sealed(tables: &str) -> String {
    format!("{FIRST}{}\n{tables}\n", seal(tables))
}

/// The text of a file that holds a backup; nothing is said of whether it is one. A pipe, a terminal or a device is not even
/// read: it may never end, or never begin.
pub fn read(from: &Path) -> Result<String> {
    let read = || {
        let of = fs::metadata(from)?;
        if !of.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        let mut text = String::new();
        // It may grow.
        let read = |text: &mut String| File::open(from)?.take(TEXT_MAX + 1).read_to_string(text);
        if of.len() > TEXT_MAX || read(&mut text)? as u64 > TEXT_MAX {
            return Err(io::Error::other("it is too large for a configuration"));
        }
        Ok(text)
    };
    read().map_err(|e| Error::new(units::Kind::Io, format!("read backup {}", from.display())).because(e))
}

/// What a backup holds, if it is whole.
pub(crate) fn parse(text: &str) -> Result<Everything> {
    let damaged = |why: &str| Error::corrupt("backup").because(why.to_string());
    let (first, tables) =
        text.split_once('\n').ok_or_else(|| damaged("it is no backup of a configuration"))?;
    let sealed = first.strip_prefix(FIRST).ok_or_else(|| damaged("it is no backup of a configuration"))?;
    let tables = tables.strip_suffix('\n').ok_or_else(|| damaged("its end is missing"))?;
    if seal(tables) != sealed {
        return Err(damaged("it was changed, or cut off, after it was written"));
    }
    serde_json::from_str(tables).map_err(|e| Error::corrupt("backup").because(e))
}

/// Makes the file, whole or not at all; one that is there already is replaced, but nothing else is.
pub(crate) fn write(to: &Path, text: &str) -> io::Result<()> {
    match fs::metadata(to) {
        Ok(there) if !there.is_file() => return Err(io::Error::other("what is there already is no file")),
        _ => {}
    }
    let mut name = to.as_os_str().to_os_string();
    name.push(".new");
    let next = Path::new(&name);
    // One that a crash left may be there, with whatever mode.
    let _ = fs::remove_file(next);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(next)?;
    let mut put = || {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(next, to)
    };
    // It holds secrets, and has a name that is not asked for.
    put().inspect_err(|_| drop(fs::remove_file(next)))?;
    let dir = to.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(dir)?.sync_all()
}

fn seal(text: &str) -> String {
    let words = Checksummer::unsalted().compute(Checksum::Sha256, Endian::Big, text.as_bytes());
    words.iter().map(|word| format!("{word:016x}")).collect()
}
