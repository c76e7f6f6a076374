//! Tables as storage people know them: a line for each interval, a summary for each run, the curve over depths.

use crate::describe::{Load, Run};
use crate::drive::Summary;
use crate::histogram::Histogram;
use crate::knee::{Point, knee};
use crate::tally::Figures;
use std::fmt::Write;
use std::time::Duration;

/// A head of the table is repeated after so many lines.
pub const HEAD_EVERY: u64 = 30;

/// What a run is, in one line.
pub fn title(run: &Run, asked: Option<f64>) -> String {
    let rate = match (run.load, asked) {
        (Load::OfMax(percent), Some(rate)) => format!("{rate:.0}/s, {percent}% of the maximum"),
        (_, Some(rate)) => format!("{rate:.0}/s"),
        (_, None) => "as many as are taken".into(),
    };
    let time = match run.elapsed {
        Some(elapsed) => format!("for {}", span(elapsed)),
        None => "until all is moved".into(),
    };
    let warmup = if run.warmup.is_zero() { String::new() } else { format!(", warm-up {}", span(run.warmup)) };
    format!("Run {}: {} at once, {rate}, {time}{warmup}\n", run.name, run.lanes())
}

fn span(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s >= 7200.0 => format!("{:.0} h", s / 3600.0),
        s if s >= 120.0 => format!("{:.0} min", s / 60.0),
        s => format!("{s} s"),
    }
}

/// The head of the lines of intervals.
pub fn head() -> String {
    "interval       i/o    MiB/sec   bytes  read    resp    read   write    resp    resp  queue   cpu%\n"
        .to_string()
        + "              rate               i/o   pct      ms      ms      ms  max ms  stddev  depth  of one\n"
}

/// One interval. `name` is its number, or what takes its place. A `!` behind the depth: by Little's law it is another.
pub fn line(name: &str, figures: &Figures) -> String {
    let responses = figures.responses();
    let requests = figures.requests().max(1);
    let mark = if figures.is_doubtful() { "!" } else { " " };
    let read_part = 100.0 * figures.reads.count() as f64 / requests as f64;
    let cpu = 100.0 * figures.cpu.as_secs_f64() / figures.elapsed.as_secs_f64().max(1e-9);
    format!(
        "{name:>8} {:>9.1} {:>10.2} {:>7} {:>5.1} {} {} {} {} {} {:>6.1}{mark} {cpu:>6.1}\n",
        figures.rate(),
        figures.bytes_per_second() / f64::from(1 << 20),
        figures.bytes() / requests,
        read_part,
        ms(responses.mean()),
        ms(figures.reads.mean()),
        ms(figures.writes.mean()),
        ms(responses.max()),
        ms(figures.deviation()),
        figures.measured_concurrency(),
    )
}

fn ms(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1e3;
    if ms < 1000.0 { format!("{ms:>7.3}") } else { format!("{ms:>7.1}") }
}

/// What came of a run.
pub fn summary(summary: &Summary) -> String {
    let Summary { figures, rows, .. } = summary;
    let mut text = String::new();
    let ended = if summary.is_interrupted { ", ended early" } else { "" };
    let _ = writeln!(
        text,
        "\nRun {}: {:.1} operations/s, {:.2} MiB/s, {} after {:.1} s{ended}",
        summary.run,
        figures.rate(),
        figures.bytes_per_second() / f64::from(1 << 20),
        counted(figures.requests()),
        figures.elapsed.as_secs_f64(),
    );
    if let Some(asked) = summary.asked {
        let _ = writeln!(text, "  asked for {asked:.1}/s; response times count from when a request was due");
    }
    text += &little(figures, summary.lanes);
    let _ = writeln!(
        text,
        "  CPU of this process: {:.2} us for each operation",
        figures.cpu_per_request().as_nanos() as f64 / 1e3
    );
    text +=
        "                   count       mean        p50        p90        p99      p99.9        max   ms\n";
    for (name, histogram) in
        [("reads", &figures.reads), ("writes", &figures.writes), ("flushes", &figures.flushes)]
    {
        text += &percentiles(name, histogram);
    }
    if rows.len() > 1 {
        text += &head();
        rows.iter().for_each(|(name, row)| text += &line(name, row));
    }
    if let Some(verified) = summary.verified {
        let _ = writeln!(text, "  verified: {verified} blocks were read again, and right");
    }
    text
}

fn counted(requests: u64) -> String {
    if requests == 1 { "1 operation".into() } else { format!("{requests} operations") }
}

/// Concurrency: what was counted beside what the law says.
fn little(figures: &Figures, lanes: u64) -> String {
    let (law, measured) = (figures.concurrency_by_law(), figures.measured_concurrency());
    let verdict = match figures.is_doubtful() {
        true => "!  they differ: requests did not come back in the time that was measured",
        false => "",
    };
    let all = figures.requests() + figures.flushes.count();
    let rate = all as f64 / figures.elapsed.as_secs_f64().max(1e-9);
    let service = if rate > 0.0 { law / rate } else { 0.0 };
    format!(
        "  Little: {rate:.1}/s x {:.3} ms = {law:.2} at once; counted {measured:.2} of {lanes} {verdict}\n",
        service * 1e3
    )
    .replace(" \n", "\n")
}

