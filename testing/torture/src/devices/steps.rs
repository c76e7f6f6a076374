//! The steps of one session.

use super::{BLOCK, BLOCKS, EVER, Hurt, Run, content, for_ever, lock};
use ondisk::dsl::{ScanFunc, ScanState};
use pool::{Offline, ScanStatus, Sweep};
use sim::Fault;
use std::path::Path;
use std::time::Duration;
use units::{Error, Guid, Kind, Result};
use vdev::{AuxKind, NewLeaf, Spec, VdevType};
use world::{Buf, timeout};

/// Sides of a mirror at most.
const SIDES_MAX: usize = 4;

impl Run {
    pub(super) async fn step(&mut self) -> Result<()> {
        match self.rng.below(60) {
            0..20 => self.write().await,
            20..25 => self.flush().await,
            25..31 => {
                if self.rng.below(4) == 0 {
                    self.pool.pipeline().cache().clear();
                }
                let at = self.rng.below(BLOCKS);
                self.compare(at).await
            }
            31..46 => self.change_devices().await,
            46..49 => self.snapshot().await,
            49..52 => self.scan().await,
            52..55 => {
                world::sleep(Duration::from_secs(self.rng.below(20))).await;
                Ok(())
            }
            55..57 => {
                world::sleep(Duration::from_millis(self.rng.below(50))).await;
                Ok(())
            }
            57 => {
                self.hurt();
                Ok(())
            }
            _ => self.mend().await,
        }
    }

    async fn write(&mut self) -> Result<()> {
        let (at, many) = (self.rng.below(BLOCKS), 1 + self.rng.below(8));
        for at in at..(at + many).min(BLOCKS) {
            let seed = {
                let mut known = lock(&self.known);
                known.last_seed += 1;
                let seed = known.last_seed;
                // From now on a cut may find it.
                known.blocks[at as usize].since_flush.push(seed);
                seed
            };
            let written = self.volume.write(at * BLOCK, Buf::copy_from(&content(seed)));
            let written = timeout(EVER, written).await.ok_or_else(for_ever)?;
            written.map_err(|e| e.at(format!("write of block {at}; {}", self.shape())))?;
            lock(&self.known).blocks[at as usize].now = seed;
        }
        Ok(())
    }

    pub(super) async fn flush(&mut self) -> Result<()> {
        let flushed = timeout(EVER, self.volume.flush()).await.ok_or_else(for_ever)?;
        flushed.map_err(|e| e.at(format!("flush; {}", self.shape())))?;
        self.flushed();
        Ok(())
    }

    /// A command was carried out, or refused with a reason.
    pub(super) fn told(&self, what: &str, result: Option<Result<()>>) -> Result<()> {
        let result = result.ok_or_else(|| for_ever().at(what).at(self.shape()))?;
        self.say(|| format!("{what}: {result:?}; {}", self.shape()));
        let mut known = lock(&self.known);
        let is_hurt = known.hurt.is_some();
        match result {
            Ok(()) => known.figures.changes += 1,
            Err(e) if matches!(e.kind(), Kind::Busy | Kind::Invalid | Kind::NotFound | Kind::Unsupported) => {
                known.figures.refused += 1;
            }
            // The device that it is about may be the one that does not answer.
            Err(e) if e.kind() == Kind::Io && is_hurt => known.figures.refused += 1,
            Err(e) => return Err(e.at(what)),
        }
        Ok(())
    }

