//! Lists of named values: the configuration in labels and MOS, history records, and more.
//!
//! Packed in XDR, that is big endian in units of four bytes, whatever the machine (there is another form, `native`,
//! which only history uses):
//!
//! ```text
//!   packed   | encoding 1 | byte order | 0 | 0 | list |             one byte each, then the outermost list
//!   list     | version | flags | pair | pair | ... | 0 | 0 |
//!   pair     | size here | size in memory | name | type | count | value |
//!   string   | length | bytes, padded to four |
//! ```
//!
//! `size here` is the length of the pair in this encoding, `size in memory` what OpenZFS allocates for it when it
//! unpacks; both zero end the list. The values of a type stand one after another, each of at least four bytes,
//! arrays other than of bytes, strings and lists after a second count. The order of the pairs is kept.
//!
//! Invariants: decoding never allocates more than a small multiple of what it has already seen in the input, and
//! nests at most [`MAX_DEPTH`] deep; what OpenZFS packed is packed again to the same bytes.

mod decode;
mod display;
mod encode;
mod get;
mod native;
#[cfg(test)]
pub(crate) mod tests;
mod value;

pub use value::NvValue;

/// How deep lists may nest. The deepest OpenZFS writes, a vdev tree within a configuration, takes about six.
pub const MAX_DEPTH: usize = 20;

/// Named values in order. See the module.
#[derive(Clone, Debug, PartialEq)]
pub struct NvList {
    pub version: i32,
    pub flags: u32,
    pairs: Vec<(String, NvValue)>,
}

impl Default for NvList {
    fn default() -> NvList {
        NvList::new()
    }
}

impl NvList {
    /// In `flags`: a name occurs once.
    pub const UNIQUE_NAME: u32 = 1;
    /// In `flags`: a name occurs once with each type.
    pub const UNIQUE_NAME_TYPE: u32 = 2;

    pub fn new() -> NvList {
        NvList { version: 0, flags: NvList::UNIQUE_NAME, pairs: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &NvValue)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value))
    }

    pub fn get(&self, name: &str) -> Option<&NvValue> {
        self.pairs.iter().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut NvValue> {
        self.pairs.iter_mut().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Puts the pair last, after dropping any other of that name: so OpenZFS adds, and so its order arises.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<NvValue>) {
        let name = name.into();
        self.remove(&name);
        self.push(name, value);
    }

    /// Puts the pair last without looking for the name.
    pub fn push(&mut self, name: impl Into<String>, value: impl Into<NvValue>) {
        self.pairs.push((name.into(), value.into()));
    }

    /// [`NvList::set`], for building a list in one expression.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<NvValue>) -> NvList {
        self.set(name, value);
        self
    }

    pub fn remove(&mut self, name: &str) {
        self.pairs.retain(|(n, _)| n != name);
    }
}
