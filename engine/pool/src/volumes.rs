//! Datasets with something in them: making them, and opening volumes and file systems.

use crate::pool::Pool;
use dmu::Tx;
use dsl::NewDataset;
use dsl::props::{Prop, PropName, Value};
use ondisk::ObjsetType;
use units::{Error, Result};
use zpl::{FileSystem, WriteOptions};
use zvol::Volume;

/// What a new dataset is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    FileSystem(zpl::NewFileSystem),
    Volume { size: u64, block_size: u64 },
}

impl Pool {
    /// Makes a dataset with its first content.
    pub async fn create_dataset(
        &self,
        name: &str,
        content: Content,
        props: Vec<(PropName, Value)>,
    ) -> Result<()> {
        let name = name.to_string();
        self.change("create dataset", move |pool, tx| async move {
            pool.create_in(&tx, &name, content, &props).await
        })
        .await
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
            Content::FileSystem(new) => zpl::create(dataset.objset(), tx, new).await,
            Content::Volume { size, block_size } => {
                zvol::create(dataset.objset(), tx, size, block_size).await
            }
        }
    }

    /// Opens a volume, or a snapshot of one, which is read-only.
    pub async fn open_volume(&self, name: &str) -> Result<Volume> {
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
        volume.limit(dataset.room().clone());
        if let Some(log) = writable.then(|| self.intent_log_of(&dataset)).flatten() {
            volume.log_to(log);
        }
        Ok(volume)
    }

    /// Opens a file system, or a snapshot of one, for reading.
    pub async fn open_file_system(&self, name: &str) -> Result<FileSystem> {
        let dataset = self.0.dsl.open_by_name(name).await?;
        if dataset.objset().kind() != ObjsetType::Zfs {
            return Err(Error::invalid(format!("'{name}' is not a file system")));
        }
        if dataset.is_encrypted() {
            return Err(Error::new(units::Kind::Encrypted, format!("open file system '{name}'")));
        }
        FileSystem::open(name, dataset.objset()).await
    }

    /// Opens a file system to be changed.
    pub async fn open_file_system_for_writing(&self, name: &str) -> Result<FileSystem> {
        let found = self.0.dsl.find(name).await?;
        let dataset = self.0.dsl.open_dataset(found.id).await?;
        let set = dataset.objset();
        let refuse = |kind| Error::new(kind, format!("open file system '{name}'"));
        if set.kind() != ObjsetType::Zfs {
            return Err(Error::invalid(format!("'{name}' is not a file system")));
        }
        if dataset.is_encrypted() {
            return Err(refuse(units::Kind::Encrypted));
        }
        if self.0.read_only || dataset.is_snapshot() {
            return Err(refuse(units::Kind::ReadOnly));
        }
        let phys = set.phys();
        if phys.zil_header.claim_txg != units::Txg::NONE {
            let why = "its intent log holds writes that could not be replayed";
            return Err(refuse(units::Kind::Busy).because(why));
        }
        let mut options = self.write_options(&found, &dataset).await?;
        options.log = self.intent_log_of(&dataset);
        FileSystem::open_for_writing(name, set, options).await
    }

    /// What writing to a file system goes by.
    pub(crate) async fn write_options(
        &self,
        found: &dsl::Found,
        dataset: &dsl::Dataset,
    ) -> Result<WriteOptions> {
        let levels = self.0.dsl.levels_of(found).await?;
        let record_size = levels.chain().number(Prop::RecordSize);
        let (txgs, room) = (self.0.txgs.clone(), Some(dataset.room().clone()));
        Ok(WriteOptions { txgs, room, record_size, log: None })
    }
}
