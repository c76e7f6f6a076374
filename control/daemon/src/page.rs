//! `cenote page`: where the web page of a running daemon is, and a code by which the owner of the home gets in.

use crate::{password, report};
use appliance::Home;
use cli::Failure;
use serde_json::Value;

pub fn run(home: &Home) -> Result<(), Failure> {
    let failed = |why: &str| Failure::Failed(format!("cannot get into the web page: {why}"));
    if crate::running(home)?.is_none() {
        return Err(failed("no daemon runs; 'cenote up' or 'cenote serve' starts one"));
    }
    let answered =
        password::ask(home, "POST", "/api/access/v1/code", "{}").map_err(|e| failed(&e.to_string()))?;
    let (status, body) = answered;
    let told: Value = serde_json::from_str(&body).unwrap_or_default();
    let Some(code) = told["code"]["code"].as_str().filter(|_| status == 201) else {
        return Err(failed(told["fault"]["message"].as_str().unwrap_or("the daemon refuses")));
    };
    let addresses = told["code"]["addresses"].as_array().map(Vec::as_slice).unwrap_or_default();
    let addresses: Vec<String> = addresses.iter().filter_map(|a| Some(a.as_str()?.to_string())).collect();
    match place(&addresses) {
        Some(place) => report::say(&invitation(place, code)),
        None => {
            return Err(failed("the API is on its Unix socket alone; start the daemon without --no-https"));
        }
    }
    Ok(())
}

/// Where a browser finds it: without TLS on this machine, if there is such a door, since then it asks nothing.
pub fn place(addresses: &[String]) -> Option<&str> {
    let of = |scheme: &str| addresses.iter().find(|a| a.starts_with(scheme)).map(String::as_str);
    of("http://").or_else(|| of("https://"))
}

pub fn invitation(place: &str, code: &str) -> String {
    format!("{place}/  code {code} (for one hour, once; 'cenote page' makes another)")
}
