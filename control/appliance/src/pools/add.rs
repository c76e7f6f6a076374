//! `zpool add`.

use crate::appliance::{Appliance, By};
use crate::error_text::{About, cannot};
use crate::pools::Access;
use crate::pools::devices;
use api::{ApiError, ErrorKind, NewVdevs, Reply, Result};
use dsl::pool_props::PoolProp;
use dsl::props::{Source, Value};
use pool::Pool;
use units::{Error, Guid, Txg};
use vdev::{Bias, Group, Spec};

impl Appliance {
    pub(crate) async fn add_vdevs(&self, new: NewVdevs, by: &By) -> Result<Reply> {
        let failed = |e: &Error| cannot(About::Pool, &format!("add to '{}'", new.pool), e);
        self.pool(&new.pool, Access::Change).await?;
        devices::answer(&devices::named(&new.vdevs)).await.map_err(|e| failed(&e))?;
        let _turn = self.0.turns.of(&new.pool).await;
        let open = self.pool(&new.pool, Access::Change).await?;
        let here = self.pools_now().await;
        let found = devices::look_at(&new.vdevs, new.allow_in_use, &here).await.map_err(|e| failed(&e))?;
        let tree = open.pool.tree().spec();
        let mismatch = vdev::mismatch_with(&tree, &found.groups).filter(|_| !new.allow_replication_mismatch);
        if let Some(why) = mismatch {
            let message =
                format!("invalid vdev specification: use '-f' to override the following errors: {why}");
            return Err(ApiError::new(ErrorKind::Invalid, message));
        }
        let ashift = match new.ashift {
            Some(ashift) => ashift,
            None => own_ashift(&open.pool).await.map_err(|e| failed(&e))?,
        } as u32;
        if !new.allow_ashift_mismatch {
            check_ashift(&open.pool, &found.groups, ashift).map_err(|e| failed(&e))?;
        }
        if new.dry_run {
            return Ok(Reply::Done);
        }
        if !found.groups.is_empty() {
            open.pool.add_vdevs(&found.groups, ashift).await.map_err(|e| failed(&e))?;
        }
        let beside = found.add_beside(&open.pool).await;
        self.note_devices(&new.pool).await?;
        beside.map_err(|e| failed(&e))?;
        self.post_pool_event("vdev_add", &open.pool);
        self.record(&open.pool, by).await.map_err(|e| failed(&e))?;
        Ok(Reply::Done)
    }
}

/// The pool's property, if it was set; else 0.
pub(crate) async fn own_ashift(pool: &Pool) -> units::Result<u64> {
    let _reading = pool.reading().await;
    let properties = pool.properties().await?;
    let own = properties.iter().find(|p| p.name == PoolProp::Ashift.name() && p.source == Source::Local);
    Ok(own.and_then(|p| p.value.as_ref()).and_then(Value::number).unwrap_or(0))
}

/// In a pool whose vdevs all have one sector size, another is probably a mistake that cannot be undone.
fn check_ashift(pool: &Pool, groups: &[Group], ashift: u32) -> units::Result<()> {
    let mut own: Vec<u32> =
        pool.tree().tops().iter().filter(|t| t.bias() == Bias::Normal).map(|t| t.ashift).collect();
    own.dedup();
    let [own] = own[..] else { return Ok(()) };
    let specs = Spec::create_tops(groups, 0, ashift, Txg::NONE, || Guid(0))?;
    match specs.iter().filter_map(|s| s.ashift).find(|a| *a != u64::from(own)) {
        None => Ok(()),
        Some(other) => Err(Error::invalid(format!(
            "adding devices with different physical sector sizes is not allowed: the pool's vdevs have ashift={own}, a new \
             one would have {other}; use '-o ashift={own}', or '-f' to add it all the same"
        ))),
    }
}
