//! Making, renaming and destroying datasets.

mod closing;
mod file_projects;
pub(crate) mod migration;
mod query;
pub(crate) mod quotas;
mod set;
mod snapshots;
mod usage;

use crate::appliance::{Appliance, By};
use crate::datasets::closing::END_THEM;
use crate::datasets::quotas::Quota;
use crate::error_text::{About, cannot};
use crate::pools::{Access, Open, exists, new_of_ours};
use crate::shares::masks;
use api::{ApiError, ErrorKind, NewDataset, NewKind, Reply, Result};
use dsl::props::{self, Limits, Prop, PropName, Types, Value, When};
use dsl::thick::{ParityGroup, reservation_for};
use ondisk::{Feature, ObjsetType};
use pool::{Content, Pool};
use units::{Error, Kind};

type Props = Vec<(PropName, Value)>;

/// The block size of volumes, unless there is a reason for another.
const BLOCK_SIZE: u64 = 16 << 10;

impl Appliance {
    pub(crate) async fn create_dataset(&self, mut new: NewDataset, by: &By) -> Result<Reply> {
        let failed = |e: &Error| cannot(About::Dataset, &format!("create '{}'", new.name), e);
        dsl::name::check_dataset(&new.name).map_err(|e| failed(&e))?;
        let open = self.pool_for_new(&new.name).await?;
        let pool = &open.pool;
        if new.parents {
            if exists(pool, &new.name).await.map_err(|e| failed(&e))? {
                return Ok(Reply::Done);
            }
            make_parents(pool, &new.name, new.dry_run).await.map_err(|e| failed(&e))?;
        }
        let quotas = take_quotas(&mut new)
            .map_err(|e| cannot(About::Dataset, &format!("create '{}'", new.name), &e))?;
        let failed = |e: &Error| cannot(About::Dataset, &format!("create '{}'", new.name), e);
        let plan = plan(pool, &new).await.map_err(|e| failed(&e))?;
        let created = created(pool, &plan.0, &plan.1);
        if new.dry_run {
            return Ok(created);
        }
        pool.create_dataset(&new.name, plan.0, plan.1).await.map_err(|e| failed(&e))?;
        for (quota, name, text) in quotas {
            quota.set(pool, &new.name, &name, &text).await.map_err(|e| failed(&e))?;
        }
        self.record(pool, by).await.map_err(|e| failed(&e))?;
        match created {
            Reply::Created { settings, warning } if !new.unmounted => {
                let warning = warning.or(self.mount_new(&new.name).await);
                Ok(Reply::Created { settings, warning })
            }
            created => Ok(created),
        }
    }

    async fn pool_for_new(&self, name: &str) -> Result<Open> {
        let pool = name.split('/').next().unwrap_or(name);
        if !self.0.pools.lock().await.contains(pool) {
            let message = format!("cannot create '{name}': no such pool '{pool}'");
            return Err(ApiError::new(ErrorKind::NotFound, message));
        }
        self.pool(pool, Access::Change).await
    }

    pub(crate) async fn destroy_dataset(&self, name: &str, doomed: Doomed, by: &By) -> Result<Reply> {
        let failed = |e: &Error| cannot(About::Dataset, &format!("destroy '{name}'"), e);
        let open = self.pool_with(name.split('@').next().unwrap_or(name), Access::Change).await?;
        let spec = {
            let _reading = open.pool.reading().await;
            destroy_spec(&open.pool, name, doomed).await.map_err(|e| failed(&e))?
        };
        self.destroy_by(&open.pool, spec, (name, doomed), by).await
    }

    /// Destroys all of these snapshots of one pool, or none; `name` is what they are called together.
    pub(crate) async fn destroy_snapshots(&self, names: Vec<String>, name: &str, by: &By) -> Result<Reply> {
        let open = self.pool_with(name.split('@').next().unwrap_or(name), Access::Change).await?;
        let spec = dsl::DestroySpec { names, recursive: false, clones: false, defer: false };
        self.destroy_by(&open.pool, spec, (name, Doomed::default()), by).await
    }

