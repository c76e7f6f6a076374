//! What happens to pools, in the daemon's log.
//!
//! ```text
//!   every INTERVAL: a report of each open pool ─▶ Journal::note: what is new since the last one ─▶ lines
//! ```
//!
//! A line says which pool, which device, how many errors since the last line, and how many in all. Errors come by the
//! thousand, lines do not: the first ones of a device are told at once, those that follow once in [`QUIET`], together.
//! Devices and pools that change their state, data errors and a suspension are told each.
//!
//! Not here: counting (`vdev`), what is told to a person who asks (`zpool status`).

use crate::appliance::Appliance;
use crate::pools::events::Look;
use crate::pools::seen::leaves;
use api::DataErrors;
use futures_util::future::select;
use pool::PoolReport;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::PoisonError;
use std::time::Duration;
use tracing::Level;
use units::Guid;
use vdev::{Errors, Health, VdevStatus};
use world::Instant;

/// How often pools are looked at.
const INTERVAL: Duration = Duration::from_secs(2);
/// How often errors of one device are told at most.
const QUIET: Duration = Duration::from_secs(60);
/// So many data errors are told one by one; then only how many there are.
const TOLD_MAX: usize = 20;

impl Appliance {
    /// Logs what happens to pools from now on, until the appliance stops.
    pub fn begin_journal(&self) {
        let appliance = self.clone();
        let task = world::spawn(async move {
            let mut journal = Journal::default();
            let ending = &appliance.0.watch.ending;
            while !ending.is_set() {
                appliance.note_pools(&mut journal).await;
                select(pin!(world::sleep(INTERVAL)), pin!(ending.wait())).await;
            }
            appliance.note_pools(&mut journal).await;
        });
        *self.0.watch.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }

    pub(crate) async fn end_journal(&self) {
        self.0.watch.ending.set();
        let task = self.0.watch.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            task.await;
        }
    }

    async fn note_pools(&self, journal: &mut Journal) {
        let looks = self.look_at_pools().await;
        self.look_for_events(&looks);
        journal.forget_all_but(&looks);
        for Look { report, errors, .. } in &looks {
            for (level, line) in journal.note(world::now(), report, errors) {
                match level {
                    Level::ERROR => tracing::error!("{line}"),
                    Level::WARN => tracing::warn!("{line}"),
                    _ => tracing::info!("{line}"),
                }
            }
        }
    }
}

/// What was told, by pool.
#[derive(Debug, Default)]
struct Journal(BTreeMap<Guid, Seen>);

#[derive(Debug, Default)]
struct Seen {
    health: Option<Health>,
    is_suspended: bool,
    /// The data errors that were told of, or counted, as far as they are still there.
    told: BTreeSet<String>,
    /// How many blocks had no name.
    more: u64,
    devices: BTreeMap<Guid, Device>,
}

#[derive(Debug, Default)]
struct Device {
    health: Option<Health>,
    errors: Errors,
    told: Option<Instant>,
}

impl Journal {
    /// A pool that comes back is a new one.
    fn forget_all_but(&mut self, looks: &[Look]) {
        self.0.retain(|guid, _| looks.iter().any(|look| look.report.guid == *guid));
    }

    /// What is new in a report. Pure.
    fn note(&mut self, now: Instant, report: &PoolReport, errors: &DataErrors) -> Vec<(Level, String)> {
        let seen = self.0.entry(report.guid).or_default();
        let name = &report.name;
        let mut lines = Vec::new();
        for device in leaves(&report.vdevs) {
            let line = seen.devices.entry(device.guid).or_default().note(now, device);
            lines.extend(line.into_iter().map(|(level, line)| (level, format!("pool {name}: {line}"))));
        }
        if seen.health != Some(report.health) {
            let is_first = seen.health.replace(report.health).is_none();
            let word = report.health.word();
            match word {
                "ONLINE" if is_first => {}
                "ONLINE" => lines.push((Level::INFO, format!("pool {name} is ONLINE again"))),
                _ => lines
                    .push((Level::WARN, format!("pool {name} is {word}; 'zpool status {name}' says why"))),
            }
        }
        lines.extend(seen.note_data_errors(name, errors));
        if report.suspended.is_some() != seen.is_suspended {
            seen.is_suspended = report.suspended.is_some();
            lines.push(match &report.suspended {
                Some(why) => (Level::ERROR, format!("pool {name} is suspended: {why}")),
                None => (Level::INFO, format!("pool {name} is not suspended any more")),
            });
        }
        lines
    }
}

impl Seen {
    fn note_data_errors(&mut self, name: &str, errors: &DataErrors) -> Vec<(Level, String)> {
        let all: BTreeSet<String> = errors.names.iter().chain(&errors.problems).cloned().collect();
        self.told.retain(|told| all.contains(told));
        let room = TOLD_MAX.saturating_sub(self.told.len());
        let new: Vec<String> = all.into_iter().filter(|one| !self.told.contains(one)).collect();
        let mut lines: Vec<(Level, String)> =
            new.iter().take(room).map(|e| (Level::ERROR, format!("pool {name}: data error: {e}"))).collect();
        let nameless = errors.more.saturating_sub(std::mem::replace(&mut self.more, errors.more));
        let more = new.len().saturating_sub(room) as u64 + nameless;
        self.told.extend(new);
        if more > 0 {
            let all = errors.count();
            lines.push((
                Level::ERROR,
                format!(
                    "pool {name}: {more} more data errors, {all} in all; 'zpool status -v {name}' lists them"
                ),
            ));
        }
        lines
    }
}

impl Device {
    fn note(&mut self, now: Instant, status: &VdevStatus) -> Vec<(Level, String)> {
        let name = status.path.as_deref().unwrap_or(&status.name);
        let mut lines = Vec::new();
        let (all, told) = (status.errors, self.errors);
        let is_cleared = all.read < told.read || all.write < told.write || all.checksum < told.checksum;
        let told = if is_cleared { Errors::default() } else { told };
        let new = [
            (all.read - told.read, all.read, "read"),
            (all.write - told.write, all.write, "write"),
            (all.checksum - told.checksum, all.checksum, "checksum"),
        ];
        let is_quiet = self.told.is_some_and(|told| now.since(told) < QUIET);
        let is_news = self.health != Some(status.health);
        let counted: Vec<String> = new
            .iter()
            .filter(|(new, ..)| *new > 0)
            .map(|(new, all, kind)| format!("{new} {kind} errors, {all} since they were cleared"))
            .collect();
        if !counted.is_empty() && (!is_quiet || is_news) {
            lines.push((Level::WARN, format!("{name}: {}", counted.join("; "))));
            (self.errors, self.told) = (all, Some(now));
        } else if is_cleared {
            self.errors = told;
        }
        if is_news {
            let is_first = self.health.replace(status.health).is_none();
            let complaint = status.complaints().pop();
            match (complaint, status.health == Health::ONLINE) {
                (Some(complaint), _) => lines.push((Level::WARN, complaint)),
                (None, true) if is_first => {}
                (None, true) => lines.push((Level::INFO, format!("{name} is ONLINE again"))),
                (None, false) => {
                    let (word, why) = (status.health.word(), status.health.aux.phrase());
                    lines.push((Level::WARN, format!("{name} is {word}: {why}")));
                }
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests;
