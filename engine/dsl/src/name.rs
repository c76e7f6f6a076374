//! Names of pools, datasets, snapshots and bookmarks.
//!
//! ```text
//!   tank/a/b@monday          components of letters, digits and `-_.: `, joined by '/'
//!   '--' pool                ends a component: '@' before a snapshot, '#' before a bookmark, one of them, once
//! ```
//!
//! The rules are OpenZFS's, because a name that it refuses would be a dataset that it cannot reach.

use units::{Error, Result};

/// A whole name with its closing zero byte fills at most this many bytes.
pub const MAX_NAME_LEN: usize = 256;
/// A dataset this deep or deeper cannot be created.
pub const MAX_NESTING: usize = 50;
/// The hidden directory that every pool's first snapshot lives in: `POOL/$ORIGIN@$ORIGIN` has to fit as a name.
const ORIGIN_LEN: usize = "$ORIGIN".len();

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.: ".contains(c)
}

fn refuse(name: &str, why: impl std::fmt::Display) -> Error {
    Error::invalid(format!("invalid name '{name}': {why}"))
}

/// The first character that no name may have, shown so that it is seen whatever it is.
fn bad_character(name: &str, c: char) -> Error {
    let shown = if c.is_control() { c.escape_debug().to_string() } else { c.to_string() };
    refuse(name, format!("invalid character '{shown}'; letters, digits and '-_.: ' are allowed"))
}

/// A name that a new pool may have.
pub fn check_pool(name: &str) -> Result<()> {
    if name.len() >= MAX_NAME_LEN - 2 - 2 * ORIGIN_LEN {
        return Err(refuse(name, "name is too long"));
    }
    if let Some(c) = name.chars().find(|c| !is_name_char(*c)) {
        return Err(bad_character(name, c));
    }
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Err(refuse(name, "name must begin with a letter"));
    }
    let reserved = ["mirror", "raidz", "draid", "spare"].iter().any(|p| name.starts_with(p)) || name == "log";
    if reserved {
        return Err(refuse(name, "name is reserved"));
    }
    Ok(())
}

/// A file system or volume that may be created: no snapshot, no bookmark, not too deep.
pub fn check_dataset(name: &str) -> Result<()> {
    if name.contains('@') {
        return Err(refuse(name, "snapshot delimiter '@' is not expected here"));
    }
    if name.contains('#') {
        return Err(refuse(name, "bookmark delimiter '#' is not expected here"));
    }
    check_entity(name)?;
    check_depth(name)
}

/// A snapshot that may be taken.
pub fn check_snapshot(name: &str) -> Result<()> {
    if !name.contains('@') {
        return Err(refuse(name, "missing '@' delimiter in snapshot name"));
    }
    if name.contains('#') {
        return Err(refuse(name, "bookmark delimiter '#' is not expected here"));
    }
    check_entity(name)?;
    name.split_once('@').map_or(Ok(()), |(_, last)| check_reference(name, last))
}

pub fn check_depth(name: &str) -> Result<()> {
    let path = name.split(['@', '#']).next().unwrap_or_default();
    if path.matches('/').count() >= MAX_NESTING {
        return Err(refuse(name, format!("datasets cannot be nested deeper than {MAX_NESTING}")));
    }
    Ok(())
}

/// Any of them: `pool[/component...][(@|#)component]`. Snapshots called `.` or `..`, which this program once took, are
/// among them, so that they can be destroyed.
pub fn check_entity(name: &str) -> Result<()> {
    if name.len() >= MAX_NAME_LEN {
        return Err(refuse(name, "name is too long"));
    }
    if name.starts_with('/') {
        return Err(refuse(name, "leading slash in name"));
    }
    let delimiters = name.matches(['@', '#']).count();
    if delimiters > 1 {
        return Err(refuse(name, "multiple '@' and/or '#' delimiters in name"));
    }
    let (path, last) = match name.split_once(['@', '#']) {
        Some((path, last)) => (path, Some(last)),
        None => (name, None),
    };
    if path.ends_with('/') && last.is_none() {
        return Err(refuse(name, "trailing slash in name"));
    }
    path.split('/').try_for_each(|component| check_component(name, component, true))?;
    match last {
        Some(last) if last.contains('/') => Err(refuse(name, "'/' after the '@' or '#' delimiter")),
        Some(last) => check_component(name, last, false),
        None => Ok(()),
    }
}

