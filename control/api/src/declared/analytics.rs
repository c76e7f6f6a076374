//! Analytics over HTTP: statistics, datasets, worksheets and settings. Data are asked for by a query, which `rest` reads.

use crate::analytics::{
    Analytics, BreakdownOf, Dataset, Export, ExportChange, Granularity, Graph, Settings, SettingsChange,
    Statistic, Told, Worksheet,
};
use crate::changes::{Change, Figure};
use crate::http::{Answer, Declared, Face, Kind, Need, Shape, Shaped, Stars, Word, Wrong, filled, may, must};
use crate::{Reply, Request, declared, shaped};
use serde_json::{Map, Value, json};

const DATASETS: &str = "/api/analytics/v1/datasets";
const A_DATASET: &str = "/api/analytics/v1/datasets/{dataset}";
pub const DATA: &str = "/api/analytics/v1/datasets/{dataset}/data";
const WORKSHEETS: &str = "/api/analytics/v1/worksheets";
const A_WORKSHEET: &str = "/api/analytics/v1/worksheets/{worksheet}";
const GRAPHS: &str = "/api/analytics/v1/worksheets/{worksheet}/datasets";
const A_GRAPH: &str = "/api/analytics/v1/worksheets/{worksheet}/datasets/{graph}";
const SETTINGS_PATH: &str = "/api/analytics/v1/settings";
const EXPORT_PATH: &str = "/api/analytics/v1/export";
const ENABLED: &str = "Whether figures are sent";
const ENDPOINT: &str =
    "The URL of a collector that takes OTLP over HTTP; without a path /v1/metrics is asked for";
const HEADERS: &str = "Headers of each request: name=value, with commas between. Empty: none";
const ATTRIBUTES: &str =
    "What the appliance is called there, besides its own: name=value, with commas between";

/// To open a statistic costs something while it is open.
pub const OPENS: Need = Need::Right("analytics", "allow_openStatistics");
/// To keep, suspend or forget what others look at.
pub const DATASET_CHANGES: Need = Need::Right("analytics", "allow_changeDatasets");
const WORKSHEET_CHANGES: Need = Need::Right("analytics", "allow_changeWorksheets");
const SETS: Need = Need::Right("analytics", "allow_changeSettings");

impl Word for Granularity {
    fn parse(text: &str) -> Option<Granularity> {
        Granularity::parse(text)
    }

    fn word(self) -> &'static str {
        Granularity::word(self)
    }

    fn refusal(_: &str, text: &str) -> String {
        format!("'{text}' is no granularity: second, minute or hour")
    }
}

static BREAKDOWN: Shaped<BreakdownOf> = Shaped {
    shape: Shape::new(
        "breakdown",
        &[
            must("name", Kind::Text, "As a statistic has it in brackets"),
            must("title", Kind::Text, "For people"),
            must("range", Kind::Flag, "Its values are ranges: it is drawn as a heat map"),
        ],
    ),
    tell: |b| object(json!({ "name": b.name, "title": b.title, "range": b.range })),
    take: |_| Err(Wrong::Missing("breakdown")),
};

/// Its breakdowns are objects in a list, which `statistics` takes.
pub static STATISTIC: Shaped<Statistic> = Shaped {
    shape: Shape::new(
        "statistic",
        &[
            must("name", Kind::Text, "As it is opened: iscsi.ops"),
            must("grouping", Kind::Text, "Protocol, Disk, Cache ..."),
            must("title", Kind::Text, "For people"),
            must("explanation", Kind::Text, "What it counts, and where"),
            must("unit", Kind::Text, "Of its values"),
            must("cost", Kind::Text, "low, medium or high: of each event, while it is open"),
            must("breakdowns", Kind::List(&BREAKDOWN.shape), "What it can be broken down and filtered by"),
        ],
    ),
    tell: |s| {
        let breakdowns: Vec<Value> =
            s.breakdowns.iter().map(|b| Value::Object((BREAKDOWN.tell)(b))).collect();
        object(json!({
            "name": s.name, "grouping": s.grouping, "title": s.title, "explanation": s.explanation,
            "unit": s.unit, "cost": s.cost, "breakdowns": breakdowns,
        }))
    },
    take: |_| Err(Wrong::Missing("statistic")),
};

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// A value whose fields are those of its JSON.
fn fields<T: serde::Serialize>(value: &T) -> Map<String, Value> {
    object(serde_json::to_value(value).unwrap_or_default())
}

