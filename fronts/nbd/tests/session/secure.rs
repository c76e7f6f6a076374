//! TLS: what is answered before it, what is left of that inside, and what a session inside is like.

use crate::peer::*;
use crate::{batch, memory, run, send_in_pieces, serve};
use authority::{Authority, Issued};
use nbd::memory::MemoryExports;
use nbd::{Config, Server};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use sim::Rng;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tls::Identity;
use world::Address;

/// Certificates of `rcgen::Certificate`, as the tests of the layer below make them.
#[path = "../../../tls/tests/authority/mod.rs"]
mod authority;

const STARTTLS: u32 = 5;
const LIST: u32 = 3;
const INVALID: u32 = (1 << 31) + 3;
const TLS_REQUIRED: u32 = (1 << 31) + 5;

/// A server that requires TLS, and what its clients trust.
fn secure_server() -> (Server, Arc<MemoryExports>, Arc<ClientConfig>) {
    let authority = Authority::new("ours");
    let Issued { certificate, key } = authority.issue(1, &["nas"]);
    let identity = Identity::load(|name| match name {
        "server-cert.pem" => Ok(certificate.clone().into()),
        "server-key.pem" => Ok(key.clone().into()),
        _ => Err(io::ErrorKind::NotFound.into()),
    });
    let (server, exports) = serve(memory(), Config::default());
    server.require_tls(identity.unwrap());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    (server, exports, Arc::new(client.with_root_certificates(roots).with_no_client_auth()))
}

/// A client over TCP that has said hello.
async fn connect(server: &Server) -> Peer {
    let (peer, theirs) = Peer::bare();
    server.serve(theirs, Address::Tcp(([192, 0, 2, 1], 40_000).into()));
    peer.greeted().await
}

#[test]
fn a_client_without_tls_learns_nothing_and_opens_nothing() {
    run(async {
        let (server, exports, _) = secure_server();
        assert!(server.requires_tls());
        let mut peer = connect(&server).await;
        assert_eq!(peer.option(LIST, &[]).await, [TLS_REQUIRED]);
        assert_eq!(peer.option(7, b"\0\0\0\x03vol\0\0").await, [TLS_REQUIRED]);
        assert_eq!(peer.option(8, &[]).await, [TLS_REQUIRED]);
        peer.send_option(1, b"vol").await;
        assert!(peer.is_hung_up_on().await);
        assert_eq!(exports.open_count(), 0);
        let mut peer = connect(&server).await;
        assert_eq!(peer.option(2, &[]).await, [1]);
        assert!(peer.is_hung_up_on().await);
    });
}

#[test]
fn the_unix_socket_has_no_tls() {
    run(async {
        let (server, _, _) = secure_server();
        let mut peer = Peer::connect(&server).await;
        assert_eq!(peer.option(STARTTLS, &[]).await, [(1 << 31) + 1]);
        let mut peer = peer.take("vol").await;
        assert_eq!(peer.ask(&write(1, 0, &[9; 10])).await.error, 0);
    });
}

/// What stands behind a STARTTLS was not protected: an attacker on the way may have added it.
#[test]
fn what_is_sent_ahead_of_tls_ends_the_connection() {
    run(async {
        for more in [&b"IHAVEOPT\0\0\0\x03\0\0\0\0"[..], b"I"] {
            let (server, exports, _) = secure_server();
            let mut peer = connect(&server).await;
            peer.send(&[&b"IHAVEOPT\0\0\0\x05\0\0\0\0"[..], more].concat()).await;
            assert!(peer.is_hung_up_on().await, "without an answer");
            assert_eq!(exports.open_count(), 0);
        }
        // What comes later is taken for TLS, and is none.
        let (server, exports, _) = secure_server();
        let mut peer = connect(&server).await;
        assert_eq!(peer.option(STARTTLS, &[]).await, [1]);
        assert_eq!(exports.refusals(), [""; 0]);
        peer.send(b"IHAVEOPT\0\0\0\x03\0\0\0\0").await;
        let alert = peer.receive(7).await.expect("an alert");
        assert_eq!(alert[0], 21);
        assert!(peer.is_hung_up_on().await);
        // No log had a word of it.
        let [refusal] = &exports.refusals()[..] else { panic!("one") };
        assert!(refusal.starts_with("192.0.2.1:40000: negotiate TLS: "), "{refusal}");
    });
}

#[test]
fn the_handshake_counts_to_the_time_of_the_negotiation() {
    run(async {
        let (server, _, _) = secure_server();
        let mut peer = connect(&server).await;
        let began = world::now();
        assert_eq!(peer.option(STARTTLS, &[]).await, [1]);
        assert!(peer.is_hung_up_on().await);
        assert_eq!(world::now().since(began).as_secs(), Config::default().negotiation_timeout.as_secs());
        while !server.clients().is_empty() {
            world::sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn inside_tls_the_negotiation_begins_anew() {
    run(async {
        let (server, exports, config) = secure_server();
        let mut peer = connect(&server).await.secured(config).await;
        assert_eq!(peer.option(STARTTLS, &[]).await, [INVALID], "it is there already");
        assert_eq!(peer.option(LIST, &[]).await, [2, 1]);
        let mut peer = peer.take("vol").await;
        assert_eq!(exports.open_count(), 1);
        assert_eq!(peer.ask(&write(1, 5000, &[7; 900_000])).await.error, 0);
        let read = peer.ask(&request(READ, 0, 2, 4096, 901_000)).await;
        assert!(
            read.data[904..900_904].iter().all(|&b| b == 7) && read.data[900_904..].iter().all(|&b| b == 0)
        );
        peer.send(&request(DISCONNECT, 0, 3, 0, 0)).await;
        assert!(peer.is_hung_up_on().await);
    });
}

#[test]
fn any_sequence_cut_anywhere_is_the_same_inside_tls() {
    for seed in 1..=3 {
        run(async move {
            let mut random = Rng::new(seed);
            let (server, _, config) = secure_server();
            let mut peer = connect(&server).await.secured(config).await.take("vol").await;
            let mut model = vec![0u8; crate::SIZE as usize];
            for _ in 0..20 {
                let (bytes, expected) = batch(&mut random, &mut model);
                send_in_pieces(&peer, &mut random, &bytes).await;
                for expected in expected {
                    let reply = peer.receive_reply().await.expect("a reply");
                    assert!(reply == expected, "seed {seed}, cookie {}", expected.cookie);
                }
            }
        });
    }
}

#[test]
fn a_server_that_stops_ends_clients_inside_tls() {
    run(async {
        let (server, exports, config) = secure_server();
        let mut peer = connect(&server).await.secured(config).await.take("vol").await;
        assert_eq!(peer.ask(&write(1, 0, &[7; 4096])).await.error, 0);
        server.stop().await;
        assert!(peer.is_hung_up_on().await);
        assert_eq!(exports.open_count(), 0);
    });
}
