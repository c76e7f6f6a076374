//! A log that could not be replayed, as it is told of.

/// A log that waits to be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingLog {
    pub dataset: String,
    /// The records that were not replayed yet.
    pub records: u64,
    /// Why it could not be replayed, when that was tried.
    pub why: Option<String>,
}

impl std::fmt::Display for WaitingLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let WaitingLog { dataset, records, why } = self;
        let unit = if *records == 1 { "record" } else { "records" };
        write!(f, "intent log of '{dataset}' waits to be replayed; {records} {unit}")?;
        why.as_ref().map_or(Ok(()), |why| write!(f, "; {why}"))
    }
}
