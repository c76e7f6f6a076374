//! `cenote rehearse`: a trace of a volume, replayed on clones of it in its own pool.
//!
//! ```text
//!   tank/v ─▶ tank/v@rehearse-ID ─┬─▶ tank/v.rehearse-ID-plain  as it is              ─▶ replay ─▶ figures ─┐ side
//!                                 └─▶ tank/v.rehearse-ID        set; with another     ─▶ replay ─▶ figures ─┘ by side
//!                                                               block size copied first
//!   in the end, also after a signal or an error: clones and snapshot are destroyed, and what cannot be is named
//! ```
//!
//! Requests go over NBD, as those of a client. What the devices did is what the pool did from before the replay until
//! all that it wrote was on disk: other clients' work is in it. What is written is random, as far as the volume's data do
//! not compress.

use crate::trace_file::{Asker, contents};
use crate::{none_runs, report, running};
use api::{Reply, Request, Snapshots, Value};
use appliance::Home;
use cli::Failure;
use cli::args::trace::{Changes, Rehearse};
use futures_util::FutureExt;
use std::sync::Arc;
use std::time::Duration;
use trace::Op;
use trace::figures::{Figures, table};
use trace::play::{Pace, Stage, play};
use trace::present::DeviceWork;
use trace::read::Contents;
use trace::summary::most_at_once;
use units::parse_size;
use workload::Target;
use workload::describe::Store;
use workload::drive::{How, Places};
use workload::places::Machine;
use world::sync::Event;
use world::{Buf, Pending};

/// How often it is looked whether a clone has its other block size.
const LOOK: Duration = Duration::from_millis(200);
/// The longest write that is made in one piece.
const LONGEST: usize = 8 << 20;

pub fn run(home: &Home, args: Rehearse, line: String) -> Result<(), Failure> {
    let trace = contents(&args.file)?;
    let requests = requests_of(&trace, &args.volume)?;
    let daemon = running(home)?.ok_or_else(|| none_runs(home))?;
    let changes = Changes::all(args.set);
    let pace =
        if args.as_fast_as_possible { Pace::Fast(most_at_once(&requests).max(1)) } else { Pace::Recorded };
    let (volume, json) = (args.volume, args.json);
    let figures = linux::block_on(async move {
        // Before anything is made that must be destroyed again.
        linux::expect_shutdown();
        let stop = Arc::new(Event::new());
        drop(world::spawn({
            let stop = stop.clone();
            async move {
                linux::shutdown_signal().await;
                stop.set();
            }
        }));
        let mut rehearsal = Rehearsal {
            asker: Asker { daemon, line },
            names: Names::new(&volume),
            volume,
            made: Vec::new(),
            requests: Arc::new(requests),
            pace,
            stop,
        };
        rehearsal.tell_of_earlier()?;
        // A panic must not leave clones behind either.
        let done = std::panic::AssertUnwindSafe(rehearsal.carry_out(&changes)).catch_unwind().await;
        let left = rehearsal.discard();
        let done = done.unwrap_or(Err(Failure::Told));
        left.and(done)
    })?;
    if json {
        let told: Vec<serde_json::Value> = figures.iter().map(Figures::to_json).collect();
        report::say(&format!("{:#}", serde_json::json!({ "figures": told })));
    } else {
        report::say(table(&figures).trim_end());
    }
    Ok(())
}

/// The requests of a trace for a volume, all of one place.
fn requests_of(trace: &Contents, volume: &str) -> Result<Vec<trace::Request>, Failure> {
    let name = if trace.header.hashed { trace::header::hashed(volume) } else { volume.to_string() };
    let of: Vec<bool> = trace.places.iter().map(|place| place.dataset == name).collect();
    let is_of = |request: &&trace::Request| of.get(request.place as usize).copied().unwrap_or(false);
    let requests: Vec<trace::Request> =
        trace.requests.iter().filter(is_of).map(|request| trace::Request { place: 0, ..*request }).collect();
    if requests.is_empty() {
        let mut names: Vec<&str> = trace.places.iter().map(|place| place.name()).collect();
        names.sort_unstable();
        names.dedup();
        let why = format!(
            "rehearse: the trace has no requests for {volume}; it has those for {}",
            names.join(", ")
        );
        return Err(Failure::Failed(why));
    }
    Ok(requests)
}

/// What is made for a rehearsal.
struct Names {
    snapshot: String,
    plain: String,
    changed: String,
}

impl Names {
    fn new(volume: &str) -> Names {
        let id = format!("{:08x}", world::random_u64() as u32);
        Names {
            snapshot: format!("{volume}@rehearse-{id}"),
            plain: format!("{volume}.rehearse-{id}-plain"),
            changed: format!("{volume}.rehearse-{id}"),
        }
    }
}

struct Rehearsal {
    asker: Asker,
    names: Names,
    volume: String,
    /// What is to be destroyed, the last first.
    made: Vec<String>,
    requests: Arc<Vec<trace::Request>>,
    pace: Pace,
    stop: Arc<Event>,
}

