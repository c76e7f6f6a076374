//! `shares`: projects, file systems and LUNs.

use crate::context::Context;
use crate::draft::{Draft, size};
use crate::shell::Shell;
use crate::show;
use crate::vocabulary::{Result, Settable, Shown};
use crate::words::setting;
use api::attributes::{Attribute, Change};
use api::shares::{DEFAULT_PROJECT, Item, ItemKind, Place, Shares};
use api::{Custom, Doctor, Property, Reply, Request, Source};

pub(crate) fn settable(kind: ItemKind) -> Vec<Settable> {
    Attribute::of(kind)
        .filter(|a| a.change == Change::Always)
        .map(|a| Settable { name: a.name.into(), shape: a.shape, is_secret: false })
        .collect()
}

impl Shell<'_> {
    /// The pool that is worked in: the one that was set, else the first.
    fn pool(&mut self) -> Result<String> {
        if let Some(pool) = &self.pool {
            return Ok(pool.clone());
        }
        let pools = self.pools()?;
        pools.into_iter().next().ok_or_else(|| "there is no pool; \"zpool create\" makes one".into())
    }

    fn pools(&mut self) -> Result<Vec<String>> {
        match self.ask("", Request::Pools { names: Vec::new() })? {
            Reply::Pools(pools) => Ok(pools.into_iter().map(|p| p.name).collect()),
            _ => Err(unexpected()),
        }
    }

    pub(crate) fn set_pool(&mut self, word: &str) -> Result {
        let (name, pool) = setting(word)?;
        if name != "pool" {
            return Err(format!("invalid property \"{name}\""));
        }
        if !self.pools()?.iter().any(|p| p == pool) {
            return Err(format!("there is no pool \"{pool}\""));
        }
        self.pool = Some(pool.into());
        self.print(&show::property("pool", pool, ""));
        Ok(())
    }

    fn items(&mut self, request: Shares) -> Result<Vec<Item>> {
        match self.ask("", Request::Shares(request))? {
            Reply::Items(items) => Ok(items),
            _ => Err(unexpected()),
        }
    }

    fn is_taken(&mut self, place: &Place) -> bool {
        let all = match &place.share {
            Some(_) => Shares::of_project(place),
            None => Shares::Projects { pool: Some(place.pool.clone()) },
        };
        self.items(all).is_ok_and(|items| items.iter().any(|item| item.place == *place))
    }

    fn item(&mut self, place: &Place) -> Result<Item> {
        let found = self.items(Shares::Get { place: place.clone() })?;
        found.into_iter().next().ok_or_else(unexpected)
    }

    pub(crate) fn enter_shares(&mut self, words: &[String]) -> Result<Option<usize>> {
        let [verb, name, ..] = words else { return Ok(None) };
        let (place, kind) = match (self.here().clone(), verb.as_str()) {
            (Context::Shares, "project" | "select") => {
                (Place::project(&self.pool()?, name), ItemKind::Project)
            }
            (Context::Item { place, kind: ItemKind::Project, new: false, .. }, "filesystem") => {
                (place.share(name), ItemKind::Filesystem)
            }
            (Context::Item { place, kind: ItemKind::Project, new: false, .. }, "lun") => {
                (place.share(name), ItemKind::Lun)
            }
            (Context::Item { place, kind: ItemKind::Project, new: false, .. }, "select") => {
                (place.share(name), ItemKind::Filesystem)
            }
            _ => return Ok(None),
        };
        let context = match verb.as_str() {
            "select" => {
                let found = self.item(&place)?;
                Context::Item { place: found.place, kind: found.kind, new: false, draft: Draft::default() }
            }
            // Said when it is named, not when all of it was set.
            _ if self.is_taken(&place) => {
                return Err(format!("{verb} \"{name}\" exists already; select it instead"));
            }
            _ => Context::Item { place, kind, new: true, draft: Draft::default() },
        };
        self.push(context);
        Ok(Some(2))
    }

    pub(crate) fn command_shares(&mut self, words: &[String]) -> Result<bool> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let here = self.here().clone();
        let below = |shell: &mut Self, name: &str| -> Result<Place> {
            match &here {
                Context::Item { place, kind: ItemKind::Project, new: false, .. } => Ok(place.share(name)),
                Context::Item { .. } => Err("there is nothing below a share".into()),
                _ => Ok(Place::project(&shell.pool()?, name)),
            }
        };
        match (&here, &words[..]) {
            (_, ["list"]) => {
                let text = self.lists_shares()?.join("\n");
                self.print(&text);
            }
            (Context::Item { place, new: false, .. }, ["destroy"]) => {
                let place = place.clone();
                self.destroy(&place, "destroy")?;
                // What one was in is gone.
                self.stack.pop();
            }
            (_, ["destroy", name]) => {
                let place = below(self, name)?;
                self.destroy(&place, &format!("destroy {name}"))?;
            }
            (_, ["rename", from, to]) => {
                let (from, to) = (below(self, from)?, below(self, to)?);
                self.rename(from, to)?;
            }
            (Context::Item { .. }, ["move", share, project]) => {
                let from = below(self, share)?;
                let to = Place::project(&from.pool, project).share(share);
                self.rename(from, to)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn rename(&mut self, from: Place, to: Place) -> Result {
        let line = format!("shell: rename {from} {to}");
        self.ask(&line, Request::Shares(Shares::rename(from, &to))).map(drop)
    }

    fn destroy(&mut self, place: &Place, command: &str) -> Result {
        let kind = self.item(place)?.kind;
        let what = format!("This destroys all data in the {} \"{place}\".", kind.word());
        self.must_confirm(&what, command)?;
        let line = format!("shell: destroy {} {place}", kind.word());
        self.ask(&line, Request::Shares(Shares::Destroy { place: place.clone(), force: true })).map(drop)
    }

    pub(crate) fn commit_item(&mut self) -> Result {
        let Context::Item { place, kind, new, draft } = self.here().clone() else { return Ok(()) };
        if draft.is_empty() && !new {
            return Ok(());
        }
        let names: Vec<String> = draft.set.iter().map(|(name, _)| name.clone()).collect();
        let dataset = place.dataset();
        let settings: String = draft.set.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        let unset: String = draft.unset.iter().map(|name| format!(" unset {name}")).collect();
        let line = format!("shell: {} {place}{settings}{unset}", kind.word());
        let request = match new {
            true => Shares::Create { place, kind, set: draft.set },
            false => Shares::change(place, draft.set, draft.unset),
        };
        self.ask(&line, Request::Shares(request))?;
        self.advise(dataset, &names);
        Ok(())
    }

    /// What the adviser says of settings that were just made, one line for each: they hold all the same.
    fn advise(&mut self, dataset: String, set: &[String]) {
        let names = || set.iter().map(String::as_str);
        if !names().any(doctor::is_judged) {
            return;
        }
        // No advice is no reason to fail.
        if let Ok(Reply::Advice(all)) = self.ask("", Request::Doctor(Doctor::Dataset { name: dataset })) {
            all.iter()
                .filter(|advice| advice.judges(names()))
                .for_each(|advice| self.print(&doctor::line(advice)));
        }
    }

    pub(crate) fn properties_shares(&mut self) -> Result<Vec<Shown>> {
        let Context::Item { place, kind, new, draft } = self.here().clone() else {
            return Ok(vec![Shown::new("pool", self.pool()?, "")]);
        };
        let above = match (new, &place.share) {
            (false, _) => Some(self.item(&place)?),
            (true, Some(_)) => Some(self.item(&Place::project(&place.pool, &place.project))?),
            (true, None) => Some(self.item(&Place::project(&place.pool, DEFAULT_PROJECT))?),
        };
        let mut shown = Vec::new();
        for attribute in Attribute::of(kind) {
            let found = above.as_ref().and_then(|item| item.attribute(attribute.name));
            shown.extend(one(attribute, found, new, &draft));
        }
        shown
            .extend(above.iter().flat_map(|item| &item.custom).map(|custom| one_custom(custom, new, &draft)));
        Ok(shown)
    }

    pub(crate) fn lists_shares(&mut self) -> Result<Vec<String>> {
        match self.here().clone() {
            Context::Item { place, kind: ItemKind::Project, new: false, .. } => {
                let request = Shares::of_project(&place);
                let shares = self.items(request)?;
                let of = |kind| shares.iter().filter(move |item| item.kind == kind);
                let row = |item: &Item, last: &str| {
                    vec![
                        item.place.share.clone().unwrap_or_default(),
                        number(item, "space_total"),
                        text(item, last),
                    ]
                };
                let files = of(ItemKind::Filesystem).map(|item| row(item, "mountpoint")).collect::<Vec<_>>();
                let luns = of(ItemKind::Lun)
                    .map(|item| {
                        let mut row = row(item, "lunguid");
                        row[1] = number(item, "volsize");
                        row
                    })
                    .collect::<Vec<_>>();
                let mut lists = Vec::new();
                if !files.is_empty() {
                    lists.push(show::table("Filesystems", &["NAME", "SIZE", "MOUNTPOINT"], &files));
                }
                if !luns.is_empty() {
                    lists.push(show::table("LUNs", &["NAME", "SIZE", "GUID"], &luns));
                }
                Ok(lists)
            }
            Context::Shares => {
                let pool = self.pool()?;
                let projects = self.items(Shares::Projects { pool: Some(pool) })?;
                let line = |item: &Item| format!("{:>30}\n", item.place.project);
                Ok(vec![format!("Projects:\n{}", projects.iter().map(line).collect::<String>())])
            }
            _ => Ok(Vec::new()),
        }
    }

    pub(crate) fn names_shares(&mut self) -> Vec<String> {
        let request = match self.here().clone() {
            Context::Shares => self.pool().ok().map(|pool| Shares::Projects { pool: Some(pool) }),
            Context::Item { place, kind: ItemKind::Project, new: false, .. } => {
                Some(Shares::of_project(&place))
            }
            _ => None,
        };
        let items = request.map(|request| self.items(request).unwrap_or_default()).unwrap_or_default();
        items.into_iter().map(|item| item.place.share.unwrap_or(item.place.project)).collect()
    }
}

/// One attribute: as it will be, as it is, or, of what is new, as it would be inherited.
fn one(attribute: &Attribute, found: Option<&Property>, new: bool, draft: &Draft) -> Option<Shown> {
    let name = attribute.name;
    if let Some(value) = draft.get(name) {
        return Some(Shown::new(name, value, "uncommitted"));
    }
    if draft.unset.iter().any(|n| n == name) {
        return Some(Shown::new(name, "(inherited)", "uncommitted"));
    }
    match (found, new) {
        (Some(property), false) => {
            Some(Shown::new(name, show::value(attribute, property), show::note(&property.source)))
        }
        // What the project computed of itself says nothing of a new share.
        (_, true) if attribute.change == Change::Never => None,
        (Some(property), true) => {
            let note = if property.source == Source::Default { "default" } else { "inherited" };
            Some(Shown::new(name, show::value(attribute, property), note))
        }
        (None, true) => Some(Shown::new(name, attribute.default, "default")),
        (None, false) => None,
    }
}

/// One property of the schema, in the same way.
fn one_custom(custom: &Custom, new: bool, draft: &Draft) -> Shown {
    let name = &custom.name;
    if let Some(value) = draft.get(name) {
        return Shown::new(name, value, "uncommitted");
    }
    if draft.unset.contains(name) {
        return Shown::new(name, "(inherited)", "uncommitted");
    }
    let note = match (new, &custom.source) {
        (true, source) if *source != Source::Default => "inherited",
        (_, source) => show::note(source),
    };
    Shown::new(name, custom.value.clone().unwrap_or_default(), note)
}

fn text(item: &Item, name: &str) -> String {
    let shown = item.attribute(name).zip(Attribute::find(name, item.kind));
    shown.map(|(property, attribute)| show::value(attribute, property)).unwrap_or_default()
}

fn number(item: &Item, name: &str) -> String {
    size(item.attribute(name).and_then(|a| a.value.as_ref()?.number()).unwrap_or(0))
}

pub(crate) fn unexpected() -> String {
    "the appliance gave an answer that this shell does not understand".into()
}
