//! `tar`: files and trees as an archive in POSIX's format (pax), with times to the nanosecond, hard links, device nodes and
//! extended attributes. What is missing is zeros, so that the members behind it are whole.
//!
//! A file with holes is stored without them, as GNU tar does it (sparse format 1.0):
//!
//! ```text
//!   pax header   GNU.sparse.name, GNU.sparse.realsize
//!   data         count \n, then offset \n length \n of each extent, padded to 512 bytes │ the extents one behind the other
//! ```

use crate::cat::{cannot, zeros};
use crate::salvage::{Part, extents, read, xattrs};
use crate::session::Session;
use crate::text;
use crate::walk::{Found, Walk};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use tar::{Builder, EntryType, Header};
use units::{Error, Result};
use zpl::{FileKind, NodeId, Time};

/// A file's data are padded to this.
const UNIT: u64 = 512;
/// Larger sizes and longer names do not fit into the old header.
const SIZE_OLD: u64 = 0o7777_7777_7777;
const NAME_OLD: usize = 99;

type Archive = Builder<BufWriter<Box<dyn Write + Send>>>;

pub async fn run(session: &mut Session, places: &[String], file: Option<&Path>) -> Result<()> {
    let out: Box<dyn Write + Send> = match file {
        // As copies: nothing that is there is written over.
        Some(path) => {
            let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
            let cannot = |e| Error::new(units::Kind::Io, "write").at(text::file(path)).because(e);
            Box::new(opened.map_err(cannot)?)
        }
        None => std::mem::replace(&mut session.output.out, Box::new(std::io::sink())),
    };
    let mut archive = Builder::new(BufWriter::with_capacity(1 << 20, out));
    for place in places {
        match session.find(place, true).await {
            Ok(node) => {
                tree(session, &mut archive, Walk::new(place, node, session.opened()), root_name(place))
                    .await?
            }
            Err(e) => session.output.complain(format!("cannot archive '{place}': {e}")),
        }
    }
    archive.into_inner().and_then(|mut out| out.flush()).map_err(cannot)
}

/// The name under which a place goes into the archive: its path without what leads out of a directory.
fn root_name(place: &str) -> Vec<u8> {
    let path = place.split_once(':').map_or("", |(_, path)| path);
    let names = path.split('/').filter(|name| !name.is_empty() && *name != "." && *name != "..");
    let path = names.collect::<Vec<_>>().join("/");
    if path.is_empty() { b".".to_vec() } else { path.into_bytes() }
}

async fn tree(session: &mut Session, archive: &mut Archive, mut walk: Walk, root: Vec<u8>) -> Result<()> {
    let mut links: BTreeMap<NodeId, Vec<u8>> = BTreeMap::new();
    while let Some(found) = walk.next(session).await? {
        let shown = walk.shown(&found.path);
        let mut name =
            if found.path.is_empty() { root.clone() } else { [&root[..], b"/", &found.path].concat() };
        let mut link = None;
        let has_names = found.stat.links > 1 && !found.node.is_directory();
        if has_names && let Some(first) = links.get(&found.node.id()) {
            link = Some((EntryType::Link, first.clone()));
        }
        if found.stat.kind == FileKind::Symlink && link.is_none() {
            match session.read(&found.node, |node| async move { node.read_link().await }).await {
                Ok(target) => link = Some((EntryType::Symlink, target)),
                Err(e) => {
                    session.output.complain(format!("cannot archive '{shown}': {e}"));
                    continue;
                }
            }
        }
        if found.node.is_directory() {
            name.push(b'/');
        }
        let kind = match (&link, found.stat.kind) {
            (Some((kind, _)), _) => *kind,
            (None, FileKind::Regular) => EntryType::Regular,
            (None, FileKind::Directory) => EntryType::Directory,
            (None, FileKind::Fifo) => EntryType::Fifo,
            (None, FileKind::CharDevice) => EntryType::Char,
            (None, FileKind::BlockDevice) => EntryType::Block,
            // As other archivers do: the format has no sockets.
            (None, _) => continue,
        };
        let mut member = Member { name, link: link.map(|(_, target)| target), kind, size: 0, sparse: None };
        let mut data = Vec::new();
        if kind == EntryType::Regular {
            let size = found.stat.size;
            data = extents(&found.node, size).await;
            let stored: u64 = data.iter().map(|extent| extent.end - extent.start).sum();
            if stored == size {
                member.size = size;
            } else {
                let map = map_of(&data, size);
                member.size = map.len() as u64 + stored;
                member.sparse = Some(map);
            }
        }
        member.write_head(session, archive, &found, &shown).await?;
        let out = archive.get_mut();
        out.write_all(member.sparse.as_deref().unwrap_or_default()).map_err(cannot)?;
        for extent in data {
            read(session, &found.node, extent, &shown, |_, part| match part {
                Part::Data(bytes) => out.write_all(bytes).map_err(cannot),
                Part::Hole(len) | Part::Missing(len) => zeros(out, len).map_err(cannot),
            })
            .await?;
        }
        zeros(out, member.size.next_multiple_of(UNIT) - member.size).map_err(cannot)?;
        // Only what is in the archive can be linked to.
        if has_names && kind != EntryType::Link {
            links.insert(found.node.id(), member.name);
        }
        session.output.file_done();
    }
    Ok(())
}

