//! What can be asked: servers by NBD and by iSCSI, and files.

use super::initiator::Session;
use super::outcome::Outcome;
use super::pace::{self, Asked, Door, Plan};
use crate::iscsi;
use crate::servers::{Client, Scratch, Server};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::{Error, Kind, Result};

/// Requests under way at most: more than a host has for one disk.
const LANES: usize = 16;
/// Lanes of the reader that has a writer for a neighbour, and of the writer.
const READERS: usize = 4;
const WRITERS: usize = 4;
pub const LARGE: u32 = 1 << 20;

/// One of those that are measured, with a door for each lane.
pub struct Subject {
    pub name: String,
    size: u64,
    doors: Vec<Box<dyn Door>>,
    server: Option<Process>,
}

/// Whose time is counted. It ends with this.
enum Process {
    Nbd(Server),
    Iscsi(iscsi::Running),
}

impl Process {
    fn cpu(&self) -> io::Result<Duration> {
        match self {
            Process::Nbd(server) => server.cpu(),
            Process::Iscsi(server) => server.cpu(),
        }
    }
}

impl Subject {
    /// Writes everything once.
    pub fn fill(&mut self) -> io::Result<()> {
        let write = Asked { reads: false, block: LARGE };
        for offset in (0..self.size / u64::from(LARGE)).map(|n| n * u64::from(LARGE)) {
            self.doors[0].request(write, offset)?;
        }
        Ok(())
    }

    /// Answers what happened, and what the server used for it.
    pub fn run(&mut self, plan: Plan) -> io::Result<(Outcome, Option<Duration>)> {
        let before = self.cpu()?;
        let outcome = pace::run(&mut self.doors, plan, self.size)?;
        let used = self.cpu()?.zip(before).map(|(after, before)| after.saturating_sub(before));
        Ok((outcome, used))
    }

    pub fn run_beside_writer(&mut self, plan: Plan) -> io::Result<Outcome> {
        let (readers, others) = self.doors.split_at_mut(READERS);
        pace::run_beside(readers, &mut others[..WRITERS], plan, self.size)
    }

    fn cpu(&self) -> io::Result<Option<Duration>> {
        self.server.as_ref().map(Process::cpu).transpose()
    }
}

impl std::fmt::Debug for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Subject({}, {} lanes)", self.name, self.doors.len())
    }
}

/// Our server, and nbdkit if it is installed, with their files in a directory that goes with the answer's first part.
pub fn servers(dir: &Path, size: u64, own: &[&str]) -> Result<(Scratch, Vec<Subject>)> {
    let failed = |e: io::Error| Error::new(Kind::Io, "start a server").because(e);
    let scratch = Scratch::make(dir, "latency").map_err(failed)?;
    let mut subjects = Vec::new();
    for (server, socket) in [
        (Server::own(&scratch.0, size, own), scratch.0.join("cenote.sock")),
        (Server::nbdkit(&scratch.0, size), scratch.0.join("nbdkit.sock")),
    ] {
        if let Some(server) = server.map_err(failed)? {
            subjects.push(by_nbd(server, socket, size).map_err(failed)?);
        }
    }
    Ok((scratch, subjects))
}

fn by_nbd(mut server: Server, socket: PathBuf, size: u64) -> io::Result<Subject> {
    let mut doors: Vec<Box<dyn Door>> = vec![Box::new(Client::new(server.take_connection()?)?)];
    while doors.len() < LANES {
        let stream = std::os::unix::net::UnixStream::connect(&socket)?;
        doors.push(Box::new(Client::new(stream)?));
    }
    Ok(Subject { name: server.name.to_string(), size, doors, server: Some(Process::Nbd(server)) })
}

/// Our target, and `tgtd` if it is installed, as [`servers`]; a session for each lane.
pub fn targets(dir: &Path, size: u64, own: &[&str]) -> Result<(Scratch, Vec<Subject>)> {
    let failed = |e: io::Error| Error::new(Kind::Io, "start a target").because(e);
    let scratch = Scratch::make(dir, "latency").map_err(failed)?;
    let mut subjects = Vec::new();
    for (name, server) in
        [("cenote", iscsi::start_own(&scratch.0, size, own)), ("tgtd", iscsi::start_tgtd(&scratch.0, size))]
    {
        let Some(server) = server.map_err(failed)? else { continue };
        let mut doors: Vec<Box<dyn Door>> = Vec::new();
        for number in 0..LANES {
            let session = Session::open(server.port, iscsi::TARGET, 1, number as u8).map_err(failed)?;
            doors.push(Box::new(session));
        }
        subjects.push(Subject { name: name.into(), size, doors, server: Some(Process::Iscsi(server)) });
    }
    Ok((scratch, subjects))
}

impl Door for Client {
    fn request(&mut self, asked: Asked, offset: u64) -> io::Result<()> {
        self.request(asked.reads, offset, asked.block)
    }
}

/// A file, made or overwritten.
pub fn of_file(path: &Path, size: u64) -> Result<Subject> {
    let failed = |e: io::Error| Error::new(Kind::Io, "open").at(path.display()).because(e);
    let open = || File::options().read(true).write(true).create(true).truncate(false).open(path);
    let mut doors: Vec<Box<dyn Door>> = Vec::new();
    for _ in 0..LANES {
        let file = open().map_err(failed)?;
        doors.push(Box::new(FileDoor { file, bytes: noise() }));
    }
    open().and_then(|file| file.set_len(size)).map_err(failed)?;
    Ok(Subject { name: path.display().to_string(), size, doors, server: None })
}

struct FileDoor {
    file: File,
    bytes: Vec<u8>,
}

impl Door for FileDoor {
    fn request(&mut self, asked: Asked, offset: u64) -> io::Result<()> {
        let bytes = &mut self.bytes[..asked.block as usize];
        if asked.reads {
            self.file.read_exact_at(bytes, offset)
        } else {
            self.file.write_all_at(bytes, offset)
        }
    }
}

/// What does not compress.
pub fn noise() -> Vec<u8> {
    let mut places = pace::Places::new(0, u64::MAX, 1);
    (0..LARGE / 8).flat_map(|_| places.next().to_ne_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::pace::Rate;

    #[test]
    fn a_file_is_filled_and_asked_by_all_lanes() {
        let path = std::env::temp_dir().join(format!("cenote-latency-{}", std::process::id()));
        let mut subject = of_file(&path, 16 << 20).unwrap();
        subject.fill().unwrap();
        let plan = |reads, block| Plan {
            asked: Asked { reads, block },
            rate: Rate::Fixed(200.0),
            length: Duration::from_millis(100),
        };
        let (outcome, cpu) = subject.run(plan(false, 16 << 10)).unwrap();
        assert_eq!((outcome.latencies.count(), cpu), (20, None));
        assert_eq!(subject.run_beside_writer(plan(true, 4 << 10)).unwrap().latencies.count(), 20);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 16 << 20);
        std::fs::remove_file(&path).unwrap();
    }
}
