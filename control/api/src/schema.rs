//! Properties of an administrator's own: the schema says which there are, and projects and shares have values of them.
//!
//! ```text
//!   schema:  priority, PositiveInteger, "How soon it is restored"
//!   share:   custom:priority = 5      a user property of the dataset, inherited like every other
//! ```
//!
//! A property that leaves the schema is no longer shown, and its values stay where they are.

use crate::Source;
use serde::{Deserialize, Serialize};

/// What stands before the name where a share has a value.
pub const PREFIX: &str = "custom:";
/// With its prefix it is the name of a user property, which has an end.
const NAME_MAX: usize = 200;

/// What values a property holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CustomType {
    #[default]
    String,
    Integer,
    PositiveInteger,
    Boolean,
    EmailAddress,
    /// A name or an address.
    Host,
}

impl CustomType {
    pub const ALL: [CustomType; 6] = [
        CustomType::String,
        CustomType::Integer,
        CustomType::PositiveInteger,
        CustomType::Boolean,
        CustomType::EmailAddress,
        CustomType::Host,
    ];

    pub fn word(self) -> &'static str {
        match self {
            CustomType::String => "String",
            CustomType::Integer => "Integer",
            CustomType::PositiveInteger => "PositiveInteger",
            CustomType::Boolean => "Boolean",
            CustomType::EmailAddress => "EmailAddress",
            CustomType::Host => "Host",
        }
    }

    pub fn parse(word: &str) -> Option<CustomType> {
        CustomType::ALL.into_iter().find(|kind| kind.word().eq_ignore_ascii_case(word))
    }

    /// The one spelling in which a value is kept, or what it should have been.
    pub fn canonical(self, text: &str) -> Result<String, &'static str> {
        let checked = |is_right: bool, what| if is_right { Ok(text.to_string()) } else { Err(what) };
        match self {
            CustomType::String => checked(!text.chars().any(char::is_control), "it is text on one line"),
            CustomType::Integer => match text.parse::<i64>() {
                Ok(number) => Ok(number.to_string()),
                Err(_) => Err("it is an integer"),
            },
            CustomType::PositiveInteger => match text.parse::<i64>() {
                Ok(number) if number > 0 => Ok(number.to_string()),
                _ => Err("it is an integer above 0"),
            },
            CustomType::Boolean => match text {
                "true" | "on" | "yes" => Ok("true".into()),
                "false" | "off" | "no" => Ok("false".into()),
                _ => Err("it is true or false"),
            },
            CustomType::EmailAddress => checked(is_email(text), "it is an address like name@example.com"),
            CustomType::Host => checked(is_host(text), "it is the name or the address of a host"),
        }
    }
}

fn is_email(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_graphic() && !"()<>,;:\\\"[]@".contains(c);
    text.split_once('@')
        .is_some_and(|(name, host)| !name.is_empty() && name.chars().all(is_plain) && is_host(host))
}

fn is_host(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.parse::<std::net::IpAddr>().is_ok() || (text.len() <= 253 && text.split('.').all(is_label))
}

/// A property of the schema.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomProperty {
    /// Without its prefix.
    pub name: String,
    pub kind: CustomType,
    pub description: String,
}

/// Whether a property may be called so: as a user property of a dataset, without its prefix.
pub fn is_name(text: &str) -> bool {
    let is_part = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b);
    (1..=NAME_MAX).contains(&text.len())
        && text.bytes().all(is_part)
        && text.as_bytes()[0].is_ascii_lowercase()
}

/// What may be asked and changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schema {
    Show,
    Create(CustomProperty),
    /// What is `None` stays as it is. Values that are there are not looked at.
    Change {
        name: String,
        kind: Option<CustomType>,
        description: Option<String>,
    },
    Destroy {
        name: String,
    },
}

impl Schema {
    /// Whether it changes nothing.
    pub fn is_question(&self) -> bool {
        matches!(self, Schema::Show)
    }
}

/// What a project or share has of one property of the schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Custom {
    /// With its prefix.
    pub name: String,
    pub kind: CustomType,
    /// `None`: nothing was set, here or above.
    pub value: Option<String>,
    pub source: Source,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_their_type() {
        use CustomType::{Boolean, EmailAddress, Host, Integer, PositiveInteger, String};
        for (kind, text, kept) in [
            (String, "Ann, of 3rd floor", Some("Ann, of 3rd floor")),
            (String, "two\nlines", None),
            (Integer, "-07", Some("-7")),
            (Integer, "1.5", None),
            (PositiveInteger, "5", Some("5")),
            (PositiveInteger, "0", None),
            (Boolean, "yes", Some("true")),
            (Boolean, "perhaps", None),
            (EmailAddress, "ann@example.com", Some("ann@example.com")),
            (EmailAddress, "ann", None),
            (EmailAddress, "a b@example.com", None),
            (Host, "db1.example.com", Some("db1.example.com")),
            (Host, "2001:db8::1", Some("2001:db8::1")),
            (Host, "db1..example", None),
        ] {
            assert_eq!(kind.canonical(text).ok().as_deref(), kept, "{kind:?} {text}");
        }
        for kind in CustomType::ALL {
            assert_eq!(CustomType::parse(kind.word()), Some(kind));
        }
    }

    #[test]
    fn names_are_those_of_user_properties() {
        for good in ["priority", "cinder_managed", "a-1.b"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "Owner", "1st", "a b", "a:b", "a/b", &"x".repeat(201)] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
