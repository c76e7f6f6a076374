//! A home: the directory with what an appliance remembers between its runs.
//!
//! ```text
//!   HOME/cenote.sock   where the daemon listens for commands        HOME/lock         the process that has its pools
//!   HOME/nbd.sock      ... and for NBD clients                      HOME/pools.json   which pools are imported
//!   HOME/disks/        files that `up` makes pools on                HOME/tunables.json  those that were set
//!   HOME/mounts.json   what is mounted, where, how                   HOME/configuration.redb  everything else
//! ```

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use units::{Error, Kind, Result};

/// How often a lock that another process has is tried again.
const RETRY: Duration = Duration::from_millis(50);
/// Somebody else's home is nobody's business: sockets in it give full power over the pools.
const MODE: u32 = 0o700;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home(PathBuf);

/// What the name of a socket may take beside its last byte: `sun_path` of unix(7) has 108.
const SOCKET_NAME_MAX: usize = 107;
/// The longest name of a socket in a home, with the slash before it.
const SOCKET: &str = "/cenote.sock";

/// A mount as it is remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum KnownMount {
    /// By the properties of its dataset alone, at this place: what was written before there was more.
    At(String),
    /// With what `zfs mount` was told beside them.
    With { at: String, overlay: bool, options: Vec<String> },
}

/// A pool that is imported, as it is remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    pub name: String,
    pub guid: u64,
    /// Where its devices were.
    pub devices: Vec<String>,
    #[serde(default)]
    pub read_only: bool,
    #[serde(default)]
    pub altroot: Option<String>,
    /// Only until a daemon starts: it was imported without a cache file.
    #[serde(default)]
    pub passing: bool,
    /// The name is for here only: on disk the pool has another.
    #[serde(default)]
    pub temporary: bool,
    /// It is read as it was in this txg.
    #[serde(default)]
    pub txg: Option<u64>,
    /// It may be found under this guid: its own is being changed.
    #[serde(default)]
    pub next_guid: Option<u64>,
    /// Counts from import to import: of two pools, the one with the lower number was here first.
    #[serde(default)]
    pub order: u64,
    /// It could not be read when it was decided which LUNs are served.
    #[serde(default)]
    pub away: bool,
    /// Its LUNs that are not served because another has what they claim, by their datasets.
    #[serde(default)]
    pub left_out: BTreeMap<String, LeftOut>,
}

/// Why a LUN is not served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The LUN that has what it claims.
    pub holder: String,
    pub claim: Claim,
}

/// What only one LUN can have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// In hexadecimal digits.
    Identifier(String),
    Number(u16),
}

impl fmt::Display for LeftOut {
    /// With what to do about it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeftOut { holder, claim } = self;
        match claim {
            Claim::Identifier(_) => write!(f, "its identifier is that of the LUN '{holder}'")?,
            Claim::Number(number) => write!(f, "its number {number} is that of the LUN '{holder}'")?,
        }
        f.write_str("; in the shell, 'set lunumber=auto' makes it a LUN of its own")
    }
}

#[derive(Default, Serialize, Deserialize)]
struct Remembered {
    pools: Vec<Known>,
}

/// The right to a home's pools.
#[derive(Debug)]
pub struct HomeLock {
    _file: File,
}

impl Home {
    /// `/var/lib/cenote` for root, else `$XDG_STATE_HOME/cenote`, unless another is given.
    pub fn find(given: Option<&Path>) -> Result<Home> {
        if let Some(dir) = given {
            return Home::of(std::path::absolute(dir).map_err(|e| cannot("find", dir, e))?);
        }
        if rustix::process::geteuid().is_root() {
            return Home::of("/var/lib/cenote".into());
        }
        let from = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let state = from("XDG_STATE_HOME").or_else(|| Some(from("HOME")?.join(".local/state")));
        let state =
            state.ok_or_else(|| Error::invalid("no home directory: use --home DIR or CENOTE_HOME"))?;
        Home::of(state.join("cenote"))
    }

    /// A home whose sockets can have their names.
    fn of(dir: PathBuf) -> Result<Home> {
        let (has, most) = (dir.as_os_str().len(), SOCKET_NAME_MAX - SOCKET.len());
        if has > most {
            return Err(Error::invalid(format!(
                "the home {} has a path of {has} bytes: the sockets in it allow {most}; use --home with a shorter one",
                dir.display()
            )));
        }
        Ok(Home(dir))
    }

