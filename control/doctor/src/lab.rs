//! What the lab says of a change: the experiment that shows it, and its figures as `docs/lab.md` has them.
//!
//! They are of the hardware and load that the experiment models, not of what is advised about: the command shows which.
//! A test holds this table against the document.

/// One row of a table of the document.
#[derive(Debug)]
pub struct Prediction {
    /// Those whose advice is this change.
    pub rules: &'static [&'static str],
    /// As `cenote lab run` takes it.
    pub experiment: &'static str,
    /// The first column, and those of the lab: before and after, and their ratio.
    pub row: &'static str,
    pub figures: &'static str,
    pub ratio: &'static str,
    /// What was modelled, in few words.
    pub of: &'static str,
    /// Whether the figure before the change is within a quarter of the published one.
    pub counts: bool,
}

pub const PREDICTIONS: &[Prediction] = &[
    Prediction {
        rules: &["transfer-size", "transfer-ceiling", "request-size", "requests-cut"],
        experiment: "split",
        row: "mirrors, write cache off",
        figures: "4.72 → 14.6 GB/s",
        ratio: "3.08x",
        of: "requests of 1M in halves and whole, on 96 disks in mirrors",
        counts: false,
    },
    Prediction {
        rules: &["elevator"],
        experiment: "elevator",
        row: "operations",
        figures: "9942 → 69308 /s",
        ratio: "6.97x",
        of: "20 requests at a time through CFQ and past it, on a device of .3 ms",
        counts: true,
    },
    Prediction {
        rules: &["flush-cost"],
        experiment: "filesync",
        row: "one stream",
        figures: "40.2 → 5.00 s",
        ratio: "8.03x",
        of: "10,000 small files with O_DSYNC, on an array that is flushed and on one that is not",
        counts: false,
    },
    Prediction {
        rules: &["cache-slow-fill"],
        experiment: "warm-up",
        row: "8 MiB/s, 166 MB/s; 2000 readers",
        figures: "8.25 → 107 MB/s",
        ratio: "12.9x",
        of: "a cache device filled at 8 MiB/s and 166 MB/s, before 140 disks",
        counts: true,
    },
];

/// Of the change that a rule advises, if there is an experiment about it.
pub fn prediction(rule: &str) -> Option<String> {
    let found = PREDICTIONS.iter().find(|prediction| prediction.rules.contains(&rule))?;
    let Prediction { experiment, figures, ratio, of, counts, .. } = found;
    let off = if *counts {
        ""
    } else {
        "; its figure before the change is more than a quarter off the published one"
    };
    Some(format!("cenote lab run {experiment}: {figures}, {ratio} ({of}{off})"))
}
