//! How much memory the cache may take: half of what the machine, or the control group, has. And what all takes.

use api::Memory;
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

/// Buffers that are kept for those to come, of a cache that may have so much.
pub(crate) fn kept_bytes(cache: u64) -> usize {
    (cache / 8).clamp(16 << 20, 256 << 20) as usize
}

/// See [`crate::Appliance::request_bytes`].
pub(crate) fn request_bytes(cache: u64) -> usize {
    (cache / 4).clamp(64 << 20, 512 << 20) as usize
}

/// What of the heap is free and in memory all the same: at most what the heap says of itself, and what is left of what the
/// kernel says.
fn freed(anonymous: u64, used: u64, free: u64) -> u64 {
    anonymous.saturating_sub(used).min(free)
}

/// Where the memory of this process is; `cache` and `dirty` as their owners count them.
pub(crate) fn account(cache: u64, dirty: u64) -> Memory {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name| kib(&status, name).unwrap_or(0);
    let (held, kept) = (world::buf::held() as u64, world::buf::kept() as u64);
    let heap = world::heap().unwrap_or_default();
    Memory {
        resident: of("VmRSS:"),
        cache,
        dirty,
        requests: held.saturating_sub(cache + dirty + kept),
        kept,
        heap: heap.in_use,
        freed: freed(of("RssAnon:"), held + heap.in_use, heap.free),
        program: of("RssFile:"),
    }
}

/// The line of that name, in bytes.
fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix(name))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

fn total(meminfo: &str) -> Option<u64> {
    kib(meminfo, "MemTotal:")
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
