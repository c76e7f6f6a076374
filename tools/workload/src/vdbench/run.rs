//! Run definitions: `rd=run1,wd=wd1,iorate=max,elapsed=999h,interval=1`, with their loops.

use super::lines::{Definition, Key};
use super::loops::{RUNS_MAX, combinations, numbers, percents};
use super::names::chosen;
use super::storage::Storage;
use super::work::{self, Work};
use crate::describe::{Arrival, Lanes, Load, Run, STREAMS_MAX, Sizes, Stream};
use crate::words::{Parsed, shown};
use std::time::Duration;

/// The percentages of a curve unless `curve=` gives others.
const CURVE: [f64; 9] = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0];

/// What one turn of a loop sets.
#[derive(Clone, Debug)]
enum Setting {
    Sizes(u32),
    Threads(u32),
    ReadPercent(f64),
    SeekPercent(f64),
    ReadHits(f64),
    WriteHits(f64),
    HitArea(u64),
}

impl Setting {
    fn label(&self) -> String {
        match self {
            Setting::Sizes(len) => format!("xfersize={}", units::pretty_size(u64::from(*len)).to_lowercase()),
            Setting::Threads(n) => format!("threads={n}"),
            Setting::ReadPercent(p) => format!("rdpct={p}"),
            Setting::SeekPercent(p) => format!("seekpct={p}"),
            Setting::ReadHits(p) => format!("rhpct={p}"),
            Setting::WriteHits(p) => format!("whpct={p}"),
            Setting::HitArea(bytes) => format!("hitarea={}", units::pretty_size(*bytes).to_lowercase()),
        }
    }
}

/// What the keys of a run say, before the loops are taken apart.
struct Asked {
    run: Run,
    works: Vec<usize>,
    stores: Option<Vec<usize>>,
    loads: Vec<Load>,
    loops: Vec<Vec<Setting>>,
    arrival: Arrival,
    max_data: Option<u64>,
    durable: bool,
}

pub fn read(
    defaults: &[Key],
    definition: &Definition,
    storage: &[Storage],
    works: &[Work],
    runs: &mut Vec<Run>,
) -> Parsed<()> {
    let mut asked = asked(defaults, definition, storage, works)?;
    let place = &definition.place;
    let too_many = || place.complaint(format!("its loops make more than {RUNS_MAX} runs"));
    let turns = combinations(&asked.loops).ok_or_else(too_many)?;
    if runs.len() + turns.len() * asked.loads.len() > RUNS_MAX {
        return Err(too_many());
    }
    let of_each: usize = asked.works.iter().map(|w| works[*w].stores.len()).sum();
    let before: usize = runs.iter().map(|run| run.streams.len()).sum();
    if before + of_each.saturating_mul(turns.len() * asked.loads.len()) > STREAMS_MAX {
        return place
            .complain(format!("its workloads, stores and loops make more than {STREAMS_MAX} streams"));
    }
    asked.run.keeps_shares = asked.works.iter().any(|w| works[*w].skew.is_some());
    for turn in turns {
        let streams = streams(&asked, &turn, storage, works, definition)?;
        let labels: Vec<String> = turn.iter().map(Setting::label).collect();
        for load in &asked.loads {
            let mut name = match labels.is_empty() {
                true => asked.run.name.clone(),
                false => format!("{} ({})", asked.run.name, labels.join(",")),
            };
            if let Load::OfMax(percent) = load {
                name = format!("{name} {percent}%");
            }
            runs.push(Run { name, load: *load, streams: streams.clone(), ..asked.run.clone() });
        }
    }
    Ok(())
}

fn asked(defaults: &[Key], definition: &Definition, storage: &[Storage], works: &[Work]) -> Parsed<Asked> {
    let mut asked = Asked {
        run: Run::new(&definition.name),
        works: Vec::new(),
        stores: None,
        loads: vec![Load::Max],
        loops: Vec::new(),
        arrival: Arrival::Poisson,
        max_data: None,
        durable: false,
    };
    let mut curve: Option<Vec<f64>> = None;
    let own = |key: &&Key| !definition.keys.iter().any(|k| k.name == key.name);
    for key in defaults.iter().filter(own).chain(&definition.keys) {
        match key.name.as_str() {
            "curve" => curve = Some(percentages(key)?),
            _ => take(&mut asked, key, storage, works)?,
        }
    }
    let is_curve = asked.loads.iter().any(|load| matches!(load, Load::OfMax(_)));
    match curve {
        Some(points) if is_curve => {
            asked.loads = std::iter::once(Load::Max).chain(points.into_iter().map(Load::OfMax)).collect();
        }
        Some(_) => return definition.place.complain("curve= has no effect without iorate=curve"),
        None => {}
    }
    if asked.works.is_empty() {
        return definition.place.complain("a run definition has wd=");
    }
    Ok(asked)
}

