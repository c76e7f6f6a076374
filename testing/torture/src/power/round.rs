//! One run of a workload, and pictures of the disks at the moments at which the power may go.
//!
//! A picture is taken when a flush, or a write, is about to complete: whatever is on its way or not yet flushed then may
//! be lost, and the history says how far the clients' knowledge went. Pages are shared, so a picture costs little, and
//! one run serves all its cuts.

use super::check::Found;
use super::client::{Client, Faith, Shared, lock};
use super::history::{History, Snapshot};
use super::name::Case;
use super::setup::{Logbias, Place, Setup};
use super::workload::{Act, BLOCKS, Workload, act};
use crate::bench::{POOL, create_pool, import, setting};
use crate::model::pattern;
use pool::{Content, Pool};
use sim::{Config, Disks, Model, Moment, Rng, run_until_cut, run_with};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use units::{Error, Result};
use world::Buf;

pub const DIR: &str = "/sim";
const DISK: u64 = 96 << 20;
const LOG: u64 = 64 << 20;
/// Longer than a txg stays open by itself.
pub const TXG_TIMEOUT: Duration = Duration::from_secs(7);

/// The disks at one moment.
#[derive(Debug)]
pub struct Picture {
    /// `f12`: when the 12th flush was about to complete; `w12`: the 12th write; `end`.
    pub name: String,
    pub disks: Disks,
    /// The history's present.
    pub now: u64,
}

/// Which moments are kept: one in so many, chosen by a seed; 0 keeps none.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    pub flush_every: u64,
    pub write_every: u64,
    pub seed: u64,
}

impl Keep {
    fn wants(&self, moment: Moment, number: u64) -> bool {
        let every = match moment {
            Moment::Flush => self.flush_every,
            Moment::Write => self.write_every,
        };
        every > 0 && Rng::new(self.seed ^ number << 8).below(every) == 0
    }
}

/// Runs `work` and takes pictures meanwhile, and one at the end. `None`: it did not end before the power was cut.
pub fn photograph<T: Send + 'static>(
    disks: &Disks,
    seed: u64,
    history: &Shared,
    keep: Keep,
    work: impl Future<Output = T> + Send + 'static,
) -> (Option<T>, Vec<Picture>) {
    let pictures = Arc::new(Mutex::new(Vec::new()));
    let (taken, camera, history_seen) = (pictures.clone(), disks.clone(), history.clone());
    disks.watch(move |moment, number| {
        if keep.wants(moment, number) {
            let letter = if moment == Moment::Flush { 'f' } else { 'w' };
            let name = format!("{letter}{number}");
            let now = lock(&history_seen).now();
            taken.lock().expect("one thread").push(Picture { name, disks: camera.fork(), now });
        }
    });
    let outcome = run_until_cut(disks, seed, Config::default(), work);
    disks.unwatch();
    let mut pictures = std::mem::take(&mut *pictures.lock().expect("one thread"));
    let now = lock(history).now();
    pictures.push(Picture { name: "end".into(), disks: disks.fork(), now });
    (outcome, pictures)
}

/// The names of the volumes, and the sizes of their blocks. The clients work with the first two; a clone's origin is
/// a third.
fn volumes(setup: &Setup) -> Vec<(String, u64)> {
    let other = match setup.block >> 10 {
        4 => 64 << 10,
        64 => 16 << 10,
        _ => 4 << 10,
    };
    let above = match setup.place {
        Place::Child | Place::Root => POOL,
        Place::Nested | Place::Elsewhere => NESTED,
        Place::Clone => FILES,
    };
    let mut volumes = vec![(format!("{above}/v"), setup.block), (format!("{above}/w"), other)];
    if setup.place == Place::Clone {
        volumes.push((ORIGIN.into(), setup.block));
    }
    volumes
}

/// File systems for volumes to be in.
const FILES: &str = "tank/a";
const NESTED: &str = "tank/a/b";
/// The volume that `v` is a clone of, and the snapshot in between.
const ORIGIN: &str = "tank/o";
const SNAPSHOT: &str = "s";

/// The disks of a setup, with nothing on them.
pub fn new_disks(setup: &Setup) -> Disks {
    let disks = Disks::new();
    for path in setup.shape.paths(DIR) {
        let size = if path.contains("log") { LOG } else { DISK };
        disks.add(path, size, Model::NVME);
    }
    disks
}

