//! Pools whose devices come and go, under a client that never notices.
//!
//! ```text
//!   session  create or import ─▶ what does each block hold? ─▶ steps ─▶ export, close, ✂ power, ✂ kill ─▶ next session
//!   steps    write  flush  read  snapshot  scrub  pause  stop
//!            attach  detach  replace  offline  fault  online  clear  spare in, spare out  trim  initialize
//!            grow, reguid, split off a side of every mirror and look at it, another name for a session (`splits:` and on)
//!            attach and replace in the order of the disk (`rebuilds:` alone)
//!            hurt one device that the pool can do without: unplugged, no reads, no writes, no flushes, rot, lost writes
//!            mend it, and clear
//!   end      mend, online, clear ─▶ all whole ─▶ a scrub finds nothing ─▶ every block, every structure ─▶ export ─▶ zdb
//! ```
//!
//! Only one device is hurt at a time, and only one without which nothing is lost: so every request of the client succeeds
//! at any time, whatever is done to the devices. A command may be refused; what it answers then is no failure of the pool.
//! While a device is hurt no other one is taken away: the pool may not know yet that it cannot be relied upon. What a device
//! has lost while it lied is looked for by a scrub before anything else is done to the devices. No device lies while it
//! shares its place with one that is let go at the end of a resilver, in a replacement or with a spare.
//!
//! After a cut a block holds what was flushed last or something written since; it is read then, and holds that from there
//! on.
//!
//! Not here: pools that lose more than they can bear ([`crate::suspended`]).

mod shapes;
mod steps;

use crate::bench::{POOL, create_pool, import};
use crate::layout::Shape;
use crate::model::pattern;
use crate::power::{Zdb, dump};
use pool::{Content, Pool};
use sim::{Config, Disks, Model, Rng, run_until_cut};
use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use units::{Error, Result};
use vdev::{Layout, Spec};
use world::timeout;
use zvol::Volume;

const DIR: &str = "/sim";
const DISK: u64 = 96 << 20;
const BLOCK: u64 = 16 << 10;
const BLOCKS: u64 = 128;
const VOLUME: &str = "tank/v";
/// Disks besides those that the pool begins with.
const MORE: usize = 4;
/// Nothing takes so long unless it waits for ever.
const EVER: Duration = Duration::from_secs(4 * 3600);
/// So many flushes at most are between the start of a session and its cut.
const FLUSHES_MAX: u64 = 400;
/// Far enough away never to come.
const NEVER: u64 = 1 << 60;

/// What is done in a case: each does what those before it do, and more. So a seed means what it did before there was more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceDeeds {
    #[default]
    Devices,
    /// Free space is trimmed and initialized meanwhile.
    Sweeps,
    /// Vdevs grow, and the pool is split, called otherwise and given other guids.
    Splits,
    /// Devices that join mirrors are copied to in the order of the disk.
    Rebuilds,
}

impl DeviceDeeds {
    const ALL: [DeviceDeeds; 4] =
        [DeviceDeeds::Devices, DeviceDeeds::Sweeps, DeviceDeeds::Splits, DeviceDeeds::Rebuilds];

    /// What the name of a case begins with.
    pub fn word(self) -> &'static str {
        match self {
            DeviceDeeds::Devices => "devices",
            DeviceDeeds::Sweeps => "sweeps",
            DeviceDeeds::Splits => "splits",
            DeviceDeeds::Rebuilds => "rebuilds",
        }
    }
}

/// One run: everything follows from the seed.
#[derive(Clone, Copy, Debug)]
pub struct DeviceCase {
    pub seed: u64,
    pub steps: u64,
    pub deeds: DeviceDeeds,
}

impl fmt::Display for DeviceCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.deeds.word(), self.seed, self.steps)
    }
}

impl FromStr for DeviceCase {
    type Err = String;

