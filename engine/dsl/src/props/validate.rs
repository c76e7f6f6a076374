//! What may be set, on what, and when; each refusal is one line that says what is allowed.

use units::{Error, Result, pretty_size};

use super::index::ZPL_VERSION;
use super::{Prop, PropName, Types, Value, effect, parse_value, user};
use crate::name;

/// When a property is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// As the dataset is created: properties that are fixed for life may be given.
    Create,
    Later,
}

/// What the pool and the dataset allow: facts that validation needs and the table cannot know.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// 128K until the pool has `large_blocks`.
    pub max_block_size: u64,
    pub encrypted: bool,
    /// Of an existing file system; it never goes back.
    pub zpl_version: u64,
    /// Of an existing volume; its size is a multiple.
    pub volblocksize: Option<u64>,
}

impl Limits {
    pub const MIN_BLOCK_SIZE: u64 = 512;
    pub const OLD_MAX_BLOCK_SIZE: u64 = 128 << 10;
    pub const MAX_BLOCK_SIZE: u64 = 16 << 20;
    const MIN_PBKDF2_ITERATIONS: u64 = 100_000;
}

impl Default for Limits {
    /// A dataset about to be created in a pool with every feature.
    fn default() -> Limits {
        Limits {
            max_block_size: Limits::MAX_BLOCK_SIZE,
            encrypted: false,
            zpl_version: 0,
            volblocksize: None,
        }
    }
}

/// Reads `name=text` for a dataset of kind `types`, and checks all that can be checked without the pool.
pub fn parse_setting(
    name: &str,
    text: &str,
    types: Types,
    when: When,
    limits: &Limits,
) -> Result<(PropName, Value)> {
    let parsed = parse_name(name)?;
    let PropName::Native(prop) = parsed else {
        user::check_value(name, text)?;
        return Ok((parsed, Value::Text(text.into())));
    };
    check_settable(prop, types, when)?;
    let value = parse_value(prop.row(), text, types)?;
    check_value(prop, &value, text, limits)?;
    effect::check(prop.row(), prop.effect(), &value)?;
    Ok((parsed, value))
}

fn parse_name(name: &str) -> Result<PropName> {
    let computed = user::is_written_property(name)
        || user::QUOTA_FAMILIES.iter().any(|f| f.contains("used@") && name.starts_with(f));
    if computed {
        return Err(readonly(name));
    }
    if user::is_quota_property(name) {
        return Err(Error::unsupported(format!(
            "'{name}': quotas of users, groups and projects cannot be set yet"
        )));
    }
    PropName::parse(name)
}

fn readonly(name: &str) -> Error {
    Error::invalid(format!("'{name}' is readonly"))
}

fn check_settable(prop: Prop, types: Types, when: When) -> Result<()> {
    let row = prop.row();
    if types == Types::SNAPSHOT {
        return Err(Error::invalid("this property can not be modified for snapshots"));
    }
    if !row.applies_to(types) {
        return Err(Error::invalid(format!("'{}' does not apply to datasets of this type", row.name)));
    }
    let may_set_once = row.setting.is_once() && when == When::Create;
    if row.setting.is_readonly() && !may_set_once {
        return Err(readonly(row.name));
    }
    Ok(())
}

/// The rules that belong to single properties.
fn check_value(prop: Prop, value: &Value, text: &str, limits: &Limits) -> Result<()> {
    match (prop, value) {
        (Prop::Quota | Prop::RefQuota, Value::Number(0)) if text != "none" => {
            Err(Error::invalid(format!("use 'none' to disable '{}'", prop.name())))
        }
        (Prop::RecordSize | Prop::VolBlockSize, Value::Number(n)) => check_block_size(prop, *n, limits),
        (Prop::SpecialSmallBlocks, Value::Number(n)) => check_small_blocks(*n),
        (Prop::VolSize, Value::Number(n)) => check_volsize(*n, limits.volblocksize),
        (Prop::Version, Value::Number(n)) => check_version(*n, limits.zpl_version),
        (Prop::Copies, Value::Number(n)) if limits.encrypted && *n > 2 => {
            Err(Error::invalid("encrypted datasets cannot have 3 copies"))
        }
        (Prop::Pbkdf2Iters, Value::Number(n)) if *n < Limits::MIN_PBKDF2_ITERATIONS => {
            Err(Error::invalid(format!("minimum pbkdf2 iterations is {}", Limits::MIN_PBKDF2_ITERATIONS)))
        }
        (Prop::ZonedUid, Value::Number(n)) if u32::try_from(*n).is_err() => {
            Err(Error::invalid("'zoned_uid' must be a user id of 32 bits"))
        }
        (Prop::MountPoint, Value::Text(path)) => name::check_mountpoint(path),
        (Prop::KeyLocation, Value::Text(place)) => check_keylocation(place, limits.encrypted),
        (Prop::MlsLabel, Value::Text(label)) if label != "none" => {
            Err(Error::invalid("mlslabels are unsupported"))
        }
        _ => Ok(()),
    }
}

