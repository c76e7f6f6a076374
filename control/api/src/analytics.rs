//! Analytics: statistics that can be opened, what is kept of them, and the worksheets that show several together.
//!
//! A *statistic* is a row of the engine's table with a breakdown and filters, in the appliance's spelling:
//! `iscsi.ops[op=read][size]`. A *dataset* is what is kept of one that is open: a sample for each second, and coarser
//! ones for each minute and hour. It is named by its statistic.
//!
//! The index of a sample is its second since 1970; that of a coarser one is the second that it begins with.

use crate::Secret;
use crate::changes::Change;
use serde::{Deserialize, Serialize};

/// What may be asked and changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Analytics {
    /// What can be opened.
    Statistics,
    Datasets,
    /// One that is open already is left as it is.
    Open {
        statistic: String,
    },
    /// Keeps it on disk from now on, and what there is of it; until then it ends when no reader has asked for a while.
    Save {
        name: String,
    },
    /// Takes no samples until it is resumed; what there is stays. Without a name: all of them.
    Suspend {
        name: Option<String>,
        suspended: bool,
    },
    Destroy {
        name: String,
    },
    /// Forgets samples of one granularity, or of all: those from before that time, or all.
    Prune {
        name: String,
        granularity: Option<Granularity>,
        before: Option<u64>,
    },
    Data(DataQuery),
    /// What clients asked for, by size and latency, since this was asked for first.
    Histograms,
    /// Settings that were changed, the oldest first.
    Changes,
    Worksheets,
    WorksheetCreate {
        name: String,
        owner: String,
    },
    /// A worksheet is addressed by its name or its UUID.
    WorksheetRename {
        worksheet: String,
        name: String,
    },
    WorksheetDestroy {
        worksheet: String,
    },
    /// Its statistic is opened, and kept from then on.
    GraphAdd {
        worksheet: String,
        graph: Graph,
    },
    /// What is not given stays. A graph is addressed by its statistic, or by its place: `dataset-000`.
    GraphSet {
        worksheet: String,
        graph: String,
        drilldowns: Option<Vec<String>>,
        seconds: Option<u64>,
    },
    GraphRemove {
        worksheet: String,
        graph: String,
    },
    Settings,
    SettingsSet(SettingsChange),
    /// Where the appliance's figures are sent, and what came of it.
    Export,
    ExportSet(ExportChange),
    /// Sends the figures of now, and waits for what comes of it.
    ExportTest,
    /// Single operations of a front, recorded as they happen.
    Trace(Trace),
}

/// What is asked of a recording of single operations. One that is not asked for its entries for half a minute ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trace {
    /// Begins one: of `nbd.ops[op=write]`, holding so many entries at most until they are taken. It is answered as the
    /// first [`Traced`].
    Begin { of: String, held: u64 },
    /// What was recorded since the last time; answered at once, and empty when nothing was.
    Take { id: u64 },
    /// Ends it. What was not taken is forgotten.
    End { id: u64 },
}

/// What was recorded since the last time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traced {
    pub id: u64,
    /// The statistic in its one spelling.
    pub of: String,
    /// In no order of time.
    pub entries: Vec<TraceEntry>,
    /// Places that entries name by their index, from the first that is new: label and word of each.
    pub places: Vec<Vec<(String, String)>>,
    /// Operations for which there was no room.
    pub dropped: u64,
    pub has_more: bool,
}

/// One operation. Times are in nanoseconds, lengths in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceEntry {
    /// When it began, since the recording did.
    #[serde(rename = "t")]
    pub at: u64,
    #[serde(rename = "l")]
    pub latency: u64,
    #[serde(rename = "p")]
    pub place: u32,
    /// `read`, `write`, as statistics have it.
    #[serde(rename = "k")]
    pub op: String,
    /// The number of a file; 0 of a volume.
    #[serde(rename = "f")]
    pub object: u64,
    #[serde(rename = "o")]
    pub offset: u64,
    #[serde(rename = "b")]
    pub bytes: u64,
    /// It was on stable storage when it was answered, as the client had asked.
    #[serde(rename = "d")]
    pub durable: bool,
    #[serde(rename = "x")]
    pub failed: bool,
}

