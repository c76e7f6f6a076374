//! What `zpool import` lists: pools on devices that are not imported here.

use crate::appliance::Appliance;
use crate::pools::vdevs;
use api::{Importable, Reply, Result};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use units::Error;
use vdev::{Candidate, Device};

/// Where devices are found when no directory is given.
const PLACES: [&str; 3] = ["/dev/disk/by-id", "/dev/mapper", "/dev"];

const UNAVAILABLE: &str = "UNAVAIL";

impl Appliance {
    pub(crate) async fn importable(&self, search: &[String], destroyed: bool) -> Result<Reply> {
        let found = self.find_candidates(search).await?;
        let shown = found.iter().filter(|c| c.is_destroyed() == destroyed);
        Ok(Reply::Importable(shown.map(|c| self.describe_candidate(c)).collect()))
    }

    /// The pools on the devices of `search` that are not imported already.
    pub(crate) async fn find_candidates(&self, search: &[String]) -> Result<Vec<Candidate>> {
        let devices =
            self.devices(search).await.map_err(|e| api::ApiError::new(e.kind().into(), e.to_string()))?;
        let mut found = pool::scan(devices).await;
        let pools = self.0.pools.lock().await;
        found.retain(|c| !pools.has_guid(c.guid().0));
        Ok(found)
    }

    async fn devices(&self, search: &[String]) -> units::Result<Vec<Device>> {
        let mut devices = Vec::new();
        if search.is_empty() {
            let home = self.0.config.home.disks();
            for place in PLACES.iter().map(Path::new).chain([home.as_path()]) {
                // A place that is not there holds nothing.
                devices
                    .extend(world::list_dir(place).await.unwrap_or_default().into_iter().map(Device::whole));
            }
        }
        for path in search.iter().map(PathBuf::from) {
            match world::list_dir(&path).await {
                Ok(found) => devices.extend(found.into_iter().map(Device::whole)),
                Err(e) if e.kind() == ErrorKind::NotADirectory => devices.push(Device::whole(path)),
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    return Err(Error::invalid(format!(
                        "cannot look for pools in '{}': no such directory or device",
                        path.display()
                    )));
                }
                Err(e) => {
                    return Err(Error::new(units::Kind::Io, "look for pools in")
                        .at(path.display())
                        .because(e));
                }
            }
        }
        Ok(devices)
    }

    fn describe_candidate(&self, candidate: &Candidate) -> Importable {
        let config = &candidate.config;
        let is_foreign = |id: u64| id != 0 && id != self.0.host.id;
        let is_active = config.state == ondisk::PoolState::Active;
        let names: Vec<String> = config.features_for_read.iter().map(|(name, _)| name.to_string()).collect();
        let verdict = ondisk::feature::judge(names.iter().map(String::as_str), []);
        let is_unsupported = verdict.support == ondisk::feature::Support::No;
        let mut vdevs = vdevs::of_candidate(candidate);
        if is_unsupported {
            // Whatever its devices say of themselves, and whichever of them these features do without.
            UNAVAILABLE.clone_into(&mut vdevs.state);
            vdevs.why = Some("unsupported feature(s)".into());
            vdevs.children.retain(|top| top.kind != "missing");
        }
        let health = if is_unsupported { UNAVAILABLE } else { candidate.health().word() };
        Importable {
            name: candidate.name().into(),
            guid: candidate.guid().0,
            health: health.into(),
            destroyed: candidate.is_destroyed(),
            exported: config.state == ondisk::PoolState::Exported,
            version: config.version,
            comment: config.comment.clone(),
            other_host: config
                .host
                .clone()
                .filter(|(id, _)| is_active && is_foreign(*id))
                .map(|(id, name)| (name, id)),
            unsupported: if is_unsupported { verdict.because } else { Vec::new() },
            vdevs,
        }
    }
}
