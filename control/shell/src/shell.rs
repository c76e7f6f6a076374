//! The stack of contexts, and what is understood in all of them.

use crate::context::{self, Context};
use crate::words;
use crate::{draft, help, show};
use api::attributes::Shape;
use api::{ApiError, Reply, Request};
use std::collections::BTreeMap;

/// Whoever takes requests to the appliance.
pub trait Ask {
    /// `line` is what a person would have typed, for the history of the pools that it changes.
    fn ask(&mut self, line: &str, request: Request) -> Result<Reply, ApiError>;
}

pub(crate) type Result<T = (), E = String> = std::result::Result<T, E>;

/// A property that can be set where one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settable {
    pub name: String,
    pub shape: Shape,
    pub is_secret: bool,
}

/// A property with its value as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub name: String,
    pub value: String,
    pub note: String,
}

impl Shown {
    pub fn new(name: &str, value: impl Into<String>, note: &str) -> Shown {
        Shown { name: name.into(), value: value.into(), note: note.into() }
    }
}

/// See the crate.
pub struct Shell<'a> {
    ask: &'a mut dyn Ask,
    host: String,
    /// The root, and what was entered from there; each with the depth to which one returns from it.
    pub(crate) stack: Vec<Context>,
    origins: Vec<usize>,
    pub(crate) pool: Option<String>,
    output: String,
    /// Asks a person whether to go on; without a person the answer is no.
    confirm: Option<fn(&str) -> bool>,
    is_confirmed: bool,
    has_ended: bool,
}

impl std::fmt::Debug for Shell<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shell({})", self.prompt())
    }
}

