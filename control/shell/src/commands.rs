//! What is understood in all contexts: how a line is followed, and the commands that every context has.

use crate::context::{Context, own_name};
use crate::shell::Shell;
use crate::vocabulary::{Result, Settable, Shown};
use crate::{draft, help, show, words};
use api::attributes::Shape;
use std::collections::BTreeMap;

impl Shell<'_> {
    /// Carries out one command, or leads into a context. After an error one is where one was.
    pub fn run(&mut self, line: &str) -> Result {
        let words = words::split(line)?;
        let (stack, origins) = (self.stack.clone(), self.origins.clone());
        self.is_confirmed = false;
        let result = self.follow(&words);
        if result.is_err() {
            (self.stack, self.origins) = (stack, origins);
        }
        result
    }

    fn follow(&mut self, words: &[String]) -> Result {
        let start = self.stack.len();
        let mut rest = words;
        while let [word, more @ ..] = rest {
            if word == "confirm" && !more.is_empty() {
                self.is_confirmed = true;
                rest = more;
                continue;
            }
            match self.enter(rest)? {
                Some(used) => {
                    // Back to where the line began, whichever of its contexts is left first.
                    self.origins.resize(self.stack.len(), start);
                    rest = &rest[used..];
                }
                None => return self.command_at(rest, start),
            }
        }
        Ok(())
    }

    /// Goes into the contexts that the words name, asks `look` about the rest of them, and comes back. `None` when there is
    /// no such context. Nothing is changed.
    pub(crate) fn there<T>(
        &mut self,
        words: &[String],
        look: impl FnOnce(&mut Self, &[String]) -> T,
    ) -> Option<T> {
        let (stack, origins) = (self.stack.clone(), self.origins.clone());
        let mut rest = words;
        let mut is_there = true;
        while let [word, more @ ..] = rest {
            if word == "confirm" {
                rest = more;
                continue;
            }
            match self.enter(rest) {
                Ok(Some(used)) => rest = &rest[used..],
                Ok(None) => break,
                Err(_) => {
                    is_there = false;
                    break;
                }
            }
        }
        let found = is_there.then(|| look(self, rest));
        (self.stack, self.origins) = (stack, origins);
        found
    }

    /// A command at the end of a line that led to its context: it is done there, and one is where one was.
    fn command_at(&mut self, words: &[String], start: usize) -> Result {
        let was_led = self.stack.len() > start;
        self.command(words)?;
        let leaves =
            ["commit", "abort", "done", "cd", "up", "top", "exit", "quit"].contains(&words[0].as_str());
        if was_led && !leaves && self.stack.len() > start && !self.here().is_new() {
            if self.here().draft().is_some_and(|draft| !draft.is_empty()) {
                self.commit()?;
            }
            self.cut(start);
        }
        Ok(())
    }

    fn command(&mut self, words: &[String]) -> Result {
        let rest = &words[1..];
        match (words[0].as_str(), rest.len()) {
            ("help", _) => {
                let text = help::text(self, rest.first().map(String::as_str))?;
                self.print(&text);
                Ok(())
            }
            ("show" | "ls", 0) => self.show(),
            ("get", _) => self.get(rest),
            ("set", 1..) => self.set(rest),
            ("unset", 1..) => self.unset(rest),
            ("commit", 0) if self.here().draft().is_some() => self.commit(),
            ("abort", 0) if self.here().draft().is_some() => {
                self.abort();
                Ok(())
            }
            ("done" | "up" | "top", 0) => self.go(&words[0]),
            ("cd", 1) => self.go(&rest[0]),
            ("exit" | "quit", 0) => {
                self.has_ended = true;
                Ok(())
            }
            _ => {
                let done = self.command_here(words)?;
                if done { Ok(()) } else { Err(format!("invalid command \"{}\"", words.join(" "))) }
            }
        }
    }

    fn go(&mut self, to: &str) -> Result {
        if to == "top" || to == "/" {
            self.not_with_draft()?;
            self.cut(1);
            return Ok(());
        }
        if self.stack.len() == 1 {
            return Err("this is the top".into());
        }
        self.not_with_draft()?;
        match to {
            "done" => self.leave(),
            ".." | "up" => self.cut(self.stack.len() - 1),
            _ => return Err(format!("invalid context \"{to}\": it is .. or /")),
        }
        Ok(())
    }

    fn not_with_draft(&self) -> Result {
        let is_open = |context: &Context| context.is_new() || context.draft().is_some_and(|d| !d.is_empty());
        match self.stack.iter().any(is_open) {
            true => Err("there are uncommitted changes; use commit or abort".into()),
            false => Ok(()),
        }
    }

    /// What is new was never made; of what is there, only the draft goes.
    fn abort(&mut self) {
        if self.here().is_new() {
            self.leave();
        } else if let Some(draft) = self.here_mut().draft_mut() {
            *draft = draft::Draft::default();
        }
    }

    fn set(&mut self, settings: &[String]) -> Result {
        if matches!(self.here(), Context::Shares) {
            return settings.iter().try_for_each(|word| self.set_pool(word));
        }
        let settable = self.settable();
        for word in settings {
            let (name, text) = words::setting(word)?;
            let known = settable.iter().find(|s| s.name == name).cloned().or_else(|| self.custom(name));
            let known = known.ok_or_else(|| self.not_settable(name))?;
            let value = draft::spell(name, known.shape, text)?;
            if let Some(draft) = self.here_mut().draft_mut() {
                draft.set(name, &value);
            }
            let shown = if known.is_secret { show::SECRET.to_string() } else { value };
            self.print(&show::echo(name, &shown, "uncommitted"));
        }
        Ok(())
    }

    /// A property of the schema: whether there is one, the appliance knows.
    fn custom(&self, name: &str) -> Option<Settable> {
        let is_custom = matches!(self.here(), Context::Item { .. }) && name.starts_with(api::schema::PREFIX);
        is_custom.then(|| Settable { name: name.into(), shape: Shape::Word, is_secret: false })
    }

    fn not_settable(&self, name: &str) -> String {
        match self.here() {
            Context::Item { kind, .. } => match api::attributes::Attribute::find(name, *kind) {
                Some(_) => format!("property \"{name}\" is read-only"),
                None => format!("invalid property \"{name}\""),
            },
            Context::Object { of, .. } if name == own_name(*of) => {
                format!("property \"{name}\" is read-only")
            }
            _ => format!("invalid property \"{name}\""),
        }
    }

    fn is_attribute(&self, name: &str) -> bool {
        match self.here() {
            Context::Item { kind, .. } => api::attributes::Attribute::find(name, *kind).is_some(),
            _ => false,
        }
    }

    fn unset(&mut self, names: &[String]) -> Result {
        let settable = self.settable();
        if !matches!(self.here(), Context::Item { .. }) {
            return Err("nothing is inherited here".into());
        }
        for name in names {
            if !settable.iter().any(|s| s.name == *name) && self.custom(name).is_none() {
                return Err(self.not_settable(name));
            }
            if let Some(draft) = self.here_mut().draft_mut() {
                draft.unset(name);
            }
            self.print(&show::echo(name, "(inherited)", "uncommitted"));
        }
        Ok(())
    }

    fn get(&mut self, names: &[String]) -> Result {
        let shown = self.properties()?;
        let known: BTreeMap<&str, &Shown> = shown.iter().map(|s| (s.name.as_str(), s)).collect();
        let mut text = String::new();
        if names.is_empty() {
            shown.iter().for_each(|s| text.push_str(&show::property(&s.name, &s.value, &s.note)));
        }
        for name in names {
            let line = match known.get(name.as_str()) {
                Some(found) => show::property(name, &found.value, &found.note),
                // Such as a migration while none is under way.
                None if self.is_attribute(name) => show::property(name, "", ""),
                None => return Err(format!("invalid property \"{name}\"")),
            };
            text.push_str(&line);
        }
        self.print(&text);
        Ok(())
    }

    fn show(&mut self) -> Result {
        let properties = self.properties()?;
        let mut parts = Vec::new();
        if !properties.is_empty() {
            let lines = properties.iter().map(|s| show::property(&s.name, &s.value, &s.note));
            parts.push(format!("Properties:\n{}", lines.collect::<String>()));
        }
        parts.extend(self.lists()?);
        let children = help::children(self.here());
        if !children.is_empty() {
            let lines = children.iter().map(|(name, text)| show::child(name, text));
            parts.push(format!("Children:\n{}", lines.collect::<String>()));
        }
        self.print(&parts.join("\n"));
        Ok(())
    }
}
