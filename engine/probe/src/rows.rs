//! What all open statistics of a family need of an event, counted once for all of them.
//!
//! ```text
//!   one thread, one family
//!                              column 0   column 1    column 2            …     each once, however many need it
//!   (place, op, other word)    events     bytes       events by size
//!   client A, read             ▪          ▪           ▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪             a row
//!   client A, write            ▪          ▪           ▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪
//!   client B, read             …
//! ```
//!
//! Words of an event are the same for a whole row, so that a statistic by words, or with filters by words, is made of rows
//! when it is looked at, and costs an event nothing. What remains for an event: to find its row, and an addition for each
//! column. A column is a measure (events, bytes, time), the buckets by which it is told apart, if any, and the filters by
//! numbers that hold for it; statistics that need the same one share it.
//!
//! Rows are bounded: the events of further places are counted for each statistic by itself (`counter`), until all
//! statistics have looked at the full list; then the thread begins another, so that places that came late get rows. The list
//! of a thread is over when its thread drops it, at the end or when statistics were opened or closed.

use crate::breakdown::Field;
use crate::counter::{Counter, Facts, Mine, Range, lock};
use crate::event::{Event, Labels, key_of};
use crate::histogram::Scale;
use crate::names::Op;
use crate::statistics::Measure;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};
use units::HashMap;

/// Places times operations of a busy appliance, with a table of buckets each: some megabytes for a thread at most.
const ROWS_MAX: usize = 1024;
/// Rows that are found without a lookup.
const RECENT: usize = 32;

/// What is counted of each event of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub by: Option<(Scale, Field)>,
    pub measure: Measure,
    pub ranges: Box<[Range]>,
}

impl Column {
    fn cells(&self) -> usize {
        self.by.map_or(1, |(scale, _)| scale.buckets())
    }
}

/// A column as an event meets it.
struct Step {
    /// Its first cell in a row.
    first: usize,
    /// Of the buckets of an event, see [`Rows::count`].
    bucket: usize,
    measure: usize,
    ranges: Box<[Range]>,
}

/// What is counted of all events that agree in their words.
pub(crate) struct Row {
    labels: Arc<Labels>,
    op: Op,
    kind: &'static str,
    cells: Box<[AtomicU64]>,
}

impl Row {
    /// An event of this row; its numbers mean nothing.
    pub fn facts(&self) -> Facts<'_> {
        Facts::new(Event { op: self.op, kind: self.kind, ..Event::default() }, &self.labels)
    }

    pub fn cell(&self, cell: usize) -> u64 {
        self.cells[cell].load(Relaxed)
    }
}

/// The rows of one thread, as its readers have them.
#[derive(Default)]
pub(crate) struct List {
    rows: Mutex<Vec<Arc<Row>>>,
    is_over: AtomicBool,
    is_full: AtomicBool,
    /// Statistics that have looked since it was full.
    looked: AtomicUsize,
}

