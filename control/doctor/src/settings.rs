//! Files of settings: `name = value`, `name value`, comments.

use crate::Facts;

/// The last `name = value` of files whose names `is_file` accepts, and the file it is in. In the manner of
/// databases, `-` and `_` in
/// names are the same.
pub fn setting<'a>(
    facts: &'a Facts,
    is_file: impl Fn(&str) -> bool,
    name: &str,
) -> Option<(&'a str, &'a str)> {
    let same = |a: &str| a.trim().replace('-', "_").eq_ignore_ascii_case(&name.replace('-', "_"));
    let files = facts.under("/").filter(|(key, _)| is_file(&format!("/{key}")));
    let found = files.flat_map(|(key, lines)| lines.iter().map(move |line| (key, line.as_str())));
    found
        .filter(|(_, line)| !line.trim_start().starts_with(['#', ';', '*']))
        .filter_map(|(key, line)| {
            line.split_once('=').filter(|(n, _)| same(n)).map(|(_, value)| (key, value))
        })
        .map(|(key, value)| {
            (key, value.split('#').next().unwrap_or_default().trim().trim_matches(['\'', '"']))
        })
        .last()
}

/// `16k`, `1M`, `8192`, `8kB`.
pub fn bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim().to_ascii_lowercase().trim_end_matches('b') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// `16K`, `1M`: whole units only.
pub fn shown(bytes: u64) -> String {
    let units = [(30, "G"), (20, "M"), (10, "K")];
    let whole = units.iter().find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1u64 << shift));
    whole.map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

pub fn is_mysql(file: &str) -> bool {
    file.ends_with(".cnf")
}

pub fn is_postgres(file: &str) -> bool {
    file.ends_with("/postgresql.conf")
}

pub fn is_iscsi(file: &str) -> bool {
    file == "/etc/iscsi/iscsid.conf"
}
