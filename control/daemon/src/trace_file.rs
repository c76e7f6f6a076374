//! `cenote trace`: what the daemon's clients ask, recorded into a file, and what is in one.
//!
//! ```text
//!   daemon: probes ─▶ a bounded tape ◀── take, every tenth of a second ── this process ─▶ FILE, piece by piece
//! ```
//!
//! A place is written when it is met first, with the settings that its dataset has then.

use crate::{none_runs, report, running};
use api::analytics::{Analytics, Told, Trace as Ask, TraceEntry, Traced};
use api::{Call, Caller, DatasetQuery, Reply, Request};
use appliance::Home;
use cli::Failure;
use cli::args::trace::{Trace, TraceWhat};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use trace::read::{Contents, Part, Reader};
use trace::{Header, Place, Summary, Writer, show};
use world::sync::Event;

/// How often entries are taken.
const TURN: Duration = Duration::from_millis(100);
/// Entries that the daemon may hold: two seconds of a hundred thousand.
const HELD: u64 = 200_000;

pub fn run(home: &Home, args: Trace, line: String) -> Result<(), Failure> {
    match args.what {
        TraceWhat::Record { front, file, seconds, limit, hash_names, json } => {
            let of = statistic(&front)?;
            let daemon = running(home)?.ok_or_else(|| none_runs(home))?;
            let asked = Asked { of, seconds: seconds.map(Duration::from_secs), limit, hashed: hash_names };
            let recorded =
                linux::block_on(async move { record(Asker { daemon, line }, &file, &asked).await })?;
            report::say(&if json { recorded.json() } else { recorded.text() });
            Ok(())
        }
        TraceWhat::Show { file, json } => {
            let text = summary(&file, json)?;
            // A reader that is gone ends it quietly.
            std::io::stdout().write_all(text.as_bytes()).map_err(|_| Failure::Told)
        }
    }
}

/// The daemon, and in whose name it is asked.
pub struct Asker {
    pub daemon: client::Client,
    pub line: String,
}

impl Asker {
    pub fn ask(&mut self, request: Request) -> Result<Reply, Failure> {
        let uid = u64::from(rustix::process::getuid().as_raw());
        Ok(self.daemon.call(Call { command: self.line.clone(), uid, request })?)
    }

    fn trace(&mut self, asked: Ask) -> Result<Traced, Failure> {
        match self.ask(Request::Analytics(Analytics::Trace(asked)))? {
            Reply::Analytics(Told::Traced(traced)) => Ok(traced),
            Reply::Done => Ok(Traced::default()),
            other => Err(Failure::Failed(format!("the daemon gave an unexpected answer: {other:?}"))),
        }
    }

    /// A dataset with all its properties, and its pool; `None` where either is not there.
    pub fn look_at(&mut self, name: &str) -> Result<Option<(api::Dataset, api::Pool)>, Failure> {
        let query = DatasetQuery { names: vec![name.into()], depth: Some(0), ..DatasetQuery::default() };
        let Ok(Reply::Datasets(datasets)) = self.ask(Request::Datasets(query)) else { return Ok(None) };
        let pool = name.split(['/', '@']).next().unwrap_or_default();
        let Ok(Reply::Pools(pools)) = self.ask(Request::Pools { names: vec![pool.into()] }) else {
            return Ok(None);
        };
        Ok(datasets.into_iter().next().zip(pools.into_iter().next()))
    }
}

/// `nbd.ops[op=write]`, of `nbd[op=write]`.
fn statistic(front: &str) -> Result<String, Failure> {
    let (name, filters) = front.split_at(front.find('[').unwrap_or(front.len()));
    match ["iscsi", "nbd", "fs"].contains(&name) {
        true => Ok(format!("{name}.ops{filters}")),
        false => Err(Failure::Usage(format!("trace: there is no front '{name}'; there are iscsi, nbd, fs"))),
    }
}

struct Asked {
    of: String,
    seconds: Option<Duration>,
    limit: u64,
    hashed: bool,
}

/// What was recorded.
struct Recorded {
    file: String,
    requests: u64,
    dropped: u64,
    places: usize,
    bytes: u64,
    length: Duration,
}

impl Recorded {
    fn text(&self) -> String {
        let Recorded { file, requests, dropped, places, bytes, length } = self;
        let lost = if *dropped > 0 { format!("; {dropped} were dropped") } else { String::new() };
        let (size, length) = (units::pretty_size(*bytes), show::time(*length));
        format!("{requests} requests of {places} places in {length}: {file}, {size}{lost}")
    }

    fn json(&self) -> String {
        let Recorded { file, requests, dropped, places, bytes, length } = self;
        let told = serde_json::json!({
            "file": file, "requests": requests, "dropped": dropped, "places": places, "bytes": bytes,
            "seconds": length.as_secs_f64(),
        });
        format!("{told:#}")
    }
}