    async fn change_devices(&mut self) -> Result<()> {
        let (hurt, to_scrub) = {
            let known = lock(&self.known);
            (known.hurt.clone(), known.to_scrub)
        };
        if to_scrub || hurt.as_ref().is_some_and(|hurt| hurt.lies) {
            return Ok(());
        }
        let spec = self.pool.tree().spec();
        let leaves: Vec<&Spec> = spec.leaves().collect();
        let leaf = leaves[self.rng.below(leaves.len() as u64) as usize];
        let (guid, name) = (leaf.guid, leaf.path.clone().unwrap_or_default());
        // What cannot be relied upon is the only one that may be taken away then.
        let may_go = hurt.as_ref().is_none_or(|hurt| name == hurt.path);
        let pool = self.pool.clone();
        match self.rng.below(self.case.kinds_of_change()) {
            0..3 => {
                let sides = spec.parent_of(guid).map_or(0, |group| group.children.len());
                let Some(new) = self.free_disk().filter(|_| sides < SIDES_MAX) else { return Ok(()) };
                let what = format!("attach {} to {name}", new.path);
                let done = timeout(EVER, pool.attach(guid, new, false, 0)).await;
                self.told(&what, done)
            }
            3..7 => {
                let Some(new) = self.free_disk() else { return Ok(()) };
                let what = format!("replace {name} by {}", new.path);
                let done = timeout(EVER, pool.attach(guid, new, true, 0)).await;
                self.told(&what, done)
            }
            7 | 8 if may_go => {
                let done = timeout(EVER, pool.detach(guid)).await;
                self.told(&format!("detach {name}"), done)
            }
            9 if may_go => {
                let all = [Offline::Lasting, Offline::Temporary, Offline::Faulted, Offline::FaultedTemporary];
                let how = all[self.rng.below(4) as usize];
                let done = timeout(EVER, pool.offline(guid, how)).await;
                self.told(&format!("offline {name} {how:?}"), done)
            }
            10 | 11 => {
                let done = timeout(EVER, pool.online(guid)).await;
                self.told(&format!("online {name}"), done.map(|done| done.map(drop)))
            }
            12 => {
                let done = timeout(EVER, pool.clear(Some(guid))).await;
                self.told(&format!("clear {name}"), done)
            }
            13 => self.change_spares().await,
            14..17 => self.sweep(guid, &name).await,
            17..24 => self.reshape(guid, hurt.is_some()).await,
            24.. => self.rebuild(&spec, guid, &name).await,
            _ => Ok(()),
        }
    }

    /// A device joins in the order of the disk. Small pieces and little memory make it take a while.
    async fn rebuild(&mut self, spec: &Spec, old: Guid, name: &str) -> Result<()> {
        let replaces = self.rng.below(2) == 0;
        let sides = spec.parent_of(old).map_or(0, |group| group.children.len());
        let Some(new) = self.free_disk().filter(|_| replaces || sides < SIDES_MAX) else { return Ok(()) };
        let what = format!("rebuild {} {} {name}", new.path, if replaces { "for" } else { "beside" });
        let pool = self.pool.clone();
        let done = timeout(EVER, pool.attach_sequentially(old, new, replaces, 0)).await;
        self.told(&what, done)
    }

    async fn sweep(&mut self, device: Guid, name: &str) -> Result<()> {
        let pool = self.pool.clone();
        let kind = if self.rng.below(2) == 0 { Sweep::Trim } else { Sweep::Initialize };
        let (what, done) = match self.rng.below(6) {
            0..3 => {
                let rate = (self.rng.below(2) == 0).then(|| 1 + self.rng.below(64 << 20));
                ("begin", timeout(EVER, pool.sweep_start(device, kind, rate)).await)
            }
            3 => ("suspend", timeout(EVER, pool.sweep_suspend(device, kind)).await),
            4 => ("cancel", timeout(EVER, pool.sweep_cancel(device, kind)).await),
            _ => ("forget", timeout(EVER, pool.sweep_forget(device, kind)).await),
        };
        self.told(&format!("{what} {kind:?} of {name}"), done)
    }

    async fn change_spares(&mut self) -> Result<()> {
        let pool = self.pool.clone();
        let spares = pool.tree().aux(AuxKind::Spare);
        match spares.first() {
            Some(spare) if self.rng.below(2) == 0 => {
                if pool.tree().find_leaf(spare.spec.guid).is_some() {
                    return Ok(());
                }
                let done = timeout(EVER, pool.remove_side_device(AuxKind::Spare, spare.spec.guid)).await;
                self.told("remove a spare", done)
            }
            Some(_) if spares.len() > 1 => Ok(()),
            _ => {
                let Some(new) = self.free_disk() else { return Ok(()) };
                let what = format!("add the spare {}", new.path);
                let done = timeout(EVER, pool.add_side_devices(AuxKind::Spare, &[new])).await;
                self.told(&what, done)
            }
        }
    }

