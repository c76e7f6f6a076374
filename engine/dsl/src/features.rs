//! Which features of the format the pool has, and how much each is used.
//!
//! Three ZAPs of the MOS: a feature is *enabled* when its guid is in one of the first two, *active* when the number
//! there is not zero:
//!
//! ```text
//!   features_for_read     guid -> count     whoever lacks an active one cannot read the pool
//!   features_for_write    guid -> count     ... can open it, but only to read
//!   feature_descriptions  guid -> text      so that a program can say what it lacks
//!   feature_enabled_txg   guid -> txg       for features whose meaning depends on when they came
//! ```
//!
//! What the count counts is the feature's own business: datasets that use it, deadlists that share a bpobj.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dmu::{ObjSet, Tx};
use ondisk::ObjectType;
use units::{Error, ObjectId, Result, Txg};

use crate::zaps::{self, Table};

const FOR_READ: &str = "features_for_read";
const FOR_WRITE: &str = "features_for_write";
const DESCRIPTIONS: &str = "feature_descriptions";
const ENABLED_TXG: &str = "feature_enabled_txg";

/// What this crate has to know of a feature. The table of all features is `ondisk`'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    pub guid: &'static str,
    /// Programs that lack it may still read the pool while it is active.
    pub read_only_compatible: bool,
}

const fn for_read(guid: &'static str) -> Feature {
    Feature { guid, read_only_compatible: false }
}
const fn for_write(guid: &'static str) -> Feature {
    Feature { guid, read_only_compatible: true }
}

pub const ASYNC_DESTROY: Feature = for_write("com.delphix:async_destroy");
pub const EMPTY_BPOBJ: Feature = for_write("com.delphix:empty_bpobj");
pub const ENABLED_TXG_FEATURE: Feature = for_write("com.delphix:enabled_txg");
pub const EXTENSIBLE_DATASET: Feature = for_read("com.delphix:extensible_dataset");
pub const LIVELIST: Feature = for_write("com.delphix:livelist");
pub const LZ4_COMPRESS: Feature = for_read("org.illumos:lz4_compress");
pub const HOLE_BIRTH: Feature = for_read("com.delphix:hole_birth");
pub const LARGE_BLOCKS: Feature = for_read("org.open-zfs:large_blocks");
pub const LARGE_DNODE: Feature = for_read("org.zfsonlinux:large_dnode");
pub const SHA512: Feature = for_read("org.illumos:sha512");
pub const SKEIN: Feature = for_read("org.illumos:skein");
pub const EDONR: Feature = for_read("org.illumos:edonr");
pub const BLAKE3: Feature = for_read("org.openzfs:blake3");
pub const ZSTD_COMPRESS: Feature = for_read("org.freebsd:zstd_compress");
pub const FILESYSTEM_LIMITS: Feature = for_write("com.joyent:filesystem_limits");
pub const BOOKMARKS: Feature = for_write("com.delphix:bookmarks");
pub const BOOKMARK_WRITTEN: Feature = for_read("com.delphix:bookmark_written");
pub const REDACTION_BOOKMARKS: Feature = for_read("com.delphix:redaction_bookmarks");

/// The features that a dataset's own blocks or dnodes activate, and that are recorded with each dataset that uses
/// them: an entry of this guid in the dataset's ZAP, and one count here.
pub const PER_DATASET: &[Feature] = &[
    LARGE_BLOCKS,
    LARGE_DNODE,
    SHA512,
    SKEIN,
    EDONR,
    BLAKE3,
    ZSTD_COMPRESS,
    for_write("org.zfsonlinux:userobj_accounting"),
    for_write("org.zfsonlinux:project_quota"),
    for_read("com.datto:encryption"),
    for_read("com.delphix:redacted_datasets"),
    for_write("org.openzfs:zilsaxattr"),
    for_read("org.zfsonlinux:longname"),
    for_write("com.klarasystems:large_microzap"),
    for_write("com.truenas:physical_rewrite"),
];

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

/// Active features that this program lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unsupported {
    /// With these active the pool cannot be opened; guids, with descriptions where the pool has them.
    pub to_read: Vec<String>,
    /// With these active it can be opened to read.
    pub to_write: Vec<String>,
}

impl Unsupported {
    /// The refusal of an import, if it has to be refused.
    pub fn check(&self, readonly: bool) -> Result<()> {
        if !self.to_read.is_empty() {
            let names = self.to_read.join(", ");
            return Err(Error::unsupported(format!("the pool uses features that this program lacks: {names}")));
        }
        if !readonly && !self.to_write.is_empty() {
            let names = self.to_write.join(", ");
            return Err(Error::unsupported(format!(
                "the pool can only be imported read-only (-o readonly=on): this program lacks {names}"
            )));
        }
        Ok(())
    }
}