    fn from_str(case: &str) -> std::result::Result<DeviceCase, String> {
        let numbers = || {
            let (kind, numbers) = case.split_once(':')?;
            let (seed, steps) = numbers.split_once(':')?;
            let deeds = DeviceDeeds::ALL.into_iter().find(|deeds| deeds.word() == kind)?;
            Some(DeviceCase { seed: seed.parse().ok()?, steps: steps.parse().ok()?, deeds })
        };
        numbers().ok_or_else(|| format!("'{case}' is not devices:, sweeps:, splits: or rebuilds:SEED:STEPS"))
    }
}

/// What a run has done.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceFigures {
    /// Commands that were carried out, and that were refused.
    pub changes: u64,
    pub refused: u64,
    pub hurt: u64,
    pub cuts: u64,
    pub kills: u64,
    /// Exports and closings.
    pub left: u64,
    pub reads: u64,
}

impl AddAssign for DeviceFigures {
    fn add_assign(&mut self, other: DeviceFigures) {
        self.changes += other.changes;
        self.refused += other.refused;
        self.hurt += other.hurt;
        self.cuts += other.cuts;
        self.kills += other.kills;
        self.left += other.left;
        self.reads += other.reads;
    }
}

impl fmt::Display for DeviceFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeviceFigures { changes, refused, hurt, cuts, kills, left, reads } = self;
        write!(
            f,
            "{changes} changes of devices, {refused} refused, {hurt} devices hurt, {cuts} power cuts, "
        )?;
        write!(f, "{kills} kills, {left} exports, {reads} reads")
    }
}

/// What one block may hold, as the seeds of its content; 0 is nothing.
#[derive(Clone, Debug, Default)]
struct Block {
    now: u64,
    /// What was flushed last, and all that came later.
    since_flush: Vec<u64>,
}

/// How the device that is hurt behaves.
#[derive(Clone, Debug)]
struct Hurt {
    path: String,
    /// What it has cannot be believed, and nothing tells so.
    lies: bool,
}

/// What outlives the world whose power is cut.
#[derive(Debug, Default)]
struct Known {
    blocks: Vec<Block>,
    last_seed: u64,
    steps_left: u64,
    hurt: Option<Hurt>,
    /// A device has lied: a scrub is to find what it has lost.
    to_scrub: bool,
    figures: DeviceFigures,
    error: Option<Error>,
    is_done: bool,
    is_loud: bool,
}

type Shared = Arc<Mutex<Known>>;

fn lock(known: &Shared) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

fn content(seed: u64) -> Vec<u8> {
    if seed == 0 { vec![0; BLOCK as usize] } else { pattern(seed, BLOCK) }
}

impl DeviceCase {
    pub fn shape(&self) -> Shape {
        let layouts = [
            (Layout::Mirror, 2),
            (Layout::Raidz { parity: 1 }, 3),
            (Layout::Stripe, 1),
            (Layout::Mirror, 3),
            (Layout::Raidz { parity: 2 }, 4),
        ];
        let (layout, devices) = layouts[(self.seed % 5) as usize];
        Shape { layout, devices, ashift: if self.seed.is_multiple_of(2) { 12 } else { 9 }, logs: 0 }
    }

    /// All there are, those that the pool begins with first.
    pub fn paths(&self) -> Vec<String> {
        (0..self.shape().devices + MORE).map(|i| format!("{DIR}/disk{i}.img")).collect()
    }

    /// As [`DeviceCase::run`]; then the judge looks at the devices.
    pub fn run_and_judge(
        &self,
        is_loud: bool,
        zdb: Option<&Zdb>,
    ) -> std::result::Result<DeviceFigures, String> {
        let (figures, disks) = self.run(is_loud)?;
        if let Some(zdb) = zdb {
            dump(&disks, &self.paths(), &zdb.scratch).map_err(|e| e.to_string())?;
            (zdb.judge)(&zdb.scratch, POOL)?;
        }
        Ok(figures)
    }

