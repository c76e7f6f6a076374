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
    let path = cgroup.lines().find_map(|l| l.strip_prefix("0::/"))?;
    let dir = Path::new("/sys/fs/cgroup").join(path);
    let limit = |dir: &Path| std::fs::read_to_string(dir.join("memory.max")).ok()?.trim().parse::<u64>().ok();
    dir.ancestors().take_while(|d| d.starts_with("/sys/fs/cgroup")).filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_in_bytes() {
        assert_eq!(total("MemFree: 1 kB\nMemTotal:       24576 kB\n"), Some(24 << 20));
        assert_eq!(total("nothing"), None);
        assert!(half() >= MIN);
    }
}
