//! Analytics: which statistics are kept by default, and what is asked of the recorder; worksheets and settings.
//!
//! Samples are kept beside the configuration, in a file of their own: they are many, and can be lost. What people made,
//! worksheets and settings, is in the configuration.

mod capacity;
pub(crate) mod changes;
mod export;
pub(crate) mod exporting;
pub(crate) mod histograms;
mod machine;
pub(crate) mod records;
pub(crate) mod state;
#[cfg(test)]
mod tests;
pub(crate) mod traces;

use crate::appliance::{Appliance, By};
use ::analytics::{Errands, Limits, OfHub, Recorder};
use api::analytics::{Analytics, Graph, SettingsChange, Told, Trace, Worksheet};
use api::{ApiError, ErrorKind, Reply, Result};
use capacity::Capacity;
use records::{SETTINGS, SETTINGS_KEY, WORKSHEETS, WORKSHEETS_MAX, check_settings, check_worksheet};
use std::sync::Arc;
use store::{Look, Writer};

/// What is opened and saved at the first start, of what there is: cheap, and what is asked for after something went wrong.
const DEFAULTS: &[&str] = &[
    "arc.accesses[hit/miss]",
    "arc.size",
    "arc.size[component]",
    "cpu.utilization",
    "cpu.utilization[mode]",
    "fs.ops",
    "fs.ops[latency]",
    "fs.ops[op]",
    "io.bytes",
    "io.bytes[op]",
    "io.disks[utilization=95][disk]",
    "io.ops",
    "io.ops[disk]",
    "io.ops[op]",
    "io.ops[size]",
    "io.ops[latency]",
    "iscsi.bytes",
    "iscsi.ops",
    "iscsi.ops[size]",
    "iscsi.ops[latency]",
    "metacap.bytesused",
    "metacap.percentused",
    "nbd.bytes",
    "nbd.ops",
    "nbd.ops[latency]",
    "nbd.ops[size]",
    "nic.kilobytes",
    "nic.kilobytes[device]",
    "nic.kilobytes[direction]",
];

impl Appliance {
    /// Takes samples from now on, until [`Appliance::end_analytics`].
    pub async fn begin_analytics(&self) {
        let errands = match Errands::aside() {
            Ok(errands) => errands,
            Err(e) => {
                tracing::error!("analytics are not kept: no thread can be started: {e}");
                return;
            }
        };
        self.begin_analytics_by(errands).await;
    }

    pub(crate) async fn begin_analytics_by(&self, errands: Errands) {
        let path = self.0.config.home.dir().join("analytics.redb");
        let recorder = Recorder::new(&path, Limits::default(), errands);
        match self.configuration().and_then(|c| c.look(|reader| reader.get(&SETTINGS, SETTINGS_KEY))) {
            Ok(settings) => recorder.set_settings(settings.unwrap_or_default()),
            Err(e) => tracing::error!("settings of analytics: {e}; the usual ones hold"),
        }
        let capacity = Arc::new(Capacity::default());
        let sources =
            machine::register(self.hub()).into_iter().chain(capacity.register(self.hub())).collect();
        recorder.begin(Arc::new(OfHub(self.hub().clone())), DEFAULTS).await;
        let task = world::spawn(recorder.clone().run());
        world::spawn(capacity.follow(self.clone(), recorder.clone()));
        world::spawn(self.clone().export_figures(recorder.clone()));
        self.0.analytics.set(recorder, task, sources);
    }

    /// Readers that wait get what there is; what is in memory is brought to disk.
    pub async fn end_analytics(&self) {
        let Some(recorder) = self.0.analytics.recorder() else { return };
        recorder.end();
        if let Some(task) = self.0.analytics.take_task() {
            task.await;
        }
    }

    pub(crate) async fn analytics(&self, asked: Analytics, by: &By) -> Result<Reply> {
        match asked {
            Analytics::Worksheets => self.worksheets().map(|all| Reply::Analytics(Told::Worksheets(all))),
            Analytics::WorksheetCreate { name, owner } => self.create_worksheet(name, owner, by),
            Analytics::WorksheetRename { worksheet, name } => {
                self.change_worksheet(&worksheet, "rename", |w| {
                    w.name = name;
                    Ok(())
                })
            }
            Analytics::WorksheetDestroy { worksheet } => self.destroy_worksheet(&worksheet),
            Analytics::GraphAdd { worksheet, graph } => self.add_graph(&worksheet, graph),
            Analytics::GraphSet { worksheet, graph, drilldowns, seconds } => {
                self.change_worksheet(&worksheet, "change", |w| {
                    let graph = graph_of(w, &graph)?;
                    graph.drilldowns = drilldowns.unwrap_or_else(|| graph.drilldowns.clone());
                    graph.seconds = seconds.unwrap_or(graph.seconds);
                    Ok(())
                })
            }
            Analytics::GraphRemove { worksheet, graph } => self.change_worksheet(&worksheet, "change", |w| {
                let gone = graph_of(w, &graph)?.name.clone();
                w.graphs.retain(|g| g.name != gone);
                Ok(())
            }),
            Analytics::Trace(asked) => self.trace(asked),
            Analytics::Export => self.export(),
            Analytics::ExportSet(set) => self.set_export(set),
            Analytics::ExportTest => self.test_export().await,
            asked => self.ask_recorder(asked).await,
        }
    }

