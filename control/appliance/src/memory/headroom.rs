//! What the kernel says of memory: how much there is for this process, how much is left, and whether processes wait for it.
//!
//! ```text
//!   /proc/meminfo                       MemTotal, MemAvailable                          the machine
//!   each control group from ours up     memory.max, memory.current, memory.stat         version 2: one tree
//!                                       memory.limit_in_bytes, memory.usage_in_bytes    version 1: a tree for memory
//!   memory.pressure of our group, else /proc/pressure/memory                   stalls (PSI), where the kernel has them
//! ```
//!
//! A group's usage contains pages of files, which the kernel takes back when it needs them: they count as left. What is in
//! tmpfs does not.

use std::path::{Path, PathBuf};

/// Bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Headroom {
    pub total: u64,
    pub available: u64,
}

/// Where the memory of this process is limited.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    /// Groups that may have a limit, ours first.
    groups: Vec<PathBuf>,
    names: Names,
}

/// What the files of a group are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Names {
    limit: &'static str,
    usage: &'static str,
    /// Lines of `memory.stat`, which count the groups below too.
    files: [&'static str; 2],
}

const V1: Names = Names {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    files: ["total_inactive_file ", "total_active_file "],
};
const V2: Names =
    Names { limit: "memory.max", usage: "memory.current", files: ["inactive_file ", "active_file "] };

impl Limits {
    /// Of the group that this process is in now.
    pub fn of_this_process() -> Limits {
        std::fs::read_to_string("/proc/self/cgroup")
            .ok()
            .and_then(|text| Limits::of(&text))
            .unwrap_or_default()
    }

    fn of(cgroup: &str) -> Option<Limits> {
        let (root, path, names) = group(cgroup)?;
        let dir = Path::new(root).join(path);
        let groups = dir.ancestors().take_while(|dir| dir.starts_with(root)).map(Path::to_path_buf).collect();
        Some(Limits { groups, names })
    }

    /// The least memory that the machine or a group has.
    pub fn total(&self) -> Option<u64> {
        self.each().map(|one| one.total).min()
    }

    /// The machine's, or of the group that has least left.
    pub fn least(&self) -> Option<Headroom> {
        self.each().min_by_key(|one| one.available)
    }

    /// Microseconds for which some process waited for memory, since the start of the machine or group.
    pub fn stalled(&self) -> Option<u64> {
        let own = self.groups.first().map(|group| group.join("memory.pressure"));
        let places = own.into_iter().chain([PathBuf::from("/proc/pressure/memory")]);
        places.filter_map(|place| std::fs::read_to_string(place).ok()).find_map(|text| stalled(&text))
    }

    fn each(&self) -> impl Iterator<Item = Headroom> {
        let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| machine(&text));
        machine.into_iter().chain(self.groups.iter().filter_map(|group| self.names.read(group)))
    }
}

impl Names {
    /// Nothing where the group has no limit.
    fn read(&self, group: &Path) -> Option<Headroom> {
        let text = |file: &str| std::fs::read_to_string(group.join(file)).ok();
        let number = |file: &str| text(file)?.trim().parse::<u64>().ok();
        let (total, used) = (number(self.limit)?, number(self.usage)?);
        let stat = text("memory.stat").unwrap_or_default();
        let of = |name: &str| stat.lines().find_map(|line| line.strip_prefix(name)?.parse::<u64>().ok());
        let files = self.files.iter().filter_map(|name| of(name)).fold(0, u64::saturating_add);
        Some(Headroom { total, available: total.saturating_sub(used.saturating_sub(files)) })
    }
}

fn machine(meminfo: &str) -> Option<Headroom> {
    let of = |name| super::kib(meminfo, name);
    Some(Headroom { total: of("MemTotal:")?, available: of("MemAvailable:")? })
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=1234`
fn stalled(pressure: &str) -> Option<u64> {
    let some = pressure.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split(' ').find_map(|word| word.strip_prefix("total="))?.trim().parse().ok()
}

/// The tree of the group that limits memory, the group's path there, and what its files are called.
fn group(cgroup: &str) -> Option<(&'static str, &str, Names)> {
    let old = cgroup.lines().find_map(|line| line.split_once(":memory:/").map(|(_, path)| path));
    let new = || cgroup.lines().find_map(|line| line.strip_prefix("0::/"));
    match old {
        Some(path) => Some(("/sys/fs/cgroup/memory", path, V1)),
        None => Some(("/sys/fs/cgroup", new()?, V2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_that_limits_memory_is_found_in_either_tree() {
        assert_eq!(group("0::/a/b\n"), Some(("/sys/fs/cgroup", "a/b", V2)));
        assert_eq!(
            group("11:cpu:/x\n4:memory:/docker/x\n0::/\n"),
            Some(("/sys/fs/cgroup/memory", "docker/x", V1))
        );
        assert_eq!(group("nonsense"), None);
        let limits = Limits::of("0::/a/b\n").unwrap();
        let groups: Vec<_> = limits.groups.iter().map(|dir| dir.to_str().unwrap()).collect();
        assert_eq!(groups, ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"]);
    }

    #[test]
    fn pages_of_files_are_left() {
        let dir = std::env::temp_dir().join(format!("cenote-headroom-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).unwrap();
        write("memory.current", "900\n");
        write("memory.stat", "anon 500\ninactive_file 250\nactive_file 50\nshmem 100\n");
        write("memory.max", "max\n");
        assert_eq!(V2.read(&dir), None, "no limit");
        write("memory.max", "1000\n");
        assert_eq!(V2.read(&dir), Some(Headroom { total: 1000, available: 400 }));
        write("memory.stat", "nonsense");
        assert_eq!(V2.read(&dir), Some(Headroom { total: 1000, available: 100 }));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn the_machine_and_its_stalls_are_read() {
        let text = "MemTotal:       24576 kB\nMemFree: 1 kB\nMemAvailable:  2048 kB\n";
        assert_eq!(machine(text), Some(Headroom { total: 24 << 20, available: 2 << 20 }));
        assert_eq!(machine("nothing"), None);
        let text = "some avg10=0.00 avg60=0.10 avg300=0.00 total=4711\nfull avg10=0.00 total=3\n";
        assert_eq!((stalled(text), stalled("some total=x"), stalled("")), (Some(4711), None, None));
    }
}
