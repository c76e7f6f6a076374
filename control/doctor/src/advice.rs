//! Advice, and how it is printed.
//!
//! Words of a fix in capitals, such as DEVICE, are the reader's to choose. A command of ours in it is whole: it begins with
//! `cenote ` and ends at the end of its line, at `;`, at a comma, at a quotation mark, or at a blank before a bracket
//! ([`commands`]).

use crate::facts::plain;
use serde::{Deserialize, Serialize};

/// Whose setting a fix changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum System {
    Cenote,
    Linux,
    Solaris,
    Windows,
    #[serde(rename = "ESXi")]
    Esxi,
}

impl System {
    pub fn word(self) -> &'static str {
        match self {
            System::Cenote => "Cenote",
            System::Linux => "Linux",
            System::Solaris => "Solaris",
            System::Windows => "Windows",
            System::Esxi => "ESXi",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fix {
    pub system: System,
    /// Commands or lines of a file, and where they go.
    pub text: String,
}

/// A property of a dataset of ours, so that the fix can be carried out here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    pub dataset: String,
    pub property: String,
    pub value: String,
}

/// One thing to change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advice {
    /// The rule that says so, by its name in [`crate::RULES`].
    pub rule: String,
    /// The properties of a dataset that it judges; empty, when it is about something else.
    pub properties: Vec<String>,
    /// A disk, a file, a mount point, a pool.
    pub about: String,
    /// The figure, and where it was seen.
    pub seen: String,
    /// Why it costs.
    #[serde(rename = "costs")]
    pub cost: String,
    /// What the lab shows of such a change, and by which command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lab: Option<String>,
    pub fixes: Vec<Fix>,
    /// How to take it back.
    pub undo: String,
    /// The fix, where it is one setting of ours and nothing else.
    pub setting: Option<Setting>,
}

impl Advice {
    pub(crate) fn new(rule: &str, about: &str, seen: impl Into<String>, cost: impl Into<String>) -> Advice {
        let (about, seen, cost) = (plain(about), plain(&seen.into()), cost.into());
        Advice {
            rule: rule.into(),
            properties: Vec::new(),
            about,
            seen,
            cost,
            lab: None,
            fixes: Vec::new(),
            undo: String::new(),
            setting: None,
        }
    }

    pub(crate) fn fix(mut self, system: System, text: impl Into<String>) -> Advice {
        self.fixes.push(Fix { system, text: text.into() });
        self
    }

    pub(crate) fn setting(mut self, dataset: &str, property: &str, value: &str) -> Advice {
        self.setting =
            Some(Setting { dataset: dataset.into(), property: property.into(), value: value.into() });
        self
    }

    pub(crate) fn undo(mut self, text: impl Into<String>) -> Advice {
        self.undo = text.into();
        self
    }
}

impl Advice {
    /// Whether it judges one of these properties, which were just set.
    pub fn judges<'a>(&self, set: impl IntoIterator<Item = &'a str>) -> bool {
        set.into_iter().any(|name| self.properties.iter().any(|property| property == name))
    }
}

/// The commands of ours in what a fix, or the way back, says: each as it is typed, without its first word.
pub fn commands(text: &str) -> Vec<&str> {
    let ends = |after: &str| {
        let marks = ["\n", ";", ", ", " (", "'"];
        marks.iter().filter_map(|mark| after.find(mark)).min().unwrap_or(after.len())
    };
    let starts = text.match_indices("cenote ").map(|(at, word)| &text[at + word.len()..]);
    starts.map(|after| after[..ends(after)].trim_end_matches([')', ' '])).collect()
}

/// For people: a paragraph for each, or one line that nothing is wrong.
pub fn render(all: &[Advice]) -> String {
    if all.is_empty() {
        return "nothing to change\n".into();
    }
    let one = |(number, advice): (usize, &Advice)| paragraph(number + 1, advice);
    all.iter().enumerate().map(one).collect::<Vec<_>>().join("\n")
}

/// One line, for the place where a setting is made.
pub fn line(advice: &Advice) -> String {
    let fix = advice.fixes.first().map(|fix| fix.text.lines().map(plain).collect::<Vec<_>>().join(" "));
    let fix = fix.map(|fix| format!("; {fix}")).unwrap_or_default();
    format!("advice: {}: {}: {}{fix}\n", advice.about, advice.seen, advice.cost)
}

/// One advice, with its number.
pub fn paragraph(number: usize, advice: &Advice) -> String {
    let fixes = advice.fixes.iter().map(|fix| {
        let lines = fix.text.lines().map(plain).collect::<Vec<_>>().join("\n              ");
        format!("    {:<8}  {lines}\n", fix.system.word())
    });
    let lab = advice.lab.as_ref().map(|lab| format!("    lab       {}\n", plain(lab))).unwrap_or_default();
    format!(
        "{number}. {} ({})\n    seen      {}\n    costs     {}\n{lab}{}    undo      {}\n",
        advice.about,
        advice.rule,
        advice.seen,
        advice.cost,
        fixes.collect::<String>(),
        plain(&advice.undo)
    )
}
