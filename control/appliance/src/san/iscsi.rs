//! The iSCSI service: its portals, its clients, and what they see kept up with what there is.

use crate::san::directory::{SanDirectory, lock};
use crate::san::lans::Lans;
use futures_util::future::{Either, select};
use iscsi::{Config, Server};
use probe::Hub;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use units::Result;
use world::Address;
use world::sync::Event;

/// How long an answer may wait for what initiators see to be as it says.
const FOLLOWING: Duration = Duration::from_secs(2);

/// The iSCSI service of an appliance.
#[derive(Clone, Debug)]
pub struct Iscsi {
    server: Server,
    directory: Arc<SanDirectory>,
    stopped: Arc<Event>,
}

impl Iscsi {
    /// Listens nowhere yet. The requests of all its clients hold at most `total_bytes`, beside the base of each.
    pub(crate) async fn start(lans: Arc<dyn Lans>, hub: Hub, total_bytes: usize) -> Iscsi {
        // A pool that cannot be read does not keep the daemon from starting; nothing is seen then, until it changes.
        let view = lans.view().await.unwrap_or_default();
        let directory = SanDirectory::new(lans, view);
        let config = Config { total_bytes, ..Config::default() };
        let server = Server::new(directory.clone(), hub, config);
        let iscsi = Iscsi { server, directory, stopped: Arc::default() };
        world::spawn(iscsi.clone().follow());
        iscsi
    }

    /// Opens a portal; returns its address.
    pub fn listen(&self, address: SocketAddr) -> Result<SocketAddr> {
        let local = match self.server.listen(&Address::Tcp(address))? {
            Address::Tcp(local) => local,
            Address::Unix(_) => address,
        };
        lock(&self.directory.portals).push(local);
        Ok(local)
    }

    pub fn portals(&self) -> Vec<SocketAddr> {
        lock(&self.directory.portals).clone()
    }

    /// Closes a portal, and ends the sessions that came by it.
    pub fn close(&self, portal: &Address) {
        lock(&self.directory.portals).retain(|open| Address::Tcp(*open) != *portal);
        self.server.close(portal);
    }

    pub fn clients(&self) -> Vec<iscsi::Client> {
        self.server.clients()
    }

    /// Whether a client is logged in that sees this volume.
    pub(crate) fn is_seen(&self, dataset: &str) -> bool {
        let view = self.directory.view();
        self.server.clients().iter().any(|client| {
            let target = client.target.as_deref().unwrap_or_default();
            view.luns(target, &client.initiator).iter().any(|lu| lu.facts.dataset == dataset)
        })
    }

    /// Keeps the place of a volume that may be taken from its clients: until what is returned is dropped they are told
    /// to try again.
    pub(crate) fn keep_place(&self, dataset: &str) -> Place {
        lock(&self.directory.away).insert(dataset.into(), None);
        Place { directory: self.directory.clone(), dataset: dataset.into() }
    }

    /// Takes the LUNs of these volumes away from their clients, after what is under way.
    pub(crate) async fn release(&self, datasets: &[String]) {
        {
            let away = lock(&self.directory.away);
            let leaving = datasets.iter().filter(|dataset| !away.contains_key(*dataset));
            lock(&self.directory.leaving).extend(leaving.cloned());
        }
        for dataset in datasets {
            let used = {
                let _turn = self.directory.turns.of(dataset).await;
                lock(&self.directory.devices).remove(dataset)
            };
            let device = used.and_then(|used| used.device.upgrade());
            let Some(device) = device else { continue };
            let will_return = lock(&self.directory.away).contains_key(dataset);
            match will_return {
                true => {
                    let quiesced = device.quiesced();
                    lock(&self.directory.away).insert(dataset.clone(), Some(quiesced));
                    device.go_away().await;
                }
                false => device.retire().await,
            }
        }
        self.server.refresh();
    }

    /// Ends the sessions, after what they have in flight.
    pub async fn stop(&self) {
        self.stopped.set();
        self.server.stop().await;
    }

    /// Looks again whenever something has changed.
    async fn follow(self) {
        let lans = self.directory.lans.clone();
        let mut seen = lock(&self.directory.view).generation();
        loop {
            let changed = lans.change(seen);
            let Either::Left((now, _)) = select(changed, pin!(self.stopped.wait())).await else { return };
            seen = now;
            // What cannot be read now is read at the next change; until then nothing new is seen.
            if let Ok(view) = lans.view().await {
                *lock(&self.directory.view) = view;
                lock(&self.directory.leaving).clear();
                self.server.refresh();
            }
            *lock(&self.directory.looked) = now;
            self.directory.has_looked.notify_all();
        }
    }

    /// Waits until initiators see what there was at `generation`: a client that is told of a new LUN may look for it at
    /// once. Not for ever: there may be a pool that does not answer.
    pub(crate) async fn followed(&self, generation: u64) {
        let directory = &self.directory;
        // Without a target nothing is seen, and to look takes longer the more volumes there are.
        if directory.lans.has_no_target() {
            return;
        }
        let there = directory.has_looked.until(|| {
            let is_over = self.stopped.is_set() || *lock(&directory.looked) >= generation;
            is_over.then_some(())
        });
        world::timeout(FOLLOWING, there).await;
    }
}

/// The place of a volume that is away.
#[derive(Debug)]
pub(crate) struct Place {
    directory: Arc<SanDirectory>,
    dataset: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        let quiesced = lock(&self.directory.away).remove(&self.dataset);
        if quiesced.flatten().is_some() {
            self.directory.lans.changed();
        }
    }
}
