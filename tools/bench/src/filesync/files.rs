//! On a mounted path: the host's file system, with nothing of ours in between.

use super::{LEN, Options, Outcome};
use rustix::fs::OFlags;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use units::{Error, Kind, Result};
use workload::Histogram;

/// Runs in the directory `dir`, which is left as it was.
pub fn run(dir: &Path, options: Options) -> Result<Outcome> {
    let next = AtomicU64::new(0);
    let begun = Instant::now();
    let streams: Vec<Result<Histogram>> = std::thread::scope(|scope| {
        let start = |stream| {
            let next = &next;
            scope.spawn(move || run_stream(dir, stream, options.count, next))
        };
        let threads: Vec<_> = (0..options.streams).map(start).collect();
        let panicked = |_| Err(Error::new(Kind::Io, "run a stream"));
        threads.into_iter().map(|t| t.join().unwrap_or_else(panicked)).collect()
    });
    let elapsed = begun.elapsed();
    let mut latencies = Histogram::default();
    for stream in streams {
        latencies.merge(&stream?);
    }
    Ok(Outcome { count: options.count, elapsed, latencies })
}

fn run_stream(dir: &Path, stream: usize, count: u64, next: &AtomicU64) -> Result<Histogram> {
    let path = dir.join(format!("filesync_test.{}.{stream}", std::process::id()));
    let mut latencies = Histogram::default();
    while next.fetch_add(1, Ordering::Relaxed) < count {
        let begun = Instant::now();
        one_file(&path).map_err(|e| Error::new(Kind::Io, "filesync").at(path.display()).because(e))?;
        latencies.record(begun.elapsed());
    }
    Ok(latencies)
}

fn one_file(path: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).custom_flags(OFlags::DSYNC.bits() as i32);
    let mut file = options.open(path)?;
    let written = file.write_all(&[0x5a; LEN]);
    drop(file);
    // Whatever became of the write, nothing is left behind.
    let removed = std::fs::remove_file(path);
    written.and(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_made_once_and_none_is_left() {
        let dir = std::env::temp_dir().join(format!("cenote-filesync-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let outcome = run(&dir, Options { count: 40, streams: 3 }).unwrap();
        assert_eq!((outcome.count, outcome.latencies.count()), (40, 40));
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
        std::fs::remove_dir(&dir).unwrap();
        let missing = run(&dir, Options { count: 1, streams: 1 }).unwrap_err();
        assert!(missing.to_string().contains("filesync_test"), "{missing}");
    }
}
