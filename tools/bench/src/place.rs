//! Where the figures come from: the machine, the day, the file systems.

use crate::Options;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const MEMORY: &str = "/dev/shm";

/// Memory, where there is a file system in it, and the directory we are in.
pub fn default_dirs() -> Vec<PathBuf> {
    let memory = Some(PathBuf::from(MEMORY)).filter(|dir| dir.is_dir());
    let here = std::env::current_dir().unwrap_or_else(|_| ".".into());
    memory.into_iter().chain([here]).collect()
}

/// A sentence on the day, the machine and what was asked for.
pub fn machine(options: &Options) -> String {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "{} UTC; {cores} cores of {}, Linux {}, load {} when it began; {} per sequential row, {} s per random one, medians of {} rounds; built with the profile {}.\n",
        dsl::props::show_date(seconds, false),
        processor(&read("/proc/cpuinfo")),
        read("/proc/sys/kernel/osrelease").trim(),
        read("/proc/loadavg").split(' ').next().unwrap_or("unknown"),
        units::pretty_size(options.size),
        options.seconds,
        options.rounds,
        crate::PROFILE,
    )
}

fn processor(info: &str) -> &str {
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or("an unknown processor", |(_, name)| name.trim())
}

/// What kind of place a directory is: `tmpfs`, or `ext4, O_DIRECT`.
pub fn title(dir: &Path) -> String {
    let kind = rustix::fs::statfs(dir).map_or(0, |s| s.f_type);
    match kind {
        0x0102_1994 => "tmpfs".into(),
        0xef53 => "ext4, O_DIRECT".into(),
        0x5846_5342 => "XFS, O_DIRECT".into(),
        0x9123_683e => "btrfs, O_DIRECT".into(),
        0x794c_7630 => "overlayfs, O_DIRECT where it is allowed".into(),
        other => format!("file system {other:x}, O_DIRECT where it is allowed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_called_by_its_name() {
        let info = "processor\t: 0\nmodel name\t: AMD EPYC 7B13\nflags\t: fpu\n";
        assert_eq!(processor(info), "AMD EPYC 7B13");
        assert_eq!(processor(""), "an unknown processor");
    }
}
