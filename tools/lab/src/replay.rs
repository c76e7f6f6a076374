//! A trace of a user's own clients, replayed on modelled hardware: as things are, and with a change.
//!
//! ```text
//!   trace ─▶ plan: volumes, files, what is touched  ─┬─ settings at present ─▶ pool, filled ─▶ play ─▶ figures
//!            settings: the trace's, and those given ─┴─ with the change      ─▶ pool, filled ─▶ play ─▶ figures
//! ```
//!
//! Every block that the trace touches is there before the replay begins, written in order, and no other: a read finds data,
//! a write of a part of a block must read the rest. Then the pool is exported and imported, so that both begin with an
//! empty cache, unless it is to be warm. What the devices did counts until all that was written is on them.
//!
//! Not known, and so not in it: other load on the pool, how fragmented it is, what was cached when the trace began, and the
//! devices themselves: the model stands for them in both columns, so that ratios say more than times.

mod plan;
mod settings;
mod stage;

use crate::rig::{Rig, device_work, in_lab};
use plan::{Dataset, Plan};
use pool::{Content, Pool};
use serde_json::{Value, json};
use settings::{Devices, Setup};
use stage::{Datasets, Opened, Payload, write_file};
use std::collections::BTreeMap;
use std::sync::Arc;
use trace::figures::{Figures, table};
use trace::play::{Pace, play};
use trace::read::Contents;
use trace::summary::most_at_once;
use units::{Error, Result, pretty_size};
use zpl::{FileKind, NewFile, NodeId};

pub use settings::KEYS;

/// How a replay is asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What is different after the change: `volblocksize=16K`.
    pub change: Vec<(String, String)>,
    /// What the trace does not say, or says otherwise.
    pub present: Vec<(String, String)>,
    /// With as many at once as when it was recorded, rather than each when it came.
    pub fast: bool,
    /// With what the trace touches in the cache, as far as it has room.
    pub warm: bool,
    pub seed: u64,
}

/// What was replayed, and what came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub figures: Vec<Figures>,
    /// What is modelled, in lines.
    pub about: Vec<String>,
}

/// Replays the trace with the settings at present and, if there is a change, with it. Not to be called from within a world.
///
/// # Errors
/// A setting that is none; a trace that touches more than a lab has room for.
pub fn run(trace: &Contents, asked: &Asked, progress: &dyn Fn(&str)) -> Result<Outcome> {
    let present = Setup::of(trace, &asked.present)?;
    let changed = present.with(&asked.change)?;
    let plan = Plan::of(trace, &[&present, &changed])?;
    let pace = if asked.fast { Pace::Fast(most_at_once(&trace.requests).max(1)) } else { Pace::Recorded };
    let requests = Arc::new(trace.requests.clone());
    let mut all = vec![("present".to_string(), present.clone())];
    if !asked.change.is_empty() {
        let words: Vec<String> = asked.change.iter().map(|(key, value)| format!("{key}={value}")).collect();
        all.push((words.join(","), changed));
    }
    let mut figures = Vec::new();
    for (name, setup) in all {
        progress(&format!("{name}: {setup}"));
        let (plan, requests, warm) = (plan.clone(), requests.clone(), asked.warm);
        figures.push(one(asked.seed, name, setup, plan, requests, pace, warm)?);
    }
    let how = match pace {
        Pace::Recorded => "each request when it came".to_string(),
        Pace::Fast(lanes) => format!("{lanes} requests at once, as fast as they are answered"),
    };
    let cache = if asked.warm { "filled" } else { "empty" };
    let mut about = vec![
        format!(
            "{} requests in {}, {how}; {} that they touch were there before, the cache was {cache}",
            trace.requests.len(),
            trace::show::time(std::time::Duration::from_nanos(plan.length)),
            pretty_size(plan.touched),
        ),
        format!("modelled: {present}"),
    ];
    about.extend(plan.remarks.iter().cloned());
    Ok(Outcome { figures, about })
}

impl Outcome {
    pub fn text(&self) -> String {
        format!("{}\n\n{}", self.about.join("\n"), table(&self.figures))
    }

    pub fn json(&self, asked: &Asked) -> Value {
        json!({
            "seed": asked.seed,
            "about": self.about,
            "figures": self.figures.iter().map(Figures::to_json).collect::<Vec<_>>(),
        })
    }
}

