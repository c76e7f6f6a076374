//! The certificate: an administrator's own, or one that is made at the first start and signs itself.
//!
//! Both parts are files in PEM, so that either can be replaced, and the certificate given to clients to trust. The key is
//! readable by its owner alone.

use rcgen::{CertificateParams, DnType, KeyPair};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A chain and its key, which belong together.
#[derive(Clone, Debug)]
pub struct Certificate {
    config: Arc<ServerConfig>,
    remarks: Vec<String>,
}

impl Certificate {
    /// Reads `cert.pem` and `key.pem` of `dir`; where the first is not there makes it, for these names of the machine,
    /// and the key too if need be.
    pub fn load_or_make(dir: &Path, names: &[String]) -> io::Result<Certificate> {
        let (cert, key) = (dir.join("cert.pem"), dir.join("key.pem"));
        if !cert.exists() {
            make(dir, &cert, &key, names)?;
        }
        let chain = CertificateDer::pem_slice_iter(&read(&cert)?).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|e| unusable(&cert, not_pem(e)))?;
        if chain.is_empty() {
            return Err(unusable(&cert, "it holds no certificate"));
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut remarks = tls::remarks::of_certificates("cert.pem", &chain, now);
        let mode = fs::metadata(&key).map_err(|e| unusable(&key, e))?.permissions().mode();
        remarks.extend(tls::remarks::of_key("key.pem", mode));
        let private = PrivateKeyDer::from_pem_slice(&read(&key)?).map_err(|e| unusable(&key, not_pem(e)))?;
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
        let config = builder.with_no_client_auth().with_single_cert(chain, private);
        let mut config = config.map_err(|e| unusable(&cert, format!("with its key: {}", tls::why(&e))))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Certificate { config: Arc::new(config), remarks })
    }

    /// What an administrator should hear of the files, which can be used.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// TLS 1.2 and 1.3, HTTP/1.1.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path).map_err(|e| unusable(path, e))
}

fn unusable(path: &Path, why: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!(
        "cannot use {}: {why}; without cert.pem and key.pem there, the next start makes a pair",
        path.display()
    ))
}

/// What is wrong with the text of a PEM file, without a word of what it holds.
fn not_pem(e: pem::Error) -> String {
    match e {
        pem::Error::NoItemsFound => "it holds no such thing",
        pem::Error::MissingSectionEnd { .. } => "it ends in the midst of a section",
        _ => "it is damaged",
    }
    .into()
}

fn make(dir: &Path, cert: &Path, key: &Path, names: &[String]) -> io::Result<()> {
    let mut params = CertificateParams::new(names.to_vec()).map_err(io::Error::other)?;
    params.distinguished_name.push(DnType::OrganizationName, "Cenote");
    params.distinguished_name.push(DnType::CommonName, names.first().map_or("cenote", String::as_str));
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    // The key first: a start that was cut short behind it goes on from there; a certificate without its key is of no use.
    let pair = match key.exists() {
        true => {
            let pair = String::from_utf8(read(key)?).ok().and_then(|text| KeyPair::from_pem(&text).ok());
            pair.ok_or_else(|| unusable(key, "it holds no private key that can sign"))?
        }
        false => {
            let pair = KeyPair::generate().map_err(io::Error::other)?;
            write(key, 0o600, &pair.serialize_pem())?;
            pair
        }
    };
    let signed = params.self_signed(&pair).map_err(io::Error::other)?;
    write(cert, 0o644, &signed.pem())
}

fn write(path: &Path, mode: u32, text: &str) -> io::Result<()> {
    let next = path.with_extension("pem.new");
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(mode).open(&next)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&next, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificate_of_the_first_start_stays_and_its_key_is_private() {
        let dir = std::env::temp_dir().join(format!("cenote-tls-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        let names = ["localhost".to_string(), "127.0.0.1".into(), "::1".into()];
        let text = || fs::read_to_string(dir.join("cert.pem")).unwrap();
        assert_eq!(Certificate::load_or_make(&dir, &names).unwrap().remarks(), [""; 0]);
        let first = text();
        Certificate::load_or_make(&dir, &[]).unwrap();
        assert_eq!(first, text());
        assert_eq!(fs::metadata(dir.join("key.pem")).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(dir.join("cert.pem"), "nonsense").unwrap();
        let e = Certificate::load_or_make(&dir, &names).unwrap_err().to_string();
        assert!(e.contains("cert.pem") && e.contains("no certificate"), "{e}");
        assert!(e.contains("the next start makes a pair"), "{e}");
        let whole = fs::read_to_string(dir.join("key.pem")).unwrap();
        fs::remove_file(dir.join("cert.pem")).unwrap();
        for damaged in [&whole[..whole.len() / 2], "", &whole.replace('M', "!")] {
            fs::write(dir.join("key.pem"), damaged).unwrap();
            let e = Certificate::load_or_make(&dir, &names).unwrap_err().to_string();
            assert!(e.contains("key.pem: ") && !e.contains('['), "{e}");
        }
        fs::write(dir.join("key.pem"), &whole).unwrap();
        // The first start was killed, or had no more room, when only the key was there.
        Certificate::load_or_make(&dir, &names).unwrap();
        assert!(fs::read_to_string(dir.join("key.pem")).unwrap() == whole && text() != first);
        let other = KeyPair::generate().unwrap().serialize_pem();
        fs::write(dir.join("key.pem"), other).unwrap();
        let e = Certificate::load_or_make(&dir, &names).unwrap_err().to_string();
        assert!(e.contains("cert.pem: with its key: "), "{e}");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn what_has_expired_or_is_open_to_all_is_said_and_served() {
        let dir = std::env::temp_dir().join(format!("cenote-tls-expired-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        let pair = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["nas".to_string()]).unwrap();
        params.not_after = rcgen::date_time_ymd(2024, 2, 29);
        fs::write(dir.join("cert.pem"), params.self_signed(&pair).unwrap().pem()).unwrap();
        fs::write(dir.join("key.pem"), pair.serialize_pem()).unwrap();
        fs::set_permissions(dir.join("key.pem"), fs::Permissions::from_mode(0o644)).unwrap();
        let loaded = Certificate::load_or_make(&dir, &[]).unwrap();
        let [expired, open] = loaded.remarks() else { panic!("{loaded:?}") };
        assert_eq!(expired, "cert.pem has expired on 2024-02-29: clients refuse it; renew it");
        assert!(open.starts_with("key.pem is open to every user of this machine (mode 644)"), "{open}");
        fs::remove_dir_all(&dir).unwrap();
    }
}
