//! What an open statistic that is told counts, and how a sample comes of it.
//!
//! ```text
//!   Counter (one for each open statistic)
//!     ├ List of thread A    rows that A counts for all open statistics of the family: see `rows`
//!     ├ Table of thread A   what rows cannot hold: by offset, by file, and events of places beyond the number of rows.
//!     │                     cells: only A adds to them, plain load, add, store; names of the cells, if they have any
//!     ├ List, Table of thread B
//!     └ take()              what each cell has more than at the last look
//! ```
//!
//! Cells only grow, so that a reader need not stop a writer and nothing is lost between two looks. A thread exchanges
//! its table for another when it is full of words that are not told any more, or when an offset lies beyond its last
//! bucket; the old one is read a last time once its thread has let go of it.
//!
//! ```text
//!   breakdown      cell
//!   none           0
//!   operation      its place in the table of operations
//!   words          0: all further ones; then in the order in which this thread met them
//!   size, latency  its bucket
//!   offset         offset >> shift, of 256; the shift grows with the largest offset that was seen
//! ```

use crate::breakdown::{Breakdown, Field};
use crate::event::{Event, Label, Labels, key_of};
use crate::histogram::Scale;
use crate::names::Op;
use crate::query::{Compare, Filter, Operand, Query};
use crate::rows::{Column, List, Row};
use crate::sample::{Key, Sample, WORDS_MAX};
use crate::statistics::{Measure, Taken};
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{Error, HashMap, Result};

const OFFSETS: usize = 256;
/// A mebibyte: the buckets of a small volume.
const OFFSET_SHIFT: u32 = 20;
/// Tables of words begin small.
const WORDS_FIRST: usize = 31;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that can panic runs under these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How an event finds its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Whole,
    Op,
    Words(Field),
    Buckets(Scale, Field),
    Offset,
}

impl By {
    fn of(breakdown: Option<Breakdown>) -> By {
        let Some(breakdown) = breakdown else { return By::Whole };
        match (breakdown.field(), breakdown.scale()) {
            (Field::Op, _) => By::Op,
            (Field::Offset, _) => By::Offset,
            (field, Some(scale)) => By::Buckets(scale, field),
            (field, None) => By::Words(field),
        }
    }
}

/// A filter by a word, ready to be held against an event.
#[derive(Debug)]
struct Word {
    field: Field,
    wanted: Arc<str>,
    is: bool,
}

/// A filter by a number; both ends belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    field: Field,
    from: u64,
    to: u64,
    is: bool,
}

impl Range {
    fn of(filter: &Filter, number: u64) -> Result<Range> {
        let field = filter.by.field();
        let is = filter.compare != Compare::IsNot;
        let (from, to) = match filter.compare {
            Compare::AtLeast => (number, u64::MAX),
            Compare::AtMost => (0, number),
            // An empty range, where nothing is above or below.
            Compare::Above => (number.saturating_add(1), if number == u64::MAX { 0 } else { u64::MAX }),
            Compare::Below if number == 0 => (1, 0),
            Compare::Below => (0, number - 1),
            Compare::Is | Compare::IsNot => {
                let Some(scale) = filter.by.scale() else {
                    let by = filter.by;
                    return Err(Error::invalid(format!("{by} is compared with >=, >, < or <=, not with =")));
                };
                let (from, to) = scale.bounds(scale.bucket(number));
                (from, if to == u64::MAX { to } else { to - 1 })
            }
        };
        Ok(Range { field, from, to, is })
    }

    #[inline]
    pub fn passes(&self, facts: &Facts<'_>) -> bool {
        (self.from..=self.to).contains(&facts.number(self.field)) == self.is
    }
}

impl Word {
    fn passes(&self, facts: &Facts<'_>) -> bool {
        match self.field {
            // Most often the label is the same one.
            Field::Label(index) if facts.labels.key(index) == key_of(&self.wanted) => self.is,
            field => (facts.word(field) == &*self.wanted) == self.is,
        }
    }
}

/// What must hold for an event to be counted.
#[derive(Debug, Default)]
pub(crate) struct Tests {
    words: Box<[Word]>,
    ranges: Box<[Range]>,
}

impl Tests {
    pub fn of(query: &Query, label: impl Fn(&str) -> Label) -> Result<Tests> {
        let (mut words, mut ranges) = (Vec::new(), Vec::new());
        for filter in &query.filters {
            match &filter.operand {
                Operand::Number(number) => ranges.push(Range::of(filter, *number)?),
                Operand::Word(word) => words.push(Word {
                    field: filter.by.field(),
                    wanted: label(word).0,
                    is: filter.compare != Compare::IsNot,
                }),
            }
        }
        Ok(Tests { words: words.into(), ranges: ranges.into() })
    }

