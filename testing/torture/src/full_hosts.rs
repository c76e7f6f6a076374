//! Pools whose files share a host that fills up, under clients that stay, leave and come again, and kills.
//!
//! ```text
//!   host ┬ two pools: each a volume, a file in the pool's own file system, one in a nested file system
//!        └ other files, which take what room is left, and go again
//!
//!   write  flush  reconnect  read  make a file  snapshot  destroy it     at random, each given up after a while
//!     │ meanwhile, at random:
//!     ├ the other files grow      ─▶ a pool that needs room is suspended; the other one must not notice
//!     ├ they go, `zpool clear`    ─▶ it must go on
//!     └ kill                      ─▶ import, with or without room ─▶ what was flushed is there
//!   end: room, clear, flush ─▶ every block, every structure ─▶ export, import ─▶ again
//! ```
//!
//! What a block may hold is a set: the last write that was answered, and those after it that were given up or failed; after
//! a kill what was flushed last, and all that came later. For the volume the set is of its blocks; for files it is of pages
//! of 4096 bytes, which are what a crash does not tear: their records are too large for a block of the log, which divides
//! them there. A request may fail while its pool was refused room since it was
//! cleared, and at no other time. A kill ends the process: what it had written arrives; one in three takes the power too.
//!
//! Not here: devices that fail for other reasons ([`crate::suspended`]).

use crate::bench::{create_named, import, random};
use crate::layout::Shape;
use crate::model::pattern;
use dsl::DestroySpec;
use pool::{Content, Pool};
use sim::{Config, Disks, Host, Model, Rng, run_until_cut};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use units::{Error, Result};
use world::{Buf, timeout};
use zpl::{FileKind, FileSystem, NewFile, Node};
use zvol::Volume;

const NAMES: [&str; 2] = ["tank", "well"];
const DISK: u64 = 96 << 20;
const BLOCK: u64 = 16 << 10;
/// Of a volume; of a file.
const BLOCKS: [u64; 3] = [96, 24, 24];
/// Into how many parts a block may be torn, of each of the three.
const PIECES: [u64; 3] = [1, 4, 4];
/// A client that hears nothing for so long goes away.
const PATIENCE: Duration = Duration::from_secs(3);
/// Nothing takes so long unless it waits for ever.
const EVER: Duration = Duration::from_secs(3600);
/// What the host has free at most, for a disk: a few MiB more than an empty pool takes, which the work uses up.
const ROOM: u64 = 12 << 20;

/// One run: everything follows from the seed.
#[derive(Clone, Copy, Debug)]
pub struct FullHosts {
    pub seed: u64,
    pub steps: u64,
}

impl fmt::Display for FullHosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host:{}:{}", self.seed, self.steps)
    }
}

impl FromStr for FullHosts {
    type Err = String;

    fn from_str(case: &str) -> std::result::Result<FullHosts, String> {
        let numbers = || {
            let (seed, steps) = case.strip_prefix("host:")?.split_once(':')?;
            Some(FullHosts { seed: seed.parse().ok()?, steps: steps.parse().ok()? })
        };
        numbers().ok_or_else(|| format!("'{case}' is not of the form host:SEED:STEPS"))
    }
}

/// What a run has done.
#[derive(Clone, Copy, Debug, Default)]
pub struct FullHostFigures {
    pub refused: u64,
    pub suspended: u64,
    pub kills: u64,
    /// Imports that failed, or were suspended, for want of room.
    pub without_room: u64,
    pub flushes: u64,
    pub reads: u64,
}

impl AddAssign for FullHostFigures {
    fn add_assign(&mut self, other: FullHostFigures) {
        self.refused += other.refused;
        self.suspended += other.suspended;
        self.kills += other.kills;
        self.without_room += other.without_room;
        self.flushes += other.flushes;
        self.reads += other.reads;
    }
}

impl fmt::Display for FullHostFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FullHostFigures { refused, suspended, kills, without_room, flushes, reads } = self;
        write!(
            f,
            "{refused} writes without room, {suspended} suspensions, {kills} kills, {without_room} imports without room, \
             {flushes} flushes, {reads} reads"
        )
    }
}

