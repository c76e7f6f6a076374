//! The three parts as tables of Markdown.

use super::large::{self, Work};
use super::names;
use super::object_storage::{self, STEPS};
use super::peers::{NAMES, Slot};
use super::{Sample, median};
use units::pretty_size;

const OURS: usize = 0;
const EXT4: usize = 1;
const BTRFS: usize = 3;
const ZFS_FUSE: usize = 4;
const BINDFS: usize = 5;

/// Not measured.
const NONE: &str = "-";

/// Seconds, and how many times as fast as others ours is.
pub(super) fn names(rows: &[names::Row], slots: &[Slot]) -> String {
    let mut text = head(
        "source tree, seconds",
        slots,
        &["x ext4", "x btrfs", "x zfs-fuse", "x bindfs", "cenote, CPU s", "bindfs, CPU s"],
    );
    for row in rows {
        let of = |place: usize| median(row.samples.get(place)?, |s| s.elapsed.as_secs_f64());
        let names = row.samples.iter().flatten().next().map_or(0, |s| s.ops);
        text += &format!("| {}, {names} names |", row.work.name());
        (0..slots.len()).for_each(|place| text += &cell(of(place).map(|s| format!("{s:.2}"))));
        for other in [EXT4, BTRFS, ZFS_FUSE, BINDFS] {
            text += &cell(of(other).zip(of(OURS)).map(|(other, ours)| ratio(other / ours.max(1e-9))));
        }
        for place in [OURS, BINDFS] {
            let cpu = row
                .samples
                .get(place)
                .and_then(|samples| median(samples, |s| s.cpu.unwrap_or_default().as_secs_f64()));
            text += &cell(cpu.map(|cpu| format!("{cpu:.2}")));
        }
        text.push('\n');
    }
    text
}

/// MiB/s of what goes in order, operations of what is at random, and the same ratios.
pub(super) fn large(rows: &[large::Row], slots: &[Slot]) -> String {
    let last = ["x ext4", "x btrfs", "x zfs-fuse", "x bindfs", "cenote, CPU s/GiB", "bindfs, CPU s/GiB"];
    let mut text = head("large file: MiB/s, at random /s", slots, &last);
    let mut rows: Vec<_> = rows.iter().collect();
    rows.sort_by_key(|row| row.work.is_random());
    for row in rows {
        let speed = |s: &Sample| if row.work.is_random() { s.per_second() } else { s.mib_per_second() };
        let of = |place: usize| median(row.samples.get(place)?, speed);
        text += &format!("| {}, {} |", large_name(row.work), pretty_size(row.block as u64));
        (0..slots.len()).for_each(|place| text += &cell(of(place).map(|speed| format!("{speed:.0}"))));
        for other in [EXT4, BTRFS, ZFS_FUSE, BINDFS] {
            text += &cell(of(OURS).zip(of(other)).map(|(ours, other)| ratio(ours / other.max(1e-9))));
        }
        for place in [OURS, BINDFS] {
            let cpu = row.samples.get(place).and_then(|samples| median(samples, cpu_per_gib));
            text += &cell(cpu.map(|cpu| format!("{cpu:.2}")));
        }
        text.push('\n');
    }
    text
}

fn large_name(work: Work) -> String {
    match work {
        Work::Write | Work::RandomWrite => format!("{}, fsync", work.name()),
        read => read.name().into(),
    }
}

fn cpu_per_gib(sample: &Sample) -> f64 {
    sample.cpu.unwrap_or_default().as_secs_f64() / (sample.bytes as f64 / f64::from(1 << 30)).max(1e-9)
}

