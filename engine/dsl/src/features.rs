//! Which features of the format the pool has, and how much each is used.
//!
//! Three ZAPs of the MOS: a feature is *enabled* when its guid is in one of the first two, *active* when the number
//! there is not zero:
//!
//! ```text
//!   features_for_read     guid -> count     a program without an active one cannot read the pool
//!   features_for_write    guid -> count     ... can open it, but only to read
//!   feature_descriptions  guid -> text      so that a program can say what it lacks
//!   feature_enabled_txg   guid -> txg       for features whose meaning depends on when they came
//! ```
//!
//! What the count counts is the feature's own business: datasets that use it, deadlists that share a bpobj.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dmu::{ObjSet, Tx};
use ondisk::feature::{Support, Verdict, judge};
use ondisk::mos::directory as names;
use ondisk::{Feature, ObjectType};
use units::{Error, ObjectId, Result, Txg};

use crate::zaps::{self, Table};

/// The features that a dataset's own blocks or objects activate, and that are recorded with each dataset that uses
/// them: an entry of the guid in the dataset's ZAP, and one count here.
pub fn per_dataset() -> impl Iterator<Item = Feature> {
    Feature::all().filter(|feature| feature.info().per_dataset)
}

/// The features of an open pool. Pools before version 5000 have none.
#[derive(Debug, Default)]
pub struct Features {
    zaps: Option<Zaps>,
    /// By guid, of both ZAPs.
    counts: Mutex<BTreeMap<String, u64>>,
}

#[derive(Debug)]
struct Zaps {
    for_read: Table,
    for_write: Table,
    descriptions: Table,
    enabled_txg: Mutex<Option<Table>>,
}

/// The refusal of an import, if the pool's active features leave no other way. `readonly` is what was asked for.
pub fn check_verdict(verdict: &Verdict, readonly: bool) -> Result<()> {
    let names = verdict.because.join(", ");
    match verdict.support {
        Support::ReadWrite => Ok(()),
        Support::ReadOnly if readonly => Ok(()),
        Support::ReadOnly => Err(Error::unsupported(format!(
            "the pool can only be imported read-only (-o readonly=on): this program cannot keep up {names}"
        ))),
        Support::No => {
            Err(Error::unsupported(format!("the pool uses features that this program lacks: {names}")))
        }
    }
}

impl Features {
    /// Reads them; `directory` is the object directory of the MOS.
    pub async fn open(mos: &ObjSet, directory: &Table) -> Result<Features> {
        let Some(for_read) = directory.lookup_u64(names::FEATURES_FOR_READ).await? else {
            return Ok(Features::default());
        };
        let for_read = zaps::open(mos, ObjectId(for_read)).await?;
        let for_write =
            zaps::open(mos, ObjectId(directory.require_u64(names::FEATURES_FOR_WRITE).await?)).await?;
        let descriptions =
            zaps::open(mos, ObjectId(directory.require_u64(names::FEATURE_DESCRIPTIONS).await?)).await?;
        let enabled_txg = match directory.lookup_u64(names::FEATURE_ENABLED_TXG).await? {
            Some(id) => Some(zaps::open(mos, ObjectId(id)).await?),
            None => None,
        };
        let mut counts = BTreeMap::new();
        counts.extend(zaps::numbers(&for_read).await?);
        counts.extend(zaps::numbers(&for_write).await?);
        let zaps = Zaps { for_read, for_write, descriptions, enabled_txg: Mutex::new(enabled_txg) };
        Ok(Features { zaps: Some(zaps), counts: Mutex::new(counts) })
    }

    /// Makes the ZAPs of a new pool; nothing is enabled yet.
    pub async fn create(mos: &ObjSet, directory: &Table, tx: &Tx) -> Result<Features> {
        let for_read = link(mos, directory, tx, names::FEATURES_FOR_READ).await?;
        let for_write = link(mos, directory, tx, names::FEATURES_FOR_WRITE).await?;
        let descriptions = link(mos, directory, tx, names::FEATURE_DESCRIPTIONS).await?;
        let zaps = Zaps { for_read, for_write, descriptions, enabled_txg: Mutex::new(None) };
        Ok(Features { zaps: Some(zaps), counts: Mutex::default() })
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        // One insert at a time happens under this lock.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn zaps(&self, doing: &str) -> Result<&Zaps> {
        let old = || Error::unsupported(format!("{doing}: the pool's version has no features"));
        self.zaps.as_ref().ok_or_else(old)
    }

    pub fn is_enabled(&self, feature: Feature) -> bool {
        self.counts().contains_key(feature.guid())
    }

    pub fn is_active(&self, feature: Feature) -> bool {
        self.count(feature.guid()).is_some_and(|count| count > 0)
    }

