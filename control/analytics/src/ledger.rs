//! The ledger: changes of settings, each with what the samples say of it.
//!
//! ```text
//!   Recorder::note ──▶ Waiting ── the seconds after it have passed ──▶ Mixed | Short | Idle | Compared
//! ```
//!
//! A change is judged once, by what all open statistics have around it, and the verdict is kept with it: the samples go,
//! the verdict stays. Changes are few and small; all that are kept are in memory, and in the store as rows of their own. As
//! with samples, a crash loses those of the last minute at most.
//!
//! Changes within one second by one command are one step, and are judged alike.
//!
//! Not here: what a difference is worth (`effect`), and where changes are made (`appliance`).

use crate::effect::{self, Judged, Series};
use crate::recorder::Recorder;
use api::analytics::{Data, DataQuery, Granularity, Key, Start};
use api::changes::{Change, Figure, Kind, MOMENTS_WANTED, Setting, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// The oldest are forgotten beyond as many.
const CHANGES_MAX: usize = 10_000;
/// What is kept of a value or a command, in bytes.
const TEXT_MAX: usize = 1_024;

/// What was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewChange {
    pub kind: Kind,
    /// The name of the dataset or pool; empty for tunables.
    pub subject: String,
    pub setting: String,
    pub before: Option<Setting>,
    pub after: Option<Setting>,
    pub command: String,
    pub uid: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    changes: BTreeMap<u64, Change>,
    /// Not in the store as they are: those that are not there any more are to be taken away.
    unwritten: BTreeSet<u64>,
    /// Without a verdict.
    waiting: BTreeSet<u64>,
    /// They are being judged.
    is_judging: bool,
    last: u64,
}

impl Ledger {
    /// What the store had. Changes that were noted before it could be read follow them.
    pub fn begin_with(&mut self, found: BTreeMap<u64, Change>) {
        let first = found.keys().next_back().copied().unwrap_or(0);
        let own = std::mem::replace(&mut self.changes, found);
        self.unwritten.clear();
        self.waiting.clear();
        self.last = first;
        for (_, change) in own {
            self.last += 1;
            self.unwritten.insert(self.last);
            self.changes.insert(self.last, Change { number: self.last, ..change });
        }
        let waiting = self.changes.values().filter(|c| c.verdict == Verdict::Waiting);
        self.waiting = waiting.map(|change| change.number).collect();
        self.bound();
    }

    fn add(&mut self, time: u64, new: NewChange) {
        self.last += 1;
        let change = Change {
            number: self.last,
            time,
            kind: new.kind,
            subject: new.subject,
            setting: new.setting,
            inherited: new.before.as_ref().is_some_and(|before| !before.is_own),
            before: new.before.map(|before| cut(before.value)),
            after: new.after.map(|after| cut(after.value)),
            command: cut(new.command),
            uid: new.uid,
            verdict: Verdict::Waiting,
            until: time + effect::GAP + effect::WINDOW,
            with: 0,
            moments: 0,
            figures: Vec::new(),
        };
        self.unwritten.insert(self.last);
        self.waiting.insert(self.last);
        self.changes.insert(self.last, change);
        self.bound();
    }

    fn bound(&mut self) {
        while self.changes.len() > CHANGES_MAX
            && let Some((number, _)) = self.changes.pop_first()
        {
            self.unwritten.insert(number);
            self.waiting.remove(&number);
        }
    }

    /// All, the oldest first.
    pub fn all(&self) -> Vec<Change> {
        self.changes.values().cloned().collect()
    }

    /// Those that can be judged now, and were not.
    fn due(&self, last: u64) -> Vec<u64> {
        let waiting = self.waiting.iter().filter_map(|number| self.changes.get(number));
        let due = waiting.filter(|c| c.until <= last);
        due.map(|change| change.number).collect()
    }

    fn settle(&mut self, number: u64, found: Found) {
        self.waiting.remove(&number);
        if let Some(change) = self.changes.get_mut(&number) {
            (change.verdict, change.with, change.moments) = (found.verdict, found.with, found.moments);
            change.figures = found.figures;
            self.unwritten.insert(number);
        }
    }

    /// Rows that the store has not: `None` for one that is to go.
    pub fn to_write(&self) -> BTreeMap<u64, Option<Change>> {
        self.unwritten.iter().map(|number| (*number, self.changes.get(number).cloned())).collect()
    }

    pub fn written(&mut self, rows: &BTreeMap<u64, Option<Change>>) {
        self.unwritten.retain(|number| rows.get(number) != Some(&self.changes.get(number).cloned()));
    }

    /// A store that was begun anew has none.
    pub fn not_written(&mut self) {
        self.unwritten.extend(self.changes.keys());
    }
}

/// What came of judging a change.
struct Found {
    verdict: Verdict,
    with: u64,
    moments: u64,
    figures: Vec<Figure>,
}