/// What an answer tells, whose fields are those of the type.
fn listed<T: serde::de::DeserializeOwned>(answer: &Value, name: &str) -> Result<Vec<T>, Wrong> {
    serde_json::from_value(answer[name].clone()).map_err(|e| Wrong::Invalid(format!("{name}: {e}")))
}

shaped! {
    pub DATASET: Dataset = "dataset" at "/api/analytics/v1/datasets/{dataset}" (name) {
        must "name" Text name, "Its statistic";
        must "grouping" Text grouping, "Protocol, Disk, Cache ...";
        must "explanation" Text explanation, "What it counts, and where";
        must "unit" Text unit, "Of its values";
        must "overhead" Text overhead, "low, medium or high: what it costs to have it open";
        must "range" Flag range, "Its parts are ranges: it is drawn as a heat map";
        must "incore" Number incore, "Bytes in memory";
        must "size" Number size, "Bytes on disk";
        must "suspended" Flag suspended, "It takes no samples now";
        must "saved" Flag saved, "It is kept on disk, across restarts";
        must "since" Number since, "The second of its first sample, since 1970; 0: there is none";
        must "last" Number last, "The second of its last sample";
        must "activity" Number activity, "When its data were last asked for, in seconds since 1970";
        may "problem" Text problem, "Why it takes no samples, or lost some";
    }
}

static GRAPH: Shaped<Graph> = Shaped {
    shape: Shape::new(
        "graph",
        &[
            must("name", Kind::Text, "Its statistic"),
            must("drilldowns", Kind::Texts, "Values that are highlighted"),
            must("seconds", Kind::Number, "How much time it shows"),
        ],
    ),
    tell: |graph| {
        object(json!({ "name": graph.name, "drilldowns": graph.drilldowns, "seconds": graph.seconds }))
    },
    take: |_| Err(Wrong::Missing("graph")),
};

pub static WORKSHEET: Shaped<Worksheet> = Shaped {
    shape: Shape::new(
        "worksheet",
        &[
            must("href", Kind::Text, "Its path"),
            must("uuid", Kind::Text, "By which it is addressed, as by its name"),
            must("name", Kind::Text, "What people call it"),
            must("owner", Kind::Text, "Who made it"),
            must("ctime", Kind::Number, "When it was made, in seconds since 1970"),
            must("mtime", Kind::Number, "When it was changed"),
            must("graphs", Kind::List(&GRAPH.shape), "What it shows"),
        ],
    ),
    tell: |w| {
        object(json!({
            "href": filled(A_WORKSHEET, [w.uuid.as_str()]), "uuid": w.uuid, "name": w.name, "owner": w.owner,
            "ctime": w.ctime, "mtime": w.mtime, "graphs": graphs(w),
        }))
    },
    take: |_| Err(Wrong::Missing("worksheet")),
};

/// As an answer tells them.
pub fn graphs(worksheet: &Worksheet) -> Vec<Value> {
    worksheet.graphs.iter().map(|graph| Value::Object((GRAPH.tell)(graph))).collect()
}

static FIGURE: Shaped<Figure> = Shaped {
    shape: Shape::new(
        "figure",
        &[
            must("dataset", Kind::Text, "Its statistic"),
            must(
                "unit",
                Kind::Text,
                "Of both values; bytes or nanoseconds where they are means of a breakdown",
            ),
            must("before", Kind::Number, "The average in the 30 seconds before the change"),
            must("after", Kind::Number, "That of 30 seconds after it, from the sixth on"),
            must("rivals", Kind::Number, "At so many moments without a change a figure differed as much"),
            must("effect", Kind::Flag, "That is too few to believe that it came by itself"),
        ],
    ),
    tell: fields,
    take: |_| Err(Wrong::Missing("figure")),
};

pub static CHANGE: Shaped<Change> = Shaped {
    shape: Shape::new(
        "change",
        &[
            must("number", Kind::Number, "From 1 on; never given again"),
            must("time", Kind::Number, "When, in seconds since 1970"),
            must(
                "kind",
                Kind::Text,
                "Of what: dataset, pool, tunables, service, target, initiator, target group or initiator group",
            ),
            must("subject", Kind::Text, "The name of that; empty for tunables"),
            must("setting", Kind::Text, "Which setting"),
            may("before", Kind::Text, "Its value before; none where it had none"),
            may("after", Kind::Text, "Its value since"),
            must("inherited", Kind::Flag, "The value before was not set there, but inherited or the default"),
            must("command", Kind::Text, "The command, where it was one"),
            must("uid", Kind::Number, "Of the user"),
            must("verdict", Kind::Text, "waiting, mixed, short, idle or compared"),
            must("until", Kind::Number, "Waiting: the second from which on it can be judged"),
            must("with", Kind::Number, "Mixed: the number of another change of the time that is compared"),
            must("moments", Kind::Number, "How many moments without a change it was compared with"),
            must("figures", Kind::List(&FIGURE.shape), "What the statistics had before and after"),
            must("way_back", Kind::Text, "The command that brings the value back; empty where there is none"),
        ],
    ),
    tell: |change| {
        let mut told = fields(change);
        told.insert("way_back".into(), change.way_back_command().into());
        told
    },
    take: |_| Err(Wrong::Missing("change")),
};

