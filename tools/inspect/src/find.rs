//! Finding the pool that is meant and opening it, for reading only.

use arc::Cache;
use dsl::Dataset;
use pool::{Host, OpenOptions, Pool};
use std::path::PathBuf;
use std::sync::Arc;
use units::{Error, Result};

/// What may be kept in memory: a walk over a pool meets each block once.
const CACHE: u64 = 64 << 20;
/// How the pool's own object set is called where a dataset is asked for.
const MOS: &str = "mos:";

/// Opens the pool of this name or guid that is on devices in `dirs`.
pub(crate) async fn open(dirs: &[PathBuf], name: &str) -> Result<Pool> {
    let here = [PathBuf::from(".")];
    let dirs = if dirs.is_empty() { &here[..] } else { dirs };
    let mut found = pool::scan_dirs(dirs).await?;
    found.retain(|c| c.config.name == name || c.config.guid.0.to_string() == name);
    let candidate = match found.len() {
        0 => return Err(not_found(name, dirs)),
        1 => found.remove(0),
        n => return Err(Error::invalid(format!("{n} pools are called '{name}': give the guid instead"))),
    };
    let options = OpenOptions {
        read_only: true,
        name: None,
        host: Host::default(),
        force: true,
        missing_log: false,
        copy_over: false,
        cache: Arc::new(Cache::new(CACHE)),
        hub: Default::default(),
        tunables: Default::default(),
    };
    pool::open(&candidate, options).await
}

fn not_found(name: &str, dirs: &[PathBuf]) -> Error {
    let dirs: Vec<String> = dirs.iter().map(|d| format!("'{}'", d.display())).collect();
    let dirs = dirs.join(", ");
    Error::invalid(format!("no pool '{name}' on the devices in {dirs}; -d names another directory"))
}

/// Opens the pool that a dataset, a snapshot, or `mos:POOL` is in.
pub(crate) async fn open_pool_of(dirs: &[PathBuf], dataset: &str) -> Result<Pool> {
    let name = dataset.strip_prefix(MOS).unwrap_or(dataset);
    let name = name.split(['/', '@']).next().unwrap_or(name);
    open(dirs, name).await
}

/// An object set by the name that the commands take.
pub(crate) async fn objset(pool: &Pool, name: &str) -> Result<dmu::ObjSet> {
    if name.starts_with(MOS) {
        return Ok(pool.mos().clone());
    }
    let dataset: Arc<Dataset> = pool.dsl().open_by_name(name).await?;
    Ok(dataset.objset().clone())
}
