//! The configuration that must survive restarts and crashes: SAN objects, users, services, reservations.
//!
//! ```text
//!   Table<Target> "san.targets" ─┐                        ┌─ change(|w| ...)  all of it, on disk, or nothing
//!   Table<User>   "users"       ─┼─ name ▶ key ▶ JSON ────┼─ look(|r| ...)    one moment, whatever changes meanwhile
//!   Table<...>    ...           ─┘   one redb file        └─ backup, restore  one sealed text file
//! ```
//!
//! A table is declared by the crate that owns its content, as a constant [`Table`]; nothing here knows what the records
//! mean. Records are JSON: a field more, with `#[serde(default)]`, needs no new [`schema`]; any other change of a
//! record that was released does, with a step that rewrites what there is.
//!
//! Invariants: a change is on disk, whole, when [`Store::change`] returns; one that fails leaves nothing; a file that was
//! written by a later schema is refused, not guessed at; what a backup holds is what was committed at one moment.
//!
//! Files are of mode 0600: the records hold secrets. A commit waits for the disk, and so stops the thread that makes it:
//! this is for what an administrator changes, or a client rarely does; never for the data path.
//!
//! Not here: what is configured (`appliance`); pools, which are remembered beside it and found again by their devices.

mod backup;
mod file;
mod records;
mod schema;

pub use backup::{read as read_backup, sealed};
pub use records::{Look, Reader, Table, Writer};
pub use schema::SCHEMA;

use file::Roomy;
use redb::{Builder, Database, ReadableDatabase};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use units::{Error, Kind, Result};

/// Pages kept in memory; a configuration is small.
const CACHE_BYTES: usize = 4 << 20;
const OPENING: &str = "open configuration";

/// An open configuration. Clones are the same one.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    /// None after it could not be opened again.
    database: RwLock<Option<Database>>,
    path: PathBuf,
    /// How often everything was replaced.
    restored: AtomicU64,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({})", self.0.path.display())
    }
}

impl Store {
    /// Opens the file, or makes it. Only one process can have it open.
    pub fn open(path: &Path) -> Result<Store> {
        match fs::metadata(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Store::begin(path),
            // One is made under another name: it was whole once, and to begin anew would be to forget all users.
            Ok(file) if file.len() == 0 => Err(Error::new(Kind::Corrupt, OPENING)
                .at(path.display())
                .because("the file is empty; move it away and restore a backup")),
            _ => Store::open_at(path, path, OpenOptions::new().create(false)),
        }
    }

    /// Makes the file under another name, and gives it its own when it is whole: one that was cut short, by a crash or
    /// for want of room, would be refused as damaged at every start that follows.
    fn begin(path: &Path) -> Result<Store> {
        let mut next = path.as_os_str().to_owned();
        next.push(".new");
        let next = PathBuf::from(next);
        let begun = Store::open_at(&next, path, OpenOptions::new().create(true).truncate(true));
        let named = begun.and_then(|store| {
            let named = fs::rename(&next, path).and_then(|()| sync_directory(path));
            named.map(|()| store).map_err(|e| Error::new(Kind::Io, OPENING).at(path.display()).because(e))
        });
        // What is left of it is in the way of nothing, but takes room.
        named.inspect_err(|_| drop(fs::remove_file(&next)))
    }

    fn open_at(at: &Path, path: &Path, options: &mut OpenOptions) -> Result<Store> {
        let file = private_file(at, options)
            .map_err(|e| Error::new(Kind::Io, OPENING).at(path.display()).because(e))?;
        let database = RwLock::new(Some(database_in(file).map_err(|e| e.at(path.display()))?));
        let store = Store(Arc::new(Inner { database, path: path.into(), restored: AtomicU64::new(0) }));
        store.write(OPENING, schema::bring_up).map_err(|e| e.at(path.display()))?;
        Ok(store)
    }

    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Looks at what was committed, all of one moment.
    pub fn look<T>(&self, look: impl FnOnce(&Reader) -> Result<T>) -> Result<T> {
        let transaction =
            self.begin_transaction("read configuration", |database| Ok(database.begin_read()?))?;
        look(&Reader::new(transaction))
    }

    /// Changes the configuration: when this returns `Ok` all of it is on disk, and after an error none of it. Changes
    /// take turns; do not make one inside another.
    pub fn change<T>(&self, change: impl FnOnce(&mut Writer) -> Result<T>) -> Result<T> {
        self.write("change configuration", change)
    }

