//! What is known, by name.
//!
//! ```text
//!   cenote facts 1
//!   /sys/block/sdb/queue/max_sectors_kb<tab>512            a file of a host, line by line
//!   lun tank/mysql/data<tab>wwid=600144f0… block=16384     of ours: NAME=VALUE, apart by blanks
//!   end
//! ```
//!
//! The last line tells a whole file from one that was cut short. Facts come from strangers: the size is bounded,
//! bytes that are no UTF-8
//! are replaced, and what a value means is up to the rules.

use std::collections::BTreeMap;

const HEADER: &str = "cenote facts 1";
const END: &str = "end";
/// More than the largest host says: a thousand disks take 1 MB.
const BYTES_MAX: usize = 16 << 20;
const LINE_MAX: usize = 64 << 10;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    lines: BTreeMap<String, Vec<String>>,
}

impl Facts {
    /// Reads what the script printed. Errors are one line.
    pub fn parse(bytes: &[u8]) -> Result<Facts, String> {
        if bytes.len() > BYTES_MAX {
            return Err(format!(
                "the facts have {} bytes, more than the {BYTES_MAX} of the largest host: is this the right file?",
                bytes.len()
            ));
        }
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.lines().map(|line| line.trim_end_matches('\r')).enumerate();
        let first = lines.next().map_or("", |(_, first)| first);
        if first != HEADER {
            return Err(format!(
                "these are no facts: line 1 is '{}' and not '{HEADER}'; 'cenote doctor host' prints the script that gathers them",
                plain(first)
            ));
        }
        let mut facts = Facts::default();
        for (number, line) in lines {
            if line == END {
                return Ok(facts);
            }
            if line.len() > LINE_MAX {
                return Err(format!("line {} of the facts has more than {LINE_MAX} bytes", number + 1));
            }
            let (key, value) = line.split_once('\t').ok_or_else(|| {
                format!("line {} of the facts has no tab between name and value: {}", number + 1, plain(line))
            })?;
            facts.add(key, value);
        }
        Err("the facts end before their last line, 'end': gather them again".into())
    }

    pub fn add(&mut self, key: &str, value: &str) {
        self.lines.entry(key.into()).or_default().push(value.into());
    }

    /// What was known of `key` before is forgotten.
    pub fn set(&mut self, key: &str, value: &str) {
        self.lines.insert(key.into(), vec![value.into()]);
    }

    pub fn forget(&mut self, key: &str) {
        self.lines.remove(key);
    }

    /// Takes all that `other` knows.
    pub fn extend(&mut self, other: Facts) {
        other.lines.into_iter().for_each(|(key, lines)| self.lines.entry(key).or_default().extend(lines));
    }

    pub fn lines(&self, key: &str) -> &[String] {
        self.lines.get(key).map_or(&[], Vec::as_slice)
    }

    /// The first line, trimmed.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.lines(key).first().map(|line| line.trim())
    }

    /// The first line as a number, if it is one.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.text(key)?.parse().ok()
    }

    /// All names that begin with `prefix`, without it, and their lines.
    pub fn under<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a [String])> {
        self.lines
            .range(prefix.to_string()..)
            .map_while(move |(key, lines)| Some((key.strip_prefix(prefix)?, lines.as_slice())))
    }

    /// `NAME=VALUE` of a fact of ours.
    pub fn field(&self, key: &str, name: &str) -> Option<&str> {
        let fields = self.lines(key).iter().flat_map(|line| line.split(' '));
        fields.filter_map(|field| field.split_once('=')).find(|(n, _)| *n == name).map(|(_, value)| value)
    }

    pub fn field_number(&self, key: &str, name: &str) -> Option<u64> {
        self.field(key, name)?.parse().ok()
    }

    /// As the script would print them.
    pub fn render(&self) -> String {
        let lines =
            self.lines.iter().flat_map(|(key, lines)| lines.iter().map(move |l| format!("{key}\t{l}\n")));
        format!("{HEADER}\n{}{END}\n", lines.collect::<String>())
    }
}

/// What strangers wrote, fit for a terminal.
pub fn plain(text: &str) -> String {
    let shown: String = text.chars().take(200).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.chars().nth(200).is_some() { shown + "…" } else { shown }
}
