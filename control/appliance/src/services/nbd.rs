//! The volumes of all pools as an NBD server's exports, each by the name of its dataset.

use crate::appliance::Appliance;
use crate::pools::Access;
use crate::services::Front;
use crate::services::offers::{Facts, Offers, Through};
use api::{Nbd, NbdClient, NbdExport, Reply};
use disk::{Held, NbdVolume, SharedVolume, Volumes};
use nbd::{Hold, Listed};
use ondisk::ObjsetType;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use units::{Error, Kind, Result};
use world::{Address, Pending};

/// How long clients that are ended may take to go.
const GOODBYE: Duration = Duration::from_secs(15);
/// How long they may take for what they asked for: then they are hung up on.
const GRACE: Duration = Duration::from_secs(5);
/// How long initiators may take to find again what was taken from them.
const WELCOME: Duration = Duration::from_secs(5);
/// How long the end of a client that has left may take to be noticed.
const FAREWELL: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(5);

/// What a server offers: at each door what [`crate::services::offers`] says, or one volume.
#[derive(Clone, Debug)]
pub struct Exported {
    appliance: Appliance,
    chosen: Chosen,
    read_only: bool,
}

#[derive(Clone, Debug)]
enum Chosen {
    /// Nothing else, and this in any case.
    One(String),
    /// What is offered there at the moment.
    At(Option<Address>),
}

impl Exported {
    /// What is offered at a door; without one, what is at the socket of the home.
    pub fn at(appliance: &Appliance, door: Option<&Address>) -> Exported {
        Exported { appliance: appliance.clone(), chosen: Chosen::At(door.cloned()), read_only: false }
    }

    /// One volume, under its own name and as the default export.
    pub fn one(appliance: &Appliance, dataset: &str, read_only: bool) -> Exported {
        Exported { appliance: appliance.clone(), chosen: Chosen::One(dataset.into()), read_only }
    }

    /// Whether there is such a volume; it is not opened for a client.
    pub async fn check(&self) -> Result<()> {
        match &self.chosen {
            Chosen::One(dataset) => self.open_volume(dataset).await.map(drop),
            Chosen::At(_) => Ok(()),
        }
    }

    /// Whether clients that come in here may have a volume, or a snapshot of one.
    pub(crate) async fn is_offered(&self, name: &str) -> Result<bool> {
        let door = match &self.chosen {
            Chosen::One(dataset) => return Ok(dataset == name),
            Chosen::At(door) => door,
        };
        let dataset = name.split('@').next().unwrap_or(name);
        let open = self.appliance.pool_of(dataset, Access::Look).await;
        let open = open.map_err(|e| Error::new(Kind::NotFound, "open volume").because(e.message))?;
        let _reading = open.pool.reading().await;
        let stats = open.pool.dsl().stats(dataset).await?;
        let facts = Facts::of(&stats, dataset, &self.appliance.network()?).await?;
        Ok(self.appliance.offers().has(self.appliance.through(door.as_ref()), dataset, &facts))
    }

    fn volume(&self, volume: SharedVolume) -> Arc<dyn nbd::Volume> {
        let volume = NbdVolume::of(volume);
        Arc::new(if self.read_only { volume.read_only() } else { volume })
    }

    async fn names(&self) -> Result<Vec<String>> {
        let door = match &self.chosen {
            Chosen::One(dataset) => return Ok(vec![dataset.clone()]),
            Chosen::At(door) => door,
        };
        let (offers, through) = (self.appliance.offers(), self.appliance.through(door.as_ref()));
        let all = self.appliance.all_volumes().await?.into_iter();
        let is_listed =
            |(v, facts): &(NbdExport, Facts)| !facts.is_socket_alone && offers.has(through, &v.name, facts);
        Ok(all.filter(is_listed).map(|(v, _)| v.name).collect())
    }

    /// The dataset that an export name means; the empty name is the only volume there is.
    async fn resolve(&self, name: &str) -> Result<String> {
        let none = || Error::new(Kind::NotFound, format!("open export '{name}'"));
        if !name.is_empty() {
            return match self.is_offered(name).await? {
                true => Ok(name.into()),
                // A client at the socket may know why.
                false if matches!(&self.chosen, Chosen::At(None | Some(Address::Unix(_)))) => {
                    let why =
                        format!("it is masked, or off; 'zfs set cenote:nbd=on {name}' offers it over NBD");
                    Err(Error::new(Kind::Invalid, format!("open export '{name}'")).because(why))
                }
                false => Err(none()),
            };
        }
        match &self.names().await?[..] {
            [only] => Ok(only.clone()),
            _ => Err(none()),
        }
    }

