//! Schedules as they are kept.

use api::automatic::{Automatic, When};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use store::{Look, Table, Writer};
use units::{Error, Result};

/// By the guids of their datasets, in 16 hexadecimal digits.
pub(super) const SCHEDULES: Table<Record> = Table::new("shares.automatic");

/// The schedules of one dataset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Record {
    /// Where it was last seen, and the guid of its pool.
    pub dataset: String,
    pub pool: u64,
    pub schedules: Vec<Schedule>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Schedule {
    pub id: u32,
    pub when: When,
    pub keep: u32,
    /// What its snapshots say of themselves; no two schedules ever have the same.
    pub tag: String,
    /// From when on it holds.
    pub since: u64,
    /// The moment for which it last took one.
    pub last: u64,
}

/// A clock that is set back by more than this was wrong before, and what was noted then says nothing.
const DOUBT: u64 = 2 * 3600;

impl Schedule {
    pub fn told(&self, problem: Option<String>) -> Automatic {
        let last = Some(self.last).filter(|last| *last > 0);
        Automatic { id: self.id, when: self.when, keep: self.keep, last, problem }
    }

    /// The moment for which a snapshot is to be taken now, if one is.
    pub fn due(&self, now: u64) -> Option<u64> {
        let believed = |moment: u64| if moment > now + DOUBT { 0 } else { moment };
        let moment = super::moments::latest(&self.when, now);
        (moment > believed(self.since).max(believed(self.last))).then_some(moment)
    }
}

/// Of a configuration that came from elsewhere: schedules of datasets, each with a moment that comes.
pub(crate) fn check_records(writer: &Writer) -> Result<()> {
    let mut tags = BTreeSet::new();
    for (at, record) in writer.exact(&SCHEDULES)? {
        let wrong = |what: &str| Error::invalid(format!("the schedules of '{}': {what}", record.dataset));
        let guid = u64::from_str_radix(&at, 16).ok().filter(|guid| key(*guid) == at);
        if guid.is_none() || dsl::name::check_dataset(&record.dataset).is_err() {
            return Err(wrong("there is no such dataset"));
        }
        let mut ids = BTreeSet::new();
        for schedule in &record.schedules {
            if !schedule.when.is_sound() {
                return Err(wrong("that moment never comes"));
            }
            if !ids.insert(schedule.id) || schedule.tag.is_empty() || !tags.insert(schedule.tag.clone()) {
                return Err(wrong("one of them is there twice"));
            }
        }
    }
    Ok(())
}

pub(super) fn key(guid: u64) -> String {
    format!("{guid:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::automatic::Frequency;

    #[test]
    fn each_moment_is_taken_once_and_none_before_the_schedule_was_made() {
        let hourly = When { frequency: Frequency::Hour, ..When::default() };
        let at = |hours: u64| hours * 3600;
        let mut schedule = Schedule { when: hourly, since: at(100) + 1, ..Schedule::default() };
        assert_eq!(schedule.due(at(100) + 60), None, "its moment was before it");
        assert_eq!(schedule.due(at(101)), Some(at(101)));
        schedule.last = at(101);
        assert_eq!(schedule.due(at(101) + 3599), None);
        assert_eq!(schedule.due(at(131) + 5), Some(at(131)), "of all that were missed the last alone");
        schedule.last = at(131);
        assert_eq!(schedule.due(at(131) - 30), None, "a clock that was set right by seconds");
        assert_eq!(schedule.due(at(50)), Some(at(50)), "a clock that was wrong by days");
    }
}
