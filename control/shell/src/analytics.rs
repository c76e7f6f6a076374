//! `analytics`: datasets and what they hold, worksheets, settings.

use crate::context::Context;
use crate::csv::csv;
use crate::draft::{Draft, size};
use crate::shares::unexpected;
use crate::shell::Shell;
use crate::show;
use crate::vocabulary::{Result, Settable, Shown};
use api::analytics::{
    Analytics, Data, DataQuery, Dataset, Export, ExportChange, Granularity, Graph, Settings, SettingsChange,
    Start, Told, Worksheet,
};
use api::attributes::Shape;
use api::secret::STARS;
use api::{Reply, Request, Secret};
use cli::text::visible::visible;

/// What `read` and `csv` show when nothing is said.
const SECONDS: u64 = 10;
/// The values of one sample that `read` shows; the largest of them.
const SHOWN_MAX: usize = 20;

pub(crate) fn settable(context: &Context) -> Vec<Settable> {
    let of = |name: &str, shape| Settable { name: name.into(), shape, is_secret: name == "headers" };
    match context {
        Context::Dataset { .. } => vec![of("suspended", Shape::Flag)],
        Context::Worksheet { .. } => vec![of("name", Shape::Word)],
        Context::Graph { .. } => {
            vec![of("name", Shape::Word), of("drilldowns", Shape::List), of("seconds", Shape::Number)]
        }
        Context::AnalyticsSettings { .. } => vec![
            of("retain_second_data", Shape::Number),
            of("retain_minute_data", Shape::Number),
            of("retain_hour_data", Shape::Number),
            of("disk_limit", Shape::Size),
        ],
        Context::AnalyticsExport { .. } => vec![
            of("enabled", Shape::Flag),
            of("endpoint", Shape::Word),
            of("headers", Shape::Word),
            of("interval", Shape::Number),
            of("attributes", Shape::Word),
        ],
        _ => Vec::new(),
    }
}

fn number(draft: &Draft, name: &str) -> Result<Option<u64>> {
    let Some(text) = draft.get(name) else { return Ok(None) };
    units::parse_size(text).map(Some).map_err(|why| format!("invalid value \"{text}\" for \"{name}\": {why}"))
}

fn list(draft: &Draft, name: &str) -> Option<Vec<String>> {
    let words =
        |text: &str| text.split(',').map(str::trim).filter(|w| !w.is_empty()).map(String::from).collect();
    draft.get(name).map(words)
}

/// `dataset-003`, by the place in the list.
fn label(of: &str, at: usize) -> String {
    format!("{of}-{at:03}")
}

