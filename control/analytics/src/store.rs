//! Samples on disk: one redb file with a row for each block, and one for each dataset that is saved.
//!
//! ```text
//!   datasets   number ▶ {name, suspended}
//!   sizes      number, granularity ▶ bytes of its blocks
//!   about      "starts" ▶ how often it was opened
//!   changes    number of a change ▶ the change
//!   blocks     number, granularity, label of the first sample, sequence ▶ Block::encode
//! ```
//!
//! A block that is still growing is written again, in place of itself. A block never crosses a multiple of its span, so the
//! blocks of a time are those that begin from the multiple before it on.
//!
//! A store that is damaged is set aside under another name, which is told, and begun anew. One that cannot be written is
//! closed, and opened again at the next attempt; the last room of a file system is left to others, since pools may be on it.
//!
//! Not here: what is in memory, and when it is written (`recorder`).

use crate::block::span;
use api::analytics::Granularity;
use api::changes::Change;
use redb::backends::FileBackend;
use redb::{Builder, Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use units::{Error, Kind, Result};

const BLOCKS: TableDefinition<'_, (u32, u8, u64, u64), &[u8]> = TableDefinition::new("blocks");
const SIZES: TableDefinition<'_, (u32, u8), u64> = TableDefinition::new("sizes");
const ABOUT: TableDefinition<'_, &str, u64> = TableDefinition::new("about");
const CHANGES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("changes");
const DATASETS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("datasets");

/// Pages kept in memory.
const CACHE_BYTES: usize = 4 << 20;
/// How much of the file system is left to others.
const LEFT_FREE: u64 = 256 << 20;
/// Rows taken away in one transaction, so that none takes long.
const PRUNED_AT_ONCE: usize = 2_000;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub name: String,
    #[serde(default)]
    pub suspended: bool,
}

/// A block to be written.
#[derive(Debug)]
pub(crate) struct Put {
    pub id: u32,
    pub granularity: Granularity,
    pub first: u64,
    /// That of the block: a clock that stepped back makes two with one label.
    pub sequence: u64,
    pub bytes: Vec<u8>,
}

/// Bytes on disk, by dataset and granularity.
pub(crate) type Sizes = BTreeMap<(u32, Granularity), u64>;

/// What was found when it was opened.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub records: BTreeMap<u32, Record>,
    pub sizes: Sizes,
    pub changes: BTreeMap<u64, Change>,
    /// How often it was opened: grows from one to the next.
    pub starts: u64,
    /// It was damaged: where it is now.
    pub notice: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Store {
    path: PathBuf,
    database: Option<Database>,
    /// What was found when it was used: it is set aside when it is opened next.
    damage: Option<Error>,
    left_free: u64,
}

fn code(granularity: Granularity) -> u8 {
    granularity as u8
}

fn granularity(code: u8) -> Option<Granularity> {
    Granularity::ALL.get(usize::from(code)).copied()
}

impl Store {
    /// Nothing is opened yet.
    pub fn at(path: &Path) -> Store {
        Store { path: path.into(), database: None, damage: None, left_free: LEFT_FREE }
    }

    #[cfg(test)]
    pub fn leave_free(&mut self, bytes: u64) {
        self.left_free = bytes;
    }

    /// Opens it, or begins one anew. `seconds`: since 1970, for the name under which a damaged one is set aside.
    pub fn open(&mut self, seconds: u64) -> Result<Found> {
        let opened = match self.damage.take() {
            Some(damage) => Err(damage),
            None => self.try_open(),
        };
        match opened {
            Err(e) if e.kind() == Kind::Corrupt => {
                let notice = self.set_aside(seconds, &e)?;
                let found = self.try_open()?;
                Ok(Found { notice: Some(notice), ..found })
            }
            outcome => outcome,
        }
    }

    fn try_open(&mut self) -> Result<Found> {
        self.database = None;
        let doing = "open the store of samples";
        let is_there = std::fs::metadata(&self.path).is_ok_and(|file| file.len() > 0);
        if is_there {
            let (database, found) = self.open_at(&self.path, false, doing)?;
            self.database = Some(database);
            return Ok(found);
        }
        // It gets its name when it is whole: one that was cut short for want of room would be found damaged.
        self.check_room()?;
        let next = self.path.with_extension("redb.new");
        let begun = self.open_at(&next, true, doing).and_then(|begun| {
            let failed = |e: io::Error| Error::new(Kind::Io, doing).at(self.path.display()).because(e);
            std::fs::rename(&next, &self.path).map_err(failed).map(|()| begun)
        });
        let (database, found) = begun.inspect_err(|_| drop(std::fs::remove_file(&next)))?;
        self.database = Some(database);
        Ok(found)
    }

