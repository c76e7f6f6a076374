//! Snapshots, clones and holds: what `zfs snapshot`, `rollback`, `clone`, `promote` and `hold` ask for.

use crate::appliance::{Appliance, By};
use crate::datasets::closing::END_THEM;
use crate::datasets::{make_parents, max_block_size, parity_groups};
use crate::error_text::{About, cannot};
use crate::pools::{Access, Open};
use crate::shares::masks;
use api::{ApiError, ErrorKind, Hold, Reply, Result, Snapshots};
use dsl::props::{self, Limits, Prop, PropName, Types, Value, When};
use dsl::thick::reservation_for;
use ondisk::ObjsetType;
use pool::{Pool, RollbackReach};
use units::{Error, Kind};

type Props = Vec<(PropName, Value)>;

impl Appliance {
    pub(crate) async fn snapshots(&self, asked: Snapshots, by: &By) -> Result<Reply> {
        match asked {
            Snapshots::Take { names, recursive, properties } => {
                self.take_snapshots(&names, recursive, &properties, by).await
            }
            Snapshots::Rollback { snapshot, newer, clones, force } => {
                self.roll_back(&snapshot, RollbackReach { newer, clones }, force, by).await
            }
            Snapshots::Clone { snapshot, name, properties, parents, unmounted } => {
                let done = self.clone_snapshot(&snapshot, &name, &properties, parents, by).await?;
                let warning = if unmounted { None } else { self.mount_new(&name).await };
                Ok(warning
                    .map_or(done, |warning| Reply::Created { settings: Vec::new(), warning: Some(warning) }))
            }
            Snapshots::Promote { name } => self.promote(&name, by).await,
            Snapshots::Hold { names, tag, recursive } => self.hold(&names, &tag, recursive, true, by).await,
            Snapshots::Release { names, tag, recursive } => {
                self.hold(&names, &tag, recursive, false, by).await
            }
            Snapshots::Holds { names, recursive } => self.holds(&names, recursive).await,
        }
    }

    /// The one pool that all these names are in, which are there but for what follows an '@'.
    async fn one_pool(&self, names: &[String], doing: &str, access: Access) -> Result<Open> {
        let refuse = |why: &str| ApiError::new(ErrorKind::Invalid, format!("cannot {doing}: {why}"));
        let pool_name = |name: &str| name.split(['/', '@']).next().map(String::from);
        let mut open = None;
        for name in names {
            let (dataset, _) =
                name.split_once('@').ok_or_else(|| refuse("a snapshot is called 'dataset@name'"))?;
            if pool_name(name) != pool_name(&names[0]) {
                return Err(refuse("the snapshots are in different pools"));
            }
            open = Some(self.pool_with(dataset, access).await?);
        }
        open.ok_or_else(|| refuse("no snapshot was named"))
    }

    pub(crate) async fn take_snapshots(
        &self,
        names: &[String],
        recursive: bool,
        properties: &[(String, String)],
        by: &By,
    ) -> Result<Reply> {
        let doing = format!("create snapshot {}", quoted(names));
        let failed = |e: Error| cannot(About::Snapshot, &doing, &e);
        let open = self.one_pool(names, &doing, Access::Change).await?;
        let parse = |(name, text): &(String, String)| {
            props::parse_setting(name, text, Types::SNAPSHOT, When::Later, &Limits::default())
        };
        let given = properties.iter().map(parse).collect::<units::Result<Props>>().map_err(failed)?;
        let all = {
            let _reading = open.pool.reading().await;
            let all = expand(&open.pool, names, recursive).await.map_err(failed)?;
            open.pool.dsl().check_snapshots(&all, &given).await.map_err(failed)?;
            all
        };
        open.pool.snapshot(all, given).await.map_err(failed)?;
        self.record(&open.pool, by).await.map_err(failed)?;
        Ok(Reply::Done)
    }