    /// Does it all. An error says what went wrong and where.
    pub fn run(&self, is_loud: bool) -> std::result::Result<(DeviceFigures, Disks), String> {
        let disks = Disks::new();
        for path in self.paths() {
            disks.add(path, DISK, Model::NVME);
        }
        let mut rng = Rng::new(self.seed);
        let blocks = vec![Block { now: 0, since_flush: vec![0] }; BLOCKS as usize];
        let known = Known { blocks, steps_left: self.steps, is_loud, ..Known::default() };
        let known: Shared = Arc::new(Mutex::new(known));
        let mut is_fresh = true;
        loop {
            let (is_kill, is_cut) = (rng.below(3) == 0, !is_fresh && rng.below(4) > 0);
            disks.cut_at_flush(if is_cut { 1 + rng.below(FLUSHES_MAX) } else { NEVER });
            let session = Session {
                case: *self,
                disks: disks.clone(),
                known: known.clone(),
                rng: Rng::new(rng.next_u64()),
                is_fresh,
            };
            let ended = run_until_cut(&disks, rng.next_u64(), Config::default(), session.run());
            is_fresh = false;
            let mut known = lock(&known);
            if let Some(e) = known.error.take() {
                let left = known.steps_left;
                return Err(format!("{self} {:?}, {left} steps before the end: {e}", self.shape()));
            }
            if known.is_done {
                return Ok((known.figures, disks.clone()));
            }
            match (&ended, is_kill) {
                (Some(()), _) => known.figures.left += 1,
                // What is on its way arrives; no cache is lost.
                (None, true) => known.figures.kills += 1,
                (None, false) => {
                    disks.power_cut(rng.next_u64());
                    known.figures.cuts += 1;
                }
            }
            if known.is_loud && ended.is_none() {
                println!("{}", if is_kill { "killed" } else { "the power is cut" });
            }
        }
    }
}

/// One opening of the pool.
struct Session {
    case: DeviceCase,
    disks: Disks,
    known: Shared,
    rng: Rng,
    is_fresh: bool,
}

impl Session {
    async fn run(self) {
        let known = self.known.clone();
        if let Err(e) = self.work().await {
            lock(&known).error = Some(e);
        }
    }

    async fn work(self) -> Result<()> {
        let Session { case, disks, known, mut rng, is_fresh } = self;
        let pool = match is_fresh {
            true => {
                let pool = create_pool(case.shape().groups(DIR)?, case.shape().ashift).await?;
                let content = Content::Volume { size: BLOCKS * BLOCK, block_size: BLOCK };
                pool.create_dataset(VOLUME, content, Vec::new()).await?;
                pool.sync().await?;
                pool
            }
            false if case.deeds < DeviceDeeds::Splits => {
                timeout(EVER, import(DIR)).await.ok_or_else(for_ever)??
            }
            false => timeout(EVER, shapes::import(rng.below(4) == 0)).await.ok_or_else(for_ever)??,
        };
        let volume_name = format!("{}{}", pool.name(), VOLUME.trim_start_matches(POOL));
        let volume = pool.open_volume(&volume_name).await;
        let volume = volume
            .map_err(|e| e.at(format!("{:?}, logs that wait: {:?}", pool.problems(), pool.waiting_logs())))?;
        let steps = 1 + rng.below(120);
        let mut run = Run { case, disks, known, pool, volume, volume_name, rng };
        run.settle().await?;
        for _ in 0..steps {
            if lock(&run.known).steps_left == 0 {
                return run.finish().await;
            }
            lock(&run.known).steps_left -= 1;
            run.step().await?;
        }
        run.leave().await
    }
}

struct Run {
    case: DeviceCase,
    disks: Disks,
    known: Shared,
    pool: Pool,
    volume: Volume,
    /// The pool may be called otherwise in this session.
    volume_name: String,
    rng: Rng,
}

impl Run {
    fn say(&self, what: impl FnOnce() -> String) {
        if lock(&self.known).is_loud {
            println!("{}", what());
        }
    }

    /// What each block holds after a cut: one of those it may, and this from now on.
    async fn settle(&mut self) -> Result<()> {
        for at in 0..BLOCKS {
            let bytes = self.read(at).await?;
            let mut known = lock(&self.known);
            let block = &mut known.blocks[at as usize];
            let Some(now) = block.since_flush.iter().copied().find(|&seed| content(seed) == bytes) else {
                return Err(Error::corrupt(format!("after a cut block {at} is none of {block:?}")));
            };
            block.now = now;
        }
        // What was killed may have left what another cut can still take back.
        self.flush().await
    }

