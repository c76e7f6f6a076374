//! What is asked of projects and shares, carried out.

use super::LunFacts;
use super::describe::item;
use super::lun_facts::{facts, list, new_guid, own, parse_guid};
use super::numbers::{Wish, choose};
use super::settings::{self, NumberWish, Settings};
use crate::appliance::{Appliance, By};
use crate::datasets::Doomed;
use crate::error_text::{About, cannot};
use crate::home::{Claim, LeftOut};
use crate::pools::{Access, Open};
use crate::san::Network;
use api::san::DEFAULT_GROUP;
use api::shares::{DEFAULT_PROJECT, Item, ItemKind, Place, Shares};
use api::{ApiError, CustomProperty, ErrorKind, NewDataset, NewKind, Reply, Result};
use pool::Pool;
use std::collections::BTreeMap;
use std::sync::Arc;
use units::Error;

/// So many datasets are read at once; see `datasets::query`.
const PART: usize = 16;

impl Appliance {
    pub(crate) async fn shares(&self, asked: Shares, by: &By) -> Result<Reply> {
        match asked {
            Shares::Projects { pool } => Ok(Reply::Items(self.items(pool, None, true).await?)),
            Shares::Shares { pool, project, kind } => {
                let mut found = self.items(pool, project, false).await?;
                found.retain(|item| kind.is_none_or(|kind| item.kind == kind));
                Ok(Reply::Items(found))
            }
            Shares::Get { place } => Ok(Reply::Items(vec![self.item(&place).await?])),
            Shares::Create { place, kind, set } => self.create_item(&place, kind, &set, by).await,
            Shares::Change { place, name, project, set, unset } => {
                let is_renamed_alone =
                    set.is_empty() && unset.is_empty() && (name.is_some() || project.is_some());
                if !is_renamed_alone {
                    self.change_item(&place, &set, &unset, by).await?;
                }
                if place.share.is_none() && project.is_some() {
                    let why = Error::invalid("a project is in no other project");
                    return Err(cannot(About::Dataset, &format!("change project '{place}'"), &why));
                }
                let to = place.moved(name.as_deref(), project.as_deref());
                if to != place {
                    self.rename_item(&place, &to, by).await?;
                }
                Ok(Reply::Done)
            }
            Shares::Destroy { place, force } => self.destroy_item(&place, force, by).await,
            Shares::Snapshots { place } => self.share_snapshots(&place).await,
            Shares::Snapshot { place, name, deed } => self.share_deed(&place, &name, deed, by).await,
            Shares::Automatics { place } => self.automatics(&place).await,
            Shares::Automatic { place, deed } => self.change_automatic(&place, deed).await,
            Shares::Dependents { place, name } => self.dependents(&place, &name).await,
        }
    }

    pub(super) async fn items(
        &self,
        pool: Option<String>,
        project: Option<String>,
        projects: bool,
    ) -> Result<Vec<Item>> {
        let is_named = pool.is_some();
        let names = match pool {
            Some(pool) => vec![pool],
            None => self.0.pools.lock().await.names(),
        };
        let schema = self.schema()?;
        let mut items = Vec::new();
        for name in names {
            let open = match self.pool(&name, Access::Look).await {
                Ok(open) => open,
                Err(e) if is_named => return Err(e),
                // Among all pools, one that cannot be opened hides only itself.
                Err(_) => continue,
            };
            let wanted = |place: &Place| {
                place.share.is_none() == projects && project.as_ref().is_none_or(|p| *p == place.project)
            };
            let found = items_of(&open, wanted, &schema).await;
            let left_out = self.left_out_of(&name).await;
            let more = |item| with_problem(self.with_migration(item), &left_out);
            let found = found.map(|items| items.into_iter().map(more));
            items.extend(found.map_err(|e| cannot(About::Dataset, &format!("list shares of '{name}'"), &e))?);
        }
        items.sort_by(|a, b| a.place.cmp(&b.place));
        Ok(items)
    }

    pub(crate) async fn item(&self, place: &Place) -> Result<Item> {
        let missing = || not_there(place);
        let schema = self.schema()?;
        let open = self.pool(&place.pool, Access::Look).await?;
        let _reading = open.pool.reading().await;
        let found = item(&open, &place.dataset(), &schema).await.map_err(|e| match e.kind() {
            units::Kind::NotFound => missing(),
            _ => cannot(About::Dataset, &format!("open '{place}'"), &e),
        })?;
        // `tank/vol1` is a LUN of the default project, and not a project of that name.
        if found.place != *place {
            return Err(missing());
        }
        Ok(with_problem(self.with_migration(found), &self.left_out_of(&place.pool).await))
    }

