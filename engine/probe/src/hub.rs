//! Where statistics are opened, and where the places that tell events find out whether anything is open.
//!
//! ```text
//!   place ── probe.tell(event) ── nothing open of its family: one load, and that is all
//!                 └── this thread's part of each open statistic (TLS), renewed when the family's epoch has moved
//!   hub.open(query) ──▶ Opened ── take() ──▶ Sample            dropping it closes the statistic
//!   hub.record(query) ──▶ Recording ── take() ──▶ Taped        each event by itself ([`crate::tape`])
//!   hub.source(name, …)  what is asked, not told
//! ```
//!
//! A daemon has one hub, shared by its pools and fronts; a test has its own, so that simulated pools do not count into
//! each other. An event is told on the thread where it happens, without a lock; what it costs is one pass over what the open
//! statistics of its family need of it ([`crate::rows`]).

use crate::breakdown::Breakdown;
use crate::counter::{Counter, Facts, Mine, lock};
use crate::event::{Event, Label, Labels};
use crate::query::Query;
use crate::rows::Rows;
use crate::sample::{Reading, Sample};
use crate::source::{Asked, Source, Sources};
use crate::statistics::{Family, Statistic, Taken};
use crate::tape::{Lane, Tape, Taped};
use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, Weak};
use units::{HashSet, Result};

/// Open statistics of one family.
struct Listeners {
    /// 0 while there are none; otherwise another number after each change.
    epoch: AtomicU64,
    /// One of them tells files apart.
    wants_files: AtomicBool,
    state: Mutex<ListenerState>,
}

#[derive(Default)]
struct ListenerState {
    changes: u64,
    open: Vec<Arc<Counter>>,
    tapes: Vec<Arc<Tape>>,
}

impl Listeners {
    fn new() -> Arc<Listeners> {
        let (epoch, wants_files) = (AtomicU64::new(0), AtomicBool::new(false));
        Arc::new(Listeners { epoch, wants_files, state: Mutex::default() })
    }

    fn change(&self, change: impl FnOnce(&mut ListenerState)) {
        let mut state = lock(&self.state);
        change(&mut state);
        state.changes += 1;
        self.wants_files.store(state.open.iter().any(|counter| counter.is_of_files()), Relaxed);
        let is_none = state.open.is_empty() && state.tapes.is_empty();
        self.epoch.store(if is_none { 0 } else { state.changes }, Relaxed);
    }
}

/// See the module. Clones are the same hub.
#[derive(Clone)]
pub struct Hub(Arc<Inner>);

struct Inner {
    families: Box<[Arc<Listeners>]>,
    labels: Mutex<Words>,
    sources: Arc<Sources>,
}

/// Labels in use, so that equal ones are the same.
#[derive(Default)]
struct Words {
    all: HashSet<Arc<str>>,
    /// Looked through for those that are not in use any more when there are so many.
    limit: usize,
}

impl Default for Hub {
    fn default() -> Hub {
        let families = Family::ALL.iter().map(|_| Listeners::new()).collect();
        Hub(Arc::new(Inner { families, labels: Mutex::default(), sources: Arc::default() }))
    }
}

impl Hub {
    pub fn new() -> Hub {
        Hub::default()
    }

    /// Begins to count what `query` asks for. Fails when it asks a source for what that does not tell apart.
    pub fn open(&self, query: &Query) -> Result<Opened> {
        let kind = match query.statistic.taken {
            Taken::Told(family, _) => {
                let (listeners, counter) =
                    (self.listeners(family).clone(), Counter::new(query, |word| self.label(word))?);
                listeners.change(|state| state.open.push(counter.clone()));
                Open::Told { listeners, counter }
            }
            Taken::Gauge | Taken::Counter | Taken::Busy => {
                Open::Asked(Asked::new(query.clone(), self.0.sources.clone())?)
            }
        };
        Ok(Opened { kind, query: query.clone() })
    }

