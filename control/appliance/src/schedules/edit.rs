//! What is asked of schedules.

use super::records::{Record, SCHEDULES, Schedule, key};
use crate::appliance::Appliance;
use crate::pools::Access;
use api::automatic::{Automatic, AutomaticDeed};
use api::shares::Place;
use api::{ApiError, Reply, Result};
use store::Look;
use units::{Error, Kind};

/// Schedules of one project or share.
const SCHEDULES_MAX: usize = 32;

impl Appliance {
    pub(crate) async fn automatics(&self, place: &Place) -> Result<Reply> {
        let (guid, _) = self.identity(place).await?;
        let failed = |e: Error| ApiError::cannot(format!("list the schedules of '{place}'"), &e);
        let record = self.configuration().and_then(|c| c.look(|reader| reader.get(&SCHEDULES, &key(guid))));
        let schedules = record.map_err(failed)?.unwrap_or_default().schedules;
        let told = |schedule: &Schedule| schedule.told(self.0.keeper.problem(&schedule.tag));
        Ok(Reply::Automatics(schedules.iter().map(told).collect()))
    }

    pub(crate) async fn change_automatic(&self, place: &Place, deed: AutomaticDeed) -> Result<Reply> {
        let (guid, pool) = self.identity(place).await?;
        let doing = match &deed {
            AutomaticDeed::Create { .. } => format!("create a schedule of '{place}'"),
            AutomaticDeed::Change { .. } => format!("change a schedule of '{place}'"),
            AutomaticDeed::Destroy { .. } => format!("destroy a schedule of '{place}'"),
        };
        let now = world::wall_clock().seconds;
        let tag = format!("{:016x}", world::random_u64());
        let changed = self.configuration().and_then(|c| {
            c.change(|writer| {
                let mut record: Record = writer.get(&SCHEDULES, &key(guid))?.unwrap_or_default();
                (record.dataset, record.pool) = (place.dataset(), pool);
                let id = change(&mut record, deed, now, tag)?;
                match record.schedules.is_empty() {
                    true => writer.remove(&SCHEDULES, &key(guid)).map(drop)?,
                    false => writer.put(&SCHEDULES, &key(guid), &record)?,
                }
                Ok(id)
            })
        });
        let id = changed.map_err(|e| {
            let why = e.cause().map_or_else(|| e.to_string(), ToString::to_string);
            ApiError::new(e.kind().into(), format!("cannot {doing}: {why}"))
        })?;
        Ok(Reply::Named { name: Automatic { id, ..Automatic::default() }.name() })
    }

    /// The guids of a project's or share's dataset and of its pool.
    async fn identity(&self, place: &Place) -> Result<(u64, u64)> {
        self.item(place).await?;
        let open = self.pool(&place.pool, Access::Look).await?;
        let found = {
            let _reading = open.pool.reading().await;
            open.pool.dsl().find(&place.dataset()).await
        };
        let found = found.map_err(|e| ApiError::cannot(format!("open '{place}'"), &e))?;
        let (guid, pool) = (found.phys.guid.0, open.known.guid);
        self.note_moves(&place.dataset(), guid, pool).await;
        Ok((guid, pool))
    }

    /// Another's record may bear this name: this is a copy of that in other blocks, or that is called otherwise by now.
    /// Either is noted, so that the record is found where it belongs.
    async fn note_moves(&self, dataset: &str, guid: u64, pool: u64) {
        let all = self.configuration().and_then(|c| c.look(|reader| reader.all(&SCHEDULES)));
        let all: Vec<(String, Record)> = all.unwrap_or_default();
        if all.iter().any(|(kept, _)| *kept == key(guid)) {
            return;
        }
        for (kept, record) in all.iter().filter(|(_, r)| r.dataset == dataset && r.pool == pool) {
            if let Ok(other) = u64::from_str_radix(kept, 16) {
                self.whereabouts(other, record).await;
            }
        }
    }