    /// With what there is to say of another block size that it gets.
    fn with_migration(&self, mut item: Item) -> Item {
        let text = match item.kind {
            ItemKind::Lun => self.0.migrations.text(&item.place.dataset()),
            _ => None,
        };
        if let Some(text) = text {
            let after = item.attributes.iter().position(|a| a.name == "volblocksize").map_or(0, |at| at + 1);
            item.attributes.insert(after, api::Property::computed("migration", text.as_str()));
        }
        item
    }

    async fn create_item(
        &self,
        place: &Place,
        kind: ItemKind,
        set: &[(String, String)],
        by: &By,
    ) -> Result<Reply> {
        let failed = |e: Error| cannot(About::Dataset, &format!("create {} '{place}'", kind.word()), &e);
        check_place(place, kind).map_err(failed)?;
        let _turn = self.numbering_for(kind).await;
        let network = self.network().map_err(failed)?;
        let mut settings =
            settings::read(kind, true, set, &[], (&network, &self.schema()?)).map_err(failed)?;
        let mut new_kind = NewKind::Filesystem;
        if kind == ItemKind::Lun {
            let project = self.item(&Place::project(&place.pool, &place.project)).await?;
            let luns = self.luns().await?;
            new_kind = plan_lun(&mut settings, place, &project, &network, &luns).map_err(failed)?;
        } else if place.share.is_some() {
            self.item(&Place::project(&place.pool, &place.project)).await?;
        }
        let new = NewDataset {
            name: place.dataset(),
            kind: new_kind,
            properties: settings.properties,
            parents: false,
            dry_run: false,
            unmounted: false,
        };
        self.create_dataset(new, by).await?;
        self.change_root(&place.dataset(), &settings.root, by).await?;
        Ok(Reply::Named { name: place.to_string() })
    }

    /// The turn in which numbers of LUNs are given. A file system has none: it waits for no pool that a LUN is in.
    async fn numbering_for(&self, kind: ItemKind) -> Option<world::sync::MutexGuard<'_, ()>> {
        match kind {
            ItemKind::Filesystem => None,
            ItemKind::Project | ItemKind::Lun => Some(self.0.san.numbering.lock().await),
        }
    }

    async fn change_item(
        &self,
        place: &Place,
        set: &[(String, String)],
        unset: &[String],
        by: &By,
    ) -> Result<Reply> {
        let kind = self.item(place).await?.kind;
        let _turn = self.numbering_for(kind).await;
        let found = self.item(place).await?;
        let failed =
            |e: Error| cannot(About::Dataset, &format!("change {} '{place}'", found.kind.word()), &e);
        let network = self.network().map_err(failed)?;
        let mut settings =
            settings::read(found.kind, false, set, unset, (&network, &self.schema()?)).map_err(failed)?;
        let dataset = place.dataset();
        if found.kind == ItemKind::Lun {
            self.plan_change(&mut settings, &dataset, &network).await?.map_err(failed)?;
        }
        let reserved = found.attribute("reservation").and_then(|a| a.value.as_ref()?.number());
        settings.put_in_order(reserved.unwrap_or(0));
        if !settings.properties.is_empty() {
            self.set_dataset(&dataset, &settings.properties, by).await?;
        }
        // Of the size that it has now.
        if let Some(reservation) = settings.reservation() {
            self.set_dataset(&dataset, &[reservation], by).await?;
        }
        self.change_root(&dataset, &settings.root, by).await?;
        for property in &settings.inherit {
            self.inherit_property(&dataset, property, false, by).await?;
        }
        let set = settings.properties.iter().map(|(property, _)| property);
        let set: Vec<String> = set.chain(&settings.inherit).cloned().collect();
        self.remount(&dataset, &set).await?;
        Ok(Reply::Done)
    }

    /// What follows for a LUN from a change: an identifier for a volume that becomes one, and its number.
    async fn plan_change(
        &self,
        settings: &mut Settings,
        dataset: &str,
        network: &Network,
    ) -> Result<units::Result<()>> {
        let luns = self.luns_by_claims(network).await?;
        let open = self.pool(dataset.split('/').next().unwrap_or(dataset), Access::Look).await?;
        let before = lun_of(&open.pool, dataset).await;
        let before = before.map_err(|e| cannot(About::Dataset, &format!("open '{dataset}'"), &e))?;
        let left_out = luns.why_not(dataset).cloned();
        let others: Vec<Arc<LunFacts>> = match (&before.0, &left_out) {
            // What it holds is not in the way of those that claim it too.
            (Some(_), None) => luns.held,
            _ => luns.all().cloned().collect(),
        };
        Ok(plan_groups(settings, dataset, before, left_out.as_ref(), network, &others))
    }

    async fn rename_item(&self, from: &Place, to: &Place, by: &By) -> Result<Reply> {
        let found = self.item(from).await?;
        let failed = |e: Error| cannot(About::Dataset, &format!("rename '{from}'"), &e);
        check_place(to, found.kind).map_err(failed)?;
        self.rename_dataset(&from.dataset(), &to.dataset(), false, None, by).await
    }

    async fn destroy_item(&self, place: &Place, force: bool, by: &By) -> Result<Reply> {
        let found = self.item(place).await?;
        let doing = format!("destroy {} '{place}'", found.kind.word());
        let refuse = |kind, why: &str| Err(ApiError::new(kind, format!("cannot {doing}: {why}")));
        if place.share.is_none() && place.project == DEFAULT_PROJECT {
            return refuse(ErrorKind::Invalid, "the default project is the pool itself");
        }
        let mut all = vec![found];
        if place.share.is_none() {
            all.extend(self.items(Some(place.pool.clone()), Some(place.project.clone()), false).await?);
        }
        let kept = |item: &&Item| {
            item.attribute("nodestroy").and_then(|a| a.value.as_ref()) == Some(&api::Value::from("true"))
        };
        if let Some(item) = all.iter().find(kept) {
            let why = format!("\"nodestroy\" is set on '{}'", item.place);
            return refuse(ErrorKind::Busy, &why);
        }
        let doomed = Doomed { recursive: true, force, ..Doomed::default() };
        self.destroy_dataset(&place.dataset(), doomed, by).await
    }
}

