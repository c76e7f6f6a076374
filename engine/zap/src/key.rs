//! What an entry is found by.

use crate::hash::Rules;
use ondisk::zap::ZapFlags;
pub use ondisk::zap::{LONG_NAME_MAX, NAME_MAX};
use std::borrow::Cow;
use std::fmt;
use units::{Error, Result};

/// A key as callers pass it: a name, or an array of integers in a ZAP created with [`ZapFlags::UINT64_KEY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key<'a> {
    /// Any bytes but NUL.
    Name(&'a [u8]),
    Words(&'a [u64]),
}

impl<'a> From<&'a str> for Key<'a> {
    fn from(name: &'a str) -> Key<'a> {
        Key::Name(name.as_bytes())
    }
}

impl<'a> From<&'a String> for Key<'a> {
    fn from(name: &'a String) -> Key<'a> {
        Key::Name(name.as_bytes())
    }
}

impl<'a> From<&'a [u8]> for Key<'a> {
    fn from(name: &'a [u8]) -> Key<'a> {
        Key::Name(name)
    }
}

impl<'a> From<&'a [u64]> for Key<'a> {
    fn from(words: &'a [u64]) -> Key<'a> {
        Key::Words(words)
    }
}

impl<'a> From<&'a OwnedKey> for Key<'a> {
    fn from(key: &'a OwnedKey) -> Key<'a> {
        key.borrow()
    }
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Name(name) => write!(f, "'{}'", String::from_utf8_lossy(name)),
            Key::Words(words) => {
                f.write_str("key")?;
                words.iter().try_for_each(|w| write!(f, " {w:x}"))
            }
        }
    }
}

/// A key as it was read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnedKey {
    Name(Vec<u8>),
    Words(Vec<u64>),
}

impl OwnedKey {
    pub fn borrow(&self) -> Key<'_> {
        match self {
            OwnedKey::Name(name) => Key::Name(name),
            OwnedKey::Words(words) => Key::Words(words),
        }
    }

    /// Reads the bytes an array of a leaf holds: a name with its NUL, or integers with the high byte first.
    pub(crate) fn from_stored(mut bytes: Vec<u8>, flags: ZapFlags) -> Result<OwnedKey> {
        if flags.has(ZapFlags::UINT64_KEY) {
            let words = bytes.chunks_exact(8).map(|b| u64::from_be_bytes(b.try_into().expect("8 bytes")));
            return Ok(OwnedKey::Words(words.collect()));
        }
        match bytes.pop() {
            Some(0) if !bytes.contains(&0) => Ok(OwnedKey::Name(bytes)),
            _ => Err(Error::corrupt("ZAP name without its NUL at the end")),
        }
    }
}

/// How a looked-up name may differ from the stored one in a ZAP that normalises names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Match {
    /// Byte by byte.
    #[default]
    Exact,
    /// Equal after the normalisation of the ZAP: Unicode form, and case if the ZAP folds it.
    Normalized,
    /// Equal after the normalisation of the ZAP, but of the same case.
    NormalizedSameCase,
}

/// A key prepared for one ZAP: where it would lie and what equals it.
#[derive(Clone, Debug)]
pub(crate) struct Needle<'a> {
    pub key: Key<'a>,
    pub hash: u64,
    /// The key as a leaf stores it.
    pub stored: Cow<'a, [u8]>,
    folding: Option<Folding>,
}

#[derive(Clone, Debug)]
struct Folding {
    norm: crate::normalize::Normalization,
    folded: Vec<u8>,
}

impl<'a> Needle<'a> {
    pub fn new(rules: &Rules, key: Key<'a>, how: Match) -> Result<Needle<'a>> {
        check_kind(rules, key)?;
        let folding = match (key, how) {
            (_, Match::Exact) | (Key::Words(_), _) => None,
            _ if rules.norm.is_none() => {
                return Err(Error::unsupported(
                    "looking up a name by its normalised form in a ZAP that keeps names as they are",
                ));
            }
            (Key::Name(name), how) => {
                let norm =
                    if how == Match::NormalizedSameCase { rules.norm.without_case() } else { rules.norm };
                Some(Folding { norm, folded: norm.apply(name).into_owned() })
            }
        };
        Ok(Needle { key, hash: rules.hash(key), stored: stored_form(key), folding })
    }

    /// How many integers of which size the stored key is.
    pub fn stored_ints(&self) -> usize {
        match self.key {
            Key::Name(_) => self.stored.len(),
            Key::Words(words) => words.len(),
        }
    }

    /// Equality with stored bytes decides, rather than with a normalised form.
    pub fn is_exact(&self) -> bool {
        self.folding.is_none()
    }

    /// Whether the name `stored` (without NUL) is what is looked for.
    pub fn matches_name(&self, stored: &[u8]) -> bool {
        match (&self.folding, self.key) {
            (Some(Folding { norm, folded }), _) => *norm.apply(stored) == **folded,
            (None, Key::Name(name)) => name == stored,
            (None, Key::Words(_)) => false,
        }
    }
}

/// Only what a ZAP can hold is a key of it; on this rest the sizes of everything that is written.
fn check_kind(rules: &Rules, key: Key<'_>) -> Result<()> {
    let wants_words = rules.flags.has(ZapFlags::UINT64_KEY);
    let fault = match key {
        Key::Name(_) if wants_words => "its keys are integers, not names",
        Key::Words(_) if !wants_words => "its keys are names, not integers",
        Key::Name([]) | Key::Words([]) => "a key is not empty",
        Key::Name(name) if name.contains(&0) => "a name has no NUL in it",
        Key::Name(name) if name.len() >= LONG_NAME_MAX => "the name is too long",
        Key::Words(words) if words.len() > NAME_MAX / 8 => "the key is too long",
        _ => return Ok(()),
    };
    Err(Error::invalid(format!("ZAP cannot hold {key}: {fault}")))
}

fn stored_form(key: Key<'_>) -> Cow<'_, [u8]> {
    Cow::Owned(match key {
        Key::Name(name) => [name, &[0]].concat(),
        Key::Words(words) => words.iter().flat_map(|w| w.to_be_bytes()).collect(),
    })
}

/// The name under which ZAPs that are sets of integers keep a number.
pub fn int_name(value: u64) -> String {
    format!("{value:x}")
}
