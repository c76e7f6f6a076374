//! Running words of operations on files, cutting the power at every moment of them.

use super::super::case::{Effort, FATES_MAX, Ways, hash};
use super::super::client::{Faith, Shared, lock};
use super::super::figures::{Failure, Figures};
use super::super::history::History;
use super::super::judge::{Promise, dump};
use super::super::known::{Known, LABELS, base_of, words};
use super::super::round::{DIR, Keep, Picture, TXG_TIMEOUT, new_disks, photograph};
use super::super::setup::{Place, Setup};
use super::check::{Found, FoundFile, check};
use super::client::{Client, SharedTrack, extras_of, first_files, first_track, track_of, uncomplaining};
use super::track::Track;
use crate::bench::{POOL, create_pool_with, import, import_without};
use dsl::props::{Limits, Types, When, parse_setting};
use ondisk::Feature;
use pool::Content;
use sim::{Config, Disks, Rng, run_with};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use units::{Error, Result};
use zpl::FileKind;

const PREFIX: &str = "files:";
/// The file system that a clone begins as.
const ORIGIN: &str = "tank/a/origin";

/// The file system that the client works with.
fn name_of(setup: &Setup) -> &'static str {
    match setup.place {
        Place::Child | Place::Elsewhere => "tank/f",
        Place::Root => POOL,
        Place::Nested => "tank/a/b/f",
        Place::Clone => "tank/a/clone",
    }
}

/// `files:SETUP:WORD[:SPOT]`, as the cases of volumes; the block size of the setup is the `recordsize`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileCase {
    pub setup: Setup,
    pub word: String,
    pub spot: Option<String>,
}

impl FileCase {
    pub fn of(setup: Setup, word: &str) -> FileCase {
        FileCase { setup, word: word.to_string(), spot: None }
    }
}

/// As [`Runner`](super::super::Runner), for files.
#[derive(Debug, Default)]
pub struct FileRunner {
    bases: BTreeMap<String, Disks>,
    ways: Ways,
}

impl FileRunner {
    pub fn new(ways: Ways) -> FileRunner {
        FileRunner { bases: BTreeMap::new(), ways }
    }

    pub fn run(&mut self, case: &FileCase, effort: Effort) -> Figures {
        codec::checksum::sealed::remember_hashes(LABELS);
        let disks = match base_of(&mut self.bases, case.setup.to_string(), || base(case.setup)) {
            Ok(base) => base.fork(),
            Err(e) => {
                let why = format!("the first pool: {e}");
                let failures = vec![Failure { case: case.to_string(), why }];
                return Figures { failures, ..Figures::default() };
            }
        };
        let effort = if case.spot.is_some() { Effort::REPLAY } else { effort };
        let known = Known::default();
        let mut run = Run { case, effort, ways: &self.ways, figures: Figures::default(), known };
        run.figures.workloads = 1;
        run.all(disks);
        run.figures.states = run.known.count();
        run.figures
    }
}

fn base(setup: Setup) -> Result<Disks> {
    let disks = new_disks(&setup);
    run_with(&disks, 1, Config::default(), make(setup))?;
    Ok(disks)
}