    /// `None` for a feature that is not enabled.
    pub fn count(&self, guid: &str) -> Option<u64> {
        self.counts().get(guid).copied()
    }

    /// Every enabled feature with its count.
    pub fn all(&self) -> BTreeMap<String, u64> {
        self.counts().clone()
    }

    /// How this program may open the pool, and what stands in the way of more; descriptions are the pool's own.
    pub async fn verdict(&self) -> Result<Verdict> {
        let Some(zaps) = &self.zaps else { return Ok(judge([], [])) };
        let mut active = [Vec::new(), Vec::new()];
        for (list, table) in active.iter_mut().zip([&zaps.for_read, &zaps.for_write]) {
            let counts = zaps::numbers(table).await?;
            list.extend(counts.into_iter().filter(|(_, count)| *count > 0).map(|(guid, _)| guid));
        }
        let [for_read, for_write] = &active;
        let mut verdict = judge(for_read.iter().map(String::as_str), for_write.iter().map(String::as_str));
        for guid in &mut verdict.because {
            let text = zaps.descriptions.lookup(&*guid).await?;
            if let Some(text) = text.as_ref().and_then(|v| v.as_text()).filter(|t| !t.is_empty()) {
                *guid = format!("{guid} ({})", text.trim_end_matches('.'));
            }
        }
        Ok(verdict)
    }

    /// Enables a feature and what it depends on.
    pub async fn enable(&self, mos: &ObjSet, directory: &Table, tx: &Tx, feature: Feature) -> Result<()> {
        let zaps = self.zaps("enable a feature")?;
        // Depth first, so that what a feature depends on is enabled before it.
        let mut todo = vec![feature];
        while let Some(feature) = todo.last().copied() {
            let missing = feature.info().dependencies.iter().find(|d| !self.is_enabled(**d));
            if let Some(dependency) = missing {
                todo.push(*dependency);
                continue;
            }
            todo.pop();
            if self.is_enabled(feature) {
                continue;
            }
            let info = feature.info();
            zaps.descriptions.update(tx, info.guid, zap::Value::text(info.description)).await?;
            self.store(tx, feature, u64::from(info.activate_on_enable)).await?;
            if self.is_enabled(Feature::EnabledTxg) {
                self.note_txg(mos, directory, tx, zaps, feature).await?;
            }
        }
        Ok(())
    }

    /// The guids that labels have to name, because the MOS cannot be read without them.
    pub fn for_labels(&self) -> Vec<&'static str> {
        Feature::all().filter(|f| f.info().mos && self.is_active(*f)).map(Feature::guid).collect()
    }

    async fn note_txg(
        &self,
        mos: &ObjSet,
        directory: &Table,
        tx: &Tx,
        zaps: &Zaps,
        feature: Feature,
    ) -> Result<()> {
        let noted = zaps.lock_txgs().clone();
        let table = match noted {
            Some(table) => table,
            None => link(mos, directory, tx, names::FEATURE_ENABLED_TXG).await?,
        };
        table.insert(tx, feature.guid(), tx.txg().0).await?;
        *zaps.lock_txgs() = Some(table);
        self.add(tx, Feature::EnabledTxg, 1).await
    }

    /// When a feature was enabled, if the pool says.
    pub async fn enabled_txg(&self, feature: Feature) -> Result<Option<Txg>> {
        let Some(table) = self.zaps.as_ref().and_then(|zaps| zaps.lock_txgs().clone()) else {
            return Ok(None);
        };
        Ok(table.lookup_u64(feature.guid()).await?.map(Txg))
    }

    /// One more, or one less, makes use of it.
    pub async fn add(&self, tx: &Tx, feature: Feature, delta: i64) -> Result<()> {
        let missing = || Error::invalid(format!("feature '{}' is not enabled in this pool", feature.guid()));
        let count = self.count(feature.guid()).ok_or_else(missing)?;
        let below = || Error::corrupt(format!("count of feature {} would fall below zero", feature.guid()));
        self.store(tx, feature, count.checked_add_signed(delta).ok_or_else(below)?).await
    }

    async fn store(&self, tx: &Tx, feature: Feature, count: u64) -> Result<()> {
        let zaps = self.zaps("count a feature")?;
        let table = if feature.info().read_only_compatible { &zaps.for_write } else { &zaps.for_read };
        table.update(tx, feature.guid(), count).await?;
        self.counts().insert(feature.guid().into(), count);
        Ok(())
    }
}

impl Zaps {
    fn lock_txgs(&self) -> MutexGuard<'_, Option<Table>> {
        self.enabled_txg.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn link(mos: &ObjSet, directory: &Table, tx: &Tx, name: &str) -> Result<Table> {
    let table = zaps::create(mos, tx, ObjectType::ZAP_METADATA).await?;
    directory.insert(tx, name, table.blocks().id().0).await?;
    Ok(table)
}
