//! Pools that are nearly full, and stay in use.
//!
//! ```text
//!   until it is full:  write ─▶ NoSpace          then, at random: overwrite, trim, snapshot, clone, destroy,
//!                                                quotas and reservations, files that come and go
//! ```
//!
//! A model says what each block holds, and what must be: what frees is never refused; what takes space is admitted
//! while more is available than it can take at worst, and refused when nothing is. No sync fails.

use super::{cache, host, noise, verify};
use crate::{Content, CreateOptions, Pool};
use dsl::DestroySpec;
use dsl::props::{PropName, Types, Value, When, parse_setting};
use dsl::thick::{ParityGroup, reservation_for};
use metaslab::{Class, Request};
use ondisk::Dva;
use sim::{Disks, Model as Disk, Rng};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use units::{Kind, Psize, Result};
use vdev::{Bias, Group, Layout, NewLeaf};
use world::Buf;
use zpl::{FileKind, NewFile};
use zvol::Volume;

/// What a pool is made of.
#[derive(Clone, Copy, Debug)]
struct Shape {
    layout: Layout,
    devices: usize,
    ashift: u32,
    has_log: bool,
    size: u64,
}

const PLAIN: Shape = Shape { layout: Layout::Stripe, devices: 1, ashift: 12, has_log: false, size: 96 << 20 };

impl Shape {
    fn disks(&self) -> Disks {
        let disks = Disks::new();
        for i in 0..self.devices + usize::from(self.has_log) {
            disks.add(format!("/sim/disk{i}"), self.size, Disk::NVME);
        }
        disks
    }

    async fn create(&self) -> Pool {
        let leaf = |i| NewLeaf::look_at(Path::new(&format!("/sim/disk{i}"))).unwrap();
        let group = |layout, bias, leaves| Group { layout, bias, leaves };
        let mut groups = vec![group(self.layout, Bias::Normal, (0..self.devices).map(leaf).collect())];
        if self.has_log {
            groups.push(group(Layout::Stripe, Bias::Log, vec![leaf(self.devices)]));
        }
        let features = ondisk::feature::compatibility_set(ondisk::feature::DEFAULT_COMPATIBILITY).unwrap();
        let options = CreateOptions {
            name: "tank".into(),
            groups,
            ashift: self.ashift,
            features: features.into_iter().collect(),
            root_props: Vec::new(),
            root: Default::default(),
            pool_props: Vec::new(),
            compatibility: None,
            comment: None,
            host: host(),
            cache: cache(),
            hub: Default::default(),
            tunables: Default::default(),
        };
        crate::create(options).await.unwrap()
    }

    /// What a volume of this size must reserve to be thick.
    fn reservation(&self, size: u64, block: u64, copies: u64) -> u64 {
        let group = match self.layout {
            Layout::Raidz { parity } => vec![ParityGroup {
                width: self.devices as u64,
                parity,
                ashift: self.ashift,
                whole_rows: false,
            }],
            _ => Vec::new(),
        };
        reservation_for(size, block, copies, &group)
    }
}

async fn open() -> Pool {
    super::reshape::open_all(false).await
}

fn setting(name: &str, value: &str, types: Types) -> (PropName, Value) {
    parse_setting(name, value, types, When::Later, &Default::default()).unwrap()
}

async fn available(pool: &Pool, name: &str) -> u64 {
    let found = pool.dsl().find(name).await.unwrap();
    pool.dsl().available(found.dir_id, &found.phys).await.unwrap()
}