    async fn destroy_by(
        &self,
        pool: &Pool,
        spec: dsl::DestroySpec,
        (name, doomed): (&str, Doomed),
        by: &By,
    ) -> Result<Reply> {
        let failed = |e: &Error| cannot(About::Dataset, &format!("destroy '{name}'"), e);
        let (plan, reclaimed) = {
            let _reading = pool.reading().await;
            let plan = pool.dsl().plan_destroy_of(&spec).await.map_err(|e| failed(&e))?;
            let reclaimed = reclaimed(pool, &plan.names).await.map_err(|e| failed(&e))?;
            (plan, reclaimed)
        };
        if doomed.dry_run {
            return Ok(Reply::Destroyed { names: plan.names, reclaimed });
        }
        let _closed = self.withdraw(pool, &plan.all(), doomed.force, &format!("destroy '{name}'")).await?;
        let plan = pool.destroy_datasets(spec).await.map_err(|e| failed(&e))?;
        // With clients that could not be ended it has gone all the same.
        plan.names.iter().for_each(|name| self.0.volumes.forget(name));
        self.forget_schedules(&plan.names);
        self.record(pool, by).await.map_err(|e| failed(&e))?;
        Ok(Reply::Destroyed { names: plan.names, reclaimed })
    }

    /// `force`: none where the request cannot ask for it.
    pub(crate) async fn rename_dataset(
        &self,
        from: &str,
        to: &str,
        parents: bool,
        force: Option<bool>,
        by: &By,
    ) -> Result<Reply> {
        let doing = format!("rename '{from}'");
        let failed = |e: &Error| cannot(About::Dataset, &doing, e);
        let open = self.pool_with(from, Access::Change).await?;
        let pool = &open.pool;
        // Of a snapshot the new name may be given alone.
        let to = match (from.split_once('@'), to.contains('@')) {
            (Some((of, _)), false) => format!("{of}@{to}"),
            (Some((of, _)), true) if to.starts_with('@') => format!("{of}{to}"),
            _ => to.to_string(),
        };
        let is_forced = force == Some(true);
        let said = |e: ApiError| match force {
            Some(_) => e,
            None => ApiError::new(e.kind, e.message.trim_end_matches(END_THEM)),
        };
        if !is_forced {
            self.free_datasets(from, false, &doing).await.map_err(said)?;
        }
        if parents {
            make_parents(pool, &to, false).await.map_err(|e| failed(&e))?;
        }
        let mounted = self.unmount_for_now(from, is_forced).await?;
        let renamed = self.rename_unmounted(pool, from, &to, is_forced).await;
        let now = if renamed.is_ok() { to.as_str() } else { from };
        self.mount_renamed(from, now, mounted).await;
        renamed.map_err(said)?;
        self.record(pool, by).await.map_err(|e| failed(&e))?;
        Ok(Reply::Done)
    }

    async fn rename_unmounted(&self, pool: &Pool, from: &str, to: &str, force: bool) -> Result<()> {
        let doing = format!("rename '{from}'");
        let failed = |e: Error| cannot(About::Dataset, &doing, &e);
        let names = {
            let _reading = pool.reading().await;
            with_all_below(pool, from).await.map_err(failed)?
        };
        let _closed = self.close_to_clients(pool, &names, force, &doing).await?;
        let (old, new) = (from.to_string(), to.to_string());
        let renamed = pool.change("rename dataset", move |pool, tx| async move {
            let dsl = pool.dsl();
            if !old.contains('@') {
                // Nothing is set for a rename that cannot be.
                dsl.check_rename(&old, &new).await?;
                for (dataset, masks) in masks::of_renamed(dsl, &old, &new).await? {
                    for (prop, value) in masks::as_properties(masks) {
                        dsl.set(&tx, &dataset, &prop, &value).await?;
                    }
                }
            }
            dsl.rename(&tx, &old, &new).await
        });
        renamed.await.map_err(failed)?;
        self.0.volumes.forget(from);
        Ok(())
    }
}

/// A dataset, what is below it and the snapshots of all; or a snapshot.
async fn with_all_below(pool: &Pool, name: &str) -> units::Result<Vec<String>> {
    if name.contains('@') {
        return Ok(vec![name.into()]);
    }
    let mut all = pool.dsl().descendants(name).await?;
    for dataset in all.clone() {
        all.extend(pool.dsl().snapshots(&dataset).await?.into_iter().map(|(snapshot, _)| snapshot));
    }
    Ok(all)
}

/// What a volume came to have.
fn created(pool: &Pool, content: &Content, props: &Props) -> Reply {
    let mut settings = Vec::new();
    let mut warning = None;
    if let Content::Volume { size, block_size } = content {
        settings.push(("volsize".to_string(), *size));
        if *block_size != BLOCK_SIZE {
            settings.push(("volblocksize".to_string(), *block_size));
        }
        let reserved = given_number(props, Prop::RefReservation);
        settings.extend(reserved.map(|n| ("refreservation".to_string(), n)));
        warning = too_small(*block_size, default_block_size(pool));
    }
    Reply::Created { settings, warning }
}

