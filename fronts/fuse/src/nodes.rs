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

use std::sync::{Mutex, MutexGuard, PoisonError};
use units::HashMap;
use zpl::Node;

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

struct Known {
    node: Node,
    count: u64,
}

#[derive(Default)]
pub(crate) struct Nodes(Mutex<HashMap<u64, Known>>);

impl Nodes {
    fn all(&self) -> MutexGuard<'_, HashMap<u64, Known>> {
        // An entry is whole at any time.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, number: u64) -> Option<Node> {
        self.all().get(&number).map(|known| known.node.clone())
    }

    /// The kernel is about to be told of it once more.
    pub fn tell(&self, number: u64, node: &Node) {
        let mut all = self.all();
        all.entry(number).or_insert_with(|| Known { node: node.clone(), count: 0 }).count += 1;
    }

    /// The kernel gives `count` back: the file when that was all.
    pub fn forget(&self, number: u64, count: u64) -> Option<Node> {
        let mut all = self.all();
        let known = all.get_mut(&number)?;
        known.count = known.count.saturating_sub(count);
        if known.count > 0 { None } else { all.remove(&number).map(|known| known.node) }
    }

    /// The kernel has forgotten all.
    pub fn take_all(&self) -> Vec<Node> {
        self.all().drain().map(|(_, known)| known.node).collect()
    }

    /// What is known of a tree, which goes.
    pub fn take_tree(&self, tree: u16) -> Vec<Node> {
        self.all().extract_if(|number, _| parts(*number).0 == tree).map(|(_, known)| known.node).collect()
    }
}
