//! Values of requests and replies as fields of JSON hold them.

use super::{Arg, Wrong};
use crate::secret::{STARS, Secret};
use serde_json::Value;

/// A value that a field holds.
pub trait Held: Sized {
    /// From what a body gave under `name`; what must be given was checked by its shape.
    fn from_arg(name: &str, arg: Option<&Arg>) -> Result<Self, Wrong>;

    /// `None` leaves the field away.
    fn tell(&self) -> Option<Value>;
}

/// A value that is one of a few words.
pub trait Word: Copy {
    fn parse(text: &str) -> Option<Self>;
    fn word(self) -> &'static str;
    /// What is said to any other word.
    fn refusal(name: &str, text: &str) -> String;
}

impl<T: Word> Held for Option<T> {
    fn from_arg(name: &str, arg: Option<&Arg>) -> Result<Option<T>, Wrong> {
        let Some(Arg::Text(text)) = arg else { return Ok(None) };
        T::parse(text).map(Some).ok_or_else(|| Wrong::Invalid(T::refusal(name, text)))
    }

    fn tell(&self) -> Option<Value> {
        self.map(|word| word.word().into())
    }
}

impl<T: Word + Default> Held for T {
    fn from_arg(name: &str, arg: Option<&Arg>) -> Result<T, Wrong> {
        Ok(Option::<T>::from_arg(name, arg)?.unwrap_or_default())
    }

    fn tell(&self) -> Option<Value> {
        Some(self.word().into())
    }
}

macro_rules! held {
    ($($type:ty: $pattern:pat => $value:expr, $tell:expr;)*) => {$(
        impl Held for Option<$type> {
            fn from_arg(_: &str, arg: Option<&Arg>) -> Result<Self, Wrong> {
                Ok(match arg {
                    Some($pattern) => Some($value),
                    _ => None,
                })
            }

            fn tell(&self) -> Option<Value> {
                let tell: fn(&$type) -> Value = $tell;
                self.as_ref().map(tell)
            }
        }

        impl Held for $type {
            fn from_arg(name: &str, arg: Option<&Arg>) -> Result<Self, Wrong> {
                Ok(Option::<$type>::from_arg(name, arg)?.unwrap_or_default())
            }

            fn tell(&self) -> Option<Value> {
                let tell: fn(&$type) -> Value = $tell;
                Some(tell(self))
            }
        }
    )*};
}

held! {
    String: Arg::Text(text) => text.clone(), |text| text.as_str().into();
    u64: Arg::Number(number) => *number, |number| (*number).into();
    bool: Arg::Flag(flag) => *flag, |flag| (*flag).into();
    Vec<String>: Arg::Texts(texts) => texts.clone(), |texts| texts.clone().into();
}

impl Held for Option<Secret> {
    fn from_arg(_: &str, arg: Option<&Arg>) -> Result<Self, Wrong> {
        Ok(match arg {
            Some(Arg::Secret(secret)) => Some(secret.clone()),
            // Told once, in the answer that makes it.
            Some(Arg::Text(text)) => Some(Secret::new(text.as_str())),
            _ => None,
        })
    }

    fn tell(&self) -> Option<Value> {
        self.as_ref().map(|secret| secret.reveal().into())
    }
}

impl Held for Secret {
    fn from_arg(name: &str, arg: Option<&Arg>) -> Result<Self, Wrong> {
        Ok(Option::<Secret>::from_arg(name, arg)?.unwrap_or_else(|| Secret::new("")))
    }

    fn tell(&self) -> Option<Value> {
        Some(self.reveal().into())
    }
}

/// Whether there is a secret, told in stars.
#[derive(Debug)]
pub struct Stars;

impl Stars {
    pub fn tell(has_secret: &bool) -> Option<Value> {
        Some(if *has_secret { STARS } else { "" }.into())
    }

    pub fn from_arg(_: &str, arg: Option<&Arg>) -> Result<bool, Wrong> {
        Ok(matches!(arg, Some(Arg::Secret(secret)) if !secret.reveal().is_empty()))
    }
}

/// `2026-11-21T20:45:00Z`, from seconds since 1970.
pub fn date(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March here, so that the odd day of a leap year is the last: an era has 400 years.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Since 1970, of `2026-11-21T20:45:00Z`.
pub fn seconds(date: &str) -> Option<u64> {
    let part = |from: usize, to: usize| date.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hour, minute, second) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March here, so that the odd day of a leap year is the last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    Some((days - 719_468) * 86_400 + hour * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar_and_seconds_again() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T00:00:00Z", Some(951_782_400)),
            ("2026-11-21T20:50:45Z", Some(1_795_294_245)),
            ("2100-02-28T23:59:59Z", Some(4_107_542_399)),
            ("2026-13-01T00:00:00Z", None),
            ("", None),
            ("yesterday at noon, or so", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
            if let Some(seconds) = expected {
                assert_eq!(date(seconds), text);
            }
        }
    }
}
