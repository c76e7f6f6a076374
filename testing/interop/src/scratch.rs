//! A directory of a test's own, gone when the test is.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A new directory below the system's temporary one; it and all in it is removed on drop, unless the test fails:
/// then it stays, to look into the failure.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

static NEXT: AtomicU64 = AtomicU64::new(0);

impl Scratch {
    /// # Panics
    /// When the directory cannot be made.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Scratch {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("cenote-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Scratch { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("left for inspection: {}", self.path.display());
        } else {
            _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Copies a file and leaves a hole wherever the source holds zeros.
pub fn copy_sparse(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = File::open(from)?;
    let mut target = File::create(to)?;
    let length = source.metadata()?.len();
    target.set_len(length)?;
    let mut buffer = vec![0; 64 << 10];
    let mut at = 0;
    while at < length {
        let n = source.read(&mut buffer)?;
        if buffer[..n].iter().any(|byte| *byte != 0) {
            target.seek(SeekFrom::Start(at))?;
            target.write_all(&buffer[..n])?;
        }
        at += n as u64;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_is_gone_after_use_and_alone_during_it() {
        let (a, b) = (Scratch::new(), Scratch::new());
        assert_ne!(a.path(), b.path());
        let path = a.path().to_owned();
        std::fs::write(a.join("x"), "x").unwrap();
        drop(a);
        assert!(!path.exists() && b.path().exists());
    }

    #[test]
    fn a_sparse_copy_is_the_same_bytes() {
        let scratch = Scratch::new();
        let mut bytes = vec![0; 300_000];
        bytes[70_000] = 1;
        bytes[299_999] = 2;
        std::fs::write(scratch.join("a"), &bytes).unwrap();
        copy_sparse(&scratch.join("a"), &scratch.join("b")).unwrap();
        assert!(std::fs::read(scratch.join("b")).unwrap() == bytes);
    }
}
