//! Receivers of alerts and thresholds as the configuration keeps them.

use ::alerts::State;
use api::Secret;
use api::alerts::{Handler, Receiver, ReceiverChange, Severity, Thresholds};
use serde::{Deserialize, Serialize};
use store::{Look, Table, Writer};
use units::{Error, Result};

/// By their names.
pub(super) const RECEIVERS: Table<Record> = Table::new("alerts.receivers");
pub(super) const THRESHOLDS: Table<Thresholds> = Table::new("alerts.thresholds");
pub(super) const THRESHOLDS_KEY: &str = "thresholds";

/// Each has a thread.
pub(super) const RECEIVERS_MAX: usize = 16;
const NAME_MAX: usize = 64;
const TEXT_MAX: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Record {
    handler: Handler,
    to: String,
    severity: Severity,
    enabled: bool,
    server: String,
    from: String,
    user: String,
    #[serde(with = "api::secret::revealed")]
    secret: Option<Secret>,
}

impl Default for Record {
    fn default() -> Record {
        Record::of(Handler::default())
    }
}

impl Record {
    pub fn of(handler: Handler) -> Record {
        Record {
            handler,
            to: if handler == Handler::Syslog { "local".into() } else { String::new() },
            severity: Severity::default(),
            enabled: true,
            server: String::new(),
            from: String::new(),
            user: String::new(),
            secret: None,
        }
    }

    /// # Errors
    /// A secret is sent where it was told for: what is sent elsewhere from now on needs it again, or an empty one.
    pub fn change(&mut self, set: ReceiverChange) -> Result<()> {
        let before = self.destination();
        let is_told = set.secret.is_some();
        self.set(set);
        if self.secret.is_some() && !is_told && self.destination() != before {
            return Err(Error::invalid(
                "the secret was told for another place: give it again, or an empty one",
            ));
        }
        Ok(())
    }

    /// Where the secret goes.
    fn destination(&self) -> [String; 3] {
        let to = if self.handler == Handler::Mail { "" } else { &self.to };
        [to, &self.server, &self.user].map(String::from)
    }

    fn set(&mut self, set: ReceiverChange) {
        let ReceiverChange { to, severity, enabled, server, from, user, secret } = set;
        let text = |of: &mut String, to: Option<String>| *of = to.unwrap_or_else(|| std::mem::take(of));
        text(&mut self.to, to);
        text(&mut self.server, server);
        text(&mut self.from, from);
        text(&mut self.user, user);
        self.severity = severity.unwrap_or(self.severity);
        self.enabled = enabled.unwrap_or(self.enabled);
        if let Some(secret) = secret {
            self.secret = (!secret.reveal().is_empty()).then_some(secret);
        }
    }

    pub fn receiver(self, name: &str) -> ::alerts::Receiver {
        let Record { handler, to, severity, enabled, server, from, user, secret } = self;
        ::alerts::Receiver { name: name.into(), handler, to, server, from, user, secret, severity, enabled }
    }

    pub fn told(self, name: &str, state: State) -> Receiver {
        let State { sent, dropped, waiting, problem } = state;
        Receiver {
            name: name.into(),
            handler: self.handler,
            to: self.to,
            severity: self.severity,
            enabled: self.enabled,
            server: self.server,
            from: self.from,
            user: self.user,
            has_secret: self.secret.is_some(),
            sent,
            dropped,
            waiting,
            problem,
        }
    }
}

pub(super) fn check(name: &str, record: &Record) -> Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(is_plain) || name.starts_with('.') {
        return Err(Error::invalid(format!("a name has 1 to {NAME_MAX} letters, digits, '-', '_' and '.'")));
    }
    let secret = record.secret.as_ref().map_or("", |secret| secret.reveal());
    let texts = [&record.to, &record.server, &record.from, &record.user].map(String::as_str);
    // A header or a command of mail ends with its line.
    if texts.into_iter().chain([secret]).any(|t| t.len() > TEXT_MAX || t.chars().any(char::is_control)) {
        return Err(Error::invalid(format!("a value is one line of at most {TEXT_MAX} bytes")));
    }
    ::alerts::check(&record.clone().receiver(name)).map_err(Error::invalid)
}

pub(super) fn check_thresholds(thresholds: &Thresholds) -> Result<()> {
    let Thresholds { space_percent, sync_seconds, failed_logins } = *thresholds;
    let limits = [
        ("space_percent", space_percent, 100),
        ("sync_seconds", sync_seconds, 86_400),
        ("failed_logins", failed_logins, 10_000),
    ];
    match limits.into_iter().find(|(_, value, max)| value > max) {
        Some((name, _, max)) => Err(Error::invalid(format!("{name} is at most {max}"))),
        None => Ok(()),
    }
}

/// Of a configuration that came from elsewhere.
pub(crate) fn check_records(writer: &Writer) -> Result<()> {
    let all = writer.exact(&RECEIVERS)?;
    if all.len() > RECEIVERS_MAX {
        return Err(Error::invalid(format!("there are {RECEIVERS_MAX} receivers of alerts at most")));
    }
    for (name, record) in all {
        check(&name, &record).map_err(|e| Error::invalid(format!("receiver of alerts '{name}': {e}")))?;
    }
    writer.exact(&THRESHOLDS)?.iter().try_for_each(|(_, thresholds)| check_thresholds(thresholds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_is_checked_as_a_whole_and_its_secret_is_not_told() {
        let mut record = Record::of(Handler::Webhook);
        assert!(check("hook", &record).is_err(), "it has no address");
        record
            .change(ReceiverChange {
                to: Some("https://hooks.example.com/x".into()),
                secret: Some(Secret::new("correct horse")),
                ..ReceiverChange::default()
            })
            .unwrap();
        check("hook", &record).unwrap();
        let elsewhere =
            || ReceiverChange { to: Some("https://other.example.com/x".into()), ..ReceiverChange::default() };
        assert!(record.clone().change(elsewhere()).is_err(), "the secret was not told for that");
        let again = ReceiverChange { secret: Some(Secret::new("other")), ..elsewhere() };
        record.clone().change(again).unwrap();
        record.clone().change(ReceiverChange { enabled: Some(false), ..ReceiverChange::default() }).unwrap();
        let told = record.clone().told("hook", State::default());
        assert!(told.has_secret && told.enabled && told.severity == Severity::Warning);
        assert!(!format!("{told:?} {record:?}").contains("correct"));
        for name in ["", "a b", "a/b", ".a", &"x".repeat(65)] {
            assert!(check(name, &record).is_err(), "{name}");
        }
        let secret = |text| ReceiverChange { secret: Some(Secret::new(text)), ..ReceiverChange::default() };
        record.change(secret("a\r\nX: y")).unwrap();
        assert!(check("hook", &record).is_err(), "a secret is one line");
        record.change(secret("")).unwrap();
        assert_eq!(record.secret, None);
        check("log", &Record::of(Handler::Syslog)).unwrap();
        let is_legal =
            |space_percent| check_thresholds(&Thresholds { space_percent, ..Thresholds::default() }).is_ok();
        assert!(is_legal(0) && is_legal(100) && !is_legal(101));
    }
}
