//! User properties: any name with a colon in it, inherited by children, never interpreted here.

use units::{Error, Result};

/// Names and values are stored in a ZAP with their closing zero byte, which is where these limits come from.
pub const MAX_NAME: usize = 255;
pub const MAX_VALUE: usize = 8191;

/// A name with a colon, of lower-case letters, digits and `-_.:`.
pub fn is_user_property(name: &str) -> bool {
    name.contains(':') && name.bytes().all(is_name_byte)
}

fn is_name_byte(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.:".contains(&b)
}

pub fn check_name(name: &str) -> Result<()> {
    if name.len() > MAX_NAME {
        return Err(Error::invalid(format!(
            "property name '{name}' is too long; {MAX_NAME} characters are allowed"
        )));
    }
    Ok(())
}

pub fn check_value(name: &str, value: &str) -> Result<()> {
    if value.len() > MAX_VALUE {
        return Err(Error::invalid(format!("'{name}' is too long; {MAX_VALUE} characters are allowed")));
    }
    Ok(())
}

/// `userused@…`, `groupquota@…` and their kin: kept in objects of the file system, not among its properties.
pub const QUOTA_FAMILIES: [&str; 12] = [
    "userused@",
    "userquota@",
    "groupused@",
    "groupquota@",
    "userobjused@",
    "userobjquota@",
    "groupobjused@",
    "groupobjquota@",
    "projectused@",
    "projectquota@",
    "projectobjused@",
    "projectobjquota@",
];

pub fn is_quota_property(name: &str) -> bool {
    QUOTA_FAMILIES.iter().any(|family| name.starts_with(family))
}

/// `written@SNAPSHOT` and `written#BOOKMARK`: computed for whatever follows.
pub fn is_written_property(name: &str) -> bool {
    name.starts_with("written@") || name.starts_with("written#")
}