impl Analytics {
    /// Whether it changes nothing.
    pub fn is_question(&self) -> bool {
        matches!(
            self,
            Analytics::Statistics
                | Analytics::Datasets
                | Analytics::Data(_)
                | Analytics::Histograms
                | Analytics::Changes
                | Analytics::Worksheets
                | Analytics::Settings
                | Analytics::Export
                | Analytics::ExportTest
        )
    }
}

/// What samples are added up by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Granularity {
    #[default]
    Second,
    Minute,
    Hour,
}

impl Granularity {
    pub const ALL: [Granularity; 3] = [Granularity::Second, Granularity::Minute, Granularity::Hour];

    pub fn seconds(self) -> u64 {
        match self {
            Granularity::Second => 1,
            Granularity::Minute => 60,
            Granularity::Hour => 3_600,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Granularity::Second => "second",
            Granularity::Minute => "minute",
            Granularity::Hour => "hour",
        }
    }

    pub fn parse(text: &str) -> Option<Granularity> {
        Granularity::ALL.into_iter().find(|granularity| granularity.word() == text)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataQuery {
    pub name: String,
    pub start: Start,
    /// How much time, from the start on. What lies in the future is waited for.
    pub seconds: u64,
    pub granularity: Granularity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// The next sample that is taken.
    Now,
    /// In seconds since 1970, which is also the index of a sample.
    At(u64),
    /// So many seconds before now.
    Ago(u64),
}

/// A statistic that can be opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistic {
    pub name: String,
    pub grouping: String,
    pub title: String,
    pub explanation: String,
    /// `operations/s`, `bytes/s`, `bytes`, `percent`, `nanoseconds`, `count`.
    pub unit: String,
    /// `low`, `medium`, `high`.
    pub cost: String,
    pub breakdowns: Vec<BreakdownOf>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakdownOf {
    pub name: String,
    pub title: String,
    /// Its values are ranges: it is drawn as a heat map.
    pub range: bool,
}

/// What is kept of a statistic that is open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dataset {
    /// The statistic, in its one spelling.
    pub name: String,
    pub grouping: String,
    pub explanation: String,
    pub unit: String,
    /// `low`, `medium`, `high`.
    pub overhead: String,
    pub range: bool,
    /// Bytes in memory and on disk.
    pub incore: u64,
    pub size: u64,
    pub suspended: bool,
    /// It is kept on disk, across restarts.
    pub saved: bool,
    /// The second of the first sample that there is.
    pub since: u64,
    /// That of the last one.
    pub last: u64,
    /// When its data were last asked for.
    pub activity: u64,
    /// Why it has no samples now, or is not on disk.
    pub problem: Option<String>,
}

/// For what a part of a sample stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Key {
    /// From, and up to but not with.
    Range(u64, u64),
    Text(String),
    /// All values beyond as many as are told apart.
    Other,
}

/// What of operations is counted by buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measured {
    /// In bytes.
    Size,
    /// In nanoseconds.
    Latency,
}

impl Measured {
    pub const ALL: [Measured; 2] = [Measured::Size, Measured::Latency];

    /// As statistics break it down.
    pub fn word(self) -> &'static str {
        match self {
            Measured::Size => "size",
            Measured::Latency => "latency",
        }
    }
}

/// Operations of one front, as running totals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrontHistogram {
    pub front: String,
    pub measure: Measured,
    /// Below each power of two, and not below the one before: how many. `u64::MAX`: there is no end.
    pub buckets: Vec<(u64, u64)>,
    /// Of all values.
    pub sum: u64,
}

impl Key {
    /// As people read it; `scale` is what ranges count. A range is named by its lower end: `512K`, `10ms`.
    pub fn shown(&self, scale: &str) -> String {
        match self {
            Key::Text(text) => text.clone(),
            Key::Other => "other".into(),
            Key::Range(from, _) => match scale {
                "bytes" => units::pretty_size(*from),
                "nanoseconds" => time(*from),
                "percent" => format!("{from}%"),
                _ => from.to_string(),
            },
        }
    }
}