impl Features {
    /// Reads them; `directory` is the object directory of the MOS.
    pub async fn open(mos: &ObjSet, directory: &Table) -> Result<Features> {
        let Some(for_read) = directory.lookup_u64(FOR_READ).await? else {
            return Ok(Features::default());
        };
        let for_read = zaps::open(mos, ObjectId(for_read)).await?;
        let for_write = zaps::open(mos, ObjectId(directory.require_u64(FOR_WRITE).await?)).await?;
        let descriptions = zaps::open(mos, ObjectId(directory.require_u64(DESCRIPTIONS).await?)).await?;
        let enabled_txg = match directory.lookup_u64(ENABLED_TXG).await? {
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
        let for_read = link(mos, directory, tx, FOR_READ).await?;
        let for_write = link(mos, directory, tx, FOR_WRITE).await?;
        let descriptions = link(mos, directory, tx, DESCRIPTIONS).await?;
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
        self.counts().contains_key(feature.guid)
    }

    pub fn is_active(&self, feature: Feature) -> bool {
        self.count(feature.guid).is_some_and(|count| count > 0)
    }

    /// `None` for a feature that is not enabled.
    pub fn count(&self, guid: &str) -> Option<u64> {
        self.counts().get(guid).copied()
    }

    /// Every enabled feature with its count.
    pub fn all(&self) -> BTreeMap<String, u64> {
        self.counts().clone()
    }

    /// Names the active features that `is_supported` does not know.
    pub async fn unsupported(&self, is_supported: impl Fn(&str) -> bool) -> Result<Unsupported> {
        let Some(zaps) = &self.zaps else { return Ok(Unsupported::default()) };
        let mut unsupported = Unsupported::default();
        for (table, list) in
            [(&zaps.for_read, &mut unsupported.to_read), (&zaps.for_write, &mut unsupported.to_write)]
        {
            for (guid, count) in zaps::numbers(table).await? {
                if count > 0 && !is_supported(&guid) {
                    let text = zaps.descriptions.lookup(&guid).await?;
                    let text = text.as_ref().and_then(|v| v.as_text()).filter(|t| !t.is_empty());
                    list.push(text.map_or_else(|| guid.clone(), |text| format!("{guid} ({text})")));
                }
            }
        }
        Ok(unsupported)
    }

    /// Enables a feature; `count` is what it starts with. What it depends on is enabled by the caller, before.
    pub async fn enable(
        &self,
        mos: &ObjSet,
        directory: &Table,
        tx: &Tx,
        feature: Feature,
        description: &str,
        count: u64,
    ) -> Result<()> {
        let zaps = self.zaps("enable a feature")?;
        if self.is_enabled(feature) {
            return Ok(());
        }
        zaps.descriptions.update(tx, feature.guid, zap::Value::text(description)).await?;
        self.store(tx, feature, count).await?;
        if self.is_enabled(ENABLED_TXG_FEATURE) {
            self.note_txg(mos, directory, tx, zaps, feature).await?;
        }
        Ok(())
    }

    async fn note_txg(
        &self,
        mos: &ObjSet,
        directory: &Table,
        tx: &Tx,
        zaps: &Zaps,
        feature: Feature,
    ) -> Result<()> {
        let table = match zaps.lock_txgs().clone() {
            Some(table) => table,
            None => link(mos, directory, tx, ENABLED_TXG).await?,
        };
        table.insert(tx, feature.guid, tx.txg().0).await?;
        *zaps.lock_txgs() = Some(table);
        self.add(tx, ENABLED_TXG_FEATURE, 1).await
    }

    /// When a feature was enabled, if the pool says.
    pub async fn enabled_txg(&self, feature: Feature) -> Result<Option<Txg>> {
        let Some(table) = self.zaps.as_ref().and_then(|zaps| zaps.lock_txgs().clone()) else {
            return Ok(None);
        };
        Ok(table.lookup_u64(feature.guid).await?.map(Txg))
    }

    /// One more, or one less, makes use of it.
    pub async fn add(&self, tx: &Tx, feature: Feature, delta: i64) -> Result<()> {
        let missing = || Error::invalid(format!("feature '{}' is not enabled in this pool", feature.guid));
        let count = self.count(feature.guid).ok_or_else(missing)?;
        let below = || Error::corrupt(format!("count of feature {} would fall below zero", feature.guid));
        self.store(tx, feature, count.checked_add_signed(delta).ok_or_else(below)?).await
    }

    async fn store(&self, tx: &Tx, feature: Feature, count: u64) -> Result<()> {
        let zaps = self.zaps("count a feature")?;
        let table = if feature.read_only_compatible { &zaps.for_write } else { &zaps.for_read };
        table.update(tx, feature.guid, count).await?;
        self.counts().insert(feature.guid.into(), count);
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
