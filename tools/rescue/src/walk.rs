//! Everything below a file or directory, parents before children, siblings by name.
//!
//! Directories on a damaged or hostile disk may lead into one another: each is entered once, and a second way to it is
//! said and left out. Names that could not be made anywhere (with a slash, `.` or `..`) are treated so too. In a damaged
//! directory the walk goes on behind the damage, and says each gap.

use crate::session::{Session, TRIES};
use crate::text;
use std::collections::BTreeSet;
use units::{Error, Kind, ObjectId, Result};
use zpl::{DirEntry, Gap, Node, Stat};

/// How many entries are asked for at once.
const PAGE: usize = 4096;

/// A file on the way.
#[derive(Debug)]
pub struct Found {
    /// From where the walk began; empty for that itself.
    pub path: Vec<u8>,
    pub node: Node,
    pub stat: Stat,
    pub depth: usize,
}

/// What is not reached yet. A pool that a daemon writes to may be another by then, and the file is looked for by its name.
#[derive(Debug)]
struct Item {
    path: Vec<u8>,
    depth: usize,
    /// Where the walk begins, or a directory.
    from: Node,
    /// Which opening of the pool that is of.
    opened: u64,
    /// Below the directory.
    entry: Option<DirEntry>,
}

impl Item {
    async fn reach(&self) -> Result<(Node, Stat)> {
        let node = match &self.entry {
            None => self.from.clone(),
            Some(entry) => self.from.file_system().object(entry.object).await?,
        };
        let stat = node.stat().await?;
        Ok((node, stat))
    }

    /// The same in the pool as it is now.
    async fn go_over(&mut self, session: &mut Session) -> Option<Result<()>> {
        self.from = session.since(&self.from, self.opened).await?;
        self.opened = session.opened();
        let Some(entry) = &mut self.entry else { return Some(Ok(())) };
        Some(self.from.lookup(&entry.name).await.map(|node| entry.object = node.id().object))
    }
}

/// See the module.
#[derive(Debug)]
pub struct Walk {
    /// How the start is called in messages.
    start: String,
    todo: Vec<Item>,
    entered: BTreeSet<ObjectId>,
    depth_max: usize,
}

impl Walk {
    /// `opened`: which [opening](Session::opened) of the pool the node is of.
    pub fn new(start: &str, node: Node, opened: u64) -> Walk {
        let first = Item { path: Vec::new(), depth: 0, from: node, opened, entry: None };
        Walk { start: start.into(), todo: vec![first], entered: BTreeSet::new(), depth_max: usize::MAX }
    }

    /// Only the start and what is directly in it.
    #[must_use]
    pub fn shallow(self) -> Walk {
        Walk { depth_max: 1, ..self }
    }

    /// A path of the walk, with where it began.
    pub fn shown(&self, path: &[u8]) -> String {
        shown(&self.start, path)
    }

    /// Leaves out everything below a directory that was just found.
    pub fn leave(&mut self, path: &[u8]) {
        let is_below = |other: &[u8]| match other.strip_prefix(path) {
            Some(rest) => path.is_empty() || rest.first() == Some(&b'/'),
            None => false,
        };
        self.todo.retain(|item| !is_below(&item.path));
    }

    pub async fn next(&mut self, session: &mut Session) -> Result<Option<Found>> {
        while let Some(item) = self.todo.pop() {
            let (path, depth) = (item.path.clone(), item.depth);
            let (node, stat) = match reach(session, item).await {
                Ok(reached) => reached,
                Err(e) => {
                    session.output.complain(format!("cannot read '{}': {e}", self.shown(&path)));
                    continue;
                }
            };
            if node.is_directory() && !self.entered.insert(stat.object) {
                let what = "it is another name of a directory above or beside it";
                session.output.complain(format!("cannot enter '{}': {what}", self.shown(&path)));
                continue;
            }
            if node.is_directory() && depth < self.depth_max {
                self.enter(session, &path, depth, &node).await;
            }
            return Ok(Some(Found { path, node, stat, depth }));
        }
        Ok(None)
    }

    async fn enter(&mut self, session: &mut Session, path: &[u8], depth: usize, directory: &Node) {
        let (mut entries, directory) = self.names(session, path, directory.clone()).await;
        entries.sort_by(|a, b| b.name.cmp(&a.name));
        for entry in entries {
            let below = if path.is_empty() { entry.name.clone() } else { [path, b"/", &entry.name].concat() };
            if !is_plain(&entry.name) {
                session
                    .output
                    .complain(format!("cannot use '{}': no file can be called so", self.shown(&below)));
                continue;
            }
            let (from, entry) = (directory.clone(), Some(entry));
            self.todo.push(Item { path: below, depth: depth + 1, from, opened: session.opened(), entry });
        }
    }

    /// All names that can be read, and the directory as it is in the pool that they were read from. What cannot be read
    /// is said, unless the pool as it is now has it.
    async fn names(&self, session: &mut Session, path: &[u8], mut directory: Node) -> (Vec<DirEntry>, Node) {
        let mut all: Vec<DirEntry> = Vec::new();
        let (mut from, mut tries) = (0, 0);
        loop {
            let part = directory.salvage(from, PAGE).await;
            if !part.as_ref().is_ok_and(|part| part.gaps.is_empty()) && tries < TRIES {
                tries += 1;
                if let Some(now) = session.again(&directory).await {
                    directory = now;
                    continue;
                }
            }
            let (gaps, next) = match part {
                Ok(part) => {
                    all.extend(part.entries);
                    (part.gaps, part.next)
                }
                Err(why) => (vec![Gap { why, more: 0 }], None),
            };
            for Gap { why, more } in gaps {
                let more = if more == 0 { String::new() } else { format!(", and {more} more behind it") };
                session.output.complain(format!("cannot list all of '{}': {why}{more}", self.shown(path)));
            }
            match next {
                Some(next) => from = next,
                None => return (all, directory),
            }
        }
    }
}

/// The file, and what is said of it, in the newest pool in which it can be had.
async fn reach(session: &mut Session, mut item: Item) -> Result<(Node, Stat)> {
    // Of a pool that is closed the cache may still tell, and no device.
    let mut is_there = match item.opened == session.opened() {
        true => Ok(()),
        false => Err(Error::new(Kind::Io, "read file").because("its pool was opened again")),
    };
    let mut tries = 0;
    loop {
        let reached = match is_there {
            Ok(()) => item.reach().await,
            Err(e) => Err(e),
        };
        if reached.is_ok() || tries > TRIES {
            return reached;
        }
        tries += 1;
        match item.go_over(session).await {
            None => return reached,
            Some(done) => is_there = done,
        }
    }
}

fn is_plain(name: &[u8]) -> bool {
    !name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/') && !name.contains(&0)
}

/// `tank:/etc` and `passwd` are `tank:/etc/passwd`; a file system alone has its root.
pub fn shown(start: &str, path: &[u8]) -> String {
    let (start, path) = (text::path(start.as_bytes()), text::path(path));
    match path.as_str() {
        "" => start,
        path if start.ends_with('/') => format!("{start}{path}"),
        path if start.contains(':') => format!("{start}/{path}"),
        path => format!("{start}:/{path}"),
    }
}
