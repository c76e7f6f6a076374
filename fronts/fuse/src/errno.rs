//! The errors a client can be told of.

use rustix::io::Errno;
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
        Refusal::NotDirectory => Errno::NOTDIR,
        Refusal::IsDirectory => Errno::ISDIR,
        Refusal::NotSymlink => Errno::INVAL,
        Refusal::NotEmpty => Errno::NOTEMPTY,
        Refusal::NameTooLong => Errno::NAMETOOLONG,
        Refusal::NotUtf8 => Errno::ILSEQ,
        Refusal::TooManyLinks => Errno::LOOP,
        Refusal::TooLarge => Errno::FBIG,
        Refusal::Stale => Errno::STALE,
        Refusal::Flagged => Errno::PERM,
        Refusal::OverQuota => Errno::DQUOT,
        // As a name in a directory of another project.
        Refusal::OtherProject => Errno::XDEV,
        Refusal::SwitchedOff => Errno::OPNOTSUPP,
        Refusal::Denied => Errno::ACCESS,
    }
}

fn of_kind(kind: Kind) -> Errno {
    match kind {
        Kind::Checksum | Kind::Corrupt | Kind::Io => Errno::IO,
        Kind::NoSpace => Errno::NOSPC,
        Kind::NotFound => Errno::NOENT,
        Kind::Exists => Errno::EXIST,
        Kind::Busy => Errno::BUSY,
        Kind::Invalid => Errno::INVAL,
        Kind::Unsupported => Errno::OPNOTSUPP,
        Kind::ReadOnly => Errno::ROFS,
        Kind::Encrypted => Errno::ACCESS,
        // The pool is closing; what the client asked for was not done.
        Kind::Cancelled => Errno::SHUTDOWN,
    }
}
