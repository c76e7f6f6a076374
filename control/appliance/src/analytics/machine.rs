//! What the kernel counts of the machine, as sources of statistics: processors, memory of the daemon, network devices.
//!
//! Each is a text of `/proc`, read when a statistic that needs it takes its sample, and parsed by a plain function. What
//! runs up is told as it stands; the hub makes differences of it.

use probe::{Breakdown, Hub, Mark, Reading, Registration};
use std::path::Path;
use std::sync::Arc;

/// The kernel's tick, which is so everywhere: `USER_HZ`.
const TICK_NS: u64 = 10_000_000;
/// Columns of `/proc/stat` that are times in which a processor had work, and what they are called. Time of guests is in
/// that of users.
const MODES: [(usize, &str); 6] =
    [(0, "user"), (1, "user"), (2, "kernel"), (5, "interrupt"), (6, "interrupt"), (7, "stolen")];

pub(super) fn register(hub: &Hub) -> Vec<Registration> {
    let read = |path: &'static str| std::fs::read_to_string(Path::new(path)).unwrap_or_default();
    vec![
        hub.readings("cpu.utilization", Arc::new(move || processors(&read("/proc/stat")))),
        hub.readings("nic.kilobytes", Arc::new(move || devices(&read("/proc/net/dev")))),
        hub.readings("mem.used", Arc::new(move || memory(&read("/proc/self/status")))),
    ]
}

fn word(by: Breakdown, text: &str) -> (Breakdown, Mark) {
    (by, Mark::Word(text.into()))
}

/// Nanoseconds of work of each processor, by mode: each its share of the machine, so that all of them are a hundred percent.
fn processors(stat: &str) -> Vec<Reading> {
    let own = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let lines: Vec<&str> = stat.lines().filter(own).collect();
    let count = lines.len().max(1) as u64;
    let mut readings: Vec<Reading> = Vec::new();
    for line in lines {
        let mut words = line.split_ascii_whitespace();
        let cpu = words.next().unwrap_or_default();
        let ticks: Vec<u64> = words.map(|word| word.parse().unwrap_or(0)).collect();
        for (column, mode) in MODES {
            let value = ticks.get(column).copied().unwrap_or(0).saturating_mul(TICK_NS) / count;
            let marks =
                vec![word(Breakdown::Mode, mode), word(Breakdown::Cpu, cpu.trim_start_matches("cpu"))];
            match readings.iter_mut().find(|reading| reading.marks == marks) {
                Some(reading) => reading.value += value,
                None => readings.push(Reading { marks, value }),
            }
        }
    }
    readings
}

/// Bytes in and out of each network device but the loop.
fn devices(dev: &str) -> Vec<Reading> {
    let mut readings = Vec::new();
    for line in dev.lines() {
        let Some((device, counters)) = line.split_once(':') else { continue };
        let device = device.trim();
        if device == "lo" {
            continue;
        }
        let counters: Vec<u64> =
            counters.split_ascii_whitespace().map(|word| word.parse().unwrap_or(0)).collect();
        for (column, direction) in [(0, "in"), (8, "out")] {
            if let Some(value) = counters.get(column) {
                let marks = vec![word(Breakdown::Device, device), word(Breakdown::Direction, direction)];
                readings.push(Reading { marks, value: *value });
            }
        }
    }
    readings
}

/// Bytes of the daemon that are in memory, by what the kernel says they are: together what it calls resident.
fn memory(status: &str) -> Vec<Reading> {
    let parts = [("RssAnon:", "heap and buffers"), ("RssFile:", "program"), ("RssShmem:", "shared")];
    let mut readings = Vec::new();
    for (name, component) in parts {
        let kilobytes =
            status.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.parse().ok());
        if let Some(kilobytes) = kilobytes {
            let value = u64::saturating_mul(kilobytes, 1024);
            readings.push(Reading { marks: vec![word(Breakdown::Component, component)], value });
        }
    }
    readings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(readings: Vec<Reading>) -> Vec<(String, u64)> {
        let words = |reading: &Reading| {
            let words = reading.marks.iter().map(|(_, mark)| match mark {
                Mark::Word(word) => word.to_string(),
                _ => String::new(),
            });
            words.collect::<Vec<_>>().join(" ")
        };
        readings.iter().map(|reading| (words(reading), reading.value)).collect()
    }

    #[test]
    fn processors_together_are_one_machine() {
        let stat = "cpu  9 9 9 9\ncpu0 10 2 4 1000 5 1 1 0 0 0\ncpu1 0 0 8 1000\nintr 5\nctxt 7\n";
        let ns = |ticks: u64| ticks * TICK_NS / 2;
        let expected = [
            ("user 0", ns(12)),
            ("kernel 0", ns(4)),
            ("interrupt 0", ns(2)),
            ("stolen 0", 0),
            ("user 1", 0),
            ("kernel 1", ns(8)),
            ("interrupt 1", 0),
            ("stolen 1", 0),
        ];
        assert_eq!(told(processors(stat)), expected.map(|(words, ns)| (words.to_string(), ns)));
        assert_eq!(told(processors("")), []);
        assert_eq!(told(processors("cpu0 x -1\n")).iter().map(|(_, ns)| ns).sum::<u64>(), 0);
    }

    #[test]
    fn devices_count_both_ways() {
        let dev = "Inter-|   Receive    |  Transmit\n face |bytes packets|bytes\n\
            \x20   lo: 5 0 0 0 0 0 0 0 5 0 0 0 0 0 0 0\n  eth0:70 1 0 0 0 0 0 0 90 2 0 0 0 0 0 0\n";
        assert_eq!(told(devices(dev)), [("eth0 in".to_string(), 70), ("eth0 out".into(), 90)]);
        assert_eq!(told(devices("a:b\n:\nshort: 1")), [("a in".to_string(), 0), ("short in".into(), 1)]);
    }

    #[test]
    fn the_kernel_of_this_machine_is_understood() {
        let of_here = processors(&std::fs::read_to_string("/proc/stat").unwrap());
        assert!(of_here.iter().map(|reading| reading.value).sum::<u64>() > 0);
    }

    #[test]
    fn memory_is_what_the_kernel_calls_resident() {
        let status =
            "VmRSS:\t    1230 kB\nRssAnon:\t    1000 kB\nRssFile:\t     230 kB\nRssShmem:\t       0 kB\n";
        let expected = [("heap and buffers", 1000 << 10), ("program", 230 << 10), ("shared", 0)];
        assert_eq!(told(memory(status)), expected.map(|(word, bytes)| (word.to_string(), bytes)));
        assert_eq!(told(memory("RssAnon:\t many kB\n")), []);
        assert!(!memory(&std::fs::read_to_string("/proc/self/status").unwrap()).is_empty());
    }
}
