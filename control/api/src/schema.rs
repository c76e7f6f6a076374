//! Properties of an administrator's own: the schema says which there are, and projects and shares have values of them.
//!
//! ```text
//!   schema:  priority, PositiveInteger, "How soon it is restored"
//!   share:   custom:priority = 5      a user property of the dataset, inherited like every other
//! ```
//!
//! A property that leaves the schema is no longer shown, and its values stay where they are.

use crate::http::{Answer, Declared, Face, Need, Word};
use crate::{Reply, Request, Source, declared, shaped};
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

/// What a project or share has of one property of the schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Custom {
    /// With its prefix.
    pub name: String,
    pub kind: CustomType,
    /// `None`: nobody has said anything, here or above.
    pub value: Option<String>,
    pub source: Source,
}

impl Word for CustomType {
    fn parse(text: &str) -> Option<CustomType> {
        CustomType::parse(text)
    }

    fn word(self) -> &'static str {
        CustomType::word(self)
    }

    fn refusal(_: &str, text: &str) -> String {
        format!("'{text}' is no type: {TYPES}")
    }
}

const TYPES: &str = "String, Integer, PositiveInteger, Boolean, EmailAddress or Host";
const SCHEMA: &str = "/api/storage/v1/schema";
const A_PROPERTY: &str = "/api/storage/v1/schema/{property}";
const MODIFY: Need = Need::Right("schema", "allow_modify");
const PURPOSE: &str = "What it is for";
const UNPREFIXED: &str = "Its name, without the prefix custom:";

shaped! {
    pub PROPERTY: CustomProperty = "schema_property" at "/api/storage/v1/schema/{property}" (name) {
        must "property" Text name, UNPREFIXED;
        must "type" Text kind, TYPES;
        must "description" Text description, PURPOSE;
    }
}

pub static GET_PROPERTY: Face =
    Face::get(A_PROPERTY, "A custom property", Answer::One("property", &PROPERTY.shape));

declared! {
    pub SHOW: Get SCHEMA, "List the custom properties that projects and shares can have";
    answers Answer::Several("properties", &PROPERTY.shape);
    means { Request::Schema(Schema::Show) }
    gives |answer| Ok(Reply::Schema(PROPERTY.all(answer, "properties")?));

    pub CREATE: Post SCHEMA, "Make a custom property";
    needs MODIFY;
    body "new_schema_property" {
        must "property" Text name, UNPREFIXED;
        may "type" Text kind, TYPES;
        may "description" Text description, PURPOSE;
    }
    answers Answer::One("property", &PROPERTY.shape);
    means { Request::Schema(Schema::Create(CustomProperty { name, kind, description })) }

    pub CHANGE: Put A_PROPERTY, "Change a custom property";
    needs MODIFY;
    path (property = name)
    body "schema_property_changes" {
        may "type" Text kind, "Another type; values that are there are not looked at";
        may "description" Text description, PURPOSE;
    }
    answers Answer::One("property", &PROPERTY.shape);
    means { Request::Schema(Schema::Change { name, kind, description }) }

    pub DESTROY: Delete A_PROPERTY, "Take a custom property out of the schema; values stay, and are not shown";
    needs MODIFY;
    path (property = name)
    answers Answer::Nothing;
    means { Request::Schema(Schema::Destroy { name }) }
}

pub(crate) static OVER_HTTP: &[&Declared] = &[&SHOW, &CREATE, &CHANGE, &DESTROY];

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
