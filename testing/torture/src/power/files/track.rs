//! What was done to the files of one file system, and when; and what they were after each change.
//!
//! Time is the history's counter. A change that is under way has no end yet.

use crate::power::history::NEVER;
use std::collections::BTreeMap;
use std::fmt;

/// Names a file of the track, whatever names it has.
pub type Id = usize;
pub type Paths = BTreeMap<String, Id>;

/// What a file was after a change, or in the midst of one.
#[derive(Clone, Debug)]
pub struct Version {
    pub begun: u64,
    pub done: u64,
    pub bytes: Vec<u8>,
    pub mode: u32,
    pub extras: Extras,
}

/// What is beside the content of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// Its extended attribute.
    pub xattr: Option<Vec<u8>>,
    /// What its list says of users: number, rights.
    pub users: Vec<(u64, u32)>,
}

impl fmt::Display for Extras {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attribute of {:?} bytes, list of {:?}", self.xattr.as_ref().map(Vec::len), self.users)
    }
}

#[derive(Clone, Debug)]
pub struct File {
    pub is_directory: bool,
    pub versions: Vec<Version>,
}

/// Which names there were after a change.
#[derive(Clone, Debug)]
pub struct Names {
    pub begun: u64,
    pub done: u64,
    pub paths: Paths,
    /// Files that were renamed: what was in them before counts as promised with the rename.
    pub moved: Vec<Id>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    /// All names, and what is in this file.
    File(Id),
    All,
    /// As all, even without the log.
    Txg,
}

/// An answer that promises what was done before it was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Promised {
    pub begun: u64,
    pub done: u64,
    pub whom: Whom,
}

#[derive(Clone, Debug, Default)]
pub struct Track {
    pub files: Vec<File>,
    pub names: Vec<Names>,
    pub promises: Vec<Promised>,
    /// The file, or the names, that are changing now.
    under_way: Option<Option<Id>>,
}

impl Track {
    /// The names as of the last change.
    pub fn paths(&self) -> Paths {
        self.names.last().map(|names| names.paths.clone()).unwrap_or_default()
    }

    pub fn bytes(&self, id: Id) -> &[u8] {
        self.files[id].versions.last().map_or(&[], |version| &version.bytes)
    }

    pub fn mode(&self, id: Id) -> u32 {
        self.files[id].versions.last().map_or(0, |version| version.mode)
    }

    pub fn extras(&self, id: Id) -> Extras {
        self.files[id].versions.last().map(|version| version.extras.clone()).unwrap_or_default()
    }

    /// A file that is about to get its first name.
    pub fn add(&mut self, is_directory: bool, mode: u32, begun: u64, extras: Extras) -> Id {
        let first = Version { begun, done: begun, bytes: Vec::new(), mode, extras };
        self.files.push(File { is_directory, versions: vec![first] });
        self.files.len() - 1
    }

    pub fn begin_names(&mut self, begun: u64, paths: Paths, moved: Vec<Id>) {
        self.names.push(Names { begun, done: NEVER, paths, moved });
        self.under_way = Some(None);
    }

    /// `steps` are what the file may be in the midst of the change; the last is what it is after it.
    pub fn begin_content(&mut self, begun: u64, id: Id, steps: Vec<Vec<u8>>, mode: u32, extras: Extras) {
        let version = |bytes| Version { begun, done: NEVER, bytes, mode, extras: extras.clone() };
        let versions = steps.into_iter().map(version);
        self.files[id].versions.extend(versions);
        self.under_way = Some(Some(id));
    }

    pub fn end(&mut self, now: u64) {
        let done = match self.under_way.take() {
            Some(Some(id)) => self.files[id].versions.last_mut().map(|version| &mut version.done),
            Some(None) => self.names.last_mut().map(|names| &mut names.done),
            None => None,
        };
        if let Some(done) = done {
            *done = now;
        }
    }
}