    /// One that nothing uses.
    fn free_disk(&mut self) -> Option<NewLeaf> {
        let tree = self.pool.tree();
        let spec = tree.spec();
        let path_of =
            |spec: &Spec| spec.path.clone().unwrap_or_default().trim_end_matches("/old").to_string();
        let mut used: Vec<String> = spec.leaves().map(path_of).collect();
        used.extend(tree.aux(AuxKind::Spare).iter().map(|d| path_of(&d.spec)));
        used.extend(lock(&self.known).hurt.iter().map(|hurt| hurt.path.clone()));
        let mut free = self.case.paths();
        free.retain(|path| !used.contains(path));
        let path = free.get(self.rng.below(free.len().max(1) as u64) as usize)?;
        NewLeaf::look_at(Path::new(path)).ok()
    }

    async fn snapshot(&mut self) -> Result<()> {
        let own = self.pool.dsl().snapshots(&self.volume_name).await?;
        if own.len() < 4 && self.rng.below(3) > 0 {
            let name = format!("{}@{}", self.volume_name, self.rng.next_u64());
            let taken =
                timeout(EVER, self.pool.snapshot(vec![name], Vec::new())).await.ok_or_else(for_ever)?;
            return taken.map(drop).map_err(|e| e.at("snapshot"));
        }
        let Some((name, _)) = own.get(self.rng.below(own.len().max(1) as u64) as usize) else {
            return Ok(());
        };
        let spec = dsl::DestroySpec { names: vec![name.clone()], ..Default::default() };
        let gone = timeout(EVER, self.pool.destroy_datasets(spec)).await.ok_or_else(for_ever)?;
        gone.map(drop).map_err(|e| e.at("destroy a snapshot"))
    }

    async fn scan(&mut self) -> Result<()> {
        let pool = self.pool.clone();
        match self.rng.below(4) {
            0 | 1 => {
                let done = timeout(EVER, pool.scrub()).await;
                self.told("scrub", done)
            }
            2 => {
                let done = timeout(EVER, pool.scrub_pause()).await;
                self.told("pause", done)
            }
            _ => {
                let done = timeout(EVER, pool.scrub_stop()).await;
                self.told("stop", done)
            }
        }
    }

    /// Hurts a device that the pool can do without.
    fn hurt(&mut self) {
        if lock(&self.known).hurt.is_some() || lock(&self.known).to_scrub {
            return;
        }
        let tree = self.pool.tree();
        let leaves = tree.leaves();
        let leaf = &leaves[self.rng.below(leaves.len() as u64) as usize];
        let path = leaf.device().path.display().to_string();
        let kind = self.rng.below(7);
        let Some(disk) = self.disks.get(&path) else { return };
        let lies = kind == 6;
        // What is written to it tells nothing of these.
        let is_seen_by_reads_alone = matches!(kind, 3 | 5 | 6);
        let is_shared = is_seen_by_reads_alone && stands_in(&tree.spec(), leaf.guid());
        // The others leave at any moment, and it is the one that the pool cannot do without.
        let is_heir = !leaf.missing().is_any() && is_newest(&tree.spec(), leaf.guid());
        if tree.is_required(leaf.guid()) || !leaf.is_usable() || is_shared || is_heir {
            return;
        }
        let (all, none) = (1_000_000, Fault::default());
        match kind {
            0 | 1 => disk.unplug(),
            2 => disk.set_fault(Fault { write_errors_ppm: all, ..none }),
            3 => disk.set_fault(Fault { read_errors_ppm: all, ..none }),
            4 => disk.set_fault(Fault { flush_errors_ppm: all, forgets: true, ..none }),
            5 => disk.set_fault(Fault { rot_ppm: all / 4, ..none }),
            _ => disk.set_fault(Fault { lost_writes_ppm: all / 4, ..none }),
        }
        self.say(|| format!("hurt {path}, kind {kind}; {}", self.shape()));
        let mut known = lock(&self.known);
        known.figures.hurt += 1;
        known.hurt = Some(Hurt { path, lies });
    }

