//! One request of a client.

/// Declares operations with the code that files have for them.
macro_rules! operations {
    ($($variant:ident $code:literal $name:literal,)*) => {
        /// What was asked for, as far as traces tell it apart.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Op { $($variant,)* }

        impl Op {
            pub const ALL: &'static [Op] = &[$(Op::$variant,)*];

            pub fn code(self) -> u8 {
                match self { $(Op::$variant => $code,)* }
            }

            pub fn of_code(code: u8) -> Option<Op> {
                match code { $($code => Some(Op::$variant),)* _ => None }
            }

            /// As statistics call it.
            pub fn name(self) -> &'static str {
                match self { $(Op::$variant => $name,)* }
            }
        }
    };
}

operations! {
    Read 0 "read",
    Write 1 "write",
    WriteZeroes 2 "write_zeroes",
    Trim 3 "trim",
    Flush 4 "flush",
    Prefetch 5 "prefetch",
    Fsync 6 "fsync",
    Lookup 7 "lookup",
    GetAttr 8 "getattr",
    SetAttr 9 "setattr",
    Create 10 "create",
    Unlink 11 "unlink",
    Rename 12 "rename",
    ReadDir 13 "readdir",
    GetXattr 14 "getxattr",
    SetXattr 15 "setxattr",
    Other 31 "other",
}

impl Op {
    /// What a statistic calls so; what traces do not tell apart is `Other`.
    pub fn named(name: &str) -> Op {
        Op::ALL.iter().copied().find(|op| op.name() == name).unwrap_or(Op::Other)
    }

    /// Whether it moves bytes between a client and a place.
    pub fn moves_bytes(self) -> bool {
        matches!(self, Op::Read | Op::Write)
    }

    /// Whether it waits until what was written before is on stable storage.
    pub fn is_flush(self) -> bool {
        matches!(self, Op::Flush | Op::Fsync)
    }
}

/// See the module. Times are in nanoseconds, offsets and lengths in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it came, since the trace began.
    pub at: u64,
    /// Until it was answered.
    pub latency: u64,
    /// The index of its place.
    pub place: u32,
    pub op: Op,
    /// The number of a file; 0 of a volume.
    pub object: u64,
    pub offset: u64,
    pub bytes: u64,
    /// It was on stable storage when it was answered, as the client had asked.
    pub durable: bool,
    pub failed: bool,
}

/// The longest trace, a week; a latency is no longer either.
pub const TIME_MAX: u64 = 7 * 24 * 3600 * 1_000_000_000;
/// The end of the largest place.
pub const END_MAX: u64 = 1 << 62;
/// The longest request: a copy of ranges can be long.
pub const BYTES_MAX: u64 = 1 << 40;

impl Request {
    /// What the recorder was told, within the bounds of a file.
    pub fn of_entry(entry: &api::analytics::TraceEntry) -> Request {
        let bytes = entry.bytes.min(BYTES_MAX);
        Request {
            at: entry.at.min(TIME_MAX),
            latency: entry.latency.min(TIME_MAX),
            place: entry.place,
            op: Op::named(&entry.op),
            object: entry.object,
            offset: entry.offset.min(END_MAX - bytes),
            bytes,
            durable: entry.durable,
            failed: entry.failed,
        }
    }

    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_codes_and_names_of_their_own() {
        for op in Op::ALL {
            assert_eq!((Op::of_code(op.code()), Op::named(op.name())), (Some(*op), *op));
            assert!(op.code() < 32, "five bits hold it");
        }
        assert_eq!((Op::of_code(20), Op::named("mkdir")), (None, Op::Other));
    }
}
