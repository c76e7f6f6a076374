//! `zpool import`.
//!
//! ```text
//!   labels: exported, destroyed                                                   imported
//!           in use, by another host                                               refused without -f
//!                   by this host: the process that they name runs                 refused without -f
//!                                 it has ended                                    imported
//!                                 not known: uberblocks are watched for a while   refused without -f if a new one comes
//!   uberblocks: devices went on without one another               refused without -f, which lets the newest win
//! ```

use crate::appliance::{Appliance, By};
use crate::error_text::{About, cannot, estranged};
use crate::home::Known;
use crate::pools::open_elsewhere::{self, Opener};
use crate::pools::{Open, Opening, busy, devices_of};
use api::{ApiError, ErrorKind, PoolChoice, PoolImport, Reply, Result, Rewind, WentBack};
use dsl::pool_props::{self, PoolProp, PoolSetting, When};
use pool::{OpenOptions, Pool};
use std::time::Duration;
use units::Error;
use vdev::Candidate;

/// The properties that make a difference when a pool is imported.
#[derive(Default)]
struct How {
    read_only: bool,
    altroot: Option<String>,
    is_passing: bool,
    /// To be set as soon as it is open.
    later: Vec<(String, String)>,
}

/// Which devices are to be kept, an administrator says.
fn refused(e: &Error, asked: &str) -> ApiError {
    match estranged(e) {
        None => cannot(About::Pool, &format!("import '{asked}'"), e),
        Some(estranged) => {
            let message = format!(
                "cannot import '{asked}': {estranged}\n\timport the devices alone that you want to keep, from a directory of \
                 their own with '-d'; with '-f' the newest state is copied over the others"
            );
            ApiError::new(ErrorKind::Invalid, message)
        }
    }
}

impl Appliance {
    pub(crate) async fn import_pool(&self, import: PoolImport, by: &By) -> Result<Reply> {
        let asked = match &import.pool {
            PoolChoice::Name(name) => name.clone(),
            PoolChoice::Guid(guid) => guid.to_string(),
        };
        let failed = |e: &Error| refused(e, &asked);
        let how = sort(&import.properties).map_err(|e| failed(&e))?;
        check_rewind(&import, how.read_only).map_err(|e| failed(&e))?;
        let candidate = self.choose(&import, &asked).await?;
        let name = import.new_name.clone().unwrap_or_else(|| candidate.name().to_string());
        dsl::name::check_pool(&name).map_err(|e| failed(&e))?;
        if !import.force {
            self.check_host(&candidate, how.read_only, &asked).await?;
        }

        let turn = self.0.turns.of(&name).await;
        if self.0.pools.lock().await.contains(&name) {
            let message = format!(
                "cannot import '{asked}': a pool with that name already exists; use the form 'zpool import <pool | id> \
                 <newpool>' to give it a new name"
            );
            return Err(ApiError::new(ErrorKind::Exists, message));
        }
        let devices: Vec<String> =
            candidate.devices.values().map(|d| d.path.to_string_lossy().into_owned()).collect();
        let opening = Opening {
            read_only: how.read_only,
            name: import.new_name.clone(),
            is_temporary: import.temporary,
            force: import.force || import.destroyed,
            missing_log: import.missing_log,
            copy_over: import.force,
            txg: import.rewind.and_then(|rewind| rewind.txg),
        };
        let opened = self.open_as_far_back(&candidate, opening, import.rewind).await;
        let Opened { pool, back } = match opened.map_err(|e| failed(&busy(e, &devices)))? {
            Outcome::Opened(opened) => opened,
            Outcome::Would(back) => return Ok(Reply::WouldGoBack(back)),
        };
        let known = Known {
            name: name.clone(),
            guid: pool.guid().0,
            devices: devices_of(&pool),
            read_only: how.read_only,
            altroot: how.altroot,
            passing: how.is_passing,
            temporary: import.temporary,
            txg: back.map(|back| back.txg),
            ..Known::default()
        };
        {
            let mut pools = self.0.pools.lock().await;
            pools.add(Open::new(pool.clone(), known, false));
            self.remember_done(&pools, &format!("'{name}' is imported"))?;
        }
        drop(turn);
        self.post_pool_event("pool_import", &pool);
        self.record(&pool, by).await.map_err(|e| failed(&e))?;
        let _ = self.remove_half_copies(&pool).await;
        for (property, value) in how.later {
            self.set_pool(&name, &property, &value, &By { command: String::new(), uid: by.uid }).await?;
        }
        let warning = if import.no_mount { None } else { self.mount_new(&name).await };
        Ok(Reply::Imported { name, warning, back })
    }

    /// Opens the pool in its newest state, or in the newest that can be read, as far back as it may.
    async fn open_as_far_back(
        &self,
        candidate: &Candidate,
        opening: Opening,
        rewind: Option<Rewind>,
    ) -> units::Result<Outcome> {
        let newest = |pool| Ok(Outcome::Opened(Opened { pool, back: None }));
        let Some(Rewind { dry_run, extreme, txg }) = rewind else {
            return newest(self.open_candidate(candidate, opening).await?);
        };
        if txg.is_some() {
            let pool = self.open_candidate(candidate, opening).await?;
            let times = pool::txgs_of(candidate).await?;
            let uberblock = pool.uberblock();
            let last = times.first().map_or(0, |(_, time)| *time);
            let discarded = last.saturating_sub(uberblock.timestamp);
            let back = WentBack { txg: uberblock.txg.0, time: uberblock.timestamp, discarded };
            return Ok(Outcome::Opened(Opened { pool, back: Some(back) }));
        }
        let how = |only_reading: bool| {
            let read_only = opening.read_only || only_reading || dry_run;
            OpenOptions { read_only, ..self.open_options(&opening) }
        };
        let (pool, back) = pool::open_back(candidate, how, extreme).await?;
        let back = back.map(|b| WentBack { txg: b.txg.0, time: b.time, discarded: b.discarded });
        if dry_run {
            pool.close().await?;
            return Ok(Outcome::Would(back));
        }
        match back {
            None => newest(pool),
            Some(back) if !opening.read_only => {
                pool.close().await?;
                Err(Error::unsupported(format!(
                    "its newest state cannot be read, and that of txg {} can: going back is for reading only in this version \
                     of Cenote, so add '-o readonly=on'",
                    back.txg
                )))
            }
            Some(_) => Ok(Outcome::Opened(Opened { pool, back })),
        }
    }