/// What one piece of a block may hold, as the seeds of the block's content; 0 is nothing.
#[derive(Clone, Debug)]
struct Known {
    now: Vec<u64>,
    after_a_kill: Vec<u64>,
}

impl Known {
    fn attempt(&mut self, seed: u64) {
        self.now.push(seed);
        self.after_a_kill.push(seed);
    }

    fn answered(&mut self, seed: u64) {
        self.now = vec![seed];
    }
}

fn content(seed: u64) -> Vec<u8> {
    if seed == 0 { vec![0; BLOCK as usize] } else { pattern(seed, BLOCK) }
}

/// What the clients of one pool know: it outlives kills.
#[derive(Debug)]
struct Ledger {
    /// The pieces of the volume's blocks, of those of the file in the root, of those of the nested file.
    blocks: [Vec<Known>; 3],
    /// Files that were made in the root file system, with what they hold, and whether that was synced.
    made: BTreeMap<String, (u64, bool)>,
    /// With whether it was said to be made: one that was not may come later, or never.
    snapshots: Vec<(String, bool)>,
    /// Writes that had been refused room when the pool was cleared or imported last.
    refused: u64,
}

#[derive(Debug, Default)]
struct Common {
    last_seed: u64,
    steps: u64,
    ledgers: Vec<Ledger>,
    figures: FullHostFigures,
    error: Option<String>,
}

type Shared = Arc<Mutex<Common>>;

fn lock(common: &Shared) -> MutexGuard<'_, Common> {
    common.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A pool with the clients that are connected to it.
struct Side {
    index: usize,
    shape: Shape,
    pool: Option<Pool>,
    volume: Option<Volume>,
    files: Option<FileSystem>,
    nested: Option<FileSystem>,
}

impl Side {
    fn new(index: usize, shape: Shape) -> Side {
        Side { index, shape, pool: None, volume: None, files: None, nested: None }
    }

    fn name(&self) -> &'static str {
        NAMES[self.index]
    }

    fn dir(&self) -> String {
        format!("/sim/{}", self.name())
    }

    fn pool(&self) -> Result<&Pool> {
        self.pool.as_ref().ok_or_else(|| Error::corrupt(format!("{} is not open", self.name())))
    }

    fn disconnect(&mut self) {
        (self.volume, self.files, self.nested) = (None, None, None);
    }
}

/// A run between two kills.
struct Run {
    disks: Disks,
    host: Host,
    common: Shared,
    sides: Vec<Side>,
}

impl FullHosts {
    /// # Errors
    /// What was lost, or lied about.
    pub fn run(&self) -> Result<FullHostFigures, String> {
        let mut rng = Rng::new(self.seed);
        let shapes = Shape::all();
        let mut any =
            || Shape { logs: rng.below(3) as usize, ..shapes[rng.below(shapes.len() as u64) as usize] };
        let shapes = [any(), any()];
        let (disks, host) = (Disks::new(), Host::new(u64::MAX / 2));
        let mut count = 0;
        for (index, shape) in shapes.iter().enumerate() {
            for path in shape.paths(&Side::new(index, *shape).dir()) {
                disks.add_on(&host, path, DISK, Model::NVME);
                count += 1;
            }
        }
        let common = Shared::default();
        let mut fresh = true;
        loop {
            let (own, steps, is_fresh) = (common.clone(), self.steps, std::mem::take(&mut fresh));
            let sides = shapes.iter().enumerate().map(|(i, shape)| Side::new(i, *shape)).collect();
            let mut run = Run { disks: disks.clone(), host: host.clone(), common: common.clone(), sides };
            let ended = run_until_cut(&disks, rng.next_u64(), Config::default(), async move {
                let done = run.work(is_fresh, steps, count).await;
                lock(&own).error = done.err().map(|e| e.to_string());
            });
            let (error, steps) = {
                let mut common = lock(&common);
                (common.error.take(), common.steps)
            };
            if let Some(error) = error {
                return Err(format!("{self:?} {shapes:?}: after {steps} steps: {error}"));
            }
            if ended.is_some() {
                return Ok(lock(&common).figures);
            }
            if rng.below(3) == 0 {
                disks.power_cut(rng.next_u64());
            }
        }
    }
}

