//! Schedules of snapshots: when one is taken by itself of a project or share, and how many stay.
//!
//! ```text
//!   frequency   day             hour   minute
//!   halfhour                           15       at 15 and 45 past
//!   hour                               15
//!   day                         14     15
//!   week        Sunday          14     15
//!   month       31              14     15       on the last day of a month that is shorter
//! ```
//!
//! Times are those of UTC. What is taken is called `.auto-` and the seconds since 1970.

use serde::{Deserialize, Serialize};

/// What names of such snapshots begin with.
pub const PREFIX: &str = ".auto-";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Frequency {
    HalfHour,
    Hour,
    #[default]
    Day,
    Week,
    Month,
}

impl Frequency {
    pub const ALL: [Frequency; 5] =
        [Frequency::HalfHour, Frequency::Hour, Frequency::Day, Frequency::Week, Frequency::Month];

    pub fn word(self) -> &'static str {
        match self {
            Frequency::HalfHour => "halfhour",
            Frequency::Hour => "hour",
            Frequency::Day => "day",
            Frequency::Week => "week",
            Frequency::Month => "month",
        }
    }

    fn has_hour(self) -> bool {
        !matches!(self, Frequency::HalfHour | Frequency::Hour)
    }
}

const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// When snapshots are taken. What its frequency has no use for is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct When {
    pub frequency: Frequency,
    /// Of a week 0 to 6, from Monday on; of a month 1 to 31.
    pub day: u8,
    pub hour: u8,
    pub minute: u8,
}

/// A schedule of a project or share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Automatic {
    pub id: u32,
    pub when: When,
    /// So many of its snapshots stay; 0: all.
    pub keep: u32,
    /// For which moment it last took one, in seconds since 1970.
    pub last: Option<u64>,
    /// Why the one that is due has not been taken.
    pub problem: Option<String>,
}

/// What is done with one of them. Settings are words by their names, as they were typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AutomaticDeed {
    Create { set: Vec<(String, String)> },
    Change { id: u32, set: Vec<(String, String)> },
    Destroy { id: u32 },
}

impl Automatic {
    /// `automatic-000`
    pub fn name(&self) -> String {
        format!("automatic-{:03}", self.id)
    }

    /// The number in such a name.
    pub fn id_of(name: &str) -> Option<u32> {
        let digits = name.strip_prefix("automatic-")?;
        let id = digits.parse().ok()?;
        (Automatic { id, ..Automatic::default() }.name() == name).then_some(id)
    }

    /// With what was typed; of something new, the frequency must be.
    pub fn with(&self, set: &[(String, String)], is_new: bool) -> Result<Automatic, String> {
        let mut changed = self.clone();
        let typed = |name: &str| set.iter().rev().find(|(n, _)| n == name).map(|(_, text)| text.as_str());
        let known = ["frequency", "day", "hour", "minute", "keep"];
        if let Some((name, _)) = set.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            return Err(format!("invalid property \"{name}\""));
        }
        let when = &mut changed.when;
        match typed("frequency") {
            Some(word) => {
                let found = Frequency::ALL.into_iter().find(|f| f.word() == word);
                let frequency = found.ok_or_else(|| {
                    bad(
                        "frequency",
                        word,
                        &format!("it is one of {}", Frequency::ALL.map(Frequency::word).join(", ")),
                    )
                })?;
                // A day of the week says nothing of the month.
                if frequency != when.frequency {
                    *when = When { frequency, day: u8::from(frequency == Frequency::Month), ..*when };
                }
            }
            None if is_new => return Err("property \"frequency\" must be set".into()),
            None => {}
        }
        if let Some(text) = typed("day") {
            when.day = day(when.frequency, text)?;
        }
        if let Some(text) = typed("hour") {
            if !when.frequency.has_hour() {
                return Err(bad("hour", text, "the frequency leaves no choice of it"));
            }
            when.hour = number("hour", text, 23)?;
        }
        if let Some(text) = typed("minute") {
            when.minute = number("minute", text, 59)?;
        }
        if let Some(text) = typed("keep") {
            changed.keep = text.parse().map_err(|_| bad("keep", text, "it is a number, or 0 to keep all"))?;
        }
        if !when.frequency.has_hour() {
            when.hour = 0;
        }
        if when.frequency == Frequency::HalfHour {
            when.minute %= 30;
        }
        Ok(changed)
    }
}

