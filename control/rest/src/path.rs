//! Paths of requests, taken apart with suspicion.
//!
//! What names something must name it in one way: a path with an empty or dotted part, an encoded slash, a control
//! character, or bytes that are no UTF-8 names nothing. Nothing is repaired, so nothing is read in two ways.
//!
//! Statistics have slashes in their names, since those of disks, files and datasets are in their filters, and so has a
//! dataset that advice is about; they name nothing that a slash leads into.

pub use api::http::encode;

/// The parts between slashes, decoded, and the query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    pub parts: Vec<String>,
    query: Vec<(String, String)>,
}

const LENGTH_MAX: usize = 4096;

impl Path {
    /// `None`: it names nothing.
    pub fn parse(path: &str, query: Option<&str>) -> Option<Path> {
        if path.len() + query.map_or(0, str::len) > LENGTH_MAX {
            return None;
        }
        let inner = path.strip_prefix('/')?;
        let inner = inner.strip_suffix('/').unwrap_or(inner);
        let may_have_slashes =
            ["api/analytics/", "api/doctor/"].iter().any(|service| inner.starts_with(service));
        let parts: Option<Vec<String>> = inner.split('/').map(|text| part(text, may_have_slashes)).collect();
        let pair = |text: &str| {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            Some((decode(name)?, decode(value)?))
        };
        let pairs = query.unwrap_or("").split('&').filter(|text| !text.is_empty()).map(pair);
        Some(Path { parts: parts?, query: pairs.collect::<Option<_>>()? })
    }

    pub fn pairs(&self) -> &[(String, String)] {
        &self.query
    }

    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

fn part(text: &str, may_have_slashes: bool) -> Option<String> {
    let part = decode(text)?;
    let is_one = may_have_slashes || !part.contains(['/', '\\']);
    let is_name = !part.is_empty() && part != "." && part != ".." && is_one;
    is_name.then_some(part)
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let digit = |b: Option<u8>| char::from(b?).to_digit(16);
                let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    let decoded = String::from_utf8(decoded).ok()?;
    (!decoded.chars().any(char::is_control)).then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_one_thing_or_nothing() {
        let parts = |path| Path::parse(path, None).map(|p| p.parts.join("|"));
        assert_eq!(parts("/api/san/v1").as_deref(), Some("api|san|v1"));
        assert_eq!(parts("/api/san/v1/").as_deref(), Some("api|san|v1"));
        assert_eq!(parts("/api/a%20b/%C3%A9").as_deref(), Some("api|a b|é"));
        for trick in [
            "",
            "api",
            "/",
            "//",
            "/api//x",
            "/api/../x",
            "/api/%2e%2e/x",
            "/api/.",
            "/api/a%2Fb",
            "/api/a%5cb",
            "/api/%",
            "/api/%4",
            "/api/%zz",
            "/api/%00",
            "/api/%0a",
            "/api/%ff",
            "/api/x//",
            "/api/%2e",
            "http://other/api",
        ] {
            assert_eq!(parts(trick), None, "{trick}");
        }
        assert_eq!(parts(&format!("/{}", "x".repeat(5000))), None);
        let names = ["a b", "é/ü", "iqn.1986-03.com.sun:02:x", "alias=a"];
        for name in names {
            let path = Path::parse(&format!("/{}", encode(name)), None);
            assert_eq!(path.map(|p| p.parts[0].clone()).as_deref(), (!name.contains('/')).then_some(name));
        }
    }

    /// The page asked for `arc.accesses[hit/miss]`, and for a disk by its path, and was told that there is nothing.
    #[test]
    fn statistics_have_slashes_in_their_names() {
        for name in
            ["arc.accesses[hit/miss]", "io.ops[disk=/dev/disk/by-id/nvme-1][size]", "fs.ops[file=a\\]b]"]
        {
            let path = Path::parse(&format!("/api/analytics/v1/datasets/{}/data", encode(name)), None);
            assert_eq!(path.map(|p| p.parts[4].clone()).as_deref(), Some(name));
        }
        assert_eq!(Path::parse("/api/analytics/v1/datasets/../data", None), None);
        assert_eq!(Path::parse("/api/storage/v1/pools/a%2Fb", None), None);
    }

    #[test]
    fn a_query_is_pairs() {
        let path = Path::parse("/x", Some("confirm=true&&filter=a%20b&props")).unwrap();
        assert_eq!(path.query("confirm"), Some("true"));
        assert_eq!(path.query("filter"), Some("a b"));
        assert_eq!(path.query("props"), Some(""));
        assert_eq!(path.query("depth"), None);
        assert_eq!(Path::parse("/x", Some("a=%0a")), None);
    }
}