    pub(crate) async fn roll_back(
        &self,
        snapshot: &str,
        reach: RollbackReach,
        force: bool,
        by: &By,
    ) -> Result<Reply> {
        let doing = format!("roll back to '{snapshot}'");
        let failed = |e: Error| cannot(About::Snapshot, &doing, &e);
        let open = self.one_pool(&[snapshot.to_string()], &doing, Access::Change).await?;
        let pool = &open.pool;
        let (dataset, _) = snapshot.split_once('@').unwrap_or_default();
        let mut ending = {
            let _reading = pool.reading().await;
            pool.plan_rollback(dataset, snapshot, reach).await.map_err(failed)?.all()
        };
        let going = ending.clone();
        ending.push(dataset.into());
        // What is refused has changed nothing: files of snapshots that would go are served on.
        let mounted = self.unmount_for_now(dataset, force).await?;
        let is_seen = self.iscsi().is_some_and(|iscsi| iscsi.is_seen(dataset));
        let place = self.iscsi().filter(|_| is_seen).map(|iscsi| iscsi.keep_place(dataset));
        let ready = async {
            if !force {
                self.end_users_of(&ending, false, &doing).await?;
            }
            let shut = self.close_to_clients(pool, &[dataset.to_string()], force, &doing).await?;
            Ok((shut, self.withdraw(pool, &going, force, &doing).await?))
        };
        let closed = match ready.await {
            Ok(closed) => closed,
            Err(e) => {
                self.mount_renamed(dataset, dataset, mounted).await;
                return Err(e);
            }
        };
        let plan = pool.rollback(dataset, snapshot, reach).await;
        drop(closed);
        if is_seen {
            // Their sessions stay, and are told that the unit was gone for a moment.
            drop(place);
            self.give_back(dataset).await;
        }
        self.mount_renamed(dataset, dataset, mounted).await;
        let plan = plan.map_err(failed)?;
        self.record(pool, by).await.map_err(failed)?;
        Ok(Reply::Destroyed { names: plan.names, reclaimed: 0 })
    }

    pub(crate) async fn clone_snapshot(
        &self,
        snapshot: &str,
        name: &str,
        properties: &[(String, String)],
        parents: bool,
        by: &By,
    ) -> Result<Reply> {
        let failed = |e: Error| cannot(About::Dataset, &format!("create '{name}'"), &e);
        dsl::name::check_dataset(name).map_err(failed)?;
        let open =
            self.one_pool(&[snapshot.to_string()], &format!("create '{name}'"), Access::Change).await?;
        let pool = &open.pool;
        if parents {
            let there = async {
                let _reading = pool.reading().await;
                pool.dsl().exists(name).await
            };
            if there.await.map_err(failed)? {
                return Ok(Reply::Done);
            }
            make_parents(pool, name, false).await.map_err(failed)?;
        }
        let given = {
            let _reading = pool.reading().await;
            clone_settings(pool, snapshot, name, properties).await.map_err(failed)?
        };
        pool.clone_snapshot(snapshot, name, given).await.map_err(failed)?;
        self.record(pool, by).await.map_err(failed)?;
        Ok(Reply::Done)
    }

    async fn promote(&self, name: &str, by: &By) -> Result<Reply> {
        let doing = format!("promote '{name}'");
        let failed = |e: Error| cannot(About::Dataset, &doing, &e);
        let open = self.pool_with(name, Access::Change).await?;
        let pool = &open.pool;
        // Snapshots that change their names may be in use under the old ones.
        let moving = {
            let _reading = pool.reading().await;
            moving(pool, name).await.map_err(failed)?
        };
        let shut = self.close_to_clients(pool, &moving, false, &doing).await?;
        self.let_go_of(&moving, false).await?;
        pool.promote(name).await.map_err(failed)?;
        drop(shut);
        self.record(pool, by).await.map_err(failed)?;
        Ok(Reply::Done)
    }

    pub(crate) async fn rename_snapshots(&self, from: &str, to: &str, by: &By) -> Result<Reply> {
        let doing = format!("rename '{from}'");
        let failed = |e: Error| cannot(About::Snapshot, &doing, &e);
        let open = self.one_pool(&[from.to_string()], &doing, Access::Change).await?;
        let (of, _) = from.split_once('@').unwrap_or_default();
        let to = match to.split_once('@') {
            None => format!("{of}@{to}"),
            Some((dataset, last)) if dataset.is_empty() || dataset == of => format!("{of}@{last}"),
            Some(_) => return Err(failed(Error::invalid("snapshots must be part of same dataset"))),
        };
        let names = {
            let _reading = open.pool.reading().await;
            open.pool.dsl().match_snapshots(from, true).await.map_err(failed)?
        };
        let shut = self.close_to_clients(&open.pool, &names, false, &doing).await?;
        self.let_go_of(&names, false).await?;
        open.pool.rename_snapshots(from, &to).await.map_err(failed)?;
        drop(shut);
        self.record(&open.pool, by).await.map_err(failed)?;
        Ok(Reply::Done)
    }

