//! From a path to a file.

use crate::file_system::FileSystem;
use crate::file_system::node::Node;
use crate::refusal::Refusal;
use crate::stat::FileKind;
use units::Result;

/// As Linux has it.
const LINKS_MAX: usize = 40;

impl FileSystem {
    /// The file that a path from the root leads to. Links on the way are followed, one at the end when `follow` says so;
    /// a target that begins with `/` begins at this file system's root, and nothing leads out of it.
    pub async fn resolve(&self, path: &[u8], follow: bool) -> Result<Node> {
        let root = self.root().await?;
        let mut at = root.clone();
        let mut links = 0;
        let mut todo = names(path);
        while let Some(name) = todo.pop() {
            if !at.is_directory() {
                return Err(at.refuse(Refusal::NotDirectory, "walk through"));
            }
            let next = match name.as_slice() {
                b"." => continue,
                b".." if at.id() == root.id() => continue,
                b".." => at.parent().await?,
                name => at.lookup(name).await?,
            };
            if next.kind() != FileKind::Symlink || (todo.is_empty() && !follow) {
                at = next;
                continue;
            }
            links += 1;
            if links > LINKS_MAX {
                return Err(next.refuse(Refusal::TooManyLinks, "follow"));
            }
            let target = next.read_link().await?;
            if target.first() == Some(&b'/') {
                at = root.clone();
            }
            todo.extend(names(&target));
        }
        Ok(at)
    }
}

/// The names of a path, the last first.
fn names(path: &[u8]) -> Vec<Vec<u8>> {
    let names = path.split(|b| *b == b'/').filter(|name| !name.is_empty());
    names.rev().map(<[u8]>::to_vec).collect()
}