impl Run {
    async fn work(&mut self, fresh: bool, steps: u64, disks: u64) -> Result<()> {
        for index in 0..self.sides.len() {
            match fresh {
                true => self.create(index).await?,
                false => self.killed(index).await?,
            }
        }
        if fresh {
            let free = self.host.free();
            self.host.take(free - random(disks * ROOM));
        }
        while lock(&self.common).steps < steps {
            lock(&self.common).steps += 1;
            let index = random(2) as usize;
            self.step(index, disks).await.map_err(|e| e.at(NAMES[index]))?;
        }
        for (index, name) in NAMES.into_iter().enumerate() {
            self.finish(index).await.map_err(|e| e.at(name))?;
        }
        Ok(())
    }

    async fn create(&mut self, index: usize) -> Result<()> {
        let side = &mut self.sides[index];
        let (name, shape) = (side.name(), side.shape);
        let pool = create_named(name, shape.groups(&side.dir())?, shape.ashift, &[]).await?;
        let volume = Content::Volume { size: BLOCKS[0] * BLOCK, block_size: BLOCK };
        pool.create_dataset(&format!("{name}/v"), volume, Vec::new()).await?;
        for path in ["n", "n/deep"] {
            let files = Content::FileSystem(zpl::NewFileSystem::default());
            pool.create_dataset(&format!("{name}/{path}"), files, Vec::new()).await?;
        }
        for (property, value) in [("failmode", "continue"), ("autotrim", "on")] {
            if random(2) == 0 {
                pool.set_property(property, value).await?;
            }
        }
        side.pool = Some(pool);
        let nothing = Known { now: vec![0], after_a_kill: vec![0] };
        let blocks =
            [0, 1, 2].map(|object| vec![nothing.clone(); (BLOCKS[object] * PIECES[object]) as usize]);
        for (object, count) in [(1, BLOCKS[1]), (2, BLOCKS[2])] {
            let files = self.file_system(index, object).await?.ok_or_else(for_ever)?;
            let file = files.root().await?.create(b"f", &NewFile::new(FileKind::Regular, 0o644)).await?;
            file.write(0, &vec![0; (count * BLOCK) as usize]).await?;
            file.sync().await?;
            files.root().await?.sync().await?;
        }
        let ledger = Ledger { blocks, made: BTreeMap::new(), snapshots: Vec::new(), refused: 0 };
        lock(&self.common).ledgers.push(ledger);
        Ok(())
    }

    fn refused(&self, index: usize) -> u64 {
        let side = &self.sides[index];
        let paths = side.shape.paths(&side.dir()).into_iter();
        paths.filter_map(|path| self.disks.get(path)).map(|disk| disk.refused()).sum()
    }

    /// Whether the pool was refused room since it was cleared.
    fn is_hurt(&self, index: usize) -> bool {
        self.refused(index) > lock(&self.common).ledgers[index].refused
    }

    /// `None` for what was given up, or failed while it may.
    fn allow<T>(&self, index: usize, answer: Option<Result<T>>, what: &str) -> Result<Option<T>> {
        match answer {
            Some(Ok(value)) => Ok(Some(value)),
            Some(Err(e)) if !self.is_hurt(index) => Err(e.at(format!("{what} with room"))),
            None if !self.is_hurt(index) => Err(Error::corrupt(format!("{what} with room is not answered"))),
            _ => Ok(None),
        }
    }

    async fn step(&mut self, index: usize, disks: u64) -> Result<()> {
        let object = random(3) as usize;
        match random(64) {
            0..20 => self.write(index, object).await,
            20..30 => self.flush(index, object).await,
            30..40 => self.read(index, object).await,
            40..44 => {
                self.sides[index].disconnect();
                Ok(())
            }
            44..48 => self.make_file(index).await,
            48 => self.snapshot(index).await,
            49 => self.destroy_snapshot(index).await,
            50 | 51 => {
                world::sleep(Duration::from_secs(random(20))).await;
                Ok(())
            }
            52..56 => {
                let free = self.host.free();
                self.host.take(if random(3) == 0 { free } else { random(free + 1) });
                Ok(())
            }
            56..59 if self.is_hurt(index) => self.mend(index, disks).await,
            59 => {
                self.kill();
                std::future::pending().await
            }
            _ => Ok(()),
        }
    }

