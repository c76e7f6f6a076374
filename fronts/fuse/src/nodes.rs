//! The files that the kernel remembers.
//!
//! ```text
//!   number   63      48 47                  0
//!           |  tree   |       object         |     tree 0: the file system; others: its snapshots, as they are used
//!
//!   1                              the root of tree 0
//!   0xffff_0000_0000_0001, ..2     .zfs, and .zfs/snapshot
//! ```
//!
//! Each time a reply tells the kernel of a file its count goes up; the kernel gives counts back when it forgets. A file in
//! the table is held open: its number cannot come to mean another file while the kernel uses it.
//!
//! With it stands the name under which the kernel found it, so that statistics can say of which file a request was: from
//! name to name up to the root. The kernel holds the directories above what it knows, so that these are in the table too; a
//! file that it has by a handle alone has no name here.

use probe::Label;
use std::sync::{Mutex, MutexGuard, PoisonError};
use units::HashMap;
use zpl::{FileKind, Node};

pub(crate) const ROOT: u64 = 1;
pub(crate) const CONTROL: u64 = 0xffff << 48 | 1;
pub(crate) const SNAPSHOTS: u64 = 0xffff << 48 | 2;
/// The tree that snapshots are listed in before anybody goes into them.
pub(crate) const LISTED: u16 = 0xfffe;
/// Trees that snapshots may have.
pub(crate) const TREES: std::ops::Range<u16> = 1..LISTED;

const OBJECT: u64 = (1 << 48) - 1;

/// The number of an object of a tree that is not the root of tree 0.
pub(crate) fn number(tree: u16, object: u64) -> u64 {
    u64::from(tree) << 48 | object & OBJECT
}

pub(crate) fn parts(number: u64) -> (u16, u64) {
    ((number >> 48) as u16, number & OBJECT)
}

/// Labels of files that are kept; when there are more, all are made anew as they are asked for.
const LABELS_MAX: usize = 4096;
/// A path is told from this many bytes before its end on.
const PATH_MAX: usize = 1000;

struct Known {
    node: Node,
    count: u64,
    name: Option<Name>,
}

/// The name under which the kernel found a file last: of several links one.
struct Name {
    parent: u64,
    name: Box<[u8]>,
}

#[derive(Default)]
struct All {
    known: HashMap<u64, Known>,
    /// What files are called in statistics: made when it is asked for, and dropped when a name changes.
    labels: HashMap<u64, Label>,
}

#[derive(Default)]
pub(crate) struct Nodes(Mutex<All>);

impl Nodes {
    fn all(&self) -> MutexGuard<'_, All> {
        // An entry is whole at any time.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, number: u64) -> Option<Node> {
        self.all().known.get(&number).map(|known| known.node.clone())
    }

    /// The kernel is about to be told of it once more, under this name of a directory if under any.
    pub fn tell(&self, number: u64, node: &Node, name: Option<(u64, &[u8])>) {
        let mut all = self.all();
        let known = all.known.entry(number);
        let known = known.or_insert_with(|| Known { node: node.clone(), count: 0, name: None });
        known.count += 1;
        if known.take(name) {
            all.labels.remove(&number);
        }
    }

    /// A file has another name now, and so has everything below it.
    pub fn renamed(&self, number: u64, parent: u64, name: &[u8]) {
        let mut all = self.all();
        if let Some(known) = all.known.get_mut(&number) {
            known.take(Some((parent, name)));
        }
        all.labels.clear();
    }

    /// What a file is called in statistics: `dataset:/path`, and by its number where the path is not known.
    pub fn label(&self, dataset: &str, number: u64) -> Label {
        let mut all = self.all();
        if let Some(label) = all.labels.get(&number) {
            return label.clone();
        }
        let label = Label::new(&match all.path(number) {
            Some(path) => format!("{dataset}:{}", String::from_utf8_lossy(&path)),
            None => format!("{dataset}:object {}", number & OBJECT),
        });
        if all.labels.len() >= LABELS_MAX {
            all.labels.clear();
        }
        all.labels.insert(number, label.clone());
        label
    }

    /// The files of the file system itself that can be written to.
    pub fn files(&self) -> Vec<u64> {
        let all = self.all();
        let is_file = |(number, known): &(&u64, &Known)| {
            parts(**number).0 == 0 && known.node.kind() == FileKind::Regular
        };
        all.known.iter().filter(is_file).map(|(number, _)| *number).collect()
    }

    /// The numbers that are known of a tree.
    pub fn of_tree(&self, tree: u16) -> Vec<u64> {
        self.all().known.keys().copied().filter(|number| parts(*number).0 == tree).collect()
    }

    /// Another handle of the same file, as long as the kernel remembers it.
    pub fn exchange(&self, number: u64, node: Node) {
        if let Some(known) = self.all().known.get_mut(&number) {
            known.node = node;
        }
    }

    /// The kernel gives `count` back: the file when that was all.
    pub fn forget(&self, number: u64, count: u64) -> Option<Node> {
        let mut all = self.all();
        let known = all.known.get_mut(&number)?;
        known.count = known.count.saturating_sub(count);
        if known.count > 0 {
            return None;
        }
        all.labels.remove(&number);
        all.known.remove(&number).map(|known| known.node)
    }

    /// The kernel has forgotten all.
    pub fn take_all(&self) -> Vec<Node> {
        let all = std::mem::take(&mut *self.all());
        all.known.into_values().map(|known| known.node).collect()
    }

    /// What is known of a tree, which goes.
    pub fn take_tree(&self, tree: u16) -> Vec<Node> {
        let mut all = self.all();
        all.labels.clear();
        all.known.extract_if(|number, _| parts(*number).0 == tree).map(|(_, known)| known.node).collect()
    }
}

impl Known {
    /// Whether that is another name than before.
    fn take(&mut self, name: Option<(u64, &[u8])>) -> bool {
        let Some((parent, name)) = name else { return false };
        if self.name.as_ref().is_some_and(|known| known.parent == parent && *known.name == *name) {
            return false;
        }
        self.name = Some(Name { parent, name: name.into() });
        true
    }
}

impl All {
    /// From the root of the file system; `None` when a directory on the way is not known by name.
    fn path(&self, number: u64) -> Option<Vec<u8>> {
        let (mut names, mut length, mut at) = (Vec::new(), 0, number);
        let start: &[u8] = loop {
            match at {
                ROOT => break b"",
                CONTROL => break b"/.zfs",
                SNAPSHOTS => break b"/.zfs/snapshot",
                _ if length > PATH_MAX => break "/\u{2026}".as_bytes(),
                _ => {}
            }
            let Name { parent, name } = self.known.get(&at)?.name.as_ref()?;
            length += 1 + name.len();
            names.push(&**name);
            at = *parent;
        };
        let mut path = start.to_vec();
        for name in names.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        if path.is_empty() {
            path.push(b'/');
        }
        Some(path)
    }
}
