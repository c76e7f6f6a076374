//! The servers, each a process of its own.

use crate::Options;
use crate::rig::{Files, Rig};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use units::{Error, Kind, Result};
use world::{Address, Pending};

/// The servers that are measured, in the order of the columns.
pub const NAMES: [&str; 3] = ["cenote", "nbdkit file", "qemu-nbd"];

/// volblocksize of the volume.
const BLOCK: u64 = 16 << 10;

/// Ours, and fio, which comes again before its former connection need be gone.
const QEMU_CLIENTS: &str = "3";

/// `zfs_txg_timeout`, and time to write a transaction group.
const TXG: Duration = Duration::from_secs(7);

/// Until a server must listen: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// The kernel counts a process's time in hundredths of a second (`USER_HZ`), whatever its own clock is.
const TICK: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub struct Server {
    pub name: &'static str,
    pub socket: PathBuf,
    child: Child,
    /// The first connection to it, which told that it listens: no server likes a visit that says nothing.
    connection: Option<UnixStream>,
}

/// Starts every server that is installed, with its files in `dir`.
pub fn all(dir: &Path, size: u64, own: &[&str]) -> Vec<io::Result<Option<Server>>> {
    vec![Server::own(dir, size, own), Server::nbdkit(dir, size), Server::qemu(dir, size)]
}

impl Server {
    /// Ours, on `cenote.sock`.
    pub fn own(dir: &Path, size: u64, own: &[&str]) -> io::Result<Option<Server>> {
        let socket = dir.join("cenote.sock");
        let mut command = Command::new(std::env::current_exe()?);
        command.args(own).arg("serve").arg(&socket).arg(dir).args([size.to_string(), BLOCK.to_string()]);
        Server::start(NAMES[0], command, socket)
    }

    /// On `nbdkit.sock`, with a file.
    pub fn nbdkit(dir: &Path, size: u64) -> io::Result<Option<Server>> {
        let (socket, file) = (dir.join("nbdkit.sock"), dir.join("nbdkit.raw"));
        std::fs::File::create(&file)?.set_len(size)?;
        let mut command = Command::new("nbdkit");
        command.args(["-f", "-U"]).arg(&socket).arg("file").arg(&file);
        Server::start(NAMES[1], command, socket)
    }

    fn qemu(dir: &Path, size: u64) -> io::Result<Option<Server>> {
        let (socket, file) = (dir.join("qemu.sock"), dir.join("qemu.raw"));
        std::fs::File::create(&file)?.set_len(size)?;
        let mut command = Command::new("qemu-nbd");
        command.args(["-t", "-e", QEMU_CLIENTS, "-f", "raw", "-k"]).arg(&socket).arg(&file);
        Server::start(NAMES[2], command, socket)
    }

    /// `None` when there is no such program.
    fn start(name: &'static str, mut command: Command, socket: PathBuf) -> io::Result<Option<Server>> {
        let child = match command.stdin(Stdio::null()).spawn() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            started => started?,
        };
        let mut server = Server { name, socket, child, connection: None };
        let deadline = Instant::now() + PATIENCE;
        loop {
            server.connection = UnixStream::connect(&server.socket).ok();
            if server.connection.is_some() {
                return Ok(Some(server));
            }
            if let Some(status) = server.child.try_wait()? {
                return Err(io::Error::other(format!("{name} ended: {status}")));
            }
            if Instant::now() > deadline {
                return Err(io::Error::other(format!("{name} does not listen")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The first connection, once.
    pub fn take_connection(&mut self) -> io::Result<UnixStream> {
        self.connection.take().ok_or_else(|| io::Error::other("the first connection to a server is taken"))
    }

    /// How long it goes on working for writes after their flush.
    pub fn puts_off(&self) -> Duration {
        if self.name == NAMES[0] { TXG } else { Duration::ZERO }
    }

    /// User and system time of all its threads, those that have ended included.
    pub fn cpu(&self) -> io::Result<Duration> {
        cpu_of(self.child.id())
    }
}

/// User and system time of a process so far.
pub(crate) fn cpu_of(pid: u32) -> io::Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    ticks(&stat).map(|n| TICK * n).ok_or_else(|| io::Error::other("/proc has no times"))
}

/// Fields 14 and 15; the second, the name, may hold blanks and parentheses.
fn ticks(stat: &str) -> Option<u32> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some(user + system)
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already, or ends now; what it has written is of no use to anybody.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Our own server, in the process that is measured: a new pool with one volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    pub socket: PathBuf,
    pub dir: PathBuf,
    pub size: u64,
    pub block: u64,
}

impl Served {
    /// Serves until told to end.
    pub async fn run(self) -> Result<()> {
        let options = Options { dirs: Vec::new(), size: self.size, ..Options::default() };
        let rig = Rig::new(&self.dir, &options, vdev::Layout::Stripe, self.block, "off");
        let _files = Files(&rig);
        let pool = rig.create().await?;
        let only = One(rig.lun(&pool).await?);
        let server = nbd::Server::new(Arc::new(only), Default::default(), nbd::Config::default());
        server.listen(&Address::Unix(self.socket))?;
        world::spawn(linux::keep_house());
        linux::shutdown_signal().await;
        server.stop().await;
        pool.export().await
    }
}

/// A single volume, without a name.
#[derive(Debug)]
struct One(Arc<disk::NbdVolume>);

impl nbd::Exports for One {
    fn list(&self) -> Pending<Result<Vec<nbd::Listed>>> {
        let only = nbd::Listed { name: String::new(), description: String::new() };
        Box::pin(std::future::ready(Ok(vec![only])))
    }

    fn find(&self, name: &str) -> Pending<Result<Arc<dyn nbd::Volume>>> {
        let volume: Arc<dyn nbd::Volume> = self.0.clone();
        let found = if name.is_empty() { Ok(volume) } else { Err(Error::new(Kind::NotFound, "open export")) };
        Box::pin(std::future::ready(found))
    }

    fn open(&self, name: &str, _: &Address) -> Pending<Result<(Arc<dyn nbd::Volume>, nbd::Hold)>> {
        let found = self.find(name);
        Box::pin(async move { found.await.map(|volume| (volume, Box::new(()) as nbd::Hold)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_any_name() {
        let stat = "7 (a) b) (c) S 1 1 1 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 4 0 100 0 0";
        assert_eq!(ticks(stat), Some(300));
        assert_eq!(ticks("7 (x) S 1"), None);
    }
}