impl Rehearsal {
    /// Names what a rehearsal that was killed has left.
    fn tell_of_earlier(&mut self) -> Result<(), Failure> {
        let pool = self.volume.split('/').next().unwrap_or_default().to_string();
        let query =
            api::DatasetQuery { names: vec![pool], properties: vec!["name".into()], ..Default::default() };
        let Reply::Datasets(all) = self.asker.ask(Request::Datasets(query))? else { return Ok(()) };
        let (clone, snapshot) = (format!("{}.rehearse-", self.volume), format!("{}@rehearse-", self.volume));
        for left in all
            .iter()
            .filter(|dataset| dataset.name.starts_with(&clone) || dataset.name.starts_with(&snapshot))
        {
            report::complain(&format!(
                "an earlier rehearsal left {0}: 'cenote zfs destroy {0}' removes it",
                left.name
            ));
        }
        Ok(())
    }

    async fn carry_out(&mut self, changes: &[(String, String)]) -> Result<Vec<Figures>, Failure> {
        let Some((dataset, _)) = self.asker.look_at(&self.volume)? else {
            return Err(Failure::Failed(format!("rehearse: there is no volume {}", self.volume)));
        };
        let number = |name: &str| dataset.property(name)?.value.as_ref()?.number();
        if dataset.kind != api::DatasetKind::Volume {
            return Err(Failure::Failed(format!("rehearse: {} is no volume", self.volume)));
        }
        let ratio = number("compressratio").unwrap_or(100).max(100) as f64 / 100.0;
        let (block, others): (Vec<_>, Vec<_>) =
            changes.iter().cloned().partition(|(name, _)| name == "volblocksize");
        let snapshot = self.names.snapshot.clone();
        let take =
            Snapshots::Take { names: vec![snapshot.clone()], recursive: false, properties: Vec::new() };
        self.make(snapshot, Request::Snapshots(take))?;
        self.clone_to(self.names.plain.clone())?;
        self.clone_to(self.names.changed.clone())?;
        let changed = self.names.changed.clone();
        if !others.is_empty() {
            self.asker.ask(Request::DatasetSet { name: changed.clone(), properties: others })?;
        }
        if let Some((_, value)) = block.last() {
            self.change_block_size(&changed, value).await?;
        }
        let words: Vec<String> = changes.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let plain = self.names.plain.clone();
        let first = self.replay("as it is".into(), &plain, ratio).await?;
        let second = self.replay(words.join(","), &changed, ratio).await?;
        Ok(vec![first, second])
    }

    /// Makes something that is destroyed in the end.
    fn make(&mut self, name: String, request: Request) -> Result<(), Failure> {
        self.go_on()?;
        // It may be there though no answer came.
        self.made.push(name);
        self.asker.ask(request).map(drop)
    }

    fn clone_to(&mut self, name: String) -> Result<(), Failure> {
        // For this process: other clients find it in no list, and at no address of the network.
        let properties = vec![("cenote:nbd".to_string(), "socket".to_string())];
        let snapshot = self.names.snapshot.clone();
        let clone =
            Snapshots::Clone { snapshot, name: name.clone(), properties, parents: false, unmounted: true };
        self.make(name, Request::Snapshots(clone))
    }

    fn go_on(&self) -> Result<(), Failure> {
        match self.stop.is_set() {
            true => Err(Failure::Failed("rehearse: it was interrupted; there are no figures".into())),
            false => Ok(()),
        }
    }

    /// The daemon copies the clone into blocks of another size; waits for the end.
    async fn change_block_size(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let wrong = |why| Failure::Failed(format!("rehearse: volblocksize: bad size '{value}': {why}"));
        let wanted = parse_size(value).map_err(wrong)?;
        let properties = vec![("volblocksize".to_string(), value.to_string())];
        self.asker.ask(Request::DatasetSet { name: name.into(), properties })?;
        let copy = format!("{name}.copy-{}", units::pretty_size(wanted));
        report::complain(&format!("copying {name} into blocks of {}", units::pretty_size(wanted)));
        loop {
            // It takes the name in one step: what is not under way before the block size is looked at has ended.
            let is_under_way = self.asker.look_at(&copy)?.is_some();
            let block = self.asker.look_at(name)?.and_then(|(dataset, _)| {
                dataset.property("volblocksize").and_then(|p| p.value.as_ref()).and_then(Value::number)
            });
            if block == Some(wanted) {
                return Ok(());
            }
            if !is_under_way {
                let why = format!(
                    "rehearse: {name} could not be copied into blocks of {}",
                    units::pretty_size(wanted)
                );
                return Err(Failure::Failed(why));
            }
            self.go_on()?;
            world::sleep(LOOK).await;
        }
    }

