//! Where users and roles are kept: in the configuration, beside targets and initiators, so that a backup has them. The
//! audit log is a file of its own, since it only grows.

use access::{Files, Record, State};
use appliance::{USERS, USERS_KEY};
use std::io;
use std::path::Path;
use store::{Look, Store};

pub struct Kept {
    configuration: Store,
    files: Files,
}

impl Kept {
    pub fn new(configuration: Store, home: &Path) -> Kept {
        Kept { configuration, files: Files::new(home) }
    }
}

impl access::Store for Kept {
    fn load(&mut self) -> io::Result<Option<State>> {
        self.configuration
            .look(|reader| reader.get(&USERS, USERS_KEY))
            .map_err(|e| io::Error::other(e.to_string()))
    }

    /// A restored configuration has other users.
    fn generation(&self) -> u64 {
        self.configuration.restored()
    }

    fn save(&mut self, state: &State) -> io::Result<()> {
        let saved = self.configuration.change(|writer| writer.put(&USERS, USERS_KEY, state));
        saved.map_err(|e| match e.kind() {
            units::Kind::NoSpace => io::Error::new(io::ErrorKind::StorageFull, e.to_string()),
            _ => io::Error::other(e.to_string()),
        })
    }

    fn append(&mut self, record: &Record) -> io::Result<()> {
        self.files.append(record)
    }

    fn records(&mut self, max: usize) -> io::Result<Vec<Record>> {
        self.files.records(max)
    }
}
