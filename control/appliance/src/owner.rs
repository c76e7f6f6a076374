//! Who has a device: every process that opens one for writing holds a lock on it, and the kernel knows which.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The process that holds a lock on `path`, if it is one that this process may know of.
pub(crate) fn of(path: &Path) -> Option<u32> {
    let meta = std::fs::metadata(path).ok()?;
    find(&std::fs::read_to_string("/proc/locks").ok()?, meta.dev(), meta.ino())
}

/// `1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF`
fn find(locks: &str, dev: u64, ino: u64) -> Option<u32> {
    // As the kernel packs a device's two numbers for programs.
    let major = (dev >> 8 & 0xfff) | (dev >> 32 & !0xfff);
    let minor = (dev & 0xff) | (dev >> 12 & !0xff);
    let place = format!("{major:02x}:{minor:02x}:{ino}");
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_it = words.get(1) == Some(&"FLOCK") && words.get(5) == Some(&place.as_str());
        words.get(4).filter(|_| is_it)?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_is_found_by_device_and_inode() {
        let locks =
            "1: POSIX  ADVISORY  WRITE 1 fe:00:77 0 EOF\n2: FLOCK  ADVISORY  WRITE 4321 fe:00:77 0 EOF\n";
        assert_eq!(find(locks, 0xfe00, 77), Some(4321));
        assert_eq!(find(locks, 0xfe00, 78), None);
    }

    #[test]
    fn a_lock_of_this_process_is_seen() {
        let path = std::env::temp_dir().join(format!("cenote-owner-{}", std::process::id()));
        let file = std::fs::File::create(&path).unwrap();
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
        // Some containers have no such list, or one without other namespaces' processes.
        if std::fs::read_to_string("/proc/locks").is_ok_and(|t| t.contains("FLOCK")) {
            assert_eq!(of(&path), Some(std::process::id()));
        }
        std::fs::remove_file(&path).unwrap();
    }
}
