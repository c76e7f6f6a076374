//! `analytics changes` and `analytics undo`: what was set, what the statistics say of it, and the way back.

use crate::shares::unexpected;
use crate::shell::Shell;
use crate::show;
use crate::vocabulary::Result;
use api::analytics::{Analytics, Told};
use api::changes::{self, Change, Verdict};
use api::{Reply, Request};

impl Shell<'_> {
    fn changes(&mut self) -> Result<Vec<Change>> {
        match self.ask("", Request::Analytics(Analytics::Changes))? {
            Reply::Analytics(Told::Changes(all)) => Ok(all),
            _ => Err(unexpected()),
        }
    }

    pub(crate) fn print_changes(&mut self) -> Result {
        let rows: Vec<Vec<String>> = self.changes()?.iter().map(row).collect();
        let text =
            show::table("Changes", &["CHANGE", "TIME", "OF", "SETTING", "BEFORE", "AFTER", "EFFECT"], &rows);
        self.print(&text);
        Ok(())
    }

    /// Sets what was set before, which is a change of its own.
    pub(crate) fn undo_change(&mut self, number: &str) -> Result {
        let number = number.parse().map_err(|_| format!("\"{number}\" is no number of a change"))?;
        let all = self.changes()?;
        let (change, request) = changes::way_back(&all, number)?;
        let command = change.way_back_command();
        self.ask(&command, request)?;
        self.print(&command);
        Ok(())
    }
}

fn row(change: &Change) -> Vec<String> {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
    let subject = if change.subject.is_empty() { change.kind.word() } else { &change.subject };
    let effects: Vec<&str> = change.effects().map(|figure| figure.dataset.as_str()).collect();
    let effect = match change.verdict {
        Verdict::Compared if effects.is_empty() => "none seen".into(),
        Verdict::Compared => effects.join(", "),
        Verdict::Mixed => format!("mixed with change {}", change.with),
        Verdict::Waiting | Verdict::Short | Verdict::Idle => change.verdict.word().into(),
    };
    vec![
        change.number.to_string(),
        api::http::date(change.time).replace('T', " ").trim_end_matches('Z').into(),
        subject.into(),
        change.setting.clone(),
        value(&change.before),
        value(&change.after),
        effect,
    ]
}
