//! What is about to go, or to get another name, is closed to clients first.
//!
//! ```text
//!   without force: is one used? refused ─▶ names are closed ─▶ those that use them are ended ─▶ the change ─▶ open again
//!                                          datasets to what opens them by name                               (dropped)
//!                                          volumes to clients, under the lock of the list of these
//! ```
//!
//! Between a look for clients and the change another would come in, and have its volume under a name that is another
//! volume's by then. What cannot be ended is refused, or forgotten with what goes.

use crate::appliance::Appliance;
use crate::error_text::{About, cannot};
use api::{ApiError, ErrorKind, Result};
use disk::Volumes;
use dsl::ClosedToOpeners;
use pool::Pool;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long requests of snapshots that are to go may take.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);

/// What a message ends with where that helps.
pub(super) const END_THEM: &str = "; use '-f' to end them";

impl Appliance {
    /// Takes what goes from all fronts, and keeps it closed to them until what comes back is dropped. Without force it is
    /// refused while a client uses a volume of it. A snapshot that is still read after [`PATIENCE`] keeps itself.
    pub(crate) async fn withdraw(
        &self,
        pool: &Pool,
        names: &[String],
        force: bool,
        doing: &str,
    ) -> Result<ClosedToClients> {
        if !force {
            self.end_users_of(names, false, doing).await?;
        }
        // What is refused is mounted again, which what is closed could not be.
        self.unmount_going(names, force).await?;
        let closed = self.close(pool, names, doing).await?;
        // With force all of them, else those that came in between.
        self.end_users_of(names, force, doing).await?;
        self.forget_snapshots(names).await;
        let given_up = async {
            while closed.openers().is_some_and(|closed| pool.dsl().has_open_snapshot(closed)) {
                world::sleep(LOOK).await;
                // A request that was under way may have entered it again.
                self.forget_snapshots(names).await;
            }
        };
        world::timeout(PATIENCE, given_up).await;
        Ok(closed)
    }

    async fn close(&self, pool: &Pool, names: &[String], doing: &str) -> Result<ClosedToClients> {
        let _reading = pool.reading().await;
        let closed = pool.dsl().close_to_openers(names).await;
        let openers = closed.map_err(|e| cannot(About::Dataset, doing, &e))?;
        let volumes = self.0.volumes.close(names);
        Ok(ClosedToClients { appliance: self.clone(), closed: Some((Some(openers), volumes)) })
    }

    /// Closes these to what opens them by name, until what comes back is dropped, and makes sure that no client uses their
    /// volumes: with one that came in meanwhile the volume would stay under a name that is another's soon. Nothing of them
    /// may be mounted. Without force it is refused while a client uses one.
    pub(crate) async fn close_to_clients(
        &self,
        pool: &Pool,
        names: &[String],
        force: bool,
        doing: &str,
    ) -> Result<ClosedToClients> {
        if !force {
            // Where that is so, no client is turned away.
            self.end_users_of(names, false, doing).await?;
        }
        let closed = self.close(pool, names, doing).await?;
        self.end_users_of(names, force, doing).await?;
        let volumes = &self.0.volumes;
        let left: Vec<String> = names.iter().filter(|name| volumes.get(name).is_some()).cloned().collect();
        self.check_ended(&left, &format!("cannot {doing}: dataset is busy")).await?;
        Ok(closed)
    }

    /// As [`Appliance::close_to_clients`], of all volumes of a pool; who has them stays.
    pub(crate) fn close_pool_to_clients(&self, pool: &str) -> ClosedToClients {
        let volumes = self.0.volumes.close(&[pool.to_string()]);
        ClosedToClients { appliance: self.clone(), closed: Some((None, volumes)) }
    }

    /// Refuses while clients that were ended use these volumes.
    pub(crate) async fn check_ended(&self, left: &[String], refusal: &str) -> Result<()> {
        if left.is_empty() {
            return Ok(());
        }
        let users = self.with_users(left).await;
        let message = format!("{refusal}: clients that were ended still use {users}; try again");
        Err(ApiError::new(ErrorKind::Busy, message))
    }

    /// Unmounts what goes, and ends its files.
    pub(crate) async fn let_go_of(&self, names: &[String], force: bool) -> Result<()> {
        // Before any file is not served any more.
        self.unmount_going(names, force).await?;
        self.forget_snapshots(names).await;
        Ok(())
    }

    /// Unmounts the file systems among these: all or none.
    async fn unmount_going(&self, names: &[String], force: bool) -> Result<()> {
        let mut going = BTreeMap::new();
        for name in names.iter().filter(|name| !name.contains('@')) {
            going.extend(self.mounts_below(name));
        }
        self.unmount_all(going.into_iter().collect(), force).await
    }

    async fn forget_snapshots(&self, names: &[String]) {
        for name in names.iter().filter(|name| name.contains('@')) {
            self.forget_snapshot(name).await;
        }
    }

    /// Makes sure that no client uses the volumes at and below a dataset.
    pub(crate) async fn free_datasets(&self, name: &str, force: bool, doing: &str) -> Result<()> {
        self.free_those(|volumes| volumes.used_below(name), force, doing).await
    }

