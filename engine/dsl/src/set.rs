//! Setting and inheriting properties, and the few that are more than a word in a ZAP.
//!
//! ```text
//!   quota            also in the directory
//!   reservation      also in the directory; charged to its parent
//!   refreservation   charged to its directory, as far as the dataset does not use it
//! ```

use dmu::Tx;
use units::{Error, Kind, ObjectId, Result};
use world::Boxed;

use crate::core::versions;
use crate::dsl::Dsl;
use crate::levels;
use crate::phys::DatasetPhys;
use crate::props::effective::{HAS_RECEIVED, plan_inherit, plan_set};
use crate::props::{Prop, PropName, Value};
use crate::space::{self, Delta, DirSpace, Reach, Used};
use crate::tree::Found;
use crate::zaps;

impl Dsl {
    /// Checks a setting that was read by [`crate::props::parse_setting`] against the pool and the dataset.
    pub async fn check_set(&self, name: &str, prop: &PropName, value: &Value) -> Result<()> {
        let found = self.find(name).await?;
        self.check_features(prop, value)?;
        let PropName::Native(native) = prop else { return Ok(()) };
        if found.is_snapshot() {
            return Err(Error::invalid("this property can not be modified for snapshots"));
        }
        let doing = || format!("set '{}' of '{name}'", native.name());
        let number = value.number().unwrap_or(0);
        match native {
            Prop::Quota => check_quota(&found, number).map_err(|why| no_space(doing(), why)),
            Prop::Reservation => self.check_reservation(&found, number, doing()).await,
            Prop::RefReservation => self.check_refreservation(&found, number, doing()).await,
            Prop::VolSize | Prop::Version => {
                Err(Error::invalid(format!("'{}' is set by what is inside the dataset", native.name())))
            }
            _ => Ok(()),
        }
    }

