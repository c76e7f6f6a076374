//! The files of `--nbd-tls`: read once, before anything else is begun.

use crate::report;
use cli::Failure;
use cli::args::Listen;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;
use tls::Identity;

/// What NBD clients over TCP are shown; nothing where no TLS is asked for.
pub fn identity(listen: &Listen) -> Result<Option<Identity>, Failure> {
    let Some(dir) = listen.nbd_tls.as_deref() else { return Ok(None) };
    let identity = load(dir)?;
    for remark in remarks(dir, &identity) {
        report::complain(&format!("WARNING: {}: {remark}", dir.display()));
    }
    Ok(Some(identity))
}

/// What is no reason not to start, and will be looked for when clients are refused.
fn remarks(dir: &Path, identity: &Identity) -> Vec<String> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let key = std::fs::metadata(dir.join(Identity::key_file())).ok();
    let exposed = key.and_then(|key| tls::remarks::of_key(Identity::key_file(), key.mode()));
    identity.remarks(now).into_iter().chain(exposed).collect()
}

fn load(dir: &Path) -> Result<Identity, Failure> {
    let loaded = match std::fs::metadata(dir) {
        Ok(_) => Identity::load(|name| std::fs::read(dir.join(name))).map_err(|e| e.to_string()),
        Err(e) => Err(format!("{e}; name the directory that holds server-cert.pem and server-key.pem")),
    };
    loaded.map_err(|why| Failure::Failed(format!("cannot serve NBD inside TLS by {}: {why}", dir.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lacks_is_said_in_one_line() {
        let dir = std::env::temp_dir().join(format!("nbd-tls-{}", std::process::id()));
        let said = || {
            let listen = Listen { listen: None, socket: None, nbd_tls: Some(dir.clone()) };
            match identity(&listen) {
                Err(Failure::Failed(said)) => said,
                other => panic!("{other:?}"),
            }
        };
        let at = format!("cannot serve NBD inside TLS by {}: ", dir.display());
        let missing = said();
        assert!(missing.starts_with(&at) && missing.contains("; name the directory"), "{missing}");
        std::fs::create_dir(&dir).unwrap();
        let empty = said();
        assert!(empty.starts_with(&format!("{at}there is no server-cert.pem;")), "{empty}");
        std::fs::write(dir.join("server-cert.pem"), "text").unwrap();
        let text = said();
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(text.starts_with(&format!("{at}server-cert.pem holds no certificate;")), "{text}");
        assert!(identity(&Listen { listen: None, socket: None, nbd_tls: None }).unwrap().is_none());
    }
}
