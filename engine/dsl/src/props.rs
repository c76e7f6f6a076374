//! Native properties: every one declared once, in one table that drives everything said about it.
//!
//! A row of the table ([`table`]) holds the name, what values there are, the default, who may set it and when, and
//! to which kinds of dataset it applies. Parsing, messages, help, the encoding on disk and the columns of `zfs get`
//! are all read from that row. The codes of values are those of OpenZFS, because they are what is on disk:
//!
//! ```text
//!   "compression=zstd-7"  --parse-->  Value::Number(16 | 7 << 7)  --encode-->  8 bytes in the dataset's property ZAP
//!                                          |
//!                                          +--show-->  "zstd-7"        +--write_props-->  Compression::Zstd(7)
//! ```
//!
//! Where a value comes from is [`Source`]; which value is in force on a dataset is found by `effective`
//! from the property ZAPs of the dataset and its ancestors. Properties that are not in the table are the user's own
//! ([`user`]).
//!
//! Not here: properties whose value is computed (`used`, `available`): the table declares them, `stats` fills them.
//! Pool properties have a table of the same shape, [`crate::pool_props`].

mod date;
pub mod effect;
pub mod effective;
pub mod index;
mod source;
mod table;
pub mod user;
mod validate;
mod value;
pub mod write;

#[cfg(test)]
mod tests;

pub use date::show_date;
pub use source::Source;
pub use table::{Prop, TABLE};
pub use validate::{Limits, When, complete_at_create, parse_setting};
pub use value::{Value, parse_value, show_value};

use units::{Error, Result};

/// Kinds of thing a property can belong to: a set of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types(u8);

impl Types {
    pub const FILESYSTEM: Types = Types(1);
    pub const SNAPSHOT: Types = Types(2);
    pub const VOLUME: Types = Types(4);
    pub const POOL: Types = Types(8);
    pub const BOOKMARK: Types = Types(16);
    /// Every kind of dataset.
    pub const DATASET: Types = Types(7);

    pub const fn or(self, other: Types) -> Types {
        Types(self.0 | other.0)
    }

    pub fn overlaps(self, other: Types) -> bool {
        self.0 & other.0 != 0
    }
}

/// Who may set a property, when, and whether children inherit it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Settable at any time; children that have no value of their own take the parent's.
    Inherited,
    /// Settable at any time; concerns this dataset only.
    Local,
    /// Fixed when the dataset is created; the parent's value is the default of that moment.
    OnceInherited,
    /// Fixed when the dataset is created.
    Once,
    /// Computed.
    ReadOnly,
}

impl Setting {
    pub fn is_once(self) -> bool {
        matches!(self, Setting::Once | Setting::OnceInherited)
    }

    /// True also of what can be set only at creation: afterwards nobody can.
    pub fn is_readonly(self) -> bool {
        self == Setting::ReadOnly || self.is_once()
    }

    pub fn is_inheritable(self) -> bool {
        matches!(self, Setting::Inherited | Setting::OnceInherited)
    }
}

/// What a number counts, and so how it is written for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// `1.50M`; zero is `0B`.
    Bytes,
    /// As [`Unit::Bytes`], but zero means that there is no limit: `none`.
    BytesOrNone,
    /// `1.50M`; zero is `0`.
    Scaled,
    /// A count whose largest value means that there is no limit: `none`, even where exact numbers are asked for.
    CountOrNone,
    /// An identifier: always exact.
    Exact,
    /// Hundredths: `1.50x`.
    Ratio,
    Percent,
    /// Seconds since 1970: `Sat Nov 21  5:37 2026`.
    Date,
    /// With seconds.
    DateSeconds,
}

/// The names of an index property's values, with their codes. The first name of a code is the one shown.
pub type Names = &'static [(&'static str, u64)];

/// How the values of a property are read, kept and shown.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Number { unit: Unit, default: u64 },
    Index { names: Names, default: u64 },
    Text { default: Option<&'static str> },
}

/// One row of a property table.
#[derive(Debug)]
pub struct Property {
    pub name: &'static str,
    /// The heading of its column. In lower case it is also an alias of the name (`avail`, `recsize`, `refer`).
    pub column: &'static str,
    pub kind: Kind,
    pub setting: Setting,
    pub types: Types,
    /// What may be given, in the words of the help text; empty for what is never shown.
    pub values: &'static str,
    /// Whether "all properties" includes it. The others answer only to their name.
    pub listed: bool,
}

impl Property {
    pub fn applies_to(&self, types: Types) -> bool {
        self.types.overlaps(types)
    }

    /// The property that people mean by `name`: its name, or its column in lower case.
    pub(crate) fn answers_to(&self, name: &str) -> bool {
        self.name == name
            || (self.column.eq_ignore_ascii_case(name) && !name.bytes().any(|b| b.is_ascii_uppercase()))
    }

    pub fn default_value(&self) -> Option<Value> {
        match self.kind {
            Kind::Number { default, .. } | Kind::Index { default, .. } => Some(Value::Number(default)),
            Kind::Text { default } => default.map(|text| Value::Text(text.into())),
        }
    }

    /// Numbers stand to the right in `zfs list`.
    pub fn is_right_aligned(&self) -> bool {
        matches!(self.kind, Kind::Number { unit, .. } if !matches!(unit, Unit::Date | Unit::DateSeconds))
    }
}

impl Prop {
    pub fn row(self) -> &'static Property {
        &TABLE[self as usize]
    }

    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Looks a property up by name or alias.
    pub fn by_name(name: &str) -> Option<Prop> {
        let index = TABLE.iter().position(|row| row.name == name);
        index.or_else(|| TABLE.iter().position(|row| row.answers_to(name))).map(|i| Prop::ALL[i])
    }
}

/// A native property, or one that users invented.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PropName {
    Native(Prop),
    User(String),
}

impl PropName {
    /// What `name` means, aliases included.
    pub fn parse(name: &str) -> Result<PropName> {
        if let Some(prop) = Prop::by_name(name) {
            return Ok(PropName::Native(prop));
        }
        if user::is_user_property(name) {
            user::check_name(name)?;
            return Ok(PropName::User(name.into()));
        }
        Err(Error::invalid(format!("invalid property '{name}'")))
    }

    pub fn as_str(&self) -> &str {
        match self {
            PropName::Native(prop) => prop.name(),
            PropName::User(name) => name,
        }
    }

    pub fn is_inheritable(&self) -> bool {
        match self {
            PropName::Native(prop) => prop.row().setting.is_inheritable(),
            PropName::User(_) => true,
        }
    }
}
