//! Parameter files of vdbench, raw I/O: storage, workload and run definitions become a [`Description`].
//!
//! ```text
//!   sd=sd1,lun=…,threads=128 ─▶ Store, and how many lanes on it
//!   wd=wd1,sd=sd*,…          ─▶ the stores and what a stream does
//!   rd=run1,wd=wd1,for…=…    ─▶ a run for each combination, and for each rate; `curve` is a run at the maximum and
//!                               one for each percentage of it
//! ```
//!
//! `default` as a name holds for the definitions that follow. The threads of a store are divided among the workloads
//! that use it by their skew. What this does not know is refused with file, line and key; nothing is passed over in
//! silence but what only says where other machines are reached (`hd=localhost`).
//!
//! Not here: definitions of file systems (`fsd`, `fwd`) and other hosts: they are refused by name.

mod lines;
mod loops;
mod names;
mod run;
mod storage;
mod work;

use crate::describe::Description;
use crate::words::{Parsed, Place, text};
use lines::Definition;
use storage::Storage;
use work::Work;

/// Reads a file's bytes; `file` is how complaints name it.
pub fn parse(file: &str, bytes: &[u8]) -> Parsed<Description> {
    let definitions = lines::definitions(file, text(file, bytes)?)?;
    let (mut storage, mut work, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    let (mut of_storage, mut of_work, mut of_runs) = (Storage::default(), Work::default(), Vec::new());
    for definition in &definitions {
        match (definition.kind.as_str(), definition.name.as_str()) {
            ("sd", "default") => of_storage = storage::read(&of_storage, definition)?,
            ("sd", _) => storage.extend(storage::several(&of_storage, definition)?),
            ("wd", "default") => of_work = work::read(&of_work, definition, &storage)?,
            ("wd", _) => work.push(work::read(&of_work, definition, &storage)?),
            ("rd", "default") => of_runs.extend(definition.keys.iter().cloned()),
            ("rd", _) => run::read(&of_runs, definition, &storage, &work, &mut runs)?,
            _ => other(definition)?,
        }
        if storage.len() > 10_000 {
            return definition.place.complain("more than 10000 storage definitions");
        }
    }
    let place = Place::new(file, definitions.last().map_or(1, |d| d.place.line), "");
    if runs.is_empty() {
        return place.complain("there is no run definition (rd=)");
    }
    let description = Description { stores: storage.into_iter().map(|s| s.store).collect(), runs };
    match description.check() {
        Ok(()) => Ok(description),
        Err(e) => place.complain(e.to_string()),
    }
}

/// What is neither storage nor workload nor run.
fn other(definition: &Definition) -> Parsed<()> {
    let Definition { kind, name, place, keys } = definition;
    match kind.as_str() {
        "hd" if matches!(name.as_str(), "default" | "localhost") && keys.is_empty() => Ok(()),
        "hd" => place.complain("other hosts are not driven; start this program there"),
        "fsd" | "fwd" => {
            place.complain("file system definitions are not supported; sd= with the path of a file is")
        }
        _ => place.complain("not supported; a definition is sd=, wd= or rd="),
    }
}

#[cfg(test)]
mod tests;
