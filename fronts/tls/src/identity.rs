//! The certificate that a server shows to its clients, and those that it wants of them.
//!
//! The parts are PEM files by the names that QEMU, nbdkit and nbd-client use:
//!
//! ```text
//!   server-cert.pem   the server's certificate, then those between it and the authority
//!   server-key.pem    its key, not encrypted
//!   ca-cert.pem       clients must show a certificate that one of these has signed       may be absent
//!   ca-crl.pem        ... and that is not revoked here                                   may be absent
//! ```

use crate::remarks::Dates;
use crate::secure::{Secure, shake_hands};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, UnixTime, pem::Error as PemError,
};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::time_provider::TimeProvider;
use rustls::{CertificateError, InconsistentKeys, RootCertStore, ServerConfig, ServerConnection};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use units::{Error, Kind, Result};
use world::Stream;

const CERTIFICATE: &str = "server-cert.pem";
const KEY: &str = "server-key.pem";
const AUTHORITY: &str = "ca-cert.pem";
const REVOKED: &str = "ca-crl.pem";

/// A server's certificate and key, and the authority that the certificates of its clients are checked against.
#[derive(Clone, Debug)]
pub struct Identity {
    config: Arc<ServerConfig>,
    checks_clients: bool,
    dates: Vec<Dates>,
}

impl Identity {
    /// Makes it of the files that `read` reads by their names. The error names the file, what is wrong with it, and what it
    /// should be.
    pub fn load(read: impl Fn(&str) -> io::Result<Vec<u8>>) -> Result<Identity> {
        let chain = certificates(CERTIFICATE, "the server's certificate", &must(&read, CERTIFICATE)?)?;
        let key = key(&must(&read, KEY)?)?;
        let provider = Arc::new(ring::default_provider());
        let authority = may(&read, AUTHORITY)?;
        let revoked = may(&read, REVOKED)?;
        let checks_clients = authority.is_some();
        let mut dates = Dates::of_certificates(CERTIFICATE, &chain);
        for list in CertificateRevocationListDer::pem_slice_iter(revoked.as_deref().unwrap_or_default()) {
            dates.extend(list.ok().and_then(|list| Dates::of_list(REVOKED, &list)));
        }
        let verifier = match authority {
            Some(pem) => verifier(&pem, revoked.as_deref(), provider.clone())?,
            None if revoked.is_some() => {
                let why = format!(
                    "{REVOKED}: without {AUTHORITY} no client shows a certificate; add that file too"
                );
                return Err(Error::invalid(why));
            }
            None => WebPkiClientVerifier::no_client_auth(),
        };
        let versions = ServerConfig::builder_with_details(provider, Arc::new(Clock))
            .with_safe_default_protocol_versions()
            .map_err(|e| Error::unsupported("make a TLS configuration").because(e))?;
        let config = versions.with_client_cert_verifier(verifier).with_single_cert(chain, key);
        let mut config = config.map_err(unusable)?;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Identity { config: Arc::new(config), checks_clients, dates })
    }

    /// What an administrator should hear of the files in the second `now` since 1970.
    pub fn remarks(&self, now: u64) -> Vec<String> {
        self.dates.iter().filter_map(|dates| dates.remark(now)).collect()
    }

    /// Where the key is.
    pub fn key_file() -> &'static str {
        KEY
    }

    /// Clients must show a certificate.
    pub fn checks_clients(&self) -> bool {
        self.checks_clients
    }

    /// Makes the handshake with a client that is about to begin it. Waits for the client, without a limit of its own. A
    /// client that is refused has been told why when the error is returned.
    pub async fn accept(&self, raw: Arc<dyn Stream>) -> Result<Secure> {
        let begin = |e: rustls::Error| Error::new(Kind::Invalid, "begin TLS").because(e);
        let connection = ServerConnection::new(self.config.clone()).map_err(begin)?;
        let made = shake_hands(connection.into(), raw).await;
        made.map_err(|e| {
            let tls = e.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
            let said = tls.map_or_else(|| e.to_string(), why);
            Error::new(Kind::Io, "negotiate TLS").because(said)
        })
    }
}

/// The time that certificates are checked at.
#[derive(Debug)]
struct Clock;

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(world::wall_clock().seconds)))
    }
}

fn must(read: &impl Fn(&str) -> io::Result<Vec<u8>>, name: &str) -> Result<Vec<u8>> {
    read(name).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => Error::invalid(format!(
            "there is no {name}; the server needs its certificate in {CERTIFICATE} and its key in {KEY}"
        )),
        _ => unreadable(name, e),
    })
}

fn may(read: &impl Fn(&str) -> io::Result<Vec<u8>>, name: &str) -> Result<Option<Vec<u8>>> {
    match read(name) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(unreadable(name, e)),
    }
}

fn unreadable(name: &str, e: io::Error) -> Error {
    Error::invalid(format!("{name} cannot be read by this user")).because(e)
}

fn certificates(name: &str, what: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    let parsed = CertificateDer::pem_slice_iter(pem).collect::<std::result::Result<Vec<_>, PemError>>();
    let parsed = parsed.map_err(|e| not_pem(name, e))?;
    match parsed.is_empty() {
        true => Err(Error::invalid(format!("{name} holds no certificate; it must be {what} in PEM"))),
        false => Ok(parsed),
    }
}

fn key(pem: &[u8]) -> Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|e| match e {
        PemError::NoItemsFound => {
            Error::invalid(format!("{KEY} holds no key; it must be the server's in PEM, without a password"))
        }
        e => not_pem(KEY, e),
    })
}

fn not_pem(name: &str, e: PemError) -> Error {
    Error::invalid(format!("{name} is damaged, or not PEM; copy it again")).because(e)
}

fn verifier(
    authority: &[u8],
    revoked: Option<&[u8]>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>> {
    let what = "the certificate of the authority that signs those of clients";
    let refused = |name: &str, e: &dyn std::fmt::Display| {
        Error::invalid(format!("{name} cannot be used: {e}; it must be {what} in PEM"))
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(AUTHORITY, what, authority)? {
        roots.add(certificate).map_err(|e| refused(AUTHORITY, &e))?;
    }
    let lists = CertificateRevocationListDer::pem_slice_iter(revoked.unwrap_or_default());
    let lists = lists.collect::<std::result::Result<Vec<_>, PemError>>().map_err(|e| not_pem(REVOKED, e))?;
    if revoked.is_some() && lists.is_empty() {
        return Err(Error::invalid(format!(
            "{REVOKED} holds no list of revoked certificates; it must be one in PEM"
        )));
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).with_crls(lists);
    builder.build().map_err(|e| Error::invalid(format!("{AUTHORITY} and {REVOKED} cannot be used: {e}")))
}

fn unusable(e: rustls::Error) -> Error {
    match e {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => Error::invalid(format!(
            "{KEY} is not the key of {CERTIFICATE}; give the key that the certificate was made for"
        )),
        e => Error::invalid(format!("{CERTIFICATE} and {KEY} cannot be used: {}; make them again", why(&e))),
    }
}

/// What rustls refuses, in words for the administrator who made the certificate.
pub fn why(e: &rustls::Error) -> String {
    match e {
        // The verifier has a name for it, and rustls none.
        rustls::Error::InvalidCertificate(CertificateError::Other(other))
            if other.to_string() == "UnsupportedCertVersion" =>
        {
            "the certificate is of X.509 version 1, which has no extensions; sign it with some, such as subjectAltName, \
             which makes it version 3 ('openssl x509 -req' takes them by -extfile)"
                .into()
        }
        e => e.to_string(),
    }
}