impl Found {
    fn new(verdict: Verdict) -> Found {
        Found { verdict, with: 0, moments: 0, figures: Vec::new() }
    }
}

fn cut(mut text: String) -> String {
    let mut end = text.len().min(TEXT_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

impl Recorder {
    /// Notes what was changed just now.
    pub fn note(&self, changes: impl IntoIterator<Item = NewChange>) {
        let now = world::wall_clock().seconds;
        let mut state = self.state();
        changes.into_iter().for_each(|change| state.ledger.add(now, change));
    }

    /// All changes that are kept, the oldest first.
    pub fn changes(&self) -> Vec<Change> {
        self.state().ledger.all()
    }

    /// Judges what can be judged now, beside the samples, which go on.
    pub(crate) fn judge_due(&self) {
        let due = {
            let mut state = self.state();
            let due = state.ledger.due(state.last);
            if due.is_empty() || state.ledger.is_judging {
                return;
            }
            state.ledger.is_judging = true;
            due
        };
        let own = self.clone();
        world::spawn(async move {
            for number in due {
                let found = own.judge(number).await;
                own.state().ledger.settle(number, found);
            }
            own.state().ledger.is_judging = false;
        });
    }

    async fn judge(&self, number: u64) -> Found {
        let changes = self.changes();
        let Some(change) = changes.iter().find(|change| change.number == number) else {
            return Found::new(Verdict::Idle);
        };
        let from = change.time.saturating_sub(effect::HISTORY);
        let other = |c: &&Change| c.time != change.time || c.command != change.command;
        let compared = change.time.saturating_sub(effect::WINDOW)..change.time + effect::GAP + effect::WINDOW;
        if let Some(other) = changes.iter().filter(other).find(|c| compared.contains(&c.time)) {
            return Found { with: other.number, ..Found::new(Verdict::Mixed) };
        }
        let places: Vec<usize> = changes
            .iter()
            .filter(other)
            .filter_map(|c| usize::try_from(c.time.checked_sub(from)?).ok())
            .filter(|place| *place < effect::LENGTH)
            .collect();
        let (mut names, mut all) = (Vec::new(), Vec::new());
        for dataset in self.datasets() {
            let query = DataQuery {
                name: dataset.name.clone(),
                start: Start::At(from),
                seconds: effect::LENGTH as u64,
                granularity: Granularity::Second,
            };
            // One that was destroyed meanwhile tells nothing.
            let Ok(data) = self.data_aside(&query).await else { continue };
            let unit = if data.scale.is_empty() { data.unit.clone() } else { data.scale.clone() };
            names.push((dataset.name, unit));
            all.push(series(&data, from));
        }
        let judged = effect::judge(&all, |range| !places.iter().any(|place| range.contains(place)));
        match judged {
            Judged::Idle => Found::new(Verdict::Idle),
            Judged::Short(moments) => Found { moments: moments as u64, ..Found::new(Verdict::Short) },
            Judged::Known { moments, figures } => {
                let figures = names.into_iter().zip(figures).filter_map(|((dataset, unit), compared)| {
                    let compared = compared?;
                    Some(Figure {
                        dataset,
                        unit,
                        before: compared.before.round() as u64,
                        after: compared.after.round() as u64,
                        rivals: compared.rivals as u64,
                        is_effect: compared.is_effect,
                    })
                });
                let (moments, figures) = (moments as u64, figures.collect());
                Found { moments, figures, ..Found::new(Verdict::Compared) }
            }
        }
    }
}

const _: () = assert!(effect::MOMENTS_MIN as u64 == MOMENTS_WANTED);

/// Second by second: the value; of what is broken down by ranges their mean, where there is something.
fn series(data: &Data, from: u64) -> Series {
    let mut series: Series = vec![None; effect::LENGTH];
    for point in &data.points {
        let place = point.sample.checked_sub(from).and_then(|place| usize::try_from(place).ok());
        let Some(second) = place.and_then(|place| series.get_mut(place)) else { continue };
        *second = if data.scale.is_empty() { Some(point.value as f64) } else { mean(data, &point.parts) };
    }
    series
}

/// Each range counts with its middle.
fn mean(data: &Data, parts: &[api::analytics::Part]) -> Option<f64> {
    let (mut weight, mut sum) = (0.0, 0.0);
    for part in parts {
        let Key::Range(from, to) = part.key else { continue };
        // What is exact in bytes is named by its lower end, as in a heat map.
        let middle = match data.scale.as_str() {
            "bytes" => from as f64,
            _ => (from as f64 + to.min(from.saturating_mul(2)) as f64) / 2.0,
        };
        weight += part.value as f64;
        sum += part.value as f64 * middle;
    }
    (weight > 0.0).then(|| sum / weight)
}
