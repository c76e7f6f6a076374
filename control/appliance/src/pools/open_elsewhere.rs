//! Which process has a device or a pool.
//!
//! ```text
//!   a device   every process that opens one for writing holds a lock on it, and the kernel knows which
//!   a pool     the labels of one in use name the process:   boot   pid namespace   pid   start, in ticks since the boot
//! ```
//!
//! Of a pool the label is what is left to ask when its bytes are reached in a way that no lock covers: a copy that an
//! overlay made, another name of a remote disk. A process of another boot or of another namespace is not known.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The process that holds a lock on `path`, if it is one that this process may know of.
pub(crate) fn of(path: &Path) -> Option<u32> {
    let meta = std::fs::metadata(path).ok()?;
    find(&std::fs::read_to_string("/proc/locks").ok()?, meta.dev(), meta.ino())
}

/// Whether it is this process that holds a lock on `path`.
pub(crate) fn is_open_here(path: &Path) -> bool {
    of(path) == Some(std::process::id())
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

/// What became of the process that a label names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opener {
    /// It runs, and is not this one.
    Runs(u32),
    Ended,
    Unknown,
}

/// This process, as labels name it.
pub(crate) fn this_process() -> Option<String> {
    let pid = std::process::id();
    Some(format!("{} {} {pid} {}", boot()?, namespace()?, start_of(pid)?))
}

/// What became of the process with this name.
pub(crate) fn opener(process: Option<&str>) -> Opener {
    let words: Vec<&str> = process.unwrap_or_default().split(' ').collect();
    let [of_boot, of_namespace, pid, start] = words[..] else { return Opener::Unknown };
    let (Ok(pid), Ok(start)) = (pid.parse::<u32>(), start.parse::<u64>()) else { return Opener::Unknown };
    if boot().as_deref() != Some(of_boot) || namespace().as_deref() != Some(of_namespace) {
        return Opener::Unknown;
    }
    if pid != std::process::id() && start_of(pid) == Some(start) { Opener::Runs(pid) } else { Opener::Ended }
}

fn boot() -> Option<String> {
    Some(std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_string())
}

fn namespace() -> Option<String> {
    Some(std::fs::metadata("/proc/self/ns/pid").ok()?.ino().to_string())
}

/// When a process began; `None` when it has ended, also while its parent has not noticed.
fn start_of(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After the name, which may hold anything: the state is field 3, the start field 22.
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_whitespace();
    let state = fields.next()?;
    (state != "Z" && state != "X").then(|| fields.nth(18)?.parse().ok()).flatten()
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
    fn a_process_that_a_label_names_is_known_to_run_or_to_have_ended() {
        let own = this_process().unwrap();
        assert_eq!(opener(Some(&own)), Opener::Ended, "this process is in nobody's way");
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let name =
            |pid: u32, start: u64| format!("{} {} {pid} {start}", boot().unwrap(), namespace().unwrap());
        let running = name(child.id(), start_of(child.id()).unwrap());
        assert_eq!(opener(Some(&running)), Opener::Runs(child.id()));
        assert_eq!(
            opener(Some(&name(child.id(), 1))),
            Opener::Ended,
            "the number is another process's by now"
        );
        assert_eq!(opener(Some(&running.replacen('-', "+", 1))), Opener::Unknown, "another boot");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(opener(Some(&running)), Opener::Ended);
        for unknown in [None, Some(""), Some("a b c d"), Some("a b 1 2 3")] {
            assert_eq!(opener(unknown), Opener::Unknown);
        }
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