/// What OpenZFS warns of.
fn too_small(block_size: u64, default: u64) -> Option<String> {
    (block_size < default).then(|| {
        let least = if block_size < BLOCK_SIZE {
            format!("the default minimum block size ({BLOCK_SIZE})")
        } else {
            "what the pool's vdevs take for a block".to_string()
        };
        format!(
            "Warning: volblocksize ({block_size}) is less than {least}.\nTo reduce wasted space a volblocksize of \
             {default} is recommended."
        )
    })
}

/// The block size of a volume for which none is asked: 16K, or more where a vdev takes at least as much for a block.
fn default_block_size(pool: &Pool) -> u64 {
    let spec = pool.tree().spec();
    let least = |top: &vdev::Spec| {
        let columns = match top.parity() {
            0 => 1,
            1 => 2,
            _ => 4,
        };
        columns << top.ashift.unwrap_or(9).min(16)
    };
    let taken: u64 = spec.children.iter().map(least).max().unwrap_or(0);
    // The largest power of two that fits in.
    BLOCK_SIZE.max(1 << taken.max(1).ilog2())
}

/// Makes the file systems above `name` that are not there.
pub(crate) async fn make_parents(pool: &Pool, name: &str, dry_run: bool) -> units::Result<()> {
    let ends = name.match_indices('/').map(|(at, _)| at);
    for parent in ends.map(|end| &name[..end]) {
        if !exists(pool, parent).await? && !dry_run {
            let content = Content::FileSystem(new_of_ours());
            pool.create_dataset(parent, content, Vec::new()).await?;
        }
    }
    Ok(())
}

/// What a new dataset is to hold, and what is to be set on it; all is checked.
/// Takes out what is no property of the dataset, but kept in the file system: `userquota@alice` and its kin.
fn take_quotas(new: &mut NewDataset) -> units::Result<Vec<(Quota, String, String)>> {
    let mut quotas = Vec::new();
    for (name, text) in std::mem::take(&mut new.properties) {
        match Quota::parse(&name)?.filter(|_| new.kind == NewKind::Filesystem) {
            Some(quota) => {
                quota.limit(&name, &text)?;
                quotas.push((quota, name, text));
            }
            None => new.properties.push((name, text)),
        }
    }
    Ok(quotas)
}

async fn plan(pool: &Pool, new: &NewDataset) -> units::Result<(Content, Props)> {
    let _reading = pool.reading().await;
    let types = match new.kind {
        NewKind::Filesystem => Types::FILESYSTEM,
        NewKind::Volume { .. } => Types::VOLUME,
    };
    let limits = Limits { max_block_size: max_block_size(pool), ..Limits::default() };
    let parse =
        |(name, text): &(String, String)| props::parse_setting(name, text, types, When::Create, &limits);
    let mut given = new.properties.iter().map(parse).collect::<units::Result<Props>>()?;
    let content = match new.kind {
        NewKind::Filesystem => file_system(pool, new, &mut given).await?,
        NewKind::Volume { size, sparse } => volume(pool, new, &mut given, size, sparse).await?,
    };
    let kind = if types == Types::VOLUME { ObjsetType::Zvol } else { ObjsetType::Zfs };
    pool.dsl().check_create(&dsl::NewDataset { name: &new.name, kind, props: &given }).await?;
    Ok((content, given))
}

pub(crate) fn max_block_size(pool: &Pool) -> u64 {
    let is_large = pool.dsl().features().is_enabled(Feature::LargeBlocks);
    if is_large { Limits::MAX_BLOCK_SIZE } else { Limits::OLD_MAX_BLOCK_SIZE }
}

fn given_number(given: &Props, prop: Prop) -> Option<u64> {
    given.iter().find(|(name, _)| *name == PropName::Native(prop)).and_then(|(_, value)| value.number())
}

/// What the parent has is the default of what is decided once.
async fn inherited(pool: &Pool, name: &str, prop: Prop) -> units::Result<u64> {
    let Some((parent, _)) = dsl::name::split_parent(name) else { return Ok(0) };
    let stats = match pool.dsl().stats(parent).await {
        Err(e) if e.kind() == Kind::NotFound => return Ok(0),
        stats => stats?,
    };
    let shown = stats.get(&PropName::Native(prop)).await?;
    Ok(shown.and_then(|(value, _)| value.number()).unwrap_or(0))
}

async fn file_system(pool: &Pool, new: &NewDataset, given: &mut Props) -> units::Result<Content> {
    props::complete_at_create(given)?;
    let mut once = [0; 3];
    for (value, prop) in once.iter_mut().zip([Prop::Utf8Only, Prop::Normalization, Prop::CaseSensitivity]) {
        *value = match given_number(given, prop) {
            Some(n) => n,
            None => inherited(pool, &new.name, prop).await?,
        };
    }
    let [utf8only, normalization, casesensitivity] = once;
    let new = zpl::NewFileSystem { utf8only, normalization, casesensitivity, ..new_of_ours() };
    Ok(Content::FileSystem(new))
}