shaped! {
    pub SETTINGS: Settings = "analytics_settings" {
        must "retain_second_data" Number retain_second_data, "Hours for which samples of seconds are kept";
        must "retain_minute_data" Number retain_minute_data, "Hours for which those of minutes are";
        must "retain_hour_data" Number retain_hour_data, "Hours for which those of hours are";
        must "disk_limit" Number disk_limit, "Bytes that all may take on disk: the oldest go first";
        may "problem" Text problem, "Why nothing is kept on disk now, or what befell the store";
    }
}

shaped! {
    pub EXPORT: Export = "metrics_export" {
        must "enabled" Flag enabled, ENABLED;
        must "endpoint" Text endpoint, ENDPOINT;
        must "headers" Secret has_headers as Stars, "Stars, if there are some";
        must "interval" Number interval, "Seconds from one to the next: 1 to 3600, 60 by default";
        must "attributes" Text attributes, ATTRIBUTES;
        must "sent" Number sent, "Documents that it took since the daemon began";
        must "failed" Number failed, "Tries that failed";
        must "dropped" Number dropped, "Documents that were given up: the queue was full, or it does not want them";
        must "waiting" Number waiting, "Those that are still to be sent";
        may "problem" Text problem, "Why the last try failed";
    }
}

pub static GET_DATASET: Face = Face::get(A_DATASET, "A dataset", Answer::One("dataset", &DATASET.shape));
pub static GET_WORKSHEET: Face =
    Face::get(A_WORKSHEET, "A worksheet", Answer::One("worksheet", &WORKSHEET.shape));
pub static GET_GRAPHS: Face =
    Face::get(GRAPHS, "The graphs of a worksheet", Answer::Several("datasets", &GRAPH.shape));

const ONE_DATASET: Answer = Answer::One("dataset", &DATASET.shape);
const ONE_WORKSHEET: Answer = Answer::One("worksheet", &WORKSHEET.shape);