    /// By a daemon alone: there are no clients elsewhere.
    fn trace(&self, asked: Trace) -> Result<Reply> {
        self.recorder()?;
        let traces = &self.0.traces;
        let told = match asked {
            Trace::Begin { of, held } => traces.begin(self.hub(), &of, held),
            Trace::Take { id } => traces.take(id),
            Trace::End { id } => return traces.end(id).map(|()| Reply::Done),
        };
        told.map(|traced| Reply::Analytics(Told::Traced(traced)))
    }

    fn recorder(&self) -> Result<Recorder> {
        let none =
            || ApiError::new(ErrorKind::NotFound, "analytics are kept by a daemon, and none runs: start one");
        self.0.analytics.recorder().ok_or_else(none)
    }

    async fn ask_recorder(&self, asked: Analytics) -> Result<Reply> {
        let recorder = self.recorder()?;
        let told = match asked {
            Analytics::Statistics => Told::Statistics(recorder.statistics()),
            Analytics::Datasets => Told::Datasets(recorder.datasets()),
            Analytics::Data(query) => Told::Data(recorder.data(&query).await?),
            Analytics::Changes => Told::Changes(recorder.changes()),
            Analytics::Settings => Told::Settings(recorder.settings()),
            Analytics::Histograms => Told::Histograms(self.0.histograms.told(self.hub())),
            Analytics::SettingsSet(change) => Told::Settings(self.set_analytics(&recorder, change)?),
            Analytics::Open { statistic } => return Ok(Reply::Named { name: recorder.open(&statistic)? }),
            other => {
                match other {
                    Analytics::Save { name } => recorder.save(&name)?,
                    Analytics::Suspend { name, suspended } => recorder.suspend(name.as_deref(), suspended)?,
                    Analytics::Destroy { name } => recorder.destroy(&name)?,
                    Analytics::Prune { name, granularity, before } => {
                        recorder.prune(&name, granularity, before).await?;
                    }
                    _ => return Err(ApiError::new(ErrorKind::Unsupported, "analytics do not know that")),
                }
                return Ok(Reply::Done);
            }
        };
        Ok(Reply::Analytics(told))
    }

    fn set_analytics(&self, recorder: &Recorder, change: SettingsChange) -> Result<api::analytics::Settings> {
        let mut settings = recorder.settings();
        settings.problem = None;
        let set = |of: &mut u64, to: Option<u64>| *of = to.unwrap_or(*of);
        set(&mut settings.retain_second_data, change.retain_second_data);
        set(&mut settings.retain_minute_data, change.retain_minute_data);
        set(&mut settings.retain_hour_data, change.retain_hour_data);
        set(&mut settings.disk_limit, change.disk_limit);
        let kept = check_settings(&settings).and_then(|()| {
            let configuration = self.configuration()?;
            configuration.change(|writer| writer.put(&SETTINGS, SETTINGS_KEY, &settings))
        });
        kept.map_err(|e| ApiError::cannot("change the settings of analytics", &e))?;
        recorder.set_settings(settings);
        Ok(recorder.settings())
    }

    fn worksheets(&self) -> Result<Vec<Worksheet>> {
        let all = self.configuration().and_then(|c| c.look(|reader| reader.all(&WORKSHEETS)));
        let all = all.map_err(|e| ApiError::cannot("list worksheets", &e))?;
        let mut all: Vec<Worksheet> = all.into_iter().map(|(_, worksheet)| worksheet).collect();
        all.sort_by(|a, b| (a.ctime, &a.name).cmp(&(b.ctime, &b.name)));
        Ok(all)
    }

