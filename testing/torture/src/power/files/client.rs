//! A client of one file system: does what the letters say, and writes down what it asked and what it was answered.

use super::super::client::{Faith, Shared, lock};
use super::track::{Id, Paths, Promised, Track, Whom};
use crate::model::pattern;
use dmu::SyncMode;
use pool::Pool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{Error, Result};
use zpl::{Changes, FileKind, FileSystem, NewFile, Node, Renaming};

pub type SharedTrack = Arc<Mutex<Track>>;

pub struct Client {
    pub pool: Pool,
    pub fs: FileSystem,
    pub track: SharedTrack,
    /// Has the clock.
    pub history: Shared,
    pub faith: Faith,
    /// `recordsize`, bytes.
    pub record: u64,
}

pub fn track_of(track: &SharedTrack) -> MutexGuard<'_, Track> {
    track.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A change of what is in a file.
enum Edit {
    Write { offset: u64, len: u64, durable: bool },
    Truncate(u64),
    Punch(u64, u64),
    Mode(u32),
}

impl Client {
    fn now(&self) -> u64 {
        lock(&self.history).begin_flush().begun
    }

    fn paths(&self) -> Paths {
        track_of(&self.track).paths()
    }

    fn subject(&self) -> Option<(String, Id)> {
        let paths = self.paths();
        ["new", "old", "other"].into_iter().find_map(|name| Some((name.to_string(), *paths.get(name)?)))
    }

    /// The directory, which has one of two names.
    fn directory(&self) -> &'static str {
        if self.paths().contains_key("moved") { "moved" } else { "dir" }
    }

    async fn node(&self, path: &str) -> Result<Node> {
        self.fs.resolve(path.as_bytes(), false).await
    }

    /// What is asked for in vain is not done.
    pub async fn perform(&self, letter: char) -> Result<()> {
        let (paths, directory) = (self.paths(), self.directory());
        let has = |path: &str| paths.contains_key(path);
        let within = |name: &str| format!("{directory}/{name}");
        match letter {
            'C' if !has("new") => self.create("new", FileKind::Regular).await,
            'W' => self.edit(|_| Edit::Write { offset: 3000, len: 5000, durable: false }).await,
            'A' => self.edit(|size| Edit::Write { offset: size, len: 20_000, durable: false }).await,
            'S' => self.edit(|_| Edit::Write { offset: 100, len: 700, durable: true }).await,
            'T' => self.edit(|_| Edit::Truncate(2500)).await,
            'P' => self.edit(|_| Edit::Punch(1000, 3000)).await,
            'O' => self.edit(|size| Edit::Mode(if size % 3 == 0 { 0o600 } else { 0o755 })).await,
            'R' if has("new") => self.rename("new", "old", Renaming::Replace).await,
            'R' if has("old") => self.rename("old", "new", Renaming::NoReplace).await,
            'X' if has("old") && has("other") => self.rename("old", "other", Renaming::Exchange).await,
            'L' if has(&within("hard")) => self.unlink(&within("hard"), false).await,
            'L' => self.link(&within("hard")).await,
            'U' => match self.subject() {
                Some((path, _)) => self.unlink(&path, false).await,
                None => Ok(()),
            },
            'M' if has(&within("sub")) => self.unlink(&within("sub"), true).await,
            'M' => self.create(&within("sub"), FileKind::Directory).await,
            'V' if directory == "dir" => self.rename("dir", "moved", Renaming::NoReplace).await,
            'V' => self.rename("moved", "dir", Renaming::NoReplace).await,
            'f' | 'd' | 's' | 'Y' => self.promise(letter).await,
            _ => Ok(()),
        }
    }

    /// The answer to a change has come.
    fn answered(&self, begun: u64, whom: Option<Whom>) {
        let done = self.now();
        let mut track = track_of(&self.track);
        track.end(done);
        let whom = match self.faith.sync {
            _ if self.faith.is_gullible => Some(Whom::All),
            SyncMode::Always => Some(Whom::All),
            SyncMode::Standard => whom,
            SyncMode::Disabled => None,
        };
        // A change that is durable itself was done before it was answered.
        let begun = if whom.is_some() { done } else { begun };
        track.promises.extend(whom.map(|whom| Promised { begun, done, whom }));
    }

    async fn promise(&self, letter: char) -> Result<()> {
        let subject = self.subject();
        let begun = self.now();
        let whom = match (letter, &subject) {
            ('f', Some((path, id))) => {
                self.node(path).await?.sync().await?;
                Whom::File(*id)
            }
            ('f' | 'd', _) => {
                self.fs.root().await?.sync().await?;
                Whom::File(Id::MAX)
            }
            ('s', _) => {
                self.fs.sync().await?;
                Whom::All
            }
            _ => {
                self.pool.sync().await?;
                Whom::Txg
            }
        };
        let done = self.now();
        if self.faith.sync != SyncMode::Disabled || whom == Whom::Txg {
            track_of(&self.track).promises.push(Promised { begun, done, whom });
        }
        Ok(())
    }

    async fn create(&self, path: &str, kind: FileKind) -> Result<()> {
        let (begun, mut paths) = (self.now(), self.paths());
        {
            let mut track = track_of(&self.track);
            let id = track.add(kind == FileKind::Directory, 0o644, begun);
            paths.insert(path.to_string(), id);
            track.begin_names(begun, paths, Vec::new());
        }
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        self.node(parent).await?.create(name.as_bytes(), &NewFile::new(kind, 0o644)).await?;
        self.answered(begun, None);
        Ok(())
    }

    async fn link(&self, path: &str) -> Result<()> {
        let Some((old, id)) = self.subject() else { return Ok(()) };
        let (begun, mut paths) = (self.now(), self.paths());
        paths.insert(path.to_string(), id);
        track_of(&self.track).begin_names(begun, paths, Vec::new());
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        self.node(parent).await?.link(name.as_bytes(), &self.node(&old).await?).await?;
        self.answered(begun, None);
        Ok(())
    }

    async fn unlink(&self, path: &str, is_directory: bool) -> Result<()> {
        let (begun, mut paths) = (self.now(), self.paths());
        paths.remove(path);
        track_of(&self.track).begin_names(begun, paths, Vec::new());
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = self.node(parent).await?;
        match is_directory {
            true => parent.remove_directory(name.as_bytes()).await?,
            false => parent.unlink(name.as_bytes()).await?,
        }
        self.answered(begun, None);
        Ok(())
    }

    /// In the root directory.
    async fn rename(&self, from: &str, to: &str, how: Renaming) -> Result<()> {
        let (begun, old) = (self.now(), self.paths());
        let swapped = |path: &str, from: &str, to: &str| match path.strip_prefix(from) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => Some(format!("{to}{rest}")),
            _ => None,
        };
        let mut paths = Paths::new();
        for (path, id) in &old {
            if let Some(new) = swapped(path, from, to) {
                paths.insert(new, *id);
            } else if let Some(new) = swapped(path, to, from) {
                if how == Renaming::Exchange {
                    paths.insert(new, *id);
                }
            } else {
                paths.insert(path.clone(), *id);
            }
        }
        let mut moved = vec![old[from]];
        moved.extend(old.get(to).filter(|_| how == Renaming::Exchange));
        track_of(&self.track).begin_names(begun, paths, moved);
        let root = self.fs.root().await?;
        root.rename(from.as_bytes(), &root, to.as_bytes(), how).await?;
        self.answered(begun, None);
        Ok(())
    }

    async fn edit(&self, edit: impl FnOnce(u64) -> Edit) -> Result<()> {
        let Some((path, id)) = self.subject() else { return Ok(()) };
        let begun = self.now();
        let (mut bytes, mut mode) = {
            let track = track_of(&self.track);
            (track.bytes(id).to_vec(), track.mode(id))
        };
        let edit = edit(bytes.len() as u64);
        let seed = begun.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8;
        let mut steps = Vec::new();
        match edit {
            Edit::Write { offset, len, .. } => {
                let data = pattern(seed, len);
                steps = partly(&bytes, offset, &data, self.record);
            }
            Edit::Truncate(size) => bytes.resize(size as usize, 0),
            Edit::Punch(offset, len) => {
                let end = bytes.len().min((offset + len) as usize);
                bytes[end.min(offset as usize)..end].fill(0);
            }
            Edit::Mode(new) => mode = new,
        }
        if steps.is_empty() {
            steps.push(bytes);
        }
        track_of(&self.track).begin_content(begun, id, steps, mode);
        let node = self.node(&path).await?;
        let mut whom = None;
        match edit {
            Edit::Write { offset, len, durable: false } => node.write(offset, &pattern(seed, len)).await?,
            Edit::Write { offset, len, durable: true } => {
                node.write_durable(offset, &pattern(seed, len)).await?;
                whom = Some(Whom::File(id));
            }
            Edit::Truncate(size) => node.truncate(size).await?,
            Edit::Punch(offset, len) => node.punch_hole(offset, len).await?,
            Edit::Mode(mode) => {
                let changes = Changes { permissions: Some(mode), ..Changes::default() };
                node.change(&changes).await?;
            }
        }
        self.answered(begun, whom);
        Ok(())
    }
}

