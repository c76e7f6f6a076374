//! Where the kernel says that a file system is mounted: `mountinfo`, of this process and of others.
//!
//! ```text
//!   36 35 0:31 / /srv/tank\040one rw,noatime shared:1 - fuse tank/one rw,user_id=0
//!         │    │ └ the place, with octal escapes
//!         │    └ the directory of the file system that is mounted there: others than / by bind mounts
//!         └ the number of the device that its files have
//! ```
//!
//! All here is read and compared; nothing is asked of the file systems themselves.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

const OWN: &str = "/proc/self/mountinfo";

/// The places where a file system with this number of a device is mounted, as far as this process sees; `None` where the
/// kernel does not say. Blocks.
pub(crate) fn places(device: u64) -> Option<Vec<PathBuf>> {
    Some(of_device(&std::fs::read(OWN).ok()?, device))
}

/// What is mounted below a place, the first of it. Blocks.
pub(crate) fn below(at: &Path) -> Option<PathBuf> {
    let mounts = std::fs::read(OWN).ok()?;
    lines(&mounts).map(|(_, place)| place).find(|place| place != at && place.starts_with(at))
}

/// A process in another mount namespace where a file system with this number of a device is mounted: `process 7 (sleep)`.
/// Namespaces without a process, and those that this process may not look into, are not seen. Blocks.
pub(crate) fn process_elsewhere(device: u64) -> Option<String> {
    let namespace = |process: &Path| std::fs::read_link(process.join("ns/mnt")).ok();
    let mut seen = BTreeSet::from([namespace(Path::new("/proc/self"))?]);
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let (name, process) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
        if !name.bytes().all(|b| b.is_ascii_digit()) {
            continue;
        }
        let is_new = namespace(&process).is_some_and(|namespace| seen.insert(namespace));
        if is_new
            && let Ok(mounts) = std::fs::read(process.join("mountinfo"))
            && !of_device(&mounts, device).is_empty()
        {
            let comm = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
            return Some(format!("process {name} ({})", comm.trim()));
        }
    }
    None
}

fn of_device(mounts: &[u8], device: u64) -> Vec<PathBuf> {
    let device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    lines(mounts).filter(|(of, _)| *of == device.as_bytes()).map(|(_, place)| place).collect()
}

/// Device and place of each line.
fn lines(mounts: &[u8]) -> impl Iterator<Item = (&[u8], PathBuf)> {
    mounts.split(|b| *b == b'\n').filter_map(|line| {
        let mut words = line.split(|b| *b == b' ');
        let device = words.nth(2)?;
        Some((device, unescape(words.nth(1)?)))
    })
}

fn unescape(word: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(word.len());
    let mut rest = word;
    while let [first, after @ ..] = rest {
        let octal = match after {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] if *first == b'\\' => {
                Some((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'))
            }
            _ => None,
        };
        path.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { &after[3..] } else { after };
    }
    PathBuf::from(OsString::from_vec(path))
}

/// Paths for a message: `'/a'`, `'/a' and 2 more`.
pub(crate) fn list(places: &[PathBuf]) -> String {
    let first = places.first().map_or(String::new(), |place| {
        format!("'{}'", String::from_utf8_lossy(place.as_os_str().as_bytes()))
    });
    if places.len() > 1 { format!("{first} and {} more", places.len() - 1) } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_by_their_device_and_unescaped() {
        let mounts = b"21 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            36 21 0:31 / /srv/a\\040b rw shared:1 - fuse tank/a rw\n\
            37 21 0:31 /sub /bind\\134x ro - fuse tank/a rw\n\
            38 36 0:310 / /srv/a\\040b/c rw - fuse tank/c rw\n";
        let device = |minor| rustix::fs::makedev(0, minor);
        let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(of_device(mounts, device(31)), paths(&["/srv/a b", "/bind\\x"]));
        assert_eq!(of_device(mounts, device(310)), paths(&["/srv/a b/c"]));
        assert_eq!(of_device(mounts, device(3)), paths(&[]));
        assert_eq!(list(&paths(&["/a"])), "'/a'");
        assert_eq!(list(&paths(&["/a", "/b", "/c"])), "'/a' and 2 more");
    }
}