/// MiB/s, with the ratio to OpenZFS's engine, and what records of 1M bring over those of 128K.
pub(super) fn objects(rows: &[object_storage::Row]) -> String {
    let mut text = String::from("| 64 threads at 1M | recordsize |");
    for step in STEPS {
        text += &format!(" {step}, MiB/s | OpenZFS's engine | x | CPU s/GiB |");
    }
    text += &format!("\n|---|---:|{}\n", "---:|".repeat(4 * STEPS.len()));
    for row in rows {
        text += &format!("| {} | {} |", row.layout, pretty_size(row.record));
        for step in 0..STEPS.len() {
            let (speed, other) = (row.speed(step), row.openzfs[step]);
            text += &cell(speed.map(|speed| format!("{speed:.0}")));
            text += &format!(" {other:.0} |");
            text += &cell(speed.map(|speed| ratio(speed / other)));
            text += &cell(median(&row.samples[step], cpu_per_gib).map(|cpu| format!("{cpu:.2}")));
        }
        text.push('\n');
    }
    for small in rows.iter().filter(|row| row.record == 128 << 10) {
        let Some(large) = rows.iter().find(|row| row.layout == small.layout && row.record == 1 << 20) else {
            continue;
        };
        let gain = |step: usize| Some((large.speed(step)? / small.speed(step)? - 1.0) * 100.0);
        let gains: Vec<String> = (0..STEPS.len())
            .filter_map(|step| gain(step).map(|gain| format!("{} {gain:+.0} %", STEPS[step])))
            .collect();
        text += &format!("\n1M over 128K, {}: {}.", small.layout, gains.join(", "));
    }
    text + "\n"
}

fn head(first: &str, slots: &[Slot], last: &[&str]) -> String {
    let names: String = NAMES.iter().take(slots.len()).chain(last).map(|name| format!(" {name} |")).collect();
    format!("| {first} |{names}\n|---|{}\n", "---:|".repeat(slots.len() + last.len()))
}

fn cell(text: Option<String>) -> String {
    format!(" {} |", text.as_deref().unwrap_or(NONE))
}

fn ratio(ratio: f64) -> String {
    format!("{ratio:.2}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn slots() -> Vec<Slot> {
        NAMES.map(|name| Slot { name, peer: Err("gone".into()) }).into()
    }

    fn sample(mib: u64, millis: u64) -> Sample {
        let cpu = Some(Duration::from_millis(millis / 2));
        Sample { bytes: mib << 20, ops: mib, elapsed: Duration::from_millis(millis), cpu }
    }

    #[test]
    fn a_row_of_names_has_seconds_and_how_much_faster_ours_is() {
        let of = |millis| vec![sample(9, millis)];
        let samples = vec![of(2000), of(1000), Vec::new(), of(3000), of(8000), of(5000)];
        let text = names(&[names::Row { work: names::Work::Remove, samples }], &slots());
        let line = "| rm -r, sync, 9 names | 2.00 | 1.00 | - | 3.00 | 8.00 | 5.00 | 0.50 | 1.50 | 4.00 | 2.50 | 1.00 | 2.50 |\n";
        assert!(text.ends_with(line), "{text}");
    }

    #[test]
    fn what_is_in_order_comes_first_and_in_bytes() {
        let row = |work| {
            let of = |mib| vec![sample(mib, 1000)];
            let samples = vec![of(512), of(1024), of(1), of(256), of(128), of(64)];
            large::Row { work, block: 128 << 10, samples }
        };
        let text = large(&[row(Work::RandomWrite), row(Work::Read { cold: true })], &slots());
        let lines: Vec<&str> = text.lines().skip(2).collect();
        let line = "| read, cold, 128K | 512 | 1024 | 1 | 256 | 128 | 64 | 0.50 | 2.00 | 4.00 | 8.00 | 1.00 | 8.00 |";
        assert_eq!(lines[0], line);
        assert!(lines[1].starts_with("| random write, fsync, 128K | 512 |"), "{text}");
    }

    #[test]
    fn large_records_are_compared_with_those_of_128k() {
        let row = |record, mib| object_storage::Row {
            layout: "mirror of 2",
            record,
            samples: [vec![sample(mib, 1000)], Vec::new(), Vec::new()],
            openzfs: [100.0; 3],
        };
        let text = objects(&[row(128 << 10, 200), row(1 << 20, 326)]);
        assert!(
            text.contains("| mirror of 2 | 128K | 200 | 100 | 2.00 | 2.56 | - | 100 | - | - |"),
            "{text}"
        );
        assert!(text.ends_with("1M over 128K, mirror of 2: read +63 %.\n"), "{text}");
    }
}
