//! Which machine this is: written into labels, so that another machine sees whose a pool is.

use pool::Host;

/// The number is that of `/etc/hostid`, as OpenZFS reads it; without that file it is 0, which is no host's.
pub(crate) fn host() -> Host {
    let id = std::fs::read("/etc/hostid").ok().and_then(|bytes| bytes.first_chunk().copied());
    let id = u64::from(id.map_or(0, u32::from_le_bytes));
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Host { id, name, process: crate::pools::open_elsewhere::this_process() }
}
