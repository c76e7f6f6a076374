//! The pool of a place, opened for reading only.
//!
//! A pool that a daemon has open is read beside it, as its last transaction group on disk left it. What the daemon frees
//! it reuses some txgs later; then a block read here fails its checksum, and the pool is opened again, at the newest txg.

use crate::output::Output;
use crate::place;
use crate::text;
use std::path::PathBuf;
use std::sync::Arc;
use units::{Error, Kind, Result, Txg};
use vdev::Device;
use zpl::{FileSystem, Node};

/// What may be kept in memory.
const CACHE: u64 = 256 << 20;

/// Where the devices are looked for.
#[derive(Clone, Debug)]
pub enum Origin {
    /// In these directories, or these very devices.
    Search(Vec<PathBuf>),
    /// A pool that is imported here, by name and with its devices; `is_live` when a daemon is using it.
    Imported { pools: Vec<(String, Vec<PathBuf>)>, is_live: bool },
}

/// See the module.
#[derive(Debug)]
pub struct Session {
    origin: Origin,
    txg: Option<Txg>,
    pool: Option<pool::Pool>,
    /// How often a pool was opened.
    opened: u64,
    pub output: Output,
}

/// How often a pool that a daemon writes to is opened again for one thing that is read.
pub const TRIES: usize = 2;

impl Session {
    pub fn new(origin: Origin, txg: Option<Txg>, output: Output) -> Session {
        Session { origin, txg, pool: None, opened: 0, output }
    }

    pub async fn close(&mut self) {
        self.output.clear();
        if let Some(pool) = self.pool.take() {
            // It was only read: there is nothing to lose.
            let _ = pool.close().await;
        }
    }

    /// The pool may be opened anew, because a daemon writes to it meanwhile.
    pub fn is_live(&self) -> bool {
        matches!(self.origin, Origin::Imported { is_live: true, .. }) && self.txg.is_none()
    }

    /// The pool of this name.
    async fn pool(&mut self, name: &str) -> Result<pool::Pool> {
        if let Some(pool) =
            self.pool.as_ref().filter(|pool| pool.name() == name || pool.guid().0.to_string() == name)
        {
            return Ok(pool.clone());
        }
        self.close().await;
        let pool = self.open(name).await?;
        self.opened += 1;
        if self.txg.is_some() {
            let uberblock = pool.uberblock();
            let when = crate::text::date(uberblock.timestamp as i64);
            self.output.note(format!("pool '{name}' as it was in txg {}, {when}", uberblock.txg));
        }
        self.pool = Some(pool.clone());
        Ok(pool)
    }

    /// The names of the pools there are. Errors: a place to search that is not there.
    pub async fn pools(&mut self) -> Result<Vec<String>> {
        Ok(match &self.origin {
            Origin::Search(places) => {
                let found = pool::scan(search(places).await?).await;
                found.iter().map(|candidate| candidate.config.name.clone()).collect()
            }
            Origin::Imported { pools, .. } => pools.iter().map(|(name, _)| name.clone()).collect(),
        })
    }

    async fn open(&mut self, name: &str) -> Result<pool::Pool> {
        let devices = match &self.origin {
            Origin::Search(places) => search(places).await?,
            Origin::Imported { pools, .. } => {
                let known = pools.iter().find(|(pool, _)| pool == name);
                let missing = || {
                    Error::invalid(format!("pool '{name}' is not imported; -d says where its devices are"))
                };
                known.ok_or_else(missing)?.1.iter().map(Device::whole).collect()
            }
        };
        let mut found = pool::scan(devices).await;
        // An imported pool may go by another name here than its labels say.
        let is_it = |c: &pool::Candidate| c.config.name == name || c.config.guid.0.to_string() == name;
        if let Origin::Search(_) = self.origin {
            found.retain(is_it);
        }
        let candidate = match found.len() {
            0 => return Err(Error::invalid(format!("there is no pool '{name}' on these devices"))),
            1 => found.remove(0),
            n => return Err(Error::invalid(format!("{n} pools are called '{name}': give the guid instead"))),
        };
        let options = pool::OpenOptions {
            read_only: true,
            name: Some(name.into()).filter(|_| candidate.config.guid.0.to_string() != name),
            host: pool::Host::default(),
            force: true,
            missing_log: true,
            copy_over: false,
            cache: Arc::new(arc::Cache::new(CACHE)),
            hub: Default::default(),
            tunables: Default::default(),
        };
        pool::open_at(&candidate, options, self.txg).await
    }

    /// The file or directory that a place means, and the path to show for it.
    pub async fn find(&mut self, place: &str, follow: bool) -> Result<Node> {
        let pool = self.pool(place::pool(place)).await?;
        let (fs, path) = file_system(&pool, place).await?;
        fs.resolve(path.as_bytes(), follow).await
    }

    /// The same file in the pool as it is now; `None` when that could not help.
    pub async fn again(&mut self, node: &Node) -> Option<Node> {
        if !self.is_live() || node.file_system().name().contains('@') {
            return None;
        }
        if let Some(old) = self.pool.take() {
            let _ = old.close().await;
        }
        self.now(node).await
    }

    /// The same file in the pool that is open; one that could not be opened the last time is tried again.
    async fn now(&mut self, node: &Node) -> Option<Node> {
        let name = node.file_system().name();
        let pool = self.pool(name.split(['/', '@']).next()?).await.ok()?;
        let fs = pool.open_file_system(name).await.ok()?;
        fs.node(node.id()).await.ok()
    }

    /// Which opening of the pool nodes are of that are found now.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// As [`Session::again`], of a node that may be of an earlier opening: then it is looked for in the pool that is open.
    pub async fn since(&mut self, node: &Node, opened: u64) -> Option<Node> {
        if opened == self.opened {
            return self.again(node).await;
        }
        self.now(node).await
    }

    /// What `read` reads of a file, in the pool as it is now where it cannot be read any more in the one that is open.
    pub async fn read<T, F>(&mut self, node: &Node, read: impl Fn(Node) -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let mut node = node.clone();
        for _ in 0..TRIES {
            match read(node.clone()).await {
                Ok(read) => return Ok(read),
                Err(e) => node = self.again(&node).await.ok_or(e)?,
            }
        }
        read(node).await
    }
}

/// The file system of a place, and the path in it.
async fn file_system<'p>(pool: &pool::Pool, place: &'p str) -> Result<(FileSystem, &'p str)> {
    for (dataset, path) in place::readings(place) {
        // The pool may have been named by its guid.
        let rest = &dataset[place::pool(dataset).len()..];
        match pool.open_file_system(&format!("{}{rest}", pool.name())).await {
            Ok(fs) => return Ok((fs, path)),
            Err(e) if e.kind() == Kind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    let name = place.split(':').next().unwrap_or(place);
    Err(Error::invalid(format!("there is no dataset '{name}'")))
}

async fn search(places: &[PathBuf]) -> Result<Vec<Device>> {
    let mut devices = Vec::new();
    for place in places {
        if place.is_dir() {
            let listed = world::list_dir(place).await;
            let cannot = |e| Error::new(Kind::Io, "look for pools in").at(text::file(place)).because(e);
            devices.extend(listed.map_err(cannot)?.into_iter().map(Device::whole));
        } else if place.exists() {
            devices.push(Device::whole(place));
        } else {
            return Err(Error::invalid(format!(
                "cannot look for pools in '{}': no such directory or device",
                text::file(place)
            )));
        }
    }
    Ok(devices)
}