fn check_component(name: &str, component: &str, of_path: bool) -> Result<()> {
    if component.is_empty() {
        return Err(refuse(name, "empty component or misplaced '@' or '#' delimiter in name"));
    }
    if let Some(c) = component.chars().find(|c| !is_name_char(*c)) {
        return Err(bad_character(name, c));
    }
    if of_path { check_reference(name, component) } else { Ok(()) }
}

fn check_reference(name: &str, component: &str) -> Result<()> {
    match component {
        "." => Err(refuse(name, "self reference, '.' is found in name")),
        ".." => Err(refuse(name, "parent reference, '..' is found in name")),
        _ => Ok(()),
    }
}

/// A value of `mountpoint`.
pub(crate) fn check_mountpoint(path: &str) -> Result<()> {
    if matches!(path, "none" | "legacy") {
        return Ok(());
    }
    if !path.starts_with('/') {
        return Err(Error::invalid("'mountpoint' must be an absolute path, 'none', or 'legacy'"));
    }
    if path.split('/').any(|component| component.len() >= MAX_NAME_LEN) {
        return Err(Error::invalid("component of 'mountpoint' is too long"));
    }
    Ok(())
}

/// `tank/a/b` into `tank/a` and `b`; nothing for a pool.
pub fn split_parent(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_names_are_refused_where_openzfs_refuses_them() {
        for good in ["tank", "T", "a-b_c.d:e f9", "logs", "Mirror"] {
            assert!(check_pool(good).is_ok(), "{good}");
        }
        let long = "p".repeat(240);
        assert!(check_pool(&long[..239]).is_ok());
        for bad in [
            "", "9a", "-a", "mirror", "mirror1", "raidz2x", "draid", "spare-1", "log", "a/b", "a@b", "ü",
            &long,
        ] {
            assert!(check_pool(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn dataset_names_are_refused_where_openzfs_refuses_them() {
        for good in ["tank", "tank/a", "tank/a b/c.d", "tank/...", "tank/.a"] {
            assert!(check_dataset(good).is_ok(), "{good}");
        }
        for bad in [
            "/tank",
            "tank/",
            "tank//a",
            "tank/.",
            "tank/../a",
            "tank/a%b",
            "tank/a@s",
            "tank/a#b",
            "tank/$a",
            "",
        ] {
            assert!(check_dataset(bad).is_err(), "{bad}");
        }
        let deep = format!("t{}", "/a".repeat(50));
        assert!(check_dataset(&deep).is_err());
        assert!(check_dataset(&deep[..deep.len() - 2]).is_ok());
        assert!(check_dataset(&format!("t/{}", "x".repeat(254))).is_err());
        assert!(check_dataset(&format!("t/{}", "x".repeat(253))).is_ok());
    }

    #[test]
    fn a_snapshot_has_one_delimiter_and_a_plain_last_component() {
        for good in ["tank@a", "tank/a@2026-01-01 10:00", "tank@...", "tank@.a"] {
            assert!(check_snapshot(good).is_ok(), "{good}");
        }
        for bad in ["tank", "tank@", "@a", "tank@a@b", "tank@a/b", "tank@a#b", "tank/@a", "tank@.", "tank@.."]
        {
            assert!(check_snapshot(bad).is_err(), "{bad}");
        }
        for old in ["tank@.", "tank@.."] {
            assert!(check_entity(old).is_ok(), "{old}");
        }
    }

    #[test]
    fn a_refusal_says_what_is_wrong() {
        let said = check_dataset("tank/a!b").unwrap_err().to_string();
        assert_eq!(
            said,
            "invalid name 'tank/a!b': invalid character '!'; letters, digits and '-_.: ' are allowed"
        );
        for (name, shown) in [("tank/\u{fc}ber", "\u{fc}"), ("tank/a\nb", "\\n"), ("tank/it's", "'")] {
            let said = check_dataset(name).unwrap_err().to_string();
            assert!(said.contains(&format!("invalid character '{shown}'; ")), "{said}");
        }
    }
}