    /// Records each event that `query` filters, by itself, until what is answered is dropped. At most `capacity` of them are
    /// held until they are taken; further ones are counted as dropped. Its breakdown means nothing. Fails of a statistic
    /// whose events are not told. Must be called where there is a [`world`].
    pub fn record(&self, query: &Query, capacity: usize) -> Result<Recording> {
        let Taken::Told(family, _) = query.statistic.taken else {
            let name = query.statistic.name;
            return Err(units::Error::invalid(format!(
                "{name} is asked at times; it has no events to record"
            )));
        };
        let tape = Tape::new(query, |word| self.label(word), capacity)?;
        let listeners = self.listeners(family).clone();
        listeners.change(|state| state.tapes.push(tape.clone()));
        Ok(Recording { listeners, tape })
    }

    /// A place where events of `family` happen. Labels that are empty are left out.
    pub fn probe(&self, family: Family, labels: &[(Breakdown, &str)]) -> Probe {
        let mut all = Labels::default();
        for (by, text) in labels.iter().filter(|(_, text)| !text.is_empty()) {
            all.set(*by, self.label(text));
        }
        Probe { listeners: self.listeners(family).clone(), labels: Arc::new(all) }
    }

    /// The same place for events of another family: its labels are there once.
    pub fn beside(&self, probe: &Probe, family: Family) -> Probe {
        Probe { listeners: self.listeners(family).clone(), labels: probe.labels.clone() }
    }

    /// The word for `text`, the same for each caller; kept while it is in use.
    pub fn label(&self, text: &str) -> Label {
        let mut words = lock(&self.0.labels);
        if let Some(known) = words.all.get(text) {
            return Label(known.clone());
        }
        if words.all.len() >= words.limit {
            words.all.retain(|word| Arc::strong_count(word) > 1);
            words.limit = (words.all.len() * 2).max(1024);
        }
        let word: Arc<str> = text.into();
        words.all.insert(word.clone());
        Label(word)
    }

    /// Has the statistic ask `source`, besides others, until the registration is dropped. The source is given the
    /// breakdown that is wanted, and must neither wait nor use the hub.
    ///
    /// Such a source takes filters of one breakdown only; [`Hub::readings`] takes all.
    pub fn source(
        &self,
        statistic: &str,
        source: Arc<dyn Fn(Option<Breakdown>) -> Sample + Send + Sync>,
    ) -> Registration {
        self.register(statistic, Source::Samples(source))
    }

    /// The same, where the source says all its values, each with what it is of.
    pub fn readings(
        &self,
        statistic: &str,
        source: Arc<dyn Fn() -> Vec<Reading> + Send + Sync>,
    ) -> Registration {
        self.register(statistic, Source::Readings(source))
    }

    /// Whether there is a source of the statistic now. One without has the value 0.
    pub fn has_source(&self, statistic: &str) -> bool {
        self.0.sources.has(statistic)
    }

    fn register(&self, statistic: &str, source: Source) -> Registration {
        let row = Statistic::named(statistic);
        let row = row.filter(|row| !matches!(row.taken, Taken::Told(..)));
        let name = row.unwrap_or_else(|| panic!("no statistic '{statistic}' that is asked")).name;
        Registration { id: self.0.sources.add(name, source), sources: self.0.sources.clone() }
    }

    fn listeners(&self, family: Family) -> &Arc<Listeners> {
        &self.0.families[family.index()]
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open: usize = self.0.families.iter().map(|family| lock(&family.state).open.len()).sum();
        write!(f, "Hub({open} statistics open that are told)")
    }
}

/// A source that is asked until this is dropped.
#[must_use = "the source is asked only while this is kept"]
pub struct Registration {
    id: u64,
    sources: Arc<Sources>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.sources.remove(self.id);
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registration({})", self.id)
    }
}

/// A statistic that is being counted, until this is dropped.
pub struct Opened {
    kind: Open,
    query: Query,
}

enum Open {
    Told { listeners: Arc<Listeners>, counter: Arc<Counter> },
    Asked(Asked),
}

