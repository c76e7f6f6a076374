//! The appliance as a service: every request has its function.

pub(crate) use crate::appliance::{Appliance, By};

use crate::analytics::changes::{settings_of_san, settings_of_services};
use crate::datasets::Doomed;
use api::changes::Kind;
use api::{ApiError, Call, ErrorKind, Reply, Request, Result, Service};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use units::Guid;
use world::{Domain, Panic};

impl Appliance {
    async fn carry_out(&self, call: Call) -> Result<Reply> {
        // Analytics and alerts change no LUN.
        let is_question =
            call.request.is_question() || matches!(call.request, Request::Analytics(_) | Request::Alerts(_));
        let reply = self.answer(call).await;
        // Whatever was changed, a LUN may have come, gone, or be another: also when it ended with an error half-way.
        if !is_question {
            self.san_changed();
            if let Some(iscsi) = self.iscsi() {
                iscsi.followed(self.san_generation()).await;
            }
        }
        self.with_left_out(reply).await
    }

    /// An import tells which LUNs of the pool are not served.
    async fn with_left_out(&self, reply: Result<Reply>) -> Result<Reply> {
        let Ok(Reply::Imported { name, warning, back }) = reply else { return reply };
        let left_out = self.left_out_of(&name).await;
        // Names of a pool that came from elsewhere may have anything in them.
        let plain = |line: String| line.chars().filter(|c| !c.is_control()).collect::<String>();
        let lines = left_out.iter().map(|(lun, why)| plain(format!("the LUN '{lun}' is not served: {why}")));
        let lines: Vec<String> = warning.into_iter().chain(lines).collect();
        let warning = (!lines.is_empty()).then(|| lines.join("\n"));
        Ok(Reply::Imported { name, warning, back })
    }