    fn kill(&self) {
        let mut common = lock(&self.common);
        common.figures.kills += 1;
        self.disks.cut_now();
    }

    /// After a kill: what was not flushed may be there or not; the pool is opened, with room or without.
    async fn killed(&mut self, index: usize) -> Result<()> {
        for known in lock(&self.common).ledgers[index].blocks.iter_mut().flatten() {
            known.now.clone_from(&known.after_a_kill);
        }
        let refused = self.refused(index);
        lock(&self.common).ledgers[index].refused = refused;
        if !self.import(index).await? {
            lock(&self.common).figures.without_room += 1;
            self.make_room(1 << 30);
            let refused = self.refused(index);
            lock(&self.common).ledgers[index].refused = refused;
            if !self.import(index).await? {
                return Err(Error::corrupt("an import with room was refused it"));
            }
        }
        if self.is_hurt(index) {
            lock(&self.common).figures.without_room += 1;
        }
        self.look_at_snapshots(index).await?;
        for (object, count) in BLOCKS.into_iter().enumerate() {
            for at in 0..count {
                self.read_block(index, object, at, true).await?;
            }
        }
        self.look_at_made(index).await
    }

    /// False when the import fails for want of room.
    async fn import(&mut self, index: usize) -> Result<bool> {
        let opened = timeout(EVER, import(&self.sides[index].dir())).await.ok_or_else(for_ever)?;
        match opened {
            Ok(pool) => self.sides[index].pool = Some(pool),
            Err(e) if self.is_hurt(index) && !e.to_string().contains("destroy") => return Ok(false),
            Err(e) => return Err(e.at("import")),
        }
        Ok(true)
    }

    /// The kill may have cut a snapshot short, or its destruction.
    async fn look_at_snapshots(&mut self, index: usize) -> Result<()> {
        let pool = self.sides[index].pool()?.clone();
        let known = std::mem::take(&mut lock(&self.common).ledgers[index].snapshots);
        for (name, _) in known {
            if pool.dsl().find(&name).await.is_ok() {
                lock(&self.common).ledgers[index].snapshots.push((name, true));
            }
        }
        Ok(())
    }

    async fn look_at_made(&mut self, index: usize) -> Result<()> {
        let made = lock(&self.common).ledgers[index].made.clone();
        let Some(files) = self.file_system(index, 1).await? else { return Ok(()) };
        for (name, (seed, is_owed)) in made {
            let found = timeout(PATIENCE, async {
                let file = files.root().await?.lookup(name.as_bytes()).await?;
                file.read(0, BLOCK as usize).await
            });
            let found = found.await;
            // That it is not there is never excused.
            let is_missing = matches!(&found, Some(Err(e)) if e.kind() == units::Kind::NotFound);
            match self.allow(index, found.filter(|_| !is_missing || is_owed), "a look at a file") {
                Ok(Some(bytes)) if is_owed && bytes[..] != content(seed)[..] => {
                    return Err(Error::corrupt(format!("{name} was synced, and holds something else")));
                }
                Ok(_) if is_missing && is_owed => {
                    return Err(Error::corrupt(format!("{name} was synced, and is not there")));
                }
                Err(e) if !is_missing || is_owed => return Err(e.at(name)),
                _ => {}
            }
            if is_missing {
                lock(&self.common).ledgers[index].made.remove(&name);
            }
        }
        Ok(())
    }

    async fn volume(&mut self, index: usize) -> Result<Option<Volume>> {
        if self.sides[index].volume.is_none() {
            let pool = self.sides[index].pool()?.clone();
            let name = format!("{}/v", NAMES[index]);
            let opened = timeout(PATIENCE, pool.open_volume(&name)).await;
            self.sides[index].volume = self.allow(index, opened, "opening a volume")?;
        }
        Ok(self.sides[index].volume.clone())
    }

