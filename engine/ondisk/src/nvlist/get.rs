//! Typed access: `config.u64("txg")?`. An error names the pair and what was found in its place.
//!
//! Each type has two getters: the plain one demands the pair, `opt_` lets it be absent. In both a pair of another
//! type is an error.

use super::{NvList, NvValue};
use units::{Error, Guid, Kind, Result, Txg};

macro_rules! getters {
    ($($(#[$doc:meta])* $get:ident $opt:ident: $type:ty = $pattern:pat => $value:expr;)*) => {
        $(
            $(#[$doc])*
            pub fn $get(&self, name: &str) -> Result<$type> {
                self.$opt(name)?.ok_or_else(|| missing(name))
            }

            pub fn $opt(&self, name: &str) -> Result<Option<$type>> {
                match self.get(name) {
                    None => Ok(None),
                    Some($pattern) => Ok(Some($value)),
                    Some(other) => Err(mistyped(name, stringify!($get), other)),
                }
            }
        )*
    };
}

impl NvList {
    getters! {
        u64 opt_u64: u64 = NvValue::Uint64(v) => *v;
        i64 opt_i64: i64 = NvValue::Int64(v) => *v;
        u32 opt_u32: u32 = NvValue::Uint32(v) => *v;
        i32 opt_i32: i32 = NvValue::Int32(v) => *v;
        bool opt_bool: bool = NvValue::BooleanValue(v) => *v;
        str opt_str: &str = NvValue::String(v) => v.as_str();
        list opt_list: &NvList = NvValue::List(v) => v;
        lists opt_lists: &[NvList] = NvValue::ListArray(v) => v.as_slice();
        u64s opt_u64s: &[u64] = NvValue::Uint64Array(v) => v.as_slice();
        strings opt_strings: &[String] = NvValue::StringArray(v) => v.as_slice();
        u8s opt_u8s: &[u8] = NvValue::Uint8Array(v) | NvValue::ByteArray(v) => v.as_slice();
    }

    pub fn guid(&self, name: &str) -> Result<Guid> {
        self.u64(name).map(Guid)
    }

    pub fn txg(&self, name: &str) -> Result<Txg> {
        self.u64(name).map(Txg)
    }

    /// A bare name, which says yes by being there.
    pub fn is_flagged(&self, name: &str) -> bool {
        matches!(self.get(name), Some(NvValue::Boolean))
    }
}

fn missing(name: &str) -> Error {
    Error::new(Kind::Corrupt, format!("nvlist: no pair '{name}'"))
}

fn mistyped(name: &str, wanted: &str, found: &NvValue) -> Error {
    Error::corrupt(format!("nvlist: pair '{name}' should be of type {wanted}, but is {:?}", found.code()))
}
