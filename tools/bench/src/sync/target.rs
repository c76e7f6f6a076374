//! Two targets on which a write is over when it is durable.

use std::sync::Arc;
use units::Result;
use workload::{DiskTarget, Target, VolumeTarget};
use world::{Buf, Pending};

/// A file: each write is followed by a flush of its own.
#[derive(Clone, Debug)]
pub(super) struct SyncedFile(pub DiskTarget);

impl Target for SyncedFile {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read(&self, offset: u64, len: u32) -> Pending<Result<Vec<Buf>>> {
        self.0.read(offset, len)
    }

    fn write(&self, offset: u64, data: Buf) -> Pending<Result<()>> {
        let file = self.0.clone();
        Box::pin(async move {
            file.write(offset, data).await?;
            file.flush().await
        })
    }

    fn flush(&self) -> Pending<Result<()>> {
        self.0.flush()
    }
}

/// A volume: each write says that it must be durable.
#[derive(Clone, Debug)]
pub(super) struct FuaTarget(pub Arc<dyn nbd::Volume>);

impl Target for FuaTarget {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read(&self, offset: u64, len: u32) -> Pending<Result<Vec<Buf>>> {
        VolumeTarget(self.0.clone()).read(offset, len)
    }

    fn write(&self, offset: u64, data: Buf) -> Pending<Result<()>> {
        self.0.write(offset, vec![data], true)
    }

    /// There is nothing left to be made durable.
    fn flush(&self) -> Pending<Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
