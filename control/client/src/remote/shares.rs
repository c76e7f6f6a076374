//! Projects, file systems and LUNs, their snapshots and schedules.

use super::values::{item, list, spelt, text};
use super::{Remote, encode, misread, unsupported};
use api::declared::shares::{AUTOMATIC, SNAPSHOT, automatic_body};
use api::shares::{Item, ItemKind, Place, Shares};
use api::{Automatic, AutomaticDeed, ErrorKind, Reply, Result, ShareDeed, ShareSnapshot};
use serde_json::{Map, Value, json};

const FOLDERS: [(&str, ItemKind); 2] = [("filesystems", ItemKind::Filesystem), ("luns", ItemKind::Lun)];

fn projects(pool: &str) -> String {
    format!("/api/storage/v1/pools/{}/projects", encode(pool))
}

fn project(place: &Place) -> String {
    format!("{}/{}", projects(&place.pool), encode(&place.project))
}

fn kind_of(folder: Option<&str>) -> ItemKind {
    match folder {
        None => ItemKind::Project,
        Some("luns") => ItemKind::Lun,
        Some(_) => ItemKind::Filesystem,
    }
}

fn settings(kind: ItemKind, set: &[(String, String)]) -> Map<String, Value> {
    set.iter().map(|(name, word)| (name.clone(), spelt(kind, name, word))).collect()
}

impl Remote {
    pub(super) fn shares(&mut self, asked: Shares) -> Result<Reply> {
        match asked {
            Shares::Projects { pool: Some(pool) } => {
                let found = self.get(&projects(&pool))?;
                let one = |p: &Value| item(p, Place::project(&pool, &text(p, "name")), ItemKind::Project);
                Ok(Reply::Items(list(&found, "projects").map(one).collect()))
            }
            Shares::Shares { pool: Some(pool), project: Some(name) } => {
                self.in_project(&Place::project(&pool, &name))
            }
            Shares::Projects { .. } | Shares::Shares { .. } => Err(unsupported("name a pool")),
            Shares::Get { place } => Ok(Reply::Items(vec![self.item(&place)?])),
            Shares::Create { place, kind, set } => self.create(place, kind, &set),
            Shares::Change { place, set, unset } => {
                let (path, kind) = self.find(&place)?;
                let mut body = settings(kind, &set);
                if !unset.is_empty() {
                    body.insert("unset".into(), unset.into());
                }
                self.put(&path, &body.into()).map(|_| Reply::Done)
            }
            Shares::Rename { from, to } => self.rename(&from, &to),
            Shares::Destroy { place, force } => {
                let (path, _) = self.find(&place)?;
                self.folders.remove(&place);
                self.delete(&format!("{path}?confirm=true{}", if force { "&force=true" } else { "" }))
            }
            Shares::Snapshots { place } => Ok(Reply::ShareSnapshots(self.snapshots(&place)?)),
            Shares::Snapshot { place, name, deed } => self.snapshot_deed(&place, &name, deed),
            Shares::Dependents { place, name } => {
                let found = self.get_below(&place, &format!("/snapshots/{}/dependents", encode(&name)))?;
                let one =
                    |d: &Value| Place::project(&place.pool, &text(d, "project")).share(&text(d, "share"));
                Ok(Reply::Places(list(&found, "dependents").map(one).collect()))
            }
            Shares::Automatics { place } => {
                let found = self.get_below(&place, "/automatic")?;
                Ok(Reply::Automatics(AUTOMATIC.all(&found, "automatics").map_err(misread)?))
            }
            Shares::Automatic { place, deed } => self.automatic_deed(&place, deed),
        }
    }

    fn in_project(&mut self, place: &Place) -> Result<Reply> {
        let mut items = Vec::new();
        for (folder, kind) in FOLDERS {
            let found = self.get(&format!("{}/{folder}", project(place)))?;
            for one in list(&found, folder) {
                let place = place.share(&text(one, "name"));
                self.folders.insert(place.clone(), folder);
                items.push(item(one, place, kind));
            }
        }
        items.sort_by(|a, b| a.place.cmp(&b.place));
        Ok(Reply::Items(items))
    }