/// Takes all free space of the pool, in pieces of one sector, and gives every other one back.
async fn cut_free_space_in_pieces(pool: &Pool) -> Vec<Dva> {
    const KEPT: u64 = 24 << 20;
    let taken: Arc<Mutex<Vec<Dva>>> = Arc::default();
    let own = taken.clone();
    pool.change("take", |pool, tx| async move {
        let space = pool.space();
        let free = space.usage(Class::Normal).free().saturating_sub(KEPT);
        for _ in 0..free / 4096 {
            let dvas = space.allocate(&Request::new(Class::Normal, Psize(4096), 1, tx.txg())).await?;
            own.lock().unwrap().push(dvas[0]);
        }
        Ok(())
    })
    .await
    .unwrap();
    let mut taken = std::mem::take(&mut *taken.lock().unwrap());
    taken.sort_by_key(|dva| dva.offset);
    let (kept, freed): (Vec<_>, Vec<_>) = taken.into_iter().enumerate().partition(|(i, _)| i % 2 == 0);
    let freed: Vec<Dva> = freed.into_iter().map(|(_, dva)| dva).collect();
    give_back(pool, freed).await;
    let mut kept: Vec<Dva> = kept.into_iter().map(|(_, dva)| dva).collect();
    // What was left whole is taken too.
    let whole: Arc<Mutex<Vec<Dva>>> = Arc::default();
    let own = whole.clone();
    pool.change("take", |pool, tx| async move {
        let space = pool.space();
        while let Ok(dvas) = space.allocate(&Request::new(Class::Normal, Psize(8192), 1, tx.txg())).await {
            own.lock().unwrap().push(dvas[0]);
        }
        Ok(())
    })
    .await
    .unwrap();
    kept.append(&mut whole.lock().unwrap());
    kept
}

async fn give_back(pool: &Pool, places: Vec<Dva>) {
    pool.change("give back", |pool, tx| async move {
        places.iter().try_for_each(|dva| pool.space().free(dva, tx.txg()))
    })
    .await
    .unwrap();
    settle(pool).await;
}

/// Lets what was freed become free.
async fn settle(pool: &Pool) {
    for _ in 0..4 {
        pool.change("touch", |pool, tx| async move { pool.0.touch(&tx).await }).await.unwrap();
    }
}

/// A new sparse volume that takes all that is written to it.
async fn uncompressed(pool: &Pool, name: &str, size: u64, block_size: u64) -> Volume {
    let props = vec![setting("compression", "off", Types::VOLUME)];
    pool.create_dataset(name, Content::Volume { size, block_size }, props).await.unwrap();
    pool.open_volume(name).await.unwrap()
}

async fn bytes_of(volume: &Volume) -> Vec<u8> {
    let parts = volume.read(0, 2 << 20).await.unwrap();
    parts.iter().flat_map(|part| part.iter().copied()).collect()
}

/// A block of the MOS in pieces took other pieces in each pass, which changed the space maps, which are in the MOS: the
/// sync went on for a hundred passes, filled the pool with what it wrote, and the pool was given up.
#[test]
fn a_pool_whose_free_space_is_in_single_sectors_comes_to_rest_in_every_txg() {
    let disks = PLAIN.disks();
    sim::run_with(&disks, 1, sim::Config::default(), async {
        let pool = PLAIN.create().await;
        let volume = Content::Volume { size: 64 << 20, block_size: 16 << 10 };
        pool.create_dataset("tank/v", volume, Vec::new()).await.unwrap();
        let kept = cut_free_space_in_pieces(&pool).await;
        let volume = pool.open_volume("tank/v").await.unwrap();
        let mut rng = Rng::new(3);
        for round in 0..12 {
            for _ in 0..20 {
                let at = rng.next_u64() % 128 * (16 << 10);
                volume.write(at, Buf::copy_from(&noise(round, 16 << 10))).await.unwrap();
            }
            let (prop, value) = setting("org.cenote:round", &round.to_string().repeat(500), Types::VOLUME);
            pool.change(
                "set",
                move |pool, tx| async move { pool.dsl().set(&tx, "tank/v", &prop, &value).await },
            )
            .await
            .unwrap();
        }
        let written = bytes_of(&volume).await;
        drop(volume);
        give_back(&pool, kept).await;
        verify(&pool).await;
        assert_eq!(pool.problems(), Vec::<String>::new());
        pool.export().await.unwrap();
        let pool = open().await;
        let volume = pool.open_volume("tank/v").await.unwrap();
        assert!(bytes_of(&volume).await == written);
        drop(volume);
        verify(&pool).await;
        pool.export().await.unwrap();
    });
}

/// What a volume or a snapshot holds: the digest of each block that is no hole.
type Blocks = BTreeMap<u64, u64>;

struct Made {
    volume: Volume,
    blocks: Blocks,
    count: u64,
    block: u64,
    is_thick: bool,
}

/// A pool at work, and what it must hold.
struct Bench {
    pool: Pool,
    shape: Shape,
    rng: Rng,
    volumes: BTreeMap<String, Made>,
    snapshots: BTreeMap<String, Blocks>,
    /// Seeds of the files, by name.
    files: BTreeMap<String, u64>,
    made: u64,
    /// How often what took space was let in, and refused.
    admitted: u64,
    refused: u64,
}

