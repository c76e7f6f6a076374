//! A summary, printed.

use crate::header::{Header, Place};
use crate::read::End;
use crate::summary::Summary;
use serde_json::{Value, json};
use std::time::Duration;
use units::pretty_size;

/// Sizes of an operation that are printed, the most frequent first.
const SIZES_SHOWN: usize = 5;

/// For people.
pub fn text(header: &Header, summary: &Summary, end: Option<End>, bytes: u64) -> String {
    let length = length(summary, end);
    let seconds = length as f64 / 1e9;
    let names = if header.hashed { ", names hashed" } else { "" };
    let mut text = format!(
        "{}, recorded at {} for {}{names}\n",
        header.statistic,
        api::http::date(header.start),
        time(Duration::from_nanos(length)),
    );
    match end {
        None => text += "the trace was cut: this is what its whole pieces have\n",
        Some(end) if end.dropped > 0 => {
            text += &format!("{} more were dropped: the recorder had no room\n", end.dropped)
        }
        Some(_) => {}
    }
    text += &format!(
        "{} requests, {} each in the file; {:.0}/s, {}/s in the busiest second, {:.2} at once in the mean\n",
        summary.requests,
        bytes.checked_div(summary.requests).map_or("-".into(), |each| format!("{each} bytes")),
        summary.requests as f64 / seconds.max(1e-9),
        summary.peak(),
        summary.concurrency(length),
    );
    text += &format!(
        "\n{:<14}{:>10}{:>10}{:>9}{:>8}{:>12}{:>12}  sizes\n",
        "OPERATION", "REQUESTS", "BYTES", "DURABLE", "FAILED", "MEAN", "P99"
    );
    for (op, of) in &summary.ops {
        let mut sizes: Vec<(u64, u64)> = of.sizes.iter().map(|(size, count)| (*size, *count)).collect();
        sizes.sort_by_key(|(size, count)| (std::cmp::Reverse(*count), *size));
        let mut shown: Vec<String> = sizes
            .iter()
            .take(SIZES_SHOWN)
            .filter(|(size, _)| *size > 0)
            .map(|(size, count)| {
                format!("{} {:.0}%", pretty_size(*size), 100.0 * *count as f64 / of.latencies.count() as f64)
            })
            .collect();
        if sizes.len() > SIZES_SHOWN || of.others > 0 {
            shown.push("…".into());
        }
        text += format!(
            "{:<14}{:>10}{:>10}{:>9}{:>8}{:>12}{:>12}  {}",
            op.name(),
            of.latencies.count(),
            pretty_size(of.bytes),
            of.durable,
            of.failed,
            time(of.latencies.mean()),
            time(of.latencies.percentile(99.0)),
            shown.join(", ")
        )
        .trim_end();
        text.push('\n');
    }
    text += &format!("\n{:<24}{:>10}  {:<18}  settings\n", "PLACE", "REQUESTS", "offsets");
    for of in &summary.places {
        let span = of
            .span
            .map_or("-".into(), |(first, end)| format!("{} to {}", pretty_size(first), pretty_size(end)));
        text += &format!("{:<24}{:>10}  {span:<18}  {}\n", of.place.name(), of.requests, settings(&of.place));
    }
    text
}

/// How long it went on: as its end says, or until the last answer.
pub fn length(summary: &Summary, end: Option<End>) -> u64 {
    end.map_or(summary.last, |end| end.length)
}

fn settings(place: &Place) -> String {
    let Some(present) = &place.present else { return "not known".into() };
    let size = if present.is_volume {
        format!("{} in blocks of ", pretty_size(present.size))
    } else {
        "records of ".into()
    };
    let layout = present.layout.map_or("devices of several kinds".into(), |layout| layout.to_string());
    let words: Vec<String> = ["compression", "sync", "logbias"]
        .into_iter()
        .filter_map(|name| Some(format!("{name}={}", present.property(name)?)))
        .collect();
    format!("{size}{}, {layout}, {}", pretty_size(present.block), words.join(" "))
}

/// `850ns`, `12us`, `1.5ms`, `2s`.
pub fn time(time: Duration) -> String {
    api::analytics::time(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// For programs. Times are in nanoseconds.
pub fn json(header: &Header, summary: &Summary, end: Option<End>, bytes: u64) -> Value {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let ops = summary.ops.iter().map(|(op, of)| {
        let sizes = of.sizes.iter().map(|(size, count)| json!({ "bytes": size, "requests": count }));
        json!({
            "operation": op.name(),
            "requests": of.latencies.count(),
            "bytes": of.bytes,
            "durable": of.durable,
            "failed": of.failed,
            "mean": nanos(of.latencies.mean()),
            "p99": nanos(of.latencies.percentile(99.0)),
            "max": nanos(of.latencies.max()),
            "sizes": sizes.collect::<Vec<_>>(),
            "other_sizes": of.others,
        })
    });
    let places = summary.places.iter().map(|of| {
        let stored: Value = serde_json::from_slice(&of.place.encode()).unwrap_or_default();
        json!({
            "dataset": of.place.dataset,
            "client": of.place.client,
            "lun": of.place.lun,
            "present": stored["present"],
            "requests": of.requests,
            "first": of.span.map(|span| span.0),
            "end": of.span.map(|span| span.1),
        })
    });
    let length = length(summary, end);
    json!({
        "statistic": header.statistic,
        "start": header.start,
        "hashed": header.hashed,
        "cache": header.cache,
        "cut": end.is_none(),
        "dropped": end.map(|end| end.dropped),
        "length": length,
        "bytes": bytes,
        "requests": summary.requests,
        "busiest_second": summary.peak(),
        "at_once": summary.concurrency(length),
        "operations": ops.collect::<Vec<_>>(),
        "places": places.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::tests::place;
    use crate::request::{Op, Request};

    #[test]
    fn a_summary_says_what_was_asked_and_of_what() {
        let mut summary = Summary::default();
        summary.place(place());
        for n in 0..4u64 {
            let (op, bytes) = if n == 3 { (Op::Flush, 0) } else { (Op::Write, 16 << 10) };
            let (at, offset) = (n * 500_000_000, n << 20);
            let (durable, failed) = (n == 0, false);
            summary.request(&Request {
                at,
                latency: 1_500_000,
                place: 0,
                op,
                object: 0,
                offset,
                bytes,
                durable,
                failed,
            });
        }
        let header = Header { statistic: "nbd.ops".into(), start: 1_795_294_245, ..Header::default() };
        let end = End { requests: 4, dropped: 2, length: 2_000_000_000 };
        let shown = text(&header, &summary, Some(end), 100);
        for part in [
            "nbd.ops, recorded at 2026-11-21T20:50:45Z for 2s\n",
            "2 more were dropped",
            "4 requests, 25 bytes each in the file; 2/s, 2/s in the busiest second",
            "write                  3       48K        1       0       1.5ms",
            "16K 100%",
            "tank/v                           4  0B to 2.02M         1G in blocks of 128K, mirror:2x4, compression=lz4 sync=standard",
        ] {
            assert!(shown.contains(part), "{part}\n{shown}");
        }
        let cut = text(&header, &summary, None, 100);
        assert!(cut.contains("the trace was cut"), "{cut}");
        let told = json(&header, &summary, Some(end), 100);
        assert_eq!(
            (told["operations"][0]["requests"].as_u64(), told["cut"].as_bool()),
            (Some(3), Some(false))
        );
        assert_eq!(told["places"][0]["present"]["block"], 131_072);
    }
}