impl Opened {
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// What was told since the last look, or since it was opened; of a gauge what it is now. Waits for nothing. Only for
    /// statistics in percent it must be called where there is a [`world`].
    pub fn take(&self) -> Sample {
        match &self.kind {
            Open::Told { counter, .. } => counter.take(),
            Open::Asked(asked) => asked.take(),
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Open::Told { listeners, counter } = &self.kind {
            listeners.change(|state| state.open.retain(|other| !Arc::ptr_eq(other, counter)));
        }
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opened({})", self.query)
    }
}

/// Events that are being recorded, until this is dropped.
pub struct Recording {
    listeners: Arc<Listeners>,
    tape: Arc<Tape>,
}

impl Recording {
    /// At most `most` of the events since the last time, and how many were dropped since then. Waits for nothing.
    pub fn take(&self, most: usize) -> Taped {
        self.tape.take(most)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.listeners.change(|state| state.tapes.retain(|other| !Arc::ptr_eq(other, &self.tape)));
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recording")
    }
}

/// A place where events of one family happen. Clones are the same place.
#[derive(Clone)]
pub struct Probe {
    listeners: Arc<Listeners>,
    labels: Arc<Labels>,
}

impl Probe {
    /// Where nothing is told: for what runs alone.
    pub fn none() -> Probe {
        Probe { listeners: Listeners::new(), labels: Arc::default() }
    }

    /// Whether anything counts what happens here.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.listeners.epoch.load(Relaxed) != 0
    }

    /// Whether anything that is open here tells files apart, so that events should say of which they are.
    #[inline]
    pub fn wants_files(&self) -> bool {
        self.listeners.wants_files.load(Relaxed)
    }

    /// Tells an event, which is made only when something counts it. Never waits.
    #[inline]
    pub fn tell<'a>(&self, event: impl FnOnce() -> Event<'a>) {
        let epoch = self.listeners.epoch.load(Relaxed);
        if epoch != 0 {
            self.told(epoch, event());
        }
    }

    fn told(&self, epoch: u64, event: Event<'_>) {
        let facts = Facts::new(event, &self.labels);
        let told = HERE.try_with(|here| here.borrow_mut().part(&self.listeners, epoch).count(&facts));
        if told.is_err() {
            // This thread is ending, and has nothing of its own any more.
            Part::join(&self.listeners).count(&facts);
        }
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Probe({:?})", self.labels)
    }
}

thread_local! {
    static HERE: RefCell<Here> = const { RefCell::new(Here(Vec::new())) };
}

/// What this thread counts, of each family that was told here.
struct Here(Vec<Part>);

/// This thread's part of the open statistics of a family.
struct Part {
    of: Weak<Listeners>,
    epoch: u64,
    rows: Rows,
    /// Of the statistics that rows cannot count.
    aside: Vec<Mine>,
    lanes: Vec<Arc<Lane>>,
}

impl Here {
    fn part(&mut self, listeners: &Arc<Listeners>, epoch: u64) -> &mut Part {
        let at = self.0.iter().position(|part| std::ptr::eq(part.of.as_ptr(), Arc::as_ptr(listeners)));
        match at {
            Some(at) if self.0[at].epoch == epoch => &mut self.0[at],
            at => self.renew(at, listeners),
        }
    }

    #[cold]
    fn renew(&mut self, at: Option<usize>, listeners: &Arc<Listeners>) -> &mut Part {
        if let Some(at) = at {
            self.0.swap_remove(at);
        }
        // What no open statistic counts any more is let go of at the next change of anything.
        self.0.retain(|part| part.of.upgrade().is_some_and(|l| l.epoch.load(Relaxed) != 0));
        self.0.push(Part::join(listeners));
        let last = self.0.len() - 1;
        &mut self.0[last]
    }
}

impl Part {
    fn join(listeners: &Arc<Listeners>) -> Part {
        let state = lock(&listeners.state);
        let (in_rows, aside): (Vec<_>, Vec<_>) =
            state.open.iter().cloned().partition(|counter| counter.column().is_some());
        Part {
            of: Arc::downgrade(listeners),
            epoch: state.changes,
            rows: Rows::new(in_rows),
            aside: aside.iter().map(Counter::join).collect(),
            lanes: state.tapes.iter().map(Tape::join).collect(),
        }
    }

    fn count(&mut self, facts: &Facts<'_>) {
        self.lanes.iter().for_each(|lane| lane.record(facts));
        self.rows.count(facts);
        self.aside.iter_mut().for_each(|counter| counter.count(facts));
    }
}

#[cfg(test)]
mod tests;