const FILES: &str = "tank/files";
const FILE: usize = 300_000;
/// More than any one operation takes: with so much available it is let in.
const AMPLE: u64 = 4 << 20;

impl Bench {
    async fn new(shape: Shape, seed: u64) -> Bench {
        let pool = shape.create().await;
        pool.create_dataset(FILES, Content::FileSystem(Default::default()), Vec::new()).await.unwrap();
        Bench {
            pool,
            shape,
            rng: Rng::new(seed),
            volumes: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            files: BTreeMap::new(),
            made: 0,
            admitted: 0,
            refused: 0,
        }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.rng.next_u64() % n
    }

    fn any<T: Clone>(&mut self, of: Vec<T>) -> Option<T> {
        let n = of.len() as u64;
        (n > 0).then(|| of[self.below(n) as usize].clone())
    }

    /// Judges what became of an operation that takes space of the dataset `of`, if that can be told. What is refused is
    /// refused with nothing under way, so what is available then is all there is.
    async fn judge(&mut self, doing: &str, result: Result<()>, of: Option<&str>) -> bool {
        let Err(e) = result else {
            self.admitted += 1;
            return true;
        };
        assert_eq!(e.kind(), Kind::NoSpace, "{doing}: {e}");
        if let Some(of) = of {
            let available = available(&self.pool, of).await;
            assert!(available < AMPLE, "{doing} was refused with {available} available: {e}");
        }
        self.refused += 1;
        false
    }

    async fn create(&mut self) {
        self.made += 1;
        let name = format!("tank/v{}", self.made);
        let block = 4096 << self.below(6);
        let room = available(&self.pool, "tank").await;
        let is_thick = self.below(2) == 0;
        let copies = 1 + self.below(6) / 5 + self.below(10) / 9;
        let most = if is_thick { room / 3 / copies } else { room.max(8 << 20) };
        let count = (most / block).max(1);
        let mut props = vec![
            setting("compression", ["off", "lz4"][self.below(2) as usize], Types::VOLUME),
            setting("copies", &copies.to_string(), Types::VOLUME),
        ];
        if is_thick {
            let reserved = self.shape.reservation(count * block, block, copies);
            if reserved > room {
                return;
            }
            props.push(setting("refreservation", &reserved.to_string(), Types::VOLUME));
        }
        let content = Content::Volume { size: count * block, block_size: block };
        let result = self.pool.create_dataset(&name, content, props).await;
        if self.judge("create", result, Some("tank")).await {
            let volume = self.pool.open_volume(&name).await.unwrap();
            self.volumes.insert(name, Made { volume, blocks: Blocks::new(), count, block, is_thick });
        }
    }

    /// A sparse volume that takes all there is.
    async fn fill(&mut self) {
        let (name, block) = ("tank/full".to_string(), 32 << 10);
        let count = 2 * available(&self.pool, "tank").await / block;
        let volume = uncompressed(&self.pool, &name, count * block, block).await;
        let made = Made { volume, blocks: Blocks::new(), count, block, is_thick: false };
        self.volumes.insert(name.clone(), made);
        for at in 0..count {
            let bytes = noise(at, block as usize);
            let result = self.volumes[&name].volume.write(at * block, Buf::copy_from(&bytes)).await;
            if !self.judge("fill", result, Some(&name)).await {
                return;
            }
            self.note(&name, at, &bytes);
        }
        panic!("a volume of twice what is available was filled");
    }

    /// A run of blocks.
    async fn write(&mut self) {
        let Some(name) = self.any(self.volumes.keys().cloned().collect()) else { return };
        let (count, block) = (self.volumes[&name].count, self.volumes[&name].block);
        let first = self.below(count);
        let run = (1 + self.below(8)).min(count - first);
        let seed = self.rng.next_u64();
        let bytes = noise(seed, (run * block) as usize);
        let has_snapshots = self.snapshots.keys().any(|snapshot| snapshot.starts_with(&format!("{name}@")));
        let made = &self.volumes[&name];
        // A snapshot keeps what was reserved for overwriting it.
        let is_reserved = made.is_thick && !has_snapshots;
        let result = made.volume.write(first * block, Buf::copy_from(&bytes)).await;
        assert!(
            result.is_ok() || !is_reserved,
            "write to {name} was refused with its space reserved: {result:?}"
        );
        if self.judge("write", result, Some(&name)).await {
            self.note(&name, first, &bytes);
        }
    }

