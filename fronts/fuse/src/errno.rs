//! The errors a client can be told of.

use fuser::Errno;
use units::{Error, Kind};
use zpl::Refusal;

pub(crate) type Result<T, E = Errno> = std::result::Result<T, E>;

/// The one table from the engine's errors to the system's: first what the files say, then the kind. Both are exhaustive.
pub(crate) fn errno(e: &Error) -> Errno {
    match Refusal::of(e) {
        Some(refusal) => of_refusal(refusal),
        None => of_kind(e.kind()),
    }
}

/// As [`errno`], where what is too large is something else than a file.
pub(crate) fn errno_if_large(too_large: Errno) -> impl FnOnce(Error) -> Errno {
    move |e| if Refusal::of(&e) == Some(Refusal::TooLarge) { too_large } else { errno(&e) }
}

fn of_refusal(refusal: Refusal) -> Errno {
    match refusal {
        Refusal::NotDirectory => Errno::ENOTDIR,
        Refusal::IsDirectory => Errno::EISDIR,
        Refusal::NotSymlink => Errno::EINVAL,
        Refusal::NotEmpty => Errno::ENOTEMPTY,
        Refusal::NameTooLong => Errno::ENAMETOOLONG,
        Refusal::NotUtf8 => Errno::EILSEQ,
        Refusal::TooManyLinks => Errno::ELOOP,
        Refusal::TooLarge => Errno::EFBIG,
        Refusal::Stale => Errno::ESTALE,
        Refusal::Flagged => Errno::EPERM,
        Refusal::OverQuota => Errno::EDQUOT,
        // As a name in a directory of another project.
        Refusal::OtherProject => Errno::EXDEV,
        Refusal::SwitchedOff => Errno::EOPNOTSUPP,
        Refusal::Denied => Errno::EACCES,
    }
}

fn of_kind(kind: Kind) -> Errno {
    match kind {
        Kind::Checksum | Kind::Corrupt | Kind::Io => Errno::EIO,
        Kind::NoSpace => Errno::ENOSPC,
        Kind::NotFound => Errno::ENOENT,
        Kind::Exists => Errno::EEXIST,
        Kind::Busy => Errno::EBUSY,
        Kind::Invalid => Errno::EINVAL,
        Kind::Unsupported => Errno::EOPNOTSUPP,
        Kind::ReadOnly => Errno::EROFS,
        Kind::Encrypted => Errno::EACCES,
        // The pool is closing; what the client asked for was not done.
        Kind::Cancelled => Errno::ESHUTDOWN,
    }
}
