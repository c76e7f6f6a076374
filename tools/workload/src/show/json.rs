//! The same as JSON: times in microseconds, rates per second, sizes in bytes.

use super::table::points;
use crate::drive::Summary;
use crate::histogram::Histogram;
use crate::knee::knee;
use crate::tally::Figures;
use serde_json::{Value, json};
use std::time::Duration;

/// All runs of a workload; `intervals` are those of each run, in order.
pub fn report(seed: u64, summaries: &[Summary], intervals: &[Vec<Value>], is_curve: bool) -> Value {
    let runs: Vec<Value> = summaries
        .iter()
        .zip(intervals.iter().chain(std::iter::repeat(&Vec::new())))
        .map(|(summary, intervals)| run(summary, intervals))
        .collect();
    let mut report = json!({ "seed": seed, "runs": runs });
    if is_curve {
        let points = points(summaries);
        report["knee_depth"] = json!(knee(&points).map(|index| points[index].depth));
    }
    report
}

fn run(summary: &Summary, intervals: &[Value]) -> Value {
    let rows = summary
        .rows
        .iter()
        .map(|(name, row)| (name.clone(), figures(row)))
        .collect::<serde_json::Map<_, _>>();
    json!({
        "run": summary.run,
        "threads": summary.lanes,
        "asked_rate": summary.asked,
        "interrupted": summary.is_interrupted,
        "verified_blocks": summary.verified,
        "total": figures(&summary.figures),
        "workloads": rows,
        "intervals": intervals,
    })
}

/// One interval, for [`report`].
pub fn interval(number: u64, is_warmup: bool, of: &Figures) -> Value {
    json!({ "interval": number, "warmup": is_warmup, "figures": figures(of) })
}

pub fn figures(of: &Figures) -> Value {
    json!({
        "seconds": of.elapsed.as_secs_f64(),
        "operations": of.requests(),
        "rate": of.rate(),
        "bytes": of.bytes(),
        "bytes_per_second": of.bytes_per_second(),
        "response_us": micros(of.responses().mean()),
        "stddev_us": micros(of.deviation()),
        "concurrency_measured": of.measured_concurrency(),
        "concurrency_by_law": of.concurrency_by_law(),
        "concurrency_differs": of.is_doubtful(),
        "cpu_us_per_operation": micros(of.cpu_per_request()),
        "read": histogram(&of.reads, of.bytes_read),
        "write": histogram(&of.writes, of.bytes_written),
        "flush": histogram(&of.flushes, 0),
    })
}

fn histogram(of: &Histogram, bytes: u64) -> Value {
    json!({
        "operations": of.count(),
        "bytes": bytes,
        "mean_us": micros(of.mean()),
        "p50_us": micros(of.percentile(50.0)),
        "p90_us": micros(of.percentile(90.0)),
        "p99_us": micros(of.percentile(99.0)),
        "p99_9_us": micros(of.percentile(99.9)),
        "max_us": micros(of.max()),
    })
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}
