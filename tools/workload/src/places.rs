//! The places of a real machine, by their names.
//!
//! ```text
//!   /path                        a file, made and laid out when its size is given; a block device; a file of a mounted path
//!   nbd://HOST[:PORT]/EXPORT     nbd+unix:///EXPORT?socket=PATH
//!   iscsi://HOST[:PORT]/TARGET/LUN
//! ```
//!
//! A block device that is written to is claimed first: one that is mounted, or that a pool has, is refused.

use crate::choose::Random;
use crate::describe::Store;
use crate::drive::{How, Places};
use crate::stamp;
use crate::target::{DiskTarget, Target};
use crate::{iscsi_client, nbd_client};
use linux::{Access, open_for_load};
use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use units::{Error, Kind, Result};
use world::{Address, Buf, Disk, IoBuf, Pending};

/// How much of a new file is written at a time.
const LAYOUT: u64 = 1 << 20;

/// Says what takes long before a run can begin.
pub type Progress = Arc<dyn Fn(&str) + Send + Sync>;

/// Opens what a machine has; devices that are written to stay claimed as long as this lives.
pub struct Machine {
    claims: Arc<Mutex<BTreeMap<PathBuf, Arc<dyn Disk>>>>,
    progress: Progress,
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Machine")
    }
}

impl Machine {
    pub fn new(progress: Progress) -> Machine {
        Machine { claims: Arc::default(), progress }
    }
}

impl Places for Machine {
    fn open(&self, store: &Store, how: How) -> Pending<Result<Arc<dyn Target>>> {
        let (store, claims, progress) = (store.clone(), self.claims.clone(), self.progress.clone());
        Box::pin(async move {
            match parse(&store.place)? {
                Place::Path(path) => {
                    let size = store.size.map(|size| size.saturating_add(store.offset));
                    if how.writes {
                        claim(&path, &claims)?;
                    }
                    prepare(&path, size, &progress).await?;
                    let disk = open_for_load(&path, access(how)).map_err(|e| cannot_open(&path, how, e))?;
                    Ok(Arc::new(OfPath { disk: DiskTarget(disk), path }) as Arc<dyn Target>)
                }
                Place::Nbd { server, export } => nbd_client::connect(&server, &export, how.durable).await,
                Place::Iscsi { portal, target, lun } => {
                    iscsi_client::connect(&portal, &target, lun, how.durable).await
                }
            }
        })
    }
}

fn access(how: How) -> Access {
    let How { writes, direct, durable, in_place, order } = how;
    Access { writes, direct, durable, alone: false, in_place, order }
}

fn cannot_open(path: &Path, how: How, e: std::io::Error) -> Error {
    let why = match e.raw_os_error() {
        Some(22) if how.direct => Error::invalid(format!(
            "{} does not take direct I/O: leave o_direct or direct=1 away",
            path.display()
        )),
        _ => Error::new(Kind::Io, format!("open {}", path.display())).because(e),
    };
    why.at("")
}

/// Claims a block device that will be written to.
fn claim(path: &Path, claims: &Mutex<BTreeMap<PathBuf, Arc<dyn Disk>>>) -> Result<()> {
    let is_device = std::fs::metadata(path).is_ok_and(|m| m.file_type().is_block_device());
    let mut claims = claims.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_device || claims.contains_key(path) {
        return Ok(());
    }
    let access = Access { writes: true, alone: true, ..Access::default() };
    let disk = open_for_load(path, access).map_err(|e| {
        let doing = format!("claim {} for writing; is it mounted, or in a pool?", path.display());
        Error::new(Kind::Io, doing).because(e)
    })?;
    claims.insert(path.into(), disk);
    Ok(())
}

/// Makes a file as long as is asked for, with bytes in all of it: what was never written is read without a device.
async fn prepare(path: &Path, size: Option<u64>, progress: &Progress) -> Result<()> {
    let failed = |e: std::io::Error| Error::new(Kind::Io, format!("lay out {}", path.display())).because(e);
    let found = std::fs::metadata(path);
    let has = match &found {
        Ok(found) if found.is_dir() => {
            return Err(Error::invalid(format!("{} is a directory; name a file in it", path.display())));
        }
        Ok(found) if !found.is_file() => return Ok(()),
        Ok(found) => found.len(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => 0,
        Err(e) => {
            let e = std::io::Error::from(e.kind());
            return Err(Error::new(Kind::Io, format!("open {}", path.display())).because(e));
        }
    };
    let Some(size) = size.map(|size| size.next_multiple_of(512)) else {
        return match found {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::invalid(format!("{} is not there; with a size it is made", path.display()))),
        };
    };
    if has >= size {
        return Ok(());
    }
    if path.starts_with("/dev") {
        return Err(Error::invalid(format!("{} is not there, and no file is made in /dev", path.display())));
    }
    progress(&format!("laying out {}, {}", path.display(), units::pretty_size(size)));
    let options = std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(path);
    options.and_then(|file| file.set_len(size)).map_err(failed)?;
    let access = Access { writes: true, ..Access::default() };
    let disk = open_for_load(path, access).map_err(failed)?;
    let mut random = Random(size ^ has);
    let mut noise = IoBuf::scratch(LAYOUT as usize);
    stamp::fill(&mut noise, random.next(), 0, 1, 0);
    let noise = noise.freeze();
    let mut at = has / 512 * 512;
    while at < size {
        let len = LAYOUT.min(size - at);
        disk.write(at, vec![noise.slice(0..len as usize)]).await.map_err(failed)?;
        at += len;
    }
    disk.flush().await.map_err(failed)
}

