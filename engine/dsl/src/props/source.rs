//! Where the value of a property in force comes from: the `SOURCE` column.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `-`: computed, or the property has no sources.
    None,
    Default,
    /// Set on this dataset.
    Local,
    /// Set on this ancestor.
    Inherited(String),
    /// Came with a stream.
    Received,
    /// A mount option, for as long as it is mounted.
    Temporary,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::None => f.write_str("-"),
            Source::Default => f.write_str("default"),
            Source::Local => f.write_str("local"),
            Source::Inherited(from) => write!(f, "inherited from {from}"),
            Source::Received => f.write_str("received"),
            Source::Temporary => f.write_str("temporary"),
        }
    }
}
