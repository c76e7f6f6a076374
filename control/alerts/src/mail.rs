//! Alerts as mail: one message for each, handed to a server by SMTP.
//!
//! ```text
//!   smtp://HOST[:25]              as it is: for a server of this machine or this network; no user
//!   smtp+starttls://HOST[:587]    TLS from the first words on; never without
//!   smtps://HOST[:465]            TLS from the beginning
//! ```
//!
//! A password travels over TLS alone. Sent by a runtime of the thread's own, as long as one message takes.

use crate::judge::Alert;
use crate::outbox::Receiver;
use crate::syslog::host_and_port;
use crate::{PATIENCE, tls};
use mail_send::SmtpClientBuilder;
use mail_send::smtp::message::Message;
use rustls::ClientConfig;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

/// Receivers of one message.
const ADDRESSES_MAX: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Security {
    Plain,
    StartTls,
    Tls,
}

/// Where mail goes, and by which server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Letterbox {
    to: Vec<String>,
    from: String,
    host: String,
    port: u16,
    security: Security,
}

impl Letterbox {
    pub fn of(receiver: &Receiver) -> Result<Letterbox, String> {
        let Receiver { to, server, from, user, .. } = receiver;
        let wrong =
            || format!("'{server}' is no server of mail: smtp://, smtp+starttls:// or smtps://HOST[:PORT]");
        let (scheme, rest) = server.split_once("://").ok_or_else(wrong)?;
        let (security, usual) = match scheme {
            "smtp" => (Security::Plain, 25),
            "smtp+starttls" => (Security::StartTls, 587),
            "smtps" => (Security::Tls, 465),
            _ => return Err(wrong()),
        };
        let (host, port) = host_and_port(rest.strip_suffix('/').unwrap_or(rest)).ok_or_else(wrong)?;
        if security == Security::Plain && !user.is_empty() {
            return Err("a password is sent over TLS alone: use smtp+starttls:// or smtps://".into());
        }
        let to: Vec<String> =
            to.split(',').map(str::trim).filter(|a| !a.is_empty()).map(String::from).collect();
        if to.is_empty() || to.len() > ADDRESSES_MAX {
            return Err(format!("mail goes to 1 to {ADDRESSES_MAX} addresses, with commas between them"));
        }
        if let Some(wrong) = to.iter().chain([from]).find(|address| !is_address(address)) {
            return Err(format!("'{wrong}' is no mail address"));
        }
        Ok(Letterbox { to, from: from.clone(), host, port: port.unwrap_or(usual), security })
    }
}

/// As a command of SMTP takes it between its angle brackets.
fn is_address(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_graphic() && !"<>()[]\\,;:\"".contains(c);
    text.split_once('@')
        .is_some_and(|(name, domain)| !name.is_empty() && !domain.is_empty() && !domain.contains('@'))
        && text.chars().all(is_plain)
        && text.len() <= 254
}

/// What is not ASCII in a header is said in its encoded form.
fn subject(text: &str) -> String {
    let short: String = text.chars().take(120).collect();
    if short.is_ascii() {
        return short;
    }
    let bytes = short.bytes().map(|byte| match byte {
        b if b.is_ascii_alphanumeric() => char::from(b).to_string(),
        b' ' => "_".into(),
        b => format!("={b:02X}"),
    });
    // An encoded word has 75 characters at most, and none is cut within a character: each has its own.
    let mut words = vec![String::new()];
    let mut pieces = bytes.peekable();
    for c in short.chars() {
        let piece: String = pieces.by_ref().take(c.len_utf8()).collect();
        if words.last().is_some_and(|word| word.len() + piece.len() > 60) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push_str(&piece);
        }
    }
    words.iter().map(|word| format!("=?utf-8?Q?{word}?=")).collect::<Vec<_>>().join("\r\n ")
}

