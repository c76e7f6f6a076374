//! File systems that this process itself serves: no device may lie in one of them.
//!
//! ```text
//!   a loop ── reads or writes the device ──▶ the kernel ──▶ a request of the file system
//!     ▲                                                           │ what has to wait
//!     └───────────────── a task of a loop, of this one too ◀──────┘
//! ```
//!
//! A loop that stops in such a call waits for itself, and all pools with it; and a process that is killed meanwhile is never
//! gone, for it holds open the file through which the answer would come. So paths are followed here, link by link, and the
//! walk ends where a served file system begins: to ask the kernel for what lies below would be the call that waits.
//!
//! Not seen from here: a device that reaches a served file through another process, such as a file system mounted over it.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// As many as the kernel follows.
const LINKS_MAX: usize = 40;

/// Where they are mounted, each with its number of a device.
static SERVED: Mutex<BTreeMap<u64, PathBuf>> = Mutex::new(BTreeMap::new());

fn served() -> MutexGuard<'static, BTreeMap<u64, PathBuf>> {
    // Each entry is whole at any time.
    SERVED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file system that this process serves, until it is dropped.
#[derive(Debug)]
pub struct Served {
    device: u64,
}

impl Served {
    /// One that is mounted at `at`, a path without links; `device` is the number that its files have as `st_dev`.
    pub fn new(at: PathBuf, device: u64) -> Served {
        served().insert(device, at);
        Served { device }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        served().remove(&self.device);
    }
}

fn refused(at: &Path) -> io::Error {
    let message = format!("it lies in '{}', whose files this process serves itself", at.display());
    io::Error::new(io::ErrorKind::Unsupported, message)
}

/// Refuses a file of this device, which is open already.
pub(crate) fn refuse_device(device: u64) -> io::Result<()> {
    served().get(&device).map_or(Ok(()), |at| Err(refused(at)))
}

/// Refuses a path that leads into a served file system. Errors of the walk itself are left to the open that follows.
pub(crate) fn refuse_path(path: &Path) -> io::Result<()> {
    let places: Vec<PathBuf> = served().values().cloned().collect();
    if places.is_empty() {
        return Ok(());
    }
    let Ok(path) = std::path::absolute(path) else { return Ok(()) };
    let mut left = names(&path);
    let (mut at, mut links) = (PathBuf::from("/"), 0);
    while let Some(name) = left.pop_front() {
        if name == ".." {
            at.pop();
            continue;
        }
        at.push(name);
        if let Some(place) = places.iter().find(|place| **place == at) {
            return Err(refused(place));
        }
        let Ok(target) = std::fs::read_link(&at) else { continue };
        links += 1;
        if links > LINKS_MAX {
            return Ok(());
        }
        if target.is_absolute() {
            at = PathBuf::from("/");
        } else {
            at.pop();
        }
        let mut ahead = names(&target);
        ahead.append(&mut left);
        left = ahead;
    }
    Ok(())
}

fn names(path: &Path) -> VecDeque<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().to_os_string()),
        _ => None,
    };
    path.components().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// By its own path, by links to it and through it, and out of it again.
    #[test]
    fn paths_into_what_is_served_are_refused_however_they_lead_there() {
        let root =
            std::env::temp_dir().canonicalize().unwrap().join(format!("cenote-own-{}", std::process::id()));
        let at = root.join("m");
        std::fs::create_dir_all(at.join("d")).unwrap();
        std::fs::create_dir(root.join("beside")).unwrap();
        symlink(&at, root.join("absolute")).unwrap();
        symlink("beside/../m/d", root.join("relative")).unwrap();
        symlink("circle", root.join("circle")).unwrap();
        symlink("../beside", at.join("out")).unwrap();
        let served = Served::new(at.clone(), u64::MAX);
        for path in
            ["m", "m/d/x", "absolute/x", "relative/x", "./m/./x", "beside/../m/x", "m/../beside/x", "m/out/x"]
        {
            let e = refuse_path(&root.join(path)).unwrap_err();
            assert!(e.to_string().contains(&format!("it lies in '{}'", at.display())), "{path}: {e}");
        }
        for path in ["beside/x", "mm/x", "not/there", "circle/x", "../x"] {
            refuse_path(&root.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
        }
        assert!(refuse_device(u64::MAX).is_err() && refuse_device(u64::MAX - 1).is_ok());
        drop(served);
        refuse_path(&at.join("x")).unwrap();
        std::fs::remove_dir_all(&root).unwrap();
    }
}