    /// Datasets are gone, and what was to be done with them.
    pub(crate) fn forget_schedules(&self, datasets: &[String]) {
        // Commands that need no configuration leave no file.
        if !self.0.config.home.configuration().exists() {
            return;
        }
        let forget = |writer: &mut store::Writer| {
            let all: Vec<(String, Record)> = writer.all(&SCHEDULES)?;
            for (key, record) in all {
                if datasets.contains(&record.dataset) {
                    writer.remove(&SCHEDULES, &key)?;
                }
            }
            Ok::<(), Error>(())
        };
        let is_any =
            |all: Vec<(String, Record)>| all.iter().any(|(_, record)| datasets.contains(&record.dataset));
        // What is left behind here is found to be gone when the next snapshot is due.
        let _ = self.configuration().and_then(|c| match is_any(c.look(|reader| reader.all(&SCHEDULES))?) {
            true => c.change(forget),
            false => Ok(()),
        });
    }
}

/// Returns the number of the schedule.
fn change(record: &mut Record, deed: AutomaticDeed, now: u64, tag: String) -> units::Result<u32> {
    let at = |record: &Record, id: u32| {
        let at = record.schedules.iter().position(|schedule| schedule.id == id);
        at.ok_or_else(|| Error::new(Kind::NotFound, "find").because("there is no such schedule"))
    };
    match deed {
        AutomaticDeed::Create { set } => {
            if record.schedules.len() >= SCHEDULES_MAX {
                return Err(Error::invalid(format!("there are {SCHEDULES_MAX} at most")));
            }
            let new = Automatic::default().with(&set, true).map_err(Error::invalid)?;
            let is_free = |id: &u32| !record.schedules.iter().any(|schedule| schedule.id == *id);
            let id = (0..u32::MAX).find(is_free).unwrap_or(u32::MAX);
            record.schedules.push(Schedule { id, when: new.when, keep: new.keep, tag, since: now, last: 0 });
            record.schedules.sort_by_key(|schedule| schedule.id);
            Ok(id)
        }
        AutomaticDeed::Change { id, set } => {
            let at = at(record, id)?;
            let schedule = &mut record.schedules[at];
            let changed = schedule.told(None).with(&set, false).map_err(Error::invalid)?;
            // A moment that has passed is no moment of another time of day.
            if changed.when != schedule.when {
                schedule.since = now;
            }
            (schedule.when, schedule.keep) = (changed.when, changed.keep);
            Ok(id)
        }
        AutomaticDeed::Destroy { id } => {
            record.schedules.remove(at(record, id)?);
            Ok(id)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(words: &[(&str, &str)]) -> Vec<(String, String)> {
        words.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect()
    }

    #[test]
    fn numbers_are_used_again_and_tags_never() {
        let mut record = Record::default();
        let mut ask = |deed, tag: &str| change(&mut record, deed, 1000, tag.into());
        for (tag, id) in [("a", 0), ("b", 1), ("c", 2)] {
            let deed = AutomaticDeed::Create { set: set(&[("frequency", "hour")]) };
            assert_eq!(ask(deed, tag).unwrap(), id);
        }
        assert_eq!(ask(AutomaticDeed::Destroy { id: 1 }, "").unwrap(), 1);
        assert_eq!(ask(AutomaticDeed::Destroy { id: 1 }, "").unwrap_err().kind(), Kind::NotFound);
        let deed = AutomaticDeed::Create { set: set(&[("frequency", "day"), ("keep", "7")]) };
        assert_eq!(ask(deed, "d").unwrap(), 1);
        let bad = AutomaticDeed::Change { id: 1, set: set(&[("hour", "25")]) };
        assert!(ask(bad, "").is_err());
        let tags: Vec<&str> = record.schedules.iter().map(|s| s.tag.as_str()).collect();
        assert_eq!(tags, ["a", "d", "c"]);
        assert_eq!((record.schedules[1].keep, record.schedules[1].since), (7, 1000));
        let keep = AutomaticDeed::Change { id: 1, set: set(&[("keep", "3")]) };
        change(&mut record, keep, 2000, String::new()).unwrap();
        assert_eq!((record.schedules[1].keep, record.schedules[1].since), (3, 1000));
        let later = AutomaticDeed::Change { id: 1, set: set(&[("hour", "3")]) };
        change(&mut record, later, 2000, String::new()).unwrap();
        assert_eq!(record.schedules[1].since, 2000);
    }
}
