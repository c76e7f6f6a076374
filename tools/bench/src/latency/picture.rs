//! Rows as a table with a line over time for each, and as a picture.

use super::Row;
use super::outcome::SLICES;
use std::fmt::Write;
use std::time::Duration;

/// Steps of a line over time, by how long the longest request took: each three times the one before.
const STEPS: [(char, u64); 8] = [
    ('▁', 300),
    ('▂', 1_000),
    ('▃', 3_000),
    ('▄', 10_000),
    ('▅', 30_000),
    ('▆', 100_000),
    ('▇', 300_000),
    ('█', u64::MAX),
];

fn step(latency: Duration) -> char {
    let micros = latency.as_micros() as u64;
    if micros == 0 {
        return ' ';
    }
    STEPS.iter().find(|(_, most)| micros <= *most).map_or('█', |(step, _)| *step)
}

fn short(d: Duration) -> String {
    match d.as_secs_f64() * 1e6 {
        us if us < 999.5 => format!("{us:.0} µs"),
        us if us < 9_995.0 => format!("{:.1} ms", us / 1e3),
        us if us < 999_500.0 => format!("{:.0} ms", us / 1e3),
        us => format!("{:.1} s", us / 1e6),
    }
}

/// The table, then the lines.
pub fn table(rows: &[Row]) -> String {
    let heads = ["", "what", "at", "/s", "p50", "p99", "p99.9", "longest", "stall", "CPU s/GiB"];
    let mut lines = vec![heads.map(String::from)];
    let mut before = "";
    for row in rows {
        let latencies = &row.outcome.latencies;
        let percentile = |percent| short(latencies.percentile(percent));
        let gib = (latencies.count() * row.block) as f64 / f64::from(1 << 30);
        let cpu = row.cpu.map_or("–".into(), |cpu| format!("{:.2}", cpu.as_secs_f64() / gib.max(1e-9)));
        lines.push([
            if before == row.subject { String::new() } else { row.subject.clone() },
            row.what.into(),
            row.at.clone(),
            format!("{:.0}", row.outcome.per_second()),
            percentile(50.0),
            percentile(99.0),
            percentile(99.9),
            short(latencies.max()),
            short(row.outcome.stall),
            cpu,
        ]);
        before = &row.subject;
    }
    let mut text = aligned(&lines);
    let width = |f: fn(&Row) -> usize| rows.iter().map(f).max().unwrap_or(0);
    let (subjects, whats) = (width(|r| r.subject.chars().count()), width(|r| r.what.len()));
    text += "\nThe longest latency over time, from left to right:\n";
    for row in rows {
        let line: String = row.outcome.over_time.iter().map(|latency| step(*latency)).collect();
        let _ = writeln!(text, "{:subjects$}  {:whats$}  {:>12} │{line}│", row.subject, row.what, row.at);
    }
    text += "▁ up to 0.3 ms  ▂ 1  ▃ 3  ▄ 10  ▅ 30  ▆ 100  ▇ 300 ms  █ more\n";
    text
}

/// As Markdown: words to the left, numbers to the right.
fn aligned(lines: &[[String; 10]]) -> String {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        for (column, cell) in line.iter().enumerate() {
            let width = width(column);
            let _ =
                if column < 3 { write!(text, "| {cell:width$} ") } else { write!(text, "| {cell:>width$} ") };
        }
        text += "|\n";
        if number == 0 {
            for column in 0..line.len() {
                let dashes = "-".repeat(width(column) + 1);
                text += &if column < 3 { format!("|{dashes}-") } else { format!("|{dashes}:") };
            }
            text += "|\n";
        }
    }
    text
}

const WIDTH: f64 = 720.0;
const PANEL: f64 = 92.0;
const LEFT: f64 = 60.0;
/// The scale: powers of ten from here, in microseconds.
const FROM: f64 = 10.0;
const DECADES: f64 = 6.0;

/// A panel for each row: the longest latency over time, on a scale of powers of ten.
pub fn svg(rows: &[Row]) -> String {
    let height = PANEL * rows.len() as f64 + 10.0;
    let mut text = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{height}' font-family='sans-serif' \
         font-size='11'>\n<rect width='100%' height='100%' fill='white'/>\n"
    );
    for (number, row) in rows.iter().enumerate() {
        panel(&mut text, row, PANEL * number as f64 + 5.0);
    }
    text + "</svg>\n"
}

fn panel(text: &mut String, row: &Row, top: f64) {
    let (plot, bottom) = (PANEL - 32.0, top + PANEL - 12.0);
    let height = |latency: Duration| {
        let decades = (latency.as_secs_f64() * 1e6 / FROM).max(1.0).log10();
        bottom - plot * (decades / DECADES).min(1.0)
    };
    let title = format!("{}: {}, {}", row.subject, row.what, row.at);
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(text, "<text x='{LEFT}' y='{:.1}' fill='#222'>{title}</text>", top + 13.0);
    for (label, micros) in
        [("0.1 ms", 100), ("1 ms", 1_000), ("10 ms", 10_000), ("100 ms", 100_000), ("1 s", 1_000_000)]
    {
        let y = height(Duration::from_micros(micros));
        let _ = writeln!(
            text,
            "<line x1='{LEFT}' x2='{:.1}' y1='{y:.1}' y2='{y:.1}' stroke='#ddd'/>\
             <text x='{:.1}' y='{:.1}' text-anchor='end' font-size='8' fill='#777'>{label}</text>",
            WIDTH - 10.0,
            LEFT - 4.0,
            y + 3.0
        );
    }
    let each = (WIDTH - 10.0 - LEFT) / SLICES as f64;
    for (slice, latency) in row.outcome.over_time.iter().enumerate().filter(|(_, latency)| !latency.is_zero())
    {
        let (x, y) = (LEFT + each * slice as f64, height(*latency));
        let _ = writeln!(
            text,
            "<rect x='{x:.1}' y='{y:.1}' width='{:.1}' height='{:.1}' fill='#3b7dd8'/>",
            each - 1.0,
            bottom - y
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::outcome::{Outcome, Sample};

    fn row() -> Row {
        let ms = Duration::from_millis;
        let samples = vec![Sample { begin: ms(0), end: ms(2) }, Sample { begin: ms(500), end: ms(950) }];
        Row {
            subject: "a<b".into(),
            what: Row::WRITES,
            at: "0.5x".into(),
            outcome: Outcome::of(samples, ms(1000)),
            block: 16 << 10,
            cpu: None,
        }
    }

    #[test]
    fn a_row_has_its_figures_and_its_line() {
        let text = table(&[row(), row()]);
        assert!(text.contains("| a<b | 16K random writes | 0.5x |  2 |"), "{text}");
        assert!(text.contains("450 ms | 450 ms |"), "{text}");
        let lines: Vec<_> = text.lines().filter(|line| line.contains('│')).collect();
        assert!(lines[0].contains("│▃") && lines[0].contains("█  │"), "{text}");
        let widths: Vec<_> = text.lines().take(4).map(|line| line.chars().count()).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
    }

    #[test]
    fn the_picture_is_one_element_with_a_panel_for_each_row() {
        let text = svg(&[row(), row()]);
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
        assert_eq!(text.matches("a&lt;b: 16K random writes, 0.5x").count(), 2);
        assert_eq!(text.matches("fill='#3b7dd8'").count(), 4);
    }
}
