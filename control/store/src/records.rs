//! Typed tables over the database's tables of bytes.

use redb::{ReadTransaction, ReadableTable, TableDefinition, TableError, TableHandle, WriteTransaction};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use units::{Error, Kind, Result};

/// Table, key, JSON.
pub(crate) type Everything = BTreeMap<String, BTreeMap<String, Value>>;

/// Records of one type by their keys, in the order of the keys.
#[derive(Debug)]
pub struct Table<T> {
    name: &'static str,
    records: PhantomData<fn() -> T>,
}

impl<T> Table<T> {
    /// `name` is for ever; by convention `area.things`.
    pub const fn new(name: &'static str) -> Table<T> {
        Table { name, records: PhantomData }
    }

    pub const fn name(&self) -> &'static str {
        self.name
    }
}

/// What can be asked, of a [`Reader`] as of a [`Writer`], which sees its own changes.
pub trait Look {
    #[doc(hidden)]
    fn bytes(&self, table: &str, key: &str) -> Result<Option<Vec<u8>>>;
    #[doc(hidden)]
    fn rows(&self, table: &str) -> Result<Vec<(String, Vec<u8>)>>;

    fn get<T: DeserializeOwned>(&self, table: &Table<T>, key: &str) -> Result<Option<T>> {
        self.bytes(table.name, key)?.map(|bytes| decode(table.name, key, &bytes)).transpose()
    }

    /// All records, by key.
    fn all<T: DeserializeOwned>(&self, table: &Table<T>) -> Result<Vec<(String, T)>> {
        let rows = self.rows(table.name)?;
        rows.into_iter().map(|(key, bytes)| Ok((key.clone(), decode(table.name, &key, &bytes)?))).collect()
    }

    /// As [`Look::all`], of records that came from elsewhere: one that says anything which is lost when it is read is
    /// refused. What it does not say has its default.
    fn exact<T: Serialize + DeserializeOwned>(&self, table: &Table<T>) -> Result<Vec<(String, T)>> {
        let mut records = Vec::new();
        for (key, bytes) in self.rows(table.name)? {
            let said: Value = decode(table.name, &key, &bytes)?;
            let record: T = decode(table.name, &key, &bytes)?;
            let understood = serde_json::to_value(&record).unwrap_or_default();
            if let Some(lost) = lost(&said, &understood) {
                let what = format!("configuration {} '{key}'", table.name);
                return Err(Error::invalid(format!("{what}: nothing is known of {lost}")));
            }
            records.push((key, record));
        }
        Ok(records)
    }

    fn has<T>(&self, table: &Table<T>, key: &str) -> Result<bool> {
        Ok(self.bytes(table.name, key)?.is_some())
    }
}

fn decode<T: DeserializeOwned>(table: &str, key: &str, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes)
        .map_err(|e| Error::corrupt(format!("configuration {table} '{key}'")).because(e))
}

/// The first thing that was said and is not understood.
fn lost(said: &Value, understood: &Value) -> Option<String> {
    match (said, understood) {
        (Value::Object(said), Value::Object(known)) => {
            said.iter().find_map(|(name, value)| match known.get(name) {
                Some(known) => lost(value, known),
                None => Some(format!("'{name}'")),
            })
        }
        (Value::Array(said), Value::Array(known)) if said.len() == known.len() => {
            said.iter().zip(known).find_map(|(said, known)| lost(said, known))
        }
        _ => (said != understood).then(|| said.to_string()),
    }
}

fn definition(name: &str) -> TableDefinition<'_, &'static str, &'static [u8]> {
    TableDefinition::new(name)
}

/// The configuration at one moment.
pub struct Reader(ReadTransaction);

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reader(..)")
    }
}

impl Reader {
    pub(crate) fn new(transaction: ReadTransaction) -> Reader {
        Reader(transaction)
    }

    /// Every record of every table.
    pub(crate) fn everything(&self) -> Result<Everything> {
        let tables = self.0.list_tables().map_err(|e| cannot_read(e.into()))?;
        let mut everything = Everything::new();
        for table in tables {
            let rows = self.rows(table.name())?;
            let decoded =
                rows.into_iter().map(|(key, bytes)| Ok((key.clone(), decode(table.name(), &key, &bytes)?)));
            everything.insert(table.name().into(), decoded.collect::<Result<_>>()?);
        }
        Ok(everything)
    }
}