    /// Sets a property on a dataset, or a user property on a snapshot.
    pub fn set<'a>(
        &'a self,
        tx: &'a Tx,
        name: &'a str,
        prop: &'a PropName,
        value: &'a Value,
    ) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            self.check_set(name, prop, value).await?;
            let found = self.find(name).await?;
            self.admit(reach_of(prop), 1, || format!("set property '{}' of '{name}'", prop.as_str())).await?;
            if found.is_snapshot() {
                self.set_on_snapshot(tx, &found, prop, value).await?;
            } else {
                self.store_setting(tx, found.dir_id, prop, value).await?;
                self.refresh_policies(found.dir_id).await?;
                self.touch(name, Some(prop));
            }
            let text = match value {
                Value::Number(n) => n.to_string(),
                Value::Text(text) => text.clone(),
            };
            self.record_event(tx, "set", &format!("{}={text}", prop.as_str()), Some((name, found.id))).await
        })
    }

    /// Takes back what was set; with `to_received`, what came with a stream counts again.
    pub fn inherit<'a>(
        &'a self,
        tx: &'a Tx,
        name: &'a str,
        prop: &'a PropName,
        to_received: bool,
    ) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            if let PropName::Native(native) = prop {
                check_inherit(*native)?;
            }
            let found = self.find(name).await?;
            self.admit(reach_of(prop), 1, || format!("inherit property '{}' of '{name}'", prop.as_str()))
                .await?;
            let props = if found.is_snapshot() { found.phys.props } else { found.dir.props };
            let Some(props) = props.some() else { return Ok(()) };
            let table = self.core.table(props).await?;
            let was_received =
                self.core.version() >= versions::RECEIVED_PROPS && table.contains(HAS_RECEIVED).await?;
            let before = self.number_of(found.dir_id, prop).await?;
            levels::write(&table, tx, &plan_inherit(prop, to_received, was_received)).await?;
            let after = self.number_of(found.dir_id, prop).await?;
            if !found.is_snapshot() {
                self.follow(tx, found.dir_id, prop, before, after).await?;
                self.refresh_policies(found.dir_id).await?;
                self.touch(name, Some(prop));
            }
            self.record_event(tx, "inherit", &format!("{}=", prop.as_str()), Some((name, found.id))).await
        })
    }

    /// Writes a setting where it belongs, without checks.
    pub(crate) async fn store_setting(
        &self,
        tx: &Tx,
        dir: ObjectId,
        prop: &PropName,
        value: &Value,
    ) -> Result<()> {
        if !is_stored(prop) {
            return Ok(());
        }
        let (_, phys) = self.core.dir(dir).await?;
        let before = self.number_of(dir, prop).await?;
        let table = self.core.table(phys.props).await?;
        levels::write(&table, tx, &plan_set(prop, value)).await?;
        self.follow(tx, dir, prop, before, value.number().unwrap_or(0)).await
    }

    async fn number_of(&self, dir: ObjectId, prop: &PropName) -> Result<u64> {
        match prop {
            PropName::Native(prop @ (Prop::Quota | Prop::Reservation | Prop::RefReservation)) => {
                Ok(self.own_level(dir).await?.chain().number(*prop))
            }
            _ => Ok(0),
        }
    }

    /// Lets the space of directories follow a property that has changed.
    async fn follow(&self, tx: &Tx, dir: ObjectId, prop: &PropName, before: u64, after: u64) -> Result<()> {
        let PropName::Native(prop) = prop else { return Ok(()) };
        match prop {
            Prop::Quota => self.core.update_dir(tx, dir, |dir| dir.space.quota = after).await,
            Prop::Reservation => {
                self.change_space(tx, dir, |chain| space::set_reservation(chain, after)).await
            }
            Prop::RefReservation => {
                let (_, dir_phys) = self.core.dir(dir).await?;
                let unique = self.core.dataset(dir_phys.head).await?.1.unique;
                let delta = space::difference(after.saturating_sub(unique), before.saturating_sub(unique));
                self.charge(tx, dir, Used::RefReserved, Delta::used(delta)).await
            }
            _ => Ok(()),
        }
    }

    pub(crate) async fn set_on_snapshot(
        &self,
        tx: &Tx,
        found: &Found,
        prop: &PropName,
        value: &Value,
    ) -> Result<()> {
        let table = match found.phys.props.some() {
            Some(id) => self.core.table(id).await?,
            None => {
                let table = zaps::create(self.core.mos(), tx, ondisk::ObjectType::DSL_PROPS).await?;
                let id = table.blocks().id();
                self.core.update_dataset(tx, found.id, |phys| phys.props = id).await?;
                table
            }
        };
        levels::write(&table, tx, &plan_set(prop, value)).await
    }

    async fn check_reservation(&self, found: &Found, new: u64, doing: String) -> Result<()> {
        let space = found.dir.space;
        let more = new.max(space.used).saturating_sub(space.reserved.max(space.used));
        if more == 0 {
            return Ok(());
        }
        if space.quota != 0 && new > space.quota {
            return Err(no_space(doing, "larger than the quota".into()));
        }
        let available = match found.dir.parent.some() {
            Some(parent) => self.available_in(parent).await?,
            None => self.pool_space().usable(Reach::Normal).saturating_sub(space.used),
        };
        if more > available {
            return Err(no_space(doing, format!("{} available", units::pretty_size(available))));
        }
        Ok(())
    }

    async fn check_refreservation(&self, found: &Found, new: u64, doing: String) -> Result<()> {
        let head = self.head_space(found.dir_id, &found.phys).await?;
        let more = new.max(head.unique).saturating_sub(head.refreservation.max(head.unique));
        if more == 0 {
            return Ok(());
        }
        if head.refquota != 0 && new > head.refquota {
            return Err(no_space(doing, "larger than the refquota".into()));
        }
        let available = self.available_in(found.dir_id).await?;
        if more > available {
            return Err(no_space(doing, format!("{} available", units::pretty_size(available))));
        }
        Ok(())
    }

    /// What a directory may still use.
    pub(crate) async fn available_in(&self, dir: ObjectId) -> Result<u64> {
        let chain: Vec<DirSpace> = self.chain(dir).await?.into_iter().map(|(_, phys)| phys.space).collect();
        Ok(space::available(&chain, self.pool_space().usable(Reach::Normal)))
    }

    /// What a dataset without quotas and reservations may still write: the root's `available`.
    pub async fn available_to_all(&self) -> Result<u64> {
        self.available_in(self.root).await
    }

    /// What a head dataset may still write: the `available` property.
    pub async fn available(&self, dir: ObjectId, phys: &DatasetPhys) -> Result<u64> {
        let head = self.head_space(dir, phys).await?;
        Ok(head.available(self.available_in(dir).await?))
    }
}

/// Quotas and reservations are ways out of a full pool.
fn reach_of(prop: &PropName) -> Reach {
    use Prop::*;
    match prop {
        PropName::Native(Quota | RefQuota | Reservation | RefReservation) => Reach::ExtraReserved,
        _ => Reach::Reserved,
    }
}

fn no_space(doing: String, why: String) -> Error {
    Error::new(Kind::NoSpace, doing).because(why)
}

fn check_quota(found: &Found, new: u64) -> Result<(), String> {
    let space = found.dir.space;
    if new != 0 && (new < space.reserved || new < space.used) {
        return Err("size is less than current used or reserved space".into());
    }
    Ok(())
}

/// What has no entry of its own: it is inside the file system or volume. A block size has one that says it was asked for.
fn is_stored(prop: &PropName) -> bool {
    use Prop::*;
    !matches!(
        prop,
        PropName::Native(VolSize | Version | Utf8Only | Normalization | CaseSensitivity | Encryption)
    )
}

fn check_inherit(prop: Prop) -> Result<()> {
    let row = prop.row();
    if row.setting.is_readonly() {
        return Err(Error::invalid(format!("'{}' property is read-only", row.name)));
    }
    // A reservation or quota is taken back by setting it to none; `inherit` does so as well for those that have one.
    let has_none = matches!(prop, Prop::Quota | Prop::Reservation | Prop::RefQuota | Prop::RefReservation);
    if !row.setting.is_inheritable() && !has_none && !matches!(prop, Prop::CanMount) {
        return Err(Error::invalid(format!("'{}' property cannot be inherited", row.name)));
    }
    Ok(())
}
