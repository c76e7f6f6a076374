//! Who asks: what a request shows for it, in the ways that the appliance takes.
//!
//! ```text
//!   X-Auth-Session: SECRET, Authorization: Bearer SECRET       a session or a token
//!   X-Auth-User: NAME, X-Auth-Key: PASSWORD                    a password
//!   Authorization: Basic base64(NAME:PASSWORD)
//!   X-Cenote-Code: CODE                                        the one-time code: root
//!   Cookie: __Host-cenote=SECRET, with X-Cenote-Page           a session of the web page
//!   nothing, through the Unix socket                           the owner of the home: root
//! ```
//!
//! A browser sends the cookie whichever page made it ask: `SameSite=Strict` keeps other sites out, and the header, which no
//! other origin can send without a permission that is never given, keeps out what is of the same site at another port.

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
    /// This machine's own address, without TLS.
    Plain(IpAddr),
    /// The Unix socket, for the owner of the home.
    Owner,
}

impl From {
    /// Of a client of the network.
    pub fn address(self) -> Option<IpAddr> {
        match self {
            From::Network(address) | From::Plain(address) => Some(address),
            From::Owner => None,
        }
    }
}

impl fmt::Display for From {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            From::Network(address) | From::Plain(address) => address.fmt(f),
            From::Owner => f.write_str("local"),
        }
    }
}

/// What a request shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    Nothing,
    /// Something that makes no sense, or not here.
    Unreadable,
    Secret(Secret),
    /// The one-time code.
    Code(Secret),
    Password {
        name: String,
        password: Secret,
    },
}

/// What the web page sends with each request.
const PAGE: &str = "x-cenote-page";
/// The name of the cookie: with TLS one that only this host may set, and for itself alone.
const COOKIES: [&str; 2] = ["__Host-cenote", "cenote"];

/// Whether the web page asks, of which the browser says that it is ours.
pub fn is_page(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map_or(&b"same-origin"[..], |value| value.as_bytes());
    headers.contains_key(PAGE) && site == b"same-origin"
}

/// The header by which the page's browser keeps a session's secret, or forgets it.
pub fn cookie(from: From, secret: Option<&str>) -> String {
    let [secure, plain] = COOKIES;
    let (name, more) = match from {
        From::Network(_) => (secure, "; Secure"),
        From::Plain(_) | From::Owner => (plain, ""),
    };
    let age = if secret.is_none() { "; Max-Age=0" } else { "" };
    format!("{name}={}; Path=/; HttpOnly; SameSite=Strict{more}{age}", secret.unwrap_or_default())
}

/// Of a door with TLS only the cookie that is set with TLS is taken, and the other of the door without.
fn cookie_of(headers: &HeaderMap, from: From) -> Option<Secret> {
    let name = COOKIES[usize::from(!matches!(from, From::Network(_)))];
    let cookies = headers.get_all("cookie").iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, secret)| Secret::new(secret))
}

pub fn claim(headers: &HeaderMap, from: From) -> Claim {
    let text = |name: &str| headers.get(name).map(|value| std::str::from_utf8(value.as_bytes()).ok());
    let user = (text("x-auth-user"), text("x-auth-key"));
    match (text("x-auth-session"), user, text("x-cenote-code"), text("authorization")) {
        (Some(Some(secret)), ..) => Claim::Secret(Secret::new(secret)),
        (None, (Some(Some(name)), Some(Some(key))), ..) => {
            Claim::Password { name: name.into(), password: Secret::new(key) }
        }
        (None, (None, None), Some(Some(code)), _) => Claim::Code(Secret::new(code)),
        (None, (None, None), None, Some(Some(shown))) => authorization(shown, headers),
        (None, (None, None), None, None) => match cookie_of(headers, from) {
            Some(secret) if is_page(headers) => Claim::Secret(secret),
            _ => Claim::Nothing,
        },
        _ => Claim::Unreadable,
    }
}

fn authorization(shown: &str, headers: &HeaderMap) -> Claim {
    let Some((scheme, rest)) = shown.split_once(' ') else { return Claim::Unreadable };
    match scheme.to_ascii_lowercase().as_str() {
        "bearer" => Claim::Secret(Secret::new(rest.trim())),
        // A browser that was told a password once sends it for pages of any site.
        "basic" if !is_foreign(headers) => basic(rest.trim()).unwrap_or(Claim::Unreadable),
        _ => Claim::Unreadable,
    }
}