impl List {
    /// Its thread adds no more. To be asked before the rows are read.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Acquire)
    }

    /// Each row after the first `known`; whether there will be no more.
    pub fn more(&self, known: usize, each: impl FnMut(&Arc<Row>)) -> bool {
        let is_full = self.is_full.load(Acquire);
        let new = lock(&self.rows).get(known..).unwrap_or_default().to_vec();
        new.iter().for_each(each);
        is_full
    }

    pub fn looked(&self) {
        self.looked.fetch_add(1, Relaxed);
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct RowKey {
    labels: usize,
    op: Op,
    kind: usize,
}

impl RowKey {
    #[inline]
    fn of(facts: &Facts<'_>) -> RowKey {
        RowKey {
            labels: Arc::as_ptr(facts.labels).addr(),
            op: facts.event.op,
            kind: key_of(facts.event.kind),
        }
    }

    /// Its place among the recent ones. Labels are larger than 64 bytes.
    #[inline]
    fn place(self) -> usize {
        ((self.labels >> 6) ^ self.op.index() ^ (self.kind >> 3)) % RECENT
    }
}

/// This thread's rows of a family.
pub(crate) struct Rows {
    counters: Vec<Arc<Counter>>,
    /// Each with its first cell.
    columns: Box<[(Column, usize)]>,
    steps: Box<[Step]>,
    cells: usize,
    by: [bool; 3],
    list: Arc<List>,
    /// A row lives as long as the index has it, so that nothing else has the address of its labels.
    index: HashMap<RowKey, Arc<Row>>,
    recent: [Option<(RowKey, Arc<Row>)>; RECENT],
    /// Counts what finds no row.
    without: Vec<Mine>,
}

impl Rows {
    /// For statistics that have a column.
    pub fn new(counters: Vec<Arc<Counter>>) -> Rows {
        let (mut columns, mut cells) = (Vec::<(Column, usize)>::new(), 0);
        for column in counters.iter().filter_map(|counter| counter.column()) {
            if !columns.iter().any(|(known, _)| *known == column) {
                let first = cells;
                cells += column.cells();
                columns.push((column, first));
            }
        }
        let steps: Box<[Step]> = columns
            .iter()
            .map(|(column, first)| Step {
                first: *first,
                bucket: match column.by {
                    None => 0,
                    Some((_, Field::Bytes)) => 1,
                    Some((_, Field::Latency)) => 2,
                    Some(_) => 3,
                },
                measure: match column.measure {
                    Measure::Events => 0,
                    Measure::Bytes => 1,
                    Measure::Time => 2,
                    Measure::Spent => 3,
                },
                ranges: column.ranges.clone(),
            })
            .collect();
        let by = [1, 2, 3].map(|bucket| steps.iter().any(|step| step.bucket == bucket));
        let mut rows = Rows {
            counters,
            columns: columns.into(),
            steps,
            cells,
            by,
            list: Arc::default(),
            index: HashMap::default(),
            recent: [const { None }; RECENT],
            without: Vec::new(),
        };
        rows.begin();
        rows
    }

    /// A new list, which all statistics come to look at.
    fn begin(&mut self) {
        self.list.is_over.store(true, Release);
        self.list = Arc::default();
        self.index.clear();
        self.recent = [const { None }; RECENT];
        self.without.clear();
        for counter in &self.counters {
            let column = counter.column();
            let found = self.columns.iter().find(|(known, _)| Some(known) == column.as_ref());
            if let Some((_, first)) = found {
                counter.watch(self.list.clone(), *first);
            }
        }
    }

    #[inline]
    pub fn count(&mut self, facts: &Facts<'_>) {
        if self.steps.is_empty() {
            return;
        }
        let key = RowKey::of(facts);
        let place = key.place();
        if !matches!(&self.recent[place], Some((known, _)) if *known == key) && !self.find(key, place, facts)
        {
            return;
        }
        let Some((_, row)) = &self.recent[place] else { return };
        let mut buckets = [0; 4];
        for (i, (scale, number)) in [
            (Scale::TRANSFER, facts.event.bytes),
            (Scale::LATENCY, facts.nanos),
            (Scale::NUMBER, facts.event.writers),
        ]
        .into_iter()
        .enumerate()
        {
            if self.by[i] {
                buckets[i + 1] = scale.bucket(number);
            }
        }
        let amounts = [1, facts.event.bytes, facts.nanos, facts.event.spent_nanos()];
        for step in &self.steps {
            if !step.ranges.is_empty() && !step.ranges.iter().all(|range| range.passes(facts)) {
                continue;
            }
            let cell = &row.cells[step.first + buckets[step.bucket]];
            cell.store(cell.load(Relaxed).wrapping_add(amounts[step.measure]), Relaxed);
        }
    }

    /// Puts the event's row among the recent ones; without room for it, counts the event aside and says so.
    #[cold]
    fn find(&mut self, key: RowKey, place: usize, facts: &Facts<'_>) -> bool {
        if !self.index.contains_key(&key) && self.index.len() >= ROWS_MAX {
            if self.list.looked.load(Relaxed) < self.counters.len() {
                self.list.is_full.store(true, Release);
                if self.without.is_empty() {
                    self.without = self.counters.iter().map(Counter::join).collect();
                }
                self.without.iter_mut().for_each(|counter| counter.count(facts));
                return false;
            }
            self.begin();
        }
        let (list, cells) = (&self.list, self.cells);
        let row = self.index.entry(key).or_insert_with(|| {
            let row = Arc::new(Row {
                labels: facts.labels.clone(),
                op: facts.event.op,
                kind: facts.event.kind,
                cells: (0..cells).map(|_| AtomicU64::new(0)).collect(),
            });
            lock(&list.rows).push(row.clone());
            row
        });
        self.recent[place] = Some((key, row.clone()));
        true
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        self.list.is_over.store(true, Release);
    }
}
