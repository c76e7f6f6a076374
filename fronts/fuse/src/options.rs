//! How a file system is mounted.
//!
//! ```text
//!   read_only exec setuid devices atime    flags of the mount    ─┐ changed while it is used: Mount::change
//!   snapshots                              the session's own     ─┘
//!   overlay                                asked once, before mounting
//!   posix_acl source over_io_uring         agreed with the kernel as it is mounted: another needs a new mount
//! ```

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What is shown as the source: the dataset.
    pub source: String,
    pub read_only: bool,
    pub exec: bool,
    pub setuid: bool,
    pub devices: bool,
    pub atime: bool,
    /// Over a directory that is not empty too.
    pub overlay: bool,
    pub snapshots: Snapshots,
    /// POSIX ACLs are kept and enforced.
    pub posix_acl: bool,
    /// Requests come by io_uring, where the kernel offers that.
    pub over_io_uring: bool,
}

/// What there is of `.zfs`, the way to the snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshots {
    /// It is reached by its name, and not listed.
    Hidden,
    /// It is listed, too.
    Visible,
    /// There is none; files of snapshots that are open are served no more.
    Disabled,
}

impl Options {
    /// Whether a mount with these can come to have others while it is used.
    pub(crate) fn can_become(&self, now: &Options) -> bool {
        let fixed = |of: &Options| (of.source.clone(), of.posix_acl, of.over_io_uring);
        fixed(self) == fixed(now)
    }

    /// As usual; without the rights that files give to the process that runs or opens them.
    pub fn new(source: &str) -> Options {
        Options {
            source: source.into(),
            read_only: false,
            exec: true,
            setuid: false,
            devices: false,
            atime: true,
            overlay: true,
            snapshots: Snapshots::Hidden,
            posix_acl: false,
            over_io_uring: true,
        }
    }
}