impl<'a> Shell<'a> {
    pub fn new(host: &str, ask: &'a mut dyn Ask) -> Shell<'a> {
        Shell {
            ask,
            host: host.into(),
            stack: vec![Context::Root],
            origins: vec![1],
            pool: None,
            output: String::new(),
            confirm: None,
            is_confirmed: false,
            has_ended: false,
        }
    }

    /// A person is there to be asked.
    pub fn set_confirm(&mut self, confirm: fn(&str) -> bool) {
        self.confirm = Some(confirm);
    }

    pub fn prompt(&self) -> String {
        context::prompt(&self.host, &self.stack)
    }

    /// What was printed since the last time.
    pub fn take_output(&mut self) -> String {
        std::mem::take(&mut self.output)
    }

    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

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

    pub(crate) fn here(&self) -> &Context {
        self.stack.last().expect("the root is always there")
    }

    pub(crate) fn here_mut(&mut self) -> &mut Context {
        self.stack.last_mut().expect("the root is always there")
    }

    pub(crate) fn push(&mut self, context: Context) {
        self.stack.push(context);
    }

    fn cut(&mut self, depth: usize) {
        self.stack.truncate(depth.max(1));
        self.origins.truncate(depth.max(1));
    }

    /// Back to where the line began that led here.
    pub(crate) fn leave(&mut self) {
        let to = self.origins.last().copied().unwrap_or(1).min(self.stack.len() - 1);
        self.cut(to);
    }

    pub(crate) fn print(&mut self, text: &str) {
        self.output.push_str(text);
    }

    pub(crate) fn ask(&mut self, line: &str, request: Request) -> Result<Reply> {
        self.ask.ask(line, request).map_err(|e| e.message)
    }

    /// Whether to go on with what cannot be undone.
    pub(crate) fn must_confirm(&mut self, what: &str, command: &str) -> Result {
        if self.is_confirmed || self.confirm.is_some_and(|ask| ask(&format!("{what} Are you sure? (Y/N) "))) {
            return Ok(());
        }
        match self.confirm {
            Some(_) => Err("it was not confirmed, and nothing was done".into()),
            None => Err(format!("{what} To go on, say \"confirm {command}\"")),
        }
    }

    /// Goes into the context that the first words name, if they name one: how many they were.
    fn enter(&mut self, words: &[String]) -> Result<Option<usize>> {
        match self.here() {
            Context::Root => Ok(self.enter_menu(&words[0])),
            Context::Shares if words[0] == "schema" => {
                self.push(Context::Schema);
                Ok(Some(1))
            }
            Context::Snapshots { place } if words[0] == "automatic" => {
                let place = place.clone();
                self.push(Context::Automatics { place });
                Ok(Some(1))
            }
            Context::Automatics { .. } | Context::Automatic { .. } => self.enter_automatic(words),
            Context::Schema | Context::SchemaProperty { .. } => self.enter_schema(words),
            Context::Shares | Context::Item { .. } if words[0] != "snapshots" => self.enter_shares(words),
            Context::Item { .. } | Context::Shares | Context::Snapshots { .. } | Context::Snapshot { .. } => {
                self.enter_snapshots(words)
            }
            Context::Configuration if words[0] == "services" => {
                self.push(Context::Services);
                Ok(Some(1))
            }
            Context::Services | Context::Service { .. } => self.enter_services(words),
            Context::Configuration
            | Context::San
            | Context::Side(_)
            | Context::Objects(_)
            | Context::Groups(_)
            | Context::Object { .. }
            | Context::Group { .. }
            | Context::Inquiry { .. } => self.enter_san(words),
            Context::Maintenance | Context::System | Context::Updates => {
                Ok(self.enter_maintenance(&words[0]))
            }
        }
    }

    fn enter_menu(&mut self, word: &str) -> Option<usize> {
        let context = match word {
            "shares" => Context::Shares,
            "configuration" => Context::Configuration,
            "maintenance" => Context::Maintenance,
            _ => return None,
        };
        self.push(context);
        Some(1)
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
                let done = match self.here() {
                    Context::Shares | Context::Item { .. } => self.command_shares(words)?,
                    Context::Snapshots { .. } | Context::Snapshot { .. } => self.command_snapshots(words)?,
                    Context::Objects(_)
                    | Context::Groups(_)
                    | Context::Object { .. }
                    | Context::Group { .. } => self.command_san(words)?,
                    Context::Automatics { .. } | Context::Automatic { .. } => {
                        self.command_automatic(words)?
                    }
                    Context::Services | Context::Service { .. } => self.command_services(words)?,
                    Context::Schema | Context::SchemaProperty { .. } => self.command_schema(words)?,
                    Context::System | Context::Updates => self.command_maintenance(words)?,
                    _ => false,
                };
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
            Context::Object { .. } if name == "iqn" || name == "initiator" => {
                format!("property \"{name}\" is read-only")
            }
            _ => format!("invalid property \"{name}\""),
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
            let found = known.get(name.as_str()).ok_or_else(|| format!("invalid property \"{name}\""))?;
            text.push_str(&show::property(name, &found.value, &found.note));
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

    /// Every property there is here, and its value.
    pub(crate) fn properties(&mut self) -> Result<Vec<Shown>> {
        match self.here() {
            Context::Shares | Context::Item { .. } => self.properties_shares(),
            Context::Snapshot { .. } => self.properties_snapshots(),
            Context::SchemaProperty { .. } => self.properties_schema(),
            Context::Service { .. } => self.properties_services(),
            Context::Automatic { .. } => self.properties_automatic(),
            Context::Object { .. } | Context::Group { .. } | Context::Inquiry { .. } => self.properties_san(),
            _ => Ok(Vec::new()),
        }
    }

    /// What can be set here.
    pub(crate) fn settable(&self) -> Vec<Settable> {
        match self.here() {
            Context::Item { kind, .. } => crate::shares::settable(*kind),
            Context::SchemaProperty { .. } => crate::schema::settable(),
            Context::Service { .. } => crate::services::settable(),
            Context::Automatic { .. } => crate::automatic::settable(),
            Context::Object { .. } | Context::Group { .. } | Context::Inquiry { .. } => {
                crate::san::settable(self.here())
            }
            _ => Vec::new(),
        }
    }

    /// What there is to select here, in tables.
    pub(crate) fn lists(&mut self) -> Result<Vec<String>> {
        match self.here() {
            Context::Shares | Context::Item { .. } => self.lists_shares(),
            Context::Snapshots { .. } => self.lists_snapshots(),
            Context::Schema => self.lists_schema(),
            Context::Services => self.lists_services(),
            Context::Automatics { .. } => self.lists_automatic(),
            Context::Objects(_) | Context::Groups(_) => self.lists_san(),
            Context::Updates => self.lists_maintenance(),
            _ => Ok(Vec::new()),
        }
    }

    /// What can be selected here, for completion.
    pub(crate) fn names(&mut self) -> Vec<String> {
        match self.here() {
            Context::Shares | Context::Item { .. } => self.names_shares(),
            Context::Snapshots { .. } => self.names_snapshots(),
            Context::Schema => self.names_schema(),
            Context::Services => self.names_services(),
            Context::Automatics { .. } => self.names_automatic(),
            Context::Objects(_) | Context::Groups(_) => self.names_san(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn commit(&mut self) -> Result {
        let was_new = self.here().is_new();
        match self.here() {
            Context::Item { .. } => self.commit_item()?,
            Context::SchemaProperty { .. } => self.commit_schema()?,
            Context::Service { .. } => self.commit_services()?,
            Context::Automatic { .. } => self.commit_automatic()?,
            _ => self.commit_san()?,
        }
        if was_new {
            self.leave();
        } else if let Some(draft) = self.here_mut().draft_mut() {
            *draft = draft::Draft::default();
        }
        Ok(())
    }
}
