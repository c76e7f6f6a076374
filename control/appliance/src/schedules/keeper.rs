//! Takes what is due, and takes away what is too much.

use super::records::{Record, SCHEDULES, Schedule, key};
use super::state::lock;
use crate::appliance::{Appliance, By};
use crate::datasets::Doomed;
use crate::pools::{Access, Open};
use api::automatic::PREFIX;
use api::shares::{DEFAULT_PROJECT, Place};
use api::{ErrorKind, Result};
use dsl::props::{PropName, Source, Value};
use futures_util::future::select;
use ondisk::ObjsetType;
use pool::Pool;
use std::pin::pin;
use std::time::Duration;
use store::Look;

/// Says of a snapshot by which schedule it was taken.
const TAG: &str = "cenote:automatic";
/// Moments are whole minutes.
const MINUTE: u64 = 60;
/// Names that are tried where several schedules are due in one second.
const TRIES: u64 = 16;

/// A dataset with schedules, as it is now.
pub(super) struct Scheduled {
    open: Open,
    place: Place,
    guid: u64,
}

impl Appliance {
    /// Takes snapshots by themselves from now on, until the appliance stops.
    pub fn begin_schedules(&self) {
        let appliance = self.clone();
        let task = world::spawn(async move {
            let ending = &appliance.0.keeper.ending;
            while !ending.is_set() {
                appliance.keep_schedules(world::wall_clock().seconds).await;
                let into = world::wall_clock().seconds % MINUTE;
                select(pin!(world::sleep(Duration::from_secs(MINUTE - into))), pin!(ending.wait())).await;
            }
        });
        *lock(&self.0.keeper.task) = Some(task);
    }

    /// Takes none any more; one that is being taken is.
    pub(crate) async fn end_schedules(&self) {
        self.0.keeper.ending.set();
        let task = lock(&self.0.keeper.task).take();
        if let Some(task) = task {
            task.await;
        }
    }

    /// Whatever is due at this time, in seconds since 1970.
    pub(super) async fn keep_schedules(&self, now: u64) {
        // What cannot be read now is read in a minute.
        let all = self.configuration().and_then(|c| c.look(|reader| reader.all(&SCHEDULES)));
        for (kept, record) in all.unwrap_or_default() {
            if record.schedules.iter().all(|schedule| schedule.due(now).is_none()) {
                continue;
            }
            let Ok(guid) = u64::from_str_radix(&kept, 16) else { continue };
            let Some(scheduled) = self.whereabouts(guid, &record).await else { continue };
            for schedule in &record.schedules {
                let Some(moment) = schedule.due(now) else { continue };
                if self.0.keeper.ending.is_set() {
                    return;
                }
                let done = self.keep_one(&scheduled, schedule, moment, now).await;
                self.0.keeper.note(&schedule.tag, done.err().map(|e| e.message));
            }
        }
    }

    async fn keep_one(&self, of: &Scheduled, schedule: &Schedule, moment: u64, now: u64) -> Result<()> {
        let before = self.taken(of, schedule).await?;
        // A crash may have come between a snapshot and its note. One from the future was taken while the clock was wrong.
        if !before.iter().any(|(_, creation)| (moment..=now).contains(creation)) {
            self.take(of, schedule, now).await?;
        }
        self.note_taken(of.guid, &schedule.tag, moment)?;
        if schedule.keep > 0 {
            let all = self.taken(of, schedule).await?;
            let surplus = all.len().saturating_sub(usize::try_from(schedule.keep).unwrap_or(usize::MAX));
            for (name, _) in &all[..surplus] {
                self.prune(of, name).await?;
            }
        }
        Ok(())
    }

    async fn take(&self, of: &Scheduled, schedule: &Schedule, now: u64) -> Result<()> {
        let tag = [(TAG.to_string(), schedule.tag.clone())];
        for second in now.. {
            let name = format!("{PREFIX}{second}");
            let names = self.snapshots_of(&of.place, &name).await?;
            let by = By { command: format!("automatic snapshot {}", names[0]), uid: 0 };
            match self.take_snapshots(&names, false, &tag, &by).await {
                // Another schedule was due in the same second.
                Err(e) if e.kind == ErrorKind::Exists && second < now + TRIES => {}
                other => return other.map(drop),
            }
        }
        Ok(())
    }

    fn note_taken(&self, guid: u64, tag: &str, moment: u64) -> Result<()> {
        let noted = self.configuration().and_then(|c| {
            c.change(|writer| {
                // It may have been changed, or taken away, meanwhile.
                let Some(mut record): Option<Record> = writer.get(&SCHEDULES, &key(guid))? else {
                    return Ok(());
                };
                record.schedules.iter_mut().filter(|s| s.tag == tag).for_each(|s| s.last = moment);
                writer.put(&SCHEDULES, &key(guid), &record)
            })
        });
        noted.map_err(|e| api::ApiError::cannot("note that a snapshot was taken", &e))
    }

    /// The last parts of the names of a schedule's snapshots, and when they were taken, the oldest first, whatever the clock
    /// said then.
    async fn taken(&self, of: &Scheduled, schedule: &Schedule) -> Result<Vec<(String, u64)>> {
        let _reading = of.open.pool.reading().await;
        let found = tagged(&of.open.pool, &of.place.dataset(), &schedule.tag).await;
        found.map_err(|e| api::ApiError::cannot(format!("list the snapshots of '{}'", of.place), &e))
    }