    /// The root file system is object 1, the nested one 2.
    async fn file_system(&mut self, index: usize, object: usize) -> Result<Option<FileSystem>> {
        let side = &mut self.sides[index];
        let known = if object == 1 { &side.files } else { &side.nested };
        if let Some(known) = known {
            return Ok(Some(known.clone()));
        }
        let pool = side.pool()?.clone();
        let name = format!("{}{}", NAMES[index], if object == 1 { "" } else { "/n/deep" });
        let opened = timeout(PATIENCE, pool.open_file_system_for_writing(&name)).await;
        let opened = match lock(&self.common).ledgers.len() > index {
            true => self.allow(index, opened, "opening a file system")?,
            false => Some(opened.ok_or_else(for_ever)??),
        };
        let side = &mut self.sides[index];
        *(if object == 1 { &mut side.files } else { &mut side.nested }) = opened.clone();
        Ok(opened)
    }

    async fn file(&mut self, index: usize, object: usize) -> Result<Option<Node>> {
        let Some(files) = self.file_system(index, object).await? else { return Ok(None) };
        let found = timeout(PATIENCE, async { files.root().await?.lookup(b"f").await }).await;
        self.allow(index, found, "opening a file")
    }

    async fn write(&mut self, index: usize, object: usize) -> Result<()> {
        let count = BLOCKS[object];
        let (at, many) = (random(count), 1 + random(8));
        for at in at..(at + many).min(count) {
            let seed = self.next_seed();
            let data = content(seed);
            let written = if object == 0 {
                let Some(volume) = self.volume(index).await? else { return Ok(()) };
                self.known(index, object, at, |known| known.attempt(seed));
                timeout(PATIENCE, volume.write(at * BLOCK, Buf::copy_from(&data))).await
            } else {
                let Some(file) = self.file(index, object).await? else { return Ok(()) };
                self.known(index, object, at, |known| known.attempt(seed));
                timeout(PATIENCE, file.write(at * BLOCK, &data)).await
            };
            if self.allow(index, written, "a write")?.is_some() {
                self.known(index, object, at, |known| known.answered(seed));
            }
        }
        Ok(())
    }

    fn next_seed(&self) -> u64 {
        let mut common = lock(&self.common);
        common.last_seed += 1;
        common.last_seed
    }

    fn known(&self, index: usize, object: usize, at: u64, change: impl Fn(&mut Known)) {
        let pieces = (at * PIECES[object]) as usize..((at + 1) * PIECES[object]) as usize;
        lock(&self.common).ledgers[index].blocks[object][pieces].iter_mut().for_each(change);
    }

    async fn flush(&mut self, index: usize, object: usize) -> Result<()> {
        let flushed = if object == 0 {
            let Some(volume) = self.volume(index).await? else { return Ok(()) };
            timeout(PATIENCE, volume.flush()).await
        } else {
            let Some(file) = self.file(index, object).await? else { return Ok(()) };
            timeout(PATIENCE, file.sync()).await
        };
        if self.allow(index, flushed, "a flush")?.is_some() {
            let mut common = lock(&self.common);
            common.figures.flushes += 1;
            for known in &mut common.ledgers[index].blocks[object] {
                known.after_a_kill.clone_from(&known.now);
            }
        }
        Ok(())
    }

    async fn read(&mut self, index: usize, object: usize) -> Result<()> {
        if random(4) == 0 {
            self.sides[index].pool()?.pipeline().cache().clear();
        }
        for _ in 0..8 {
            self.read_block(index, object, random(BLOCKS[object]), false).await?;
        }
        Ok(())
    }

