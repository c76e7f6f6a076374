//! The steps of `splits:` cases: vdevs that grow, other guids and names of the pool, and pools that come of it.
//!
//! What is split off is looked at at once: it has every block as it is now, and is whole; then it is destroyed. A cut in its
//! midst may leave it, or devices with labels of a pool that has other guids by now: the pool that goes on is the one of its
//! name with the newest labels.

use super::{BLOCK, BLOCKS, DIR, DISK, DeviceCase, DeviceDeeds, EVER, POOL, Run, content, for_ever, lock};
use crate::bench::{cache, host};
use pool::{Candidate, OpenOptions, Pool};
use sim::DiskHandle;
use units::{Error, Guid, Result};
use world::timeout;

/// What a pool that was split off is called, and one that is called otherwise for a session.
const COPY: &str = "copy";
const GUEST: &str = "guest";
/// A disk grows by so much, up to so much.
const GROWTH: u64 = 24 << 20;
const DISK_MAX: u64 = DISK + 4 * GROWTH;
/// Labels at either end, and what is before them.
const ENDS: u64 = 512 << 10;

fn options(name: Option<&str>) -> OpenOptions {
    OpenOptions {
        read_only: false,
        name: name.map(String::from),
        host: host(),
        force: false,
        missing_log: false,
        copy_over: false,
        cache: cache(),
        hub: Default::default(),
        tunables: Default::default(),
    }
}

/// The pool of the case, whatever else is on its devices.
pub(super) async fn import(as_guest: bool) -> Result<Pool> {
    let found = pool::scan_dirs(&[DIR]).await?;
    let of_case = found.iter().filter(|c| c.name() == POOL);
    let newest: Option<&Candidate> = of_case.max_by_key(|c| c.config.txg);
    let candidate = newest.ok_or_else(|| Error::corrupt("the pool is not found on its devices"))?;
    match as_guest {
        true => pool::open_as(candidate, options(None), GUEST.into()).await,
        false => pool::open(candidate, options(None)).await,
    }
}

impl DeviceCase {
    /// Among how many kinds of change one is drawn.
    pub(super) fn kinds_of_change(&self) -> u64 {
        match self.deeds {
            DeviceDeeds::Devices => 14,
            DeviceDeeds::Sweeps => 17,
            DeviceDeeds::Splits => 24,
            DeviceDeeds::Rebuilds => 36,
        }
    }
}

impl Run {
    pub(super) async fn reshape(&mut self, device: Guid, is_hurt: bool) -> Result<()> {
        let pool = self.pool.clone();
        match self.rng.below(8) {
            0..3 => {
                self.grow_disks();
                let done = timeout(EVER, pool.expand(device)).await;
                self.told("expand", done.map(|done| done.map(drop)))
            }
            3 => {
                let (name, value) = match self.rng.below(4) {
                    0 => ("autoexpand", "on"),
                    1 => ("autoexpand", "off"),
                    2 => ("autoreplace", "on"),
                    _ => ("autoreplace", "off"),
                };
                self.grow_disks();
                let done = timeout(EVER, pool.set_property(name, value)).await;
                self.told(&format!("{name}={value}"), done)
            }
            // A device that fails in that very txg keeps the former guid.
            4 | 5 if is_hurt => Ok(()),
            4 | 5 => {
                let guid = Guid(self.rng.next_u64());
                let done = timeout(EVER, pool.reguid(guid)).await;
                // It says that a device is not there with the kind that a failure has.
                let done = done.map(|done| match done {
                    Err(e) if e.to_string().contains("must be there and ONLINE") => {
                        Err(Error::invalid(e.to_string()))
                    }
                    done => done,
                });
                self.told("reguid", done)
            }
            // The side that stays may be the one that does not work, and the pool may not know it yet.
            _ if is_hurt => Ok(()),
            _ => self.split().await,
        }
    }

    /// Some disks get larger, in use or not.
    fn grow_disks(&mut self) {
        for path in self.case.paths() {
            let Some(disk) = self.disks.get(&path).filter(|_| self.rng.below(3) > 0) else { continue };
            disk.resize((disk.size() + GROWTH).min(DISK_MAX));
        }
    }

    async fn split(&mut self) -> Result<()> {
        let pool = self.pool.clone();
        let split = pool.split(COPY.into(), Vec::new(), options(Some(COPY)));
        let copy = match timeout(EVER, split).await {
            Some(Ok(copy)) => copy,
            done => return self.told("split", done.map(|done| done.map(drop))),
        };
        let looked = timeout(EVER, self.look_at(&copy)).await.ok_or_else(for_ever)?;
        looked.map_err(|e| e.at("the pool that was split off"))?;
        let gone = timeout(EVER, copy.destroy()).await.ok_or_else(for_ever)?;
        gone.map_err(|e| e.at("destroy the pool that was split off"))?;
        self.told("split", Some(Ok(())))
    }

    async fn look_at(&self, copy: &Pool) -> Result<()> {
        let volume = copy.open_volume(&format!("{COPY}/v")).await?;
        for at in 0..BLOCKS {
            let parts = volume.read(at * BLOCK, BLOCK).await?;
            let bytes: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
            let now = lock(&self.known).blocks[at as usize].now;
            if content(now) != bytes {
                return Err(Error::corrupt(format!("block {at} is not {now}")));
            }
        }
        let report = copy.verify(|_| ()).await?;
        match report.is_sound() {
            true => Ok(()),
            false => Err(Error::corrupt(format!("damage: {:?}", report.damage))),
        }
    }

    /// What is left on disks that the pool does not use would be other pools of the same name to a judge.
    pub(super) fn wipe_what_is_unused(&self) {
        let spec = self.pool.tree().spec();
        let mut used: Vec<String> = spec.leaves().filter_map(|leaf| leaf.path.clone()).collect();
        used.extend(self.pool.tree().aux(vdev::AuxKind::Spare).iter().filter_map(|d| d.spec.path.clone()));
        let unused = self.case.paths().into_iter().filter(|path| !used.contains(path));
        unused.filter_map(|path| self.disks.get(&path)).for_each(|disk| wipe(&disk));
    }
}

fn wipe(disk: &DiskHandle) {
    let zeros = vec![0; ENDS as usize];
    [0, disk.size() - ENDS].iter().for_each(|&at| disk.poke(at, &zeros));
}
