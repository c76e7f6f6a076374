//! Random damage to random blocks of a volume that is written, read, scrubbed, snapshotted, destroyed and exported; after
//! each step the list is what a model says.
//!
//! The model knows which places on disk it has spoiled, of which blocks, and which of those were met. What a dataset
//! holds it reads from the tree itself.

use super::*;
use ondisk::mos::zvol;
use std::ops::Range;

const VOLUME: &str = "tank/v";
const BLOCKS: u64 = 48;

/// A block: number, and birth.
type Id = (u64, u64);

struct Case {
    rig: Rig,
    pool: Pool,
    rng: Rng,
    snapshots: Vec<String>,
    taken: u64,
    /// Spoiled blocks.
    bad: BTreeSet<Id>,
    /// Those that were met, each with the datasets that must be named while they have it.
    met: BTreeMap<Id, BTreeSet<String>>,
    trace: Vec<String>,
}

impl Case {
    async fn new(rig: Rig, seed: u64, release: &str) -> Case {
        let pool = rig.create_as(release).await;
        let content = crate::Content::Volume { size: BLOCKS * BLOCK, block_size: BLOCK };
        pool.create_dataset(VOLUME, content, uncached_volume()).await.unwrap();
        let rng = Rng::new(seed);
        let (bad, met) = (BTreeSet::new(), BTreeMap::new());
        let mut case = Case { rig, pool, rng, snapshots: Vec::new(), taken: 0, bad, met, trace: Vec::new() };
        case.write(0..BLOCKS).await;
        case
    }

    fn below(&mut self, n: u64) -> u64 {
        self.rng.next_u64() % n
    }

    async fn write(&mut self, blocks: Range<u64>) {
        let volume = self.pool.open_volume(VOLUME).await.unwrap();
        for blkid in blocks {
            let data = noise(self.rng.next_u64(), BLOCK as usize);
            volume.write(blkid * BLOCK, Buf::copy_from(&data)).await.unwrap();
        }
        volume.flush().await.unwrap();
        self.pool.sync().await.unwrap();
    }

    /// The datasets, oldest first.
    fn datasets(&self) -> Vec<String> {
        self.snapshots.iter().cloned().chain([VOLUME.to_string()]).collect()
    }

    async fn blocks(&self, dataset: &str) -> BTreeMap<u64, (u64, u64)> {
        let mut found = BTreeMap::new();
        for blkid in 0..BLOCKS {
            let bp = pointer(&self.pool, dataset, zvol::DATA, 0, blkid).await;
            if let Some(plain) = bp.as_plain() {
                found.insert(blkid, (plain.resolved_physical_birth().0, place(&bp)));
            }
        }
        found
    }

    async fn holders(&self) -> BTreeMap<Id, Vec<String>> {
        let mut holders: BTreeMap<Id, Vec<String>> = BTreeMap::new();
        for dataset in self.datasets() {
            for (blkid, (birth, _)) in self.blocks(&dataset).await {
                holders.entry((blkid, birth)).or_default().push(dataset.clone());
            }
        }
        holders
    }

    async fn step(&mut self) {
        match self.below(12) {
            0..3 => {
                let from = self.below(BLOCKS);
                let end = (from + 1 + self.below(6)).min(BLOCKS);
                self.trace.push(format!("write {from}..{end}"));
                self.write(from..end).await;
            }
            3..5 => self.damage().await,
            5..7 => self.read().await,
            7 if self.snapshots.len() < 4 => {
                let name = format!("{VOLUME}@s{}", self.taken);
                self.taken += 1;
                self.trace.push(format!("snapshot {name}"));
                self.pool.snapshot(vec![name.clone()], Vec::new()).await.unwrap();
                self.snapshots.push(name);
            }
            8 if !self.snapshots.is_empty() => {
                let i = self.below(self.snapshots.len() as u64) as usize;
                let name = self.snapshots.remove(i);
                self.trace.push(format!("destroy {name}"));
                self.pool.destroy_datasets(super::snapshots(&name)).await.unwrap();
            }
            9 => self.scrub().await,
            10 => {
                self.trace.push("export, import".into());
                self.pool.export().await.unwrap();
                self.pool = self.rig.open(false).await.unwrap();
            }
            _ => {
                self.trace.push("time goes by".into());
                world::sleep(std::time::Duration::from_secs(20)).await;
            }
        }
        self.forget_freed().await;
    }

    async fn damage(&mut self) {
        let datasets = self.datasets();
        let dataset = datasets[self.below(datasets.len() as u64) as usize].clone();
        let blocks: Vec<_> = self.blocks(&dataset).await.into_iter().collect();
        let (blkid, (birth, at)) = blocks[self.below(blocks.len() as u64) as usize];
        self.trace.push(format!("damage block {blkid} born in {birth}, of {dataset}"));
        let rot = noise(self.rng.next_u64(), BLOCK as usize);
        self.rig.disks.get(self.rig.path(0)).unwrap().poke(at, &rot);
        self.bad.insert((blkid, birth));
    }

