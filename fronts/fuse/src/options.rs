//! How a file system is mounted.

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
    /// `.zfs` is listed; it can be reached in any case.
    pub shows_snapshots: bool,
    /// POSIX ACLs are kept and enforced.
    pub posix_acl: bool,
    /// Requests come by io_uring, where the kernel offers that.
    pub over_io_uring: bool,
}

impl Options {
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
            shows_snapshots: false,
            posix_acl: false,
            over_io_uring: true,
        }
    }
}
