//! Reading ahead of those who list directories.
//!
//! ```text
//!   list ─┬─▶ the dnodes of the names, side by side: who asks for names asks for attributes next
//!         └─ the directory above was listed before: somebody goes through a tree
//!               └──▶ the first block of each directory among the names
//! ```
//!
//! What is open or in the cache is passed over; nothing waits for the rest.

use crate::directory::DirEntry;
use crate::file_system::node::Node;
use crate::sa::Attr;
use crate::stat::FileKind;
use futures_util::stream::{self, StreamExt};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use units::ObjectId;

/// So many directories are remembered: more than lie between two listings in one directory, but for the uppermost.
const REMEMBERED: usize = 1024;
/// Of one listing so many directories are looked into, so many at once.
const DIRECTORIES: usize = 64;
const AT_ONCE: usize = 8;

/// The directories that were listed last.
#[derive(Debug, Default)]
pub(crate) struct Walks(Mutex<VecDeque<ObjectId>>);

impl Walks {
    /// Notes that a directory is listed; answers whether that above it was, too.
    fn note(&self, directory: ObjectId, above: ObjectId) -> bool {
        // Whatever is in it is no more than a guess.
        let mut listed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_walk = directory != above && listed.contains(&above);
        if !listed.contains(&directory) {
            if listed.len() == REMEMBERED {
                listed.pop_front();
            }
            listed.push_back(directory);
        }
        is_walk
    }
}

impl Node {
    /// These are listed of the directory, from `cookie` on.
    pub(crate) fn read_ahead(&self, cookie: u64, entries: &[DirEntry]) {
        if self.is_xattr() || entries.is_empty() {
            return;
        }
        let fs = self.file_system();
        let set = fs.object_set();
        set.prefetch_dnodes(entries.iter().map(|entry| entry.object));
        let above = self.bonus_attributes().ok().and_then(|own| own.word(Attr::Parent).ok().flatten());
        let Some(above) = above.filter(|_| cookie == 0) else { return };
        if !fs.0.walks.note(self.id().object, ObjectId(above)) {
            return;
        }
        let directories = entries.iter().filter(|entry| entry.kind == Some(FileKind::Directory));
        let below = fs.not_open(directories.map(|entry| entry.object).take(DIRECTORIES));
        if below.is_empty() {
            return;
        }
        let set = set.clone();
        dmu::aside(stream::iter(below).for_each_concurrent(AT_ONCE, move |id| {
            let set = set.clone();
            async move {
                // A caller that needs it meets the error again.
                if let Ok(directory) = set.object(id).await {
                    directory.prefetch_block(0).await;
                }
            }
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn going_down_is_a_walk_and_looking_into_one_directory_is_not() {
        let walks = Walks::default();
        let [root, a, b, c] = [34, 1, 2, 3].map(ObjectId);
        assert!(!walks.note(a, root));
        assert!(!walks.note(root, root), "nothing is above the root");
        assert!(!walks.note(root, root));
        assert!(walks.note(b, root));
        assert!(walks.note(c, b));
        assert!(walks.note(b, root), "again");
        for i in 0..REMEMBERED as u64 {
            walks.note(ObjectId(1000 + i), ObjectId(999));
        }
        assert!(!walks.note(a, root), "that was long ago");
        assert_eq!(walks.0.lock().unwrap().len(), REMEMBERED);
    }
}
