//! Opening pools from their images.

use std::path::PathBuf;
use std::sync::Arc;

use pool::{Candidate, Host, OpenOptions, Pool, VerifyReport};

async fn find(images: Vec<PathBuf>, name: &str) -> Candidate {
    let devices = images.into_iter().map(vdev::Device::whole).collect();
    let found = pool::scan(devices).await;
    found.into_iter().find(|c| c.config.name == name).unwrap_or_else(|| panic!("{name} is not there"))
}

pub async fn open(images: Vec<PathBuf>, name: &str, read_only: bool) -> units::Result<Pool> {
    let options = OpenOptions {
        read_only,
        name: None,
        host: Host { id: 1, name: "interop".into() },
        force: true,
        cache: Arc::new(arc::Cache::new(64 << 20)),
        tunables: Default::default(),
    };
    pool::open(&find(images, name).await, options).await
}

/// Every block of the pool is good, if need be by way of its redundancy.
pub async fn verify(pool: &Pool) -> VerifyReport {
    let report = pool.verify(|_| ()).await.unwrap();
    assert!(report.is_sound(), "{:#?}", report.damage);
    report
}