    /// `settles` when nothing is under way: then what is found is what it holds, also after the next kill.
    async fn read_block(&mut self, index: usize, object: usize, at: u64, settles: bool) -> Result<()> {
        let read = if object == 0 {
            let Some(volume) = self.volume(index).await? else { return Ok(()) };
            let read = timeout(PATIENCE, volume.read(at * BLOCK, BLOCK)).await;
            read.map(|read| read.map(|parts| parts.iter().flat_map(|part| part.iter().copied()).collect()))
        } else {
            let Some(file) = self.file(index, object).await? else { return Ok(()) };
            let read = timeout(PATIENCE, file.read(at * BLOCK, BLOCK as usize)).await;
            read.map(|read| read.map(|bytes| bytes.to_vec()))
        };
        let Some(bytes): Option<Vec<u8>> = self.allow(index, read, "a read")? else { return Ok(()) };
        let mut common = lock(&self.common);
        common.figures.reads += 1;
        let last = common.last_seed;
        let piece = (BLOCK / PIECES[object]) as usize;
        for (i, bytes) in bytes.chunks(piece).enumerate() {
            let known = &mut common.ledgers[index].blocks[object][(at * PIECES[object]) as usize + i];
            let holds = |seed: u64| content(seed)[i * piece..][..bytes.len()] == *bytes;
            match known.now.iter().copied().find(|&seed| holds(seed)) {
                Some(seed) if settles => *known = Known { now: vec![seed], after_a_kill: vec![seed] },
                Some(_) => {}
                None => {
                    let found = (0..=last).find(|&seed| holds(seed));
                    let why = format!(
                        "piece {i} of block {at} of object {object} is {found:?}, and should be {known:?}"
                    );
                    return Err(Error::corrupt(why));
                }
            }
        }
        Ok(())
    }

    async fn make_file(&mut self, index: usize) -> Result<()> {
        let Some(files) = self.file_system(index, 1).await? else { return Ok(()) };
        let seed = self.next_seed();
        let name = format!("made{seed}");
        let made = async {
            let file =
                files.root().await?.create(name.as_bytes(), &NewFile::new(FileKind::Regular, 0o644)).await?;
            file.write(0, &content(seed)).await?;
            file.sync().await
        };
        lock(&self.common).ledgers[index].made.insert(name.clone(), (seed, false));
        let done = timeout(PATIENCE, made).await;
        if self.allow(index, done, "making a file")?.is_some() {
            lock(&self.common).ledgers[index].made.insert(name, (seed, true));
        }
        Ok(())
    }

    async fn snapshot(&mut self, index: usize) -> Result<()> {
        let name = format!("{}/v@{}", NAMES[index], self.next_seed());
        let pool = self.sides[index].pool()?.clone();
        lock(&self.common).ledgers[index].snapshots.push((name.clone(), false));
        let done = timeout(EVER, self.mending(index, pool.snapshot(vec![name.clone()], Vec::new()))).await;
        if done.ok_or_else(for_ever)?? {
            let snapshots = &mut lock(&self.common).ledgers[index].snapshots;
            snapshots.iter_mut().filter(|(known, _)| *known == name).for_each(|(_, is_made)| *is_made = true);
        }
        Ok(())
    }

    async fn destroy_snapshot(&mut self, index: usize) -> Result<()> {
        let Some((name, is_made)) = lock(&self.common).ledgers[index].snapshots.pop() else { return Ok(()) };
        let pool = self.sides[index].pool()?.clone();
        let spec = DestroySpec { names: vec![name], ..DestroySpec::default() };
        let destroyed = async {
            match pool.destroy_datasets(spec).await {
                Err(e) if e.kind() == units::Kind::NotFound && !is_made => Ok(()),
                done => done.map(drop),
            }
        };
        timeout(EVER, self.mending(index, destroyed)).await.ok_or_else(for_ever)?.map(drop)
    }

    /// Waits for a change; when it takes long because there is no room, some is made. False for one that failed while it
    /// may.
    async fn mending(&self, index: usize, change: impl Future<Output = Result<()>>) -> Result<bool> {
        let mut change = Box::pin(change);
        for _ in 0..20 {
            match timeout(PATIENCE, &mut change).await {
                Some(Ok(())) => return Ok(true),
                Some(Err(e)) if !self.is_hurt(index) => return Err(e.at("a change with room")),
                Some(Err(_)) => return Ok(false),
                None if !self.is_hurt(index) => {
                    return Err(Error::corrupt("a change with room does not end"));
                }
                None => {
                    self.make_room(1 << 30);
                    self.clear(index).await?;
                }
            }
        }
        Err(for_ever())
    }

