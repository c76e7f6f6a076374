//! Over a mounted path: system calls, a thread for each stream, nothing of ours in between.

use super::{Ios, Mounted, Op, Outcome, PERMISSIONS, Phase, Shape, Step, XATTR};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, XattrFlags};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use units::{Error, Kind, Result};

/// Runs the steps in a directory of its own below the path, which is left as it was.
pub fn run(mounted: &Mounted, shape: Shape, steps: &[Step]) -> Result<Outcome> {
    let own = Own::make(&mounted.dir, shape).map_err(failed("make directories in", &mounted.dir))?;
    let (mut outcome, mut is_cold) = (Outcome::default(), false);
    for step in steps {
        match step {
            Step::Cold if mounted.drops_caches => {
                drop_caches().map_err(failed("empty the caches", Path::new(DROP_CACHES)))?;
                is_cold = true;
            }
            Step::Cold | Step::Single => {}
            Step::Run(op) => {
                let before = mounted.ios()?;
                let elapsed = own.phase(*op)?;
                let ios = mounted.ios()?.zip(before).map(|(after, before)| after.since(before));
                outcome.phases.push(Phase {
                    op: *op,
                    is_cold,
                    files: shape.files,
                    elapsed,
                    ios,
                    cached: None,
                });
                is_cold = false;
            }
        }
    }
    Ok(outcome)
}

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

fn drop_caches() -> io::Result<()> {
    rustix::fs::sync();
    std::fs::write(DROP_CACHES, "3")
}

fn failed<'a>(doing: &'static str, path: &'a Path) -> impl Fn(io::Error) -> Error + 'a {
    move |e| Error::new(Kind::Io, doing).at(path.display()).because(e)
}

impl Mounted {
    /// What the devices have completed since the machine started, for everybody.
    fn ios(&self) -> Result<Option<Ios>> {
        if self.devices.is_empty() {
            let device = std::fs::metadata(&self.dir).map_err(failed("look at", &self.dir))?.dev();
            let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
            // A path on no block device of its own: a network's, FUSE's, memory's.
            let stat = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat"));
            return Ok(stat.ok().and_then(|stat| completed(&stat)));
        }
        let mut sum = Ios::default();
        for device in &self.devices {
            let path = PathBuf::from(format!("/sys/class/block/{device}/stat"));
            let stat = std::fs::read_to_string(&path).map_err(failed("read", &path))?;
            let ios = completed(&stat).ok_or_else(|| Error::corrupt("no counters").at(path.display()))?;
            sum = Ios { reads: sum.reads + ios.reads, writes: sum.writes + ios.writes };
        }
        Ok(Some(sum))
    }
}

/// The first and the fifth field of a block device's `stat`.
fn completed(stat: &str) -> Option<Ios> {
    let mut fields = stat.split_whitespace();
    let reads = fields.next()?.parse().ok()?;
    let writes = fields.nth(3)?.parse().ok()?;
    Some(Ios { reads, writes })
}

/// The directory of a run, which goes with it.
struct Own {
    dir: PathBuf,
    shape: Shape,
}