    /// Destroys one with those of the same moment below it, unless something wants one of them.
    async fn prune(&self, of: &Scheduled, name: &str) -> Result<()> {
        let (dataset, is_default) = (of.place.dataset(), of.place.project == DEFAULT_PROJECT);
        let is_project = of.place.share.is_none();
        let first = format!("{dataset}@{name}");
        let names = match is_project && is_default {
            // What lies directly in the pool has the pool's other projects beside it.
            true => self.snapshots_of(&of.place, name).await?,
            false => vec![first.clone()],
        };
        let wanted = {
            let _reading = of.open.pool.reading().await;
            is_wanted(&of.open.pool, &names, is_project && !is_default).await
        };
        let wanted = wanted.map_err(|e| api::ApiError::cannot(format!("look at snapshot '{first}'"), &e))?;
        if wanted {
            return Ok(());
        }
        for name in names {
            let by = By { command: format!("automatic destroy {name}"), uid: 0 };
            let doomed = Doomed { recursive: is_project && !is_default, ..Doomed::default() };
            match self.destroy_dataset(&name, doomed, &by).await {
                // One that is looked at goes another time; a new volume has none of this name.
                Err(e) if [ErrorKind::Busy, ErrorKind::NotFound].contains(&e.kind) => {}
                other => drop(other?),
            }
        }
        Ok(())
    }

    /// Where the dataset of a record is by now. One that is gone for good takes its record along.
    pub(super) async fn whereabouts(&self, guid: u64, record: &Record) -> Option<Scheduled> {
        let pool = self.0.pools.lock().await.known().into_iter().find(|known| known.guid == record.pool)?;
        let open = self.pool(&pool.name, Access::Change).await.ok()?;
        // The pool may be called otherwise by now.
        let (_, below) = record.dataset.split_once('/').unwrap_or_default();
        let hint = if below.is_empty() { pool.name.clone() } else { format!("{}/{below}", pool.name) };
        let found = {
            let _reading = open.pool.reading().await;
            find(&open.pool, guid, &hint).await.ok()?
        };
        let changed = match &found {
            Some((name, now, _)) if (*now, name) == (guid, &record.dataset) => Ok(()),
            Some((name, now, _)) => self.move_record(guid, Some((*now, name.clone()))),
            None => self.move_record(guid, None),
        };
        changed.ok()?;
        let (name, guid, is_volume) = found?;
        Some(Scheduled { open, place: Place::of(&name, is_volume), guid })
    }

    fn move_record(&self, from: u64, to: Option<(u64, String)>) -> units::Result<()> {
        self.configuration()?.change(|writer| {
            let Some(mut record): Option<Record> = writer.get(&SCHEDULES, &key(from))? else { return Ok(()) };
            writer.remove(&SCHEDULES, &key(from))?;
            let Some((guid, dataset)) = to else { return Ok(()) };
            record.dataset = dataset;
            writer.put(&SCHEDULES, &key(guid), &record)
        })
    }
}

/// Name, guid, and whether it is a volume.
type There = (String, u64, bool);

/// The dataset with this guid, else what has its name.
async fn find(pool: &Pool, guid: u64, hint: &str) -> units::Result<Option<There>> {
    let hinted = there(pool, hint).await?;
    if hinted.as_ref().is_some_and(|found| found.1 == guid) {
        return Ok(hinted);
    }
    for name in pool.dsl().descendants(&pool.name()).await? {
        if let Some(found) = there(pool, &name).await?
            && found.1 == guid
        {
            return Ok(Some(found));
        }
    }
    Ok(hinted)
}

async fn there(pool: &Pool, name: &str) -> units::Result<Option<There>> {
    match pool.dsl().find(name).await {
        Ok(found) => {
            let is_volume = pool.dsl().objset_type(&found).await? == ObjsetType::Zvol;
            Ok(Some((name.into(), found.phys.guid.0, is_volume)))
        }
        Err(e) if e.kind() == units::Kind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

async fn tagged(pool: &Pool, dataset: &str, tag: &str) -> units::Result<Vec<(String, u64)>> {
    let dsl = pool.dsl();
    let mut all = Vec::new();
    for (name, _) in dsl.snapshots(dataset).await? {
        let Some((_, last)) = name.split_once('@').filter(|(_, last)| last.starts_with(PREFIX)) else {
            continue;
        };
        let shown = dsl.stats(&name).await?.get(&PropName::User(TAG.into())).await?;
        if matches!(shown, Some((Value::Text(text), Source::Local)) if text == tag) {
            all.push((last.to_string(), dsl.find(&name).await?.phys.creation_time));
        }
    }
    Ok(all)
}

/// Whether any of them is held or was cloned.
async fn is_wanted(pool: &Pool, names: &[String], recursive: bool) -> units::Result<bool> {
    let dsl = pool.dsl();
    for name in names {
        let all = match dsl.match_snapshots(name, recursive).await {
            Ok(all) => all,
            Err(e) if e.kind() == units::Kind::NotFound => continue,
            Err(e) => return Err(e),
        };
        for snapshot in all {
            let found = dsl.find_snapshot(&snapshot).await?;
            if found.phys.num_children > 1 || !dsl.holds(&snapshot).await?.is_empty() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
