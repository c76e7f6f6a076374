//! Storage definitions: `sd=sd1,lun=/dev/sdx,size=1g,threads=128,openflags=o_direct`.

use super::lines::{Definition, Key};
use crate::describe::{Part, Store};
use crate::words::{Parsed, Place, shown};

#[derive(Clone, Debug)]
pub struct Storage {
    pub store: Store,
    /// Requests under way at once on it.
    pub threads: u32,
    /// What a cache would hold, in bytes.
    pub hit_area: u64,
    /// Which part of it is used.
    pub range: Option<Part>,
    pub align: Option<u32>,
    pub place: Place,
}

impl Default for Storage {
    fn default() -> Storage {
        let store = Store::new("", "");
        // Eight threads and a megabyte are what vdbench documents.
        let place = Place::new("", 0, "");
        Storage { store, threads: 8, hit_area: 1 << 20, range: None, align: None, place }
    }
}

pub fn read(default: &Storage, definition: &Definition) -> Parsed<Storage> {
    let mut storage = default.clone();
    storage.store.name = definition.name.clone();
    storage.place = definition.place.clone();
    for key in &definition.keys {
        take(&mut storage, key)?;
    }
    Ok(storage)
}

/// One, or as many as `count=(first,many)` says, with their number in place of `*` in the path, or behind it.
pub fn several(default: &Storage, definition: &Definition) -> Parsed<Vec<Storage>> {
    let (count, rest): (Vec<Key>, Vec<Key>) =
        definition.keys.iter().cloned().partition(|k| k.name == "count");
    let one = read(default, &Definition { keys: rest, ..definition.clone() })?;
    if one.store.place.is_empty() {
        return definition.place.complain("a storage definition has lun=");
    }
    let Some(count) = count.last() else { return Ok(vec![one]) };
    let [first, many] = count.values.as_slice() else {
        return count.place.complain("as in count=(1,16)");
    };
    let first = count.place.number_in(first, 0, 1 << 32)?;
    let many = count.place.number_in(many, 1, 10_000)?;
    let numbered = |n: u64| {
        let mut copy = one.clone();
        copy.store.name = format!("{}{n}", one.store.name);
        copy.store.place = match one.store.place.contains('*') {
            true => one.store.place.replace('*', &n.to_string()),
            false => format!("{}{n}", one.store.place),
        };
        copy
    };
    Ok((first..first + many).map(numbered).collect())
}

fn take(storage: &mut Storage, key: &Key) -> Parsed<()> {
    let place = &key.place;
    match key.name.as_str() {
        "lun" => storage.store.place = key.one()?.into(),
        "size" => storage.store.size = Some(place.size(key.one()?)?),
        "offset" => storage.store.offset = place.size(key.one()?)?,
        "threads" => storage.threads = place.number_in(key.one()?, 1, 65_536)? as u32,
        "hitarea" => storage.hit_area = place.size(key.one()?)?,
        "align" => storage.align = Some(place.length(key.one()?)?),
        "range" => storage.range = Some(range(key)?),
        "openflags" => open_flags(key, &mut storage.store)?,
        "host" | "hd" if key.values == ["localhost"] => {}
        "host" | "hd" => return place.complain("other hosts are not driven; start this program there"),
        _ => return place.complain("not supported in a storage definition"),
    }
    Ok(())
}

/// Two numbers: percent up to 200, bytes beyond.
pub fn range(key: &Key) -> Parsed<Part> {
    let [from, to] = key.values.as_slice() else {
        return key.place.complain("two numbers, as in range=(10,50)");
    };
    match (key.place.size(from)?, key.place.size(to)?) {
        (from, to) if from < to && to <= 100 => Ok(Part::Percent(from, to)),
        (from, to) if from < to && to > 200 => Ok(Part::Bytes(from, to)),
        _ => key.place.complain("a range begins before it ends, and ends at 100 percent or in bytes"),
    }
}

/// How the place is opened.
pub fn open_flags(key: &Key, store: &mut Store) -> Parsed<()> {
    for flag in &key.values {
        match flag.to_ascii_lowercase().as_str() {
            "o_direct" | "directio" => store.direct = true,
            "o_sync" | "o_dsync" | "o_rsync" => store.durable = true,
            _ => return key.place.complain(format!("'{}' is not supported", shown(flag))),
        }
    }
    Ok(())
}
