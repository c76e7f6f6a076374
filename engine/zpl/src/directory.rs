//! Names: looking one up, listing all of a directory.
//!
//! A directory is a ZAP of names; a value has the object in its lower 48 bits and what kind of file it is in the upper 4:
//!
//! ```text
//!   63  60            47                                 0
//!  | kind |   zero   |           object                  |      kind 0: a file system of version 1 does not say
//! ```
//!
//! "." and ".." are not stored; a front that wants to show them does. A position in a listing is a number that stays good
//! while the directory grows or shrinks, see [`zap::Cursor`].
//!
//! [`Node::list`] ends at what cannot be read, with an error: programs take what they are given for all that there is.
//! [`Node::salvage`] goes on behind it and names the gaps, for those that say them.

use crate::file_system::node::Node;
use crate::refusal::Refusal;
use crate::stat::FileKind;
use units::{Error, Kind, ObjectId, Result};
use zap::{Entry, Gap, OwnedKey, Value};

const OBJECT: u64 = (1 << 48) - 1;

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    pub name: Vec<u8>,
    pub object: ObjectId,
    /// What the name says the file is, if it does; the file itself decides.
    pub kind: Option<FileKind>,
    /// Where the listing goes on behind this entry.
    pub cookie: u64,
}

/// A part of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    pub entries: Vec<DirEntry>,
    /// Nothing comes behind them.
    pub is_end: bool,
}

/// A part of a directory that may be damaged.
#[derive(Debug)]
pub struct Salvaged {
    pub entries: Vec<DirEntry>,
    /// What cannot be read between them.
    pub gaps: Vec<Gap>,
    /// The cookie of the rest; `None` behind the last entry.
    pub next: Option<u64>,
}

impl Node {
    /// The object under a name of this directory, and what kind of file it says it is; `None` when there is no such name.
    pub async fn entry(&self, name: &[u8]) -> Result<Option<(ObjectId, Option<FileKind>)>> {
        let directory = self.directory()?;
        if name.is_empty() || name.contains(&0) || name.len() >= zap::LONG_NAME_MAX {
            return Ok(None);
        }
        let value = match self.file_system().matching() {
            None => directory.lookup(name).await,
            Some(how) => match directory.lookup_normalized(name, how).await {
                // A directory that keeps names as they are in a file system that does not: what is there can be found.
                Err(e) if e.kind() == Kind::Unsupported => directory.lookup(name).await,
                found => found.map(|found| found.map(|found| found.value)),
            },
        };
        let entry = value.and_then(|value| value.map(|value| target(name, &value)).transpose());
        entry.map_err(|e| self.place(e))
    }

    /// The name as it is stored, and its object.
    pub(crate) async fn stored_entry(&self, name: &[u8]) -> Result<Option<(Vec<u8>, ObjectId)>> {
        let directory = self.directory()?;
        let found = match self.file_system().matching() {
            None => directory.lookup(name).await.map(|value| value.map(|value| (name.to_vec(), value))),
            Some(how) => {
                let found = directory.lookup_normalized(name, how).await;
                found.map(|found| found.map(|found| (found.name, found.value)))
            }
        };
        let Some((name, value)) = found.map_err(|e| self.place(e))? else { return Ok(None) };
        let (object, _) = target(&name, &value).map_err(|e| self.place(e))?;
        Ok(Some((name, object)))
    }

    /// The file under a name of this directory. "." and ".." are no names here.
    pub async fn lookup(&self, name: &[u8]) -> Result<Node> {
        let missing = || {
            let what = format!("look up '{}'", String::from_utf8_lossy(name));
            self.place(Error::new(Kind::NotFound, what))
        };
        let (object, _) = self.entry(name).await?.ok_or_else(missing)?;
        self.file_system().object(object).await
    }