    fn make_room(&self, bytes: u64) {
        let free = self.host.free();
        self.host.give(bytes.saturating_sub(free));
    }

    /// Clears the pool, which may be refused room once more.
    async fn clear(&self, index: usize) -> Result<bool> {
        let pool = self.sides[index].pool()?.clone();
        let refused = self.refused(index);
        let suspended = pool.suspended().is_some();
        let cleared = timeout(EVER, pool.clear(None)).await.ok_or_else(for_ever)?;
        let mut common = lock(&self.common);
        common.figures.suspended += u64::from(suspended);
        common.figures.refused += refused - common.ledgers[index].refused;
        common.ledgers[index].refused = refused;
        drop(common);
        match cleared {
            Ok(()) => Ok(!self.is_hurt(index)),
            Err(e) if !self.is_hurt(index) => Err(e.at("clear with room")),
            Err(_) => Ok(false),
        }
    }

    /// Other files go, enough of them or too few, and the pool is cleared until it goes on.
    async fn mend(&self, index: usize, disks: u64) -> Result<()> {
        let pool = self.sides[index].pool()?.clone();
        for tries in 0..20 {
            self.make_room(if tries < 3 { random(disks * ROOM) } else { 1 << 30 });
            if self.clear(index).await? {
                let synced = timeout(EVER, pool.sync()).await.ok_or_else(for_ever)?;
                if self.allow(index, Some(synced), "a sync")?.is_some() && !self.is_hurt(index) {
                    let free = self.host.free();
                    self.host.take(free.saturating_sub(random(disks * ROOM)));
                    return self.resilvered(&pool, index).await;
                }
            }
        }
        Err(Error::corrupt("however much room there is, it does not go on"))
    }

    /// What was refused by one device is brought to it.
    async fn resilvered(&self, pool: &Pool, index: usize) -> Result<()> {
        for _ in 0..100 {
            if self.is_hurt(index) || pool.tree().leaves().iter().all(|leaf| !leaf.missing().is_any()) {
                break;
            }
            timeout(EVER, pool.scrub()).await.ok_or_else(for_ever)?.ok();
            world::sleep(Duration::from_secs(10)).await;
            let synced = timeout(EVER, pool.sync()).await.ok_or_else(for_ever)?;
            self.allow(index, Some(synced), "a sync")?;
        }
        Ok(())
    }

    async fn finish(&mut self, index: usize) -> Result<()> {
        self.make_room(1 << 30);
        let pool = self.sides[index].pool()?.clone();
        self.clear(index).await?;
        timeout(EVER, pool.sync()).await.ok_or_else(for_ever)??;
        self.resilvered(&pool, index).await?;
        drop(pool);
        for is_last in [false, true] {
            for object in 0..3 {
                self.flush(index, object).await?;
            }
            self.check_all(index).await?;
            self.sides[index].disconnect();
            let pool = self.sides[index].pool.take().ok_or_else(for_ever)?;
            pool.export().await?;
            drop(pool);
            if !is_last && !self.import(index).await? {
                return Err(for_ever());
            }
        }
        Ok(())
    }

    async fn check_all(&mut self, index: usize) -> Result<()> {
        self.sides[index].disconnect();
        self.sides[index].pool()?.pipeline().cache().clear();
        for (object, count) in BLOCKS.into_iter().enumerate() {
            for at in 0..count {
                self.read_block(index, object, at, false).await?;
            }
        }
        self.look_at_made(index).await?;
        let report = self.sides[index].pool()?.verify(|_| ()).await?;
        match report.is_sound() {
            true => Ok(()),
            false => Err(Error::corrupt(format!("damage: {:?}", report.damage))),
        }
    }
}

fn for_ever() -> Error {
    Error::corrupt("something is waited for, for ever")
}