    async fn open_volume(&self, dataset: &str) -> Result<SharedVolume> {
        if let Some(volume) = self.appliance.0.volumes.get(dataset) {
            return Ok(volume);
        }
        let access = if self.read_only { Access::Look } else { Access::Change };
        let open = self.appliance.pool_of(dataset, access).await;
        let open = open.map_err(|e| Error::new(Kind::NotFound, "open volume").because(e.message))?;
        Ok(SharedVolume::new(dataset, open.pool.open_volume(dataset).await?))
    }
}

impl Exported {
    async fn hold_volume(&self, dataset: &str) -> Result<(SharedVolume, Held)> {
        let volumes = &self.appliance.0.volumes;
        loop {
            let closings = volumes.closings();
            let volume = self.open_volume(dataset).await?;
            if let Some(held) = volumes.hold(volume, closings)? {
                return Ok(held);
            }
        }
    }
}

impl nbd::Exports for Exported {
    fn list(&self) -> Pending<Result<Vec<Listed>>> {
        let own = self.clone();
        Box::pin(async move {
            let mut listed = Vec::new();
            for name in own.names().await? {
                let description = own.volume(own.open_volume(&name).await?).description();
                listed.push(Listed { name, description });
            }
            Ok(listed)
        })
    }

    fn find(&self, name: &str) -> Pending<Result<Arc<dyn nbd::Volume>>> {
        let (own, name) = (self.clone(), name.to_string());
        Box::pin(async move {
            let dataset = own.resolve(&name).await?;
            Ok(own.volume(own.open_volume(&dataset).await?))
        })
    }

    fn open(&self, name: &str, _client: &Address) -> Pending<Result<(Arc<dyn nbd::Volume>, Hold)>> {
        let (own, name) = (self.clone(), name.to_string());
        Box::pin(async move {
            let dataset = own.resolve(&name).await?;
            let (volume, held) = own.hold_volume(&dataset).await?;
            let hold: Hold = Box::new(held);
            Ok((own.volume(volume), hold))
        })
    }

    fn refused(&self, client: &Address, why: &Error) {
        tracing::info!(%client, "NBD client refused: {why}");
    }
}

impl Appliance {
    /// Opens a volume for a client, or joins those that use it already; it counts as used until what comes with it is
    /// dropped.
    pub async fn use_volume(&self, dataset: &str) -> Result<(SharedVolume, Held)> {
        Exported::at(self, None).hold_volume(dataset).await
    }

    /// Every volume of every pool that is open or can be.
    async fn all_volumes(&self) -> Result<Vec<(NbdExport, Facts)>> {
        let names = self.0.pools.lock().await.names();
        let network = self.network()?;
        let mut volumes = Vec::new();
        for name in names {
            let Ok(open) = self.pool(&name, Access::Look).await else { continue };
            let all = {
                let _reading = open.pool.reading().await;
                open.pool.dsl().descendants(&name).await?
            };
            for dataset in all {
                // Changes of the pool have their turn in between.
                let _reading = open.pool.reading().await;
                let stats = match open.pool.dsl().stats(&dataset).await {
                    Err(e) if e.kind() == Kind::NotFound => continue,
                    stats => stats?,
                };
                if stats.kind != ObjsetType::Zvol {
                    continue;
                }
                let number = |prop| {
                    let stats = &stats;
                    async move {
                        let shown = stats.get(&dsl::props::PropName::Native(prop)).await?;
                        Ok::<u64, Error>(shown.and_then(|(value, _)| value.number()).unwrap_or(0))
                    }
                };
                let size = number(dsl::props::Prop::VolSize).await?;
                let block_size = number(dsl::props::Prop::VolBlockSize).await?;
                let facts = Facts::of(&stats, &dataset, &network).await?;
                let addresses = self.addresses_of(&dataset, &facts);
                volumes.push((NbdExport { name: dataset.clone(), size, block_size, addresses }, facts));
            }
        }
        Ok(volumes)
    }

    pub(crate) async fn nbd_exports(&self) -> api::Result<Reply> {
        let volumes = self.all_volumes().await;
        let volumes = volumes.map_err(|e| api::ApiError::new(e.kind().into(), e.to_string()))?;
        let whole = volumes.into_iter().filter(|(_, facts)| !facts.is_half_copy);
        let exports: Vec<NbdExport> = whole.map(|(volume, _)| volume).collect();
        let Some(server) = self.nbd() else {
            return Ok(Reply::Nbd(Nbd { exports, ..Nbd::default() }));
        };
        let missing = self.offers().missing(&exports);
        let client = |c: nbd::Client| NbdClient {
            address: c.address.to_string(),
            export: c.export,
            requests: c.reads + c.writes,
            read_bytes: c.read_bytes,
            written_bytes: c.written_bytes,
        };
        Ok(Reply::Nbd(Nbd {
            addresses: self.addresses(Front::Nbd),
            tls: server.requires_tls(),
            exports,
            missing,
            clients: server.clients().into_iter().map(client).collect(),
        }))
    }