    async fn hold(&self, names: &[String], tag: &str, recursive: bool, puts: bool, by: &By) -> Result<Reply> {
        let verb = if puts { "hold" } else { "release" };
        let doing = format!("{verb} snapshot '{}'", names.join("', '"));
        let failed = |e: Error| cannot(About::Snapshot, &doing, &e);
        let open = self.one_pool(names, &doing, Access::Change).await?;
        let all = {
            let _reading = open.pool.reading().await;
            found(&open.pool, names, recursive).await.map_err(failed)?
        };
        if puts {
            open.pool.hold(all, tag).await.map_err(failed)?;
        } else {
            let going = {
                let _reading = open.pool.reading().await;
                open.pool.dsl().going_with_hold(&all, tag).await.map_err(failed)?
            };
            let closed = self.withdraw(&open.pool, &going, false, &doing).await;
            let _closed = closed.map_err(|e| ApiError::new(e.kind, e.message.trim_end_matches(END_THEM)))?;
            open.pool.release(all, tag).await.map_err(failed)?;
        }
        self.record(&open.pool, by).await.map_err(failed)?;
        Ok(Reply::Done)
    }

    async fn holds(&self, names: &[String], recursive: bool) -> Result<Reply> {
        let mut holds = Vec::new();
        for name in names {
            let doing = format!("list the holds of '{name}'");
            let failed = |e: Error| cannot(About::Snapshot, &doing, &e);
            let open = self.one_pool(std::slice::from_ref(name), &doing, Access::Look).await?;
            let _reading = open.pool.reading().await;
            let names = std::slice::from_ref(name);
            for snapshot in found(&open.pool, names, recursive).await.map_err(failed)? {
                let tags = open.pool.dsl().holds(&snapshot).await.map_err(failed)?;
                holds.extend(tags.into_iter().map(|(tag, since)| Hold {
                    snapshot: snapshot.clone(),
                    tag,
                    since,
                }));
            }
        }
        Ok(Reply::Holds(holds))
    }
}

/// New snapshots: with `recursive`, of everything below as well.
async fn expand(pool: &Pool, names: &[String], recursive: bool) -> units::Result<Vec<String>> {
    let mut all = Vec::new();
    for name in names {
        match name.split_once('@') {
            Some((dataset, last)) if recursive => {
                let below = pool.dsl().descendants(dataset).await?;
                all.extend(below.into_iter().map(|dataset| format!("{dataset}@{last}")));
            }
            _ => all.push(name.clone()),
        }
    }
    all.sort();
    all.dedup();
    Ok(all)
}

/// Snapshots that are there.
async fn found(pool: &Pool, names: &[String], recursive: bool) -> units::Result<Vec<String>> {
    let mut all = Vec::new();
    for name in names {
        match recursive {
            true => all.extend(pool.dsl().match_snapshots(name, true).await?),
            false => all.push(pool.dsl().find_snapshot(name).await?.name),
        }
    }
    Ok(all)
}

/// Which snapshots would be called otherwise after a promotion.
async fn moving(pool: &Pool, name: &str) -> units::Result<Vec<String>> {
    let dsl = pool.dsl();
    dsl.check_promote(name).await?;
    let origin = dsl.dataset_name(dsl.find(name).await?.dir.origin).await?;
    let (of, _) = origin.split_once('@').unwrap_or_default();
    let mut names: Vec<String> = dsl.snapshots(of).await?.into_iter().map(|(name, _)| name).collect();
    let last = names.iter().position(|n| *n == origin).map_or(0, |at| at + 1);
    names.truncate(last);
    Ok(names)
}