    /// Up to `limit` names from `cookie` on; 0 is the first.
    pub async fn list(&self, cookie: u64, limit: usize) -> Result<Listing> {
        let listed = self.directory()?.page_by_cookie(cookie, limit).await;
        let (listed, mut is_end) = listed.map_err(|e| self.place(e))?;
        let mut entries = Vec::with_capacity(listed.len());
        for (entry, cookie) in listed {
            match dir_entry(entry, cookie) {
                Ok(entry) => entries.push(entry),
                Err(e) if entries.is_empty() => return Err(self.place(e)),
                // The names before it are given; the error is that of the part which starts with it.
                Err(_) => {
                    is_end = false;
                    break;
                }
            }
        }
        self.read_ahead(cookie, &entries);
        Ok(Listing { entries, is_end })
    }

    /// As [`Node::list`], around what cannot be read: at least so many names, if there are. Errors: none of the directory
    /// can be read.
    pub async fn salvage(&self, cookie: u64, at_least: usize) -> Result<Salvaged> {
        let found = self.directory()?.salvage(cookie, at_least).await.map_err(|e| self.place(e))?;
        let mut gaps: Vec<Gap> =
            found.gaps.into_iter().map(|gap| Gap { why: self.place(gap.why), ..gap }).collect();
        let mut entries = Vec::with_capacity(found.entries.len());
        for (entry, cookie) in found.entries {
            match dir_entry(entry, cookie) {
                Ok(entry) => entries.push(entry),
                Err(e) => gaps.push(Gap { why: self.place(e), more: 0 }),
            }
        }
        self.read_ahead(cookie, &entries);
        Ok(Salvaged { entries, gaps, next: found.next })
    }

    /// All names, in the order of listing. For directories that may be large, go by [`Node::list`].
    pub async fn list_all(&self) -> Result<Vec<DirEntry>> {
        let mut all = Vec::new();
        loop {
            let from = all.last().map_or(0, |entry: &DirEntry| entry.cookie);
            let part = self.list(from, 1024).await?;
            let is_end = part.is_end || part.entries.is_empty();
            all.extend(part.entries);
            if is_end {
                return Ok(all);
            }
        }
    }

    /// Where a symbolic link leads.
    pub async fn read_link(&self) -> Result<Vec<u8>> {
        use crate::sa::Attr;
        if self.kind() != FileKind::Symlink {
            return Err(self.refuse(Refusal::NotSymlink, "read link"));
        }
        let size = self.size()?;
        let len = usize::try_from(size).ok().filter(|len| *len <= LINK_MAX);
        let len = len.ok_or_else(|| self.place(Error::corrupt(format!("symbolic link of {size} bytes"))))?;
        if let Some(mut target) = self.attribute(Attr::Symlink).await?
            && target.len() >= len
        {
            target.truncate(len);
            return Ok(target);
        }
        // Links of before version 5 that are too long for the bonus, and attributes that are not where they should be.
        if self.object().attrs().bonus_kind == ondisk::ObjectType::SA {
            return Err(self.place(Error::corrupt("attribute ZPL_SYMLINK: it is missing or too short")));
        }
        self.object().read(0, len).await.map(|target| target.to_vec()).map_err(|e| self.place(e))
    }
}

/// The longest target that an attribute can hold.
const LINK_MAX: usize = 64 << 10;

fn dir_entry(entry: Entry, cookie: u64) -> Result<DirEntry> {
    let OwnedKey::Name(name) = entry.key else {
        return Err(Error::corrupt("directory whose keys are no names"));
    };
    let (object, kind) = target(&name, &entry.value)?;
    Ok(DirEntry { name, object, kind, cookie })
}

pub(crate) fn target(name: &[u8], value: &Value) -> Result<(ObjectId, Option<FileKind>)> {
    let odd = || Error::corrupt(format!("entry '{}': {value:?}", String::from_utf8_lossy(name)));
    let word = value.as_u64s().and_then(|words| words.first()).ok_or_else(odd)?;
    let object = ObjectId(word & OBJECT).some().ok_or_else(odd)?;
    Ok((object, FileKind::from_code(word >> 60)))
}