async fn make(setup: Setup) -> Result<()> {
    let pool = create_pool_with(setup.shape.groups(DIR)?, setup.shape.ashift, &[Feature::ZilSaXattr]).await?;
    let record = format!("{}K", setup.block >> 10);
    let elsewhere = (setup.place == Place::Elsewhere).then_some(("mountpoint", "/elsewhere"));
    let props = [
        ("recordsize", record.as_str()),
        ("logbias", setup.logbias.word()),
        ("sync", setup.sync_word()),
        ("xattr", "sa"),
        ("acltype", "nfsv4"),
    ];
    let parse =
        |(name, value)| parse_setting(name, value, Types::FILESYSTEM, When::Later, &Limits::default());
    let props = props.into_iter().chain(elsewhere).map(parse).collect::<Result<Vec<_>>>()?;
    let name = name_of(&setup);
    let files = || Content::FileSystem(zpl::NewFileSystem::default());
    for above in ["tank/a", "tank/a/b"] {
        pool.create_dataset(above, files(), Vec::new()).await?;
    }
    match setup.place {
        Place::Root => {}
        Place::Clone => {
            pool.create_dataset(ORIGIN, files(), Vec::new()).await?;
            let origin = pool.open_file_system_for_writing(ORIGIN).await?;
            // The second is in a log, which the snapshot has as well.
            origin.root().await?.sync().await?;
            let new = zpl::NewFile::new(FileKind::Regular, 0o644);
            let gone = origin.root().await?.create(b"gone", &new).await?;
            gone.sync().await?;
            pool.snapshot(vec![format!("{ORIGIN}@s")], Vec::new()).await?;
            pool.clone_snapshot(&format!("{ORIGIN}@s"), name, Vec::new()).await?;
            let clone = pool.open_file_system_for_writing(name).await?;
            clone.root().await?.unlink(b"gone").await?;
        }
        _ => pool.create_dataset(name, files(), Vec::new()).await?,
    }
    for (prop, value) in props {
        pool.change("set", move |pool, tx| async move { pool.dsl().set(&tx, name, &prop, &value).await })
            .await?;
    }
    first_files(&pool.open_file_system_for_writing(name).await?).await?;
    pool.sync().await?;
    pool.close().await
}

struct Run<'a> {
    case: &'a FileCase,
    effort: Effort,
    ways: &'a Ways,
    figures: Figures,
    known: Known<Found>,
}