impl Look for Reader {
    fn bytes(&self, table: &str, key: &str) -> Result<Option<Vec<u8>>> {
        match self.0.open_table(definition(table)) {
            Ok(table) => value(&table, key),
            // Nothing was written into it yet.
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(e) => Err(cannot_read(e.into())),
        }
    }

    fn rows(&self, table: &str) -> Result<Vec<(String, Vec<u8>)>> {
        match self.0.open_table(definition(table)) {
            Ok(table) => values(&table),
            Err(TableError::TableDoesNotExist(_)) => Ok(Vec::new()),
            Err(e) => Err(cannot_read(e.into())),
        }
    }
}

/// A change under way.
pub struct Writer(WriteTransaction);

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Writer(..)")
    }
}

impl Writer {
    pub(crate) fn new(transaction: WriteTransaction) -> Writer {
        Writer(transaction)
    }

    /// Puts the record under the key, in place of what was there.
    pub fn put<T: Serialize>(&mut self, table: &Table<T>, key: &str, record: &T) -> Result<()> {
        let bytes = serde_json::to_vec(record)
            .map_err(|e| Error::invalid(format!("configuration {} '{key}': {e}", table.name)))?;
        self.put_bytes(table.name, key, &bytes)
    }

    /// Whether there was one.
    pub fn remove<T>(&mut self, table: &Table<T>, key: &str) -> Result<bool> {
        let mut table = self.0.open_table(definition(table.name)).map_err(|e| cannot_write(e.into()))?;
        let old = table.remove(key).map_err(|e| cannot_write(e.into()))?;
        Ok(old.is_some())
    }

    fn put_bytes(&mut self, table: &str, key: &str, bytes: &[u8]) -> Result<()> {
        let mut table = self.0.open_table(definition(table)).map_err(|e| cannot_write(e.into()))?;
        table.insert(key, bytes).map(drop).map_err(|e| cannot_write(e.into()))
    }

    /// The names of the tables that there are.
    pub fn tables(&self) -> Result<Vec<String>> {
        let tables = self.0.list_tables().map_err(|e| cannot_read(e.into()))?;
        Ok(tables.map(|table| table.name().to_string()).collect())
    }

    /// These tables and no others.
    pub(crate) fn replace(&mut self, everything: Everything) -> Result<()> {
        let old: Vec<_> = self.0.list_tables().map_err(|e| cannot_write(e.into()))?.collect();
        for table in old {
            self.0.delete_table(table).map_err(|e| cannot_write(e.into()))?;
        }
        for (table, records) in everything {
            for (key, record) in records {
                self.put_bytes(&table, &key, record.to_string().as_bytes())?;
            }
        }
        Ok(())
    }

    pub(crate) fn commit(self) -> Result<(), redb::Error> {
        Ok(self.0.commit()?)
    }
}

impl Look for Writer {
    fn bytes(&self, table: &str, key: &str) -> Result<Option<Vec<u8>>> {
        value(&self.0.open_table(definition(table)).map_err(|e| cannot_read(e.into()))?, key)
    }

    fn rows(&self, table: &str) -> Result<Vec<(String, Vec<u8>)>> {
        values(&self.0.open_table(definition(table)).map_err(|e| cannot_read(e.into()))?)
    }
}

fn value(table: &impl ReadableTable<&'static str, &'static [u8]>, key: &str) -> Result<Option<Vec<u8>>> {
    let found = table.get(key).map_err(|e| cannot_read(e.into()))?;
    Ok(found.map(|bytes| bytes.value().to_vec()))
}

fn values(table: &impl ReadableTable<&'static str, &'static [u8]>) -> Result<Vec<(String, Vec<u8>)>> {
    let rows = table.iter().map_err(|e| cannot_read(e.into()))?;
    rows.map(|row| {
        let (key, bytes) = row.map_err(|e| cannot_read(e.into()))?;
        Ok((key.value().to_string(), bytes.value().to_vec()))
    })
    .collect()
}

fn cannot_read(e: redb::Error) -> Error {
    crate::failed("read configuration", e)
}

fn cannot_write(e: redb::Error) -> Error {
    let error = crate::failed("change configuration", e);
    debug_assert!(error.kind() != Kind::Invalid, "the tables are all of one type");
    error
}
