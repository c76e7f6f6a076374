//! Opening pools from their images.

pub mod new;
pub mod tree;

use std::path::PathBuf;
use std::sync::Arc;

use pool::{Candidate, Host, OpenOptions, Pool, VerifyReport};
use sha2::{Digest, Sha256};

async fn find(images: Vec<PathBuf>, name: &str) -> Candidate {
    let devices = images.into_iter().map(vdev::Device::whole).collect();
    let found = pool::scan(devices).await;
    found.into_iter().find(|c| c.config.name == name).unwrap_or_else(|| panic!("{name} is not there"))
}

pub async fn open(images: Vec<PathBuf>, name: &str, read_only: bool) -> units::Result<Pool> {
    pool::open(&find(images, name).await, options(read_only)).await
}

/// Opens a pool although a log device is missing.
pub async fn open_without_log(images: Vec<PathBuf>, name: &str) -> units::Result<Pool> {
    let options = OpenOptions { missing_log: true, ..options(false) };
    pool::open(&find(images, name).await, options).await
}

fn options(read_only: bool) -> OpenOptions {
    OpenOptions {
        read_only,
        name: None,
        host: Host::new(1, "interop"),
        force: true,
        missing_log: false,
        copy_over: false,
        cache: Arc::new(arc::Cache::new(64 << 20)),
        hub: Default::default(),
        tunables: Default::default(),
    }
}

/// How much of a volume is read at once.
const CHUNK: u64 = 1 << 20;

/// SHA-256 of a whole volume, in hexadecimal.
pub async fn digest(volume: &zvol::Volume) -> String {
    let mut hash = Sha256::new();
    let mut at = 0;
    while at < volume.size() {
        let length = CHUNK.min(volume.size() - at);
        for part in volume.read(at, length).await.unwrap() {
            hash.update(&part[..]);
        }
        at += length;
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Every block of the pool is good, if need be by way of its redundancy.
pub async fn verify(pool: &Pool) -> VerifyReport {
    let report = pool.verify(|_| ()).await.unwrap();
    assert!(report.is_sound(), "{:#?}", report.damage);
    report
}
