//! What must be there after a restart, and the two things that a pure core is given.

use crate::{Record, State};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Randomness that nobody can guess.
pub trait Entropy: Send {
    fn fill(&mut self, out: &mut [u8]);
}

/// Where users, roles and the audit log are kept.
pub trait Store: Send {
    /// Nothing before the first start.
    fn load(&mut self) -> io::Result<Option<State>>;
    /// Another number than before when what is kept was replaced.
    fn generation(&self) -> u64 {
        0
    }
    /// All of it or nothing of it is there after a crash, and all of it once this has returned.
    fn save(&mut self, state: &State) -> io::Result<()>;
    fn append(&mut self, record: &Record) -> io::Result<()>;
    /// The newest records, oldest of them first.
    fn records(&mut self, max: usize) -> io::Result<Vec<Record>>;
}

/// Two files of a directory that nobody else may read. Where users and roles are kept elsewhere, only the audit log is used.
#[derive(Debug)]
pub struct Files {
    state: PathBuf,
    audit: PathBuf,
    dir: PathBuf,
}

/// The audit log is cut here; one older part is kept.
const AUDIT_MAX: u64 = 16 << 20;
const MODE: u32 = 0o600;

impl Files {
    pub fn new(dir: &Path) -> Files {
        Files { state: dir.join("access.json"), audit: dir.join("audit.jsonl"), dir: dir.into() }
    }

    fn older(&self) -> PathBuf {
        self.audit.with_extension("jsonl.1")
    }
}

impl Store for Files {
    fn load(&mut self) -> io::Result<Option<State>> {
        match fs::read(&self.state) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn save(&mut self, state: &State) -> io::Result<()> {
        let next = self.state.with_extension("json.new");
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(MODE).open(&next)?;
        file.write_all(&serde_json::to_vec_pretty(state)?)?;
        file.sync_all()?;
        fs::rename(&next, &self.state)?;
        // The new name is durable with its directory.
        File::open(&self.dir)?.sync_all()
    }

    fn append(&mut self, record: &Record) -> io::Result<()> {
        // The message goes to clients, and has to name the file.
        let of = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", self.audit.display()));
        self.append_line(record).map_err(of)
    }

    fn records(&mut self, max: usize) -> io::Result<Vec<Record>> {
        let mut records = Vec::new();
        for path in [self.older(), self.audit.clone()] {
            let file = match File::open(&path) {
                Ok(file) => file,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(e),
            };
            for line in BufReader::new(file).split(b'\n') {
                // A crash may have cut the last line; what is whole is told.
                records.extend(serde_json::from_slice::<Record>(&line?).ok());
            }
        }
        Ok(records.split_off(records.len().saturating_sub(max)))
    }
}

impl Files {
    fn append_line(&self, record: &Record) -> io::Result<()> {
        if fs::metadata(&self.audit).is_ok_and(|m| m.len() > AUDIT_MAX) {
            fs::rename(&self.audit, self.older())?;
        }
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        let mut file = OpenOptions::new().create(true).append(true).mode(MODE).open(&self.audit)?;
        let before = file.metadata()?.len();
        let written = file.write_all(&line);
        if written.is_err() {
            // What is there of it would take the next record with it.
            file.set_len(before)?;
        }
        written?;
        file.sync_data()
    }
}