/// The bytes with the write done up to the end of each of its blocks in turn, the last being all of it.
fn partly(old: &[u8], offset: u64, data: &[u8], record: u64) -> Vec<Vec<u8>> {
    let end = offset + data.len() as u64;
    let mut steps = Vec::new();
    let mut upto = offset;
    while upto < end {
        // A file that fits into one block has one.
        let next = (upto / record + 1) * record;
        upto = next.min(end);
        let mut bytes = old.to_vec();
        bytes.resize(bytes.len().max(upto as usize), 0);
        bytes[offset as usize..upto as usize].copy_from_slice(&data[..(upto - offset) as usize]);
        steps.push(bytes);
    }
    steps
}

/// Makes the first files, and the track of them.
pub async fn first_files(fs: &FileSystem) -> Result<()> {
    let root = fs.root().await?;
    let regular = NewFile::new(FileKind::Regular, 0o644);
    for (seed, name, len) in OLD {
        root.create(name.as_bytes(), &regular).await?.write(0, &pattern(seed, len)).await?;
    }
    let directory = root.create(b"dir", &NewFile::new(FileKind::Directory, 0o755)).await?;
    directory.create(b"x", &regular).await.map(drop)
}

const OLD: [(u64, &str, u64); 2] = [(3, "old", 40_000), (5, "other", 10)];

pub fn first_track() -> Track {
    let mut track = Track::default();
    let mut paths = Paths::new();
    for (seed, name, len) in OLD {
        let id = track.add(false, 0o644, 0);
        track.files[id].versions[0].bytes = pattern(seed, len);
        paths.insert(name.to_string(), id);
    }
    paths.insert("dir".into(), track.add(true, 0o755, 0));
    paths.insert("dir/x".into(), track.add(false, 0o644, 0));
    track.begin_names(0, paths, Vec::new());
    track.end(0);
    track
}

/// The pool's complaints as an error.
pub fn uncomplaining(problems: Vec<String>) -> Result<()> {
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Error::corrupt(format!("the pool complains: {problems:?}")))
    }
}
