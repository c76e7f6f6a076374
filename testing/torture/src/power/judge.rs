//! Importing what a power cut has left, and holding it against the history.

use super::check::{Found, Limits, Undecided, check};
use super::client::Shared;
use super::history::{History, NEVER, Snapshot, Span};
use super::round::{DIR, Keep, Picture, photograph};
use crate::bench::{bytes, import_without, volumes_of};
use pool::Pool;
use sim::{Config, Disks, run_with};
use std::collections::BTreeMap;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use units::{Error, Result};

/// A volume and its snapshots as they were found.
pub type Contents = BTreeMap<String, (Found, BTreeMap<String, Found>)>;

/// What the survivors are asked to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// All that was answered as durable.
    Log,
    /// All that was in a txg: the devices of the log are gone too.
    Txg,
}

/// Imports the pool, reads all there is, verifies every block; leaves it open for the next cut, or exports it.
pub fn look(disks: &Disks, seed: u64, promise: Promise, export: bool) -> Result<Contents> {
    run_with(disks, seed, Config::default(), look_inside(promise, export))
}

/// As [`look`], with pictures of the recovery itself.
pub fn look_and_photograph(
    disks: &Disks,
    seed: u64,
    history: &Shared,
    keep: Keep,
) -> (Result<Contents>, Vec<Picture>) {
    let (found, pictures) = photograph(disks, seed, history, keep, look_inside(Promise::Log, true));
    (found.expect("nobody cuts this power"), pictures)
}

async fn look_inside(promise: Promise, export: bool) -> Result<Contents> {
    let pool = import_without(DIR, promise == Promise::Txg).await?;
    let mut contents = Contents::new();
    for name in volumes_of(&pool).await? {
        let mut snapshots = BTreeMap::new();
        for (full, _) in pool.dsl().snapshots(&name).await? {
            let short = full.rsplit('@').next().unwrap_or_default().to_string();
            snapshots.insert(short, read(&pool, &full).await?);
        }
        let found = read(&pool, &name).await?;
        contents.insert(name, (found, snapshots));
    }
    let report = pool.verify(|_| ()).await?;
    if !report.is_sound() {
        return Err(Error::corrupt(format!("blocks are lost: {:?}", report.damage)));
    }
    if export {
        pool.export().await?;
    }
    // That the log is lost is to be said, and nothing else.
    let is_known = |p: &String| {
        promise == Promise::Txg
            && p.contains("intent log")
            && (p.contains("missing log device") || p.contains("are lost"))
    };
    let problems: Vec<String> = pool.complaints().into_iter().filter(|p| !is_known(p)).collect();
    if problems.is_empty() {
        return Ok(contents);
    }
    Err(Error::corrupt(format!("the pool complains: {problems:?}")))
}

async fn read(pool: &Pool, name: &str) -> Result<Found> {
    let volume = pool.open_volume(name).await?;
    Ok(Found { block: volume.block_size(), bytes: bytes(&volume, 0, volume.size()).await? })
}

/// Holds what was found against what the clients knew at `now`.
pub fn agree(
    history: &History,
    contents: &Contents,
    now: u64,
    promise: Promise,
) -> std::result::Result<Undecided, String> {
    if !contents.keys().eq(history.volumes.keys()) {
        return Err(format!("volumes {:?} instead of {:?}", contents.keys(), history.volumes.keys()));
    }
    // A snapshot that is there proves its txg.
    let found = |name: &str, short: &str| contents[name].1.contains_key(short);
    let proved = history.volumes.iter().flat_map(|(name, track)| {
        track.snapshots.iter().filter(move |(short, _)| found(name, short)).map(|(_, s)| s)
    });
    let proved = proved.filter_map(|s| if let Snapshot::Taken(span) = s { Some(span.begun) } else { None });
    let heard = |span: &&Span| span.done <= now;
    let synced = history.syncs.iter().filter(heard).map(|s| s.begun).chain(proved).max().unwrap_or(0);
    let mut undecided = Undecided::default();
    for (name, (head, snapshots)) in contents {
        let track = &history.volumes[name];
        let flushed = track.flushes.iter().filter(heard).map(|s| s.begun).max().unwrap_or(0);
        let (with_log, promised) = match promise {
            Promise::Log => (true, synced.max(flushed)),
            Promise::Txg => (false, synced),
        };
        let limits = Limits { until: now, heard: now, promised, with_log };
        let own = check(track, head, limits).map_err(|e| format!("{name}: {e}"))?;
        undecided.present += own.present;
        undecided.absent += own.absent;
        for (short, found) in snapshots {
            let at = |e: String| format!("{name}@{short}: {e}");
            match track.snapshots.get(short) {
                Some(Snapshot::Old(old)) if old == found => {}
                Some(Snapshot::Old(_)) => return Err(at("a snapshot has changed".into())),
                Some(Snapshot::Taken(span)) if span.begun <= now => {
                    check(track, found, of_snapshot(*span, now)).map_err(at)?;
                }
                _ => return Err(at("nobody took it".into())),
            }
        }
        let lost = track.snapshots.iter().find(|(short, snapshot)| {
            let is_promised = match snapshot {
                Snapshot::Old(_) => true,
                Snapshot::Taken(span) => span.done <= now,
            };
            is_promised && !snapshots.contains_key(*short)
        });
        if let Some((short, _)) = lost {
            return Err(format!("{name}@{short} is lost"));
        }
    }
    Ok(undecided)
}

/// A snapshot holds what was answered before it was asked for, and nothing that began after it was there.
fn of_snapshot(span: Span, now: u64) -> Limits {
    let until = if span.done == NEVER { now } else { span.done.min(now) };
    Limits { until, heard: span.begun, promised: span.begun, with_log: true }
}

/// A new history that begins with what was found.
pub fn begin_with(contents: &Contents) -> History {
    let mut history = History::default();
    for (name, (head, snapshots)) in contents {
        history.add_volume(name, head.block, head.bytes.clone());
        if let Some(track) = history.volumes.get_mut(name) {
            let old = snapshots.iter().map(|(short, found)| (short.clone(), Snapshot::Old(found.clone())));
            track.snapshots.extend(old);
        }
    }
    history
}

/// Writes the disks as sparse files into a directory, which then holds no others: `zdb` takes every pool it finds there.
pub fn dump(disks: &Disks, paths: &[String], into: &Path) -> std::io::Result<()> {
    const STEP: usize = 1 << 20;
    let zeros = vec![0; STEP];
    std::fs::create_dir_all(into)?;
    for entry in std::fs::read_dir(into)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "img") {
            std::fs::remove_file(path)?;
        }
    }
    for path in paths {
        let Some(disk) = disks.get(path) else { continue };
        let name = Path::new(path).file_name().unwrap_or_default();
        let mut file = std::fs::File::create(into.join(name))?;
        file.set_len(disk.size())?;
        for at in (0..disk.size()).step_by(STEP) {
            let bytes = disk.peek(at, STEP.min((disk.size() - at) as usize));
            if bytes != zeros[..bytes.len()] {
                file.seek(SeekFrom::Start(at))?;
                file.write_all(&bytes)?;
            }
        }
    }
    Ok(())
}