    pub fn pass(&self, facts: &Facts<'_>) -> bool {
        self.words.iter().all(|test| test.passes(facts)) && self.ranges.iter().all(|test| test.passes(facts))
    }
}

/// An event and its place.
pub(crate) struct Facts<'a> {
    pub event: Event<'a>,
    pub labels: &'a Arc<Labels>,
    pub nanos: u64,
}

/// What stands for a word that is not there.
const NONE: &str = "-";

impl<'a> Facts<'a> {
    #[inline]
    pub fn new(event: Event<'a>, labels: &'a Arc<Labels>) -> Facts<'a> {
        let nanos = event.nanos();
        Facts { event, labels, nanos }
    }

    #[inline]
    pub fn amount(&self, measure: Measure) -> u64 {
        match measure {
            Measure::Events => 1,
            Measure::Bytes => self.event.bytes,
            Measure::Time => self.nanos,
            Measure::Spent => self.event.spent_nanos(),
        }
    }

    /// See [`key_of`]; 0 for a word that is not there.
    fn key(&self, field: Field) -> usize {
        match field {
            Field::Label(index) => self.labels.key(index),
            Field::Kind if !self.event.kind.is_empty() => key_of(self.event.kind),
            Field::File => self.event.file.map_or(0, |label| key_of(label.as_str())),
            _ => 0,
        }
    }

    fn word(&self, field: Field) -> &'a str {
        let word = match field {
            Field::Op => self.event.op.name(),
            Field::Kind => self.event.kind,
            Field::Label(index) => self.labels.get(index).map_or("", Label::as_str),
            Field::File => self.event.file.map_or("", Label::as_str),
            _ => "",
        };
        if word.is_empty() { NONE } else { word }
    }

    #[inline]
    pub fn number(&self, field: Field) -> u64 {
        match field {
            Field::Bytes => self.event.bytes,
            Field::Latency => self.nanos,
            Field::Offset => self.event.offset,
            Field::Writers => self.event.writers,
            _ => 0,
        }
    }

    /// The word to be kept.
    fn name(&self, field: Field) -> Name {
        let label = match field {
            Field::Label(index) => self.labels.get(index),
            Field::File => self.event.file,
            _ => None,
        };
        match label {
            Some(label) if !label.as_str().is_empty() => Name::Label(label.0.clone()),
            Some(_) => Name::Fixed(NONE),
            None => Name::Fixed(match field {
                Field::Kind if !self.event.kind.is_empty() => self.event.kind,
                _ => NONE,
            }),
        }
    }
}

/// A table that has a name keeps its bytes where they are, so that their address stands for it.
enum Name {
    Fixed(&'static str),
    Label(Arc<str>),
}

impl Name {
    fn text(&self) -> Arc<str> {
        match self {
            Name::Fixed(text) => (*text).into(),
            Name::Label(text) => text.clone(),
        }
    }
}

/// What one thread has counted.
struct Table {
    cells: Box<[AtomicU64]>,
    /// Of the cells from the second on, of a breakdown by words.
    names: Mutex<Vec<Name>>,
    /// The width of the cells of offsets, as a power of two.
    shift: u32,
    /// Words did not fit; another table should take its place.
    is_full: AtomicBool,
}

impl Table {
    fn new(cells: usize, shift: u32) -> Arc<Table> {
        let cells = (0..cells).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Table { cells, names: Mutex::default(), shift, is_full: AtomicBool::new(false) })
    }
}

/// See the module.
pub(crate) struct Counter {
    by: By,
    measure: Measure,
    words: Box<[Word]>,
    ranges: Box<[Range]>,
    shift: AtomicU32,
    /// Lists of rows that no look has seen yet, and where in a row this statistic begins.
    lists: Mutex<Vec<(Arc<List>, usize)>>,
    /// Those that no look has seen yet.
    begun: Mutex<Vec<Arc<Table>>>,
    looks: Mutex<Looks>,
}

#[derive(Default)]
struct Looks {
    tables: Vec<Look>,
    lists: Vec<ListLook>,
}

/// A list of rows as it was at the last look.
struct ListLook {
    list: Arc<List>,
    base: usize,
    /// Of each row so far what was seen of its cells; nothing of a row that the filters by words keep out.
    rows: Vec<Option<(Arc<Row>, Vec<u64>)>>,
    has_told: bool,
}

/// A table as it was at the last look.
struct Look {
    table: Arc<Table>,
    seen: Vec<u64>,
}