    async fn replay(&mut self, name: String, dataset: &str, ratio: f64) -> Result<Figures, Failure> {
        self.go_on()?;
        report::complain(&format!("replaying {} requests on {dataset}: {name}", self.requests.len()));
        let clone = Served::open(&self.place_of(dataset)?, ratio).await?;
        let before = self.devices()?;
        let played = play(self.requests.clone(), Arc::new(clone), self.pace, self.stop.clone()).await;
        let devices = self.devices()?.since(&before);
        self.go_on()?;
        Ok(Figures { name, played, devices })
    }

    /// Where a client reaches the clone.
    fn place_of(&mut self, dataset: &str) -> Result<String, Failure> {
        let Reply::Nbd(nbd) = self.asker.ask(Request::NbdExports)? else {
            return Err(Failure::Failed("rehearse: the daemon does not say what it serves".into()));
        };
        let uris = nbd.exports.iter().any(|export| export.name == dataset).then(|| nbd.uris(dataset));
        // Over the socket there is no network between, and no certificate.
        let found = uris.and_then(|mut uris| {
            uris.sort_by_key(|uri| !uri.starts_with("nbd+unix:"));
            uris.into_iter().find(|uri| !uri.starts_with("nbds:"))
        });
        found.ok_or_else(|| {
            let why = "the daemon offers it nowhere over NBD: is it started with --export, or its NBD switched off?";
            Failure::Failed(format!("rehearse: {dataset} cannot be reached: {why}"))
        })
    }

    /// What the pool's devices have done when all that was written is on them.
    fn devices(&mut self) -> Result<DeviceWork, Failure> {
        let pool = self.volume.split('/').next().unwrap_or_default().to_string();
        self.asker.ask(Request::PoolSync { names: vec![pool.clone()] })?;
        match self.asker.ask(Request::Pools { names: vec![pool] })? {
            Reply::Pools(pools) => Ok(pools.first().map(DeviceWork::of).unwrap_or_default()),
            _ => Err(Failure::Failed("rehearse: the daemon does not say what the pool did".into())),
        }
    }

    /// Destroys what was made, and names what could not be.
    fn discard(&mut self) -> Result<(), Failure> {
        let mut left = Vec::new();
        while let Some(name) = self.made.pop() {
            let request = Request::DatasetDestroy {
                name: name.clone(),
                recursive: false,
                clones: false,
                defer: false,
                force: true,
                dry_run: false,
            };
            match self.asker.ask(request) {
                Ok(_) => {}
                // It was never made.
                Err(_) if matches!(self.asker.look_at(&name), Ok(None)) => {}
                Err(e) => left
                    .push(format!("rehearse: {name} is left: {e}; 'cenote zfs destroy {name}' removes it")),
            }
        }
        if left.is_empty() { Ok(()) } else { Err(Failure::Failed(left.join("\n"))) }
    }
}

/// A clone, as a client has it.
#[derive(Debug)]
struct Served {
    plain: Arc<dyn Target>,
    /// Each write of it is on stable storage when it is answered.
    durable: Arc<dyn Target>,
    payload: Buf,
}

impl Served {
    async fn open(place: &str, ratio: f64) -> Result<Served, Failure> {
        let machine = Machine::new(Arc::new(|what: &str| report::complain(what)));
        let store = Store::new("clone", place);
        let how = |durable| How { writes: true, durable, ..How::default() };
        let failed = |e: units::Error| Failure::Failed(format!("rehearse: {e}"));
        Ok(Served {
            plain: machine.open(&store, how(false)).await.map_err(failed)?,
            durable: machine.open(&store, how(true)).await.map_err(failed)?,
            payload: payload(ratio),
        })
    }
}

/// Bytes of which compression makes one part in `ratio`.
fn payload(ratio: f64) -> Buf {
    const PAGE: usize = 4096;
    let kept = ((PAGE as f64 / ratio) as usize / 8 * 8).clamp(8, PAGE);
    let mut bytes = vec![0u8; LONGEST];
    for page in bytes.chunks_mut(PAGE) {
        page[..kept].chunks_mut(8).for_each(|word| word.copy_from_slice(&world::random_u64().to_le_bytes()));
    }
    Buf::copy_from(&bytes)
}

impl Stage for Served {
    fn make(&self, request: &trace::Request) -> Option<Pending<units::Result<()>>> {
        if request.end() > self.plain.size() || request.bytes > LONGEST as u64 {
            return None;
        }
        let (offset, len) = (request.offset, request.bytes as u32);
        match request.op {
            Op::Read => {
                let reading = self.plain.read(offset, len);
                Some(Box::pin(async move { reading.await.map(drop) }))
            }
            Op::Write => {
                let target = if request.durable { &self.durable } else { &self.plain };
                // From another place each time, so that no two blocks are the same.
                let first = (offset / 512 * 8) as usize % (self.payload.len() - len as usize + 1) / 8 * 8;
                Some(target.write(offset, self.payload.slice(first..first + len as usize)))
            }
            Op::Flush => Some(self.plain.flush()),
            _ => None,
        }
    }
}
