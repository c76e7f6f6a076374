//! Whether a tree found after a cut is one that the track allows.
//!
//! ```text
//!   names     0 ── 1 ── 2 ── 3 ── 4         some prefix of the changes of names, not shorter than what was promised
//!                       │ required
//!   file      a ── b ── c ── d              for each file under these names: one of its versions, likewise
//!                  │ required: synced, or the file was renamed within the prefix, and written before that
//! ```

use super::super::judge::Promise;
use super::track::{Extras, Id, Names, Promised, Track, Version, Whom};
use crate::power::check::Undecided;
use std::collections::BTreeMap;

/// A file as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    pub is_directory: bool,
    pub object: u64,
    pub links: u64,
    pub mode: u32,
    pub bytes: Vec<u8>,
    pub extras: Extras,
}

pub type Found = BTreeMap<String, FoundFile>;

pub fn check(track: &Track, found: &Found, now: u64, promise: Promise) -> Result<Undecided, String> {
    let promises: Vec<&Promised> = track
        .promises
        .iter()
        .filter(|p| p.done <= now && (promise == Promise::Log || p.whom == Whom::Txg))
        .collect();
    let known = track.names.iter().take_while(|names| names.begun <= now).count();
    let is_promised = |names: &Names| promises.iter().any(|p| names.done <= p.begun);
    let lowest = track.names[..known].iter().rposition(is_promised).unwrap_or(0);
    let mut why = Vec::new();
    for k in lowest..known {
        let sight = Sight { track, promises: &promises, now, k };
        match sight.look(found) {
            Ok(contents) => {
                let names = Undecided { present: (k - lowest) as u64, absent: (known - 1 - k) as u64 };
                let present = names.present + contents.present;
                return Ok(Undecided { present, absent: names.absent + contents.absent });
            }
            Err(e) => why.push(format!("as of change {k} of the names: {e}")),
        }
    }
    Err(format!("no tree that may be, at least change {lowest} of the names: {}", why.join("; ")))
}

struct Sight<'a> {
    track: &'a Track,
    promises: &'a [&'a Promised],
    now: u64,
    /// The change of the names that is tried.
    k: usize,
}

impl Sight<'_> {
    fn look(&self, found: &Found) -> Result<Undecided, String> {
        let paths = &self.track.names[self.k].paths;
        if !paths.keys().eq(found.keys()) {
            let (wanted, found): (Vec<_>, Vec<_>) = (paths.keys().collect(), found.keys().collect());
            return Err(format!("{found:?} instead of {wanted:?}"));
        }
        let mut undecided = Undecided::default();
        let mut objects: BTreeMap<Id, u64> = BTreeMap::new();
        for (path, &id) in paths {
            let (file, wanted) = (&found[path], &self.track.files[id]);
            if file.is_directory != wanted.is_directory {
                return Err(format!("{path} is of another kind"));
            }
            if *objects.entry(id).or_insert(file.object) != file.object {
                return Err(format!("{path} is another file than under its other name"));
            }
            if file.is_directory {
                continue;
            }
            let links = paths.values().filter(|other| **other == id).count() as u64;
            if file.links != links {
                return Err(format!("{path} has {} links, not {links}", file.links));
            }
            let own = self.version(id, file).map_err(|e| format!("{path} {e}"))?;
            undecided.present += own.present;
            undecided.absent += own.absent;
        }
        let distinct: std::collections::BTreeSet<&u64> = objects.values().collect();
        if distinct.len() < objects.len() {
            return Err("two files are one".into());
        }
        Ok(undecided)
    }

    fn version(&self, id: Id, found: &FoundFile) -> Result<Undecided, String> {
        let versions = &self.track.files[id].versions;
        let known = versions.iter().take_while(|version| version.begun <= self.now).count().max(1);
        let lowest = versions[..known].iter().rposition(|v| self.is_required(id, v)).unwrap_or(0);
        let is_it = |v: &Version| v.bytes == found.bytes && v.mode == found.mode && v.extras == found.extras;
        if let Some(at) = versions[lowest..known].iter().rposition(is_it) {
            return Ok(Undecided { present: at as u64, absent: (known - 1 - lowest - at) as u64 });
        }
        let what = match versions[..lowest].iter().rposition(is_it) {
            Some(old) => format!("is as of change {old}, and that is too old"),
            None => {
                let sizes: Vec<usize> = versions[..known].iter().map(|v| v.bytes.len()).collect();
                let (size, mode, extras) = (found.bytes.len(), found.mode, &found.extras);
                format!("of {size} bytes, mode {mode:o}, {extras}, was never so; sizes were {sizes:?}")
            }
        };
        Err(format!("{what}; required at least change {lowest} of {known}"))
    }

    fn is_required(&self, id: Id, version: &Version) -> bool {
        let by_promise = self.promises.iter().any(|p| {
            let is_meant = matches!(p.whom, Whom::All | Whom::Txg) || p.whom == Whom::File(id);
            is_meant && version.done <= p.begun
        });
        let names = &self.track.names[..=self.k];
        by_promise || names.iter().any(|n| n.moved.contains(&id) && version.done <= n.begun)
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::first_track;
    use super::*;

    fn found(track: &Track) -> Found {
        let describe = |id: &Id| {
            let links = track.paths().values().filter(|other| *other == id).count() as u64;
            let is_directory = track.files[*id].is_directory;
            let (mode, bytes) = (track.mode(*id), track.bytes(*id).to_vec());
            let extras = track.extras(*id);
            FoundFile { is_directory, object: *id as u64, links, mode, bytes, extras }
        };
        track.paths().iter().map(|(path, id)| (path.clone(), describe(id))).collect()
    }

    #[test]
    fn what_was_synced_is_required_and_a_renamed_file_has_what_was_written() {
        let mut track = first_track();
        let base = found(&track);
        track.begin_content(1, 0, vec![vec![1], vec![1, 2]], 0o644, track.extras(0));
        track.end(2);
        let written = found(&track);
        let judge = |track: &Track, found: &Found| check(track, found, 100, Promise::Log);
        assert_eq!(judge(&track, &base), Ok(Undecided { present: 0, absent: 2 }));
        assert_eq!(judge(&track, &written), Ok(Undecided { present: 2, absent: 0 }));
        let mut paths = track.paths();
        let id = paths.remove("old").unwrap();
        paths.insert("new".into(), id);
        track.begin_names(3, paths, vec![id]);
        track.end(4);
        let renamed = found(&track);
        assert!(judge(&track, &base).is_ok() && judge(&track, &renamed).is_ok());
        let mut half = renamed.clone();
        half.get_mut("new").unwrap().bytes = vec![1];
        assert!(judge(&track, &half).unwrap_err().contains("too old"));
        half.get_mut("new").unwrap().bytes = vec![9];
        assert!(judge(&track, &half).unwrap_err().contains("never so"));
        track.promises.push(Promised { begun: 5, done: 6, whom: Whom::File(1) });
        assert!(judge(&track, &base).is_err(), "the names are promised");
        assert!(check(&track, &base, 100, Promise::Txg).is_ok());
        let mut neither = renamed.clone();
        neither.remove("new");
        assert!(judge(&track, &neither).is_err());
    }
}
