//! A file of this machine while it is being made.
//!
//! It is made beside where it will be, under a name that no file there has, and drawn by lot: a name made from that of the
//! copy could be one that the pool, or the directory it is copied into, has for a file of its own. What was there before is
//! neither written nor removed, not even a half that another copy was cut short over.
//!
//! ```text
//!   create ──▶ .cenote-half-89ab… ──publish──▶ its own name
//!                     └──────drop──────▶ nothing
//! ```

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A name drawn by lot is taken once in 2^64 times; a directory in which all are lies.
const TRIES: usize = 16;

/// See the module.
#[derive(Debug)]
pub struct Half {
    path: PathBuf,
}

impl Half {
    /// Makes the file that will be `to`, for the owner alone.
    pub fn create(to: &Path) -> io::Result<(Half, File)> {
        let mut taken = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..TRIES {
            let path = to.with_file_name(format!(".cenote-half-{:016x}", world::random_u64()));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => return Ok((Half { path }, file)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => taken = e,
                Err(e) => return Err(e),
            }
        }
        Err(taken)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its own name. Errors: another file has it by now, and keeps it.
    pub fn publish(self, to: &Path) -> io::Result<()> {
        match std::fs::hard_link(&self.path, to) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => rename(&self.path, to),
            linked => linked,
        }
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        // After a renaming it is gone, and an error leaves no more than a name that tells what it is.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// For file systems without hard links.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        renamed => return Ok(renamed?),
    }
    // Some of them cannot keep what is there either, and then it has to be looked for.
    if std::fs::symlink_metadata(to).is_ok() {
        return Err(Errno::EXIST.into());
    }
    std::fs::rename(from, to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn halves_have_names_of_their_own_and_leave_what_was_there() {
        sim::run(1, sim::Config::default(), async {
            let dir = crate::tests::Scratch::new("halves");
            let to = dir.path().join("film");
            let older = dir.path().join(".film.cenote-half");
            std::fs::write(&older, "foreign").unwrap();
            let halves: Vec<_> = (0..100).map(|_| Half::create(&to).unwrap()).collect();
            let names: BTreeSet<_> = halves.iter().map(|(half, _)| half.path().to_path_buf()).collect();
            assert_eq!(names.len(), 100);
            let mut halves = halves.into_iter();
            halves.next().unwrap().0.publish(&to).unwrap();
            // Neither way writes over what is there.
            std::fs::write(&to, "first").unwrap();
            let (half, _) = halves.next().unwrap();
            assert_eq!(rename(half.path(), &to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(half.publish(&to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            let (half, _) = halves.next().unwrap();
            rename(half.path(), &dir.path().join("renamed")).unwrap();
            drop((half, halves));
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
            assert_eq!(std::fs::read(&to).unwrap(), b"first");
            assert_eq!(std::fs::read(&older).unwrap(), b"foreign");
        });
    }
}
