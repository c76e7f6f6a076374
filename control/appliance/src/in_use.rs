//! What keeps something from being taken away, for the message that says that it is busy.

use crate::appliance::Appliance;
use std::fs;
use std::path::Path;

/// More are counted, and not named.
const NAMED_MAX: usize = 4;

impl Appliance {
    /// Volumes with the clients that use them: `tank/v (NBD client 127.0.0.1:40112)`.
    pub(crate) async fn with_users(&self, volumes: &[String]) -> String {
        let mut all = Vec::new();
        for volume in volumes {
            let users = self.users_of(volume).await;
            all.push(if users.is_empty() { volume.clone() } else { format!("{volume} ({})", list(users)) });
        }
        all.join(", ")
    }

    async fn users_of(&self, volume: &str) -> Vec<String> {
        let mut users = Vec::new();
        if let Some(server) = self.nbd() {
            // A client that chose the only volume by no name is of the export "".
            let is_its =
                |export: &Option<String>| export.as_deref().is_some_and(|e| e == volume || e.is_empty());
            let own = server.clients().into_iter().filter(|client| is_its(&client.export));
            users.extend(own.map(|client| format!("NBD client {}", client.address)));
        }
        if let Some(iscsi) = self.iscsi()
            && let Ok(view) = self.san_view().await
        {
            for client in iscsi.clients() {
                let Some(target) = &client.target else { continue };
                let sees = view.luns(target, &client.initiator).iter().any(|lu| lu.facts.dataset == volume);
                if sees {
                    users.push(format!("initiator {} from {}", client.initiator, client.address));
                }
            }
        }
        if let Some(text) = self.0.migrations.text(volume) {
            users.push(format!("another block size: {text}"));
        }
        users
    }
}

fn list(mut all: Vec<String>) -> String {
    let more = all.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        all.truncate(NAMED_MAX);
        all.push(format!("and {more} more"));
    }
    all.join(", ")
}

/// `: process 4711 (bash)`, of those that have something open below a directory, or stand in it; nothing where none is
/// found, as those of other users are not.
pub(crate) fn processes_at(at: &Path) -> String {
    let own = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == own || !name.bytes().all(|b| b.is_ascii_digit()) {
            continue;
        }
        let process = entry.path();
        let is_there = |link: &Path| fs::read_link(link).is_ok_and(|to| to.starts_with(at));
        let files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten().map(|file| file.path());
        if ["cwd", "root", "exe"]
            .map(|link| process.join(link))
            .into_iter()
            .chain(files)
            .any(|link| is_there(&link))
        {
            let comm = fs::read_to_string(process.join("comm")).unwrap_or_default();
            found.push(format!("process {name} ({})", comm.trim()));
        }
    }
    if found.is_empty() { String::new() } else { format!(": {}", list(found)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_stands_in_a_directory_is_found() {
        let dir = std::env::temp_dir().join(format!("cenote-users-{}", std::process::id()));
        fs::create_dir_all(dir.join("below")).unwrap();
        let dir = dir.canonicalize().unwrap();
        assert_eq!(processes_at(&dir), "");
        let mut child =
            std::process::Command::new("sleep").arg("60").current_dir(dir.join("below")).spawn().unwrap();
        let said = processes_at(&dir);
        let beside = processes_at(&dir.join("bel"));
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_dir_all(&dir).unwrap();
        assert!(said.starts_with(&format!(": process {} (", child.id())), "{said}");
        assert_eq!(beside, "", "no directory of a longer name");
    }

    #[test]
    fn a_crowd_is_counted() {
        let all = |n: usize| list((0..n).map(|i| i.to_string()).collect());
        assert_eq!((all(1).as_str(), all(4).as_str()), ("0", "0, 1, 2, 3"));
        assert_eq!(all(6), "0, 1, 2, 3, and 2 more");
    }
}