/// What is set on a clone, checked.
async fn clone_settings(
    pool: &Pool,
    snapshot: &str,
    name: &str,
    properties: &[(String, String)],
) -> units::Result<Props> {
    let dsl = pool.dsl();
    let origin = dsl.find_snapshot(snapshot).await.map_err(|e| match e.kind() {
        Kind::NotFound => {
            Error::new(Kind::NotFound, "clone").because(format!("there is no snapshot '{snapshot}'"))
        }
        _ => e,
    })?;
    let is_volume = dsl.objset_type(&origin).await? == ObjsetType::Zvol;
    let types = if is_volume { Types::VOLUME } else { Types::FILESYSTEM };
    let stats = dsl.stats(snapshot).await?;
    let number = async |prop| {
        let shown = stats.get(&PropName::Native(prop)).await?;
        Ok::<_, Error>(shown.and_then(|(value, _)| value.number()).unwrap_or(0))
    };
    let (size, block) = (number(Prop::VolSize).await?, stats.volume_block_size().await?);
    let limits = Limits {
        max_block_size: max_block_size(pool),
        volblocksize: is_volume.then_some(block),
        ..Limits::default()
    };
    let mut given = Props::new();
    for (property, text) in properties {
        let (prop, value) = props::parse_setting(property, text, types, When::Later, &limits)?;
        if matches!(prop, PropName::Native(Prop::VolSize | Prop::Version)) {
            return Err(Error::invalid(format!(
                "'{property}' is the origin's; change it after the clone is made"
            )));
        }
        let is_reserve = prop == PropName::Native(Prop::RefReservation);
        let value = match is_reserve && Some(value.number()) == Some(Value::AUTO.number()) {
            true => Value::Number(reservation_for(size, block, 1, &parity_groups(pool))),
            false => value,
        };
        given.push((prop, value));
    }
    let (of, _) = snapshot.split_once('@').unwrap_or((snapshot, ""));
    if let Some((parent, _)) = dsl::name::split_parent(name) {
        let masks = masks::as_properties(masks::of_clone(dsl, of, parent).await?);
        let said: Vec<PropName> = given.iter().map(|(prop, _)| prop.clone()).collect();
        given.extend(masks.filter(|(prop, _)| !said.contains(prop)));
    }
    dsl.check_clone(&dsl::NewClone { origin: snapshot, name, props: &given }).await?;
    Ok(given)
}
/// Names in a line that stays one, however many there are.
fn quoted(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("'{name}'")).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datasets::Doomed;
    use crate::schedules::tests::{Lab, START, make};
    use dsl::DestroySpec;
    use pool::Content;

    /// Lets the last of what keeps a deferred snapshot go.
    async fn let_go(appliance: &Appliance, with_clone: bool) -> api::Result<Reply> {
        let by = By { command: "test".into(), uid: 0 };
        match with_clone {
            true => appliance.destroy_dataset("tank/clone", Doomed::default(), &by).await,
            false => appliance.hold(&["tank/w@s".into()], "k", false, false, &by).await,
        }
    }

    /// The end of the last hold, and of the last clone, took a snapshot away that a client was reading.
    #[test]
    fn what_a_client_reads_goes_neither_with_its_last_hold_nor_with_its_last_clone() {
        let lab = Lab::new("given-up");
        lab.run(START, |appliance| async move {
            make(&appliance).await;
            let pool = appliance.pool("tank", Access::Look).await.unwrap().pool;
            let content = Content::Volume { size: 1 << 20, block_size: 16 << 10 };
            pool.create_dataset("tank/w", content, Vec::new()).await.unwrap();
            for with_clone in [false, true] {
                let names = || vec!["tank/w@s".to_string()];
                pool.snapshot(names(), Vec::new()).await.unwrap();
                match with_clone {
                    true => pool.clone_snapshot("tank/w@s", "tank/clone", Vec::new()).await.unwrap(),
                    false => pool.hold(names(), "k").await.unwrap(),
                }
                let spec = DestroySpec { names: names(), defer: true, ..DestroySpec::default() };
                pool.destroy_datasets(spec).await.unwrap();
                let (volume, held) = appliance.use_volume("tank/w@s").await.unwrap();
                let refused = let_go(&appliance, with_clone).await.unwrap_err();
                assert_eq!(refused.kind, ErrorKind::Busy);
                assert!(refused.message.contains("clients use tank/w@s"), "{}", refused.message);
                assert!(volume.read(0, 4096).await.is_ok());
                drop((volume, held));
                let_go(&appliance, with_clone).await.unwrap();
                let gone = pool.dsl().find("tank/w@s").await.unwrap_err();
                assert_eq!(gone.kind(), Kind::NotFound, "it goes when it is not read any more");
            }
        });
    }

    #[test]
    fn a_thousand_names_are_said_in_one_short_line() {
        let names: Vec<String> = (0..1000).map(|n| format!("tank@{n}")).collect();
        assert_eq!(quoted(&names[..2]), "'tank@0', 'tank@1'");
        assert_eq!(quoted(&names), "'tank@0', 'tank@1', 'tank@2' and 997 more");
    }
}
