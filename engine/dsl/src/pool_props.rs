//! Pool properties: the same kind of table as for datasets, and what is special about pools.
//!
//! A pool has three sorts of property. Those of the table; one `feature@NAME` for each feature of the format, whose
//! value is a state and which can only be switched on; and user properties (`module:name`). What was set is in one
//! ZAP of the MOS (`pool_props`), except what the label also carries (`version`, `comment`, `compatibility`).

use units::{Error, Result};

use crate::props::{Property, Value, effect, parse_value, user};

mod table;

pub use table::{PoolProp, TABLE};

/// The range of `ashift`; 0 lets the devices decide.
pub const ASHIFT: std::ops::RangeInclusive<u64> = 9..=16;
/// The version of a pool that has features, and the last one without.
pub const VERSION_FEATURES: u64 = 5000;
pub const VERSION_LAST_NUMBERED: u64 = 28;
const MAX_COMMENT: usize = 32;

/// When a pool property is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Create,
    Import,
    Later,
}

/// What somebody asks to set on a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolSetting {
    Native(PoolProp, Value),
    /// The feature by its short name (`large_blocks`); `false` keeps it out of a pool that is being created.
    Feature {
        name: String,
        enable: bool,
    },
    User(String, String),
}

impl PoolProp {
    pub fn row(self) -> &'static Property {
        &TABLE[self as usize]
    }

    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Looks a property up by name or, in lower case, by column (`cap`, `frag`, `alloc`).
    pub fn by_name(name: &str) -> Option<PoolProp> {
        let index = TABLE.iter().position(|row| row.name == name);
        index.or_else(|| TABLE.iter().position(|row| row.answers_to(name))).map(|i| PoolProp::ALL[i])
    }
}

/// Reads `name=text` and checks all that can be checked without the pool.
pub fn parse_setting(name: &str, text: &str, when: When) -> Result<PoolSetting> {
    if let Some(feature) = name.strip_prefix("feature@") {
        return parse_feature(name, feature, text, when);
    }
    let Some(prop) = PoolProp::by_name(name) else {
        return parse_user(name, text);
    };
    let row = prop.row();
    if row.setting.is_readonly() {
        return Err(Error::invalid(format!("'{}' is readonly", row.name)));
    }
    check_moment(prop, when)?;
    let value = parse_value(row, text, row.types)?;
    check_value(prop, &value, text)?;
    effect::check(row, prop.effect(), &value)?;
    Ok(PoolSetting::Native(prop, value))
}

fn parse_feature(name: &str, feature: &str, text: &str, when: When) -> Result<PoolSetting> {
    let enable = match text {
        "enabled" => true,
        "disabled" if when == When::Create => false,
        "disabled" => {
            return Err(Error::invalid(format!(
                "property '{name}' can only be set to 'disabled' at creation time"
            )));
        }
        _ => {
            return Err(Error::invalid(format!(
                "property '{name}' can only be set to 'enabled' or 'disabled'"
            )));
        }
    };
    Ok(PoolSetting::Feature { name: feature.into(), enable })
}

fn parse_user(name: &str, text: &str) -> Result<PoolSetting> {
    if !user::is_user_property(name) {
        return Err(Error::invalid(format!("invalid property '{name}'")));
    }
    user::check_name(name)?;
    user::check_value(name, text)?;
    Ok(PoolSetting::User(name.into(), text.into()))
}

fn check_moment(prop: PoolProp, when: When) -> Result<()> {
    let name = prop.name();
    match (prop, when) {
        (PoolProp::BootFs, When::Create | When::Import) => {
            Err(Error::invalid(format!("property '{name}' cannot be set at creation or import time")))
        }
        (PoolProp::AltRoot, When::Later) => {
            Err(Error::invalid(format!("property '{name}' can only be set during pool creation or import")))
        }
        (PoolProp::ReadOnly, When::Create | When::Later) => {
            Err(Error::invalid(format!("property '{name}' can only be set at import time")))
        }
        _ => Ok(()),
    }
}

