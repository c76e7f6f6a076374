//! How much memory the cache may take: half of what the machine, or the control group, has.

use std::path::Path;

/// When nothing can be found out.
const UNKNOWN: u64 = 1 << 30;
const MIN: u64 = 64 << 20;

pub(crate) fn half() -> u64 {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let group = std::fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| group_limit(&text));
    let all = machine.into_iter().chain(group).min().unwrap_or(UNKNOWN);
    (all / 2).max(MIN)
}

fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// The least of the limits from the process's group up.
fn group_limit(cgroup: &str) -> Option<u64> {
    let (root, path, file) = group(cgroup)?;
    let dir = Path::new(root).join(path);
    let limit = |dir: &Path| std::fs::read_to_string(dir.join(file)).ok()?.trim().parse::<u64>().ok();
    dir.ancestors().take_while(|d| d.starts_with(root)).filter_map(limit).min()
}

/// Where the kernel tells the limits: the memory controller of old, or the one tree of all controllers.
fn group(cgroup: &str) -> Option<(&'static str, &str, &'static str)> {
    let old = cgroup.lines().find_map(|l| l.split_once(":memory:/").map(|(_, path)| path));
    let new = || cgroup.lines().find_map(|l| l.strip_prefix("0::/"));
    match old {
        Some(path) => Some(("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes")),
        None => Some(("/sys/fs/cgroup", new()?, "memory.max")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_in_bytes() {
        assert_eq!(total("MemFree: 1 kB\nMemTotal:       24576 kB\n"), Some(24 << 20));
        assert_eq!(total("nothing"), None);
        assert!(half() >= MIN);
        assert_eq!(group("0::/a/b\n"), Some(("/sys/fs/cgroup", "a/b", "memory.max")));
        let old = Some(("/sys/fs/cgroup/memory", "docker/x", "memory.limit_in_bytes"));
        assert_eq!(group("11:cpu:/x\n4:memory:/docker/x\n0::/\n"), old);
    }
}
