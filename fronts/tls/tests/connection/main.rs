//! Both ends of TLS in the simulated world: what arrives, which clients are taken, and how connections end.

#![allow(clippy::unwrap_used)]

#[path = "../authority/mod.rs"]
mod authority;
mod v1;

use authority::{Authority, Issued};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use sim::Rng;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tls::{Identity, Secure};
use world::{Buf, IoBuf, Stream};

fn run<T: Send + 'static>(test: impl Future<Output = T> + Send + 'static) -> T {
    sim::run(1, sim::Config::default(), test)
}

type Files = BTreeMap<&'static str, Vec<u8>>;

fn load(files: &Files) -> units::Result<Identity> {
    Identity::load(|name| files.get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into()))
}

/// The files of a server "nas".
fn files(authority: &Authority) -> Files {
    let Issued { certificate, key } = authority.issue(1, &["nas"]);
    [("server-cert.pem", certificate.into_bytes()), ("server-key.pem", key.into_bytes())].into()
}

fn client(trusted: &Authority, own: Option<&Issued>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.pem().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_root_certificates(roots);
    Arc::new(match own {
        None => builder.with_no_client_auth(),
        Some(Issued { certificate, key }) => {
            let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![certificate], key).unwrap()
        }
    })
}

/// A client that shows a certificate which rustls would not let it take.
fn client_unchecked(trusted: &Authority, own: &Issued) -> Arc<ClientConfig> {
    let provider = rustls::crypto::ring::default_provider();
    let certificate = CertificateDer::from_pem_slice(own.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
    let key = provider.key_provider.load_private_key(key).unwrap();
    let own = rustls::sign::CertifiedKey::new(vec![certificate], key);
    let mut config = Arc::into_inner(client(trusted, None)).unwrap();
    config.client_auth_cert_resolver = Arc::new(rustls::sign::SingleCertAndKey::from(own));
    Arc::new(config)
}

/// Two ends of a connection that carries bytes as they are.
fn plain_pair() -> (Arc<dyn Stream>, Arc<dyn Stream>) {
    let (ours, theirs) = sim::stream_pair();
    (Arc::from(ours), Arc::from(theirs))
}

async fn connect(
    identity: &Identity,
    config: Arc<ClientConfig>,
) -> (units::Result<Secure>, io::Result<Secure>) {
    let (ours, theirs) = plain_pair();
    connect_over(identity, config, ours, theirs).await
}

async fn connect_over(
    identity: &Identity,
    config: Arc<ClientConfig>,
    ours: Arc<dyn Stream>,
    theirs: Arc<dyn Stream>,
) -> (units::Result<Secure>, io::Result<Secure>) {
    let client = world::spawn(Secure::connect(ours, config, "nas".try_into().unwrap()));
    let served = identity.accept(theirs).await;
    (served, client.await)
}

/// Server and client.
async fn pair() -> (Arc<Secure>, Arc<Secure>) {
    let authority = Authority::new("ours");
    let (served, client) = connect(&load(&files(&authority)).unwrap(), client(&authority, None)).await;
    (Arc::new(served.unwrap()), Arc::new(client.unwrap()))
}

async fn receive(stream: &dyn Stream) -> io::Result<Vec<u8>> {
    let (buf, received) = stream.recv(IoBuf::zeroed(64 << 10), 0..64 << 10).await;
    received.map(|count| buf[..count].to_vec())
}

async fn send(stream: &dyn Stream, bytes: &[u8]) -> io::Result<()> {
    stream.send(vec![Buf::copy_from(bytes)]).await
}

/// Sends `bytes` in sends of many parts, some empty.
async fn send_cut(stream: Arc<Secure>, seed: u64, bytes: Vec<u8>) {
    let mut random = Rng::new(seed);
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let mut parts = Vec::new();
        for _ in 0..random.below(20) {
            let most = [1, 30, 5_000, 700_000][random.below(4) as usize];
            let (part, after) = rest.split_at(rest.len().min(random.below(most) as usize));
            parts.push(Buf::copy_from(part));
            rest = after;
        }
        stream.send(parts).await.unwrap();
    }
}

