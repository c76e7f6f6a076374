//! The engine's error: what the caller can do about it, what was being done, where, and why.
//!
//! It reads as one line: `read block 54:1:0:2a: no copy passed its checksum: disk1.img: I/O error`. The line holds every
//! cause once, down to the last; so `source()` is `None`, or a program that prints chains would print them twice. A program
//! that must know the cause asks [`Error::cause`].

use std::fmt;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What the caller can do. Fronts translate each kind in one exhaustive table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Every copy failed its checksum: restore this block from elsewhere.
    Checksum,
    /// Bytes from a disk make no sense: a wrong length, count, offset or type.
    Corrupt,
    /// A device failed or is gone: the pool may heal when it returns.
    Io,
    /// The pool, a quota or a reservation is full: free space, then retry.
    NoSpace,
    /// No such pool, dataset, object, entry or property.
    NotFound,
    /// The name is taken.
    Exists,
    /// It is in use: by another process, an open client, children.
    Busy,
    /// The request itself is wrong: a bad value, name or combination.
    Invalid,
    /// A feature of the format that this program does not have.
    Unsupported,
    /// The pool or dataset was opened read-only.
    ReadOnly,
    /// An encrypted block whose key is not loaded.
    Encrypted,
    /// The work was called off: the pool is closing.
    Cancelled,
}

impl Kind {
    fn phrase(self) -> &'static str {
        match self {
            Kind::Checksum => "no copy passed its checksum",
            Kind::Corrupt => "damaged structure",
            Kind::Io => "I/O error",
            Kind::NoSpace => "out of space",
            Kind::NotFound => "not found",
            Kind::Exists => "already exists",
            Kind::Busy => "busy",
            Kind::Invalid => "invalid request",
            Kind::Unsupported => "not supported",
            Kind::ReadOnly => "read-only",
            Kind::Encrypted => "encrypted, and its key is not loaded",
            Kind::Cancelled => "cancelled",
        }
    }
}

/// See the module. Boxed, so that a `Result` on the data path stays one word larger than its value.
pub struct Error(Box<Inner>);

struct Inner {
    kind: Kind,
    doing: String,
    at: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// `doing` is what was asked, in a few words: "read block", "create dataset 'tank/a'".
    pub fn new(kind: Kind, doing: impl Into<String>) -> Error {
        Error(Box::new(Inner { kind, doing: doing.into(), at: String::new(), source: None }))
    }

    /// A structure read from a disk that makes no sense; `what` names structure and field.
    pub fn corrupt(what: impl Into<String>) -> Error {
        Error::new(Kind::Corrupt, what)
    }

    /// A request that cannot be carried out as it stands; `what` is the whole sentence.
    pub fn invalid(what: impl Into<String>) -> Error {
        Error::new(Kind::Invalid, what)
    }

    pub fn unsupported(what: impl Into<String>) -> Error {
        Error::new(Kind::Unsupported, what)
    }

    /// Where it happened: device, object, offset. Later calls put the larger place in front.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Error {
        let inner = &mut self.0;
        inner.at = if inner.at.is_empty() { place.to_string() } else { format!("{place}: {}", inner.at) };
        self
    }

    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        self.0.source = Some(source.into());
        self
    }

    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Why, as [`Error::because`] was told it; what lies behind that is its `source()`, or its own `cause()`.
    pub fn cause(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        self.0.source.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, doing, at, source } = &*self.0;
        f.write_str(doing)?;
        if !at.is_empty() {
            write!(f, " {at}")?;
        }
        // For these two the words of the request already say what is wrong.
        if !matches!(kind, Kind::Invalid | Kind::Unsupported) {
            write!(f, ": {}", kind.phrase())?;
        }
        let mut next = source.as_deref().map(|e| e as &(dyn std::error::Error + 'static));
        let mut said = String::new();
        while let Some(cause) = next {
            let text = cause.to_string();
            // Errors of other crates may hold their cause in their own words too.
            if !said.ends_with(&text) {
                write!(f, ": {text}")?;
            }
            said = text;
            next = cause.source();
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({self})", self.0.kind)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_reads_as_one_line_from_request_to_cause() {
        let cause = std::io::Error::other("device gone");
        let e = Error::new(Kind::Checksum, "read block").at("object 1f").at("tank/vol").because(cause);
        assert_eq!(e.to_string(), "read block tank/vol: object 1f: no copy passed its checksum: device gone");
        assert_eq!(
            Error::invalid("volsize must be a multiple of 16K").to_string(),
            "volsize must be a multiple of 16K"
        );
    }

    /// As programs do that print chains.
    fn chain(e: &dyn std::error::Error) -> String {
        std::iter::successors(Some(e), |e| e.source()).map(ToString::to_string).collect::<Vec<_>>().join(": ")
    }

    /// An error of another crate, with its cause in `source()`, and in its own words too or not.
    #[derive(Debug)]
    struct Foreign(bool, std::io::Error);

    impl fmt::Display for Foreign {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            if self.0 { write!(f, "parse key: {}", self.1) } else { f.write_str("parse key") }
        }
    }

    impl std::error::Error for Foreign {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.1)
        }
    }

    /// Both `Display` and `source()` gave the cause once, so that a chain of three had seven parts.
    #[test]
    fn every_cause_is_said_once_by_the_line_and_by_the_chain() {
        let io = || std::io::Error::other("device gone");
        for foreign in [Foreign(false, io()), Foreign(true, io())] {
            let inner = Error::new(Kind::Io, "read label").at("/d/a").because(foreign);
            let outer = Error::new(Kind::NotFound, "import 'tank'").because(inner);
            let line = "import 'tank': not found: read label /d/a: I/O error: parse key: device gone";
            assert_eq!(outer.to_string(), line);
            assert_eq!(chain(&outer), line);
        }
        let plain = Error::new(Kind::Io, "read label").because(io());
        let cause: &(dyn std::error::Error + 'static) = plain.cause().expect("it was given one");
        assert!(cause.downcast_ref::<std::io::Error>().is_some());
    }
}