declared! {
    pub SHOW_STATISTICS: Get "/api/analytics/v1/statistics", "List the statistics that can be opened";
    answers Answer::Several("statistics", &STATISTIC.shape);
    means { Request::Analytics(Analytics::Statistics) }
    gives |answer| Ok(Reply::Analytics(Told::Statistics(listed(answer, "statistics")?)));
    plain |reply| match reply {
        Reply::Analytics(Told::Statistics(all)) => Some(STATISTIC.tell_all(all, "statistics")),
        _ => None,
    };

    pub SHOW_DATASETS: Get DATASETS, "List the datasets";
    answers Answer::Several("datasets", &DATASET.shape);
    means { Request::Analytics(Analytics::Datasets) }
    gives |answer| Ok(Reply::Analytics(Told::Datasets(DATASET.all(answer, "datasets")?)));
    plain |reply| match reply {
        Reply::Analytics(Told::Datasets(all)) => Some(DATASET.tell_all(all, "datasets")),
        _ => None,
    };

    pub OPEN: Post DATASETS, "Open a statistic: its dataset is temporary until it is saved";
    needs OPENS;
    body "new_dataset" { must "statistic" Text statistic, "With filters and a breakdown: iscsi.ops[op=read][size]"; }
    answers ONE_DATASET;
    means { Request::Analytics(Analytics::Open { statistic }) }

    pub SUSPEND_ALL: Put "/api/analytics/v1/datasets/suspend", "Suspend all datasets: they take no samples";
    needs DATASET_CHANGES;
    answers Answer::Nothing;
    means { Request::Analytics(Analytics::Suspend { name: None, suspended: true }) }
    said "analytics datasets" "suspend", "none of them takes samples";

    pub RESUME_ALL: Put "/api/analytics/v1/datasets/resume", "Resume all datasets";
    needs DATASET_CHANGES;
    answers Answer::Nothing;
    means { Request::Analytics(Analytics::Suspend { name: None, suspended: false }) }
    said "analytics datasets" "resume", "all of them take samples again";

    pub CHANGE_DATASET: Put A_DATASET, "Suspend or resume a dataset";
    needs DATASET_CHANGES;
    path (dataset = name)
    body "dataset_changes" { must "suspended" Flag suspended, "Whether it takes no samples"; }
    answers ONE_DATASET;
    means { Request::Analytics(Analytics::Suspend { name: Some(name), suspended }) }

    pub SAVE: Put "/api/analytics/v1/datasets/{dataset}/save", "Keep a dataset on disk, and what there is of it";
    needs DATASET_CHANGES;
    path (dataset = name)
    answers ONE_DATASET;
    means { Request::Analytics(Analytics::Save { name }) }
    said "analytics datasets {dataset}" "save", "keeps it on disk, and what there is of it";

    pub PRUNE: Put "/api/analytics/v1/datasets/{dataset}/prune", "Forget samples of a dataset";
    needs DATASET_CHANGES;
    path (dataset = name)
    body "prune" {
        may "granularity" Word granularity, "second, minute or hour; without, all";
        may "before" Number before, "Those from before that second since 1970; without, all";
    }
    answers ONE_DATASET;
    means { Request::Analytics(Analytics::Prune { name, granularity, before }) }
    said "analytics datasets {dataset}" "prune [granularity]",
        "forgets its samples: those of a second, minute or hour, or all"
        sure "This forgets samples of the dataset.";

    pub DESTROY: Delete A_DATASET, "Close a statistic, and forget all that is kept of it";
    needs DATASET_CHANGES;
    path (dataset = name)
    answers Answer::Nothing;
    means { Request::Analytics(Analytics::Destroy { name }) }
    said "analytics datasets {dataset}" "destroy", "closes it, and forgets its samples"
        sure "This forgets all samples of the dataset.";

    pub SHOW_CHANGES: Get "/api/analytics/v1/changes", "List the changes of settings, and what came of them";
    answers Answer::Several("changes", &CHANGE.shape);
    means { Request::Analytics(Analytics::Changes) }
    gives |answer| Ok(Reply::Analytics(Told::Changes(listed(answer, "changes")?)));
    plain |reply| match reply {
        Reply::Analytics(Told::Changes(all)) => Some(CHANGE.tell_all(all, "changes")),
        _ => None,
    };

    pub SHOW_WORKSHEETS: Get WORKSHEETS, "List the worksheets";
    answers Answer::Several("worksheets", &WORKSHEET.shape);
    means { Request::Analytics(Analytics::Worksheets) }
    gives |answer| Ok(Reply::Analytics(Told::Worksheets(listed(answer, "worksheets")?)));
    plain |reply| match reply {
        Reply::Analytics(Told::Worksheets(all)) => Some(WORKSHEET.tell_all(all, "worksheets")),
        _ => None,
    };

    pub CREATE_WORKSHEET: Post WORKSHEETS, "Make a worksheet";
    needs WORKSHEET_CHANGES;
    every (owner)
    body "new_worksheet" { must "name" Text name, "At most 255 bytes"; }
    answers ONE_WORKSHEET;
    means { Request::Analytics(Analytics::WorksheetCreate { name, owner }) }
    said "analytics worksheets" "create name", "makes one";

    pub RENAME_WORKSHEET: Put A_WORKSHEET, "Give a worksheet another name";
    needs WORKSHEET_CHANGES;
    path (worksheet = worksheet)
    body "worksheet_changes" { must "name" Text name, "At most 255 bytes"; }
    answers ONE_WORKSHEET;
    means { Request::Analytics(Analytics::WorksheetRename { worksheet, name }) }

    pub DESTROY_WORKSHEET: Delete A_WORKSHEET, "Destroy a worksheet; its datasets stay";
    needs WORKSHEET_CHANGES;
    path (worksheet = worksheet)
    answers Answer::Nothing;
    means { Request::Analytics(Analytics::WorksheetDestroy { worksheet }) }

    pub ADD_GRAPH: Post GRAPHS, "Add a graph to a worksheet: its statistic is opened and kept";
    needs WORKSHEET_CHANGES;
    path (worksheet = worksheet)
    body "new_graph" {
        must "name" Text name, "Its statistic";
        may "drilldowns" Texts drilldowns, "Values that are highlighted";
        may "seconds" Number seconds, "How much time it shows";
    }
    answers ONE_WORKSHEET;
    means { Request::Analytics(Analytics::GraphAdd { worksheet, graph: Graph { name, drilldowns, seconds } }) }

    pub CHANGE_GRAPH: Put A_GRAPH, "Change a graph of a worksheet";
    needs WORKSHEET_CHANGES;
    path (worksheet = worksheet, graph = graph)
    body "graph_changes" {
        may "drilldowns" Texts drilldowns, "Values that are highlighted";
        may "seconds" Number seconds, "How much time it shows";
    }
    answers ONE_WORKSHEET;
    means { Request::Analytics(Analytics::GraphSet { worksheet, graph, drilldowns, seconds }) }

    pub REMOVE_GRAPH: Delete A_GRAPH, "Take a graph out of a worksheet";
    needs WORKSHEET_CHANGES;
    path (worksheet = worksheet, graph = graph)
    answers Answer::Nothing;
    means { Request::Analytics(Analytics::GraphRemove { worksheet, graph }) }
    said "analytics worksheets {worksheet} {graph}" "destroy", "takes it out of the worksheet";

    pub SHOW_SETTINGS: Get SETTINGS_PATH, "How long samples are kept";
    answers Answer::One("settings", &SETTINGS.shape);
    means { Request::Analytics(Analytics::Settings) }
    gives |answer| Ok(Reply::Analytics(Told::Settings(SETTINGS.one(answer, "settings")?)));
    plain |reply| match reply {
        Reply::Analytics(Told::Settings(settings)) => {
            Some(json!({ "settings": Value::Object((SETTINGS.tell)(settings)) }))
        }
        _ => None,
    };

    pub CHANGE_SETTINGS: Put SETTINGS_PATH, "Change how long samples are kept";
    needs SETS;
    body "analytics_settings_changes" {
        may "retain_second_data" Number retain_second_data, "Hours";
        may "retain_minute_data" Number retain_minute_data, "Hours";
        may "retain_hour_data" Number retain_hour_data, "Hours";
        may "disk_limit" Size disk_limit, "Bytes";
    }
    answers Answer::One("settings", &SETTINGS.shape);
    means {
        Request::Analytics(Analytics::SettingsSet(SettingsChange {
            retain_second_data, retain_minute_data, retain_hour_data, disk_limit,
        }))
    }

    pub SHOW_EXPORT: Get EXPORT_PATH, "Where the appliance's figures are sent by OTLP";
    needs SETS;
    answers Answer::One("export", &EXPORT.shape);
    means { Request::Analytics(Analytics::Export) }
    gives |answer| Ok(Reply::Analytics(Told::Export(EXPORT.one(answer, "export")?)));
    plain |reply| match reply {
        Reply::Analytics(Told::Export(export)) => {
            Some(json!({ "export": Value::Object((EXPORT.tell)(export)) }))
        }
        _ => None,
    };

    pub CHANGE_EXPORT: Put EXPORT_PATH, "Change where the appliance's figures are sent";
    needs SETS;
    body "metrics_export_changes" {
        may "enabled" Flag enabled, ENABLED;
        may "endpoint" Text endpoint, ENDPOINT;
        may "headers" Secret headers, HEADERS;
        may "interval" Number interval, "Seconds";
        may "attributes" Text attributes, ATTRIBUTES;
    }
    answers Answer::Nothing;
    means {
        Request::Analytics(Analytics::ExportSet(ExportChange { enabled, endpoint, headers, interval, attributes }))
    }

    pub TEST_EXPORT: Put "/api/analytics/v1/export/test", "Send the figures of now, and wait for what comes of it";
    needs SETS;
    answers Answer::Nothing;
    means { Request::Analytics(Analytics::ExportTest) }
    said "analytics export" "test", "sends the figures of now, and waits for what comes of it";
}

pub(super) static ALL: &[&Declared] = &[
    &SHOW_STATISTICS,
    &SHOW_DATASETS,
    &OPEN,
    &SUSPEND_ALL,
    &RESUME_ALL,
    &CHANGE_DATASET,
    &SAVE,
    &PRUNE,
    &DESTROY,
    &SHOW_CHANGES,
    &SHOW_WORKSHEETS,
    &CREATE_WORKSHEET,
    &RENAME_WORKSHEET,
    &DESTROY_WORKSHEET,
    &ADD_GRAPH,
    &CHANGE_GRAPH,
    &REMOVE_GRAPH,
    &SHOW_SETTINGS,
    &CHANGE_SETTINGS,
    &SHOW_EXPORT,
    &CHANGE_EXPORT,
    &TEST_EXPORT,
];