/// `Wed, 25 Nov 2026 21:00:00 +0000`.
fn date(seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let text = api::http::date(seconds);
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let month = part(5, 7).parse::<usize>().unwrap_or(1).clamp(1, 12);
    let weekday = DAYS[(seconds / 86_400 % 7) as usize];
    format!("{weekday}, {} {} {} {} +0000", part(8, 10), MONTHS[month - 1], part(0, 4), part(11, 19))
}

fn text(letterbox: &Letterbox, host: &str, alert: &Alert) -> String {
    let host: String = host.chars().filter(|c| c.is_ascii_graphic()).collect();
    let mut text = format!(
        "Date: {}\r\nFrom: Cenote on {host} <{}>\r\nTo: {}\r\nSubject: {}\r\n\
         Message-ID: <{:016x}{:08x}@{host}>\r\nAuto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n",
        date(alert.seconds),
        letterbox.from,
        letterbox.to.join(",\r\n "),
        subject(&format!("[{}] {host}: {}", alert.severity.word(), alert.summary)),
        RandomState::new().build_hasher().finish(),
        alert.seconds,
    );
    text += &format!("{}\r\n\r\n{} on {host}\r\n", alert.summary, api::http::date(alert.seconds));
    text += &format!("{}\r\n", alert.class);
    for (name, value) in &alert.fields {
        text += &format!("  {name} = {value}\r\n");
    }
    text
}

pub(crate) fn send(receiver: &Receiver, host: &str, alert: &Alert) -> Result<(), String> {
    let trusted = tls::config().map_err(|why| format!("mail: {why}"))?;
    send_trusting(trusted, receiver, host, alert)
}

fn send_trusting(
    trusted: Arc<ClientConfig>,
    receiver: &Receiver,
    host: &str,
    alert: &Alert,
) -> Result<(), String> {
    let letterbox = Letterbox::of(receiver)?;
    let text = text(&letterbox, host, alert);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    let runtime = runtime.map_err(|e| format!("mail: {e}"))?;
    // One message in all: a server that is slow with each word is no better than none.
    let sent =
        async { tokio::time::timeout(PATIENCE * 4, hand_over(trusted, receiver, &letterbox, text)).await };
    let outcome = runtime.block_on(sent).unwrap_or_else(|_| Err("it does not answer in time".into()));
    outcome.map_err(|why| format!("mail by {}:{}: {why}", letterbox.host, letterbox.port))
}

async fn hand_over(
    trusted: Arc<ClientConfig>,
    receiver: &Receiver,
    letterbox: &Letterbox,
    text: String,
) -> Result<(), String> {
    let mut builder =
        SmtpClientBuilder::new_with_tls_connector(letterbox.host.as_str(), letterbox.port, trusted.into())
            .implicit_tls(letterbox.security == Security::Tls)
            .timeout(PATIENCE);
    let secret = receiver.secret.as_ref().map_or("", |secret| secret.reveal());
    if !receiver.user.is_empty() {
        builder = builder.credentials((receiver.user.as_str(), secret));
    }
    match letterbox.security {
        Security::Plain => deliver(builder.connect_plain().await.map_err(said)?, letterbox, text).await,
        Security::StartTls | Security::Tls => {
            deliver(builder.connect().await.map_err(said)?, letterbox, text).await
        }
    }
}

async fn deliver<T: AsyncRead + AsyncWrite + Unpin>(
    mut client: mail_send::SmtpClient<T>,
    letterbox: &Letterbox,
    text: String,
) -> Result<(), String> {
    let to: Vec<&str> = letterbox.to.iter().map(String::as_str).collect();
    let message = Message::new(letterbox.from.as_str(), to, text.into_bytes());
    client.send(message).await.map_err(said)?;
    // It has the message: how it says goodbye changes nothing.
    let _ = client.quit().await;
    Ok(())
}

/// What servers say may be long.
fn said(e: mail_send::Error) -> String {
    e.to_string().chars().filter(|c| !c.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests;