fn percentiles(name: &str, histogram: &Histogram) -> String {
    if histogram.count() == 0 {
        return String::new();
    }
    let ms = |time: Duration| format!("{:>10.3}", time.as_secs_f64() * 1e3);
    let percents = [50.0, 90.0, 99.0, 99.9].map(|p| ms(histogram.percentile(p))).join(" ");
    format!(
        "  {name:<8} {:>13} {} {percents} {}\n",
        histogram.count(),
        ms(histogram.mean()),
        ms(histogram.max())
    )
}

/// The curve over depths, its knee marked, with a bar for each rate.
pub fn curve(summaries: &[Summary]) -> String {
    let points: Vec<Point> = points(summaries);
    let at = knee(&points);
    let most = points.iter().map(|p| p.rate).fold(0.0, f64::max).max(1e-9);
    let mut text = "\n  depth        i/o    MiB/sec     resp      p99\n".to_string();
    text += "              rate                  ms       ms\n";
    for (index, (point, summary)) in points.iter().zip(summaries).enumerate() {
        let bar = "#".repeat((point.rate / most * 30.0).round() as usize);
        let mark = if at == Some(index) { "  <- knee" } else { "" };
        let responses = summary.figures.responses();
        let _ = writeln!(
            text,
            "{:>7} {:>10.1} {:>10.2} {:>8.3} {:>8.3}  {bar}{mark}",
            point.depth,
            point.rate,
            summary.figures.bytes_per_second() / f64::from(1 << 20),
            responses.mean().as_secs_f64() * 1e3,
            responses.percentile(99.0).as_secs_f64() * 1e3,
        );
    }
    text
}

/// What is known of each depth.
pub fn points(summaries: &[Summary]) -> Vec<Point> {
    let point = |s: &Summary| Point {
        depth: s.lanes,
        rate: s.figures.rate(),
        response: s.figures.responses().mean(),
    };
    summaries.iter().map(point).collect()
}

/// A bar over the time of a run, for a terminal: drawn again and again in one line.
pub fn bar(done: Duration, of: Option<Duration>, figures: &Figures) -> String {
    const WIDTH: f64 = 30.0;
    let rates = format!(
        "{:.0} i/o/s, {:.1} MiB/s, {:.3} ms",
        figures.rate(),
        figures.bytes_per_second() / f64::from(1 << 20),
        figures.responses().mean().as_secs_f64() * 1e3
    );
    let Some(of) = of.filter(|of| !of.is_zero()) else { return format!("{} {rates}", span(done)) };
    let part = (done.as_secs_f64() / of.as_secs_f64()).min(1.0);
    let full = (part * WIDTH) as usize;
    format!("[{}{}] {:.1}% {rates}", "#".repeat(full), ".".repeat(WIDTH as usize - full), part * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::{Ended, Kind, Tally};
    use world::Instant;

    /// A second with 100 reads and 50 writes of 4 KiB, each of 10 ms.
    fn figures() -> Figures {
        let tally = Tally::default();
        for turn in 0..150u64 {
            let begun = Instant(turn * 6_666_666);
            let end = begun.after(Duration::from_millis(10));
            tally.begin(begun);
            let kind = if turn % 3 == 0 { Kind::Write } else { Kind::Read };
            tally.end(&Ended { kind, due: begun, begun, end, bytes: 4096 });
        }
        let mut sum = Figures::of(Duration::from_secs(1), Duration::from_micros(1500));
        sum.join(&tally.take(Instant(1_010_000_000)));
        sum
    }

    fn summary_of(figures: Figures, lanes: u64) -> Summary {
        Summary {
            run: "r".into(),
            lanes,
            asked: None,
            figures,
            rows: Vec::new(),
            is_interrupted: false,
            verified: None,
        }
    }

    #[test]
    fn a_line_has_a_place_under_each_head() {
        let head = head();
        let line = line("1", &figures());
        let widths: Vec<usize> = head.lines().chain(line.lines()).map(str::len).collect();
        let fields: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(fields[..5], ["1", "150.0", "0.59", "4096", "66.7"], "{line}");
        assert_eq!(fields[5..8], ["10.000", "10.000", "10.000"], "{line}");
        assert!(widths[2].abs_diff(widths[0]) <= 2, "{head}{line}");
    }

    #[test]
    fn a_summary_says_operations_bandwidth_and_time_together() {
        let text = summary(&summary_of(figures(), 2));
        for part in [
            "Run r: 150.0 operations/s, 0.59 MiB/s, 150 operations after 1.0 s\n",
            "CPU of this process: 10.00 us for each operation",
            "Little: 150.0/s x 10.000 ms = 1.50 at once",
            "reads              100     10.000",
            "writes              50     10.000",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("flushes"));
    }

    #[test]
    fn a_curve_marks_its_knee() {
        let text = curve(&[summary_of(figures(), 1), summary_of(Figures::default(), 2)]);
        let marked: Vec<&str> = text.lines().filter(|l| l.contains("knee")).collect();
        assert_eq!(marked.len(), 1);
        assert!(marked[0].trim_start().starts_with("1 "), "{text}");
    }

    #[test]
    fn a_bar_is_as_long_as_the_time_that_has_passed() {
        let text = bar(Duration::from_secs(5), Some(Duration::from_secs(10)), &figures());
        assert!(text.starts_with("[###############...............] 50.0% 150 i/o/s"), "{text}");
        assert!(bar(Duration::from_secs(5), None, &figures()).starts_with("5 s 150"));
    }
}
