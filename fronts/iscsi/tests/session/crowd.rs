//! Many clients that mean no good, and one that does.

use super::{bench_with, listen, run};
use crate::peer::{Login, Peer, TARGET};
use iscsi::memory::{MemoryDirectory, device};
use iscsi::{Asking, Authentication, Config, Credentials, Directory, Listed, Places, Server, Unit, Welcome};
use md5::Digest;
use scsi::memory::MemoryUnit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use world::{Address, Pending};

/// 512 connections that were opened and left alone kept every other client from logging in, for as long as each of them
/// may take to log in, and then again.
#[test]
fn silent_connections_keep_nobody_out() {
    run(async {
        let places = Places { strangers: 32, strangers_of_address: 16, ..Config::default().places };
        let bench = bench_with(Config { places, ..Config::default() });
        let mut flood = Vec::new();
        for n in 0..200 {
            let peer = Peer::connect(&bench.portal).await;
            // Half of them begin something, and never say it to its end.
            if n % 2 == 0 {
                peer.send_bytes(&[0x43; 30]).await;
            }
            flood.push(peer);
        }
        assert!(bench.server.clients().len() <= 32, "only so many are waited for");
        let before = world::now();
        let mut peer = Peer::open(&bench.portal, Login::default()).await;
        assert!(world::now().since(before) < Duration::from_millis(100));
        // And they are not waited for as long as a login may take.
        world::sleep(Config::default().silence_timeout + Duration::from_secs(1)).await;
        assert_eq!(bench.server.clients().len(), 1);
        assert_eq!(peer.command(&[0; 6], &[], 0).await.status, 0);
    });
}

/// A client that says something now and then, and never comes to the end of its login, is not silent; it kept its place for
/// as long as a login may have requests.
#[test]
fn a_login_without_an_end_is_ended() {
    run(async {
        let config = Config::default();
        let (often, limit) = (config.silence_timeout / 2, config.login_timeout);
        let bench = bench_with(config);
        let before = world::now();
        let mut peer = Peer::connect(&bench.portal).await;
        loop {
            // C: the text goes on in the next request.
            let mut header = [0; 48];
            (header[0], header[1], header[8]) = (0x43, 0x40, 0x80);
            header[24..28].copy_from_slice(&peer.cmd_sn.to_be_bytes());
            peer.send(header, b"InitiatorName").await;
            if peer.receive().await.is_none() {
                break;
            }
            world::sleep(often).await;
        }
        let took = world::now().since(before);
        assert!(took >= limit && took <= limit + often, "{took:?}");
        assert!(bench.server.clients().is_empty());
    });
}

/// A directory that counts the wrong proofs it is told of.
#[derive(Debug)]
struct Noting(MemoryDirectory, AtomicU64);

impl Directory for Noting {
    fn discovery(&self, asking: &Asking) -> Authentication {
        self.0.discovery(asking)
    }

    fn targets(&self, asking: &Asking) -> Vec<Listed> {
        self.0.targets(asking)
    }

    fn target(&self, asking: &Asking, name: &str) -> Option<Welcome> {
        self.0.target(asking, name)
    }

    fn note_wrong_proof(&self, asking: &Asking, _wrong: u64) {
        assert_eq!(asking.initiator, GUESSER);
        self.1.fetch_add(1, SeqCst);
    }

    fn units(&self, asking: &Asking, target: &str) -> Pending<units::Result<Vec<Unit>>> {
        self.0.units(asking, target)
    }
}

const OWNER: &str = "iqn.2026-11.org.example:owner";
const GUESSER: &str = "iqn.2026-11.org.example:guesser";

/// A login of `initiator` that shows `secret`; its status, or none when the server hung up.
async fn prove(portal: &Address, initiator: &str, isid: u8, secret: &[u8]) -> Option<u16> {
    let mut peer = Peer::connect(portal).await;
    let names =
        format!("InitiatorName={initiator}\0TargetName={TARGET}\0SessionType=Normal\0AuthMethod=CHAP\0");
    let mut proof = String::new();
    for (flags, text) in [(0x00, &names), (0x00, &"CHAP_A=5\0".to_string()), (0x81, &String::new())] {
        let text = if text.is_empty() { &proof } else { text };
        let mut header = [0; 48];
        (header[0], header[1], header[8], header[13]) = (0x43, flags, 0x80, isid);
        header[24..28].copy_from_slice(&peer.cmd_sn.to_be_bytes());
        peer.send(header, text.as_bytes()).await;
        let answer = peer.receive().await?;
        let status = u16::from_be_bytes([answer.header[36], answer.header[37]]);
        if status != 0 || flags != 0 {
            return Some(status);
        }
        let said = String::from_utf8(answer.data).unwrap();
        let value = |key: &str| said.split('\0').find_map(|pair| pair.strip_prefix(key)).map(String::from);
        if let (Some(id), Some(challenge)) = (value("CHAP_I="), value("CHAP_C=0x")) {
            let id: u8 = id.parse().unwrap();
            let byte = |at: usize| u8::from_str_radix(&challenge[at..at + 2], 16).unwrap();
            let challenge: Vec<u8> = (0..challenge.len()).step_by(2).map(byte).collect();
            let digest = md5::Md5::digest([&[id][..], secret, &challenge].concat());
            let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            proof = format!("CHAP_N=user\0CHAP_R=0x{digits}\0");
        }
    }
    None
}

/// 11,228 secrets could be tried in five seconds by one client, and nothing was said of it.
#[test]
fn secrets_are_guessed_slowly_and_told_and_their_owner_is_let_in_meanwhile() {
    run(async {
        let secret = b"a secret of some length";
        let directory =
            MemoryDirectory::default().with(TARGET, 0, device(Arc::new(MemoryUnit::new(1 << 20, 4096)), 1));
        let credentials = Credentials { name: "user".into(), secret: secret.to_vec() };
        directory.protect(TARGET, credentials, None);
        let directory = Arc::new(Noting(directory, AtomicU64::new(0)));
        let server = Server::new(directory.clone(), Default::default(), Config::default());
        let portal = listen(&server);
        assert_eq!(prove(&portal, OWNER, 1, secret).await, Some(0));
        let until = world::now().after(Duration::from_secs(60));
        let guessers: Vec<_> = (0..40)
            .map(|n| {
                let portal = portal.clone();
                world::spawn(async move {
                    while world::now() < until {
                        let status = prove(&portal, GUESSER, 100 + n, format!("guess {n}").as_bytes()).await;
                        assert_ne!(status, Some(0));
                        world::sleep(Duration::from_millis(250)).await;
                    }
                })
            })
            .collect();
        for isid in 2..5 {
            world::sleep(Duration::from_secs(15)).await;
            let before = world::now();
            let status = prove(&portal, OWNER, isid, secret).await;
            assert_eq!(status, Some(0), "its owner was here before");
            assert!(world::now().since(before) < Duration::from_secs(1));
        }
        for guesser in guessers {
            guesser.await;
        }
        let tried = directory.1.load(SeqCst);
        assert!((10..=80).contains(&tried), "{tried} secrets were tried in a minute");
    });
}
