//! The places of a description, opened as its streams need them.

use crate::describe::{Description, Run, SECTOR, Store, Stream, common};
use crate::target::Target;
use crate::written::Written;
use linux::Order;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Debug;
use std::sync::Arc;
use units::{Error, Result};
use world::Pending;

/// How a place is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct How {
    pub writes: bool,
    pub direct: bool,
    pub durable: bool,
    /// A request is a system call of the thread that makes it.
    pub in_place: bool,
    /// What the kernel is told of the requests.
    pub order: Option<Order>,
}

/// What opens places by their names.
pub trait Places: Send + Sync + Debug {
    /// Opens a place. With `durable` each write that the target answers is on stable storage. A file that is not there, or
    /// is shorter than what is asked for, is made and laid out.
    fn open(&self, store: &Store, how: How) -> Pending<Result<Arc<dyn Target>>>;
}

/// Which opening of which store.
type Key = (usize, How);

#[derive(Debug)]
pub struct Opened<'a> {
    description: &'a Description,
    seed: u64,
    targets: BTreeMap<Key, Arc<dyn Target>>,
    /// By the name of the place: stores of one place share it.
    written: BTreeMap<String, Arc<Written>>,
}

/// A part of a place, as a stream uses it.
#[derive(Clone, Debug)]
pub struct Span {
    pub target: Arc<dyn Target>,
    /// Whether it is dropped from memory each time that it is begun with.
    pub is_cold: bool,
    pub first: u64,
    pub len: u64,
    pub written: Option<Arc<Written>>,
}

fn how(stream: &Stream, store: &Store) -> How {
    let order = if stream.walk.seek_percent > 0.0 { Order::Random } else { Order::Sequential };
    How {
        in_place: stream.in_place,
        order: stream.tells_order.then_some(order),
        writes: stream.read_percent < 100.0,
        direct: stream.direct || store.direct,
        durable: stream.durable || store.durable,
    }
}

impl<'a> Opened<'a> {
    pub fn new(description: &'a Description, seed: u64) -> Opened<'a> {
        Opened { description, seed, targets: BTreeMap::new(), written: BTreeMap::new() }
    }

    /// Opens what a run needs and is not open yet, and drops from memory what begins cold.
    pub async fn open_for(&mut self, run: &Run, places: &dyn Places) -> Result<()> {
        self.check_verified(run)?;
        let mut cold = BTreeMap::new();
        for stream in &run.streams {
            for index in &stream.stores {
                let store = &self.description.stores[*index];
                let key = (*index, how(stream, store));
                if let Entry::Vacant(place) = self.targets.entry(key) {
                    place.insert(places.open(store, key.1).await?);
                }
                if store.cold {
                    cold.insert(*index, key);
                }
                if stream.verify && !self.written.contains_key(&store.place) {
                    let size = self.targets.get(&key).map_or(0, |t| t.size());
                    let unit = u64::from(self.unit(&store.place));
                    let written = Written::new(size, unit, self.seed)
                        .map_err(|e| e.at(format!("on {}", store.place)))?;
                    self.written.insert(store.place.clone(), Arc::new(written));
                }
            }
        }
        // A place that one stream lays out may be another's.
        for key in cold.into_values() {
            self.targets.get(&key).map_or(Ok(()), |target| target.chill())?;
        }
        Ok(())
    }

    /// What all requests to a place are multiples of.
    fn unit(&self, place: &str) -> u32 {
        let is_here =
            |stream: &&Stream| stream.stores.iter().any(|s| self.description.stores[*s].place == place);
        let streams = self.description.runs.iter().flat_map(|run| run.streams.iter()).filter(is_here);
        let of_streams = streams.fold(0, |unit, stream| {
            let sizes = stream.sizes_in_use().map(crate::describe::Sizes::unit);
            // A part of a store may begin at any sector.
            let part = stream.walk.range.map(|_| SECTOR as u32);
            sizes.chain(stream.walk.align).chain(part).fold(unit, common)
        });
        let stores = self.description.stores.iter().filter(|s| s.place == place);
        let offsets = stores.map(|store| (store.offset % (1 << 30)) as u32);
        offsets.fold(of_streams, common).max(SECTOR as u32)
    }

    /// What is verified is not overwritten by what leaves no trace.
    fn check_verified(&self, run: &Run) -> Result<()> {
        let place = |index: &usize| self.description.stores[*index].place.as_str();
        let verified = run.streams.iter().filter(|s| s.verify).flat_map(|s| s.stores.iter().map(place));
        let verified: Vec<&str> = verified.chain(self.written.keys().map(String::as_str)).collect();
        let blind = run.streams.iter().filter(|s| !s.verify && s.read_percent < 100.0);
        match blind.flat_map(|s| s.stores.iter().map(place)).find(|p| verified.contains(p)) {
            Some(place) => Err(Error::invalid(format!(
                "run '{}': {place} is verified, and written without it",
                run.name
            ))),
            None => Ok(()),
        }
    }

    /// What a stream uses of each of its stores.
    pub fn spans(&self, stream: &Stream) -> Result<Vec<Span>> {
        stream.stores.iter().map(|index| self.span(stream, *index)).collect()
    }

    fn span(&self, stream: &Stream, index: usize) -> Result<Span> {
        let store = &self.description.stores[index];
        let target = self.targets.get(&(index, how(stream, store))).cloned();
        let target = target.ok_or_else(|| Error::invalid(format!("{} is not open", store.place)))?;
        let has = target.size();
        let room = has.saturating_sub(store.offset);
        let size = store.size.unwrap_or(room) / SECTOR * SECTOR;
        if size > room {
            let what =
                format!("{} has {has} bytes; {size} from {} on are asked for", store.place, store.offset);
            return Err(Error::invalid(what));
        }
        let (from, to) = stream.walk.range.map_or((0, size), |range| range.of(size));
        let len = to.saturating_sub(from);
        if len < u64::from(stream.longest()) {
            let what = format!(
                "workload '{}': requests of {} bytes do not fit into {len} bytes of {}",
                stream.name,
                stream.longest(),
                store.place
            );
            return Err(Error::invalid(what));
        }
        let written = if stream.verify { self.written.get(&store.place).cloned() } else { None };
        Ok(Span { target, is_cold: store.cold, first: store.offset + from, len, written })
    }

    /// The places of a run that are verified, with a target of each.
    pub fn verified(&self, run: &Run) -> Vec<(Arc<dyn Target>, Arc<Written>)> {
        let mut found: BTreeMap<&str, (Arc<dyn Target>, Arc<Written>)> = BTreeMap::new();
        for stream in run.streams.iter().filter(|s| s.verify) {
            for index in &stream.stores {
                let store = &self.description.stores[*index];
                let target = self.targets.get(&(*index, how(stream, store)));
                if let (Some(target), Some(written)) = (target, self.written.get(&store.place)) {
                    found.insert(&store.place, (target.clone(), written.clone()));
                }
            }
        }
        found.into_values().collect()
    }
}
