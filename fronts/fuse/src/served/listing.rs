//! Listing directories.
//!
//! ```text
//!   position   0 begin   1 behind "."   2 behind ".."   3 behind ".zfs"   4 + n  behind the name whose cookie is n
//! ```
//!
//! A position stays good whatever is made or removed meanwhile: cookies are of the names themselves, and snapshots go by
//! their numbers.

use super::attributes::unknown;
use super::names::{CONTROL_NAME, SNAPSHOTS_NAME};
use super::{File, Place, Served};
use crate::attr::{Attr, made_up_directory};
use crate::errno::{Result, errno};
use crate::nodes::{CONTROL, LISTED, ROOT, SNAPSHOTS, number};
use std::sync::atomic::Ordering;
use units::ObjectId;
use zpl::{DirEntry, FileKind};

const DOT: u64 = 1;
const DOT_DOT: u64 = 2;
const SHOWN: u64 = 3;
const NAMES: u64 = 4;

/// One name with the position behind it.
#[derive(Debug)]
pub(crate) struct Listed {
    pub name: Vec<u8>,
    pub number: u64,
    pub kind: FileKind,
    pub position: u64,
    object: Option<ObjectId>,
}

fn behind(cookie: u64) -> u64 {
    // Only with longer hashes than directories have would they reach the end, where the kernel has no positions any more.
    cookie.saturating_add(NAMES).min(i64::MAX as u64)
}

impl Served {
    /// Up to `limit` names from a position on; none at the end.
    pub async fn list(&self, directory: u64, position: u64, limit: usize) -> Result<Vec<Listed>> {
        let place = self.place(directory).await?;
        let mut listed = Vec::new();
        let made_up = |name: &[u8], number, position| Listed {
            name: name.to_vec(),
            number,
            kind: FileKind::Directory,
            position,
            object: None,
        };
        if position < DOT {
            listed.push(made_up(b".", directory, DOT));
        }
        if position < DOT_DOT {
            listed.push(made_up(b"..", self.above(&place).await, DOT_DOT));
        }
        match place {
            Place::Control if position < SHOWN => listed.push(made_up(SNAPSHOTS_NAME, SNAPSHOTS, SHOWN)),
            Place::Control => {}
            Place::Snapshots => listed.extend(self.list_snapshots(position, limit).await?),
            Place::File(file) => {
                if directory == ROOT && self.shows_snapshots.load(Ordering::Relaxed) && position < SHOWN {
                    listed.push(made_up(CONTROL_NAME, CONTROL, SHOWN));
                }
                if position == 0 {
                    self.note_access(&file.node).await;
                }
                let from = position.saturating_sub(NAMES);
                let part = file.node.list(from, limit).await.map_err(|e| errno(&e))?;
                listed.extend(part.entries.into_iter().map(|entry| of_entry(file.tree, entry)));
            }
        }
        Ok(listed)
    }

    async fn above(&self, place: &Place) -> u64 {
        match place {
            Place::Control => ROOT,
            Place::Snapshots => CONTROL,
            Place::File(file) => match file.node.parent().await {
                Ok(node) => self.number(&File { tree: file.tree, node }),
                // The kernel knows where it came from and shows that.
                Err(_) => ROOT,
            },
        }
    }

    async fn list_snapshots(&self, position: u64, limit: usize) -> Result<Vec<Listed>> {
        let mut all = self.dataset.snapshots().await.map_err(|e| errno(&e))?;
        all.sort_by_key(|(_, id)| *id);
        let rest = all.into_iter().filter(|(_, id)| behind(*id) > position.max(SHOWN)).take(limit);
        Ok(rest
            .map(|(name, id)| Listed {
                name: name.into_bytes(),
                number: number(LISTED, id),
                kind: FileKind::Directory,
                position: behind(id),
                object: None,
            })
            .collect())
    }

    /// The attributes of a listed file, told to the kernel; with `false` it must not believe them for any time.
    pub async fn tell_listed(&self, directory: u64, listed: &Listed) -> (Attr, u64, bool) {
        let unknown = |kind| (unknown(made_up_directory(listed.number, self.made), kind), 0, false);
        let Some(object) = listed.object else {
            return (made_up_directory(listed.number, self.made), 0, false);
        };
        let Ok(Place::File(parent)) = self.place(directory).await else { return unknown(None) };
        match parent.node.file_system().object(object).await {
            Ok(node) => {
                let file = File { tree: parent.tree, node };
                match self.told(&file, Some((directory, &listed.name))).await {
                    Ok((attr, generation)) => (attr, generation, true),
                    Err(_) => unknown(Some(file.node.kind())),
                }
            }
            Err(_) => unknown(None),
        }
    }
}

fn of_entry(tree: u16, entry: DirEntry) -> Listed {
    Listed {
        number: number(tree, entry.object.0),
        kind: entry.kind.unwrap_or(FileKind::Regular),
        position: behind(entry.cookie),
        object: Some(entry.object),
        name: entry.name,
    }
}