/// `850ns`, `12us`, `1.5ms`, `2s`: three digits at most.
pub fn time(nanoseconds: u64) -> String {
    let units = [("ns", 1u64), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    let (unit, size) = units.into_iter().rev().find(|(_, size)| nanoseconds >= *size).unwrap_or(("ns", 1));
    let value = nanoseconds as f64 / size as f64;
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub key: Key,
    /// Of one second; of a coarser sample the average.
    pub value: u64,
    /// Of all its seconds together.
    pub sum: u64,
}

/// A sample, of one second or of several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// The second that it begins with.
    pub sample: u64,
    /// How many seconds are in it: fewer than the granularity says where some are missing.
    pub samples: u64,
    /// Of one second; of a coarser sample the average. Those of the parts add up to it.
    pub value: u64,
    pub sum: u64,
    pub min: u64,
    pub max: u64,
    pub parts: Vec<Part>,
}

/// What was asked for of a dataset, in order of time. Where there is no sample there is no point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    pub name: String,
    pub unit: String,
    /// What the ranges count: `bytes`, `nanoseconds`, `percent`; empty where there are none.
    pub scale: String,
    pub points: Vec<Point>,
}

/// A graph of a worksheet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Graph {
    /// Its statistic.
    pub name: String,
    /// Values that are highlighted.
    pub drilldowns: Vec<String>,
    /// How much time it shows.
    pub seconds: u64,
}

/// Graphs that are shown together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worksheet {
    pub uuid: String,
    pub name: String,
    pub owner: String,
    /// Seconds since 1970.
    pub ctime: u64,
    pub mtime: u64,
    pub graphs: Vec<Graph>,
}

/// How long samples are kept, in hours, and how much room they may take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    pub retain_second_data: u64,
    pub retain_minute_data: u64,
    pub retain_hour_data: u64,
    /// Bytes on disk, of all datasets together: the oldest samples go first.
    pub disk_limit: u64,
    /// Why nothing is kept on disk now.
    #[serde(default)]
    pub problem: Option<String>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            retain_second_data: 7 * 24,
            retain_minute_data: 60 * 24,
            retain_hour_data: 5 * 366 * 24,
            disk_limit: 4 << 30,
            problem: None,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsChange {
    pub retain_second_data: Option<u64>,
    pub retain_minute_data: Option<u64>,
    pub retain_hour_data: Option<u64>,
    pub disk_limit: Option<u64>,
}

/// Where the appliance's figures are sent by OTLP, as it is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    pub enabled: bool,
    /// The URL of a collector; without a path `/v1/metrics` is asked for.
    pub endpoint: String,
    pub has_headers: bool,
    /// Seconds.
    pub interval: u64,
    /// What the appliance is called there, besides its own: `name=value`, with commas between.
    pub attributes: String,
    /// Since the daemon began: what was taken, tries that failed, what was given up.
    pub sent: u64,
    pub failed: u64,
    pub dropped: u64,
    pub waiting: u64,
    /// Why the last try failed.
    pub problem: Option<String>,
}

/// What is set of it; nothing: as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportChange {
    pub enabled: Option<bool>,
    pub endpoint: Option<String>,
    /// `name=value`, with commas between. Empty: none.
    #[serde(with = "crate::secret::revealed")]
    pub headers: Option<Secret>,
    pub interval: Option<u64>,
    pub attributes: Option<String>,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    Statistics(Vec<Statistic>),
    Datasets(Vec<Dataset>),
    Data(Data),
    Worksheets(Vec<Worksheet>),
    Settings(Settings),
    Export(Export),
    Histograms(Vec<FrontHistogram>),
    Changes(Vec<Change>),
    Traced(Traced),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_shown_in_the_units_of_their_scale() {
        for (nanoseconds, shown) in [
            (0, "0ns"),
            (850, "850ns"),
            (12_000, "12us"),
            (1_500_000, "1.5ms"),
            (262_144_000, "262ms"),
            (2_000_000_000, "2s"),
        ] {
            assert_eq!(Key::Range(nanoseconds, 0).shown("nanoseconds"), shown);
        }
        assert_eq!(Key::Range(524_288, 1 << 20).shown("bytes"), "512K");
        assert_eq!(Key::Range(95, 100).shown("percent"), "95%");
        assert_eq!((Key::Other.shown(""), Key::Range(3, 4).shown("")), ("other".into(), "3".into()));
    }
}