    /// The model keeps a digest of each block.
    fn note(&mut self, name: &str, first: u64, bytes: &[u8]) {
        let made = self.volumes.get_mut(name).unwrap();
        for (i, block) in (first..).zip(bytes.chunks(made.block as usize)) {
            made.blocks.insert(i, digest(block));
        }
    }

    async fn trim(&mut self) {
        let Some(name) = self.any(self.volumes.keys().cloned().collect()) else { return };
        let (count, block) = (self.volumes[&name].count, self.volumes[&name].block);
        let first = self.below(count);
        let run = (1 + self.below(count / 4 + 1)).min(count - first);
        let whole = self.below(2) == 0;
        let made = self.volumes.get_mut(&name).unwrap();
        let (offset, len) = (first * block, run * block);
        let freed =
            if whole { made.volume.trim(offset, len).await } else { made.volume.zero(offset, len).await };
        freed.unwrap_or_else(|e| panic!("trim: {e}"));
        made.blocks.retain(|i, _| !(first..first + run).contains(i));
    }

    async fn snapshot(&mut self) {
        let Some(name) = self.any(self.volumes.keys().cloned().collect()) else { return };
        self.made += 1;
        let full = format!("{name}@s{}", self.made);
        let result = self.pool.snapshot(vec![full.clone()], Vec::new()).await;
        // What a thick volume would have to reserve again may be more than there is.
        let of = if self.volumes[&name].is_thick { None } else { Some("tank") };
        if self.judge("snapshot", result, of).await {
            self.snapshots.insert(full, self.volumes[&name].blocks.clone());
        }
    }

    async fn clone(&mut self) {
        let Some(origin) = self.any(self.snapshots.keys().cloned().collect()) else { return };
        let (of, _) = origin.split_once('@').unwrap();
        let Some((count, block)) = self.volumes.get(of).map(|made| (made.count, made.block)) else { return };
        self.made += 1;
        let name = format!("tank/c{}", self.made);
        let result = self.pool.clone_snapshot(&origin, &name, Vec::new()).await;
        if self.judge("clone", result, Some("tank")).await {
            let volume = self.pool.open_volume(&name).await.unwrap();
            let blocks = self.snapshots[&origin].clone();
            self.volumes.insert(name, Made { volume, blocks, count, block, is_thick: false });
        }
    }

    /// A volume or a snapshot, with all that hangs on it.
    async fn destroy(&mut self) {
        let mut names: Vec<String> = self.snapshots.keys().cloned().collect();
        if self.volumes.len() > 1 {
            names.extend(self.volumes.keys().cloned());
        }
        let Some(name) = self.any(names) else { return };
        let is_snapshot = name.contains('@');
        let made = if is_snapshot { None } else { self.volumes.remove(&name) };
        let spec = DestroySpec { names: vec![name], recursive: !is_snapshot, clones: false, defer: false };
        match self.pool.dsl().plan_destroy_of(&spec).await {
            Err(e) if e.kind() == Kind::Busy => {
                if let Some(made) = made {
                    self.volumes.insert(spec.names[0].clone(), made);
                }
                return;
            }
            planned => drop(planned.unwrap()),
        }
        drop(made);
        let plan = self.pool.destroy_datasets(spec).await.unwrap_or_else(|e| panic!("destroy: {e}"));
        for gone in plan.names {
            self.snapshots.remove(&gone);
        }
    }

    async fn put_file(&mut self) {
        self.made += 1;
        let (name, seed) = (format!("f{}", self.made), self.rng.next_u64());
        let fs = self.pool.open_file_system_for_writing(FILES).await.unwrap();
        let new = NewFile {
            kind: FileKind::Regular,
            permissions: 0o644,
            umask: 0,
            uid: 0,
            gid: 0,
            rdev: (0, 0),
            target: b"",
        };
        let root = fs.root().await.unwrap();
        let result = match root.create(name.as_bytes(), &new).await {
            Ok(file) => match file.write(0, &noise(seed, FILE)).await {
                Err(e) => {
                    root.unlink(name.as_bytes()).await.unwrap_or_else(|e| panic!("unlink: {e}"));
                    Err(e)
                }
                written => written,
            },
            Err(e) => Err(e),
        };
        if self.judge("write file", result, Some(FILES)).await {
            self.files.insert(name, seed);
        }
    }