    /// Waits until the initiators from which a volume was taken have it again: a client that is told that all is done may
    /// ask for it at once, and would not find it.
    pub(crate) async fn give_back(&self, dataset: &str) {
        self.san_changed();
        let back = async {
            while self.0.volumes.get(dataset).is_none() {
                world::sleep(LOOK).await;
            }
        };
        // They may have left meanwhile.
        world::timeout(WELCOME, back).await;
    }

    /// Which volumes `used` still tells when clients that have left had their time to be noticed: one that has hung up uses
    /// its volume until the end of its connection was read and its last request is done.
    pub(crate) async fn left_in_use(
        &self,
        used: impl Fn(&Volumes) -> Vec<String> + Send + Sync,
    ) -> Vec<String> {
        let unused = async {
            while !used(&self.0.volumes).is_empty() {
                world::sleep(LOOK).await;
            }
        };
        match world::timeout(FAREWELL, unused).await {
            Some(()) => Vec::new(),
            None => used(&self.0.volumes),
        }
    }

    /// Ends the clients of these volumes, and waits until they are gone.
    pub(crate) async fn disconnect(&self, datasets: &[String]) {
        if datasets.is_empty() {
            return;
        }
        self.0.migrations.cancel(|dataset| datasets.iter().any(|d| d == dataset)).await;
        if let Some(iscsi) = self.iscsi() {
            iscsi.release(datasets).await;
        }
        // A client that chose the only volume by no name is of the export "".
        let exports = || datasets.iter().map(String::as_str).chain([""]);
        if let Some(server) = self.nbd() {
            exports().for_each(|name| server.disconnect(name));
        }
        let gone = async || {
            while datasets.iter().any(|d| self.0.volumes.get(d).is_some()) {
                world::sleep(LOOK).await;
            }
        };
        if world::timeout(GRACE, gone()).await.is_some() {
            return;
        }
        if let Some(server) = self.nbd() {
            exports().for_each(|name| server.put_out(name));
        }
        world::timeout(GOODBYE, gone()).await;
    }
}

impl Appliance {
    /// Must be called before doors are opened. A name that no dataset can have is refused; one that no dataset has is not,
    /// for a pool that is imported later may have it.
    ///
    /// # Errors
    /// `Invalid`, with the name and what is wrong with it.
    pub fn set_offers(&self, offers: Offers) -> Result<()> {
        for name in &offers.named {
            dsl::name::check_dataset(name)
                .map_err(|e| Error::invalid(format!("cannot export '{name}'")).because(e))?;
        }
        *self.0.offers.lock().unwrap_or_else(PoisonError::into_inner) = offers;
        Ok(())
    }

    pub(crate) fn offers(&self) -> Offers {
        self.0.offers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How clients come in at a door.
    pub(crate) fn through(&self, door: Option<&Address>) -> Through {
        match door {
            Some(Address::Tcp(_)) if self.is_nbd_asked_for() => Through::Asked,
            Some(Address::Tcp(_)) => Through::Unasked,
            _ => Through::Socket,
        }
    }

    /// Hangs up on clients of volumes that are no longer offered where they came in, for as long as the daemon runs.
    pub async fn follow_offers(self) {
        let mut seen = self.san_generation();
        loop {
            seen = self.san_change(seen).await;
            let Some(server) = self.nbd() else { return };
            let mut gone = BTreeSet::new();
            for client in server.clients() {
                let Some(export) = client.export.filter(|export| !export.is_empty()) else { continue };
                let exported = Exported::at(&self, client.door.as_ref());
                // One that cannot be looked at now is looked at when something changes next.
                if matches!(exported.is_offered(&export).await, Ok(false)) {
                    gone.insert((export, client.door.map(|door| door.to_string())));
                }
            }
            for (export, door) in gone {
                tracing::info!(export, "it is no longer offered over NBD: its clients are ended");
                server.disconnect_at(&export, door.as_deref());
            }
        }
    }

    /// Where a volume is offered, as clients are told it.
    pub(crate) fn addresses_of(&self, dataset: &str, facts: &Facts) -> Vec<String> {
        let offers = self.offers();
        let is_asked_for = self.is_nbd_asked_for();
        let through = |address: &String| match address.starts_with("unix:") {
            true => Through::Socket,
            false if is_asked_for => Through::Asked,
            false => Through::Unasked,
        };
        let all = self.addresses(Front::Nbd).into_iter();
        all.filter(|address| offers.has(through(address), dataset, facts)).collect()
    }
}

#[cfg(test)]
mod tests;
