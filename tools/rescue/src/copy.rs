//! `cp`: files and trees to this machine, with modes, times, links, holes and extended attributes; with owners and device
//! nodes too when the user may make them.
//!
//! Nothing that is whole is written over. A directory gets its mode and times when everything in it is made.
//!
//! A copy that was cut short is gone on with when it is asked for again: directories that are there are gone into, a file
//! of the same size and time is taken for the one that was made then, and one that is not, though the same file of the
//! pool would make it, is named and left alone. Files are made under a name of their own (`half.rs`) and get the right one
//! when they are whole, so that what has its name can be trusted.
//!
//! A file with several names is copied under the first, and the others become links to that copy. What was there before is
//! never linked to, nor is a copy that failed: the next name gets the data then.

use crate::half::Half;
use crate::place;
use crate::salvage::{Part, read, xattrs};
use crate::session::Session;
use crate::text;
use crate::walk::{Found, Walk};
use rustix::fs::{AtFlags, CWD, Gid, Timespec, Timestamps, Uid, XattrFlags};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use units::{Error, Kind, Result};
use zpl::{FileKind, NodeId, Stat, Time};

pub async fn run(session: &mut Session, places: &[String], target: &Path, recursive: bool) -> Result<()> {
    let is_into = target.is_dir();
    if places.len() > 1 && !is_into {
        return Err(Error::invalid(format!(
            "'{}' is no directory, and there are several to copy",
            text::file(target)
        )));
    }
    let is_root = rustix::process::geteuid().is_root();
    let mut copy = Copy { links: BTreeMap::new(), pool: String::new(), is_root, goes_on: recursive };
    for place in places {
        let node = match session.find(place, recursive).await {
            Ok(node) => node,
            Err(e) => {
                session.output.complain(format!("cannot copy '{place}': {e}"));
                continue;
            }
        };
        if node.is_directory() && !recursive {
            session.output.complain(format!("cannot copy '{place}': it is a directory; -r copies all of it"));
            continue;
        }
        let target = if is_into { target.join(own_name(place)) } else { target.to_path_buf() };
        copy.pool = place::pool(place).into();
        copy.tree(session, Walk::new(place, node, session.opened()), &target).await?;
    }
    Ok(())
}

/// What the copy of a place is called: the last name of the path, else that of the dataset.
fn own_name(place: &str) -> &str {
    let is_name = |name: &&str| !name.is_empty() && *name != "." && *name != "..";
    place.split(['/', ':']).rfind(is_name).unwrap_or("root")
}

struct Copy {
    /// Of files with several names, by pool, file system and number: the copy that this run has made.
    links: BTreeMap<(String, String, NodeId), Made>,
    /// As the place that is being copied calls it.
    pool: String,
    is_root: bool,
    /// Of a tree, what an earlier copy has made is passed over.
    goes_on: bool,
}

/// A copy, and which file of this machine it is.
struct Made {
    path: PathBuf,
    file: (u64, u64),
}

impl Made {
    fn at(path: &Path) -> Option<Made> {
        let there = std::fs::symlink_metadata(path).ok()?;
        Some(Made { path: path.into(), file: (there.dev(), there.ino()) })
    }

    /// Gives it another name, if it still is what it was made as, and if its file system can.
    fn link(&self, to: &Path) -> bool {
        Made::at(&self.path).is_some_and(|now| now.file == self.file)
            && std::fs::hard_link(&self.path, to).is_ok()
    }
}