fn check_block_size(prop: Prop, n: u64, limits: &Limits) -> Result<()> {
    if n.is_power_of_two() && (Limits::MIN_BLOCK_SIZE..=limits.max_block_size).contains(&n) {
        return Ok(());
    }
    let largest = pretty_size(limits.max_block_size);
    let larger = match n.is_power_of_two() && n <= Limits::MAX_BLOCK_SIZE && n > limits.max_block_size {
        true => {
            "; for up to 16M the pool needs a deferred update: zpool set feature@large_blocks=enabled POOL"
        }
        false => "",
    };
    Err(Error::invalid(format!("'{}' must be power of 2 from 512B to {largest}{larger}", prop.name())))
}

fn check_small_blocks(n: u64) -> Result<()> {
    if n <= Limits::MAX_BLOCK_SIZE {
        return Ok(());
    }
    Err(Error::invalid("invalid 'special_small_blocks' property: must be between zero and 16M"))
}

/// Whether a volume of blocks of `block` bytes may be `n` bytes long; for a volume that is about to be created the
/// caller knows the block size and asks here again.
pub(crate) fn check_volsize(n: u64, block: Option<u64>) -> Result<()> {
    if n == 0 {
        return Err(Error::invalid("'volsize' cannot be zero"));
    }
    // The largest offset of a file is a signed number.
    if n > i64::MAX as u64 {
        return Err(Error::invalid("'volsize' must be less than 8E"));
    }
    match block {
        Some(block) if !n.is_multiple_of(block) => Err(Error::invalid(format!(
            "'volsize' must be a multiple of volume block size ({})",
            pretty_size(block)
        ))),
        _ => Ok(()),
    }
}

fn check_version(n: u64, now: u64) -> Result<()> {
    if n < now {
        return Err(Error::invalid(format!("Can not downgrade; already at version {now}")));
    }
    debug_assert!(n <= ZPL_VERSION, "the table of names ends with the newest");
    Ok(())
}

fn check_keylocation(place: &str, encrypted: bool) -> Result<()> {
    let is_uri =
        ["file:///", "https://", "http://"].iter().any(|p| place.starts_with(p) && place.len() > p.len());
    match (place, encrypted) {
        ("none", true) => Err(Error::invalid("keylocation must not be 'none' for encrypted datasets")),
        ("none", false) => Ok(()),
        _ if place != "prompt" && !is_uri => Err(Error::invalid(
            "invalid keylocation; it is 'none', 'prompt', or a URI file:///path, https://... or http://...",
        )),
        (_, false) => Err(Error::invalid("keylocation must be 'none' for unencrypted datasets")),
        (_, true) => Ok(()),
    }
}

/// Completes what was given for a new file system: normalized names have to be Unicode, and a file system that
/// takes any bytes as names does not inherit normalization.
pub fn complete_at_create(given: &mut Vec<(PropName, Value)>) -> Result<()> {
    let find = |prop: Prop| {
        given.iter().find(|(name, _)| *name == PropName::Native(prop)).and_then(|(_, value)| value.number())
    };
    match (find(Prop::Normalization), find(Prop::Utf8Only)) {
        (Some(1..), None) => given.push((PropName::Native(Prop::Utf8Only), Value::Number(1))),
        (Some(1..), Some(0)) => {
            return Err(Error::invalid("'utf8only' must be set 'on' if normalization chosen"));
        }
        (None, Some(0)) => given.push((PropName::Native(Prop::Normalization), Value::Number(0))),
        _ => {}
    }
    Ok(())
}