    /// Makes sure that no client uses any of these.
    pub(crate) async fn end_users_of(&self, names: &[String], force: bool, doing: &str) -> Result<()> {
        let used = |volumes: &Volumes| {
            let is_used = |name: &&String| volumes.get(name).is_some();
            names.iter().filter(is_used).cloned().collect()
        };
        self.free_those(used, force, doing).await
    }

    /// With `force`, ends the clients of the volumes that `used` tells; else refuses when there are any after
    /// [`Appliance::left_in_use`].
    async fn free_those(
        &self,
        used: impl Fn(&Volumes) -> Vec<String> + Send + Sync,
        force: bool,
        doing: &str,
    ) -> Result<()> {
        if force {
            self.disconnect(&used(&self.0.volumes)).await;
            return Ok(());
        }
        let left = self.left_in_use(used).await;
        if left.is_empty() {
            return Ok(());
        }
        let users = self.with_users(&left).await;
        let message = format!("cannot {doing}: dataset is busy: clients use {users}{END_THEM}");
        Err(ApiError::new(ErrorKind::Busy, message))
    }
}

/// Datasets that cannot be opened by name until this is dropped: see [`Appliance::close_to_clients`].
pub(crate) struct ClosedToClients {
    appliance: Appliance,
    /// Taken when it is dropped.
    closed: Option<(Option<ClosedToOpeners>, disk::NamesClosed)>,
}

impl ClosedToClients {
    fn openers(&self) -> Option<&ClosedToOpeners> {
        self.closed.as_ref()?.0.as_ref()
    }
}

impl Drop for ClosedToClients {
    fn drop(&mut self) {
        drop(self.closed.take());
        // Initiators look again for what they were refused meanwhile.
        self.appliance.san_changed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::appliance::By;
    use crate::pools::Access;
    use crate::schedules::tests::{Lab, START, make};
    use ::pool::Content;
    use std::sync::Arc;
    use units::{Kind, ObjectId};
    use world::Buf;
    use world::sync::Event;

    const NAMES: [&str; 2] = ["tank/x", "tank/y"];

    /// Comes and goes, as a program that connects again whenever it is hung up on. Each time it reads what it has, and looks
    /// whose name that is; how often.
    async fn client(appliance: Appliance, marks: BTreeMap<ObjectId, u8>, over: Arc<Event>) -> u32 {
        let pool = appliance.pool("tank", Access::Look).await.unwrap().pool;
        let mut times = 0;
        while !over.is_set() {
            let name = NAMES[(world::random_u64() % 2) as usize];
            match appliance.use_volume(name).await {
                Ok((volume, held)) => {
                    // Nothing is renamed meanwhile.
                    world::sleep(Duration::from_micros(world::random_u64() % 3000)).await;
                    let read = volume.read(0, 1).await.unwrap();
                    let is = pool.dsl().find(name).await.unwrap().id;
                    let mark = match &read[0] {
                        scsi::Piece::Data(data) => data[0],
                        scsi::Piece::Hole(_) => 0,
                    };
                    assert_eq!(Some(&mark), marks.get(&is), "{name}");
                    times += 1;
                    drop((volume, held));
                }
                Err(e) => assert!(matches!(e.kind(), Kind::Busy | Kind::NotFound), "{e}"),
            }
            world::sleep(Duration::from_micros(world::random_u64() % 3000)).await;
        }
        times
    }

    /// Two volumes change their names, by force or not, while clients come in: one that came in between the look for clients
    /// and the rename kept its volume under the old name, and whatever came to that name next was served from it.
    #[test]
    fn clients_have_what_has_the_name_whatever_is_renamed_meanwhile() {
        let lab = Lab::new("renamed");
        lab.run(START, |appliance| async move {
            make(&appliance).await;
            let by = By { command: "test".into(), uid: 0 };
            let pool = appliance.pool("tank", Access::Look).await.unwrap().pool;
            let mut marks = BTreeMap::new();
            for (name, mark) in NAMES.into_iter().zip(1u8..) {
                let content = Content::Volume { size: 1 << 20, block_size: 16 << 10 };
                pool.create_dataset(name, content, Vec::new()).await.unwrap();
                let (volume, _held) = appliance.use_volume(name).await.unwrap();
                volume.write_parts(0, vec![Buf::copy_from(&[mark; 512])], true).await.unwrap();
                marks.insert(pool.dsl().find(name).await.unwrap().id, mark);
            }
            let over = Arc::new(Event::new());
            let begin = |_| world::spawn(client(appliance.clone(), marks.clone(), over.clone()));
            let clients: Vec<_> = (0..4).map(begin).collect();
            let (mut done, mut refused) = (0, 0);
            for round in 0..40 {
                let swap = [(NAMES[0], "tank/z"), (NAMES[1], NAMES[0]), ("tank/z", NAMES[1])];
                for (from, to) in swap {
                    loop {
                        match appliance.rename_dataset(from, to, false, Some(round % 2 == 0), &by).await {
                            Ok(_) => break done += 1,
                            Err(e) => assert_eq!(e.kind, ErrorKind::Busy, "{}", e.message),
                        }
                        refused += 1;
                        assert!(refused < 1000, "no rename is done");
                    }
                    world::sleep(Duration::from_micros(world::random_u64() % 20_000)).await;
                }
            }
            over.set();
            for client in clients {
                assert!(client.await > 20, "it came in often");
            }
            assert_eq!(done, 120);
        });
    }
}