    async fn read(&self, at: u64) -> Result<Vec<u8>> {
        let parts = timeout(EVER, self.volume.read(at * BLOCK, BLOCK)).await.ok_or_else(for_ever)?;
        let parts = parts.map_err(|e| e.at(format!("read of block {at}; {}", self.shape())))?;
        Ok(parts.iter().flat_map(|part| part.iter().copied()).collect())
    }

    async fn compare(&self, at: u64) -> Result<()> {
        let (bytes, now) = (self.read(at).await?, lock(&self.known).blocks[at as usize].now);
        lock(&self.known).figures.reads += 1;
        if content(now) == bytes {
            return Ok(());
        }
        let last = lock(&self.known).last_seed;
        let found = (0..=last).find(|&seed| content(seed) == bytes);
        Err(Error::corrupt(format!("block {at} is {found:?}, and should be {now}; {}", self.shape())))
    }

    /// The tree in a line, for messages.
    fn shape(&self) -> String {
        fn of(spec: &Spec, tree: &vdev::Tree) -> String {
            if !spec.is_leaf() {
                let children: Vec<String> = spec.children.iter().map(|child| of(child, tree)).collect();
                return format!("{}({})", spec.vdev_type, children.join(" "));
            }
            let path = spec.path.as_deref().unwrap_or("?");
            let name = path.trim_start_matches(DIR).trim_matches('/');
            match tree.find_leaf(spec.guid) {
                Some((_, leaf)) if leaf.missing().is_any() => {
                    format!("{name}[{}, behind]", leaf.health().word())
                }
                Some((_, leaf)) => format!("{name}[{}]", leaf.health().word()),
                None => format!("{name}[?]"),
            }
        }
        let tree = self.pool.tree();
        tree.spec().children.iter().map(|top| of(top, tree)).collect::<Vec<_>>().join(" ")
    }

    /// The pool is given up in one of the ways there are.
    async fn leave(&mut self) -> Result<()> {
        let export = self.rng.below(2) == 0;
        self.say(|| if export { "export".into() } else { "close".into() });
        let leaving = async {
            match export {
                true => self.pool.export().await,
                false => self.pool.close().await,
            }
        };
        timeout(EVER, leaving).await.ok_or_else(for_ever)?.map_err(|e| e.at("leave"))?;
        self.flushed();
        Ok(())
    }

    fn flushed(&self) {
        for block in &mut lock(&self.known).blocks {
            block.since_flush = vec![block.now];
        }
    }

    async fn finish(&mut self) -> Result<()> {
        self.disks.cut_at_flush(NEVER);
        self.say(|| format!("finish: {}", self.shape()));
        self.mend().await?;
        for guid in self.pool.tree().leaves().iter().map(|leaf| leaf.guid()).collect::<Vec<_>>() {
            // It may have left meanwhile.
            let _ = self.pool.online(guid).await;
        }
        timeout(EVER, self.pool.clear(None)).await.ok_or_else(for_ever)?.map_err(|e| e.at("clear"))?;
        self.made_whole().await?;
        let scan = self.scrub_all().await?;
        if scan.repaired > 0 || scan.errors > 0 {
            return Err(Error::corrupt(format!(
                "a scrub repaired {} bytes of {} after all was whole",
                scan.repaired,
                self.shape()
            )));
        }
        self.pool.pipeline().cache().clear();
        for at in 0..BLOCKS {
            self.compare(at).await?;
        }
        let report = self.pool.verify(|_| ()).await?;
        if !report.is_sound() || report.repairable > 0 {
            return Err(Error::corrupt(format!(
                "{} places are bad, damage: {:?}",
                report.repairable, report.damage
            )));
        }
        timeout(EVER, self.pool.export()).await.ok_or_else(for_ever)??;
        if self.case.deeds >= DeviceDeeds::Splits {
            self.wipe_what_is_unused();
        }
        lock(&self.known).is_done = true;
        Ok(())
    }
}

fn for_ever() -> Error {
    Error::corrupt(format!("{POOL} is waited for, for ever"))
}
