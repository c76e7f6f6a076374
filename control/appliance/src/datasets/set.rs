//! `zfs set` and `zfs inherit`.

use crate::appliance::{Appliance, By};
use crate::datasets::quotas::Quota;
use crate::datasets::{max_block_size, parity_groups};
use crate::error_text::{About, cannot};
use crate::pools::Access;
use api::changes::Kind;
use api::{ApiError, ErrorKind, Reply, Result};
use disk::SharedVolume;
use dsl::props::{self, Limits, Prop, PropName, Types, Value, When};
use dsl::thick::reservation_for;
use ondisk::ObjsetType;
use pool::Pool;
use units::Error;

impl Appliance {
    pub(crate) async fn set_dataset(
        &self,
        name: &str,
        settings: &[(String, String)],
        by: &By,
    ) -> Result<Reply> {
        // A block size is noted when all blocks have it.
        let names = settings.iter().map(|(property, _)| property.clone());
        let names = names.filter(|property| property != "volblocksize").collect();
        let before = self.about_to_set(Kind::Dataset, name, names).await;
        let outcome = self.set_properties(name, settings, by).await;
        self.was_set(before, by).await;
        outcome
    }

    async fn set_properties(&self, name: &str, settings: &[(String, String)], by: &By) -> Result<Reply> {
        let failed = |e: &Error| cannot(About::Dataset, &format!("set property for '{name}'"), e);
        let open = self.pool_of(name, Access::Change).await?;
        let pool = &open.pool;
        let facts = Facts::of(pool, name).await.map_err(|e| not_there(name, e))?;
        let is_block_size = |property: &str| property == "volblocksize" && facts.types == Types::VOLUME;
        let (block_size, settings): (Vec<_>, Vec<_>) =
            settings.iter().partition(|(property, _)| is_block_size(property));
        let block_size = block_size
            .last()
            .map(|(name, text)| props::parse_setting(name, text, facts.types, When::Create, &facts.limits))
            .transpose()
            .map_err(|e| failed(&e))?;
        // All are read before the first is set.
        let quotas = settings
            .iter()
            .map(|(name, text)| Ok(Quota::parse(name)?.map(|quota| (quota, name.as_str(), text.as_str()))));
        let quotas: Vec<_> = quotas.collect::<units::Result<Vec<_>>>().map_err(|e| failed(&e))?;
        let settings = settings.iter().zip(&quotas).filter(|(_, quota)| quota.is_none()).map(|(s, _)| *s);
        let parse = |(property, text): &(String, String)| {
            props::parse_setting(property, text, facts.types, When::Later, &facts.limits)
        };
        let parsed = settings.map(parse).collect::<units::Result<Vec<_>>>().map_err(|e| failed(&e))?;
        for (prop, value) in parsed {
            match &prop {
                PropName::Native(Prop::VolSize) => self.resize(pool, name, &facts, &value).await,
                PropName::Native(Prop::RefReservation) if value == Value::AUTO => {
                    set(pool, name, prop, Value::Number(facts.full(pool, facts.volsize))).await
                }
                _ => set(pool, name, prop, value).await,
            }
            .map_err(|e| failed(&e))?;
        }
        for (quota, property, text) in quotas.into_iter().flatten() {
            quota.set(pool, name, property, text).await.map_err(|e| failed(&e))?;
        }
        if let Some((_, value)) = block_size {
            let block = value.number().unwrap_or(0);
            self.change_block_size(&open, name, block, by).await.map_err(|e| failed(&e))?;
        }
        self.record(pool, by).await.map_err(|e| failed(&e))?;
        Ok(Reply::Done)
    }

    /// A reservation of the whole size follows the size: before it when it grows, so that the space is there.
    async fn resize(&self, pool: &Pool, name: &str, facts: &Facts, value: &Value) -> units::Result<()> {
        let size = value.number().unwrap_or(0);
        let follows = facts.refreservation != 0 && facts.refreservation == facts.full(pool, facts.volsize);
        let reservation =
            || set(pool, name, PropName::Native(Prop::RefReservation), Value::Number(facts.full(pool, size)));
        if follows && size > facts.volsize {
            reservation().await?;
        }
        let steady = match self.0.volumes.get(name) {
            Some(served) => served.steady().await?,
            None => SharedVolume::new(name, pool.open_volume(name).await?).steady().await?,
        };
        let volume = steady.volume.clone();
        let of = name.to_string();
        let resized = pool.change("resize volume", move |pool, tx| async move {
            pool.dsl().touch(&of, Some(&PropName::Native(Prop::VolSize)));
            volume.resize(&tx, size).await
        });
        resized.await?;
        drop(steady);
        if follows && size < facts.volsize {
            reservation().await?;
        }
        Ok(())
    }

    pub(crate) async fn inherit_property(
        &self,
        name: &str,
        property: &str,
        received: bool,
        by: &By,
    ) -> Result<Reply> {
        let before = self.about_to_set(Kind::Dataset, name, vec![property.into()]).await;
        let outcome = self.inherit(name, property, received, by).await;
        self.was_set(before, by).await;
        outcome
    }

    async fn inherit(&self, name: &str, property: &str, received: bool, by: &By) -> Result<Reply> {
        let failed = |e: &Error| cannot(About::Dataset, &format!("inherit {property} for '{name}'"), e);
        let prop = PropName::parse(property).map_err(|e| ApiError::new(ErrorKind::Invalid, e.to_string()))?;
        let open = self.pool_with(name, Access::Change).await?;
        let dataset = name.to_string();
        let inherited = open.pool.change("inherit property", move |pool, tx| async move {
            pool.dsl().inherit(&tx, &dataset, &prop, received).await
        });
        inherited.await.map_err(|e| failed(&e))?;
        self.record(&open.pool, by).await.map_err(|e| failed(&e))?;
        Ok(Reply::Done)
    }
}

fn not_there(name: &str, e: Error) -> ApiError {
    cannot(About::Dataset, &format!("open '{name}'"), &e)
}

async fn set(pool: &Pool, name: &str, prop: PropName, value: Value) -> units::Result<()> {
    let name = name.to_string();
    pool.change(
        "set property",
        move |pool, tx| async move { pool.dsl().set(&tx, &name, &prop, &value).await },
    )
    .await
}

/// What a setting depends on.
struct Facts {
    types: Types,
    limits: Limits,
    volsize: u64,
    volblocksize: u64,
    refreservation: u64,
    copies: u64,
}

impl Facts {
    async fn of(pool: &Pool, name: &str) -> units::Result<Facts> {
        let _reading = pool.reading().await;
        let stats = pool.dsl().stats(name).await?;
        let mut numbers = [0; 5];
        let wanted = [Prop::VolSize, Prop::VolBlockSize, Prop::RefReservation, Prop::Copies, Prop::Version];
        for (number, prop) in numbers.iter_mut().zip(wanted) {
            let shown = stats.get(&PropName::Native(prop)).await?;
            *number = shown.and_then(|(value, _)| value.number()).unwrap_or(0);
        }
        let [volsize, volblocksize, refreservation, copies, zpl_version] = numbers;
        let is_volume = stats.kind == ObjsetType::Zvol;
        let limits = Limits {
            max_block_size: max_block_size(pool),
            encrypted: false,
            zpl_version,
            volblocksize: is_volume.then_some(volblocksize),
        };
        Ok(Facts { types: stats.types(), limits, volsize, volblocksize, refreservation, copies })
    }

    /// What a thick volume of `size` reserves.
    fn full(&self, pool: &Pool, size: u64) -> u64 {
        reservation_for(size, self.volblocksize, self.copies, &parity_groups(pool))
    }
}