async fn receive_cut(stream: Arc<Secure>, seed: u64, len: usize) -> Vec<u8> {
    let mut random = Rng::new(seed);
    let mut whole = Vec::new();
    while whole.len() < len {
        if random.below(2) == 0 {
            whole.extend(receive(&*stream).await.unwrap());
            continue;
        }
        let sizes = [0, 1, 100, 16 << 10, 300_000];
        let parts = (0..6).map(|i| IoBuf::zeroed(if i == 5 { 50 } else { sizes[random.below(5) as usize] }));
        let parts: Vec<IoBuf> = parts.collect();
        let room = parts.iter().map(|part| part.len() as u64).sum();
        let filled = random.below(room) as usize;
        let (parts, received) = stream.recv_parts(parts, filled).await;
        let all = parts.iter().flat_map(|part| part.to_vec()).collect::<Vec<u8>>();
        whole.extend(&all[filled..filled + received.unwrap()]);
    }
    whole
}

#[test]
fn bytes_arrive_in_both_directions_at_once_however_they_are_cut() {
    for seed in 1..=6 {
        run(async move {
            let (served, client) = pair().await;
            let mut random = Rng::new(seed);
            let mut bytes = || -> Vec<u8> { (0..3_000_000).map(|_| random.below(256) as u8).collect() };
            let (down, up) = (bytes(), bytes());
            world::spawn(send_cut(served.clone(), seed, down.clone()));
            world::spawn(send_cut(client.clone(), seed + 1, up.clone()));
            let uploaded = world::spawn(receive_cut(served, seed + 2, up.len()));
            assert!(receive_cut(client, seed + 3, down.len()).await == down, "seed {seed}");
            assert!(uploaded.await == up, "seed {seed}");
        });
    }
}

