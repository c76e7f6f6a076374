//! `snapshots` of a project or share.

use crate::context::Context;
use crate::draft::size;
use crate::shares::unexpected;
use crate::shell::Shell;
use crate::show;
use crate::vocabulary::{Result, Shown};
use api::shares::{Place, Shares};
use api::{Reply, Request, ShareDeed, ShareSnapshot};
use cli::text::date::ctime;

impl Shell<'_> {
    fn snapshots_here(&mut self) -> Result<Vec<ShareSnapshot>> {
        let (Context::Snapshots { place } | Context::Snapshot { place, .. }) = self.here().clone() else {
            return Ok(Vec::new());
        };
        match self.ask("", Request::Shares(Shares::Snapshots { place }))? {
            Reply::ShareSnapshots(found) => Ok(found),
            _ => Err(unexpected()),
        }
    }

    fn snapshot(&mut self, name: &str) -> Result<ShareSnapshot> {
        let found = self.snapshots_here()?.into_iter().find(|s| s.name == name);
        found.ok_or_else(|| format!("there is no snapshot \"{name}\""))
    }

    pub(crate) fn enter_snapshots(&mut self, words: &[String]) -> Result<Option<usize>> {
        match (self.here().clone(), words) {
            (Context::Item { place, new: false, .. }, [word, ..]) if word == "snapshots" => {
                self.push(Context::Snapshots { place });
                Ok(Some(1))
            }
            (Context::Snapshots { place }, [verb, name, ..]) if verb == "select" => {
                let name = self.snapshot(name)?.name;
                self.push(Context::Snapshot { place, name });
                Ok(Some(2))
            }
            _ => Ok(None),
        }
    }

    fn deed(&mut self, place: &Place, name: &str, line: &str, deed: ShareDeed) -> Result {
        let request = Shares::Snapshot { place: place.clone(), name: name.into(), deed };
        self.ask(&format!("shell: {line} {place}@{name}"), Request::Shares(request)).map(drop)
    }

    pub(crate) fn command_snapshots(&mut self, words: &[String]) -> Result<bool> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (place, own) = match self.here().clone() {
            Context::Snapshots { place } => (place, None),
            Context::Snapshot { place, name } => (place, Some(name)),
            _ => return Ok(false),
        };
        match (&words[..], &own) {
            (["list"], None) => {
                let text = self.lists_snapshots()?.join("\n");
                self.print(&text);
            }
            (["snapshot", name], None) => self.deed(&place, name, "snapshot", ShareDeed::Take)?,
            (["rename", from, to], None) => {
                self.deed(&place, from, "rename", ShareDeed::Rename { to: (*to).into() })?;
            }
            (["destroy", name], None) => self.destroy_snapshot(&place, name, &words.join(" "))?,
            (["rollback", name], None) => self.roll_back(&place, name, &words.join(" "))?,
            (["destroy"], Some(name)) => {
                self.destroy_snapshot(&place, name, "destroy")?;
                // What one was in is gone.
                self.stack.pop();
            }
            (["rollback"], Some(name)) => self.roll_back(&place, name, "rollback")?,
            (["clone", share], Some(name)) => self.clone_to(&place, name, &place.project.clone(), share)?,
            (["clone", project, share], Some(name)) => self.clone_to(&place, name, project, share)?,
            (["list", "dependents"], Some(name)) => {
                let request = Shares::Dependents { place, name: name.clone() };
                let Reply::Dependents(found) = self.ask("", Request::Shares(request))? else {
                    return Err(unexpected());
                };
                let lines: String = found.iter().map(|p| format!("{p}\n")).collect();
                self.print(&lines);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn destroy_snapshot(&mut self, place: &Place, name: &str, command: &str) -> Result {
        self.snapshot(name)?;
        self.must_confirm(&format!("This destroys the snapshot \"{place}@{name}\"."), command)?;
        self.deed(place, name, "destroy", ShareDeed::Destroy)
    }

    fn roll_back(&mut self, place: &Place, name: &str, command: &str) -> Result {
        let all = self.snapshots_here()?;
        let Some(at) = all.iter().position(|s| s.name == name) else {
            return Err(format!("there is no snapshot \"{name}\""));
        };
        let newer: Vec<&str> = all[at + 1..].iter().map(|s| s.name.as_str()).collect();
        let mut what = format!("This destroys all that was written to \"{place}\" since \"{name}\"");
        if !newer.is_empty() {
            what += &format!(", and the newer snapshots {}", newer.join(", "));
        }
        self.must_confirm(&(what + "."), command)?;
        self.deed(place, name, "rollback", ShareDeed::Rollback { newer: true, force: true })
    }

    fn clone_to(&mut self, place: &Place, name: &str, project: &str, share: &str) -> Result {
        let to = Place::project(&place.pool, project).share(share);
        let deed = ShareDeed::Clone { project: Some(project.into()), share: share.into(), set: Vec::new() };
        self.deed(place, name, &format!("clone {to} from"), deed)
    }

    pub(crate) fn properties_snapshots(&mut self) -> Result<Vec<Shown>> {
        let Context::Snapshot { name, .. } = self.here().clone() else { return Ok(Vec::new()) };
        let found = self.snapshot(&name)?;
        Ok(vec![
            Shown::new("name", found.name, ""),
            Shown::new("creation", ctime(found.creation), ""),
            Shown::new("numclones", found.clones.to_string(), ""),
            Shown::new("numholds", found.holds.to_string(), ""),
            Shown::new("space_unique", size(found.unique), ""),
            Shown::new("space_data", size(found.data), ""),
        ])
    }

    pub(crate) fn lists_snapshots(&mut self) -> Result<Vec<String>> {
        if !matches!(self.here(), Context::Snapshots { .. }) {
            return Ok(Vec::new());
        }
        let row = |s: &ShareSnapshot| vec![s.name.clone(), size(s.unique), ctime(s.creation)];
        let rows: Vec<Vec<String>> = self.snapshots_here()?.iter().map(row).collect();
        match rows.is_empty() {
            true => Ok(Vec::new()),
            false => Ok(vec![show::table("Snapshots", &["NAME", "UNIQUE", "CREATION"], &rows)]),
        }
    }

    pub(crate) fn names_snapshots(&mut self) -> Vec<String> {
        let found = self.snapshots_here().unwrap_or_default();
        found.into_iter().map(|s| s.name).collect()
    }
}