/// A LUN that is left out is offline, and says why.
fn with_problem(mut item: Item, left_out: &BTreeMap<String, LeftOut>) -> Item {
    let why = left_out.get(&item.place.dataset()).filter(|_| item.kind == ItemKind::Lun);
    let status = item.attributes.iter_mut().find(|a| a.name == "status");
    if let (Some(why), Some(status)) = (why, status)
        && status.value != Some("offline".into())
    {
        *status = api::Property::computed("status", "offline");
        item.attributes.push(api::Property::computed("problem", why.to_string().as_str()));
    }
    item
}

fn not_there(place: &Place) -> ApiError {
    let what = if place.share.is_some() { "share" } else { "project" };
    ApiError::new(ErrorKind::NotFound, format!("cannot open '{place}': there is no such {what}"))
}

async fn items_of(
    open: &Open,
    wanted: impl Fn(&Place) -> bool,
    schema: &[CustomProperty],
) -> units::Result<Vec<Item>> {
    let pool = &open.pool;
    let all = {
        let _reading = pool.reading().await;
        pool.dsl().descendants(&pool.name()).await?
    };
    let mut items = Vec::new();
    // Changes of the pool have their turn in between.
    for part in all.chunks(PART) {
        let _reading = pool.reading().await;
        for dataset in part {
            match wanted_item(open, dataset, &wanted, schema).await {
                // It went since it was listed.
                Err(e) if e.kind() == units::Kind::NotFound => {}
                found => items.extend(found?),
            }
        }
    }
    Ok(items)
}

async fn wanted_item(
    open: &Open,
    dataset: &str,
    wanted: impl Fn(&Place) -> bool,
    schema: &[CustomProperty],
) -> units::Result<Option<Item>> {
    let dsl = open.pool.dsl();
    // Whether it is a volume matters directly below the root alone.
    let is_volume = match dataset.matches('/').count() {
        1 => dsl.objset_type(&dsl.find(dataset).await?).await? == ondisk::ObjsetType::Zvol,
        _ => false,
    };
    match wanted(&Place::of(dataset, is_volume)) {
        true => item(open, dataset, schema).await.map(Some),
        false => Ok(None),
    }
}

async fn lun_of(pool: &Pool, dataset: &str) -> units::Result<(Option<LunFacts>, LunFacts)> {
    let _reading = pool.reading().await;
    let stats = pool.dsl().stats(dataset).await?;
    let found = facts(&stats, dataset).await?;
    // What a volume that is no LUN yet would be.
    let text = |property| {
        let stats = &stats;
        async move { Ok::<_, Error>(own(stats, property).await?.map_or(DEFAULT_GROUP.to_string(), |(t, _)| t)) }
    };
    let would_be = LunFacts {
        dataset: dataset.into(),
        target_group: text("cenote:targetgroup").await?,
        initiator_groups: list(&text("cenote:initiatorgroup").await?),
        ..LunFacts::default()
    };
    Ok((found, would_be))
}

