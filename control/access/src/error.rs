//! What went wrong with a change of users and roles.

use std::fmt;

pub type Result<T, E = AccessError> = std::result::Result<T, E>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    NotFound,
    Exists,
    Invalid,
    /// Whoever asks does not have what they would give, or reaches for whom they do not stand above.
    Denied,
    /// It could not be kept, so it does not hold.
    Store,
    /// As before, since there is no room to keep it in.
    NoSpace,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessError {
    pub kind: Kind,
    pub message: String,
}

impl AccessError {
    pub fn new(kind: Kind, message: impl Into<String>) -> AccessError {
        AccessError { kind, message: message.into() }
    }

    pub(crate) fn invalid<T>(message: impl Into<String>) -> Result<T> {
        Err(AccessError::new(Kind::Invalid, message))
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for AccessError {}