#[test]
fn a_farewell_is_an_end_and_a_cut_is_an_error() {
    run(async {
        let (served, client) = pair().await;
        send(&*client, b"last words").await.unwrap();
        client.close().await;
        assert_eq!(receive(&*served).await.unwrap(), b"last words");
        assert_eq!(receive(&*served).await.unwrap(), b"");
        assert_eq!(receive(&*served).await.unwrap(), b"", "and stays so");
        send(&*served, b"answer").await.unwrap();
        assert_eq!(receive(&*client).await.unwrap(), b"answer", "the other direction goes on");

        let (served, client) = pair().await;
        send(&*client, b"cut").await.unwrap();
        client.shutdown();
        assert_eq!(receive(&*served).await.unwrap(), b"cut");
        assert_eq!(receive(&*served).await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    });
}

/// With TLS 1.3 a client is done before the server has looked at its certificate: it learns at its next receive.
async fn is_taken(identity: &Identity, config: Arc<ClientConfig>) -> bool {
    let (served, client) = connect(identity, config).await;
    let (Ok(served), Ok(client)) = (&served, &client) else {
        if let Ok(client) = client {
            let alert = receive(&client).await.unwrap_err().to_string();
            assert!(alert.contains("received fatal alert"), "{alert}");
        }
        return false;
    };
    send(served, b"welcome").await.unwrap();
    receive(client).await.unwrap() == b"welcome"
}

#[test]
fn clients_are_taken_by_the_certificate_of_the_authority() {
    run(async {
        let (ours, foreign) = (Authority::new("ours"), Authority::new("foreign"));
        let mut files = files(&ours);
        let open = load(&files).unwrap();
        assert!(!open.checks_clients() && is_taken(&open, client(&ours, None)).await);

        files.insert("ca-cert.pem", ours.pem().into_bytes());
        let checked = load(&files).unwrap();
        assert!(checked.checks_clients());
        assert!(!is_taken(&checked, client(&ours, None)).await, "without a certificate");
        assert!(!is_taken(&checked, client(&ours, Some(&foreign.issue(5, &["x"])))).await, "a foreign one");
        let own = ours.issue(5, &["x"]);
        assert!(is_taken(&checked, client(&ours, Some(&own))).await);

        files.insert("ca-crl.pem", ours.revoke(5).into_bytes());
        let strict = load(&files).unwrap();
        assert!(!is_taken(&strict, client(&ours, Some(&own))).await, "a revoked one");
        assert!(is_taken(&strict, client(&ours, Some(&ours.issue(6, &["x"])))).await);
        // Of dates that have passed there was no word: the list's of 2100, the certificate's of 4096.
        let remarks = |seconds| strict.remarks(seconds);
        assert_eq!(remarks(1_700_000_000), [""; 0]);
        let list =
            "ca-crl.pem was to be replaced by 2100-01-01: what was revoked since is not on it, and is let in";
        assert_eq!(remarks(4_102_444_801), [list]);
        let certificate = "server-cert.pem has expired on 4096-01-01: clients refuse it; renew it";
        assert_eq!(remarks(67_100_000_000), [certificate, list]);
        let early = remarks(0);
        assert!(early[0].starts_with("server-cert.pem is valid from 1975-01-01 on only: "), "{early:?}");
    });
}

/// The message was "invalid peer certificate: Other(OtherError(UnsupportedCertVersion))".
#[test]
fn a_certificate_of_version_1_is_refused_by_that_name() {
    run(async {
        let authority = Authority::new("ours");
        let says_it = |e: units::Error| {
            let said = e.to_string();
            assert!(said.contains("X.509 version 1") && !said.contains("Unsupported"), "{said}");
        };
        let mut files = files(&authority);
        files.insert("ca-cert.pem", authority.pem().into_bytes());
        let checked = load(&files).unwrap();
        let own = Issued { certificate: v1::CERTIFICATE.into(), key: v1::KEY.into() };
        let (served, _client) = connect(&checked, client_unchecked(&authority, &own)).await;
        says_it(served.unwrap_err());
        files.insert("server-cert.pem", v1::CERTIFICATE.into());
        files.insert("server-key.pem", v1::KEY.into());
        says_it(load(&files).unwrap_err());
    });
}

#[test]
fn a_client_that_trusts_another_authority_refuses_the_server() {
    run(async {
        let identity = load(&files(&Authority::new("ours"))).unwrap();
        let (served, client) = connect(&identity, client(&Authority::new("other"), None)).await;
        assert!(served.unwrap_err().to_string().contains("UnknownCA"));
        assert!(client.is_err());
    });
}

#[test]
fn what_is_no_tls_is_refused() {
    run(async {
        let identity = load(&files(&Authority::new("ours"))).unwrap();
        for bytes in [&b"IHAVEOPT\0\0\0\x03\0\0\0\0"[..], &[0; 100], &[0x16, 3, 1, 0xff, 0xff]] {
            let (ours, theirs) = plain_pair();
            send(&*ours, bytes).await.unwrap();
            let accepted = world::timeout(Duration::from_secs(1), identity.accept(theirs)).await;
            assert!(!matches!(accepted, Some(Ok(_))), "{bytes:?}");
        }
        let (ours, theirs) = plain_pair();
        ours.shutdown();
        assert!(identity.accept(theirs).await.is_err());
    });
}

/// Passes on what comes, with one bit of byte `wrong` flipped.
async fn pass_on(from: Arc<dyn Stream>, to: Arc<dyn Stream>, wrong: Option<usize>) {
    let mut passed = 0;
    while let Ok(mut bytes) = receive(&*from).await
        && !bytes.is_empty()
    {
        if let Some(byte) = wrong.and_then(|wrong| bytes.get_mut(wrong.wrapping_sub(passed))) {
            *byte ^= 1;
        }
        passed += bytes.len();
        if send(&*to, &bytes).await.is_err() {
            break;
        }
    }
    to.shutdown();
}

#[test]
fn a_changed_byte_is_noticed_and_nothing_after_it_is_believed() {
    run(async {
        let authority = Authority::new("ours");
        let identity = load(&files(&authority)).unwrap();
        // Within the megabyte behind the handshake, which takes less than 4000 bytes.
        for wrong in [5_000, 100_000, 900_000] {
            let ((client_end, near), (far, server_end)) = (plain_pair(), plain_pair());
            world::spawn(pass_on(near.clone(), far.clone(), Some(wrong)));
            world::spawn(pass_on(far, near, None));
            let config = client(&authority, None);
            let (served, client) = connect_over(&identity, config, client_end, server_end).await;
            let (served, client) = (served.unwrap(), client.unwrap());
            let sending = world::spawn(async move { send(&client, &[7; 1 << 20]).await });
            let mut got = 0;
            let failed = loop {
                match receive(&served).await {
                    Ok(bytes) => {
                        assert!(!bytes.is_empty() && bytes.iter().all(|&b| b == 7));
                        got += bytes.len();
                    }
                    Err(e) => break e,
                }
            };
            assert!(got < wrong && failed.kind() == io::ErrorKind::InvalidData, "{failed}");
            assert!(receive(&served).await.is_err(), "and stays so");
            served.close().await;
            served.shutdown();
            let _ = sending.await;
        }
    });
}

#[test]
fn a_shutdown_wakes_both_directions() {
    run(async {
        let (served, _client) = pair().await;
        let (receiver, sender) = (served.clone(), served.clone());
        let receiving = world::spawn(async move { receive(&*receiver).await });
        let sending = world::spawn(async move { send(&*sender, &[0; 4 << 20]).await });
        world::sleep(Duration::from_secs(1)).await;
        served.shutdown();
        assert!(receiving.await.is_err() && sending.await.is_err());
        served.close().await;
    });
}

/// Records must follow each other: what was cut short is not continued with others.
#[test]
fn a_direction_that_was_given_up_stays_so() {
    run(async {
        let (served, client) = pair().await;
        let soon = Duration::from_secs(1);
        assert!(world::timeout(soon, receive(&*served)).await.is_none());
        assert!(world::timeout(soon, send(&*served, &[1; 4 << 20])).await.is_none());
        send(&*client, b"late").await.unwrap();
        assert!(receive(&*served).await.is_err());
        assert!(send(&*served, b"late").await.is_err());
        // And no farewell behind half a record.
        served.close().await;
        served.shutdown();
        let mut got = 0;
        while let Ok(bytes) = receive(&*client).await {
            assert!(!bytes.is_empty(), "no farewell");
            got += bytes.len();
        }
        assert!(got < 4 << 20);
    });
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let whole = files(&ours);
    let foreign_key = files(&other)["server-key.pem"].clone();
    let cases: [(&'static str, Option<&[u8]>, &str); 10] = [
        ("server-cert.pem", None, "there is no server-cert.pem"),
        ("server-key.pem", None, "there is no server-key.pem"),
        ("server-cert.pem", Some(b"nothing"), "server-cert.pem holds no certificate"),
        ("server-key.pem", Some(b"nothing"), "server-key.pem holds no key"),
        (
            "server-key.pem",
            Some(b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"),
            "without a password",
        ),
        ("server-cert.pem", Some(b"-----BEGIN CERTIFICATE-----\n%\n"), "server-cert.pem is damaged"),
        ("server-key.pem", Some(&foreign_key), "server-key.pem is not the key of server-cert.pem"),
        ("ca-cert.pem", Some(b""), "ca-cert.pem holds no certificate"),
        (
            "ca-cert.pem",
            Some(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            "ca-cert.pem cannot be used",
        ),
        ("ca-crl.pem", Some(b""), "ca-crl.pem: without ca-cert.pem"),
    ];
    for (name, content, expected) in cases {
        let mut files = whole.clone();
        files.remove(name);
        files.extend(content.map(|bytes| (name, bytes.to_vec())));
        let error = load(&files).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{expected}: {error}");
    }
    let error = Identity::load(|_| Err(io::ErrorKind::PermissionDenied.into())).unwrap_err().to_string();
    assert_eq!(error, "server-cert.pem cannot be read by this user: permission denied");
}
