//! The words that contexts and the engine share: a property that can be set, one that is shown, and how a command fails.

use api::attributes::Shape;

/// An error is the line that a person reads.
pub(crate) type Result<T = (), E = String> = std::result::Result<T, E>;

/// A property that can be set where one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settable {
    pub name: String,
    pub shape: Shape,
    pub is_secret: bool,
}

/// A property with its value as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub name: String,
    pub value: String,
    pub note: String,
}

impl Shown {
    pub fn new(name: &str, value: impl Into<String>, note: &str) -> Shown {
        Shown { name: name.into(), value: value.into(), note: note.into() }
    }
}