    pub(super) async fn mend(&mut self) -> Result<()> {
        let hurt = {
            let mut known = lock(&self.known);
            let hurt = known.hurt.take();
            known.to_scrub |= hurt.as_ref().is_some_and(|hurt| hurt.lies);
            hurt
        };
        if let Some(Hurt { path, .. }) = hurt {
            if let Some(disk) = self.disks.get(&path) {
                disk.set_fault(Fault::default());
            }
            self.say(|| format!("mend {path}; {}", self.shape()));
            let cleared = timeout(EVER, self.pool.clear(None)).await.ok_or_else(for_ever)?;
            cleared.map_err(|e| e.at("clear"))?;
        }
        if lock(&self.known).to_scrub {
            self.made_whole().await?;
            self.scrub_all().await?;
            lock(&self.known).to_scrub = false;
        }
        Ok(())
    }

    /// Waits until no device that is there misses anything, and none is being replaced.
    pub(super) async fn made_whole(&mut self) -> Result<()> {
        let is_replacing = |spec: &Spec| spec.vdev_type == VdevType::Replacing;
        for _ in 0..4000 {
            let tree = self.pool.tree();
            let is_behind = tree.leaves().iter().any(|leaf| leaf.is_usable() && leaf.missing().is_any());
            let can_leave = tree.leaves().iter().all(|leaf| leaf.is_usable());
            let waits = can_leave && tree.spec().walk().any(is_replacing);
            if !is_behind && !waits && !self.pool.is_resilvering() {
                return Ok(());
            }
            world::sleep(Duration::from_secs(1)).await;
        }
        let (scan, problems) = (self.pool.scan_status(), self.pool.problems());
        Err(Error::corrupt(format!("it is never whole: {}; {scan:?}; {problems:?}", self.shape())))
    }

    /// A scrub from its beginning to its end.
    pub(super) async fn scrub_all(&mut self) -> Result<ScanStatus> {
        // One that pauses or goes began before.
        let _ = self.pool.scrub_stop().await;
        for _ in 0..100 {
            self.made_whole().await?;
            match timeout(EVER, self.pool.scrub()).await.ok_or_else(for_ever)? {
                Err(e) if e.kind() == Kind::Busy => world::sleep(Duration::from_secs(1)).await,
                started => {
                    started?;
                    timeout(EVER, self.pool.scrub_wait()).await.ok_or_else(for_ever)?;
                    if let Some(scan) = self.pool.scan_status()
                        && (scan.state, scan.func) == (ScanState::Finished, ScanFunc::Scrub)
                    {
                        return Ok(scan);
                    }
                }
            }
        }
        Err(Error::corrupt(format!("no scrub comes to its end: {:?}", self.pool.scan_status())))
    }
}

/// Whether the leaf shares its place with another device that the pool lets go when this one is whole: in a replacement, or
/// with a spare. What it has then lost in silence, or does not give back, is nowhere else, and no resilver that does not
/// read back what it has written could know: OpenZFS lets the other go, too.
fn stands_in(spec: &Spec, leaf: Guid) -> bool {
    let is_shared = |group: &Spec| matches!(group.vdev_type, VdevType::Replacing | VdevType::Spare);
    spec.parent_of(leaf).is_some_and(is_shared)
}

/// Whether it is the one for which the others of its replacement leave as soon as it is whole.
fn is_newest(spec: &Spec, leaf: Guid) -> bool {
    let heirs = |group: &Spec| {
        group.vdev_type == VdevType::Replacing && group.children.last().is_some_and(|c| c.guid == leaf)
    };
    spec.parent_of(leaf).is_some_and(heirs)
}