fn check_value(prop: PoolProp, value: &Value, text: &str) -> Result<()> {
    match (prop, value) {
        (PoolProp::Ashift, Value::Number(n)) if *n != 0 && !ASHIFT.contains(n) => {
            Err(Error::invalid(format!(
                "property 'ashift' number {n} is invalid, only values between {} and {} are allowed.",
                ASHIFT.start(),
                ASHIFT.end()
            )))
        }
        (PoolProp::Version, Value::Number(n)) => check_version(*n),
        (PoolProp::DedupTableQuota, Value::Number(0)) if text != "none" => {
            Err(Error::invalid("use 'none' to disable ddt table quota"))
        }
        (PoolProp::AltRoot, Value::Text(path)) if !path.starts_with('/') => {
            Err(Error::invalid(format!("bad alternate root '{path}'; it must be an absolute path")))
        }
        (PoolProp::CacheFile, Value::Text(path)) => check_cachefile(path),
        (PoolProp::Comment, Value::Text(comment)) => check_comment(comment),
        (PoolProp::BootFs, Value::Text(name)) if !name.is_empty() => crate::name::check_dataset(name),
        _ => Ok(()),
    }
}

fn check_version(n: u64) -> Result<()> {
    if (1..=VERSION_LAST_NUMBERED).contains(&n) || n == VERSION_FEATURES {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "property 'version' number {n} is invalid; 1 to {VERSION_LAST_NUMBERED} or {VERSION_FEATURES} are allowed"
    )))
}

fn check_cachefile(path: &str) -> Result<()> {
    if path.is_empty() || path == "none" {
        return Ok(());
    }
    if !path.starts_with('/') {
        return Err(Error::invalid("property 'cachefile' must be empty, an absolute path, or 'none'"));
    }
    if matches!(path.rsplit('/').next(), Some("" | "." | "..")) {
        return Err(Error::invalid(format!("'{path}' is not a valid file")));
    }
    Err(Error::unsupported(
        "'cachefile' can be 'none', for a pool that the next start is not to open, or empty: imported pools are remembered \
         in the home, and no cache file is written",
    ))
}

fn check_comment(comment: &str) -> Result<()> {
    if !comment.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        return Err(Error::invalid("comment may only have printable characters"));
    }
    if comment.len() > MAX_COMMENT {
        return Err(Error::invalid(format!("comment must not exceed {MAX_COMMENT} characters")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_pool_property_once() {
        for (i, row) in TABLE.iter().enumerate() {
            assert_eq!(PoolProp::by_name(row.name), Some(PoolProp::ALL[i]), "{}", row.name);
        }
        assert_eq!(PoolProp::by_name("cap"), Some(PoolProp::Capacity));
        assert_eq!(PoolProp::by_name("alloc"), Some(PoolProp::Allocated));
    }

    #[test]
    fn pool_settings_are_read_and_refused() {
        let ok = |name, text, when| parse_setting(name, text, when).unwrap();
        assert_eq!(
            ok("ashift", "12", When::Create),
            PoolSetting::Native(PoolProp::Ashift, Value::Number(12))
        );
        assert_eq!(
            ok("failmode", "continue", When::Later),
            PoolSetting::Native(PoolProp::FailMode, Value::Number(1))
        );
        assert_eq!(
            ok("feature@large_blocks", "disabled", When::Create),
            PoolSetting::Feature { name: "large_blocks".into(), enable: false }
        );
        assert_eq!(ok("a:b", "c", When::Later), PoolSetting::User("a:b".into(), "c".into()));
        for (name, text, when, said) in [
            ("ashift", "8", When::Create, "only values between 9 and 16 are allowed"),
            ("ashift", "17", When::Later, "only values between 9 and 16 are allowed"),
            ("version", "29", When::Create, "1 to 28 or 5000 are allowed"),
            ("size", "1G", When::Later, "'size' is readonly"),
            ("readonly", "on", When::Later, "can only be set at import time"),
            ("altroot", "/x", When::Later, "can only be set during pool creation or import"),
            ("altroot", "x", When::Create, "bad alternate root 'x'"),
            ("bootfs", "t/a", When::Create, "cannot be set at creation or import time"),
            ("feature@x", "disabled", When::Later, "can only be set to 'disabled' at creation time"),
            ("feature@x", "active", When::Later, "can only be set to 'enabled' or 'disabled'"),
            ("comment", "0123456789012345678901234567890123", When::Later, "must not exceed 32 characters"),
            ("comment", "a\tb", When::Later, "printable"),
            ("cachefile", "x", When::Later, "must be empty, an absolute path, or 'none'"),
            ("cachefile", "/x/..", When::Later, "is not a valid file"),
            ("cachefile", "/x/zpool.cache", When::Later, "no cache file is written"),
            ("failmode", "stop", When::Later, "'failmode' must be one of 'wait | continue | panic'"),
            ("nonsense", "x", When::Later, "invalid property 'nonsense'"),
        ] {
            let error = parse_setting(name, text, when).unwrap_err().to_string();
            assert!(error.contains(said), "{name}={text}: {error}");
        }
    }
}
