use super::*;
use crate::outbox;
use crate::outbox::tests::{alert, receiver};
use api::Secret;
use api::alerts::{Handler, Severity};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;

#[test]
fn a_password_goes_over_tls_alone_and_addresses_are_addresses() {
    let mut receiver = receiver(Handler::Mail, "a@b.example, c@d");
    receiver.from = "cenote@here".into();
    for (server, user, host, port) in [
        ("smtp://localhost", "", "localhost", 25),
        ("smtp+starttls://mx.example", "me", "mx.example", 587),
        ("smtps://mx.example:10465/", "me", "mx.example", 10465),
    ] {
        (receiver.server, receiver.user) = (server.into(), user.into());
        let letterbox = Letterbox::of(&receiver).unwrap();
        assert_eq!((letterbox.host.as_str(), letterbox.port, letterbox.to.len()), (host, port, 2));
    }
    receiver.server = "smtp://localhost".into();
    assert!(Letterbox::of(&receiver).unwrap_err().contains("over TLS alone"));
    receiver.user = String::new();
    for to in ["", "a", "a@b>\r\nRCPT TO:<x@y", "a@b@c", "@b", "a@"] {
        receiver.to = to.into();
        assert!(Letterbox::of(&receiver).is_err(), "{to}");
    }
}

#[test]
fn headers_hold_what_they_may() {
    assert_eq!(date(1_795_640_400), "Wed, 25 Nov 2026 21:00:00 +0000");
    assert_eq!(date(0), "Thu, 01 Jan 1970 00:00:00 +0000");
    assert_eq!(subject("plain"), "plain");
    let encoded = subject(&"ü€ ".repeat(30));
    assert!(encoded.is_ascii() && encoded.starts_with("=?utf-8?Q?=C3=BC=E2=82=AC_"), "{encoded}");
    assert!(encoded.split("\r\n ").all(|word| word.len() <= 75), "{encoded}");
}

/// A certificate for this machine, as its server has it and as a client trusts it.
fn certificate() -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_string()]).unwrap();
    let certificate: CertificateDer<'static> = made.cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = ServerConfig::builder_with_provider(provider.clone());
    let server = server.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let server = server.with_single_cert(vec![certificate.clone()], key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    (Arc::new(server), Arc::new(client.with_root_certificates(roots).with_no_client_auth()))
}

/// Up to the end of a line and no byte more: what follows may be TLS. None at the end of the stream.
fn line(stream: &mut impl Read) -> Option<String> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while !line.ends_with(b"\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        line.push(byte[0]);
    }
    Some(String::from_utf8_lossy(&line).trim_end().to_string())
}

/// Answers what a client says until it ends, or says `STARTTLS` where that is offered.
fn converse<S: Read + Write>(stream: &mut S, offers_tls: bool, heard: &mut Vec<String>) -> bool {
    let mut is_data = false;
    while let Some(said) = line(stream) {
        heard.push(said.clone());
        let answer = match said.split(' ').next().unwrap_or_default() {
            "." if is_data => {
                is_data = false;
                "250 taken"
            }
            _ if is_data => continue,
            "EHLO" if offers_tls => "250-mx.example\r\n250-AUTH PLAIN\r\n250 STARTTLS",
            "EHLO" => "250-mx.example\r\n250 AUTH PLAIN",
            "STARTTLS" if offers_tls => "220 go on",
            "STARTTLS" => "502 not here",
            "AUTH" => "235 welcome",
            "DATA" => {
                is_data = true;
                "354 go on"
            }
            "QUIT" => "221 bye",
            _ => "250 fine",
        };
        if stream.write_all(format!("{answer}\r\n").as_bytes()).is_err() {
            return false;
        }
        if answer == "220 go on" {
            return true;
        }
    }
    false
}

/// What a server of mail heard in the clear, and what under TLS.
#[derive(Debug, Default)]
struct Heard {
    clear: Vec<String>,
    secret: Vec<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Offers {
    Nothing,
    StartTls,
    Tls,
}

fn serve(mut stream: TcpStream, config: Arc<ServerConfig>, offers: Offers) -> Heard {
    let mut heard = Heard::default();
    if offers != Offers::Tls {
        let greeted = stream.write_all(b"220 mx.example ESMTP\r\n").is_ok();
        if !greeted || !converse(&mut stream, offers == Offers::StartTls, &mut heard.clear) {
            return heard;
        }
    }
    let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
    if offers == Offers::StartTls || stream.write_all(b"220 mx.example ESMTP\r\n").is_ok() {
        converse(&mut stream, false, &mut heard.secret);
    }
    heard
}

/// Hands one alert to a server that offers this, by an address of this scheme: how it ended, and what the server heard.
fn mailed(scheme: &str, offers: Offers, is_trusted: bool) -> (Result<(), String>, Heard) {
    let (server, mut trusted) = certificate();
    if !is_trusted {
        trusted = certificate().1;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (told, heard) = mpsc::channel();
    let own = outbox::Receiver {
        server: format!("{scheme}://{}", listener.local_addr().unwrap()),
        from: "cenote@example.com".into(),
        user: "me".into(),
        secret: Some(Secret::new("correct horse")),
        ..receiver(Handler::Mail, "ops@example.com")
    };
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let _ = told.send(serve(stream, server, offers));
    });
    let outcome = send_trusting(trusted, &own, "here", &alert(Severity::Error, "pool tank is suspended"));
    (outcome, heard.recv().unwrap())
}

#[test]
fn a_mail_goes_over_tls_from_the_beginning_or_from_the_first_words_on() {
    for (scheme, offers) in [("smtp+starttls", Offers::StartTls), ("smtps", Offers::Tls)] {
        let (outcome, heard) = mailed(scheme, offers, true);
        assert_eq!(outcome, Ok(()), "{scheme}: {heard:?}");
        let verbs: Vec<&str> = heard.clear.iter().map(|l| l.split(' ').next().unwrap()).collect();
        let in_the_clear: &[&str] = if offers == Offers::Tls { &[] } else { &["EHLO", "STARTTLS"] };
        assert_eq!(verbs, in_the_clear, "{scheme}");
        for text in
            ["AUTH PLAIN ", "MAIL FROM:<cenote@example.com>", "RCPT TO:<ops@example.com>", "Subject: ["]
        {
            assert!(heard.secret.iter().any(|l| l.starts_with(text)), "{scheme}: {text}: {heard:?}");
        }
    }
}

#[test]
fn a_server_without_tls_or_with_the_certificate_of_another_hears_neither_password_nor_message() {
    for (scheme, offers, is_trusted) in [
        ("smtp+starttls", Offers::Nothing, true),
        ("smtp+starttls", Offers::StartTls, false),
        ("smtps", Offers::Tls, false),
    ] {
        let (outcome, heard) = mailed(scheme, offers, is_trusted);
        let why = outcome.expect_err(scheme);
        assert!(why.starts_with("mail by 127.0.0.1:"), "{why}");
        let told = |l: &String| l.starts_with("AUTH") || l.starts_with("MAIL") || l.contains("tank");
        assert!(!heard.clear.iter().chain(&heard.secret).any(told), "{scheme}: {why}: {heard:?}");
    }
}