impl Counter {
    pub fn new(query: &Query, label: impl Fn(&str) -> Label) -> Result<Arc<Counter>> {
        let Taken::Told(_, measure) = query.statistic.taken else {
            unreachable!("only statistics that are told are counted")
        };
        let Tests { words, ranges } = Tests::of(query, label)?;
        Ok(Arc::new(Counter {
            by: By::of(query.breakdown),
            measure,
            words,
            ranges,
            shift: AtomicU32::new(OFFSET_SHIFT),
            lists: Mutex::default(),
            begun: Mutex::default(),
            looks: Mutex::default(),
        }))
    }

    /// It needs to know of which file an event is.
    pub fn is_of_files(&self) -> bool {
        self.by == By::Words(Field::File) || self.words.iter().any(|word| word.field == Field::File)
    }

    /// What rows must count for it; `None` of what they cannot.
    pub fn column(&self) -> Option<Column> {
        let by = match self.by {
            By::Buckets(scale, field) => Some((scale, field)),
            By::Whole | By::Op | By::Words(_) => None,
            By::Offset => return None,
        };
        // Files are too many to have a row each.
        (!self.is_of_files()).then(|| Column { by, measure: self.measure, ranges: self.ranges.clone() })
    }

    /// Has it look at a thread's rows, from this cell of each on.
    pub fn watch(&self, list: Arc<List>, base: usize) {
        lock(&self.lists).push((list, base));
    }

    /// This thread's part of it, until it is dropped.
    pub fn join(self: &Arc<Counter>) -> Mine {
        let cells = match self.by {
            By::Whole => 1,
            By::Op => Op::ALL.len(),
            By::Words(_) => 1 + WORDS_FIRST,
            By::Buckets(scale, _) => scale.buckets(),
            By::Offset => OFFSETS,
        };
        let table = self.begin(cells, self.shift.load(Relaxed));
        Mine {
            by: self.by,
            measure: self.measure,
            has_tests: !(self.words.is_empty() && self.ranges.is_empty()),
            counter: self.clone(),
            table,
            index: HashMap::default(),
            last: None,
        }
    }

    fn begin(&self, cells: usize, shift: u32) -> Arc<Table> {
        let table = Table::new(cells, shift);
        lock(&self.begun).push(table.clone());
        table
    }

    /// What was told since the last look.
    pub fn take(&self) -> Sample {
        let mut looks = lock(&self.looks);
        let begun = std::mem::take(&mut *lock(&self.begun));
        looks.tables.extend(begun.into_iter().map(|table| Look { seen: vec![0; table.cells.len()], table }));
        let lists = std::mem::take(&mut *lock(&self.lists));
        looks.lists.extend(lists.into_iter().map(|(list, base)| ListLook {
            list,
            base,
            rows: Vec::new(),
            has_told: false,
        }));
        let shift = looks.tables.iter().map(|look| look.table.shift).fold(self.shift.load(Relaxed), u32::max);
        let (mut value, mut parts) = (0, Vec::new());
        looks.tables.retain_mut(|look| {
            // Asked before the cells are read: a thread that has let go adds no more.
            let is_last = Arc::strong_count(&look.table) == 1;
            fence(Acquire);
            match self.by {
                By::Whole => value += look.difference(0),
                _ => look.differences(|cell, table, part| parts.push((self.key(cell, table, shift), part))),
            }
            !is_last
        });
        looks.lists.retain_mut(|look| {
            let is_last = look.list.is_over();
            self.look_at(look, |key, part| match self.by {
                By::Whole => value += part,
                _ => parts.push((key, part)),
            });
            !is_last
        });
        if self.by == By::Whole { Sample::whole(value) } else { Sample::of(parts) }
    }

    fn look_at(&self, look: &mut ListLook, mut each: impl FnMut(Key, u64)) {
        let cells = match self.by {
            By::Buckets(scale, _) => scale.buckets(),
            _ => 1,
        };
        let is_full = look.list.more(look.rows.len(), |row| {
            let passes = self.words.iter().all(|word| word.passes(&row.facts()));
            look.rows.push(passes.then(|| (row.clone(), vec![0; cells])));
        });
        if is_full && !std::mem::replace(&mut look.has_told, true) {
            look.list.looked();
        }
        for (row, seen) in look.rows.iter_mut().flatten() {
            for (cell, seen) in seen.iter_mut().enumerate() {
                let now = row.cell(look.base + cell);
                let part = now.wrapping_sub(std::mem::replace(seen, now));
                if part > 0 {
                    let key = match self.by {
                        By::Whole | By::Offset => Key::Other,
                        By::Op => Key::Text(row.facts().event.op.name().into()),
                        By::Words(field) => Key::Text(row.facts().name(field).text()),
                        By::Buckets(scale, _) => {
                            let (from, to) = scale.bounds(cell);
                            Key::Range { from, to }
                        }
                    };
                    each(key, part);
                }
            }
        }
    }

