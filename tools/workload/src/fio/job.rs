//! A job as its keys say it, and the streams that it becomes.

use crate::describe::{Arrival, Flush, Lanes, STORES_MAX, Sizes, Spread, Store, Stream, Walk};
use crate::words::{Parsed, Place};
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// iodepth has no effect.
    OneAtATime,
    Deep,
    Nbd,
    Iscsi,
}

#[derive(Clone, Debug)]
pub struct Job {
    pub name: String,
    pub place: Place,
    pub engine: Engine,
    pub files: Vec<String>,
    pub uri: String,
    pub directory: String,
    pub file_count: u32,
    pub size: Option<u64>,
    pub moved: Option<u64>,
    pub loops: u64,
    pub offset: u64,
    pub offset_increment: u64,
    pub is_random: bool,
    pub reads: bool,
    pub writes: bool,
    pub mix_read: f64,
    pub random_percent: f64,
    pub spread: Spread,
    /// Whether a block may come twice before all have come.
    pub repeats: bool,
    /// Of reads, and of writes.
    pub lengths: (Sizes, Sizes),
    pub depth: u32,
    pub copies: u32,
    pub is_one_row: bool,
    pub direct: bool,
    pub durable: bool,
    pub is_cold: bool,
    pub tells_order: bool,
    pub flush: Flush,
    pub rate: Option<f64>,
    pub arrival: Arrival,
    pub think: Duration,
    pub runtime: Option<Duration>,
    pub is_time_based: bool,
    pub warmup: Duration,
    pub verify: bool,
    pub waits: bool,
}

impl Default for Job {
    /// What fio documents for keys that are not there.
    fn default() -> Job {
        let four = Sizes::one(4096);
        Job {
            name: String::new(),
            place: Place::new("", 0, ""),
            engine: Engine::OneAtATime,
            files: Vec::new(),
            uri: String::new(),
            directory: String::new(),
            file_count: 1,
            size: None,
            moved: None,
            loops: 1,
            offset: 0,
            offset_increment: 0,
            is_random: false,
            reads: true,
            writes: false,
            mix_read: 50.0,
            random_percent: 100.0,
            spread: Spread::Uniform,
            repeats: false,
            lengths: (four.clone(), four),
            depth: 1,
            copies: 1,
            is_one_row: false,
            direct: false,
            durable: false,
            is_cold: true,
            tells_order: true,
            flush: Flush::Never,
            rate: None,
            arrival: Arrival::Even,
            think: Duration::ZERO,
            runtime: None,
            is_time_based: false,
            warmup: Duration::ZERO,
            verify: false,
            waits: false,
        }
    }
}

/// The stores of all jobs; the same place, used in the same way, is one.
#[derive(Debug, Default)]
pub struct Stores {
    pub all: Vec<Store>,
    known: BTreeMap<(String, u64, Option<u64>, [bool; 3]), usize>,
}

impl Stores {
    /// Nothing when there are too many.
    fn index(&mut self, store: Store) -> Option<usize> {
        let used = [store.direct, store.durable, store.cold];
        let key = (store.place.clone(), store.offset, store.size, used);
        let next = self.all.len();
        let index = *self.known.entry(key).or_insert(next);
        if index == next {
            self.all.push(store);
        }
        (index < STORES_MAX).then_some(index)
    }
}

impl Job {
    /// One for each copy.
    pub fn streams(&self, stores: &mut Stores) -> Parsed<Vec<Stream>> {
        if self.is_time_based && self.runtime.is_none() {
            return self.place.complain(format!("job '{}' is time_based without a runtime", self.name));
        }
        (0..self.copies).map(|copy| self.stream(copy, stores)).collect()
    }

    fn stream(&self, copy: u32, stores: &mut Stores) -> Parsed<Stream> {
        let places = self.places(copy)?;
        let count = places.len() as u64;
        let offset = self.offset.saturating_add(self.offset_increment.saturating_mul(u64::from(copy)));
        let used: Option<Vec<usize>> = places
            .into_iter()
            .map(|place| {
                let mut store = Store::new(place.clone(), place);
                store.offset = offset;
                store.size = self.size.map(|size| (size / count).next_multiple_of(512));
                (store.direct, store.durable, store.cold) = (self.direct, self.durable, self.is_cold);
                stores.index(store)
            })
            .collect();
        let too_many = || self.place.complaint(format!("more than {STORES_MAX} places"));
        let name = match self.is_one_row || self.copies == 1 {
            true => self.name.clone(),
            false => format!("{}.{copy}", self.name),
        };
        let mut stream = Stream::new(name, used.ok_or_else(too_many)?);
        stream.lanes = Lanes::Together(if self.engine == Engine::OneAtATime { 1 } else { self.depth });
        (stream.in_place, stream.tells_order) = (self.engine == Engine::OneAtATime, self.tells_order);
        stream.read_percent = match (self.reads, self.writes) {
            (true, true) => self.mix_read,
            (true, false) => 100.0,
            _ => 0.0,
        };
        (stream.read_sizes, stream.write_sizes) = self.lengths.clone();
        stream.walk = match self.is_random {
            true => Walk { seek_percent: self.random_percent, spread: self.spread(), ..Walk::default() },
            false => Walk::sequential(),
        };
        (stream.rate, stream.arrival, stream.think) = (self.rate, self.arrival, self.think);
        (stream.flush, stream.verify) = (self.flush, self.verify);
        stream.elapsed = self.runtime;
        if !self.is_time_based {
            let whole = self.moved.or(self.size).map(|bytes| bytes.saturating_mul(self.loops));
            // Without a size it is the whole place, once.
            stream.amount = whole;
            stream.walk.wraps = whole.is_some() || self.is_random;
        }
        Ok(stream)
    }

    /// A map of the blocks that have come is only of use where all are of one length.
    fn spread(&self) -> Spread {
        let (reads, writes) = &self.lengths;
        let has_one = reads == writes && reads.only().is_some();
        match self.spread {
            Spread::Uniform if has_one && !self.repeats && self.random_percent >= 100.0 => Spread::EachOnce,
            spread => spread,
        }
    }

    fn places(&self, copy: u32) -> Parsed<Vec<String>> {
        let wrong = |what: &str| self.place.complain(format!("job '{}': {what}", self.name));
        match self.engine {
            Engine::Nbd if self.uri.is_empty() => return wrong("ioengine=nbd has uri="),
            Engine::Nbd => return Ok(vec![self.uri.clone()]),
            Engine::Iscsi if !self.files.iter().any(|f| f.starts_with("iscsi://")) => {
                return wrong("ioengine=libiscsi has filename=iscsi://…");
            }
            _ if !self.uri.is_empty() => return wrong("uri= is of ioengine=nbd"),
            _ => {}
        }
        let in_directory = |name: &String| match self.directory.is_empty() || name.starts_with('/') {
            true => name.clone(),
            false => format!("{}/{name}", self.directory),
        };
        if !self.files.is_empty() {
            return Ok(self.files.iter().map(in_directory).collect());
        }
        if self.size.is_none() {
            return wrong("it has a filename, or a size for files of its own");
        }
        let name = self.name.replace('/', "_");
        Ok((0..self.file_count).map(|n| in_directory(&format!("{name}.{copy}.{n}"))).collect())
    }
}