    fn create_worksheet(&self, name: String, owner: String, by: &By) -> Result<Reply> {
        let now = world::wall_clock().seconds;
        let [high, low] = [(); 2].map(|()| world::random_u64());
        let hex = format!("{high:016x}{low:016x}");
        let uuid =
            format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..]);
        let owner = if owner.is_empty() { format!("uid {}", by.uid) } else { owner };
        let worksheet =
            Worksheet { uuid: uuid.clone(), name, owner, ctime: now, mtime: now, graphs: Vec::new() };
        let made = check_worksheet(&worksheet).and_then(|()| {
            self.configuration()?.change(|writer| {
                let all = writer.all(&WORKSHEETS)?;
                if all.len() >= WORKSHEETS_MAX {
                    return Err(units::Error::invalid(format!(
                        "there are {WORKSHEETS_MAX} worksheets already"
                    )));
                }
                not_taken(writer, &worksheet)?;
                writer.put(&WORKSHEETS, &worksheet.uuid, &worksheet)
            })
        });
        let doing = format!("make the worksheet '{}'", worksheet.name);
        made.map_err(|e| ApiError::cannot(doing, &e))?;
        Ok(Reply::Named { name: uuid })
    }

    fn change_worksheet(
        &self,
        named: &str,
        verb: &str,
        change: impl FnOnce(&mut Worksheet) -> units::Result<()>,
    ) -> Result<Reply> {
        let changed = self.configuration().and_then(|configuration| {
            configuration.change(|writer| {
                let mut worksheet = find(writer, named)?;
                change(&mut worksheet)?;
                worksheet.mtime = world::wall_clock().seconds;
                check_worksheet(&worksheet)?;
                not_taken(writer, &worksheet)?;
                writer.put(&WORKSHEETS, &worksheet.uuid, &worksheet)?;
                Ok(worksheet.uuid)
            })
        });
        let uuid = changed.map_err(|e| ApiError::cannot(format!("{verb} the worksheet '{named}'"), &e))?;
        Ok(Reply::Named { name: uuid })
    }

    fn destroy_worksheet(&self, named: &str) -> Result<Reply> {
        let gone = self.configuration().and_then(|configuration| {
            configuration.change(|writer| {
                let uuid = find(writer, named)?.uuid;
                writer.remove(&WORKSHEETS, &uuid).map(drop)
            })
        });
        gone.map_err(|e| ApiError::cannot(format!("destroy the worksheet '{named}'"), &e))?;
        Ok(Reply::Done)
    }

    fn add_graph(&self, worksheet: &str, graph: Graph) -> Result<Reply> {
        // It is found first, so that nothing is opened for one that is not there.
        let found = self.configuration().and_then(|c| c.look(|reader| find(reader, worksheet)));
        found.map_err(|e| ApiError::cannot(format!("change the worksheet '{worksheet}'"), &e))?;
        let recorder = self.recorder()?;
        let name = recorder.open(&graph.name)?;
        recorder.save(&name)?;
        let seconds = if graph.seconds == 0 { GRAPH_SECONDS } else { graph.seconds };
        let graph = Graph { name, seconds, ..graph };
        self.change_worksheet(worksheet, "change", |w| {
            w.graphs.retain(|g| g.name != graph.name);
            w.graphs.push(graph);
            Ok(())
        })
    }
}

/// What a graph shows of which nothing is said.
const GRAPH_SECONDS: u64 = 60;

fn find(look: &impl Look, named: &str) -> units::Result<Worksheet> {
    let mut all = look.all(&WORKSHEETS)?.into_iter().map(|(_, worksheet)| worksheet);
    let found = all.find(|worksheet| worksheet.uuid == named || worksheet.name == named);
    found.ok_or_else(|| units::Error::new(units::Kind::NotFound, "find it"))
}

fn not_taken(writer: &Writer, worksheet: &Worksheet) -> units::Result<()> {
    let mut others = writer.all(&WORKSHEETS)?.into_iter().filter(|(uuid, _)| *uuid != worksheet.uuid);
    match others.any(|(_, other)| other.name == worksheet.name || other.uuid == worksheet.name) {
        true => Err(units::Error::new(units::Kind::Exists, "take that name")),
        false => Ok(()),
    }
}

/// By its statistic, or by its place: `dataset-000`.
fn graph_of<'a>(worksheet: &'a mut Worksheet, named: &str) -> units::Result<&'a mut Graph> {
    let place = named.strip_prefix("dataset-").and_then(|number| number.parse::<usize>().ok());
    let mut all = worksheet.graphs.iter_mut().enumerate();
    let found = all.find(|(at, graph)| graph.name == named || Some(*at) == place);
    found
        .map(|(_, graph)| graph)
        .ok_or_else(|| units::Error::new(units::Kind::NotFound, format!("find its graph '{named}'")))
}