    async fn answer(&self, call: Call) -> Result<Reply> {
        let Call { command, uid, request } = call;
        let by = By { command, uid };
        match request {
            Request::Ping => {
                Ok(Reply::Pong { pid: std::process::id(), version: env!("CARGO_PKG_VERSION").to_string() })
            }
            Request::Daemon => Ok(Reply::Daemon(self.describe())),
            Request::Cache => Ok(Reply::Cache(Box::new(self.cache_state()))),
            Request::Shutdown => self.shut_down(),
            Request::PoolCreate(new) => self.create_pool(new, &by).await,
            Request::PoolAdd(new) => self.add_vdevs(new, &by).await,
            Request::PoolRemove { name, guid, device } => {
                self.remove_vdev(&name, Guid(guid), &device, &by).await
            }
            Request::PoolDestroy { name, force } => self.destroy_pool(&name, force, &by).await,
            Request::PoolImportable { search, destroyed } => self.importable(&search, destroyed).await,
            Request::PoolImport(import) => self.import_pool(import, &by).await,
            Request::PoolExport { name, force } => self.export_pool(&name, force, &by).await,
            Request::Pools { names } => self.describe_pools(&names).await,
            Request::PoolSet { name, vdev: None, property, value } => {
                let before = self.about_to_set(Kind::Pool, &name, vec![property.clone()]).await;
                let outcome = self.set_pool(&name, &property, &value, &by).await;
                self.was_set(before, &by).await;
                outcome
            }
            Request::PoolSet { name, vdev: Some(vdev), property, value } => {
                self.set_vdev(&name, &vdev, &property, &value, &by).await
            }
            Request::PoolHistory { names } => self.histories(&names).await,
            Request::Events { since } => Ok(self.events(since).await),
            Request::EventsClear => Ok(self.clear_events().await),
            Request::PoolSync { names } => self.sync_pools(&names).await,
            Request::PoolClear { name, device } => self.clear_pool(&name, device.as_deref(), &by).await,
            Request::PoolDevice { name, device, action } => {
                self.handle_device(&name, &device, action, &by).await
            }
            Request::PoolScrub { name, action } => self.scrub_pool(&name, action, &by).await,
            Request::PoolResilver { name } => self.resilver_pool(&name, &by).await,
            Request::PoolReguid { name, guid } => self.reguid_pool(&name, guid, &by).await,
            Request::PoolPrefetch { name } => self.prefetch_pool(&name).await,
            Request::PoolSplit(split) => self.split_pool(split, &by).await,
            Request::PoolReopen { name } => self.reopen_pool(&name, &by).await,
            Request::PoolSweep { name, devices, kind, action } => {
                self.sweep_pool(&name, &devices, (kind, action), &by).await
            }
            Request::LabelClear { device, force } => self.clear_labels(&device, force).await,
            Request::Datasets(query) => self.query_datasets(query).await,
            Request::DatasetCreate(new) => self.create_dataset(new, &by).await,
            Request::DatasetDestroy { name, recursive, clones, defer, force, dry_run } => {
                let doomed = Doomed { recursive, clones, defer, force, dry_run };
                self.destroy_dataset(&name, doomed, &by).await
            }
            Request::DatasetRename { from, to, recursive: true, .. } => {
                self.rename_snapshots(&from, &to, &by).await
            }
            Request::DatasetRename { from, to, parents, force, .. } => {
                self.rename_dataset(&from, &to, parents, Some(force), &by).await
            }
            Request::Snapshots(asked) => self.snapshots(asked, &by).await,
            Request::DatasetSet { name, properties } => {
                let reply = self.set_dataset(&name, &properties, &by).await?;
                let set: Vec<String> = properties.into_iter().map(|(property, _)| property).collect();
                self.remount(&name, &set).await.map(|()| reply)
            }
            Request::DatasetUsage { name, whose } => self.usage(&name, whose).await,
            Request::FileProject(asked) => self.file_project(asked).await,
            Request::DatasetInherit { name, property, received } => {
                let reply = self.inherit_property(&name, &property, received, &by).await?;
                self.remount(&name, &[property]).await.map(|()| reply)
            }
            Request::NbdExports => self.nbd_exports().await,
            Request::Mounts => Ok(self.mounts()),
            Request::Mount(asked) => self.mount(&asked).await,
            Request::Unmount(asked) => self.unmount(&asked).await,
            Request::Tunables { names } => self.tell_tunables(&names),
            Request::TunableSet { settings } => {
                let names = settings.iter().map(|(name, _)| name.clone()).collect();
                let before = self.about_to_set(Kind::Tunables, "", names).await;
                let outcome = self.set_tunables(&settings);
                self.was_set(before, &by).await;
                outcome
            }
            Request::San(asked) => {
                let before = self.about_to(settings_of_san(&asked)).await;
                let outcome = self.san(asked).await;
                self.was_set(before, &by).await;
                outcome
            }
            Request::Shares(asked) => self.shares(asked, &by).await,
            Request::Services(asked) => {
                let before = self.about_to(settings_of_services(&asked)).await;
                let outcome = self.services(asked).await;
                self.was_set(before, &by).await;
                outcome
            }
            Request::Schema(asked) => self.ask_schema(asked),
            Request::Analytics(asked) => self.analytics(asked, &by).await,
            Request::Alerts(asked) => self.ask_alerts(asked).await,
            Request::Doctor(asked) => self.ask_doctor(asked, &by).await,
            Request::DeferredUpdates { pools } => self.deferred_updates(&pools).await,
            Request::ApplyUpdates { pool, features } => self.apply_updates(&pool, &features, &by).await,
            Request::ConfigurationBackup { to } => self.back_up(&to).await,
            Request::ConfigurationTell => self.tell_configuration(),
            Request::ConfigurationRestore { from } => {
                let reply = self.restore(&from).await?;
                self.follow_services().await;
                self.follow_alerts()?;
                self.follow_export();
                Ok(reply)
            }
            Request::ConfigurationTake { text } => {
                let reply = self.take_configuration(&text).await?;
                self.follow_services().await;
                self.follow_alerts()?;
                self.follow_export();
                Ok(reply)
            }
        }
    }

    fn shut_down(&self) -> Result<Reply> {
        if !self.0.config.is_daemon {
            return Err(ApiError::new(ErrorKind::NotFound, "no daemon runs in this home"));
        }
        self.0.asked_to_end.set();
        Ok(Reply::Done)
    }
}

impl Service for Appliance {
    fn call(&self, call: Call) -> Pin<Box<dyn Future<Output = Result<Reply>> + Send>> {
        let appliance = self.clone();
        Box::pin(async move {
            world::within(Arc::new(Requests), appliance.carry_out(call)).await.unwrap_or_else(|panic| {
                Err(ApiError::new(ErrorKind::Cancelled, format!("the request was not carried out: {panic}")))
            })
        })
    }
}

/// What is told of panics in requests that concern no pool alone.
#[derive(Debug)]
struct Requests;

impl Domain for Requests {
    fn panicked(&self, panic: &Panic) {
        tracing::error!("{panic}");
    }
}