/// Where the extents of a sparse file lie; one of no bytes at its end says how long it is.
fn map_of(data: &[Range<u64>], size: u64) -> Vec<u8> {
    let mut list: Vec<(u64, u64)> =
        data.iter().map(|extent| (extent.start, extent.end - extent.start)).collect();
    if data.last().is_none_or(|last| last.end < size) {
        list.push((size, 0));
    }
    let mut map = format!("{}\n", list.len());
    list.iter().for_each(|(at, len)| map += &format!("{at}\n{len}\n"));
    let padded = map.len().next_multiple_of(UNIT as usize);
    let mut map = map.into_bytes();
    map.resize(padded, 0);
    map
}

struct Member {
    name: Vec<u8>,
    link: Option<Vec<u8>>,
    kind: EntryType,
    /// Of what follows the header.
    size: u64,
    /// The map of a file with holes.
    sparse: Option<Vec<u8>>,
}

impl Member {
    async fn write_head(
        &self,
        session: &mut Session,
        archive: &mut Archive,
        found: &Found,
        shown: &str,
    ) -> Result<()> {
        let stat = &found.stat;
        let size = self.size;
        let mut header = Header::new_ustar();
        header.set_entry_type(self.kind);
        header.set_mode(stat.permissions);
        header.set_uid(stat.uid.into());
        header.set_gid(stat.gid.into());
        header.set_mtime(u64::try_from(stat.mtime.seconds).unwrap_or(0).min(SIZE_OLD));
        header.set_size(size.min(SIZE_OLD));
        if matches!(self.kind, EntryType::Char | EntryType::Block) {
            header
                .set_device_major(stat.rdev.0)
                .and_then(|()| header.set_device_minor(stat.rdev.1))
                .map_err(cannot)?;
        }
        put(&mut header.as_old_mut().name, &self.name);
        put(&mut header.as_old_mut().linkname, self.link.as_deref().unwrap_or_default());
        header.set_cksum();
        let mut more: Vec<(String, Vec<u8>)> = Vec::new();
        more.push(("mtime".into(), decimal(stat.mtime)));
        more.push(("atime".into(), decimal(stat.atime)));
        if self.sparse.is_some() {
            more.push(("GNU.sparse.major".into(), b"1".to_vec()));
            more.push(("GNU.sparse.minor".into(), b"0".to_vec()));
            more.push(("GNU.sparse.name".into(), self.name.clone()));
            more.push(("GNU.sparse.realsize".into(), stat.size.to_string().into_bytes()));
        } else if self.name.len() > NAME_OLD {
            more.push(("path".into(), self.name.clone()));
        }
        more.extend(
            self.link
                .iter()
                .filter(|link| link.len() > NAME_OLD)
                .map(|link| ("linkpath".into(), link.clone())),
        );
        if size > SIZE_OLD {
            more.push(("size".into(), size.to_string().into_bytes()));
        }
        if self.kind != EntryType::Link {
            let xattrs = xattrs(session, &found.node, shown).await.into_iter();
            more.extend(xattrs.filter_map(|(name, value)| {
                Some((format!("SCHILY.xattr.{}", String::from_utf8(name).ok()?), value))
            }));
        }
        archive
            .append_pax_extensions(more.iter().map(|(key, value)| (key.as_str(), &value[..])))
            .and_then(|()| archive.get_mut().write_all(header.as_bytes()))
            .map_err(cannot)
    }
}

/// Seconds with nine decimals, as the extended header has times.
fn decimal(time: Time) -> Vec<u8> {
    let nanos = time.as_nanos();
    let (sign, nanos) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
    format!("{sign}{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000).into_bytes()
}

/// As much of a name as fits; the whole is in the extended header then.
fn put(field: &mut [u8], bytes: &[u8]) {
    let n = bytes.len().min(field.len() - 1);
    field[..n].copy_from_slice(&bytes[..n]);
}

#[cfg(test)]
mod tests {
    use super::{Time, decimal, map_of, root_name};

    #[test]
    fn members_never_lead_out_of_the_directory_they_are_unpacked_in() {
        for (place, name) in [("tank", "."), ("tank:/etc/x", "etc/x"), ("tank:../..//a/", "a")] {
            assert_eq!(root_name(place), name.as_bytes());
        }
    }

    #[test]
    fn times_before_1970_are_negative_numbers_and_a_map_says_where_a_file_ends() {
        assert_eq!(decimal(Time { seconds: -1, nanos: 987_654_321 }), b"-0.012345679");
        assert_eq!(decimal(Time { seconds: 5, nanos: 6 }), b"5.000000006");
        let map = map_of(&[0..512, 4096..8192], 10_000);
        assert_eq!(map.len(), 512);
        assert!(map.starts_with(b"3\n0\n512\n4096\n4096\n10000\n0\n\0"));
    }
}
