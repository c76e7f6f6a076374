//! Where users and roles are kept: in the configuration, beside targets and initiators, so that a backup has them. The
//! audit log is a file of its own, since it only grows.

use access::{Files, Record, State};
use std::io;
use std::path::Path;
use store::{Look, Store, Table};

const USERS: Table<State> = Table::new("access.state");
/// All of it is one record: it is small, and a change of it is one.
const KEY: &str = "state";

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
        self.configuration.look(|reader| reader.get(&USERS, KEY)).map_err(|e| io::Error::other(e.to_string()))
    }

    /// A restored configuration has other users.
    fn generation(&self) -> u64 {
        self.configuration.restored()
    }

    fn save(&mut self, state: &State) -> io::Result<()> {
        let saved = self.configuration.change(|writer| writer.put(&USERS, KEY, state));
        saved.map_err(|e| io::Error::other(e.to_string()))
    }

    fn append(&mut self, record: &Record) -> io::Result<()> {
        self.files.append(record)
    }

    fn records(&mut self, max: usize) -> io::Result<Vec<Record>> {
        self.files.records(max)
    }
}
