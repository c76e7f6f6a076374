//! Properties in the MOS: reading the ZAPs along a dataset's chain of directories.

use units::{ObjectId, Result};

use crate::dsl::Dsl;
use crate::props::effective::{Chain, Change, Level, PropMap};
use crate::props::{PropName, Source, Types, Value};
use crate::tree::Found;
use crate::zaps::{self, Table};

/// The property ZAPs that count for one dataset, as read.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    snapshot: Option<(String, PropMap)>,
    dirs: Vec<(String, PropMap)>,
}

impl Levels {
    pub fn chain(&self) -> Chain<'_> {
        fn level((name, entries): &(String, PropMap)) -> Level<'_> {
            Level { name, entries }
        }
        Chain { snapshot: self.snapshot.as_ref().map(level), dirs: self.dirs.iter().map(level).collect() }
    }
}

/// Reads a property ZAP. Values that are neither one number nor text are passed over.
async fn read(table: &Table) -> Result<PropMap> {
    let mut entries = PropMap::new();
    for entry in table.entries().await? {
        let value = match &entry.value {
            zap::Value::U64(words) if words.len() == 1 => Value::Number(words[0]),
            value => match value.as_text() {
                Some(text) => Value::Text(text.into()),
                None => continue,
            },
        };
        entries.insert(entry.name().into_owned(), value);
    }
    Ok(entries)
}

/// Carries changes out on a property ZAP.
pub(crate) async fn write(table: &Table, tx: &dmu::Tx, changes: &[Change]) -> Result<()> {
    for change in changes {
        match change {
            Change::Put(key, Value::Number(n)) => table.update(tx, key, *n).await?,
            Change::Put(key, Value::Text(text)) => table.update(tx, key, zap::Value::text(text)).await?,
            Change::Remove(key) => zaps::remove_if_any(table, tx, key).await?,
        }
    }
    Ok(())
}

impl Dsl {
    async fn read_props(&self, id: ObjectId) -> Result<PropMap> {
        match id.some() {
            Some(id) => {
                self.core.count_asked();
                read(&self.core.table(id).await?).await
            }
            None => Ok(PropMap::new()),
        }
    }

    /// The property ZAPs from a directory to the pool, without names: for values, where sources do not matter.
    pub(crate) async fn prop_levels(&self, dir: ObjectId) -> Result<Levels> {
        let mut levels = Levels::default();
        for (_, phys) in self.chain(dir).await? {
            levels.dirs.push((String::new(), self.read_props(phys.props).await?));
        }
        Ok(levels)
    }

    /// What is set on a directory itself: enough for properties that are not inherited.
    pub(crate) async fn own_level(&self, dir: ObjectId) -> Result<Levels> {
        let (_, phys) = self.core.dir(dir).await?;
        Ok(Levels { snapshot: None, dirs: vec![(String::new(), self.read_props(phys.props).await?)] })
    }

    /// Everything that counts for a dataset, with the names that sources show.
    pub async fn levels_of(&self, found: &Found) -> Result<Levels> {
        let mut levels = Levels::default();
        if found.is_snapshot() {
            levels.snapshot = Some((found.name.clone(), self.read_props(found.phys.props).await?));
        }
        let mut name = found.name.split('@').next().unwrap_or_default();
        for (_, phys) in self.chain(found.dir_id).await? {
            levels.dirs.push((name.into(), self.read_props(phys.props).await?));
            name = crate::name::split_parent(name).map_or("", |(parent, _)| parent);
        }
        Ok(levels)
    }

    /// The value of a property in force on a dataset, with its source.
    pub async fn property(&self, name: &str, prop: &PropName) -> Result<Option<(Value, Source)>> {
        let found = self.find(name).await?;
        Ok(self.levels_of(&found).await?.chain().resolve(prop))
    }

    /// Whether a property says something about this kind of dataset.
    pub fn applies(prop: &PropName, types: Types) -> bool {
        match prop {
            PropName::Native(prop) => prop.row().applies_to(types),
            PropName::User(_) => true,
        }
    }
}