fn one(
    seed: u64,
    name: String,
    setup: Setup,
    plan: Plan,
    requests: Arc<Vec<trace::Request>>,
    pace: Pace,
    warm: bool,
) -> Result<Figures> {
    let Devices { groups, logs, devices } = setup.devices(plan.touched);
    in_lab(seed, &devices, async move {
        let rig = Rig { ashift: setup.ashift, logs, ..Rig::new(setup.vdev_layout(), groups, setup.cache) };
        let pool = rig.create_empty().await?;
        let payload = Payload::new(setup.ratio);
        let mut made = Vec::new();
        for (number, dataset) in plan.datasets.iter().enumerate() {
            let name = name_of(number);
            let props = setup.properties_of(dataset);
            let props: Vec<(&str, &str)> = props.iter().map(|(name, value)| (&**name, &**value)).collect();
            rig.add(&pool, &name, content(dataset, setup.block_of(dataset)), &props).await?;
            made.push(fill(&pool, &name, dataset, &payload).await?);
        }
        pool.sync().await?;
        let pool = if warm { pool } else { rig.again(pool).await? };
        let mut opened = Vec::new();
        for (number, (dataset, files)) in plan.datasets.iter().zip(made).enumerate() {
            opened.push(open(&pool, &name_of(number), dataset, files).await?);
        }
        let before = device_work(&pool);
        let stage = Arc::new(Datasets::new(opened, plan.places.clone(), payload));
        let played = play(requests, stage, pace, Arc::default()).await;
        pool.sync().await?;
        let devices = device_work(&pool).since(&before);
        if played.requests() == 0 {
            let why = played.failure.unwrap_or_else(|| {
                "none is a read, write, flush or trim of a volume, or a read, write or fsync of a file".into()
            });
            return Err(Error::invalid(format!("no request of the trace could be made: {why}")));
        }
        Ok(Figures { name, played, devices })
    })
}

fn name_of(number: usize) -> String {
    format!("lab/dataset{number}")
}

fn content(dataset: &Dataset, block: u64) -> Content {
    match dataset.is_volume {
        true => {
            let size: u64 = dataset.parts.iter().map(|part| part.size).sum();
            Content::Volume { size: size.next_multiple_of(block), block_size: block }
        }
        false => Content::FileSystem(Default::default()),
    }
}

/// How much is written at once.
const PIECE: u64 = 1 << 20;

/// Writes what is touched; answers the files, in the order of the plan.
async fn fill(pool: &Pool, name: &str, dataset: &Dataset, payload: &Payload) -> Result<Vec<NodeId>> {
    if dataset.is_volume {
        let opened = pool.open_volume(name).await?;
        for (from, to) in dataset.parts.iter().flat_map(|part| &part.touched) {
            let (mut at, to) = (*from, (*to).min(opened.size()));
            while at < to {
                let len = PIECE.min(to - at);
                opened.write(at, payload.bytes(len)).await?;
                at += len;
            }
        }
        return Ok(Vec::new());
    }
    let root = pool.open_file_system_for_writing(name).await?.root().await?;
    let mut files = Vec::new();
    for part in &dataset.parts {
        let new = NewFile::new(FileKind::Regular, 0o644);
        let file = root.create(format!("file-{}", part.object).as_bytes(), &new).await?;
        for (from, to) in &part.touched {
            write_file(&file, *from, to - from, payload, false).await?;
        }
        files.push(file.id());
    }
    Ok(files)
}

async fn open(pool: &Pool, name: &str, dataset: &Dataset, files: Vec<NodeId>) -> Result<Opened> {
    if dataset.is_volume {
        return Ok(Opened::Volume(pool.open_volume(name).await?));
    }
    let fs = pool.open_file_system_for_writing(name).await?;
    let mut by_object = BTreeMap::new();
    for (part, id) in dataset.parts.iter().zip(files) {
        by_object.insert(part.object, fs.node(id).await?);
    }
    Ok(Opened::Files(by_object))
}

/// The volumes that stand for the datasets of a trace, by name.
type ByName = BTreeMap<String, usize>;

#[cfg(test)]
mod tests;
