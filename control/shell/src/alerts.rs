//! `configuration alerts`: where alerts are sent, and from where on something is one.

use crate::context::Context;
use crate::draft::Draft;
use crate::shares::unexpected;
use crate::shell::Shell;
use crate::show;
use crate::vocabulary::{Result, Settable, Shown};
use api::alerts::{
    Alerts, AlertsTold, Handler, Receiver, ReceiverChange, Severity, Thresholds, ThresholdsChange,
};
use api::attributes::Shape;
use api::{Reply, Request, Secret};

/// In stars, whatever it is.
const STARS: &str = "********";

pub(crate) fn settable(here: &Context) -> Vec<Settable> {
    let one = |name: &str, shape| Settable { name: name.into(), shape, is_secret: name == "secret" };
    match here {
        Context::Alerts { .. } => ["space_percent", "sync_seconds", "failed_logins"]
            .map(|name| one(name, Shape::Number))
            .into_iter()
            .collect(),
        _ => [
            ("handler", Shape::Word),
            ("to", Shape::Word),
            ("severity", Shape::Word),
            ("enabled", Shape::Flag),
            ("server", Shape::Word),
            ("from", Shape::Word),
            ("user", Shape::Word),
            ("secret", Shape::Word),
        ]
        .map(|(name, shape)| one(name, shape))
        .into_iter()
        .collect(),
    }
}

fn word<T>(draft: &Draft, name: &str, parse: fn(&str) -> Option<T>, all: &str) -> Result<Option<T>> {
    let Some(text) = draft.get(name) else { return Ok(None) };
    let wrong = || format!("invalid value \"{text}\" for \"{name}\": it is {all}");
    parse(text).map(Some).ok_or_else(wrong)
}

fn change(draft: &Draft) -> Result<ReceiverChange> {
    let text = |name: &str| draft.get(name).map(String::from);
    Ok(ReceiverChange {
        to: text("to"),
        severity: word(draft, "severity", Severity::parse, "info, warning or error")?,
        enabled: draft.get("enabled").map(|flag| flag == "true"),
        server: text("server"),
        from: text("from"),
        user: text("user"),
        secret: text("secret").map(Secret::new),
    })
}