fn basic(encoded: &str) -> Option<Claim> {
    let text = String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok()?;
    let (name, password) = text.split_once(':')?;
    Some(Claim::Password { name: name.into(), password: Secret::new(password) })
}

/// Whether a browser says that the page of another site asks. Other programs say nothing of that.
fn is_foreign(headers: &HeaderMap) -> bool {
    let of = |name: &str| headers.get(name).map(|value| value.as_bytes());
    let is_other_site =
        of("sec-fetch-site").is_some_and(|site| ![&b"same-origin"[..], b"none"].contains(&site));
    let host = of("host").unwrap_or_default();
    let is_other_origin = of("origin").is_some_and(|origin| {
        let authority = origin.windows(3).position(|three| three == b"://").map(|at| &origin[at + 3..]);
        authority.is_none_or(|authority| !authority.eq_ignore_ascii_case(host))
    });
    is_other_site || is_other_origin
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(headers: &[(&'static str, &str)]) -> Claim {
        claim_from(From::Network(IpAddr::from([10, 0, 0, 1])), headers)
    }

    fn claim_from(from: From, headers: &[(&'static str, &str)]) -> Claim {
        claim(&headers.iter().map(|(n, v)| (n.parse().unwrap(), v.parse().unwrap())).collect(), from)
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
            assert_eq!(of(&[("authorization", bad)]), Claim::Unreadable, "{bad}");
        }
        assert_eq!(of(&[("x-auth-user", "root")]), Claim::Unreadable);
        assert_eq!(of(&[]), Claim::Nothing);
        let accented = Claim::Password { name: "ann".into(), password: Secret::new("f\u{e4}lsch") };
        let headers = [("x-auth-user", "ann"), ("x-auth-key", "f\u{e4}lsch")];
        let headers = headers.map(|(name, value)| {
            (name.parse().unwrap(), hyper::header::HeaderValue::from_bytes(value.as_bytes()).unwrap())
        });
        assert_eq!(claim(&headers.into_iter().collect(), From::Owner), accented);
    }

    #[test]
    fn a_password_that_a_browser_kept_is_none_for_other_sites() {
        let basic = ("authorization", "Basic cm9vdDphOmI=");
        let host = ("host", "nas:215");
        for own in [
            vec![],
            vec![("sec-fetch-site", "same-origin")],
            vec![("sec-fetch-site", "none")],
            vec![("origin", "https://NAS:215")],
        ] {
            assert_ne!(of(&[&[basic, host], &own[..]].concat()), Claim::Unreadable, "{own:?}");
        }
        for foreign in [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("origin", "https://evil.example"),
            ("origin", "https://nas"),
            ("origin", "null"),
        ] {
            assert_eq!(of(&[basic, host, foreign]), Claim::Unreadable, "{foreign:?}");
        }
    }

    #[test]
    fn a_cookie_counts_only_with_what_no_other_origin_can_send() {
        let (tls, plain) = (From::Network([10, 0, 0, 1].into()), From::Plain([127, 0, 0, 1].into()));
        let secret = Claim::Secret(Secret::new("s"));
        let (secure, bare) = (("cookie", "a=b; __Host-cenote=s"), ("cookie", "cenote=s; a=b"));
        let page = ("x-cenote-page", "1");
        assert_eq!(claim_from(tls, &[secure, page]), secret);
        assert_eq!(claim_from(tls, &[secure, page, ("sec-fetch-site", "same-origin")]), secret);
        assert_eq!(claim_from(plain, &[bare, page]), secret);
        for forged in [
            claim_from(tls, &[secure]),
            claim_from(plain, &[bare]),
            claim_from(tls, &[bare, page]),
            claim_from(plain, &[secure, page]),
            claim_from(tls, &[secure, page, ("sec-fetch-site", "same-site")]),
            claim_from(tls, &[secure, page, ("sec-fetch-site", "cross-site")]),
            claim_from(tls, &[secure, page, ("sec-fetch-site", "none")]),
        ] {
            assert_eq!(forged, Claim::Nothing);
        }
    }

    #[test]
    fn cookies_are_out_of_reach_of_scripts_and_other_sites() {
        let of_tls = cookie(From::Network([10, 0, 0, 1].into()), Some("s"));
        assert_eq!(of_tls, "__Host-cenote=s; Path=/; HttpOnly; SameSite=Strict; Secure");
        let plain = cookie(From::Plain([127, 0, 0, 1].into()), None);
        assert_eq!(plain, "cenote=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
    }
}
