//! What came of one kind of request, server by server, and how it is printed.

use super::server::NAMES;
use std::time::Duration;

/// One run against one server.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    pub requests: u64,
    pub elapsed: Duration,
    /// User and system time of the server.
    pub cpu: Duration,
}

#[derive(Clone, Debug)]
pub struct Row {
    name: &'static str,
    block: u32,
    /// The runs against each of [`NAMES`]; none against a server that is not installed.
    runs: [Vec<Side>; NAMES.len()],
}

impl Row {
    pub fn new(name: &'static str, block: u32) -> Row {
        Row { name, block, runs: Default::default() }
    }

    pub fn add(&mut self, server: usize, side: Side) {
        self.runs[server].push(side);
    }

    fn median(&self, server: usize, of: impl Fn(&Side) -> f64) -> Option<f64> {
        let mut values: Vec<f64> = self.runs[server].iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }

    /// Large requests in MiB/s, small ones by their number.
    fn speed(&self, server: usize) -> Option<String> {
        let per_second = self.median(server, |s| s.requests as f64 / s.elapsed.as_secs_f64().max(1e-9))?;
        Some(match self.block {
            0..=65536 => format!("{:.1}k/s", per_second / 1000.0),
            block => format!("{:.0} MiB/s", per_second * f64::from(block) / f64::from(1 << 20)),
        })
    }

    fn cpu_us(&self, server: usize) -> Option<String> {
        let cpu = self.median(server, |s| s.cpu.as_secs_f64() * 1e6 / s.requests.max(1) as f64)?;
        Some(if cpu < 100.0 { format!("{cpu:.1}") } else { format!("{cpu:.0}") })
    }
}

/// One line for each row, as a Markdown table: first how fast, then CPU microseconds of the server per request.
pub fn render(rows: &[Row]) -> String {
    let heads = |unit: &str| -> String { NAMES.map(|name| format!(" {name}{unit} |")).concat() };
    let mut text = format!("| what |{}{}\n|---|", heads(""), heads(", CPU µs"));
    text += &"---:|".repeat(2 * NAMES.len());
    for row in rows {
        text += &format!("\n| {} |", row.name);
        for figure in [Row::speed, Row::cpu_us] {
            for server in 0..NAMES.len() {
                text += &format!(" {} |", figure(row, server).unwrap_or_else(|| "not installed".into()));
            }
        }
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_medians_and_names_who_is_missing() {
        let mut row = Row::new("4K read", 4096);
        for requests in [50_000, 100_000, 400_000] {
            let second = Duration::from_secs(1);
            row.add(0, Side { requests, elapsed: second, cpu: second / 2 });
            row.add(2, Side { requests: requests / 100, elapsed: second, cpu: second });
        }
        let text = render(&[row]);
        let line = "| 4K read | 100.0k/s | not installed | 1.0k/s | 5.0 | not installed | 1000 |\n";
        assert!(text.ends_with(line), "{text}");
    }
}