fn percentages(key: &Key) -> Parsed<Vec<f64>> {
    let found = percents(key)?;
    match found.iter().all(|p| *p > 0.0) {
        true => Ok(found),
        false => key.place.complain("a point of a curve is above 0"),
    }
}

fn take(asked: &mut Asked, key: &Key, storage: &[Storage], works: &[Work]) -> Parsed<()> {
    let (place, second) = (&key.place, Duration::from_secs(1));
    let thread_count = |n: u64| match (1..=65_536).contains(&n) {
        true => Ok(n as u32),
        false => place.complain(format!("{n} is not between 1 and 65536")),
    };
    match key.name.as_str() {
        "wd" => asked.works = those(key, works)?,
        "sd" => asked.stores = Some(work::stores(key, storage)?),
        "iorate" | "foriorate" => asked.loads = loads(key)?,
        "elapsed" => asked.run.elapsed = Some(place.time(key.one()?, second)?),
        "interval" => asked.run.interval = place.time(key.one()?, second)?,
        "warmup" => asked.run.warmup = place.time(key.one()?, second)?,
        "pause" => asked.run.pause = place.time(key.one()?, second)?,
        "distribution" | "dist" => asked.arrival = arrival(key)?,
        "maxdata" => asked.max_data = Some(place.size(key.one()?)?),
        "openflags" => {
            let mut store = crate::describe::Store::new("", "");
            super::storage::open_flags(key, &mut store)?;
            if store.direct {
                return place.complain("o_direct belongs to a storage definition");
            }
            asked.durable = store.durable;
        }
        "xfersize" | "forxfersize" => {
            let sizes = numbers(key)?;
            let sizes = sizes.iter().map(|n| Ok(Setting::Sizes(place.length(&n.to_string())?)));
            asked.loops.push(sizes.collect::<Parsed<_>>()?);
        }
        "threads" | "forthreads" => {
            let threads = numbers(key)?.into_iter().map(|n| Ok(Setting::Threads(thread_count(n)?)));
            asked.loops.push(threads.collect::<Parsed<_>>()?);
        }
        "rdpct" | "forrdpct" | "readpct" => asked.loops.push(each(key, Setting::ReadPercent)?),
        "seekpct" | "forseekpct" => asked.loops.push(each(key, Setting::SeekPercent)?),
        "rhpct" | "forrhpct" => asked.loops.push(each(key, Setting::ReadHits)?),
        "whpct" | "forwhpct" => asked.loops.push(each(key, Setting::WriteHits)?),
        "hitarea" | "forhitarea" => {
            asked.loops.push(numbers(key)?.into_iter().map(Setting::HitArea).collect());
        }
        _ => return place.complain("not supported in a run definition"),
    }
    Ok(())
}

fn each(key: &Key, setting: fn(f64) -> Setting) -> Parsed<Vec<Setting>> {
    Ok(percents(key)?.into_iter().map(setting).collect())
}

fn those(key: &Key, works: &[Work]) -> Parsed<Vec<usize>> {
    let names: Vec<&str> = works.iter().map(|w| w.name.as_str()).collect();
    chosen(key, &names, "workload")
}

/// `max`, `curve`, `5000`, `(100,200)`, `(100-1000,100)`.
fn loads(key: &Key) -> Parsed<Vec<Load>> {
    match key.values.as_slice() {
        [one] if one.eq_ignore_ascii_case("max") => Ok(vec![Load::Max]),
        [one] if one.eq_ignore_ascii_case("curve") => {
            Ok(std::iter::once(Load::Max).chain(CURVE.map(Load::OfMax)).collect())
        }
        values if values.iter().any(|v| v.contains('-')) => {
            let rates = numbers(key)?;
            match rates.iter().all(|rate| *rate > 0) {
                true => Ok(rates.into_iter().map(|rate| Load::PerSecond(rate as f64)).collect()),
                false => key.place.complain("a rate is above 0"),
            }
        }
        values => values.iter().map(|rate| Ok(Load::PerSecond(key.place.positive(rate)?))).collect(),
    }
}

