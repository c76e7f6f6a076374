//! From a method and the parts of a path to the endpoint that they mean.

use crate::endpoint::Endpoint;
use api::http::Method;
use std::collections::BTreeMap;

/// The endpoint, and what the braces of its template stand for.
#[derive(Clone, Debug)]
pub struct Routed {
    pub endpoint: &'static Endpoint,
    pub params: BTreeMap<&'static str, String>,
    /// 1 or 2.
    pub version: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// There is nothing at that path.
    Nowhere,
    /// There is, and it cannot be done to that.
    Method,
}

pub fn find(
    table: impl Iterator<Item = &'static Endpoint>,
    method: Option<Method>,
    parts: &[String],
) -> Result<Routed, Lost> {
    let mut lost = Lost::Nowhere;
    for endpoint in table {
        let Some((params, version)) = matches(endpoint.path, parts) else { continue };
        if method == Some(endpoint.method) {
            return Ok(Routed { endpoint, params, version });
        }
        lost = Lost::Method;
    }
    Err(lost)
}

fn matches(template: &'static str, parts: &[String]) -> Option<(BTreeMap<&'static str, String>, u8)> {
    let mut params = BTreeMap::new();
    let mut version = 1;
    let mut given = parts.iter();
    for wanted in template.trim_start_matches('/').split('/') {
        let part = given.next()?;
        if let Some(name) = wanted.strip_prefix('{') {
            params.insert(name.strip_suffix('}')?, part.clone());
        } else if wanted == "v1" {
            version = major(part)?;
        } else if wanted != part {
            return None;
        }
    }
    given.next().is_none().then_some((params, version))
}

/// `v1`, `v1.0`, `v2`: the major version is one that there is, the minor one not above ours.
fn major(part: &str) -> Option<u8> {
    let (major, minor) = part.strip_prefix('v')?.split_once('.').unwrap_or((&part[1..], "0"));
    (minor == "0").then_some(())?;
    match major {
        "1" => Some(1),
        "2" => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    fn parts(path: &str) -> Vec<String> {
        path.trim_start_matches('/').split('/').map(String::from).collect()
    }

    #[test]
    fn every_endpoint_is_found_by_its_own_path() {
        for endpoint in table::all() {
            for version in ["v1", "v2", "v1.0"] {
                let path = endpoint.path.replace("v1", version);
                let routed = find(table::all(), Some(endpoint.method), &parts(&path)).unwrap();
                assert_eq!(routed.endpoint.path, endpoint.path, "it is hidden");
            }
        }
    }

    #[test]
    fn what_is_not_there_is_lost() {
        let lost = |method, path| find(table::all(), method, &parts(path)).unwrap_err();
        assert_eq!(lost(Some(Method::Get), "/api/storage/v1/nothing"), Lost::Nowhere);
        assert_eq!(lost(Some(Method::Get), "/api/storage/v3/pools"), Lost::Nowhere);
        assert_eq!(lost(Some(Method::Get), "/api/storage/v1.1/pools"), Lost::Nowhere);
        assert_eq!(lost(Some(Method::Get), "/api/storage/v/pools"), Lost::Nowhere);
        assert_eq!(lost(Some(Method::Put), "/metrics"), Lost::Method);
        assert_eq!(lost(None, "/metrics"), Lost::Method);
        assert_eq!(lost(None, "/metrics/x"), Lost::Nowhere);
    }
}
