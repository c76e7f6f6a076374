//! `snapshots automatic`: when snapshots of a project or share are taken by themselves.

use crate::context::Context;
use crate::draft::Draft;
use crate::shares::unexpected;
use crate::shell::Shell;
use crate::show;
use crate::vocabulary::{Result, Settable, Shown};
use api::attributes::Shape;
use api::shares::Shares;
use api::{Automatic, AutomaticDeed, Reply, Request};
use cli::text::date::ctime;

pub(crate) fn settable() -> Vec<Settable> {
    let word = |name: &str| Settable { name: name.into(), shape: Shape::Word, is_secret: false };
    ["frequency", "day", "hour", "minute", "keep"].map(word).into()
}

impl Shell<'_> {
    fn automatics(&mut self) -> Result<Vec<Automatic>> {
        let (Context::Automatics { place } | Context::Automatic { place, .. }) = self.here().clone() else {
            return Ok(Vec::new());
        };
        match self.ask("", Request::Shares(Shares::Automatics { place }))? {
            Reply::Automatics(all) => Ok(all),
            _ => Err(unexpected()),
        }
    }

    fn automatic(&mut self, name: &str) -> Result<Automatic> {
        let found = self.automatics()?.into_iter().find(|automatic| automatic.name() == name);
        found.ok_or_else(|| format!("there is no schedule \"{name}\""))
    }

    fn automatic_of(&mut self, id: u32) -> Result<Automatic> {
        self.automatic(&Automatic { id, ..Automatic::default() }.name())
    }

    pub(crate) fn enter_automatic(&mut self, words: &[String]) -> Result<Option<usize>> {
        let Context::Automatics { place } = self.here().clone() else { return Ok(None) };
        let (id, used) = match words {
            [verb, ..] if verb == "create" => (None, 1),
            [verb, name, ..] if verb == "select" => (Some(self.automatic(name)?.id), 2),
            _ => return Ok(None),
        };
        self.push(Context::Automatic { place, id, draft: Draft::default() });
        Ok(Some(used))
    }

    fn automatic_deed(&mut self, line: &str, deed: AutomaticDeed) -> Result {
        let (Context::Automatics { place } | Context::Automatic { place, .. }) = self.here().clone() else {
            return Ok(());
        };
        let line = format!("shell: {line} {place}");
        self.ask(&line, Request::Shares(Shares::Automatic { place, deed })).map(drop)
    }

    pub(crate) fn command_automatic(&mut self, words: &[String]) -> Result<bool> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match (self.here().clone(), &words[..]) {
            (Context::Automatics { .. }, ["list"]) => {
                let text = self.lists_automatic()?.join("\n");
                self.print(&text);
            }
            (Context::Automatics { .. }, ["destroy", name]) => {
                let id = self.automatic(name)?.id;
                self.destroy_automatic(id, &words.join(" "))?;
            }
            (Context::Automatic { id: Some(id), .. }, ["destroy"]) => {
                self.destroy_automatic(id, "destroy")?;
                // What one was in is gone.
                self.stack.pop();
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn destroy_automatic(&mut self, id: u32, command: &str) -> Result {
        let name = self.automatic_of(id)?.name();
        let what = format!("This ends the schedule \"{name}\"; what it took stays.");
        self.must_confirm(&what, command)?;
        self.automatic_deed(&format!("destroy {name} of"), AutomaticDeed::Destroy { id })
    }

    pub(crate) fn commit_automatic(&mut self) -> Result {
        let Context::Automatic { id, draft, .. } = self.here().clone() else { return Ok(()) };
        match id {
            None => self.automatic_deed("schedule snapshots of", AutomaticDeed::Create { set: draft.set }),
            Some(_) if draft.is_empty() => Ok(()),
            Some(id) => {
                self.automatic_deed("schedule snapshots of", AutomaticDeed::Change { id, set: draft.set })
            }
        }
    }

    pub(crate) fn properties_automatic(&mut self) -> Result<Vec<Shown>> {
        let Context::Automatic { id, draft, .. } = self.here().clone() else { return Ok(Vec::new()) };
        let there = match id {
            Some(id) => self.automatic_of(id)?,
            None => Automatic::default(),
        };
        let when = &there.when;
        let kept = [
            ("frequency", id.map(|_| when.frequency.word().to_string())),
            ("day", id.and_then(|_| when.day_word())),
            ("hour", id.and_then(|_| when.hour()).map(|hour| hour.to_string())),
            ("minute", Some(when.minute.to_string())),
            ("keep", Some(there.keep.to_string())),
        ];
        let one = |(name, kept): (&str, Option<String>)| match draft.get(name) {
            Some(value) => Shown::new(name, value, "uncommitted"),
            None => Shown::new(name, kept.unwrap_or_default(), if id.is_none() { "default" } else { "" }),
        };
        let mut shown: Vec<Shown> = kept.into_iter().map(one).collect();
        shown.extend(there.last.map(|last| Shown::new("last", ctime(last), "")));
        shown.extend(there.problem.map(|why| Shown::new("problem", why, "")));
        Ok(shown)
    }

    pub(crate) fn lists_automatic(&mut self) -> Result<Vec<String>> {
        if !matches!(self.here(), Context::Automatics { .. }) {
            return Ok(Vec::new());
        }
        let row = |automatic: &Automatic| {
            let when = &automatic.when;
            let hour = when.hour().map_or("-".to_string(), |hour| format!("{hour:02}"));
            vec![
                automatic.name(),
                when.frequency.word().into(),
                when.day_word().unwrap_or_else(|| "-".into()),
                format!("{hour}:{:02}", when.minute),
                if automatic.keep == 0 { "all".into() } else { automatic.keep.to_string() },
            ]
        };
        let rows: Vec<Vec<String>> = self.automatics()?.iter().map(row).collect();
        match rows.is_empty() {
            true => Ok(Vec::new()),
            false => {
                Ok(vec![show::table("Automatic", &["NAME", "FREQUENCY", "DAY", "HH:MM", "KEEP"], &rows)])
            }
        }
    }

    pub(crate) fn names_automatic(&mut self) -> Vec<String> {
        self.automatics().unwrap_or_default().iter().map(Automatic::name).collect()
    }
}