fn arrival(key: &Key) -> Parsed<Arrival> {
    match key.one()?.to_ascii_lowercase().as_str() {
        "e" | "exponential" => Ok(Arrival::Poisson),
        "u" | "uniform" => Ok(Arrival::Uniform),
        "d" | "deterministic" => Ok(Arrival::Even),
        other => {
            key.place.complain(format!("'{}' is none of exponential, uniform, deterministic", shown(other)))
        }
    }
}

/// The streams of one turn: one for each workload and each store that it uses, so that ranges and threads may differ.
fn streams(
    asked: &Asked,
    turn: &[Setting],
    storage: &[Storage],
    works: &[Work],
    definition: &Definition,
) -> Parsed<Vec<Stream>> {
    let chosen: Vec<&Work> = asked.works.iter().map(|w| &works[*w]).collect();
    let shares = shares(&chosen, definition)?;
    let used = |work: &Work| -> Vec<usize> {
        let is_asked = |s: &&usize| asked.stores.as_ref().is_none_or(|stores| stores.contains(*s));
        work.stores.iter().filter(is_asked).copied().collect()
    };
    // A workload that takes a store with others has the part of its threads that is the part of its share there.
    let mut of_store = vec![0.0; storage.len()];
    for (work, share) in chosen.iter().zip(&shares) {
        let stores = used(work);
        stores.iter().for_each(|s| of_store[*s] += share / stores.len() as f64);
    }
    let mut streams = Vec::new();
    for (work, share) in chosen.iter().zip(&shares) {
        let stores = used(work);
        if stores.is_empty() {
            return definition
                .place
                .complain(format!("workload '{}' has no storage in it", shown(&work.name)));
        }
        let part = share / stores.len() as f64;
        for store in &stores {
            let mut stream = stream(work, *store, &storage[*store]);
            stream.share = part;
            stream.rate = work.rate.map(|rate| rate / stores.len() as f64);
            stream.arrival = asked.arrival;
            stream.amount = asked.max_data.map(|bytes| (bytes as f64 * part / 100.0) as u64);
            stream.durable = asked.durable || work.durable;
            turn.iter().for_each(|setting| apply(&mut stream, setting));
            if let (Lanes::Each(threads), None) = (stream.lanes, work.threads) {
                let lanes = f64::from(threads) * part / of_store[*store].max(f64::MIN_POSITIVE);
                stream.lanes = Lanes::Each((lanes.round() as u32).max(1));
            }
            streams.push(stream);
        }
    }
    Ok(streams)
}

/// The shares of all, in percent: those that say nothing divide what the others leave.
fn shares(works: &[&Work], definition: &Definition) -> Parsed<Vec<f64>> {
    let said: f64 = works.iter().filter_map(|w| w.skew).sum();
    let silent = works.iter().filter(|w| w.skew.is_none()).count();
    let left = 100.0 - said;
    if silent == 0 && (left.abs() > 0.01) || silent > 0 && left < 0.01 {
        let what = format!("the skews of its workloads sum up to {said}; all together they are 100");
        return definition.place.complain(what);
    }
    Ok(works.iter().map(|w| w.skew.unwrap_or(left / silent.max(1) as f64)).collect())
}

fn stream(work: &Work, index: usize, storage: &Storage) -> Stream {
    let mut stream = Stream::new(&work.name, vec![index]);
    stream.lanes = Lanes::Each(work.threads.unwrap_or(storage.threads));
    stream.read_percent = work.read_percent;
    (stream.read_sizes, stream.write_sizes) = (work.sizes.clone(), work.sizes.clone());
    stream.walk = work.walk.clone();
    stream.walk.align = work.walk.align.or(storage.align);
    stream.walk.hit_area = work.hit_area.unwrap_or(storage.hit_area);
    stream.direct = work.direct;
    stream.walk.range = work.range.or(storage.range);
    stream
}

fn apply(stream: &mut Stream, setting: &Setting) {
    match setting {
        Setting::Sizes(len) => {
            (stream.read_sizes, stream.write_sizes) = (Sizes::one(*len), Sizes::one(*len));
        }
        Setting::Threads(n) => stream.lanes = Lanes::Each(*n),
        Setting::ReadPercent(p) => stream.read_percent = *p,
        Setting::SeekPercent(p) => stream.walk.seek_percent = *p,
        Setting::ReadHits(p) => stream.walk.read_hit_percent = *p,
        Setting::WriteHits(p) => stream.walk.write_hit_percent = *p,
        Setting::HitArea(bytes) => stream.walk.hit_area = *bytes,
    }
}
