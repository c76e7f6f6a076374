//! The web page: its files, held in the program, and the headers that keep it closed.
//!
//! ```text
//!   page/*.html *.css *.js *.svg ──include_bytes!──▶ FILES ──▶ find(path) ──▶ rest: GET only, before it is known who asks
//!        index.html names /ui/DIGEST/…, where DIGEST is of all files: what is there never changes, so it is kept for good
//! ```
//!
//! The page is HTML, CSS and JavaScript modules of our own and speaks the REST API alone; what it shows is put into
//! it as text. Its policy is as strict as there is: no inline script or style, nothing from anywhere else, no frame
//! around it, and no way from text to markup (trusted types), which the browser enforces whatever the page does.
//!
//! Not here: sockets, sessions and who may do what (`rest`, `access`).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

/// A file of the page as it is answered.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Its `Content-Type`.
    pub kind: &'static str,
    pub body: &'static [u8],
    /// Its `Cache-Control`.
    pub cache: &'static str,
}

/// What the browser is to hold the page to.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Headers of each answer that a browser may show.
pub const HEADERS: &[(&str, &str)] = &[
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
];

const FOR_GOOD: &str = "public, max-age=31536000, immutable";
const ASK_AGAIN: &str = "no-cache";
/// Where `index.html` has the digest.
const MARK: &str = "DIGEST";

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_bytes!(concat!("../page/", $name)))),*]
    };
}

/// All files but `index.html`; the modules import one another by relative paths.
static FILES: &[(&str, &[u8])] = files![
    "advice.js",
    "analytics.js",
    "api.js",
    "app.js",
    "areas.js",
    "axis.js",
    "buckets.js",
    "changes.js",
    "choose.js",
    "configuration.js",
    "dialog.js",
    "dom.js",
    "format.js",
    "guide.js",
    "heat.js",
    "hierarchy.js",
    "icon.svg",
    "law.js",
    "login.js",
    "maintenance.js",
    "menu.js",
    "metrics.js",
    "palette.js",
    "panel.js",
    "poll.js",
    "query.js",
    "schedules.js",
    "series.js",
    "share.js",
    "share_fields.js",
    "shares.js",
    "sheet.js",
    "spark.js",
    "status.js",
    "style.css",
    "timebar.js",
    "users.js",
];

const INDEX: &str = include_str!("../page/index.html");

struct Page {
    digest: String,
    index: String,
}

static PAGE: LazyLock<Page> = LazyLock::new(|| {
    let mut hasher = DefaultHasher::new();
    INDEX.hash(&mut hasher);
    FILES.iter().for_each(|(name, body)| (name, body).hash(&mut hasher));
    let digest = format!("{:016x}", hasher.finish());
    let index = INDEX.replace(MARK, &digest);
    Page { digest, index }
});

/// The file of the page at this path, if there is one.
pub fn find(path: &str) -> Option<Found> {
    if path == "/" {
        return Some(Found { kind: kind("index.html"), body: PAGE.index.as_bytes(), cache: ASK_AGAIN });
    }
    let (digest, name) = path.strip_prefix("/ui/")?.split_once('/')?;
    let (name, body) = FILES.iter().find(|(known, _)| *known == name)?;
    // A page that is still open after an update asks for what is no more; it is not given the new one under the old name.
    (digest == PAGE.digest).then_some(Found { kind: kind(name), body, cache: FOR_GOOD })
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    fn text(body: &[u8]) -> String {
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[test]
    fn every_file_of_the_page_is_held_and_every_import_leads_to_one() {
        let held: BTreeSet<String> = FILES.iter().map(|(name, _)| name.to_string()).collect();
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let on_disk = std::fs::read_dir(page).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let expected: BTreeSet<String> = on_disk.filter(|name| name != "index.html").collect();
        assert_eq!(held, expected);
        for (name, body) in FILES.iter().filter(|(name, _)| name.ends_with(".js")) {
            let body = text(body);
            for line in body.lines().filter(|l| l.starts_with("import") || l.starts_with("} from")) {
                let from = line.split('"').nth(1).unwrap_or_else(|| panic!("{name}: {line}"));
                let target = from.strip_prefix("./").unwrap_or_else(|| panic!("{name} imports {from}"));
                assert!(held.contains(target), "{name} imports {from}");
            }
        }
    }

    #[test]
    fn what_the_index_names_is_there_and_nothing_is_inline() {
        let index = find("/").unwrap();
        assert_eq!((index.kind, index.cache), ("text/html; charset=utf-8", ASK_AGAIN));
        let html = text(index.body);
        let named: Vec<&str> = html.split('"').filter(|part| part.starts_with('/')).collect();
        assert!(named.len() >= 3, "{named:?}");
        for path in named {
            assert_eq!(find(path).unwrap().cache, FOR_GOOD, "{path}");
        }
        for inline in ["<style", " style=", " onclick=", " onload=", "javascript:"] {
            assert!(!html.contains(inline), "{inline}");
        }
        assert!(html.matches("<script").count() == html.matches("<script type=\"module\" src=").count());
    }

    /// The names of things are others' to choose: text that became markup would be theirs to run.
    #[test]
    fn no_module_makes_markup_of_text() {
        let doors = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "DOMParser",
            "srcdoc",
            "createContextualFragment",
        ];
        for (name, body) in FILES.iter().filter(|(name, _)| name.ends_with(".js")) {
            let body = text(body);
            for door in doors {
                assert!(!body.contains(door), "{name} has {door}");
            }
        }
    }

    #[test]
    fn other_paths_and_other_digests_are_nothing() {
        let path = format!("/ui/{}/app.js", PAGE.digest);
        assert_eq!(find(&path).unwrap().kind, "text/javascript; charset=utf-8");
        for nothing in [
            "/index.html",
            "/ui/",
            "/ui/app.js",
            "/ui/0000000000000000/app.js",
            &format!("{path}/"),
            "/api",
            "",
        ] {
            assert!(find(nothing).is_none(), "{nothing}");
        }
    }
}
