//! Alerts as HTTP: one POST of a JSON object for each, on a connection of its own.
//!
//! ```text
//!   POST /path HTTP/1.1      Authorization: Bearer SECRET, if the receiver has one
//!   {"source":"cenote","host":…,"time":"2026-11-25T21:00:00Z","severity":"warning","class":…,"summary":…,"fields":{…}}
//!   ──▶ 200 to 299: it was taken; all others are failures, also those that lead elsewhere: a secret goes where it was told
//! ```

use crate::judge::Alert;
use crate::outbox::Receiver;
use crate::post::Url;
use serde_json::{Map, Value, json};

pub(crate) fn url(of: &str) -> Result<Url, String> {
    Url::parse(of, "a webhook")
}

fn body(host: &str, alert: &Alert) -> String {
    let fields: Map<String, Value> =
        alert.fields.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    json!({
        "source": "cenote", "host": host, "time": api::http::date(alert.seconds), "severity": alert.severity.word(),
        "class": alert.class, "summary": alert.summary, "fields": fields,
    })
    .to_string()
}

pub(crate) fn send(receiver: &Receiver, host: &str, alert: &Alert) -> Result<(), String> {
    let url = url(&receiver.to)?;
    // The path of a webhook is often a secret itself.
    let failed = |e: String| format!("webhook at {}: {e}", url.place());
    let bearer = |secret: &api::Secret| ("Authorization".to_string(), format!("Bearer {}", secret.reveal()));
    let headers: Vec<_> = receiver.secret.iter().map(bearer).collect();
    match url.post(&headers, body(host, alert).as_bytes(), 0).map_err(failed)?.status {
        200..=299 => Ok(()),
        status => Err(failed(format!("it answers {status}"))),
    }
}
