//! Who asks: what a request shows for it, in the ways that the appliance takes.
//!
//! ```text
//!   X-Auth-Session: SECRET, Authorization: Bearer SECRET       a session or a token
//!   X-Auth-User: NAME, X-Auth-Key: PASSWORD                    a password
//!   Authorization: Basic base64(NAME:PASSWORD)
//!   nothing, through the Unix socket                           the owner of the home: root
//! ```

use access::Secret;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::HeaderMap;
use std::fmt;
use std::net::IpAddr;

/// Where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    Network(IpAddr),
    /// The Unix socket, by whoever the home belongs to.
    Owner,
}

impl From {
    /// Of a client of the network.
    pub fn address(self) -> Option<IpAddr> {
        match self {
            From::Network(address) => Some(address),
            From::Owner => None,
        }
    }
}

impl fmt::Display for From {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            From::Network(address) => address.fmt(f),
            From::Owner => f.write_str("local"),
        }
    }
}

/// What a request shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    Nothing,
    Secret(Secret),
    Password { name: String, password: Secret },
}

pub fn claim(headers: &HeaderMap) -> Claim {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(secret) = text("x-auth-session") {
        return Claim::Secret(Secret::new(secret));
    }
    if let (Some(name), Some(key)) = (text("x-auth-user"), text("x-auth-key")) {
        return Claim::Password { name: name.into(), password: Secret::new(key) };
    }
    let Some((scheme, rest)) = text("authorization").and_then(|value| value.split_once(' ')) else {
        return Claim::Nothing;
    };
    match scheme.to_ascii_lowercase().as_str() {
        "bearer" => Claim::Secret(Secret::new(rest.trim())),
        "basic" => basic(rest.trim()).unwrap_or(Claim::Nothing),
        _ => Claim::Nothing,
    }
}

fn basic(encoded: &str) -> Option<Claim> {
    let text = String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok()?;
    let (name, password) = text.split_once(':')?;
    Some(Claim::Password { name: name.into(), password: Secret::new(password) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(headers: &[(&'static str, &str)]) -> Claim {
        claim(&headers.iter().map(|(n, v)| (n.parse().unwrap(), v.parse().unwrap())).collect())
    }

    #[test]
    fn claims_are_read_in_every_dialect() {
        let root = Claim::Password { name: "root".into(), password: Secret::new("a:b") };
        assert_eq!(of(&[("authorization", "Basic cm9vdDphOmI=")]), root);
        assert_eq!(of(&[("authorization", "basic cm9vdDphOmI=")]), root);
        assert_eq!(of(&[("x-auth-user", "root"), ("x-auth-key", "a:b")]), root);
        let secret = Claim::Secret(Secret::new("s"));
        assert_eq!(of(&[("x-auth-session", "s"), ("authorization", "Basic cm9vdDphOmI=")]), secret);
        assert_eq!(of(&[("authorization", "Bearer s")]), secret);
        for bad in ["Basic", "Basic !!!", "Basic cm9vdA==", "Basic /////w==", "Digest x", ""] {
            assert_eq!(of(&[("authorization", bad)]), Claim::Nothing, "{bad}");
        }
        assert_eq!(of(&[("x-auth-user", "root")]), Claim::Nothing);
    }
}
