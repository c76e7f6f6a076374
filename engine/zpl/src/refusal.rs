//! Why a request on a file is refused, where the caller needs to know more than [`units::Kind`] says.

use std::fmt;
use units::{Error, Kind};

/// The cause within an error; [`Refusal::of`] finds it. Fronts translate each in one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    NotDirectory,
    IsDirectory,
    NotSymlink,
    NotEmpty,
    NameTooLong,
    /// Names of the file system are UTF-8, and this one is not.
    NotUtf8,
    /// More than 40 symbolic links on the way.
    TooManyLinks,
    /// The file has as many names as it can, or the value is larger than what there is to hold it.
    TooLarge,
    /// The object is another file by now, or none.
    Stale,
    /// A flag of the file (immutable, append only, no unlink) forbids it.
    Flagged,
    /// A quota is used up: a user's, a group's, a project's or the dataset's own.
    OverQuota,
    /// The directory gives its project to what is in it, and the file is of another one.
    OtherProject,
    /// The properties of the dataset do not allow it.
    SwitchedOff,
    /// Whoever asks has no right to.
    Denied,
}

impl Refusal {
    fn sentence(self) -> &'static str {
        match self {
            Refusal::NotDirectory => "not a directory",
            Refusal::IsDirectory => "it is a directory",
            Refusal::NotSymlink => "not a symbolic link",
            Refusal::NotEmpty => "the directory is not empty",
            Refusal::NameTooLong => "the name is too long",
            Refusal::NotUtf8 => "the name is not UTF-8, as all names of this file system are",
            Refusal::TooManyLinks => "too many symbolic links",
            Refusal::TooLarge => "too large",
            Refusal::Stale => "the file is gone",
            Refusal::Flagged => "a flag of the file forbids it",
            Refusal::OverQuota => "a quota is used up",
            Refusal::OtherProject => "the directory is of another project",
            Refusal::SwitchedOff => "a property of the dataset does not allow it",
            Refusal::Denied => "permission denied",
        }
    }

    fn kind(self) -> Kind {
        match self {
            Refusal::Stale => Kind::NotFound,
            Refusal::OverQuota => Kind::NoSpace,
            Refusal::SwitchedOff => Kind::Unsupported,
            _ => Kind::Invalid,
        }
    }

    /// The refusal that is the cause of an error.
    pub fn of(error: &Error) -> Option<Refusal> {
        let cause: &(dyn std::error::Error + 'static) = error.cause()?;
        cause.downcast_ref().copied()
    }

    /// The error of a request that is refused for this reason.
    pub(crate) fn when(self, doing: impl Into<String>) -> Error {
        Error::new(self.kind(), doing).because(self)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sentence())
    }
}

impl std::error::Error for Refusal {}