impl When {
    /// The day as it is typed; none where the frequency has no choice of it.
    pub fn day_word(&self) -> Option<String> {
        match self.frequency {
            Frequency::Week => WEEKDAYS.get(usize::from(self.day)).map(ToString::to_string),
            Frequency::Month => Some(self.day.to_string()),
            _ => None,
        }
    }

    /// Whether it is one that can be typed: each part is in its bounds, and zero where its frequency has no use for it.
    pub fn is_sound(&self) -> bool {
        let day = match self.frequency {
            Frequency::Week => self.day <= 6,
            Frequency::Month => (1..=31).contains(&self.day),
            _ => self.day == 0,
        };
        let minutes = if self.frequency == Frequency::HalfHour { 30 } else { 60 };
        day && self.minute < minutes && self.hour < if self.frequency.has_hour() { 24 } else { 1 }
    }

    pub fn hour(&self) -> Option<u8> {
        self.frequency.has_hour().then_some(self.hour)
    }
}

fn bad(name: &str, text: &str, why: &str) -> String {
    format!("invalid value \"{text}\" for \"{name}\": {why}")
}

fn number(name: &str, text: &str, max: u8) -> Result<u8, String> {
    let number = text.parse().ok().filter(|n| *n <= max);
    number.ok_or_else(|| bad(name, text, &format!("it is a number from 0 to {max}")))
}

fn day(frequency: Frequency, text: &str) -> Result<u8, String> {
    match frequency {
        // Three letters are enough.
        Frequency::Week => {
            let lower = text.to_ascii_lowercase();
            let is_it = |day: &&str| lower.len() >= 3 && day.to_ascii_lowercase().starts_with(&lower);
            let at = WEEKDAYS.iter().position(is_it);
            at.and_then(|at| u8::try_from(at).ok()).ok_or_else(|| bad("day", text, "it is a day of the week"))
        }
        Frequency::Month => {
            let found = text.parse().ok().filter(|day| (1..=31).contains(day));
            found.ok_or_else(|| bad("day", text, "it is a day of the month, from 1 to 31"))
        }
        _ => Err(bad("day", text, "the frequency leaves no choice of it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(words: &[(&str, &str)]) -> Vec<(String, String)> {
        words.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect()
    }

    fn new(words: &[(&str, &str)]) -> Result<Automatic, String> {
        Automatic::default().with(&set(words), true)
    }

    #[test]
    fn a_schedule_is_what_was_typed() {
        let weekly =
            new(&[("frequency", "week"), ("day", "sat"), ("hour", "14"), ("minute", "15"), ("keep", "4")])
                .unwrap();
        assert_eq!(weekly.when, When { frequency: Frequency::Week, day: 5, hour: 14, minute: 15 });
        assert_eq!((weekly.keep, weekly.when.day_word().as_deref()), (4, Some("Saturday")));
        let monthly = weekly.with(&set(&[("frequency", "month")]), false).unwrap();
        assert_eq!(monthly.when, When { frequency: Frequency::Month, day: 1, hour: 14, minute: 15 });
        let often = monthly.with(&set(&[("frequency", "halfhour"), ("minute", "45")]), false).unwrap();
        assert_eq!(often.when, When { frequency: Frequency::HalfHour, day: 0, hour: 0, minute: 15 });
        assert_eq!(often.with(&set(&[("keep", "0")]), false).unwrap().keep, 0);
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for (words, said) in [
            (&[("hour", "1")][..], "\"frequency\" must be set"),
            (&[("frequency", "fortnight")], "one of halfhour, hour, day, week, month"),
            (&[("frequency", "hour"), ("hour", "1")], "no choice"),
            (&[("frequency", "day"), ("day", "Monday")], "no choice"),
            (&[("frequency", "week"), ("day", "15")], "a day of the week"),
            (&[("frequency", "month"), ("day", "32")], "from 1 to 31"),
            (&[("frequency", "day"), ("hour", "24")], "from 0 to 23"),
            (&[("frequency", "day"), ("minute", "-1")], "from 0 to 59"),
            (&[("frequency", "day"), ("keep", "few")], "0 to keep all"),
            (&[("frequency", "day"), ("colour", "red")], "invalid property \"colour\""),
        ] {
            let e = new(words).unwrap_err();
            assert!(e.contains(said), "{words:?}: {e}");
        }
        assert_eq!(Automatic::id_of("automatic-007"), Some(7));
        for none in ["automatic-7", "automatic-+07", "automatic-", "daily"] {
            assert_eq!(Automatic::id_of(none), None, "{none}");
        }
    }
}