    fn open_at(&self, at: &Path, anew: bool, doing: &str) -> Result<(Database, Found)> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(anew).truncate(anew).mode(0o600);
        let file =
            options.open(at).map_err(|e| Error::new(Kind::Io, doing).at(self.path.display()).because(e))?;
        let opened = guarded(doing, || {
            let mut builder = Builder::new();
            builder.set_cache_size(CACHE_BYTES);
            let database = FileBackend::new(file).and_then(|file| builder.create_with_backend(file))?;
            let transaction = database.begin_write()?;
            transaction.open_table(BLOCKS)?;
            let mut found = Found::default();
            for row in transaction.open_table(DATASETS)?.iter()? {
                let (id, bytes) = row?;
                let record = serde_json::from_slice(bytes.value())
                    .map_err(|e| redb::Error::Corrupted(format!("dataset {}: {e}", id.value())))?;
                found.records.insert(id.value(), record);
            }
            for row in transaction.open_table(CHANGES)?.iter()? {
                let (number, bytes) = row?;
                let change = serde_json::from_slice(bytes.value())
                    .map_err(|e| redb::Error::Corrupted(format!("change {}: {e}", number.value())))?;
                found.changes.insert(number.value(), change);
            }
            for row in transaction.open_table(SIZES)?.iter()? {
                let (key, bytes) = row?;
                let (id, code) = key.value();
                if let Some(granularity) = granularity(code) {
                    found.sizes.insert((id, granularity), bytes.value());
                }
            }
            let mut about = transaction.open_table(ABOUT)?;
            found.starts = about.get("starts")?.map_or(0, |starts| starts.value()) + 1;
            about.insert("starts", found.starts)?;
            drop(about);
            transaction.commit()?;
            Ok((database, found))
        });
        opened.map_err(|e| e.at(self.path.display()))
    }

    fn set_aside(&mut self, seconds: u64, why: &Error) -> Result<String> {
        self.database = None;
        let aside = self.path.with_extension(format!("redb.damaged-{seconds}"));
        let failed = |e: io::Error| {
            Error::new(Kind::Io, "set a damaged store aside").at(self.path.display()).because(e)
        };
        std::fs::rename(&self.path, &aside).map_err(failed)?;
        Ok(format!(
            "the store of samples was damaged, and is now {}; a new one was begun: {why}",
            aside.display()
        ))
    }

    fn database(&self) -> Result<&Database> {
        self.database.as_ref().ok_or_else(|| Error::new(Kind::Io, "the store of samples is not open"))
    }

    pub fn is_open(&self) -> bool {
        self.database.is_some()
    }

    /// Whether more may be written: the last room is for others.
    fn check_room(&self) -> Result<()> {
        let dir = self.path.parent().unwrap_or(Path::new("/"));
        let Ok(of) = rustix::fs::statvfs(dir) else { return Ok(()) };
        let free = of.f_bavail.saturating_mul(of.f_frsize);
        match free < self.left_free {
            true => Err(Error::new(
                Kind::NoSpace,
                format!("keep samples: {} has {} left", dir.display(), units::pretty_size(free)),
            )),
            false => Ok(()),
        }
    }

    /// Writes blocks, datasets and changes, all of it or nothing; the sizes that changed. A change without a row goes.
    pub fn write(
        &mut self,
        puts: &[Put],
        records: &BTreeMap<u32, Record>,
        changes: &BTreeMap<u64, Option<Change>>,
    ) -> Result<Sizes> {
        self.check_room()?;
        self.change("keep samples", |transaction| {
            let mut blocks = transaction.open_table(BLOCKS)?;
            let mut totals = transaction.open_table(SIZES)?;
            let mut changed = Sizes::new();
            for put in puts {
                let key = (put.id, code(put.granularity), put.first, put.sequence);
                let old = blocks.insert(key, put.bytes.as_slice())?.map_or(0, |old| old.value().len() as u64);
                let of = (put.id, code(put.granularity));
                let total = totals.get(of)?.map_or(0, |total| total.value());
                let total = (total + put.bytes.len() as u64).saturating_sub(old);
                totals.insert(of, total)?;
                changed.insert((put.id, put.granularity), total);
            }
            let mut datasets = transaction.open_table(DATASETS)?;
            for (id, record) in records {
                let bytes = serde_json::to_vec(record).unwrap_or_default();
                datasets.insert(id, bytes.as_slice())?;
            }
            let mut kept = transaction.open_table(CHANGES)?;
            for (number, change) in changes {
                match change {
                    Some(change) => {
                        let bytes = serde_json::to_vec(change).unwrap_or_default();
                        kept.insert(number, bytes.as_slice())?;
                    }
                    None => drop(kept.remove(number)?),
                }
            }
            Ok(changed)
        })
    }

    /// Takes blocks away that end before that second; the bytes that there are then, and whether more remain to be taken.
    pub fn prune(&mut self, id: u32, of: Granularity, before: u64) -> Result<(u64, bool)> {
        self.change("forget samples", |transaction| {
            let mut blocks = transaction.open_table(BLOCKS)?;
            let mut totals = transaction.open_table(SIZES)?;
            let ends = |first: u64| (first / span(of)).saturating_add(1).saturating_mul(span(of));
            let mut doomed = Vec::new();
            for row in blocks.range((id, code(of), 0, 0)..(id, code(of), before, 0))? {
                let (key, bytes) = row?;
                if ends(key.value().2) > before || doomed.len() == PRUNED_AT_ONCE {
                    break;
                }
                doomed.push((key.value(), bytes.value().len() as u64));
            }
            let mut total = totals.get((id, code(of)))?.map_or(0, |total| total.value());
            for (key, bytes) in &doomed {
                blocks.remove(key)?;
                total = total.saturating_sub(*bytes);
            }
            if !doomed.is_empty() {
                totals.insert((id, code(of)), total)?;
            }
            Ok((total, doomed.len() == PRUNED_AT_ONCE))
        })
    }

    /// Forgets a dataset, and all its blocks.
    pub fn forget(&mut self, id: u32) -> Result<()> {
        self.change("forget a dataset", |transaction| {
            transaction.open_table(DATASETS)?.remove(id)?;
            transaction
                .open_table(BLOCKS)?
                .retain_in((id, 0, 0, 0)..=(id, u8::MAX, u64::MAX, u64::MAX), |_, _| false)?;
            transaction.open_table(SIZES)?.retain_in((id, 0)..=(id, u8::MAX), |_, _| false)?;
            Ok(())
        })
    }

    /// The blocks that may have samples from `from` up to but not with `to`.
    pub fn blocks(&self, id: u32, of: Granularity, from: u64, to: u64) -> Result<Vec<Vec<u8>>> {
        let begin = from - from % span(of);
        if begin >= to {
            return Ok(Vec::new());
        }
        let database = self.database()?;
        guarded("read samples", || {
            let blocks = database.begin_read()?.open_table(BLOCKS)?;
            let rows = blocks.range((id, code(of), begin, 0)..(id, code(of), to, 0))?;
            rows.map(|row| Ok(row?.1.value().to_vec())).collect()
        })
    }

    /// The label of the first block that there is.
    pub fn oldest(&self, id: u32, of: Granularity) -> Result<Option<u64>> {
        let database = self.database()?;
        guarded("read samples", || {
            let blocks = database.begin_read()?.open_table(BLOCKS)?;
            let first = blocks.range((id, code(of), 0, 0)..=(id, code(of), u64::MAX, u64::MAX))?.next();
            first.map(|row| Ok(row?.0.value().2)).transpose()
        })
    }

    fn change<T>(
        &mut self,
        doing: &str,
        change: impl FnOnce(&redb::WriteTransaction) -> Result<T, redb::Error>,
    ) -> Result<T> {
        let database = self.database()?;
        let outcome = guarded(doing, || {
            let transaction = database.begin_write()?;
            let outcome = change(&transaction)?;
            transaction.commit()?;
            Ok(outcome)
        });
        outcome.inspect_err(|e| {
            // After an error of its file it answers nothing any more.
            self.database = None;
            if e.kind() == Kind::Corrupt {
                self.damage = Some(Error::corrupt(e.to_string()));
            }
        })
    }
}

/// What a damaged file makes redb do is an error of ours: also where it panics.
fn guarded<T>(doing: &str, work: impl FnOnce() -> Result<T, redb::Error>) -> Result<T> {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    let error = match outcome {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(e)) => e,
        Err(_) => return Err(Error::new(Kind::Corrupt, doing)),
    };
    let kind = match &error {
        redb::Error::DatabaseAlreadyOpen => Kind::Busy,
        redb::Error::Corrupted(_)
        | redb::Error::RepairAborted
        | redb::Error::UpgradeRequired(_)
        | redb::Error::TableTypeMismatch { .. } => Kind::Corrupt,
        redb::Error::Io(e)
            if matches!(e.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) =>
        {
            Kind::Corrupt
        }
        redb::Error::Io(e) if e.kind() == io::ErrorKind::StorageFull => Kind::NoSpace,
        _ => Kind::Io,
    };
    Err(Error::new(kind, doing).because(error))
}
