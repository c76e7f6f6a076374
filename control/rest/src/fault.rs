//! What is answered when a request is not carried out: the appliance's fault, with its names and codes.

use access::AccessError;
use api::http::Wrong;
use api::{ApiError, ErrorKind};
use serde_json::{Value, json};

/// What a request came to.
pub type Outcome = Result<Done, Fault>;

/// What is answered: the body, and headers beside the usual.
#[derive(Clone, Debug, Default)]
pub struct Done {
    pub body: Value,
    pub headers: Vec<(&'static str, String)>,
}

impl From<Value> for Done {
    fn from(body: Value) -> Done {
        Done { body, headers: Vec::new() }
    }
}

/// `{"fault": {"message": ..., "code": 404, "name": "ERR_NOT_FOUND"}}`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub code: u16,
    pub name: &'static str,
    pub message: String,
    /// Seconds after which to try again.
    pub retry_after: Option<u64>,
}

impl Fault {
    fn new(code: u16, name: &'static str, message: impl Into<String>) -> Fault {
        Fault { code, name, message: message.into(), retry_after: None }
    }

    pub fn invalid(message: impl Into<String>) -> Fault {
        Fault::new(400, "ERR_INVALID_ARG", message)
    }

    pub fn unknown_argument(name: &str) -> Fault {
        Fault::new(400, "ERR_UNKNOWN_ARG", format!("there is no property '{name}' here"))
    }

    pub fn missing_argument(name: &str) -> Fault {
        Fault::new(400, "ERR_MISSING_ARG", format!("property '{name}' is missing"))
    }

    /// The one answer to everybody who is not known, whatever the reason.
    pub fn unauthorized() -> Fault {
        Fault::new(
            401,
            "ERR_UNAUTHORIZED",
            "log in first: no user, or not the password, or the session has ended",
        )
    }

    pub fn later(seconds: u64) -> Fault {
        let mut fault = Fault::new(429, "ERR_BUSY", format!("too many attempts: try again in {seconds} s"));
        fault.retry_after = Some(seconds);
        fault
    }

    pub fn denied(message: impl Into<String>) -> Fault {
        Fault::new(403, "ERR_DENIED", message)
    }

    pub fn not_found(message: impl Into<String>) -> Fault {
        Fault::new(404, "ERR_NOT_FOUND", message)
    }

    pub fn method() -> Fault {
        Fault::new(405, "ERR_NOT_ALLOWED", "this cannot be done to that")
    }

    pub fn confirm() -> Fault {
        Fault::new(409, "ERR_CONFIRM_REQUIRED", "this destroys data: ask again with ?confirm=true")
    }

    pub fn too_large(max: usize) -> Fault {
        Fault::new(413, "ERR_OVER_LIMIT", format!("a body has at most {max} bytes"))
    }

    pub fn media() -> Fault {
        Fault::new(415, "ERR_UNSUPPORTED_MEDIA", "bodies are application/json")
    }

    pub fn busy(message: impl Into<String>) -> Fault {
        Fault::new(503, "ERR_BUSY", message)
    }

    pub fn internal(message: impl Into<String>) -> Fault {
        Fault::new(500, "ERR_INTERNAL", message)
    }

    /// A change that cannot be put into the audit log is not made.
    pub fn unrecorded(e: &std::io::Error) -> Fault {
        let why = e.to_string();
        let why = why.split(" (os error ").next().unwrap_or_default();
        let (code, name) = if access::is_full(e) { (507, "ERR_NO_SPACE") } else { (500, "ERR_INTERNAL") };
        Fault::new(code, name, format!("the audit log cannot be written, so nothing is changed: {why}"))
    }

    pub fn body(&self) -> Value {
        json!({ "fault": { "message": self.message, "code": self.code, "name": self.name } })
    }
}

impl From<Wrong> for Fault {
    fn from(wrong: Wrong) -> Fault {
        match wrong {
            Wrong::Invalid(why) => Fault::invalid(why),
            Wrong::Unknown(name) => Fault::unknown_argument(&name),
            Wrong::Missing(name) => Fault::missing_argument(name),
        }
    }
}

impl From<ApiError> for Fault {
    fn from(e: ApiError) -> Fault {
        let (code, name) = match e.kind {
            ErrorKind::Invalid => (400, "ERR_INVALID_ARG"),
            ErrorKind::NotFound => (404, "ERR_NOT_FOUND"),
            ErrorKind::Exists => (409, "ERR_OBJECT_EXISTS"),
            ErrorKind::ReadOnly | ErrorKind::Encrypted => (403, "ERR_DENIED"),
            // A client that comes again may find it free.
            ErrorKind::Busy => (409, "ERR_STATE_CHANGED"),
            ErrorKind::Unsupported => (501, "ERR_NOT_IMPLEMENTED"),
            ErrorKind::NoSpace => (507, "ERR_NO_SPACE"),
            ErrorKind::Cancelled => (503, "ERR_BUSY"),
            ErrorKind::Damaged | ErrorKind::Io => (500, "ERR_INTERNAL"),
        };
        Fault::new(code, name, e.message)
    }
}

impl From<AccessError> for Fault {
    fn from(e: AccessError) -> Fault {
        let (code, name) = match e.kind {
            access::Kind::NotFound => (404, "ERR_NOT_FOUND"),
            access::Kind::Exists => (409, "ERR_OBJECT_EXISTS"),
            access::Kind::Invalid => (400, "ERR_INVALID_ARG"),
            access::Kind::Denied => (403, "ERR_DENIED"),
            access::Kind::Store => (500, "ERR_INTERNAL"),
            access::Kind::NoSpace => (507, "ERR_NO_SPACE"),
        };
        Fault::new(code, name, e.message)
    }
}

impl From<access::Denied> for Fault {
    fn from(denied: access::Denied) -> Fault {
        match denied {
            access::Denied::Wrong => Fault::unauthorized(),
            access::Denied::Later(seconds) => Fault::later(seconds),
        }
    }
}