impl Shell<'_> {
    fn receivers(&mut self) -> Result<Vec<Receiver>> {
        match self.ask("", Request::Alerts(Alerts::Receivers))? {
            Reply::Alerts(AlertsTold::Receivers(all)) => Ok(all),
            _ => Err(unexpected()),
        }
    }

    fn receiver(&mut self, name: &str) -> Result<Receiver> {
        let found = self.receivers()?.into_iter().find(|receiver| receiver.name == name);
        found.ok_or_else(|| format!("there is no receiver \"{name}\" of alerts"))
    }

    fn thresholds(&mut self) -> Result<Thresholds> {
        match self.ask("", Request::Alerts(Alerts::Thresholds))? {
            Reply::Alerts(AlertsTold::Thresholds(told)) => Ok(told),
            _ => Err(unexpected()),
        }
    }

    pub(crate) fn enter_alerts(&mut self, words: &[String]) -> Result<Option<usize>> {
        let (Context::Alerts { .. }, [verb, name, ..]) = (self.here(), words) else { return Ok(None) };
        let new = match verb.as_str() {
            "create" => true,
            "select" => false,
            _ => return Ok(None),
        };
        if !new {
            self.receiver(name)?;
        }
        self.push(Context::Receiver { name: name.clone(), new, draft: Draft::default() });
        Ok(Some(2))
    }

    pub(crate) fn command_alerts(&mut self, words: &[String]) -> Result<bool> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match (self.here().clone(), &words[..]) {
            (Context::Alerts { .. }, ["list"]) => {
                let text = self.lists_alerts()?.join("\n");
                self.print(&text);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(crate) fn commit_alerts(&mut self) -> Result {
        let asked = match self.here().clone() {
            Context::Alerts { draft } => {
                let number = |name: &str| draft.get(name).map(str::parse).transpose();
                let wrong = |e| format!("{e}");
                Alerts::SetThresholds(ThresholdsChange {
                    space_percent: number("space_percent").map_err(wrong)?,
                    sync_seconds: number("sync_seconds").map_err(wrong)?,
                    failed_logins: number("failed_logins").map_err(wrong)?,
                })
            }
            Context::Receiver { name, new: true, draft } => {
                let handler = word(&draft, "handler", Handler::parse, "syslog, webhook or mail")?;
                Alerts::Create { name, handler: handler.unwrap_or_default(), set: change(&draft)? }
            }
            Context::Receiver { draft, .. } if draft.get("handler").is_some() => {
                return Err("the handler of a receiver stays what it was: make another receiver".into());
            }
            Context::Receiver { name, draft, .. } => Alerts::Change { name, set: change(&draft)? },
            _ => return Ok(()),
        };
        self.ask("", Request::Alerts(asked)).map(drop)
    }

    pub(crate) fn properties_alerts(&mut self) -> Result<Vec<Shown>> {
        let (draft, kept, new) = match self.here().clone() {
            Context::Alerts { draft } => {
                let Thresholds { space_percent, sync_seconds, failed_logins } = self.thresholds()?;
                let numbers = [
                    ("space_percent", space_percent),
                    ("sync_seconds", sync_seconds),
                    ("failed_logins", failed_logins),
                ];
                (draft, numbers.map(|(name, number)| (name, number.to_string())).to_vec(), false)
            }
            Context::Receiver { name, new, draft } => {
                let there = match new {
                    true => Receiver { enabled: true, ..Receiver::default() },
                    false => self.receiver(&name)?,
                };
                let secret = if there.has_secret { STARS } else { "" };
                let texts = vec![
                    ("handler", there.handler.word().to_string()),
                    ("to", there.to),
                    ("severity", there.severity.word().to_string()),
                    ("enabled", there.enabled.to_string()),
                    ("server", there.server),
                    ("from", there.from),
                    ("user", there.user),
                    ("secret", secret.to_string()),
                ];
                let counts = [("sent", there.sent), ("waiting", there.waiting), ("dropped", there.dropped)];
                let counts = counts.map(|(name, count)| (name, count.to_string()));
                let told = (!new)
                    .then(|| counts.into_iter().chain([("problem", there.problem.unwrap_or_default())]));
                (draft, texts.into_iter().chain(told.into_iter().flatten()).collect(), new)
            }
            _ => return Ok(Vec::new()),
        };
        let shown = |(name, kept): (&str, String)| match draft.get(name) {
            Some(_) if name == "secret" => Shown::new(name, STARS, "uncommitted"),
            Some(value) => Shown::new(name, value, "uncommitted"),
            None => Shown::new(name, kept, if new { "default" } else { "" }),
        };
        Ok(kept.into_iter().map(shown).collect())
    }

    pub(crate) fn lists_alerts(&mut self) -> Result<Vec<String>> {
        if !matches!(self.here(), Context::Alerts { .. }) {
            return Ok(Vec::new());
        }
        let row = |r: Receiver| {
            let state = match (r.enabled, r.problem) {
                (false, _) => "disabled",
                (true, Some(_)) => "failing",
                (true, None) => "enabled",
            };
            vec![r.name, r.handler.word().into(), r.severity.word().into(), state.into(), r.to]
        };
        let rows: Vec<Vec<String>> = self.receivers()?.into_iter().map(row).collect();
        match rows.is_empty() {
            true => Ok(Vec::new()),
            false => {
                Ok(vec![show::table("Receivers", &["NAME", "HANDLER", "SEVERITY", "STATE", "TO"], &rows)])
            }
        }
    }

    pub(crate) fn names_alerts(&mut self) -> Vec<String> {
        self.receivers().unwrap_or_default().into_iter().map(|receiver| receiver.name).collect()
    }
}