    /// Whether it is a file system or a LUN is asked for where it is not known.
    fn item(&mut self, place: &Place) -> Result<Item> {
        let Some(share) = &place.share else {
            let found = self.get(&project(place))?;
            return Ok(item(&found["project"], place.clone(), ItemKind::Project));
        };
        let known = self.folders.remove(place);
        let mut folders = FOLDERS;
        folders.sort_by_key(|(folder, _)| Some(*folder) != known);
        for (folder, kind) in folders {
            match self.get(&format!("{}/{folder}/{}", project(place), encode(share))) {
                Ok(found) => {
                    self.folders.insert(place.clone(), folder);
                    return Ok(item(&found[kind.word()], place.clone(), kind));
                }
                Err(e) if e.kind == ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        let why = format!("cannot open '{place}': there is no such share");
        Err(api::ApiError::new(ErrorKind::NotFound, why))
    }

    fn find(&mut self, place: &Place) -> Result<(String, ItemKind)> {
        let Some(share) = &place.share else { return Ok((project(place), ItemKind::Project)) };
        let folder = match self.folders.get(place) {
            Some(folder) => *folder,
            None => {
                let kind = self.item(place)?.kind;
                if kind == ItemKind::Lun { "luns" } else { "filesystems" }
            }
        };
        Ok((format!("{}/{folder}/{}", project(place), encode(share)), kind_of(Some(folder))))
    }

    fn get_below(&mut self, place: &Place, below: &str) -> Result<Value> {
        let (path, _) = self.find(place)?;
        self.get(&format!("{path}{below}"))
    }

    fn create(&mut self, place: Place, kind: ItemKind, set: &[(String, String)]) -> Result<Reply> {
        let mut body = settings(kind, set);
        let folder = match kind {
            ItemKind::Project => projects(&place.pool),
            ItemKind::Filesystem => format!("{}/filesystems", project(&place)),
            ItemKind::Lun => format!("{}/luns", project(&place)),
        };
        body.insert("name".into(), place.share.as_ref().unwrap_or(&place.project).as_str().into());
        self.post(&folder, &body.into())?;
        Ok(Reply::Named { name: place.to_string() })
    }

    fn rename(&mut self, from: &Place, to: &Place) -> Result<Reply> {
        let (path, _) = self.find(from)?;
        let mut body = json!({});
        match (&from.share, &to.share) {
            (Some(_), Some(name)) => {
                body["name"] = name.as_str().into();
                body["project"] = to.project.as_str().into();
            }
            _ => body["name"] = to.project.as_str().into(),
        }
        self.folders.clear();
        self.put(&path, &body).map(|_| Reply::Done)
    }

    fn snapshots(&mut self, place: &Place) -> Result<Vec<ShareSnapshot>> {
        let found = self.get_below(place, "/snapshots")?;
        let found = SNAPSHOT.all(&found, "snapshots").map_err(misread)?;
        Ok(found.into_iter().map(|s| ShareSnapshot { place: place.clone(), ..s }).collect())
    }

    fn snapshot_deed(&mut self, place: &Place, name: &str, deed: ShareDeed) -> Result<Reply> {
        let (path, kind) = self.find(place)?;
        let (all, own) = (format!("{path}/snapshots"), format!("{path}/snapshots/{}", encode(name)));
        match deed {
            ShareDeed::Take => self.post(&all, &json!({ "name": name }))?,
            ShareDeed::Rename { to } => self.put(&own, &json!({ "name": to }))?,
            ShareDeed::Destroy => return self.delete(&own),
            ShareDeed::Rollback { newer, force } => {
                let confirm = if newer { "?confirm=true" } else { "" };
                self.put(&format!("{own}/rollback{confirm}"), &json!({ "force": force }))?
            }
            ShareDeed::Clone { to, set } => {
                let mut body = settings(kind, &set);
                body.insert("project".into(), to.project.as_str().into());
                body.insert("share".into(), to.share.unwrap_or_default().into());
                self.put(&format!("{own}/clone"), &body.into())?
            }
        };
        Ok(Reply::Done)
    }

    fn automatic_deed(&mut self, place: &Place, deed: AutomaticDeed) -> Result<Reply> {
        let folder = format!("{}/automatic", self.find(place)?.0);
        let own = |id| format!("{folder}/{}", Automatic { id, ..Automatic::default() }.name());
        let made = match deed {
            AutomaticDeed::Create { set } => self.post(&folder, &automatic_body(set))?,
            AutomaticDeed::Change { id, set } => self.put(&own(id), &automatic_body(set))?,
            AutomaticDeed::Destroy { id } => return self.delete(&own(id)),
        };
        Ok(Reply::Named { name: text(&made["automatic"], "name") })
    }
}
