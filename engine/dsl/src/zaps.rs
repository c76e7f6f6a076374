//! ZAPs of the MOS: opening, making and unmaking them.

use dmu::{NewObject, ObjSet, Object, Tx};
use ondisk::ObjectType;
use units::{Error, Kind, ObjectId, Result};
use zap::{Options, Zap};

pub type Table = Zap<Object>;

/// The block of a micro ZAP that has just been made.
const SMALLEST: u32 = 512;

pub async fn open(mos: &ObjSet, id: ObjectId) -> Result<Table> {
    Ok(Zap::open(mos.object(id).await?))
}

pub async fn create(mos: &ObjSet, tx: &Tx, kind: ObjectType) -> Result<Table> {
    create_with(mos, tx, NewObject::new(kind, SMALLEST), Options::default()).await
}

pub async fn create_with(mos: &ObjSet, tx: &Tx, new: NewObject, options: Options) -> Result<Table> {
    let object = mos.allocate(tx, new).await?;
    Zap::format(object, tx, options, world::random_u64())
}

/// As [`create`], under a number that is known to be free.
pub fn claim(mos: &ObjSet, tx: &Tx, id: ObjectId, kind: ObjectType) -> Result<Table> {
    let object = mos.claim(tx, id, &NewObject::new(kind, SMALLEST))?;
    Zap::format(object, tx, Options::default(), world::random_u64())
}

/// Makes a bonus-only object a ZAP besides, for fields that came after its bonus was laid out. Answers whether it
/// was none before.
pub fn zapify(object: &Object, tx: &Tx) -> Result<bool> {
    if is_zapified(object) {
        return Ok(false);
    }
    Zap::format(object.clone(), tx, Options::default(), world::random_u64())?;
    object.set_kind(tx, ObjectType::ZAP_METADATA)?;
    Ok(true)
}

pub fn is_zapified(object: &Object) -> bool {
    object.attrs().kind == ObjectType::ZAP_METADATA
}

/// One integer of a zapified object; nothing when it is not zapified.
pub async fn field(object: &Object, name: &str) -> Result<Option<u64>> {
    if !is_zapified(object) {
        return Ok(None);
    }
    Zap::open(object.clone()).lookup_u64(name).await
}

/// Removes an entry if it is there.
pub async fn remove_if_any(table: &Table, tx: &Tx, name: &str) -> Result<()> {
    match table.remove(tx, name).await {
        Err(e) if e.kind() == Kind::NotFound => Ok(()),
        other => other,
    }
}

/// Adds a number to a ZAP that is a set of numbers.
pub async fn add_number(table: &Table, tx: &Tx, number: u64) -> Result<()> {
    table.insert(tx, &zap::int_name(number), number).await
}

pub async fn remove_number(table: &Table, tx: &Tx, number: u64) -> Result<()> {
    table.remove(tx, &zap::int_name(number)).await
}

/// Names with the one integer each of them has.
pub async fn numbers(table: &Table) -> Result<Vec<(String, u64)>> {
    let entries = table.entries().await?;
    let number = |entry: &zap::Entry| {
        let damaged = || Error::corrupt(format!("ZAP value of '{}' is not one integer", entry.name()));
        Ok((entry.name().into_owned(), entry.value.as_u64().ok_or_else(damaged)?))
    };
    entries.iter().map(number).collect()
}