impl Shell<'_> {
    fn ask_analytics(&mut self, asked: Analytics) -> Result<Reply> {
        self.ask("", Request::Analytics(asked))
    }

    fn datasets(&mut self) -> Result<Vec<Dataset>> {
        match self.ask_analytics(Analytics::Datasets)? {
            Reply::Analytics(Told::Datasets(all)) => Ok(all),
            _ => Err(unexpected()),
        }
    }

    fn worksheets(&mut self) -> Result<Vec<Worksheet>> {
        match self.ask_analytics(Analytics::Worksheets)? {
            Reply::Analytics(Told::Worksheets(all)) => Ok(all),
            _ => Err(unexpected()),
        }
    }

    fn analytics_settings(&mut self) -> Result<Settings> {
        match self.ask_analytics(Analytics::Settings)? {
            Reply::Analytics(Told::Settings(settings)) => Ok(settings),
            _ => Err(unexpected()),
        }
    }

    fn analytics_export(&mut self) -> Result<Export> {
        match self.ask_analytics(Analytics::Export)? {
            Reply::Analytics(Told::Export(export)) => Ok(export),
            _ => Err(unexpected()),
        }
    }

    /// By its number in the list, or by its statistic.
    fn dataset(&mut self, named: &str) -> Result<(Dataset, String)> {
        let all =
            self.datasets()?.into_iter().enumerate().map(|(at, dataset)| (dataset, label("dataset", at)));
        let found = all.into_iter().find(|(dataset, label)| dataset.name == named || label == named);
        found.ok_or_else(|| format!("there is no dataset \"{named}\""))
    }

    /// By its number in the list, its name or its UUID.
    fn worksheet(&mut self, named: &str) -> Result<Worksheet> {
        let mut all = self.worksheets()?.into_iter().enumerate();
        let found =
            all.find(|(at, w)| w.name == named || w.uuid == named || label("worksheet", *at) == named);
        found.map(|(_, worksheet)| worksheet).ok_or_else(|| format!("there is no worksheet \"{named}\""))
    }

    pub(crate) fn enter_analytics(&mut self, words: &[String]) -> Result<Option<usize>> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let draft = Draft::default;
        let (context, used) = match (self.here().clone(), &words[..]) {
            (Context::Analytics, ["datasets", ..]) => (Context::Datasets, 1),
            (Context::Analytics, ["worksheets", ..]) => (Context::Worksheets, 1),
            (Context::Analytics, ["settings", ..]) => (Context::AnalyticsSettings { draft: draft() }, 1),
            (Context::Analytics, ["export", ..]) => (Context::AnalyticsExport { draft: draft() }, 1),
            (Context::Datasets, ["select", named, ..]) => {
                let (dataset, label) = self.dataset(named)?;
                (Context::Dataset { name: dataset.name, label, draft: draft() }, 2)
            }
            (Context::Worksheets, ["select", named, ..]) => {
                let Worksheet { uuid, name, .. } = self.worksheet(named)?;
                (Context::Worksheet { uuid, name, draft: draft() }, 2)
            }
            (Context::Worksheet { uuid, .. }, ["dataset", ..]) => {
                (Context::Graph { worksheet: uuid, name: None, draft: draft() }, 1)
            }
            (Context::Worksheet { uuid, .. }, ["select", named, ..]) => {
                let graphs = self.worksheet(&uuid)?.graphs;
                let mut all = graphs.into_iter().enumerate();
                let found = all.find(|(at, graph)| graph.name == *named || label("dataset", *at) == *named);
                let (_, graph) = found.ok_or_else(|| format!("there is no graph \"{named}\""))?;
                (Context::Graph { worksheet: uuid, name: Some(graph.name), draft: draft() }, 2)
            }
            _ => return Ok(None),
        };
        self.push(context);
        Ok(Some(used))
    }

    pub(crate) fn command_analytics(&mut self, words: &[String]) -> Result<bool> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match (self.here().clone(), &words[..]) {
            (Context::Datasets | Context::Worksheets | Context::Worksheet { .. }, ["list"]) => {
                let text = self.lists_analytics()?.join("\n");
                self.print(&text);
            }
            (Context::Analytics, ["changes"]) => self.print_changes()?,
            (Context::Analytics, ["undo", number]) => self.undo_change(number)?,
            (Context::Datasets, ["statistics"]) => self.print_statistics()?,
            (Context::Datasets, ["create", statistic]) => {
                let Reply::Named { name } =
                    self.ask_analytics(Analytics::Open { statistic: (*statistic).into() })?
                else {
                    return Err(unexpected());
                };
                self.ask_analytics(Analytics::Save { name })?;
            }
            (Context::Datasets, ["destroy", named]) => {
                let name = self.dataset(named)?.0.name;
                self.must_confirm("This forgets all samples of the dataset.", &words.join(" "))?;
                self.ask_analytics(Analytics::Destroy { name })?;
            }
            (Context::Dataset { name, .. }, ["read", rest @ ..]) => {
                let data = self.samples(name, rest)?;
                self.print(&table(&data));
            }
            (Context::Dataset { name, .. }, ["csv", rest @ ..]) => {
                let data = self.samples(name, rest)?;
                self.print(&csv(&data));
            }
            (Context::Worksheets, ["destroy", named]) => {
                let worksheet = self.worksheet(named)?.uuid;
                self.must_confirm("This destroys the worksheet; its datasets stay.", &words.join(" "))?;
                self.ask_analytics(Analytics::WorksheetDestroy { worksheet })?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `[SAMPLES] [GRANULARITY]`: the last ones.
    fn samples(&mut self, name: String, words: &[&str]) -> Result<Data> {
        let (count, granularity) = match words {
            [] => (SECONDS, Granularity::Second),
            [count] => (of_count(count)?, Granularity::Second),
            [count, granularity] => (of_count(count)?, of_word(granularity)?),
            _ => return Err("it is: read [samples [second|minute|hour]]".into()),
        };
        let seconds = count.saturating_mul(granularity.seconds());
        let start = Start::Ago(seconds);
        match self.ask_analytics(Analytics::Data(DataQuery { name, start, seconds, granularity }))? {
            Reply::Analytics(Told::Data(data)) => Ok(data),
            _ => Err(unexpected()),
        }
    }

    fn print_statistics(&mut self) -> Result {
        let Reply::Analytics(Told::Statistics(all)) = self.ask_analytics(Analytics::Statistics)? else {
            return Err(unexpected());
        };
        let row = |s: api::analytics::Statistic| {
            let by = s.breakdowns.into_iter().map(|by| by.name).collect::<Vec<_>>().join(" ");
            vec![s.name, s.cost, s.unit, by]
        };
        let rows: Vec<Vec<String>> = all.into_iter().map(row).collect();
        let text = show::table("Statistics", &["NAME", "COST", "UNIT", "BREAKDOWNS"], &rows);
        self.print(&text);
        Ok(())
    }

    pub(crate) fn commit_analytics(&mut self) -> Result {
        match self.here().clone() {
            Context::Dataset { name, draft, .. } => {
                let Some(flag) = draft.get("suspended") else { return Ok(()) };
                let suspended = match flag {
                    "true" => true,
                    "false" => false,
                    other => {
                        return Err(format!(
                            "invalid value \"{other}\" for \"suspended\": it is true or false"
                        ));
                    }
                };
                self.ask_analytics(Analytics::Suspend { name: Some(name), suspended }).map(drop)
            }
            Context::Worksheet { uuid, draft, .. } => {
                let Some(name) = draft.get("name") else { return Ok(()) };
                let renamed = Analytics::WorksheetRename { worksheet: uuid, name: name.into() };
                self.ask_analytics(renamed)?;
                let renamed = name.to_string();
                if let Context::Worksheet { name, .. } = self.here_mut() {
                    *name = renamed;
                }
                Ok(())
            }
            Context::Graph { worksheet, name: None, draft } => {
                let name =
                    draft.get("name").ok_or("a graph is of a statistic: set name=io.ops[size]")?.to_string();
                let drilldowns = list(&draft, "drilldowns").unwrap_or_default();
                let seconds = number(&draft, "seconds")?.unwrap_or(0);
                let graph = Graph { name, drilldowns, seconds };
                self.ask_analytics(Analytics::GraphAdd { worksheet, graph }).map(drop)
            }
            Context::Graph { worksheet, name: Some(graph), draft } => {
                if draft.get("name").is_some() {
                    return Err("a graph that is there stays of its statistic: add another".into());
                }
                let (drilldowns, seconds) = (list(&draft, "drilldowns"), number(&draft, "seconds")?);
                self.ask_analytics(Analytics::GraphSet { worksheet, graph, drilldowns, seconds }).map(drop)
            }
            Context::AnalyticsSettings { draft } => {
                let change = SettingsChange {
                    retain_second_data: number(&draft, "retain_second_data")?,
                    retain_minute_data: number(&draft, "retain_minute_data")?,
                    retain_hour_data: number(&draft, "retain_hour_data")?,
                    disk_limit: number(&draft, "disk_limit")?,
                };
                self.ask_analytics(Analytics::SettingsSet(change)).map(drop)
            }
            Context::AnalyticsExport { draft } => {
                let text = |name: &str| draft.get(name).map(String::from);
                let change = ExportChange {
                    enabled: draft.get("enabled").map(|flag| flag == "true"),
                    endpoint: text("endpoint"),
                    headers: text("headers").map(Secret::new),
                    interval: number(&draft, "interval")?,
                    attributes: text("attributes"),
                };
                self.ask_analytics(Analytics::ExportSet(change)).map(drop)
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn properties_analytics(&mut self) -> Result<Vec<Shown>> {
        let draft = self.here().draft().cloned().unwrap_or_default();
        let one = |name: &str, kept: String| match draft.get(name) {
            Some(_) if name == "headers" => Shown::new(name, STARS, "uncommitted"),
            Some(value) => Shown::new(name, value, "uncommitted"),
            None => Shown::new(name, kept, ""),
        };
        Ok(match self.here().clone() {
            Context::Dataset { name, .. } => {
                let (dataset, _) = self.dataset(&name)?;
                let date = |second: u64| if second == 0 { "-".into() } else { time(second) };
                let mut all = vec![
                    Shown::new("name", &dataset.name, ""),
                    Shown::new("grouping", &dataset.grouping, ""),
                    Shown::new("explanation", &dataset.explanation, ""),
                    Shown::new("unit", &dataset.unit, ""),
                    Shown::new("overhead", &dataset.overhead, ""),
                    Shown::new("incore", size(dataset.incore), ""),
                    Shown::new("size", size(dataset.size), ""),
                    Shown::new("since", date(dataset.since), ""),
                    Shown::new("saved", dataset.saved.to_string(), ""),
                    one("suspended", dataset.suspended.to_string()),
                ];
                all.extend(dataset.problem.map(|problem| Shown::new("problem", problem, "")));
                all
            }
            Context::Worksheet { uuid, .. } => {
                let worksheet = self.worksheet(&uuid)?;
                vec![
                    Shown::new("uuid", &worksheet.uuid, ""),
                    Shown::new("owner", &worksheet.owner, ""),
                    Shown::new("ctime", time(worksheet.ctime), ""),
                    Shown::new("mtime", time(worksheet.mtime), ""),
                    one("name", worksheet.name),
                ]
            }
            Context::Graph { worksheet, name, .. } => {
                let graphs = self.worksheet(&worksheet)?.graphs;
                let graph =
                    graphs.into_iter().find(|graph| Some(&graph.name) == name.as_ref()).unwrap_or_default();
                vec![
                    one("name", graph.name),
                    one("drilldowns", graph.drilldowns.join(", ")),
                    one("seconds", graph.seconds.to_string()),
                ]
            }
            Context::AnalyticsSettings { .. } => {
                let settings = self.analytics_settings()?;
                let mut all = vec![
                    one("retain_second_data", settings.retain_second_data.to_string()),
                    one("retain_minute_data", settings.retain_minute_data.to_string()),
                    one("retain_hour_data", settings.retain_hour_data.to_string()),
                    one("disk_limit", size(settings.disk_limit)),
                ];
                all.extend(settings.problem.map(|problem| Shown::new("problem", problem, "")));
                all
            }
            Context::AnalyticsExport { .. } => {
                let export = self.analytics_export()?;
                let headers = if export.has_headers { STARS } else { "" };
                let mut all = vec![
                    one("enabled", export.enabled.to_string()),
                    one("endpoint", export.endpoint),
                    one("headers", headers.into()),
                    one("interval", export.interval.to_string()),
                    one("attributes", export.attributes),
                ];
                let counts = [
                    ("sent", export.sent),
                    ("failed", export.failed),
                    ("dropped", export.dropped),
                    ("waiting", export.waiting),
                ];
                all.extend(counts.map(|(name, count)| Shown::new(name, count.to_string(), "")));
                all.extend(export.problem.map(|problem| Shown::new("problem", problem, "")));
                all
            }
            _ => Vec::new(),
        })
    }

    pub(crate) fn lists_analytics(&mut self) -> Result<Vec<String>> {
        let (title, heads, rows): (_, &[&str], Vec<Vec<String>>) = match self.here().clone() {
            Context::Datasets => {
                let row = |(at, d): (usize, Dataset)| {
                    let state = match (&d.problem, d.suspended) {
                        (_, true) => "suspended",
                        (Some(_), false) => "failing",
                        (None, false) if d.saved => "active",
                        (None, false) => "temporary",
                    };
                    vec![label("dataset", at), state.into(), size(d.incore), size(d.size), d.name]
                };
                let rows = self.datasets()?.into_iter().enumerate().map(row).collect();
                ("Datasets", &["DATASET", "STATE", "INCORE", "ONDISK", "NAME"], rows)
            }
            Context::Worksheets => {
                let row = |(at, w): (usize, Worksheet)| vec![label("worksheet", at), w.owner, w.name];
                let rows = self.worksheets()?.into_iter().enumerate().map(row).collect();
                ("Worksheets", &["WORKSHEET", "OWNER", "NAME"], rows)
            }
            Context::Worksheet { uuid, .. } => {
                let row = |(at, g): (usize, Graph)| {
                    vec![label("dataset", at), g.seconds.to_string(), g.drilldowns.join(", "), g.name]
                };
                let rows = self.worksheet(&uuid)?.graphs.into_iter().enumerate().map(row).collect();
                ("Datasets", &["DATASET", "SECONDS", "DRILLDOWNS", "NAME"], rows)
            }
            _ => return Ok(Vec::new()),
        };
        Ok(if rows.is_empty() { Vec::new() } else { vec![show::table(title, heads, &rows)] })
    }

    pub(crate) fn names_analytics(&mut self) -> Vec<String> {
        match self.here().clone() {
            Context::Datasets => self.datasets().unwrap_or_default().into_iter().map(|d| d.name).collect(),
            Context::Worksheets => {
                self.worksheets().unwrap_or_default().into_iter().map(|w| w.name).collect()
            }
            Context::Worksheet { uuid, .. } => {
                let graphs = self.worksheet(&uuid).map(|w| w.graphs).unwrap_or_default();
                graphs.into_iter().map(|graph| graph.name).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn of_count(text: &str) -> Result<u64> {
    text.parse().map_err(|_| format!("\"{text}\" is no number of samples"))
}

fn of_word(text: &str) -> Result<Granularity> {
    Granularity::parse(text).ok_or_else(|| format!("\"{text}\" is no granularity: second, minute or hour"))
}

fn time(second: u64) -> String {
    api::http::date(second).replace('T', " ").trim_end_matches('Z').into()
}

/// Samples as lines: the time and the value of each, and its largest parts beside and below.
fn table(data: &Data) -> String {
    let unit = if data.unit.ends_with("/s") { "/SEC".into() } else { data.unit.to_uppercase() };
    let mut text = format!("{:<20} {unit:>12} {unit:>12} BREAKDOWN\n", "DATE/TIME");
    for point in &data.points {
        let mut parts: Vec<_> = point.parts.iter().collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.value));
        let left_out = parts.len().saturating_sub(SHOWN_MAX);
        parts.truncate(SHOWN_MAX);
        // Ranges stand in their order.
        parts.sort_by(|a, b| match (&a.key, &b.key) {
            (api::analytics::Key::Range(a, _), api::analytics::Key::Range(b, _)) => a.cmp(b),
            _ => std::cmp::Ordering::Equal,
        });
        let head = format!("{:<20} {:>12}", time(point.sample), point.value);
        if parts.is_empty() {
            text.push_str(&format!("{head} {:>12} -\n", "-"));
        }
        for (at, part) in parts.iter().enumerate() {
            let head = if at == 0 { head.clone() } else { " ".repeat(33) };
            let key = visible(&part.key.shown(&data.scale));
            text.push_str(&format!("{head} {:>12} {key}\n", part.value));
        }
        if left_out > 0 {
            text.push_str(&format!("{} {:>12} and {left_out} more\n", " ".repeat(33), "..."));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::analytics::{Key, Part, Point};

    #[test]
    fn samples_are_lines_with_their_parts_and_names_cannot_move_the_cursor() {
        let part = |key, value| Part { key, value, sum: value };
        let point =
            |sample, value, parts| Point { sample, samples: 1, value, sum: value, min: 0, max: 0, parts };
        let data = Data {
            name: "iscsi.ops[client]".into(),
            unit: "operations/s".into(),
            scale: String::new(),
            points: vec![
                point(
                    1_795_563_064,
                    12,
                    vec![part(Key::Text("a\u{1b}[2J\u{202e}b".into()), 2), part(Key::Other, 10)],
                ),
                point(1_795_563_065, 0, Vec::new()),
            ],
        };
        let expected = "\
DATE/TIME                    /SEC         /SEC BREAKDOWN
2026-11-24 23:31:04            12           10 other
                                             2 a\u{2039}U+001B\u{203a}[2J\u{2039}U+202E\u{203a}b
2026-11-24 23:31:05             0            - -
";
        assert_eq!(table(&data), expected);
    }
}