/// A file or device of this machine.
#[derive(Debug)]
struct OfPath {
    disk: DiskTarget,
    path: PathBuf,
}

impl Target for OfPath {
    fn size(&self) -> u64 {
        self.disk.size()
    }

    fn read(&self, offset: u64, len: u32) -> Pending<Result<Vec<Buf>>> {
        self.disk.read(offset, len)
    }

    fn write(&self, offset: u64, data: Buf) -> Pending<Result<()>> {
        self.disk.write(offset, data)
    }

    fn flush(&self) -> Pending<Result<()>> {
        self.disk.flush()
    }

    fn chill(&self) -> Result<()> {
        let doing = || format!("drop the pages of {} from memory", self.path.display());
        linux::drop_pages(&self.path).map_err(|e| Error::new(Kind::Io, doing()).because(e))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Path(PathBuf),
    Nbd { server: Address, export: String },
    Iscsi { portal: Address, target: String, lun: u8 },
}

fn parse(place: &str) -> Result<Place> {
    let wrong = |what: &str| Err(Error::invalid(format!("{place}: {what}")));
    if let Some(rest) = place.strip_prefix("nbd://") {
        let (server, export) = rest.split_once('/').unwrap_or((rest, ""));
        return Ok(Place::Nbd {
            server: Address::Tcp(resolve(place, server, 10_809)?),
            export: decoded(export),
        });
    }
    if let Some(rest) = place.strip_prefix("nbd+unix://") {
        let (export, query) = rest.split_once('?').unwrap_or((rest, ""));
        let Some(socket) = query.split('&').find_map(|pair| pair.strip_prefix("socket=")) else {
            return wrong("as in nbd+unix:///EXPORT?socket=/run/nbd.sock");
        };
        let export = decoded(export.trim_start_matches('/'));
        return Ok(Place::Nbd { server: Address::Unix(decoded(socket).into()), export });
    }
    if let Some(rest) = place.strip_prefix("iscsi://") {
        let usage = "as in iscsi://HOST:3260/iqn.2026-11.org.example:disk/0";
        let [portal, target, lun] = rest.split('/').collect::<Vec<_>>()[..] else { return wrong(usage) };
        let Ok(lun) = lun.parse::<u8>() else { return wrong(usage) };
        if portal.contains(['@', '%']) {
            return wrong("names and secrets (CHAP) are not supported here");
        }
        let portal = Address::Tcp(resolve(place, portal, 3260)?);
        return Ok(Place::Iscsi { portal, target: target.into(), lun });
    }
    match place.split_once("://") {
        Some((scheme, _)) => wrong(&format!("'{scheme}' is none of nbd, nbd+unix, iscsi")),
        None => Ok(Place::Path(place.into())),
    }
}

fn resolve(place: &str, server: &str, port: u16) -> Result<SocketAddr> {
    let is_with_port = server.rsplit_once(':').is_some_and(|(_, p)| p.parse::<u16>().is_ok());
    let name = if is_with_port { server.to_string() } else { format!("{server}:{port}") };
    let found = name.to_socket_addrs().ok().and_then(|mut all| all.next());
    found.ok_or_else(|| Error::invalid(format!("{place}: the address '{server}' is not known")))
}

/// Undoes %20 and its like.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |b: &u8| (*b as char).to_digit(16);
        match (first, tail) {
            (b'%', [a, b, after @ ..]) if hex(a).is_some() && hex(b).is_some() => {
                let value = hex(a).unwrap_or(0) * 16 + hex(b).unwrap_or(0);
                bytes.push(value as u8);
                rest = after;
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_places() {
        let nbd = |server, export: &str| Place::Nbd { server, export: export.into() };
        let tcp = |port| Address::Tcp(([127, 0, 0, 1], port).into());
        for (name, place) in [
            ("/dev/sdb", Place::Path("/dev/sdb".into())),
            ("file", Place::Path("file".into())),
            ("nbd://127.0.0.1/tank/vol1", nbd(tcp(10_809), "tank/vol1")),
            ("nbd://127.0.0.1:99", nbd(tcp(99), "")),
            ("nbd+unix:///a%20b?socket=/run/n.sock", nbd(Address::Unix("/run/n.sock".into()), "a b")),
            (
                "iscsi://127.0.0.1/iqn.2026-11.org.example:d/3",
                Place::Iscsi { portal: tcp(3260), target: "iqn.2026-11.org.example:d".into(), lun: 3 },
            ),
        ] {
            assert_eq!(parse(name).unwrap(), place, "{name}");
        }
        for (name, what) in [
            ("nbd+unix:///a", "socket="),
            ("iscsi://127.0.0.1/target", "as in iscsi://"),
            ("iscsi://u%p@127.0.0.1/t/0", "CHAP"),
            ("http://a", "'http' is none of"),
            ("nbd://no.such.name.invalid/a", "not known"),
        ] {
            let error = parse(name).unwrap_err().to_string();
            assert!(error.contains(what), "{name}: {error}");
        }
        assert_eq!(decoded("%zz%4"), "%zz%4");
    }
}
