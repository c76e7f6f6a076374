//! A client of one file system: does what the letters say, and writes down what it asked and what it was answered.

use super::super::client::{Faith, Shared, lock};
use super::track::{Extras, Id, Paths, Promised, Track, Whom};
use crate::model::pattern;
use dmu::SyncMode;
use pool::Pool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{Error, Result};
use zpl::{Ace, Changes, FileKind, FileSystem, NewFile, Node, Renaming, Who, Writing, rights};

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
    Write {
        offset: u64,
        len: u64,
        durable: bool,
        direct: bool,
    },
    Truncate(u64),
    Punch(u64, u64),
    /// The list goes with it.
    Mode(u32),
    /// Small ones are in the dnode, large ones in files: from one of these places into the other, and away.
    Xattr,
    List,
}

const XATTR: &[u8] = b"user.e";
const SMALL: u64 = 300;
const LARGE: u64 = 40_000;
/// What direct writes are aligned to.
const PAGE: u64 = 4096;
/// Of whom lists speak: of files, and of the root directory, from which new ones take it over.
const USER: u64 = 7;
const HEIR: u64 = 9;

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
            'W' => self.write(|_| (3000, 5000), false).await,
            'A' => self.write(|size| (size, 20_000), false).await,
            'S' => self.write(|_| (100, 700), true).await,
            // A part of a record, two whole ones, and another part.
            'D' => {
                let (offset, len) = (PAGE, 3 * self.record.max(2 * PAGE));
                self.edit(|_| Edit::Write { offset, len, durable: false, direct: true }).await
            }
            'T' => self.edit(|_| Edit::Truncate(2500)).await,
            'P' => self.edit(|_| Edit::Punch(1000, 3000)).await,
            'O' => self.edit(|size| Edit::Mode(if size % 3 == 0 { 0o600 } else { 0o755 })).await,
            'E' => self.edit(|_| Edit::Xattr).await,
            'N' => self.edit(|_| Edit::List).await,
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
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        {
            let mut track = track_of(&self.track);
            let extras = if parent.is_empty() { heir() } else { Extras::default() };
            let id = track.add(kind == FileKind::Directory, 0o644, begun, extras);
            paths.insert(path.to_string(), id);
            track.begin_names(begun, paths, Vec::new());
        }
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

    /// Where, and how many bytes, by the size of the file.
    async fn write(&self, at: impl FnOnce(u64) -> (u64, u64), durable: bool) -> Result<()> {
        let edit = |size| {
            let (offset, len) = at(size);
            Edit::Write { offset, len, durable, direct: false }
        };
        self.edit(edit).await
    }

    async fn edit(&self, edit: impl FnOnce(u64) -> Edit) -> Result<()> {
        let Some((path, id)) = self.subject() else { return Ok(()) };
        let begun = self.now();
        let (mut bytes, mut mode, mut extras) = {
            let track = track_of(&self.track);
            (track.bytes(id).to_vec(), track.mode(id), track.extras(id))
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
            Edit::Mode(new) => {
                mode = new;
                extras.users.clear();
            }
            Edit::Xattr => {
                let next = match extras.xattr.as_ref().map(|value| value.len() as u64) {
                    None => Some(SMALL),
                    Some(SMALL) => Some(LARGE),
                    Some(_) if mode == 0o644 => Some(SMALL),
                    Some(_) => None,
                };
                extras.xattr = next.map(|len| pattern(seed, len));
            }
            Edit::List => {
                mode = 0o644;
                let may_write = extras.users.iter().any(|(_, held)| held & rights::WRITE_DATA != 0);
                let more = if may_write { 0 } else { rights::WRITE_DATA };
                extras.users = vec![(USER, rights::READ_DATA | more)];
            }
        }
        if steps.is_empty() {
            steps.push(bytes);
        }
        track_of(&self.track).begin_content(begun, id, steps, mode, extras.clone());
        let node = self.node(&path).await?;
        let mut whom = None;
        match edit {
            Edit::Write { offset, len, durable, direct } => {
                let how = Writing { durably: durable, is_direct: direct };
                node.write_as(offset, self.fs.parts(offset, &pattern(seed, len)), how).await?;
                whom = durable.then_some(Whom::File(id));
            }
            Edit::Truncate(size) => node.truncate(size).await?,
            Edit::Punch(offset, len) => node.punch_hole(offset, len).await?,
            Edit::Mode(mode) => {
                let changes = Changes { permissions: Some(mode), ..Changes::default() };
                node.change(&changes).await?;
            }
            Edit::Xattr => match &extras.xattr {
                Some(value) => node.set_xattr(XATTR, value).await?,
                None => node.remove_xattr(XATTR).await?,
            },
            Edit::List => node.set_acl(&list(&extras.users, 0)).await?,
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

/// What is taken over from the root directory.
fn heir() -> Extras {
    Extras { xattr: None, users: vec![(HEIR, rights::READ_DATA)] }
}

/// A list for which the mode is 644.
fn list(users: &[(u64, u32)], flags: u16) -> Vec<Ace> {
    let ace = |who, flags, rights| Ace { kind: 0, flags, rights, who };
    let named = users.iter().map(|&(id, held)| ace(Who::User(id), flags, held));
    let all = [
        (Who::Owner, rights::READ_DATA | rights::WRITE_DATA),
        (Who::Group, rights::READ_DATA),
        (Who::Everyone, rights::READ_DATA),
    ];
    named.chain(all.map(|(who, held)| ace(who, 0, held))).collect()
}

/// What a file has beside its content.
pub async fn extras_of(node: &Node) -> Result<Extras> {
    let named = |ace: &Ace| match ace.who {
        Who::User(id) => Some((id, ace.rights)),
        _ => None,
    };
    let users = match node.is_directory() {
        true => Vec::new(),
        false => node.acl().await?.iter().filter_map(named).collect(),
    };
    Ok(Extras { xattr: node.xattr(XATTR).await?, users })
}

/// Makes the first files, and the track of them.
pub async fn first_files(fs: &FileSystem) -> Result<()> {
    let root = fs.root().await?;
    let regular = NewFile::new(FileKind::Regular, 0o644);
    for (seed, name, len) in OLD {
        root.create(name.as_bytes(), &regular).await?.write(0, &pattern(seed, len)).await?;
    }
    let directory = root.create(b"dir", &NewFile::new(FileKind::Directory, 0o755)).await?;
    directory.create(b"x", &regular).await?;
    // Of both kinds there is one, so that the log may have them from the start.
    root.set_xattr(XATTR, &pattern(7, SMALL)).await?;
    root.lookup(b"old").await?.set_xattr(XATTR, &pattern(7, LARGE)).await?;
    const TO_FILES_AND_DIRECTORIES: u16 = 0x3;
    root.set_acl(&list(&heir().users, TO_FILES_AND_DIRECTORIES)).await
}

const OLD: [(u64, &str, u64); 2] = [(3, "old", 40_000), (5, "other", 10)];

pub fn first_track() -> Track {
    let mut track = Track::default();
    let mut paths = Paths::new();
    for (seed, name, len) in OLD {
        let id = track.add(false, 0o644, 0, Extras::default());
        track.files[id].versions[0].bytes = pattern(seed, len);
        paths.insert(name.to_string(), id);
    }
    let old = paths["old"];
    track.files[old].versions[0].extras.xattr = Some(pattern(7, LARGE));
    paths.insert("dir".into(), track.add(true, 0o755, 0, Extras::default()));
    paths.insert("dir/x".into(), track.add(false, 0o644, 0, Extras::default()));
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
