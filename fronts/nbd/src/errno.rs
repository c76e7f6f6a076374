//! The errors a client can be told of.

use units::Kind;

/// The values the protocol allows in the error field of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Errno {
    Perm = 1,
    Io = 5,
    Invalid = 22,
    NoSpace = 28,
    Overflow = 75,
    NotSupported = 95,
    Shutdown = 108,
}

impl Errno {
    pub fn code(self) -> u32 {
        self as u32
    }

    /// The one table from the engine's kinds to the protocol's errors. A kind that is added there must be given its
    /// place here: there is no catch-all.
    pub fn of(kind: Kind) -> Errno {
        match kind {
            Kind::Checksum | Kind::Corrupt | Kind::Io => Errno::Io,
            Kind::NoSpace => Errno::NoSpace,
            Kind::ReadOnly | Kind::Encrypted => Errno::Perm,
            Kind::Cancelled => Errno::Shutdown,
            // The protocol reserves its "not supported" for fast zeroing, so everything else that cannot be done is
            // an invalid request.
            Kind::Invalid | Kind::Unsupported => Errno::Invalid,
            // These concern names and owners. On a volume that is open they mean that it vanished underneath.
            Kind::NotFound | Kind::Exists | Kind::Busy => Errno::Io,
        }
    }
}