impl Run<'_> {
    fn all(&mut self, disks: Disks) {
        let seed = hash(&format!("{PREFIX}{}:{}", self.case.setup, self.case.word));
        let history: Shared = Arc::new(Mutex::new(History::default()));
        let track: SharedTrack = Arc::new(Mutex::new(first_track()));
        for path in &self.ways.deaf {
            if let Some(disk) = disks.get(path) {
                disk.set_fault(sim::Fault { ignores_flushes: true, ..sim::Fault::default() });
            }
        }
        let keep = Keep { flush_every: self.effort.flush_every, write_every: self.effort.write_every, seed };
        let faith = Faith { sync: self.case.setup.sync, is_gullible: self.ways.is_gullible };
        let work = work(self.case.clone(), history.clone(), track.clone(), faith);
        let ran = catch_unwind(AssertUnwindSafe(|| photograph(&disks, seed, &history, keep, work)));
        let (outcome, pictures) = match ran {
            Ok(ran) => ran,
            Err(panic) => return self.fail("run".into(), words(&*panic)),
        };
        if let Some(Err(e)) = outcome {
            self.fail("run".into(), format!("the workload met an error: {e}"));
        }
        let track = track_of(&track).clone();
        if self.ways.is_loud {
            let (names, promises) = (track.names.len(), &track.promises);
            println!("{} pictures, {names} changes of names, {promises:#?}", pictures.len());
        }
        for picture in &pictures {
            let fates = if picture.name == "end" { 1 } else { self.effort.fates.min(FATES_MAX) };
            for fate in 0..fates {
                self.one_fate(&track, picture, fate);
            }
        }
    }

    fn one_fate(&mut self, track: &Track, picture: &Picture, fate: u64) {
        let spot = format!("{}.{fate}", picture.name);
        let asked = self.case.spot.clone();
        if asked.as_ref().is_some_and(|asked| *asked != spot && !asked.starts_with(&format!("{spot}."))) {
            return;
        }
        let seed = hash(&format!("{PREFIX}{}:{}:{spot}", self.case.setup, self.case.word));
        let chance = |every: u64, salt: u64| every > 0 && Rng::new(seed ^ salt).below(every) == 0;
        let disks = picture.disks.fork();
        disks.power_cut(seed);
        let has_log = self.case.setup.shape.logs > 0;
        let (lost, again) = match &asked {
            Some(asked) => (asked.ends_with(".lost"), asked.len() > spot.len()),
            None => (has_log && chance(self.effort.lost_every, 1), chance(self.effort.again_every, 2)),
        };
        if lost {
            let fork = disks.fork();
            for path in self.case.setup.shape.log_paths(DIR) {
                fork.remove(path);
            }
            self.figures.without_log += 1;
            self.judge(&format!("{spot}.lost"), track, picture.now, Promise::Txg, &fork, false);
        }
        if again && !lost {
            self.cut_again(track, picture, &spot, &disks.fork());
        }
        if asked.as_ref().is_none_or(|asked| *asked == spot || asked.contains(".zdb")) {
            self.figures.at_flush += u64::from(picture.name.starts_with('f'));
            let ask_zdb =
                chance(self.effort.zdb_every, 3) || asked.is_some_and(|asked| asked.contains(".zdb"));
            self.judge(&spot, track, picture.now, Promise::Log, &disks, ask_zdb);
            if ask_zdb {
                self.give_to_zdb(&format!("{spot}.zdb"), &disks);
            }
        }
    }

    /// Cuts the power at flushes and writes of the recovery.
    fn cut_again(&mut self, track: &Track, picture: &Picture, spot: &str, disks: &Disks) {
        let seed = disks.print();
        let Effort { again_flush_every: flush_every, again_write_every: write_every, .. } = self.effort;
        let keep = Keep { flush_every, write_every, seed };
        let clock: Shared = Arc::new(Mutex::new(History::default()));
        let look = look(name_of(&self.case.setup), Promise::Log);
        let Ok((Some(found), pictures)) =
            catch_unwind(AssertUnwindSafe(|| photograph(disks, seed, &clock, keep, look)))
        else {
            return;
        };
        _ = self.known.learn(seed, Promise::Log, Ok(found));
        for again in &pictures {
            let spot = format!("{spot}.{}", again.name);
            if self.case.spot.as_ref().is_some_and(|asked| *asked != spot) {
                continue;
            }
            let disks = again.disks.fork();
            disks.power_cut(hash(&spot));
            self.figures.again += 1;
            self.judge(&spot, track, picture.now, Promise::Log, &disks, false);
        }
    }

    fn judge(&mut self, spot: &str, track: &Track, now: u64, promise: Promise, disks: &Disks, anew: bool) {
        self.figures.cuts += 1;
        let name = name_of(&self.case.setup);
        let recover = |seed| run_with(disks, seed, Config::default(), look(name, promise));
        let seen = self.known.look(disks, promise, anew, recover);
        match seen.and_then(|found| check(track, &found, now, promise)) {
            Ok(undecided) => {
                self.figures.undecided.present += undecided.present;
                self.figures.undecided.absent += undecided.absent;
            }
            Err(why) => self.fail(spot.to_string(), format!("cut at {now}: {why}")),
        }
    }

    fn give_to_zdb(&mut self, spot: &str, disks: &Disks) {
        let Some(zdb) = self.ways.zdb.clone() else { return };
        self.figures.by_zdb += 1;
        let dumped = dump(disks, &self.case.setup.shape.paths(DIR), &zdb.scratch);
        let judged = dumped.map_err(|e| e.to_string()).and_then(|()| (zdb.judge)(&zdb.scratch, POOL));
        if let Err(why) = judged {
            self.fail(spot.to_string(), why);
        }
    }

    fn fail(&mut self, spot: String, why: String) {
        let case = FileCase { spot: Some(spot), ..self.case.clone() }.to_string();
        self.figures.failures.push(Failure { case, why });
    }
}

