//! Devices are looked at by themselves, as the properties `autoexpand` and `autoreplace` say.
//!
//! ```text
//!   every LOOK ─┬─ autoexpand:  a vdev whose devices all have grown            ─▶ expand
//!               └─ autoreplace: a device is gone, and in its place is one      ─▶ attach(replaces), resilver
//!                               without any label
//! ```
//!
//! A device with labels, whosever they are, is left to an administrator: it may be the wrong one.
//!
//! Not here: spares, which are looked for after every txg ([`crate::spares`]).

mod state;

pub(crate) use state::DeviceWatch;

use crate::pool::{Pool, lock};
use dsl::pool_props::PoolProp;
use ondisk::LabelLayout;
use ondisk::label::LABEL_SIZE;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use units::{Guid, Result};
use vdev::label::read::read_labels;
use vdev::{Aux, Device, NewLeaf, State, VdevType};
use world::sync::Event;
use world::{Disk, IoBuf, OpenMode};

/// How often sizes and places are looked at: a system call for each device.
const LOOK: Duration = Duration::from_secs(5);

impl Pool {
    /// Begins to look if the pool's properties say so.
    pub(crate) async fn load_device_watch(&self) -> Result<()> {
        for prop in [PoolProp::AutoExpand, PoolProp::AutoReplace] {
            let is_on = self.stored_number(prop).await? == Some(1);
            self.watch_devices(prop, is_on);
        }
        Ok(())
    }

    pub(crate) fn watch_devices(&self, prop: PoolProp, is_on: bool) {
        let watch = &self.0.device_watch;
        let flag = if prop == PoolProp::AutoExpand { &watch.expands } else { &watch.replaces };
        flag.store(is_on, Ordering::Release);
        if !is_on || self.is_read_only() {
            return;
        }
        lock(&watch.refused).clear();
        let mut at_work = lock(&watch.at_work);
        if at_work.is_none() {
            let stop = Arc::new(Event::new());
            let task = self.spawn(self.clone().look_again(stop.clone()));
            *at_work = Some((stop, task));
        }
    }

    /// On return nothing is looked at, or changed because of it, any more.
    pub(crate) async fn stop_device_watch(&self) {
        let at_work = lock(&self.0.device_watch.at_work).take();
        if let Some((stop, task)) = at_work {
            stop.set();
            task.await;
        }
    }

    async fn look_again(self, stop: Arc<Event>) {
        let watch = &self.0.device_watch;
        while world::timeout(LOOK, stop.wait()).await.is_none() {
            if self.suspended().is_some() || self.0.txgs.is_closing() {
                continue;
            }
            if watch.expands.load(Ordering::Acquire)
                && let Err(e) = self.expand_all().await
            {
                self.0.note_problem(e.at("devices that have grown"));
            }
            if watch.replaces.load(Ordering::Acquire) {
                self.replace_what_is_new().await;
            }
        }
    }

    async fn replace_what_is_new(&self) {
        for (old, path) in self.lost_devices() {
            let is_refused = lock(&self.0.device_watch.refused).contains(&path);
            let (Some(top), false) = (self.tree().top_of(old), is_refused) else { continue };
            let Some(new) = blank_device(&path).await else { continue };
            if let Err(e) = self.attach(old, new, true, top.ashift).await {
                self.0.note_problem(e.at(format!("'{path}', a new device in the place of one that is gone")));
                lock(&self.0.device_watch.refused).insert(path);
            }
        }
    }

    /// Those that are gone and that no new device takes the place of yet, and where they were.
    fn lost_devices(&self) -> Vec<(Guid, String)> {
        let tree = self.tree();
        let spec = tree.spec();
        let is_lost = |guid| {
            let health = tree.find_leaf(guid).map(|(_, leaf)| leaf.health());
            health.is_some_and(|health| match health.state {
                State::Removed | State::CannotOpen => true,
                // A device that went away in the midst of writes; what an administrator has marked is left alone.
                State::Faulted => health.aux == Aux::ErrorsExceeded,
                _ => false,
            })
        };
        let is_replaced =
            |guid| spec.parent_of(guid).is_some_and(|group| group.vdev_type == VdevType::Replacing);
        let lost = spec.leaves().filter(|l| is_lost(l.guid) && !is_replaced(l.guid) && !l.is_spare());
        lost.filter_map(|leaf| Some((leaf.guid, leaf.path.clone()?))).collect()
    }
}

/// The device there, if it can be opened and nothing says whose it is.
async fn blank_device(path: &str) -> Option<NewLeaf> {
    let disk = Device::whole(path).open(OpenMode::ReadOnly).await.ok()?;
    let is_blank = can_be_read(&disk).await && read_labels(&disk).await.is_empty();
    is_blank.then(|| NewLeaf { path: path.into(), geometry: disk.geometry() })
}

/// Labels that cannot be read are not labels that are not there.
async fn can_be_read(disk: &Arc<dyn Disk>) -> bool {
    let Some(layout) = LabelLayout::new(disk.geometry().size) else { return false };
    for at in layout.labels() {
        if disk.read(at, IoBuf::scratch(LABEL_SIZE as usize)).await.1.is_err() {
            return false;
        }
    }
    true
}