impl Drop for Own {
    fn drop(&mut self) {
        // After a run it has empty directories; after a failure this message is all there is.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Own {
    fn make(path: &Path, shape: Shape) -> io::Result<Own> {
        let dir = path.join(format!("cenote-metadata-{}", std::process::id()));
        std::fs::create_dir(&dir)?;
        let own = Own { dir, shape };
        for n in 0..shape.directories {
            std::fs::create_dir(own.directory(n as usize))?;
        }
        Ok(own)
    }

    fn directory(&self, n: usize) -> PathBuf {
        self.dir.join(format!("dir-{n}"))
    }

    /// One operation on every file, until it is on disk.
    fn phase(&self, op: Op) -> Result<Duration> {
        let begun = Instant::now();
        let streams: Vec<Result<()>> = std::thread::scope(|scope| {
            let start = |stream| scope.spawn(move || self.run_stream(stream, op));
            let threads: Vec<_> = (0..self.shape.streams).map(start).collect();
            let panicked = |_| Err(Error::new(Kind::Io, "run a stream"));
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
        });
        streams.into_iter().collect::<Result<()>>()?;
        let synced = File::open(&self.dir).and_then(|dir| Ok(rustix::fs::syncfs(dir)?));
        synced.map_err(failed("sync", &self.dir))?;
        Ok(begun.elapsed())
    }

    fn run_stream(&self, stream: usize, op: Op) -> Result<()> {
        for file in self.shape.of_stream(stream) {
            let path = self.directory(self.shape.directory(file)).join(Shape::name(file));
            self.act(op, file, &path).map_err(failed(op.name(), &path))?;
        }
        Ok(())
    }

    fn act(&self, op: Op, file: u64, path: &Path) -> io::Result<()> {
        match op {
            Op::Create => {
                OpenOptions::new().write(true).create_new(true).mode(PERMISSIONS).open(path).map(drop)
            }
            Op::SetXattr => {
                Ok(rustix::fs::lsetxattr(path, XATTR, &self.shape.value_of(file), XattrFlags::empty())?)
            }
            Op::GetXattr => {
                // One byte more, so that a longer value is seen.
                let mut value = vec![0; self.shape.value + 1];
                let len = rustix::fs::lgetxattr(path, XATTR, &mut value[..])?;
                verify(value[..len] == self.shape.value_of(file), "value")
            }
            Op::Lookup => Ok(rustix::fs::access(path, rustix::fs::Access::EXISTS)?),
            Op::GetAttr => {
                let mode = std::fs::symlink_metadata(path)?.permissions().mode();
                // The caller's umask may have taken rights away.
                verify(mode & 0o7777 & !PERMISSIONS == 0 && mode & 0o400 != 0, "mode")
            }
            Op::SetAttr => {
                let at = Timespec { tv_sec: file as i64, tv_nsec: 0 };
                let times = Timestamps { last_access: at, last_modification: at };
                Ok(rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
            }
            Op::Unlink => std::fs::remove_file(path),
        }
    }
}

fn verify(is_right: bool, what: &str) -> io::Result<()> {
    if is_right { Ok(()) } else { Err(io::Error::other(format!("not the {what} that was set"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_those_of_completed_requests() {
        let stat = "  100  7  2000  30  40  5  600  70  0  80  90  0 0 0 0\n";
        assert_eq!(completed(stat), Some(Ios { reads: 100, writes: 40 }));
        assert_eq!(completed("1 2 3"), None);
    }

    #[test]
    fn a_device_that_is_not_there_is_said() {
        let mounted = Mounted { dir: "/".into(), devices: vec!["no-such".into()], ..Mounted::default() };
        assert!(mounted.ios().unwrap_err().to_string().contains("no-such"));
    }

    #[test]
    fn a_wrong_value_is_found() {
        // Where the tests are built; a file system in memory may have no extended attributes.
        let exe = std::env::current_exe().unwrap();
        let shape = Shape { files: 2, directories: 1, streams: 1, value: 64 };
        let above = exe.with_file_name(format!("cenote-mounted-{}", std::process::id()));
        std::fs::create_dir(&above).unwrap();
        let own = Own::make(&above, shape).unwrap();
        for op in [Op::Create, Op::SetXattr, Op::GetXattr] {
            own.phase(op).unwrap();
        }
        let path = own.directory(0).join(Shape::name(1));
        rustix::fs::lsetxattr(&path, XATTR, &shape.value_of(0), XattrFlags::empty()).unwrap();
        let wrong = own.phase(Op::GetXattr).unwrap_err().to_string();
        assert!(wrong.contains("file-1"), "{wrong}");
        let dir = own.dir.clone();
        drop(own);
        assert!(!dir.exists());
        std::fs::remove_dir(&above).unwrap();
    }
}
