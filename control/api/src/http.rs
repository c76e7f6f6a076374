//! A request over HTTP, declared once: from here come the routes and checks of the server, the OpenAPI document, and
//! what a client asks.
//!
//! ```text
//!                          ┌ face: method, path, permission, shapes ──▶ rest: routes, checks, audit; OpenAPI
//!   declared! { ... } ─────┤ asked: path and body ──▶ Request ────────▶ rest: what a handler asks of the appliance
//!                          ├ sent:  Request ──▶ path and body ────────▶ client: what is asked of an appliance elsewhere
//!                          └ said:  words ──▶ Request ────────────────▶ shell: words of its contexts, and their help
//!
//!   shaped! { ... } ──── a value of `api` and its fields: told by the server, taken by the client
//! ```
//!
//! A declaration names the variant of [`crate::Request`] once, as a pattern that is an expression too: it takes a request
//! apart to send it, and builds it from what was received. The fields of a body are the variables of that pattern. So both
//! directions agree by construction, and a test sends a sample of each through both.
//!
//! A declaration that is *plain* has no code of its own in the server: the request is asked, and its reply is told. Others
//! have a handler there, which finds, permits and shows, and asks what the declaration says.
//!
//! The declarations themselves are in [`mod@crate::declared`].
//!
//! Not here: who has a permission (`access`), and sockets (`rest`, `client`).

pub mod body;
pub mod declare;
mod path;
mod shape;
mod spoken;
mod value;

pub use body::{Arg, Args, spelt};
pub use declare::{Declared, Given, Sent, Shaped};
pub use path::{encode, filled};
pub use shape::{Field, Kind, Shape, may, must};
pub use spoken::Spoken;
pub use value::{Held, Stars, Word, date, seconds};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Put,
    Delete,
}

impl Method {
    pub fn parse(word: &str) -> Option<Method> {
        Some(match word {
            // The server leaves the body away.
            "GET" | "HEAD" => Method::Get,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "DELETE" => Method::Delete,
            _ => return None,
        })
    }

    pub fn word(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
        }
    }
}

/// What a user must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// To be known is enough: for what is about the session that asks.
    Login,
    /// To have any role or authorization, or to be the user of the path: for whatever only shows.
    Look,
    Right(&'static str, &'static str),
    /// No user needs a right for what is their own: the user of the path.
    RightOrSelf(&'static str, &'static str),
    /// Even with every right it is for the user of the path alone, and root.
    SelfAlone,
}

/// What is answered, by the name under which it stands.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    Nothing,
    One(&'static str, &'static Shape),
    Several(&'static str, &'static Shape),
    /// Not JSON.
    Text,
    /// JSON whose form is told elsewhere.
    Document,
}

/// Why what was received is no request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    Invalid(String),
    Unknown(String),
    Missing(&'static str),
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Wrong::Invalid(why) => f.write_str(why),
            Wrong::Unknown(name) => write!(f, "'{name}' is not known"),
            Wrong::Missing(name) => write!(f, "'{name}' is missing"),
        }
    }
}

/// All of an endpoint but what it does. Paths are templates: `/api/storage/v1/pools/{pool}`.
#[derive(Clone, Copy, Debug)]
pub struct Face {
    pub method: Method,
    pub path: &'static str,
    pub about: &'static str,
    pub need: Need,
    pub body: Option<&'static Shape>,
    pub reply: Answer,
    pub status: u16,
}

impl Face {
    pub const fn new(method: Method, path: &'static str, about: &'static str, reply: Answer) -> Face {
        let status = match method {
            Method::Get => 200,
            Method::Post => 201,
            Method::Put => 202,
            Method::Delete => 204,
        };
        // What changes something says for itself what it needs; what shows something is for those who may look.
        let need = match method {
            Method::Get => Need::Look,
            Method::Post | Method::Put | Method::Delete => Need::Login,
        };
        Face { method, path, about, need, body: None, reply, status }
    }

    pub const fn get(path: &'static str, about: &'static str, reply: Answer) -> Face {
        Face::new(Method::Get, path, about, reply)
    }

    /// The service of its path: `storage`; empty where the path is of none.
    pub fn service(&self) -> &'static str {
        let first = self.path.strip_prefix("/api/").and_then(|rest| rest.split('/').next());
        first.filter(|name| !name.contains('.')).unwrap_or("")
    }

    /// Whether it changes something, so that it leaves a record.
    pub fn is_change(&self) -> bool {
        self.method != Method::Get
    }
}