/// A pool with its volumes, half full, on disk; and what they hold.
pub fn base(setup: &Setup) -> Result<(Disks, History)> {
    let disks = new_disks(setup);
    let own = *setup;
    run_with(&disks, 1, Config::default(), make(own))?;
    let mut history = History::default();
    for (i, (name, block)) in volumes(setup).into_iter().enumerate() {
        // A clone is what its origin was.
        let mut bytes = first_bytes(if name == ORIGIN { 0 } else { i as u64 }, block);
        bytes.resize((BLOCKS * block) as usize, 0);
        history.add_volume(&name, block, bytes.clone());
        if name == ORIGIN
            && let Some(track) = history.volumes.get_mut(&name)
        {
            track.snapshots.insert(SNAPSHOT.into(), Snapshot::Old(Found { block, bytes }));
        }
    }
    Ok((disks, history))
}

fn first_bytes(volume: u64, block: u64) -> Vec<u8> {
    pattern(3 * (volume + 1), BLOCKS / 2 * block)
}

async fn make(setup: Setup) -> Result<()> {
    let pool = create_pool(setup.shape.groups(DIR)?, setup.shape.ashift).await?;
    let bias = match setup.logbias {
        Logbias::Latency => setting("logbias", "latency")?,
        Logbias::Throughput => setting("logbias", "throughput")?,
    };
    for above in [FILES, NESTED] {
        pool.create_dataset(above, Content::FileSystem(zpl::NewFileSystem::default()), Vec::new()).await?;
    }
    // The origin before its clone.
    for (i, (name, block)) in volumes(&setup).into_iter().enumerate().rev() {
        let props = vec![bias.clone(), setting("sync", setup.sync_word())?];
        if setup.place == Place::Clone && i == 0 {
            let snapshot = format!("{ORIGIN}@{SNAPSHOT}");
            pool.snapshot(vec![snapshot.clone()], Vec::new()).await?;
            pool.clone_snapshot(&snapshot, &name, props).await?;
            continue;
        }
        let content = Content::Volume { size: BLOCKS * block, block_size: block };
        pool.create_dataset(&name, content, props).await?;
        let volume = pool.open_volume(&name).await?;
        let first = first_bytes(if name == ORIGIN { 0 } else { i as u64 }, block);
        volume.write_durable(0, Buf::copy_from(&first)).await?;
        if name == ORIGIN {
            // There is a log in the snapshot.
            volume.write_durable(0, Buf::copy_from(&first)).await?;
        }
    }
    pool.sync().await?;
    pool.close().await
}

/// Imports the pool and does the work; ends when the last of it is on disk.
pub async fn work(case: Case, seed: u64, history: Shared, faith: Faith) -> Result<()> {
    let pool = import(DIR).await?;
    let [v, w] = [0, 1].map(|i| volumes(&case.setup)[i].0.clone());
    match case.workload {
        Workload::Word(word) => {
            let client = client(&pool, &v, &history, faith).await?;
            for letter in word.chars() {
                let (size, block) = client.geometry();
                let act =
                    act(letter, block, size).ok_or_else(|| Error::invalid(format!("letter '{letter}'")))?;
                client.perform(act).await?;
            }
        }
        Workload::Random(_) => {
            let mut rng = Rng::new(seed);
            let steps = 10 + rng.below(60);
            let clients = 1 + rng.below(7);
            let opened =
                [client(&pool, &v, &history, faith).await?, client(&pool, &w, &history, faith).await?];
            let mut busy = Vec::new();
            for i in 0..clients {
                let client = opened[usize::from(i % 3 == 2)].clone();
                busy.push(world::spawn(keep_busy(client, rng.next_u64(), steps)));
            }
            for task in busy {
                task.await?;
            }
        }
    }
    world::sleep(TXG_TIMEOUT).await;
    match pool.complaints().as_slice() {
        [] => Ok(()),
        problems => Err(Error::corrupt(format!("the pool complains: {problems:?}"))),
    }
}

async fn client(pool: &Pool, volume: &str, history: &Shared, faith: Faith) -> Result<Client> {
    let volume = pool.open_volume(volume).await?;
    Ok(Client { pool: pool.clone(), volume, history: history.clone(), faith })
}

async fn keep_busy(client: Client, seed: u64, steps: u64) -> Result<()> {
    let mut rng = Rng::new(seed);
    for _ in 0..steps {
        let (size, block) = client.geometry();
        let drawn: Act = Act::draw(&mut rng, block, size);
        client.perform(drawn).await?;
        if rng.below(3) == 0 {
            world::sleep(Duration::from_micros(rng.below(3000))).await;
        }
    }
    Ok(())
}
