//! Programs whose writes reach the disk slowly: a control group with a limit, as for containers.

use rustix::fs::{major, minor, stat};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

const V1: &str = "/sys/fs/cgroup/blkio";
const V2: &str = "/sys/fs/cgroup";

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A control group; it goes when this is dropped, and the programs in it must have ended.
#[derive(Debug)]
pub struct SlowDisk(PathBuf);

impl SlowDisk {
    /// One that writes so many bytes a second to the disk that `at` is on. None where the machine has no such limits, or
    /// `at` is not on a disk.
    pub fn new(at: &Path, bytes_per_second: u64) -> Option<SlowDisk> {
        let disk = disk_of(at)?;
        let own = format!("cenote-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let (group, limit, line) = if Path::new(V1).join("blkio.throttle.write_bps_device").exists() {
            (Path::new(V1).join(own), "blkio.throttle.write_bps_device", format!("{disk} {bytes_per_second}"))
        } else {
            fs::write(Path::new(V2).join("cgroup.subtree_control"), "+io").ok()?;
            (Path::new(V2).join(own), "io.max", format!("{disk} wbps={bytes_per_second}"))
        };
        fs::create_dir_all(&group).ok()?;
        let group = SlowDisk(group);
        fs::write(group.0.join(limit), line).ok()?;
        Some(group)
    }

    /// The command, to be run in the group.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("sh");
        let enter = "echo $$ > \"$0\" && exec \"$@\"";
        command.args(["-c", enter]).arg(self.0.join("cgroup.procs")).arg(program);
        command
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        _ = fs::remove_dir(&self.0);
    }
}

/// Whether a limit can be set for what is below the directory for temporary files.
pub fn is_there() -> bool {
    SlowDisk::new(&std::env::temp_dir(), 1 << 30).is_some()
}

/// The whole disk that a file is on: limits are not for partitions.
fn disk_of(at: &Path) -> Option<String> {
    let dev = stat(at).ok()?.st_dev;
    let dir = fs::canonicalize(format!("/sys/dev/block/{}:{}", major(dev), minor(dev))).ok()?;
    let whole = if dir.join("partition").exists() { dir.parent()?.to_path_buf() } else { dir };
    Some(fs::read_to_string(whole.join("dev")).ok()?.trim().to_string())
}
