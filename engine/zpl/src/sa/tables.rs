//! The registry and the layouts of one file system.

use super::Attr;
use crate::attributes::{REGISTRY, Swap};
use dmu::{ObjSet, Object};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{Error, ObjectId, Result, Txg};
use zap::{Value, Zap};

/// A layout in the table of which nothing can be in: reserved for buffers without an attribute.
const EMPTY_LAYOUT: u16 = 1;

/// An attribute as this file system registers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Registered {
    /// What it means to us, if anything.
    pub attr: Option<Attr>,
    /// In bytes; 0 is variable.
    pub length: u16,
    /// Bytes of a word, for machines of the other byte order; 0 for ACLs, whose fields differ.
    pub word: usize,
}

/// See the module. Shared by all files of a file system.
#[derive(Debug)]
pub struct Tables {
    /// By number.
    registry: Vec<(u16, Registered)>,
    /// The number of each of [`Attr::ALL`] that the file system has.
    numbers: Vec<Option<u16>>,
    layouts: Mutex<BTreeMap<u16, Arc<[u16]>>>,
    /// Where new layouts are written; none in a file system of an older version.
    pub(super) zap: Option<Zap<Object>>,
    /// Held by the task that adds one.
    pub(super) adding: world::sync::Mutex<()>,
    /// In which txg each was made that was made since the file system was opened.
    pub(super) made: Mutex<BTreeMap<u16, Txg>>,
    /// The newest of these.
    pub(super) newest: AtomicU64,
}

impl Tables {
    /// Those of a file system that has none: all its files are of the old kind.
    pub fn none() -> Tables {
        Tables::with(known(), BTreeMap::new(), None)
    }

    fn with(
        registry: BTreeMap<u16, Registered>,
        layouts: BTreeMap<u16, Arc<[u16]>>,
        zap: Option<Zap<Object>>,
    ) -> Tables {
        let number =
            |attr| registry.iter().find(|(_, row)| row.attr == Some(attr)).map(|(number, _)| *number);
        Tables {
            numbers: Attr::ALL.into_iter().map(number).collect(),
            registry: registry.into_iter().collect(),
            layouts: Mutex::new(layouts),
            zap,
            adding: world::sync::Mutex::new(()),
            made: Mutex::default(),
            newest: AtomicU64::new(0),
        }
    }

    /// Reads them; `master` is the object that the master node calls `SA_ATTRS`.
    pub async fn open(set: &ObjSet, master: ObjectId) -> Result<Tables> {
        let master = Zap::open(set.object(master).await?);
        // A file system whose attributes were never registered has no file with any.
        let Some(registry) = master.lookup_u64("REGISTRY").await? else { return Ok(Tables::none()) };
        let registry = Zap::open(set.object(ObjectId(registry)).await?);
        let mut table = BTreeMap::new();
        for entry in registry.entries().await? {
            let name = entry.name().into_owned();
            let row = entry.value.as_u64().and_then(|value| decode_row(&name, value));
            let (number, row) = row.ok_or_else(|| {
                Error::corrupt(format!("SA registry: attribute {name} is {:?}", entry.value))
            })?;
            table.insert(number, row);
        }
        let layouts = Zap::open(set.object(ObjectId(master.require_u64("LAYOUTS").await?)).await?);
        let mut found = BTreeMap::new();
        for entry in layouts.entries().await? {
            let number = entry.name().parse().ok();
            let layout = match &entry.value {
                Value::U16(list) if list.iter().all(|number| table.contains_key(number)) => Some(list),
                _ => None,
            };
            let (Some(number), Some(layout)) = (number, layout) else {
                let what = format!("SA layout {}: attributes {:?}", entry.name(), entry.value);
                return Err(Error::corrupt(what));
            };
            found.insert(number, layout.as_slice().into());
        }
        Ok(Tables::with(table, found, Some(layouts)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<u16, Arc<[u16]>>> {
        // Under this lock a map is read or gets one entry.
        self.layouts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn layout(&self, number: u16) -> Option<Arc<[u16]>> {
        let known = self.lock().get(&number).cloned();
        known.or_else(|| (number == EMPTY_LAYOUT).then(|| [].into()))
    }

    /// The number of an attribute in this file system.
    pub(super) fn number(&self, attr: Attr) -> Option<u16> {
        self.numbers[attr as usize]
    }

    pub(crate) fn row(&self, number: u16) -> Option<&Registered> {
        // In most file systems the numbers are 0, 1, 2 ….
        let here = self.registry.get(usize::from(number)).filter(|(n, _)| *n == number);
        let found = || self.registry.binary_search_by_key(&number, |(n, _)| *n).ok();
        here.or_else(|| found().map(|at| &self.registry[at])).map(|(_, row)| row)
    }
}

/// The registry that every file system of ours has.
fn known() -> BTreeMap<u16, Registered> {
    let rows = REGISTRY.iter().zip(Attr::ALL);
    rows.map(|(row, attr)| {
        let word = match row.swap {
            Swap::Words64 => 8,
            Swap::Bytes => 1,
            Swap::Acl => 0,
        };
        (row.number, Registered { attr: Some(attr), length: row.length, word })
    })
    .collect()
}

fn decode_row(name: &str, value: u64) -> Option<(u16, Registered)> {
    let word = match value >> 16 & 0xff {
        0 => 8,
        1 => 4,
        2 => 2,
        3 => 1,
        4 => 0,
        _ => return None,
    };
    let (length, attr) = ((value >> 24 & 0xffff) as u16, Attr::from_name(name));
    // What is written later has the length that every file system registers.
    let is_usual = attr.is_none_or(|attr| REGISTRY[attr as usize].length == length);
    is_usual.then_some((value as u16, Registered { attr, length, word }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mode registered with sixteen bytes was read with them, and written with the eight that a mode has: that panicked.
    #[test]
    fn what_every_file_system_registers_has_its_length() {
        let row = |length: u64| decode_row("ZPL_MODE", 5 | length << 24);
        assert!(row(8).is_some_and(|(number, row)| number == 5 && row.attr == Some(Attr::Mode)));
        assert!(row(16).is_none() && row(0).is_none());
        assert!(decode_row("ORG_OTHER", 40 | 16 << 24).is_some_and(|(_, row)| row.length == 16));
    }
}