    /// Writes everything there is into a new file, sealed. Waits for the disk.
    pub fn backup(&self, to: &Path) -> Result<()> {
        let text = self.backup_text()?;
        let cannot = |e: io::Error| Error::new(Kind::Io, format!("write backup {}", to.display())).because(e);
        backup::write(to, &text).map_err(cannot)
    }

    /// All that was committed, as the text of such a file. It holds the secrets that there are.
    pub fn backup_text(&self) -> Result<String> {
        self.look(backup::text)
    }

    /// Replaces everything there is by what the text of a backup holds. One that is damaged, or of a later version, or that
    /// `check` refuses, changes nothing: it sees all the new tables, uncommitted.
    pub fn restore_text(&self, text: &str, check: impl FnOnce(&Writer) -> Result<()>) -> Result<()> {
        let tables = backup::parse(text)?;
        self.write("restore configuration", |writer| {
            writer.replace(tables)?;
            schema::bring_up(writer)?;
            check(writer)
        })?;
        self.0.restored.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// How often everything was replaced since it was opened: what is kept of it in memory is read
    /// again when this is another.
    pub fn restored(&self) -> u64 {
        self.0.restored.load(Ordering::Acquire)
    }

    /// After an error of its file, as when there was no room, a database does nothing more until it is opened again. That is
    /// done here, once there is room.
    fn begin_transaction<T>(
        &self,
        doing: &str,
        begin: impl Fn(&Database) -> std::result::Result<T, redb::Error>,
    ) -> Result<T> {
        let broken =
            |begun: &std::result::Result<T, redb::Error>| matches!(begun, Err(redb::Error::PreviousIo));
        {
            let now = self.0.database.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(begun) = now.as_ref().map(&begin).filter(|begun| !broken(begun)) {
                return begun.map_err(|e| failed(doing, e));
            }
        }
        let mut now = self.0.database.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(begun) = now.as_ref().map(&begin).filter(|begun| !broken(begun)) {
            // Another caller has opened it.
            return begun.map_err(|e| failed(doing, e));
        }
        let path = &self.0.path;
        let cannot = |e: io::Error| failed(doing, e.into()).at(path.display());
        let file = private_file(path, OpenOptions::new().create(false)).map_err(cannot)?;
        file::keep_room(&file).map_err(cannot)?;
        // It has locked the file.
        *now = None;
        let database = database_in(file).map_err(|e| e.at(path.display()))?;
        begin(now.insert(database)).map_err(|e| failed(doing, e))
    }

    fn write<T>(&self, doing: &str, change: impl FnOnce(&mut Writer) -> Result<T>) -> Result<T> {
        let transaction = self.begin_transaction(doing, |database| Ok(database.begin_write()?))?;
        let mut writer = Writer::new(transaction);
        // Dropped uncommitted, it leaves nothing.
        let result = change(&mut writer)?;
        writer.commit().map_err(|e| failed(doing, e))?;
        Ok(result)
    }
}

fn database_in(file: File) -> Result<Database> {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    let database = Roomy::new(file).and_then(|file| Ok(builder.create_with_backend(file)?));
    database.map_err(|e| failed(OPENING, e))
}

/// A new name is durable with its directory.
fn sync_directory(path: &Path) -> io::Result<()> {
    match path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        Some(dir) => File::open(dir)?.sync_all(),
        None => Ok(()),
    }
}

fn private_file(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.read(true).write(true).mode(0o600).open(path)
}

/// What the database says, as the caller can use it.
fn failed(doing: &str, e: redb::Error) -> Error {
    let kind = match &e {
        redb::Error::DatabaseAlreadyOpen => Kind::Busy,
        redb::Error::Corrupted(_) | redb::Error::RepairAborted | redb::Error::TableTypeMismatch { .. } => {
            Kind::Corrupt
        }
        redb::Error::UpgradeRequired(_) => Kind::Unsupported,
        // A file that is no database, or ends too early, says so by its kind.
        redb::Error::Io(e)
            if matches!(e.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) =>
        {
            Kind::Corrupt
        }
        redb::Error::Io(e) if e.kind() == io::ErrorKind::StorageFull => Kind::NoSpace,
        _ => Kind::Io,
    };
    let error = Error::new(kind, doing);
    match kind {
        Kind::Corrupt => error.because(format!("{e}; move it away and restore a backup")),
        _ => error.because(e),
    }
}

#[cfg(test)]
mod tests;