    async fn choose(&self, import: &PoolImport, asked: &str) -> Result<Candidate> {
        let is_it = |c: &Candidate| match &import.pool {
            PoolChoice::Name(name) => c.name() == name,
            PoolChoice::Guid(guid) => c.guid().0 == *guid,
        };
        let found = self.find_candidates(&import.search).await?;
        let mut matching: Vec<Candidate> =
            found.into_iter().filter(|c| is_it(c) && c.is_destroyed() == import.destroyed).collect();
        match matching.len() {
            0 => Err(self.not_found(import, asked).await),
            1 => Ok(matching.remove(0)),
            _ => {
                let message = format!(
                    "cannot import '{asked}': more than one matching pool; import by numeric ID instead"
                );
                Err(ApiError::new(ErrorKind::Exists, message))
            }
        }
    }

    async fn not_found(&self, import: &PoolImport, asked: &str) -> ApiError {
        let pools = self.0.pools.lock().await;
        let is_here = match &import.pool {
            PoolChoice::Name(name) => pools.contains(name),
            PoolChoice::Guid(guid) => pools.has_guid(*guid),
        };
        match is_here {
            true => {
                ApiError::new(ErrorKind::Exists, format!("cannot import '{asked}': it is imported already"))
            }
            false => {
                ApiError::new(ErrorKind::NotFound, format!("cannot import '{asked}': no such pool available"))
            }
        }
    }

    /// A pool that was not exported may be in use: on another host, or by another process of this one. To read it, it is
    /// enough that no process is known to write to it: what changes while it is read looks damaged.
    async fn check_host(&self, candidate: &Candidate, read_only: bool, asked: &str) -> Result<()> {
        let config = &candidate.config;
        if config.state != ondisk::PoolState::Active {
            return Ok(());
        }
        if read_only {
            return match open_elsewhere::opener(config.process.as_deref()) {
                Opener::Runs(_) => self.check_process(candidate, asked).await,
                Opener::Ended | Opener::Unknown => Ok(()),
            };
        }
        let Some((id, host)) = config.host.as_ref().filter(|(id, _)| *id != 0 && *id != self.0.host.id)
        else {
            return self.check_process(candidate, asked).await;
        };
        let message = format!(
            "cannot import '{asked}': pool was previously in use from another system, {host} (hostid={id:x}), and not \
             exported there; use 'zpool import -f' to import it all the same"
        );
        Err(ApiError::new(ErrorKind::Busy, message))
    }

    async fn check_process(&self, candidate: &Candidate, asked: &str) -> Result<()> {
        let in_use = |how: String| {
            let message = format!("cannot import '{asked}': {how}");
            Err(ApiError::new(ErrorKind::Busy, message))
        };
        match open_elsewhere::opener(candidate.config.process.as_deref()) {
            Opener::Runs(pid) => in_use(format!(
                "the pool is in use by process {pid}; only if these devices are a copy of that pool's, import it with \
                 'zpool import -f'"
            )),
            Opener::Ended => Ok(()),
            Opener::Unknown => {
                let timeout = self.0.tunables.get(tunables::Tunable::TxgTimeout);
                let patience = Duration::from_secs(timeout) + MARGIN;
                // What cannot be read is the business of opening it.
                if pool::is_active(candidate, patience).await.unwrap_or(false) {
                    return in_use(
                        "another process or host writes to the pool; export it there first".into(),
                    );
                }
                Ok(())
            }
        }
    }
}

/// A pool that was opened, and how far back.
struct Opened {
    pool: Pool,
    back: Option<WentBack>,
}

enum Outcome {
    Opened(Opened),
    Would(Option<WentBack>),
}

/// Whether what is asked goes together.
fn check_rewind(import: &PoolImport, read_only: bool) -> units::Result<()> {
    let Some(rewind) = import.rewind else { return Ok(()) };
    if import.temporary {
        return Err(Error::invalid("a temporary name (-t) and going back (-F, -T) do not go together"));
    }
    if rewind.txg.is_some() && !read_only {
        return Err(Error::unsupported(
            "going back to a txg (-T) is for reading only in this version of Cenote, so add '-o readonly=on'",
        ));
    }
    Ok(())
}

/// How much longer than between two transaction groups a pool is watched for a writer.
const MARGIN: Duration = Duration::from_secs(1);

fn sort(settings: &[(String, String)]) -> units::Result<How> {
    let mut how = How::default();
    for (name, text) in settings {
        match pool_props::parse_setting(name, text, When::Import)? {
            PoolSetting::Native(PoolProp::ReadOnly, value) => how.read_only = value.number() == Some(1),
            PoolSetting::Native(PoolProp::AltRoot, _) => how.altroot = Some(text.clone()),
            PoolSetting::Native(PoolProp::CacheFile, _) => how.is_passing = text == "none",
            _ => how.later.push((name.clone(), text.clone())),
        }
    }
    Ok(how)
}