    async fn remove_file(&mut self) {
        let Some(name) = self.any(self.files.keys().cloned().collect()) else { return };
        let fs = self.pool.open_file_system_for_writing(FILES).await.unwrap();
        let root = fs.root().await.unwrap();
        root.unlink(name.as_bytes()).await.unwrap_or_else(|e| panic!("unlink: {e}"));
        self.files.remove(&name);
    }

    /// Quotas and reservations of the files: what does not fit is refused, what does is not.
    async fn limit(&mut self) {
        settle(&self.pool).await;
        let room = available(&self.pool, "tank").await;
        let space = self.pool.dsl().find(FILES).await.unwrap().dir.space;
        let (name, value) = match self.below(4) {
            0 => ("reservation", space.used + room / 2),
            1 => ("reservation", space.used + 2 * room + (8 << 20)),
            2 => ("reservation", 0),
            _ => ("quota", 0),
        };
        let more = value.saturating_sub(space.reserved.max(space.used));
        let fits = name == "quota" || more <= room;
        let text = if value == 0 { "none".into() } else { value.to_string() };
        let (prop, value) = setting(name, &text, Types::FILESYSTEM);
        let set = self
            .pool
            .change("set", move |pool, tx| async move { pool.dsl().set(&tx, FILES, &prop, &value).await });
        let result = set.await;
        match result {
            Ok(()) => assert!(fits, "{name} of more than there is"),
            Err(e) => assert!(!fits && e.kind() == Kind::NoSpace, "set {name}: {e}"),
        }
    }

    async fn step(&mut self) {
        match self.below(40) {
            0 if self.volumes.len() < 5 => self.create().await,
            1 | 2 if self.snapshots.len() < 4 => self.snapshot().await,
            3 if self.volumes.len() < 5 => self.clone().await,
            4 | 5 => self.destroy().await,
            6 => self.trim().await,
            7..=9 => self.put_file().await,
            10 | 11 => self.remove_file().await,
            12 => self.limit().await,
            13 => self.pool.sync().await.unwrap(),
            14 => {
                let name = self.any(self.volumes.keys().cloned().collect());
                if let Some(name) = name {
                    self.volumes[&name].volume.flush().await.unwrap();
                }
            }
            _ => self.write().await,
        }
        if let Some(why) = self.pool.txgs().failure() {
            panic!("{why}");
        }
    }

    async fn compare(&self) {
        for (name, made) in &self.volumes {
            compare_volume(&made.volume, name, made.block, made.count, &made.blocks).await;
        }
        for (name, blocks) in &self.snapshots {
            let volume = self.pool.open_volume(name).await.unwrap();
            let (of, _) = name.split_once('@').unwrap();
            let Some(made) = self.volumes.get(of) else { continue };
            compare_volume(&volume, name, made.block, made.count, blocks).await;
        }
        let fs = self.pool.open_file_system(FILES).await.unwrap();
        for (name, seed) in &self.files {
            let file = fs.resolve(name.as_bytes(), true).await.unwrap();
            let bytes = file.read(0, FILE).await.unwrap();
            assert!(bytes[..] == noise(*seed, FILE)[..], "{name}");
        }
    }

    async fn end(mut self) -> (u64, u64) {
        self.compare().await;
        settle(&self.pool).await;
        verify(&self.pool).await;
        assert_eq!(self.pool.problems(), Vec::<String>::new());
        let names: Vec<String> = self.volumes.keys().cloned().collect();
        let shapes: Vec<_> = std::mem::take(&mut self.volumes)
            .into_values()
            .map(|made| (made.blocks, made.count, made.block, made.is_thick))
            .collect();
        self.pool.export().await.unwrap();
        self.pool = open().await;
        for (name, (blocks, count, block, is_thick)) in names.into_iter().zip(shapes) {
            let volume = self.pool.open_volume(&name).await.unwrap();
            self.volumes.insert(name, Made { volume, blocks, count, block, is_thick });
        }
        self.compare().await;
        self.volumes.clear();
        verify(&self.pool).await;
        self.pool.export().await.unwrap();
        (self.admitted, self.refused)
    }
}

