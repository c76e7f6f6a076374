//! How a list is written out: as `zdb -l` does.

use super::{NvList, NvValue};
use std::fmt;

const INDENT: usize = 4;

impl fmt::Display for NvList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, self, 0)
    }
}

fn write_list(f: &mut fmt::Formatter<'_>, list: &NvList, indent: usize) -> fmt::Result {
    list.iter().try_for_each(|(name, value)| write_pair(f, name, value, indent))
}

fn write_pair(f: &mut fmt::Formatter<'_>, name: &str, value: &NvValue, indent: usize) -> fmt::Result {
    let pad = " ".repeat(indent);
    match value {
        NvValue::List(list) => {
            writeln!(f, "{pad}{name}:")?;
            write_list(f, list, indent + INDENT)
        }
        NvValue::ListArray(lists) => lists.iter().enumerate().try_for_each(|(i, list)| {
            writeln!(f, "{pad}{name}[{i}]:")?;
            write_list(f, list, indent + INDENT)
        }),
        NvValue::Boolean => writeln!(f, "{pad}{name}"),
        NvValue::StringArray(v) => write_elements(f, &pad, name, v.iter().map(|s| format!("'{s}'"))),
        NvValue::BooleanArray(v) => write_elements(f, &pad, name, v),
        NvValue::ByteArray(v) | NvValue::Uint8Array(v) => write_elements(f, &pad, name, v),
        NvValue::Int8Array(v) => write_elements(f, &pad, name, v),
        NvValue::Int16Array(v) => write_elements(f, &pad, name, v),
        NvValue::Uint16Array(v) => write_elements(f, &pad, name, v),
        NvValue::Int32Array(v) => write_elements(f, &pad, name, v),
        NvValue::Uint32Array(v) => write_elements(f, &pad, name, v),
        NvValue::Int64Array(v) => write_elements(f, &pad, name, v),
        NvValue::Uint64Array(v) => write_elements(f, &pad, name, v),
        single => {
            write!(f, "{pad}{name}: ")?;
            write_single(f, single)
        }
    }
}

fn write_elements<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    pad: &str,
    name: &str,
    elements: impl IntoIterator<Item = T>,
) -> fmt::Result {
    elements.into_iter().enumerate().try_for_each(|(i, v)| writeln!(f, "{pad}{name}[{i}]: {v}"))
}

fn write_single(f: &mut fmt::Formatter<'_>, value: &NvValue) -> fmt::Result {
    match value {
        NvValue::BooleanValue(v) => writeln!(f, "{v}"),
        NvValue::Byte(v) | NvValue::Uint8(v) => writeln!(f, "{v}"),
        NvValue::Int8(v) => writeln!(f, "{v}"),
        NvValue::Int16(v) => writeln!(f, "{v}"),
        NvValue::Uint16(v) => writeln!(f, "{v}"),
        NvValue::Int32(v) => writeln!(f, "{v}"),
        NvValue::Uint32(v) => writeln!(f, "{v}"),
        NvValue::Int64(v) | NvValue::HrTime(v) => writeln!(f, "{v}"),
        NvValue::Uint64(v) => writeln!(f, "{v}"),
        NvValue::Double(v) => writeln!(f, "{v}"),
        NvValue::String(v) => writeln!(f, "'{v}'"),
        _ => unreachable!("lists and arrays are written elsewhere"),
    }
}
