//! What a replay came to, and two of them side by side.

use crate::play::Played;
use crate::present::DeviceWork;
use crate::show::time;
use serde_json::{Value, json};
use std::time::Duration;
use units::pretty_size;
use workload::Histogram;

/// One replay, on one stage.
#[derive(Clone, Debug)]
pub struct Figures {
    /// What heads its column: `present`, `volblocksize=16K`.
    pub name: String,
    pub played: Played,
    /// Of all devices, until everything written was on them.
    pub devices: DeviceWork,
}

/// A line of the table.
struct Line {
    name: &'static str,
    key: &'static str,
    value: f64,
    shown: String,
}

impl Figures {
    fn lines(&self) -> Vec<Line> {
        let Figures { played, devices, .. } = self;
        let (requests, bytes) = (played.requests().max(1) as f64, played.bytes.max(1) as f64);
        let seconds = played.elapsed.as_secs_f64().max(1e-9);
        let number = |name, key, value: f64| Line { name, key, value, shown: digits(value) };
        let took = |name, key, value: Duration| Line {
            name,
            key,
            value: value.as_nanos() as f64,
            shown: time(value),
        };
        let p99 = |of: &Histogram| of.percentile(99.0);
        let all = played.all();
        let mut lines = vec![
            number("operations/s", "operations_per_second", played.requests() as f64 / seconds),
            number("MB/s", "megabytes_per_second", played.bytes as f64 / seconds / 1e6),
            took("response, mean", "mean", all.mean()),
            took("response, p99", "p99", p99(&all)),
        ];
        if played.reads.count() > 0 {
            lines.push(took("  of reads, mean", "read_mean", played.reads.mean()));
            lines.push(took("  of reads, p99", "read_p99", p99(&played.reads)));
        }
        if played.writes.count() > 0 {
            lines.push(took("  of writes, mean", "write_mean", played.writes.mean()));
            lines.push(took("  of writes, p99", "write_p99", p99(&played.writes)));
        }
        let DeviceWork { reads, read_bytes, writes, written_bytes, flushes } = *devices;
        lines.extend([
            number("device reads", "device_reads", reads as f64),
            number("device writes", "device_writes", writes as f64),
            number("device flushes", "device_flushes", flushes as f64),
            number(
                "device operations per operation",
                "device_operations_each",
                (reads + writes) as f64 / requests,
            ),
            Line {
                name: "bytes read from devices",
                key: "device_read_bytes",
                value: read_bytes as f64,
                shown: pretty_size(read_bytes),
            },
            Line {
                name: "bytes written to devices",
                key: "device_written_bytes",
                value: written_bytes as f64,
                shown: pretty_size(written_bytes),
            },
            number("device bytes per byte", "device_bytes_each", (read_bytes + written_bytes) as f64 / bytes),
        ]);
        lines
    }

    /// What an honest reader must know of it; nothing most often.
    fn remarks(&self) -> Vec<String> {
        let Played { skipped, failed, failure, late, .. } = &self.played;
        let mut remarks = Vec::new();
        let mut remark = |count: u64, what: &str| {
            if count > 0 {
                remarks.push(format!("{}: {count} requests {what}", self.name));
            }
        };
        remark(*skipped, "were left out: no reads, writes, flushes or trims, or outside of the volume");
        remark(*late, "came later than recorded: too many were under way");
        remark(*failed, &format!("failed, the first with: {}", failure.as_deref().unwrap_or_default()));
        remarks
    }

    pub fn to_json(&self) -> Value {
        let mut told = json!({
            "name": self.name,
            "requests": self.played.requests(),
            "bytes": self.played.bytes,
            "skipped": self.played.skipped,
            "failed": self.played.failed,
            "late": self.played.late,
            "seconds": self.played.elapsed.as_secs_f64(),
        });
        for line in self.lines() {
            told[line.key] = line.value.into();
        }
        told
    }
}

/// A number with as many digits as say something.
fn digits(value: f64) -> String {
    match value {
        v if v >= 100.0 || v == 0.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// The figures side by side, each after the first with its ratio to the first.
pub fn table(all: &[Figures]) -> String {
    let Some((first, others)) = all.split_first() else { return String::new() };
    let wide = all.iter().map(|figures| figures.name.len()).max().unwrap_or(0).max(10) + 2;
    let mut text = format!("{:<34}{:>wide$}", "", first.name);
    for other in others {
        text += &format!("{:>wide$}{:>9}", other.name, "ratio");
    }
    text.push('\n');
    for line in first.lines() {
        text += &format!("{:<34}{:>wide$}", line.name, line.shown);
        for other in others {
            let of = other.lines().into_iter().find(|of| of.key == line.key);
            let shown = of.as_ref().map_or("-", |of| of.shown.as_str());
            let ratio = of.as_ref().filter(|_| line.value > 0.0).map(|of| of.value / line.value);
            let ratio = ratio.map_or("-".into(), |ratio| format!("{}x", digits(ratio)));
            text += &format!("{shown:>wide$}{ratio:>9}");
        }
        text.push('\n');
    }
    for remark in all.iter().flat_map(Figures::remarks) {
        text += &format!("{remark}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_beside_one_another() {
        let figures = |name: &str, reads: u64| {
            let mut played = Played { bytes: 10 << 14, elapsed: Duration::from_secs(2), ..Played::default() };
            (0..10).for_each(|_| played.reads.record(Duration::from_millis(reads)));
            let devices =
                DeviceWork { reads: reads * 10, read_bytes: reads * (10 << 14), ..DeviceWork::default() };
            Figures { name: name.into(), played, devices }
        };
        let mut after = figures("volblocksize=16K", 1);
        after.played.skipped = 3;
        let text = table(&[figures("present", 8), after.clone()]);
        let line = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line[name.len()..].split_whitespace().map(String::from).collect::<Vec<_>>()
        };
        assert_eq!(line("operations/s"), ["5.00", "5.00", "1.00x"]);
        assert_eq!(line("response, mean"), ["8ms", "1ms", "0.12x"]);
        assert_eq!(line("device operations per operation"), ["8.00", "1.00", "0.12x"]);
        assert_eq!(line("device bytes per byte"), ["8.00", "1.00", "0.12x"]);
        assert_eq!(line("device writes"), ["0", "0", "-"]);
        assert!(text.ends_with("volblocksize=16K: 3 requests were left out: no reads, writes, flushes or trims, or outside of the volume\n"), "{text}");
        assert_eq!(after.to_json()["device_bytes_each"], 1.0);
    }
}