fn digest(bytes: &[u8]) -> u64 {
    bytes.as_chunks().0.iter().fold(bytes.len() as u64, |sum, word| {
        (sum.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

async fn compare_volume(volume: &Volume, name: &str, block: u64, count: u64, blocks: &Blocks) {
    for i in 0..count {
        let parts = volume.read(i * block, block).await.unwrap();
        let found: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        match blocks.get(&i) {
            Some(expected) => assert!(digest(&found) == *expected, "{name}: block {i}"),
            None => assert!(found.iter().all(|b| *b == 0), "{name}: block {i} is a hole"),
        }
    }
}

fn work_in(shape: Shape, seed: u64, steps: u64) {
    let disks = shape.disks();
    let (admitted, refused) = sim::run_with(&disks, seed, sim::Config::default(), async move {
        let mut bench = Bench::new(shape, seed).await;
        bench.fill().await;
        bench.admitted = 0;
        for _ in 0..steps {
            bench.step().await;
        }
        bench.end().await
    });
    assert!(admitted > steps / 10 && refused > 0, "{shape:?}: {admitted} let in, {refused} refused");
}

#[test]
fn in_every_layout_a_full_pool_refuses_what_takes_space_and_nothing_that_frees_it() {
    let raidz =
        |parity, devices| Shape { layout: Layout::Raidz { parity }, devices, size: 64 << 20, ..PLAIN };
    let shapes = [
        PLAIN,
        Shape { ashift: 9, ..PLAIN },
        Shape { ashift: 13, has_log: true, ..PLAIN },
        Shape { layout: Layout::Mirror, devices: 2, ..PLAIN },
        raidz(1, 3),
        Shape { ashift: 9, ..raidz(2, 5) },
        Shape { has_log: true, ..raidz(3, 5) },
    ];
    for (seed, shape) in (1..).zip(shapes) {
        work_in(shape, seed, 1000);
    }
}

/// The sync used to run out of space for a block of the MOS after a hundred thousand overwrites, and the pool was lost
/// to its clients with a sixth of it free.
#[test]
fn a_sparse_volume_of_nearly_all_there_is_can_be_overwritten_for_ever() {
    let disks = PLAIN.disks();
    sim::run_with(&disks, 1, sim::Config::default(), async {
        let pool = PLAIN.create().await;
        let block = 8u64 << 10;
        let count = available(&pool, "tank").await * 96 / 100 / block;
        let volume = uncompressed(&pool, "tank/v", count * block, block).await;
        let data = Buf::copy_from(&noise(1, block as usize));
        let mut rng = Rng::new(2);
        for at in (0..count).chain((0..count * 3).map(|_| rng.next_u64() % count)) {
            volume.write(at * block, data.clone()).await.unwrap();
        }
        drop(volume);
        verify(&pool).await;
        assert_eq!(pool.problems(), Vec::<String>::new());
        pool.export().await.unwrap();
    });
}

/// Freed space ripens in the txgs to come, and there were none: a full pool that was emptied stayed full.
#[test]
fn what_was_freed_becomes_available_though_nothing_is_written() {
    let disks = PLAIN.disks();
    sim::run_with(&disks, 1, sim::Config::default(), async {
        let pool = PLAIN.create().await;
        let block = 128u64 << 10;
        let before = available(&pool, "tank").await;
        let volume = uncompressed(&pool, "tank/v", 64 << 20, block).await;
        let data = Buf::copy_from(&noise(1, block as usize));
        let mut at = 0;
        while volume.write(at, data.clone()).await.is_ok() {
            at += block;
        }
        assert!(at > before / 2 && at < 64 << 20, "{at} bytes filled a pool of {before}");
        volume.trim(0, at).await.unwrap();
        world::sleep(std::time::Duration::from_secs(60)).await;
        let after = available(&pool, "tank").await;
        assert!(after > before / 10 * 9, "{after} of {before} are available");
        // At rest nothing is synced for ever.
        let txg = pool.txgs().synced_txg();
        world::sleep(std::time::Duration::from_secs(3600)).await;
        assert!(pool.txgs().synced_txg().0 < txg.0 + 5, "an idle pool syncs");
        drop(volume);
        pool.export().await.unwrap();
    });
}
