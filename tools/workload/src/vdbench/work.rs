//! Workload definitions: `wd=wd1,sd=sd*,xfersize=1m,readpct=70,seekpct=0`.

use super::lines::{Definition, Key};
use super::names::chosen;
use super::storage::{Storage, range};
use crate::describe::{Part, Sizes, Walk};
use crate::words::{Parsed, Place};

#[derive(Clone, Debug)]
pub struct Work {
    pub name: String,
    pub place: Place,
    /// By their index.
    pub stores: Vec<usize>,
    pub sizes: Sizes,
    pub read_percent: f64,
    pub walk: Walk,
    /// Its part of the load, in percent.
    pub skew: Option<f64>,
    pub rate: Option<f64>,
    pub threads: Option<u32>,
    pub range: Option<Part>,
    /// What a cache would hold, in bytes, when the storage does not say it.
    pub hit_area: Option<u64>,
    pub durable: bool,
    pub direct: bool,
}

impl Default for Work {
    fn default() -> Work {
        Work {
            name: String::new(),
            place: Place::new("", 0, ""),
            stores: Vec::new(),
            sizes: Sizes::one(4096),
            read_percent: 100.0,
            walk: Walk::default(),
            skew: None,
            rate: None,
            threads: None,
            range: None,
            hit_area: None,
            durable: false,
            direct: false,
        }
    }
}

pub fn read(default: &Work, definition: &Definition, storage: &[Storage]) -> Parsed<Work> {
    let mut work = default.clone();
    work.name = definition.name.clone();
    work.place = definition.place.clone();
    for key in &definition.keys {
        take(&mut work, key, storage)?;
    }
    if work.stores.is_empty() && definition.name != "default" {
        // Without a name it is all of them.
        work.stores = (0..storage.len()).collect();
    }
    Ok(work)
}

fn take(work: &mut Work, key: &Key, storage: &[Storage]) -> Parsed<()> {
    let place = &key.place;
    match key.name.as_str() {
        "sd" => work.stores = stores(key, storage)?,
        "xfersize" => work.sizes = sizes(key)?,
        "rdpct" | "readpct" => work.read_percent = place.percent(key.one()?)?,
        "seekpct" => seek(&mut work.walk, key)?,
        "rhpct" | "readhit" => work.walk.read_hit_percent = place.percent(key.one()?)?,
        "whpct" | "writehit" => work.walk.write_hit_percent = place.percent(key.one()?)?,
        "hitarea" => work.hit_area = Some(place.size(key.one()?)?),
        "align" => work.walk.align = Some(place.length(key.one()?)?),
        "skew" => {
            let skew = place.percent(key.one()?)?;
            work.skew = (skew > 0.0).then_some(skew);
        }
        "iorate" => work.rate = Some(place.positive(key.one()?)?),
        "threads" => work.threads = Some(place.number_in(key.one()?, 1, 65_536)? as u32),
        "range" => work.range = Some(range(key)?),
        "openflags" => {
            let mut store = crate::describe::Store::new("", "");
            super::storage::open_flags(key, &mut store)?;
            (work.direct, work.durable) = (store.direct, store.durable);
        }
        "host" | "hd" if key.values == ["localhost"] => {}
        _ => return place.complain("not supported in a workload definition"),
    }
    Ok(())
}

/// The stores that `sd=` names.
pub fn stores(key: &Key, storage: &[Storage]) -> Parsed<Vec<usize>> {
    let names: Vec<&str> = storage.iter().map(|s| s.store.name.as_str()).collect();
    chosen(key, &names, "storage")
}

/// `4k`; `(8k,50,16k,30,2k,20)`: lengths with their percentages; `(4k,64k,4k)`: anything between, in steps.
pub fn sizes(key: &Key) -> Parsed<Sizes> {
    let place = &key.place;
    match key.values.as_slice() {
        [one] => Ok(Sizes::one(place.length(one)?)),
        [min, max, unit] => {
            let (min, max, unit) = (place.length(min)?, place.length(max)?, place.length(unit)?);
            match min <= max {
                true => Ok(Sizes::Range { min, max, unit }),
                false => place.complain("the smallest request is not larger than the largest"),
            }
        }
        pairs if pairs.len().is_multiple_of(2) => {
            let pair = |pair: &[String]| Ok((place.length(&pair[0])?, place.percent(&pair[1])?));
            let sizes = pairs.chunks(2).map(pair).collect::<Parsed<Vec<_>>>()?;
            let sum: f64 = sizes.iter().map(|(_, percent)| percent).sum();
            match (sum - 100.0).abs() < 0.01 {
                true => Ok(Sizes::Weighted(sizes)),
                false => place.complain(format!("the percentages sum up to {sum}, not to 100")),
            }
        }
        _ => place.complain("one size, sizes with percentages, or (min,max,step)"),
    }
}

pub fn seek(walk: &mut Walk, key: &Key) -> Parsed<()> {
    match key.one()? {
        "random" | "rand" => walk.seek_percent = 100.0,
        "sequential" | "seq" => walk.seek_percent = 0.0,
        // Until the end of the store, once.
        "eof" => (walk.seek_percent, walk.wraps) = (0.0, false),
        percent => walk.seek_percent = key.place.percent(percent)?,
    }
    Ok(())
}
