//! Every behaviour is proven with the ring and without it.

mod disks;
mod sockets;
mod tasks;

use crate::{Config, run};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs the same work on two loops with a ring and on two without.
fn both<F: Future<Output = ()> + Send + 'static>(work: impl Fn() -> F) {
    for io_uring in [true, false] {
        run(Config { cores: Some(2), io_uring }, work());
    }
}

/// A file that is gone when the test is.
struct Scratch(PathBuf);

impl Scratch {
    fn in_dir(dir: &Path, size: u64) -> Scratch {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!("cenote-linux-test-{}-{n}", std::process::id()));
        std::fs::File::create(&path).unwrap().set_len(size).unwrap();
        Scratch(path)
    }

    fn new(size: u64) -> Scratch {
        Scratch::in_dir(&std::env::temp_dir(), size)
    }

    fn path(&self) -> PathBuf {
        self.0.clone()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