impl Copy {
    async fn tree(&mut self, session: &mut Session, mut walk: Walk, target: &Path) -> Result<()> {
        let mut directories = Vec::new();
        while let Some(found) = walk.next(session).await? {
            let shown = walk.shown(&found.path);
            let to = match found.path.is_empty() {
                true => target.to_path_buf(),
                false => target.join(OsStr::from_bytes(&found.path)),
            };
            let done = match self.make(session, &found, &to, &shown).await {
                // The disk here is full: going on would only say so for each file.
                Err(e) if e.kind() == Kind::NoSpace => return Err(e),
                done => done,
            };
            match done {
                Ok(()) if found.node.is_directory() => directories.push((to, found)),
                Ok(()) => session.output.file_done(),
                Err(e) => {
                    session.output.complain(format!("cannot copy '{shown}': {e}"));
                    // What stands in the place of a directory may be a link that leads anywhere.
                    walk.leave(&found.path);
                }
            }
        }
        for (to, found) in directories.into_iter().rev() {
            let shown = walk.shown(&found.path);
            self.dress(session, &found, &to, &shown).await;
        }
        Ok(())
    }

    async fn make(&mut self, session: &mut Session, found: &Found, to: &Path, shown: &str) -> Result<()> {
        let stat = &found.stat;
        let is_directory = stat.kind == FileKind::Directory;
        if self.goes_on && !is_directory && is_made(stat, to) {
            return Ok(());
        }
        if is_directory || stat.links < 2 {
            return self.make_new(session, found, to, shown).await;
        }
        let id = (self.pool.clone(), found.node.file_system().name().into(), found.node.id());
        if self.links.get(&id).is_some_and(|made| made.link(to)) {
            return Ok(());
        }
        self.make_new(session, found, to, shown).await?;
        if let Some(made) = Made::at(to) {
            self.links.insert(id, made);
        }
        Ok(())
    }

    /// Makes a file that is no further name of one that was made.
    async fn make_new(&self, session: &mut Session, found: &Found, to: &Path, shown: &str) -> Result<()> {
        let stat = &found.stat;
        let at = |e: io::Error| cannot(to, e);
        match stat.kind {
            FileKind::Directory => {
                // For the owner alone until it is whole.
                return match std::fs::DirBuilder::new().mode(0o700).create(to) {
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists && is_directory(to) => Ok(()),
                    made => made.map_err(at),
                };
            }
            FileKind::Regular => return self.file(session, found, to, shown).await,
            FileKind::Symlink => {
                let target = session.read(&found.node, |node| async move { node.read_link().await }).await?;
                std::os::unix::fs::symlink(OsStr::from_bytes(&target), to).map_err(at)?;
            }
            FileKind::Fifo | FileKind::Socket | FileKind::CharDevice | FileKind::BlockDevice => {
                let kind = rustix::fs::FileType::from_raw_mode(stat.kind.mode_bits());
                let device = rustix::fs::makedev(stat.rdev.0, stat.rdev.1);
                rustix::fs::mknodat(CWD, to, kind, rustix::fs::Mode::from_raw_mode(0o600), device)
                    .map_err(|e| at(e.into()))?;
            }
        }
        self.dress(session, found, to, shown).await;
        Ok(())
    }

    async fn file(&self, session: &mut Session, found: &Found, to: &Path, shown: &str) -> Result<()> {
        let at = |e: io::Error| cannot(to, e);
        if std::fs::symlink_metadata(to).is_ok() {
            return Err(at(rustix::io::Errno::EXIST.into()));
        }
        let (half, file) = Half::create(to).map_err(at)?;
        // Holes are what is not written.
        file.set_len(found.stat.size).map_err(at)?;
        read(session, &found.node, 0..found.stat.size, shown, |offset, part| match part {
            Part::Data(bytes) => file.write_all_at(bytes, offset).map_err(at),
            Part::Hole(_) | Part::Missing(_) => Ok(()),
        })
        .await?;
        self.dress(session, found, half.path(), shown).await;
        half.publish(to).map_err(at)
    }

