//! `zpool create`.
//!
//! ```text
//!   names and properties checked ─▶ devices looked at ─▶ whose are they? ─▶ cache and spare apart ─▶ pool::create
//! ```

use crate::appliance::{Appliance, By};
use crate::error_text::{About, cannot};
use crate::home::Known;
use crate::pools::devices;
use crate::pools::features;
use crate::pools::{Open, devices_of};
use api::{ApiError, ErrorKind, NewPool, Reply, Result};
use dsl::pool_props::{self, PoolProp, PoolSetting, When};
use dsl::props::{self, Limits, Prop, PropName, Types};
use ondisk::feature::DEFAULT_COMPATIBILITY;
use pool::CreateOptions;
use units::{Error, Kind};

/// Properties of a new pool, sorted by where they go.
#[derive(Default)]
struct Properties {
    ashift: u64,
    stored: Vec<(PoolProp, zap::Value)>,
    user: Vec<(String, String)>,
    features: Vec<(String, bool)>,
    compatibility: Option<String>,
    comment: Option<String>,
    altroot: Option<String>,
    is_passing: bool,
}

impl Appliance {
    pub(crate) async fn create_pool(&self, new: NewPool, by: &By) -> Result<Reply> {
        let failed = |e: &Error| cannot(About::Pool, &format!("create '{}'", new.name), e);
        dsl::name::check_pool(&new.name).map_err(|e| failed(&e))?;
        let properties = sort(&new.properties).map_err(|e| failed(&e))?;
        let read = |path: &str| std::fs::read_to_string(path);
        let features = features::choose(
            properties.compatibility.as_deref(),
            new.no_features,
            &properties.features,
            read,
        )?;
        let root_props = root_properties(&new).map_err(|e| failed(&e))?;

        devices::answer(&devices::named(&new.vdevs)).await.map_err(|e| failed(&e))?;
        let name = new.temporary_name.clone().unwrap_or_else(|| new.name.clone());
        let turn = self.0.turns.of(&name).await;
        let here = self.pools_now().await;
        if here.contains(&name) {
            return Err(failed(&Error::new(Kind::Exists, "create pool")));
        }
        let found = devices::look_at(&new.vdevs, new.force, &here).await.map_err(|e| failed(&e))?;
        drop(here);
        if let Some(why) = vdev::mismatch(&found.groups).filter(|_| !new.force) {
            let message =
                format!("invalid vdev specification: use '-f' to override the following errors: {why}");
            return Err(ApiError::new(ErrorKind::Invalid, message));
        }
        if new.dry_run {
            return Ok(Reply::Done);
        }
        let options = CreateOptions {
            name: new.name.clone(),
            groups: found.groups.clone(),
            ashift: properties.ashift as u32,
            features,
            root: made_with(&root_props),
            root_props,
            pool_props: properties.stored,
            compatibility: Some(properties.compatibility.unwrap_or_else(|| DEFAULT_COMPATIBILITY.into())),
            comment: properties.comment,
            host: self.0.host.clone(),
            cache: self.0.cache.clone(),
            hub: self.0.hub.clone(),
            tunables: self.0.tunables.clone(),
        };
        let pool = pool::create_as(options, new.temporary_name.clone()).await.map_err(|e| failed(&e))?;
        if let Err(e) = found.add_beside(&pool).await {
            // What failed was said; a pool that was never whole is of no use.
            let _ = pool.destroy().await;
            return Err(failed(&e));
        }
        let known = Known {
            name: name.clone(),
            guid: pool.guid().0,
            devices: devices_of(&pool),
            read_only: false,
            altroot: properties.altroot,
            passing: properties.is_passing,
            temporary: new.temporary_name.is_some(),
            ..Known::default()
        };
        {
            let mut pools = self.0.pools.lock().await;
            pools.add(Open::new(pool.clone(), known, false));
            self.remember_done(&pools, &format!("'{name}' is created"))?;
        }
        self.record(&pool, by).await.map_err(|e| failed(&e))?;
        drop(turn);
        self.post_pool_event("pool_create", &pool);
        for (property, value) in properties.user {
            self.set_pool(&name, &property, &value, &By { command: String::new(), uid: by.uid }).await?;
        }
        self.mount_new(&name).await;
        Ok(Reply::Done)
    }
}

fn sort(settings: &[(String, String)]) -> units::Result<Properties> {
    let mut sorted = Properties::default();
    for (name, text) in settings {
        match pool_props::parse_setting(name, text, When::Create)? {
            PoolSetting::Feature { name, enable } => sorted.features.push((name, enable)),
            PoolSetting::User(name, text) => sorted.user.push((name, text)),
            PoolSetting::Native(prop, value) => place(&mut sorted, prop, value, text)?,
        }
    }
    Ok(sorted)
}

fn place(sorted: &mut Properties, prop: PoolProp, value: props::Value, text: &str) -> units::Result<()> {
    match prop {
        PoolProp::Compatibility => sorted.compatibility = Some(text.into()),
        PoolProp::Comment => sorted.comment = Some(text.into()),
        PoolProp::AltRoot => sorted.altroot = Some(text.into()),
        PoolProp::CacheFile => sorted.is_passing = text == "none",
        PoolProp::Version if value.number() != Some(pool_props::VERSION_FEATURES) => {
            return Err(Error::unsupported("pools of a version before features cannot be created"));
        }
        PoolProp::Version => {}
        _ => {
            if prop == PoolProp::Ashift {
                sorted.ashift = value.number().unwrap_or(0);
            }
            sorted.stored.push((prop, stored(&value)));
        }
    }
    Ok(())
}

pub(crate) fn stored(value: &props::Value) -> zap::Value {
    match value {
        props::Value::Number(n) => zap::Value::from(*n),
        props::Value::Text(text) => zap::Value::text(text),
    }
}

/// Its root directory belongs to the user that runs the program, who could make nothing in it without being root.
pub(crate) fn new_of_ours() -> zpl::NewFileSystem {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    zpl::NewFileSystem { uid: uid.into(), gid: gid.into(), ..Default::default() }
}

/// What a pool's own file system is made with, which has no parent.
fn made_with(given: &[(PropName, props::Value)]) -> zpl::NewFileSystem {
    let once = |prop| {
        let found = given.iter().find(|(name, _)| *name == PropName::Native(prop));
        found.and_then(|(_, value)| value.number()).unwrap_or(0)
    };
    zpl::NewFileSystem {
        utf8only: once(Prop::Utf8Only),
        normalization: once(Prop::Normalization),
        casesensitivity: once(Prop::CaseSensitivity),
        ..new_of_ours()
    }
}

fn root_properties(new: &NewPool) -> units::Result<Vec<(PropName, props::Value)>> {
    let limits = Limits::default();
    let parse = |(name, text): &(String, String)| {
        props::parse_setting(name, text, Types::FILESYSTEM, props::When::Create, &limits)
    };
    let mut given = new.fs_properties.iter().map(parse).collect::<units::Result<Vec<_>>>()?;
    props::complete_at_create(&mut given)?;
    Ok(given)
}