    fn key(&self, cell: usize, table: &Table, shift: u32) -> Key {
        match self.by {
            By::Whole => Key::Other,
            By::Op => Key::Text(Op::ALL[cell].name().into()),
            By::Words(_) if cell == 0 => {
                table.is_full.store(true, Relaxed);
                Key::Other
            }
            By::Words(_) => {
                lock(&table.names).get(cell - 1).map_or(Key::Other, |name| Key::Text(name.text()))
            }
            By::Buckets(scale, _) => {
                let (from, to) = scale.bounds(cell);
                Key::Range { from, to }
            }
            By::Offset => {
                let from = (cell as u64) << table.shift >> shift << shift;
                Key::Range { from, to: from.saturating_add(1 << shift) }
            }
        }
    }
}

impl Look {
    fn difference(&mut self, cell: usize) -> u64 {
        let now = self.table.cells[cell].load(Relaxed);
        now.wrapping_sub(std::mem::replace(&mut self.seen[cell], now))
    }

    fn differences(&mut self, mut each: impl FnMut(usize, &Table, u64)) {
        for cell in 0..self.seen.len() {
            let part = self.difference(cell);
            if part > 0 {
                each(cell, &self.table, part);
            }
        }
    }
}

/// One thread's part of a counter.
pub(crate) struct Mine {
    /// As the counter has them.
    by: By,
    measure: Measure,
    has_tests: bool,
    counter: Arc<Counter>,
    table: Arc<Table>,
    /// Cells of words, by their keys.
    index: HashMap<usize, usize>,
    /// The word that was told last: most often it is told again.
    last: Option<(usize, usize)>,
}

impl Mine {
    #[inline]
    pub fn count(&mut self, facts: &Facts<'_>) {
        let counter = &self.counter;
        if self.has_tests
            && !(counter.words.iter().all(|test| test.passes(facts))
                && counter.ranges.iter().all(|test| test.passes(facts)))
        {
            return;
        }
        let amount = facts.amount(self.measure);
        let cell = match self.by {
            By::Whole => 0,
            By::Op => facts.event.op.index(),
            By::Words(field) => self.word(facts, field),
            By::Buckets(scale, field) => scale.bucket(facts.number(field)),
            By::Offset => self.offset(facts.event.offset),
        };
        let cell = &self.table.cells[cell];
        cell.store(cell.load(Relaxed).wrapping_add(amount), Relaxed);
    }

    fn word(&mut self, facts: &Facts<'_>, field: Field) -> usize {
        let key = facts.key(field);
        match self.last {
            Some((last, cell)) if last == key => cell,
            _ => self.other_word(key, facts, field),
        }
    }

    fn other_word(&mut self, key: usize, facts: &Facts<'_>, field: Field) -> usize {
        let known = self.index.get(&key).copied();
        let cell = known.unwrap_or_else(|| self.new_word(key, facts.name(field)));
        if cell != 0 {
            self.last = Some((key, cell));
        }
        cell
    }

    /// A cell for a word that this table does not have; the first when there is no room.
    #[cold]
    fn new_word(&mut self, key: usize, name: Name) -> usize {
        let used = self.index.len();
        if used + 1 == self.table.cells.len() {
            let is_largest = used >= WORDS_MAX;
            if is_largest && !self.table.is_full.load(Relaxed) {
                return 0;
            }
            let cells = if is_largest { WORDS_FIRST } else { (used * 4).min(WORDS_MAX) };
            self.exchange(1 + cells, self.table.shift);
        }
        lock(&self.table.names).push(name);
        let cell = self.index.len() + 1;
        self.index.insert(key, cell);
        cell
    }

    fn offset(&mut self, offset: u64) -> usize {
        if offset >> self.table.shift >= OFFSETS as u64 {
            let needed = offset.ilog2() + 1 - OFFSETS.ilog2();
            self.counter.shift.fetch_max(needed, Relaxed);
            self.exchange(OFFSETS, self.counter.shift.load(Relaxed));
        }
        (offset >> self.table.shift) as usize
    }

    #[cold]
    fn exchange(&mut self, cells: usize, shift: u32) {
        self.table = self.counter.begin(cells, shift);
        self.index.clear();
        self.last = None;
    }
}
