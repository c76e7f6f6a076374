//! The table, aligned, and the same as JSON.

use crate::{Policy, Row};
use std::fmt::Write;

/// Percent of the requests that were hits; of shapes with metadata, a second line has those of the metadata alone.
pub fn render(rows: &[Row]) -> String {
    let mut text = format!("{:<9}{:>6}{:>8}", "SHAPE", "CACHE", "");
    Policy::ALL.iter().for_each(|policy| _ = write!(text, "{:>10}", policy.name()));
    text += "    BEHIND\n";
    for row in rows {
        let size = format!("{} %", row.percent);
        let _ = write!(text, "{:<9}{size:>6}{:>8}", row.shape.name(), "");
        row.ratios.iter().for_each(|ratio| _ = write!(text, "{:>10.1}", ratio.all));
        let _ = writeln!(text, "{:>10.1}", row.behind().unwrap_or(0.0));
        if row.shape.is_mixed() {
            let _ = write!(text, "{:<9}{:>6}{:>8}", "", "", "meta");
            let of = |ratio: &crate::Ratio| ratio.metadata.unwrap_or(0.0);
            row.ratios.iter().for_each(|ratio| _ = write!(text, "{:>10.1}", of(ratio)));
            text.push('\n');
        }
    }
    text
}

/// An object with `rows`; ratios are in percent.
pub fn render_json(rows: &[Row]) -> String {
    let of = |row: &Row| {
        let ratios = row.ratios.iter().map(|r| {
            let metadata = r.metadata.map_or("null".into(), |m| format!("{m:.3}"));
            format!(
                "{{\"policy\":\"{}\",\"hits\":{:.3},\"metadata_hits\":{metadata}}}",
                r.policy.name(),
                r.all
            )
        });
        let ratios: Vec<String> = ratios.collect();
        let behind = row.behind().unwrap_or(0.0);
        format!(
            "{{\"shape\":\"{}\",\"percent\":{},\"cache\":{},\"requests\":{},\"seed\":{},\"behind\":{behind:.3},\"ratios\":[{}]}}",
            row.shape.name(),
            row.percent,
            row.cache,
            row.requests,
            row.seed,
            ratios.join(",")
        )
    };
    let rows: Vec<String> = rows.iter().map(of).collect();
    format!("{{\"rows\":[\n{}\n]}}\n", rows.join(",\n"))
}