async fn record(mut asker: Asker, path: &Path, asked: &Asked) -> Result<Recorded, Failure> {
    linux::expect_shutdown();
    let stop = Arc::new(Event::new());
    drop(world::spawn({
        let stop = stop.clone();
        async move {
            linux::shutdown_signal().await;
            stop.set();
        }
    }));
    let cache = match asker.ask(Request::Cache)? {
        Reply::Cache(cache) => cache.max,
        _ => 0,
    };
    let begun = asker.trace(Ask::Begin { of: asked.of.clone(), held: HELD })?;
    let id = begun.id;
    // A filter may name what is not to be told.
    let shown =
        if asked.hashed { begun.of.split('[').next().unwrap_or_default().to_string() } else { begun.of };
    let header = Header {
        program: concat!("cenote ", env!("CARGO_PKG_VERSION")).into(),
        statistic: shown,
        start: world::wall_clock().seconds,
        hashed: asked.hashed,
        cache,
    };
    let recorded = write(&mut asker, id, path, asked, &header, &stop).await;
    // Also when the file cannot be written: the daemon then holds nothing that will not be taken.
    let ended = asker.trace(Ask::End { id });
    let recorded = recorded?;
    ended?;
    Ok(recorded)
}

async fn write(
    asker: &mut Asker,
    id: u64,
    path: &Path,
    asked: &Asked,
    header: &Header,
    stop: &Event,
) -> Result<Recorded, Failure> {
    let cannot = |e: std::io::Error| Failure::Failed(format!("trace: cannot write {}: {e}", path.display()));
    let began = world::now();
    let file = File::create(path).map_err(cannot)?;
    let mut writer = Writer::new(BufWriter::new(file), header).map_err(cannot)?;
    report::complain(&format!("recording {} into {}; Ctrl-C ends it", asked.of, path.display()));
    let (mut places, mut dropped, mut failed) = (0, 0, 0);
    let mut is_last = false;
    loop {
        let traced = asker.trace(Ask::Take { id })?;
        for words in &traced.places {
            let place = place(asker, words, asked.hashed)?;
            writer.place(&place).map_err(cannot)?;
            places += 1;
        }
        let mut requests: Vec<trace::Request> = traced.entries.iter().map(request).collect();
        failed += traced.entries.iter().filter(|entry| entry.failed).count();
        dropped += traced.dropped;
        writer.requests_of(&mut requests, traced.dropped).map_err(cannot)?;
        let is_full = writer.written() >= asked.limit;
        if is_full || is_last && !traced.has_more {
            break;
        }
        is_last |= stop.is_set() || asked.seconds.is_some_and(|seconds| world::now().since(began) >= seconds);
        if !traced.has_more && !is_last {
            let left = asked
                .seconds
                .map_or(TURN, |seconds| seconds.saturating_sub(world::now().since(began)).min(TURN));
            world::timeout(left, stop.wait()).await;
        }
    }
    let length = world::now().since(began);
    if failed > 0 {
        report::complain(&format!("{failed} of the requests had failed"));
    }
    let (requests, bytes) = (writer.requests(), writer.written());
    writer.end(length.as_nanos() as u64).map_err(cannot)?;
    Ok(Recorded { file: path.display().to_string(), requests, dropped, places, bytes, length })
}

fn request(entry: &TraceEntry) -> trace::Request {
    trace::Request::of_entry(entry)
}

/// A place as a trace has it, with the settings of its dataset at this moment.
fn place(asker: &mut Asker, words: &[(String, String)], hashed: bool) -> Result<Place, Failure> {
    let word =
        |by: &str| words.iter().find(|(of, _)| of == by).map(|(_, word)| word.clone()).unwrap_or_default();
    let (dataset, client, lun) = (word("dataset"), word("client"), word("lun"));
    let found = if dataset.is_empty() { None } else { asker.look_at(&dataset)? };
    let present = found.and_then(|(dataset, pool)| trace::present::present(&dataset, &pool));
    let name = |name: String| if hashed && !name.is_empty() { trace::header::hashed(&name) } else { name };
    Ok(Place { dataset: name(dataset), client: name(client), lun: name(lun), present })
}

fn open(path: &Path) -> Result<BufReader<File>, Failure> {
    let cannot = |e| Failure::Failed(format!("trace: cannot read {}: {e}", path.display()));
    File::open(path).map(BufReader::new).map_err(cannot)
}

/// All of a trace.
pub fn contents(path: &Path) -> Result<Contents, Failure> {
    let input = open(path)?;
    Contents::read(input, &path.display().to_string()).map_err(|e| Failure::Failed(e.to_string()))
}

fn summary(path: &Path, json: bool) -> Result<String, Failure> {
    let failed = |e: units::Error| Failure::Failed(e.to_string());
    let mut reader = Reader::new(open(path)?, &path.display().to_string()).map_err(failed)?;
    let mut summary = Summary::default();
    while let Some(part) = reader.part().map_err(failed)? {
        match part {
            Part::Place(place) => summary.place(place),
            Part::Requests(requests) => requests.iter().for_each(|request| summary.request(request)),
        }
    }
    let (header, end, bytes) = (reader.header(), reader.end(), reader.read_bytes());
    Ok(match json {
        true => format!("{:#}\n", show::json(header, &summary, end, bytes)),
        false => show::text(header, &summary, end, bytes),
    })
}