async fn work(case: FileCase, history: Shared, track: SharedTrack, faith: Faith) -> Result<()> {
    let pool = import(DIR).await?;
    let fs = pool.open_file_system_for_writing(name_of(&case.setup)).await?;
    // The first commit begins the log, with a txg: the others are what is looked at.
    fs.root().await?.sync().await?;
    _ = lock(&history).begin_flush();
    let client = Client { pool: pool.clone(), fs, track, history, faith, record: case.setup.block };
    for letter in case.word.chars() {
        client.perform(letter).await?;
    }
    world::sleep(TXG_TIMEOUT).await;
    uncomplaining(pool.complaints())
}

/// Imports the pool, reads all files, verifies every block, exports.
async fn look(name: &'static str, promise: Promise) -> Result<Found> {
    let pool = import_without(DIR, promise == Promise::Txg).await?;
    let fs = pool.open_file_system(name).await?;
    let mut found = Found::new();
    let mut todo = vec![(String::new(), fs.root().await?)];
    while let Some((path, node)) = todo.pop() {
        let stat = node.stat().await?;
        let is_directory = stat.kind == FileKind::Directory;
        if is_directory {
            let entries = node.list_all().await?;
            let mut directories = 0;
            for entry in &entries {
                let child = fs.object(entry.object).await?;
                directories += u64::from(child.is_directory());
                let name = String::from_utf8_lossy(&entry.name);
                let path = if path.is_empty() { name.into_owned() } else { format!("{path}/{name}") };
                todo.push((path, child));
            }
            if (stat.size, stat.links) != (entries.len() as u64 + 2, directories + 2) {
                let (size, links) = (stat.size, stat.links);
                let what =
                    format!("directory /{path} of {} names has size {size}, {links} links", entries.len());
                return Err(Error::corrupt(what));
            }
        }
        if !path.is_empty() {
            let bytes = match is_directory {
                true => Vec::new(),
                false => node.read(0, stat.size as usize).await?.to_vec(),
            };
            let (object, links, mode) = (stat.object.0, stat.links, stat.permissions);
            let extras = extras_of(&node).await?;
            found.insert(path, FoundFile { is_directory, object, links, mode, bytes, extras });
        }
    }
    drop(fs);
    let report = pool.verify(|_| ()).await?;
    if !report.is_sound() {
        return Err(Error::corrupt(format!("blocks are lost: {:?}", report.damage)));
    }
    // It can be written to as well: then unlinked files are freed.
    pool.open_file_system_for_writing(name).await?;
    pool.export().await?;
    // That the log is lost is to be said, and nothing else.
    let is_known = |p: &String| promise == Promise::Txg && p.contains("intent log");
    uncomplaining(pool.complaints().into_iter().filter(|p| !is_known(p)).collect())?;
    Ok(found)
}

impl fmt::Display for FileCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}:{}", self.setup, self.word)?;
        match &self.spot {
            Some(spot) => write!(f, ":{spot}"),
            None => Ok(()),
        }
    }
}

impl FromStr for FileCase {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<FileCase, String> {
        let bad = || format!("'{text}' is no case of files: {PREFIX}SETUP:WORD[:SPOT]");
        let mut parts = text.strip_prefix(PREFIX).ok_or_else(bad)?.splitn(3, ':');
        let (setup, word) = (parts.next().ok_or_else(bad)?, parts.next().ok_or_else(bad)?);
        let known = |c: char| super::ALPHABET.contains(c) || super::PROMISES.contains(c) || c == super::SYNC;
        if word.is_empty() || !word.chars().all(known) {
            return Err(bad());
        }
        Ok(FileCase { setup: setup.parse()?, word: word.to_string(), spot: parts.next().map(String::from) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_its_name() {
        for name in
            ["files:mirror+slog/latency/16K/9:CWfR:f12.1.w3", "files:raidz1/throughput/4K/12@root:CsU"]
        {
            assert_eq!(name.parse::<FileCase>().unwrap().to_string(), name);
        }
        assert!("files:raidz1/throughput/4K/12:q".parse::<FileCase>().is_err());
    }
}