    /// Makes the directory if it is not there.
    pub fn prepare(&self) -> Result<()> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(MODE)
            .create(&self.0)
            .map_err(|e| cannot("make", &self.0, e))
    }

    pub fn dir(&self) -> &Path {
        &self.0
    }

    pub fn socket(&self) -> PathBuf {
        self.0.join("cenote.sock")
    }

    pub fn nbd_socket(&self) -> PathBuf {
        self.0.join("nbd.sock")
    }

    pub fn disks(&self) -> PathBuf {
        self.0.join("disks")
    }

    fn cache(&self) -> PathBuf {
        self.0.join("pools.json")
    }

    pub fn tunables_file(&self) -> PathBuf {
        self.0.join("tunables.json")
    }

    /// Where what an administrator configures is.
    pub fn configuration(&self) -> PathBuf {
        self.0.join("configuration.redb")
    }

    /// Takes the home, waiting as long as `patience` for the process that has it.
    pub fn lock(&self, patience: Duration) -> Result<HomeLock> {
        use rustix::fs::{FlockOperation, flock};
        self.prepare()?;
        let path = self.0.join("lock");
        let failed = |e: io::Error| cannot("lock", &path, e);
        let open =
            OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(&path);
        let mut file = open.map_err(failed)?;
        let until = Instant::now() + patience;
        while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            if Instant::now() >= until {
                return Err(self.is_taken(&mut file));
            }
            std::thread::sleep(RETRY);
        }
        let owner = std::process::id().to_string();
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(owner.as_bytes()))
            .map_err(failed)?;
        Ok(HomeLock { _file: file })
    }

    fn is_taken(&self, file: &mut File) -> Error {
        let mut pid = String::new();
        let _ = file.rewind().and_then(|()| file.read_to_string(&mut pid));
        let who = if pid.is_empty() { "another process".into() } else { format!("process {pid}") };
        Error::new(Kind::Busy, format!("open home {}", self.0.display())).because(format!("{who} has it"))
    }

    /// The pools that are imported.
    pub fn pools(&self) -> Result<Vec<Known>> {
        let remembered: Remembered = read(&self.cache(), "remove it and import the pools again")?;
        Ok(remembered.pools)
    }

    /// Remembers these pools; a crash leaves the old list or the new one.
    pub fn remember(&self, pools: Vec<Known>) -> Result<()> {
        self.write(&self.cache(), &Remembered { pools })
    }

    /// The tunables that are not at their defaults, by name.
    pub fn tunables(&self) -> Result<BTreeMap<String, u64>> {
        read(&self.tunables_file(), "correct or remove it")
    }

    /// Remembers these tunables in place of those before.
    pub fn remember_tunables(&self, tunables: &BTreeMap<String, u64>) -> Result<()> {
        self.write(&self.tunables_file(), tunables)
    }

    fn mounts_file(&self) -> PathBuf {
        self.0.join("mounts.json")
    }

    /// Which datasets were mounted, and where and how.
    pub fn mounts(&self) -> Result<BTreeMap<String, KnownMount>> {
        read(&self.mounts_file(), "remove it and mount the file systems again")
    }

    /// Remembers these mounts in place of those before.
    pub fn remember_mounts(&self, mounts: &BTreeMap<String, KnownMount>) -> Result<()> {
        self.write(&self.mounts_file(), mounts)
    }

    fn write(&self, path: &Path, content: &impl Serialize) -> Result<()> {
        let next = path.with_extension("json.new");
        let text = serde_json::to_vec_pretty(content).map_err(io::Error::from);
        let written = text.and_then(|text| {
            let mut file = File::create(&next)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&next, path)?;
            // The new name is durable with its directory.
            File::open(&self.0)?.sync_all()
        });
        written.map_err(|e| cannot("write", path, e))
    }
}

/// What a file of the home says; one that is not there says nothing.
fn read<T: Default + for<'de> Deserialize<'de>>(path: &Path, remedy: &str) -> Result<T> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(T::default()),
        Err(e) => return Err(cannot("read", path, e)),
    };
    let damaged = |e| Error::corrupt(format!("{}", path.display())).because(format!("{e}; {remedy}"));
    serde_json::from_slice(&text).map_err(damaged)
}

fn cannot(what: &str, path: &Path, e: io::Error) -> Error {
    Error::new(Kind::Io, format!("{what} {}", path.display())).because(e)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(name: &str) -> Home {
        let dir = std::env::temp_dir().join(format!("cenote-home-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        Home::find(Some(&dir)).unwrap()
    }

    #[test]
    fn a_home_whose_sockets_could_have_no_name_is_refused() {
        let deepest = format!("/{}", "x".repeat(94));
        assert_eq!(Home::find(Some(Path::new(&deepest))).unwrap().socket().as_os_str().len(), 107);
        let refused = Home::find(Some(Path::new(&format!("{deepest}x")))).unwrap_err().to_string();
        assert!(refused.contains("has a path of 96 bytes: the sockets in it allow 95"), "{refused}");
    }

    /// Its sockets take commands and NBD clients from every process that reaches them.
    #[test]
    fn a_home_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let home = home("alone");
        home.prepare().unwrap();
        let mode = fs::metadata(home.dir()).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o700, "{mode:o}");
        fs::remove_dir_all(home.dir()).unwrap();
    }

    #[test]
    fn a_home_has_one_owner_who_is_named_to_others() {
        let home = home("lock");
        let lock = home.lock(Duration::ZERO).unwrap();
        let error = home.lock(Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), Kind::Busy);
        assert!(error.to_string().contains(&format!("process {} has it", std::process::id())), "{error}");
        drop(lock);
        home.lock(Duration::ZERO).unwrap();
        fs::remove_dir_all(home.dir()).unwrap();
    }

    #[test]
    fn pools_are_remembered_and_a_damaged_list_is_named() {
        let home = home("cache");
        home.prepare().unwrap();
        assert_eq!(home.pools().unwrap(), []);
        let pool = Known { name: "tank".into(), guid: 7, devices: vec!["/d".into()], ..Known::default() };
        home.remember(vec![pool.clone()]).unwrap();
        assert_eq!(home.pools().unwrap(), [pool]);
        fs::write(home.cache(), "{").unwrap();
        assert!(home.pools().unwrap_err().to_string().contains("import the pools again"));
        assert!(home.tunables().unwrap().is_empty());
        let set = BTreeMap::from([("zfs_nocacheflush".to_string(), 1)]);
        home.remember_tunables(&set).unwrap();
        assert_eq!(home.tunables().unwrap(), set);
        fs::remove_dir_all(home.dir()).unwrap();
    }
}