/// A new place: what may be called so, and be there.
pub(super) fn check_place(place: &Place, kind: ItemKind) -> units::Result<()> {
    match (&place.share, kind) {
        (None, ItemKind::Project) if place.project == DEFAULT_PROJECT => {
            Err(Error::invalid("every pool has a default project already"))
        }
        (None, ItemKind::Project) if !place.project.contains('/') => Ok(()),
        (Some(_), ItemKind::Filesystem) if place.project == DEFAULT_PROJECT => {
            Err(Error::invalid("the default project has LUNs only: a file system in it would be a project"))
        }
        (Some(_), ItemKind::Filesystem | ItemKind::Lun) => Ok(()),
        _ => Err(Error::invalid(format!("'{place}' is no name for a {}", kind.word()))),
    }
}

/// What a new LUN is: its size and number, and what its project has for LUNs of which nothing was said.
fn plan_lun(
    settings: &mut Settings,
    place: &Place,
    project: &Item,
    network: &Network,
    luns: &[Arc<LunFacts>],
) -> units::Result<NewKind> {
    let of_project = |name: &str| project.attribute(name).and_then(|a| a.value.clone());
    let default_size = |name| of_project(name).and_then(|value| value.number()).filter(|n| *n > 0);
    let size = settings.size.or_else(|| default_size("default_volsize"));
    let size = size.ok_or_else(|| Error::invalid("property \"volsize\" must be set"))?;
    let sparse = settings.sparse.unwrap_or_else(|| of_project("default_sparse") == Some("true".into()));
    if !settings.properties.iter().any(|(name, _)| name == "volblocksize")
        && let Some(block) = default_size("default_volblocksize")
    {
        settings.properties.push(("volblocksize".into(), block.to_string()));
    }
    plan_groups_of_new(settings, place, project, network, luns)?;
    Ok(NewKind::Volume { size, sparse })
}

/// Identifier and number of a LUN that is to be, with the groups of its project where none were named.
pub(super) fn plan_groups_of_new(
    settings: &mut Settings,
    place: &Place,
    project: &Item,
    network: &Network,
    luns: &[Arc<LunFacts>],
) -> units::Result<()> {
    let text = |name: &str| match project.attribute(name).and_then(|a| a.value.clone()) {
        Some(api::Value::Text(text)) => text,
        _ => DEFAULT_GROUP.into(),
    };
    let lun = LunFacts {
        dataset: place.dataset(),
        target_group: text("targetgroup"),
        initiator_groups: list(&text("initiatorgroup")),
        ..LunFacts::default()
    };
    settings.concerns_lun = true;
    plan_groups(settings, &place.dataset(), (None, lun), None, network, luns)
}

/// Identifier and number, as the groups will be. What is `left_out` is made a LUN of its own when something is said of it
/// that only a LUN has a use for; else it stays as it is.
fn plan_groups(
    settings: &mut Settings,
    dataset: &str,
    (found, would_be): (Option<LunFacts>, LunFacts),
    left_out: Option<&LeftOut>,
    network: &Network,
    luns: &[Arc<LunFacts>],
) -> units::Result<()> {
    let stays = settings.goes_offline || !settings.concerns_lun;
    if !settings.concerns_lun && found.is_none() || left_out.is_some() && stays {
        return Ok(());
    }
    let is_copy = matches!(left_out, Some(LeftOut { claim: Claim::Identifier(_), .. }));
    if found.is_none() || is_copy {
        let guid = new_guid();
        debug_assert!(parse_guid(&guid).is_some());
        settings.properties.push(("cenote:lunguid".into(), guid));
    }
    let had = found.as_ref().and_then(|lun| lun.number);
    let mut lun = LunFacts { dataset: dataset.into(), ..found.unwrap_or(would_be) };
    if let Some(group) = &settings.target_group {
        lun.target_group.clone_from(group);
    }
    if let Some(groups) = &settings.initiator_groups {
        lun.initiator_groups.clone_from(groups);
    }
    let wish = match settings.number {
        Some(NumberWish::Number(number)) => Wish::Exactly(number),
        Some(NumberWish::Auto) => Wish::Keep(None),
        None => Wish::Keep(had),
    };
    let mut others = luns.to_vec();
    if let Some(LeftOut { holder, claim: Claim::Number(number) }) = left_out {
        // Its pool may be one that cannot be read just now.
        let (dataset, number) = (holder.clone(), Some(*number));
        others.push(Arc::new(LunFacts { dataset, number, ..lun.clone() }));
    }
    let number = choose(network, &lun, &others, wish)?;
    if had != Some(number) {
        settings.properties.push(("cenote:lunumber".into(), number.to_string()));
    }
    Ok(())
}