    async fn read(&mut self) {
        let datasets = self.datasets();
        let dataset = datasets[self.below(datasets.len() as u64) as usize].clone();
        let blkid = self.below(BLOCKS);
        let birth = self.blocks(&dataset).await[&blkid].0;
        let volume = self.pool.open_volume(&dataset).await.unwrap();
        let failed = volume.read(blkid * BLOCK, BLOCK).await.is_err();
        self.trace.push(format!("read block {blkid} of {dataset}: {}", if failed { "EIO" } else { "good" }));
        assert!(!failed || self.bad.contains(&(blkid, birth)), "an error that is none: {:#?}", self.trace);
        if failed {
            self.met.entry((blkid, birth)).or_default().insert(dataset);
        }
    }

    async fn scrub(&mut self) {
        let is_whole = self.below(4) > 0;
        self.trace.push(format!("scrub, {}", if is_whole { "whole" } else { "canceled" }));
        if !is_whole {
            self.pool.scrub().await.unwrap();
            // It may be over by then.
            let stopped = self.pool.scrub_stop().await;
            if stopped.is_ok() && self.pool.scan_status().unwrap().state == ondisk::dsl::ScanState::Canceled {
                return;
            }
        } else {
            super::scrub(&self.pool).await;
        }
        let holders = self.holders().await;
        self.met.clear();
        for id in &self.bad {
            // Each block is met in the oldest dataset that has it.
            if let Some(oldest) = holders.get(id).and_then(|holders| holders.first()) {
                self.met.insert(*id, BTreeSet::from([oldest.clone()]));
            }
        }
    }

    async fn forget_freed(&mut self) {
        let holders = self.holders().await;
        self.bad.retain(|id| holders.contains_key(id));
        self.met.retain(|id, datasets| {
            let Some(holders) = holders.get(id) else { return false };
            datasets.retain(|dataset| holders.contains(dataset));
            true
        });
    }

    /// The list names what was met and is still there, and nothing that is not bad.
    async fn check(&self) {
        let listed = self.pool.data_errors().await;
        assert_eq!(listed.more, 0, "{:#?}", self.trace);
        let mut named: BTreeMap<Id, BTreeSet<String>> = BTreeMap::new();
        for error in &listed.errors {
            let dataset = error.dataset.clone().unwrap();
            assert_eq!(error.object, zvol::DATA, "{error:?}: {:#?}", self.trace);
            let blocks = self.blocks(&dataset).await;
            for (from, len) in &error.ranges {
                for blkid in from / BLOCK..(from + len) / BLOCK {
                    named.entry((blkid, blocks[&blkid].0)).or_default().insert(dataset.clone());
                }
            }
        }
        for (id, datasets) in &named {
            assert!(self.bad.contains(id), "{id:?} of {datasets:?} is listed and not bad: {:#?}", self.trace);
            assert!(
                self.met.contains_key(id),
                "{id:?} of {datasets:?} is listed, and nobody met it: {:#?}",
                self.trace
            );
        }
        for (id, datasets) in &self.met {
            let named = named.get(id).cloned().unwrap_or_default();
            assert!(
                datasets.is_subset(&named),
                "{id:?} of {datasets:?}, but {named:?} is listed: {:#?}",
                self.trace
            );
        }
    }

    /// With heads, each dataset that has a block that was met is named, once it is in the log.
    async fn check_all_holders(&self) {
        world::sleep(std::time::Duration::from_secs(60)).await;
        let listed = self.pool.data_errors().await;
        let named: BTreeSet<String> = listed.errors.iter().filter_map(|e| e.dataset.clone()).collect();
        let holders = self.holders().await;
        let expected: BTreeSet<String> = self.met.keys().flat_map(|id| holders[id].clone()).collect();
        assert_eq!(named, expected, "{:#?}", self.trace);
    }
}

fn uncached_volume() -> Vec<(PropName, Value)> {
    vec![parse_setting("primarycache", "metadata", Types::VOLUME, When::Create, &Default::default()).unwrap()]
}

fn run(seed: u64, steps: usize) {
    let release = RELEASES[seed as usize % 2];
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(seed, async move {
        let mut case = Case::new(own, seed, release).await;
        for _ in 0..steps {
            case.step().await;
            case.check().await;
        }
        if case.pool.dsl().logs_errors_by_head() {
            case.check_all_holders().await;
        }
        // What is not bad is whole.
        let report = case.pool.verify(|_| ()).await.unwrap();
        assert_eq!(report.damage.len(), case.bad.len(), "{:#?}\n{:#?}", report.damage, case.trace);
        case.pool.export().await.unwrap();
    });
}

#[test]
fn the_list_is_what_a_model_says_whatever_happens() {
    let seeds = 12;
    for seed in 0..seeds {
        run(seed, 60);
    }
}