async fn volume(
    pool: &Pool,
    new: &NewDataset,
    given: &mut Props,
    size: u64,
    sparse: bool,
) -> units::Result<Content> {
    let block_size = given_number(given, Prop::VolBlockSize).unwrap_or_else(|| default_block_size(pool));
    let size = size
        .checked_next_multiple_of(block_size)
        .filter(|size| *size > 0)
        .ok_or_else(|| Error::invalid("'volsize' must be more than zero and less than 8E"))?;
    zvol::check(size, block_size)?;
    let copies = match given_number(given, Prop::Copies) {
        Some(n) => n,
        None => inherited(pool, &new.name, Prop::Copies).await?,
    };
    let full = reservation_for(size, block_size, copies, &parity_groups(pool));
    let asked = given_number(given, Prop::RefReservation);
    if asked.is_none_or(|n| Some(n) == Value::AUTO.number()) {
        given.retain(|(name, _)| *name != PropName::Native(Prop::RefReservation));
        // With -s, and without being asked, nothing is reserved.
        if !sparse || asked.is_some() {
            given.push((PropName::Native(Prop::RefReservation), Value::Number(full)));
        }
    }
    check_room(pool, &new.name, given_number(given, Prop::RefReservation).unwrap_or(0)).await?;
    Ok(Content::Volume { size, block_size })
}

async fn check_room(pool: &Pool, name: &str, reservation: u64) -> units::Result<()> {
    let Some((parent, _)) = dsl::name::split_parent(name) else { return Ok(()) };
    let parent = match pool.dsl().find(parent).await {
        // What is wrong with the parent is said when a dataset is created below it.
        Err(e) if e.kind() == Kind::NotFound => return Ok(()),
        parent => parent?,
    };
    let available = pool.dsl().available(parent.dir_id, &parent.phys).await?;
    if reservation <= available {
        return Ok(());
    }
    let (needed, left) = (units::pretty_size(reservation), units::pretty_size(available));
    Err(Error::new(Kind::NoSpace, "reserve space").because(format!(
        "out of space: {needed} would be reserved, and {left} are available; use -s for a volume without a reservation"
    )))
}

/// The vdevs with parity, on which small blocks take more than their size.
pub(crate) fn parity_groups(pool: &Pool) -> Vec<ParityGroup> {
    let spec = pool.tree().spec();
    let with_parity = spec.children.iter().filter(|top| top.vdev_type.has_parity());
    let group = |top: &vdev::Spec| ParityGroup {
        width: top.children.len() as u64,
        parity: top.parity(),
        ashift: top.ashift.unwrap_or(9) as u32,
        whole_rows: false,
    };
    with_parity.map(group).collect()
}

/// How a destroy was asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Doomed {
    pub recursive: bool,
    pub clones: bool,
    pub defer: bool,
    pub force: bool,
    pub dry_run: bool,
}

/// What a name, or a pattern of snapshots, means.
async fn destroy_spec(pool: &Pool, name: &str, doomed: Doomed) -> units::Result<dsl::DestroySpec> {
    let (dsl, all) = (pool.dsl(), doomed.recursive || doomed.clones);
    let Doomed { recursive, clones, defer, .. } = doomed;
    if name.contains('@') {
        let names = dsl.match_snapshots(name, all).await?;
        return Ok(dsl::DestroySpec { names, recursive: false, clones, defer });
    }
    if defer {
        return Err(Error::invalid("'-d' is for snapshots"));
    }
    if !name.contains('/') {
        return Err(Error::invalid(format!("operation does not apply to pools; use 'zpool destroy {name}'")));
    }
    if !all {
        let word = match dsl.objset_type(&dsl.find(name).await?).await? {
            ObjsetType::Zvol => "volume",
            _ => "filesystem",
        };
        let below = dsl.descendants(name).await?.len() > 1 || !dsl.snapshots(name).await?.is_empty();
        if below {
            return Err(Error::invalid(format!("{word} has children; use '-r' to destroy them too")));
        }
    }
    Ok(dsl::DestroySpec { names: vec![name.into()], recursive, clones, defer })
}

/// What snapshots alone have comes back at once.
async fn reclaimed(pool: &Pool, names: &[String]) -> units::Result<u64> {
    let mut sum = 0;
    for name in names.iter().filter(|n| n.contains('@')) {
        sum += pool.dsl().find(name).await?.phys.unique;
    }
    Ok(sum)
}
