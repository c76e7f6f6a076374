//! Which shape the records have, and how those of older versions come to it.

use crate::records::{Look, Table, Writer};
use units::{Error, Result};

/// The shape that this program writes.
pub const SCHEMA: u64 = 1;

const ABOUT: Table<u64> = Table::new("store");
const KEY: &str = "schema";

/// Step `n` makes records of schema `n + 1` from those of `n`; a new file takes none of them.
const STEPS: &[fn(&mut Writer) -> Result<()>] = &[|_| Ok(())];

/// Makes a new file one of today's schema, and brings an older one up to it.
pub(crate) fn bring_up(writer: &mut Writer) -> Result<()> {
    let found = writer.get(&ABOUT, KEY)?;
    check(found.unwrap_or(SCHEMA))?;
    let from = found.unwrap_or(SCHEMA);
    for step in STEPS.iter().skip(usize::try_from(from).unwrap_or(usize::MAX)) {
        step(writer)?;
    }
    if found == Some(SCHEMA) { Ok(()) } else { writer.put(&ABOUT, KEY, &SCHEMA) }
}

pub(crate) fn check(schema: u64) -> Result<()> {
    if schema <= SCHEMA {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "the configuration is of schema {schema}, which a later version of Cenote wrote; this one knows {SCHEMA}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_but_the_first_has_a_step_that_leads_to_it() {
        assert_eq!(STEPS.len() as u64, SCHEMA);
    }
}