    /// Gives a copy the owner, extended attributes, mode and times of what it is a copy of, as far as its file system can
    /// keep them: the data come first. The kernel takes capabilities and the set-user-ID bit away when the owner changes,
    /// lets users write attributes of their files only while these can be written, and changes times with the rest: no
    /// other order loses nothing.
    async fn dress(&self, session: &mut Session, found: &Found, to: &Path, shown: &str) {
        let stat = &found.stat;
        let mut lacks = Vec::new();
        if self.is_root {
            // The highest number stands for the owner that there is.
            let id = |id: u32| Some(id).filter(|id| *id != u32::MAX);
            let owner = (id(stat.uid).map(Uid::from_raw), id(stat.gid).map(Gid::from_raw));
            let set = rustix::fs::chownat(CWD, to, owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW);
            lacks.extend(set.err().map(|e| ("owner", e)));
        }
        for (name, value) in xattrs(session, &found.node, shown).await {
            let set = rustix::fs::lsetxattr(to, OsStr::from_bytes(&name), &value, XattrFlags::empty());
            // Those of other namespaces are not the user's to set.
            if let Err(e) = set
                && (self.is_root || name.starts_with(b"user."))
            {
                let name = text::path(&name);
                session.output.complain(format!("'{shown}': extended attribute {name} is missing: {e}"));
            }
        }
        if stat.kind != FileKind::Symlink {
            // The right to act as the owner is that owner's to give.
            let is_of = |there: std::fs::Metadata| (there.uid(), there.gid()) == (stat.uid, stat.gid);
            let kept = if std::fs::symlink_metadata(to).is_ok_and(is_of) { 0o7777 } else { 0o1777 };
            let mode = rustix::fs::Mode::from_raw_mode(stat.permissions & kept);
            let set = rustix::fs::chmodat(CWD, to, mode, AtFlags::empty());
            lacks.extend(set.err().map(|e| ("mode", e)));
        }
        let set = rustix::fs::utimensat(CWD, to, &times(stat), AtFlags::SYMLINK_NOFOLLOW);
        lacks.extend(set.err().map(|e| ("times", e)));
        for (what, e) in lacks {
            session.output.complain(format!("'{shown}': {what} cannot be set: {e}"));
        }
    }
}

fn is_directory(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|there| there.is_dir())
}

/// Whether an earlier copy has made this: the same kind, size and time, or target.
fn is_made(stat: &Stat, to: &Path) -> bool {
    let Ok(there) = std::fs::symlink_metadata(to) else { return false };
    let is_kind = there.mode() & 0o170_000 == stat.kind.mode_bits() & 0o170_000;
    let is_size = stat.kind != FileKind::Regular || there.len() == stat.size;
    let time = (there.mtime(), there.mtime_nsec());
    let is_time = || time == (stat.mtime.seconds, stat.mtime.nanos.into());
    is_kind && is_size && (is_time() || time_kept(stat, to).is_ok_and(|kept| kept == time))
}

/// What the file system of `to` makes of the time of a file: each keeps a range of years, in steps of its own.
fn time_kept(stat: &Stat, to: &Path) -> io::Result<(i64, i64)> {
    let (_probe, file) = Half::create(to)?;
    rustix::fs::futimens(&file, &times(stat))?;
    let there = file.metadata()?;
    Ok((there.mtime(), there.mtime_nsec()))
}

fn times(stat: &Stat) -> Timestamps {
    let spec = |time: Time| Timespec { tv_sec: time.seconds, tv_nsec: time.nanos.into() };
    Timestamps { last_access: spec(stat.atime), last_modification: spec(stat.mtime) }
}

fn cannot(to: &Path, e: io::Error) -> Error {
    let kind = if e.kind() == io::ErrorKind::StorageFull { Kind::NoSpace } else { Kind::Io };
    Error::new(kind, "write").at(text::file(to)).because(e)
}

#[cfg(test)]
mod tests {
    use super::own_name;

    #[test]
    fn a_copy_is_called_as_what_it_is_a_copy_of() {
        for (place, name) in [
            ("tank:/etc/passwd", "passwd"),
            ("tank:/etc/", "etc"),
            ("tank/home@monday", "home@monday"),
            ("tank:/..", "tank"),
            ("tank:", "tank"),
        ] {
            assert_eq!(own_name(place), name);
        }
    }
}
