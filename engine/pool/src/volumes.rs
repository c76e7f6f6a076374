//! Datasets with something in them: making them, and opening volumes. File systems are opened in `file_systems.rs`.

use crate::file_systems::{accounting, default_indirect_shift};
use crate::pool::Pool;
use dmu::Tx;
use dsl::NewDataset;
use dsl::props::{PropName, Value};
use ondisk::ObjsetType;
use units::{Error, Result};
use world::Boxed;
use zvol::Volume;

/// What a new dataset is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    FileSystem(zpl::NewFileSystem),
    Volume { size: u64, block_size: u64 },
}

impl Pool {
    /// Makes a dataset with its first content.
    pub fn create_dataset<'a>(
        &'a self,
        name: &'a str,
        content: Content,
        props: Vec<(PropName, Value)>,
    ) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            let name = name.to_string();
            self.change("create dataset", move |pool, tx| async move {
                pool.create_in(&tx, &name, content, &props).await
            })
            .await
        })
    }

    async fn create_in(
        &self,
        tx: &Tx,
        name: &str,
        content: Content,
        props: &[(PropName, Value)],
    ) -> Result<()> {
        let kind = match content {
            Content::FileSystem(_) => ObjsetType::Zfs,
            Content::Volume { size, block_size } => {
                zvol::check(size, block_size)?;
                ObjsetType::Zvol
            }
        };
        let dataset = self.0.dsl.create(tx, &NewDataset { name, kind, props }).await?;
        match content {
            Content::FileSystem(new) => {
                let new = zpl::NewFileSystem { accounting: accounting(&self.0.dsl), ..new };
                zpl::create(dataset.objset(), tx, new).await
            }
            Content::Volume { size, block_size } => {
                let shift = default_indirect_shift(&self.0.tunables);
                zvol::create(dataset.objset(), tx, size, block_size, shift).await
            }
        }
    }

    /// Opens a volume, or a snapshot of one, which is read-only.
    pub fn open_volume<'a>(&'a self, name: &'a str) -> Boxed<'a, Result<Volume>> {
        Box::pin(async move { self.guard(self.open_volume_in(name)).await })
    }

    async fn open_volume_in(&self, name: &str) -> Result<Volume> {
        let dataset = self.0.dsl.open_by_name(name).await?;
        if dataset.objset().kind() != ObjsetType::Zvol {
            return Err(Error::invalid(format!("'{name}' is not a volume")));
        }
        if dataset.is_encrypted() {
            return Err(Error::new(units::Kind::Encrypted, format!("open volume '{name}'")));
        }
        let writable = !self.0.read_only && !dataset.is_snapshot();
        if writable && dataset.objset().phys().zil_header.claim_txg != units::Txg::NONE {
            return Err(Error::new(units::Kind::Busy, format!("open volume '{name}'"))
                .because("its intent log holds writes that could not be replayed"));
        }
        let volume = Volume::open(name, dataset.objset(), writable.then(|| self.0.txgs.clone())).await?;
        volume.limit(dataset.space_reservation().clone());
        volume.tell_panics(self.domain());
        if let Some(log) = writable.then(|| self.intent_log_of(&dataset)).flatten() {
            volume.log_to(log);
        }
        Ok(volume)
    }
}
