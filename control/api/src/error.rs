//! What went wrong, for a program and for a person.

use serde::{Deserialize, Serialize};
use std::fmt;

pub type Result<T, E = ApiError> = std::result::Result<T, E>;

/// What the caller can do about it: [`units::Kind`], as it travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// Every copy failed its checksum, or a structure makes no sense.
    Damaged,
    Io,
    NoSpace,
    NotFound,
    Exists,
    Busy,
    Invalid,
    Unsupported,
    ReadOnly,
    Encrypted,
    Cancelled,
}

impl From<units::Kind> for ErrorKind {
    fn from(kind: units::Kind) -> ErrorKind {
        use units::Kind;
        match kind {
            Kind::Checksum | Kind::Corrupt => ErrorKind::Damaged,
            Kind::Io => ErrorKind::Io,
            Kind::NoSpace => ErrorKind::NoSpace,
            Kind::NotFound => ErrorKind::NotFound,
            Kind::Exists => ErrorKind::Exists,
            Kind::Busy => ErrorKind::Busy,
            Kind::Invalid => ErrorKind::Invalid,
            Kind::Unsupported => ErrorKind::Unsupported,
            Kind::ReadOnly => ErrorKind::ReadOnly,
            Kind::Encrypted => ErrorKind::Encrypted,
            Kind::Cancelled => ErrorKind::Cancelled,
        }
    }
}

/// A request that was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiError {
    pub kind: ErrorKind,
    /// What was asked, what went wrong, and what to do: `cannot create 'tank': pool already exists`.
    pub message: String,
}

impl ApiError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> ApiError {
        ApiError { kind, message: message.into() }
    }

    /// `cannot DOING: why`, where the engine's error says why.
    pub fn cannot(doing: impl fmt::Display, why: &units::Error) -> ApiError {
        ApiError::new(why.kind().into(), format!("cannot {doing}: {why}"))
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}
