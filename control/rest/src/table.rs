//! The table of endpoints: everything that can be asked over HTTP, each said once.
//!
//! Paths are templates: `/api/storage/v1/pools/{pool}`. Where a template says `v1` a request may say `v2`: answers differ
//! in their hrefs alone, since they are in the form that scripts like best in both.

use crate::fault::Outcome;
use crate::server::{Asked, Rest};
use crate::shape::Shape;
use crate::{metrics, resources};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

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
            // Whoever serves it leaves the body away.
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

/// What somebody must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// To be known is enough: for what is about the session that asks.
    Login,
    /// To have any role or authorization, or to be the user of the path: for whatever only shows.
    Look,
    Right(&'static str, &'static str),
    /// Nobody needs a right for what is their own: the user of the path.
    RightOrSelf(&'static str, &'static str),
    /// Even with every right it is for the user of the path alone, and root.
    SelfAlone,
}

/// What is answered, by the name under which it stands.
#[derive(Clone, Copy, Debug)]
pub enum Reply {
    Nothing,
    One(&'static str, &'static Shape),
    Several(&'static str, &'static Shape),
    /// Not JSON.
    Text,
    /// JSON whose form is told elsewhere.
    Document,
}

pub type Run = fn(Arc<Rest>, Asked) -> Pin<Box<dyn Future<Output = Outcome> + Send>>;

pub struct Endpoint {
    pub method: Method,
    pub path: &'static str,
    pub about: &'static str,
    pub need: Need,
    pub body: Option<&'static Shape>,
    pub reply: Reply,
    pub status: u16,
    pub run: Run,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method.word(), self.path)
    }
}

/// An async function as a [`Run`].
macro_rules! run {
    ($function:expr) => {
        |rest, asked| Box::pin($function(rest, asked))
    };
}
pub(crate) use run;

const fn endpoint(
    method: Method,
    path: &'static str,
    about: &'static str,
    reply: Reply,
    run: Run,
) -> Endpoint {
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
    Endpoint { method, path, about, need, body: None, reply, status, run }
}

pub const fn get(path: &'static str, about: &'static str, reply: Reply, run: Run) -> Endpoint {
    endpoint(Method::Get, path, about, reply, run)
}

pub const fn post(path: &'static str, about: &'static str, reply: Reply, run: Run) -> Endpoint {
    endpoint(Method::Post, path, about, reply, run)
}

pub const fn put(path: &'static str, about: &'static str, reply: Reply, run: Run) -> Endpoint {
    endpoint(Method::Put, path, about, reply, run)
}

pub const fn delete(path: &'static str, about: &'static str, run: Run) -> Endpoint {
    endpoint(Method::Delete, path, about, Reply::Nothing, run)
}

impl Endpoint {
    pub const fn needs(mut self, need: Need) -> Endpoint {
        self.need = need;
        self
    }

    pub const fn takes(mut self, body: &'static Shape) -> Endpoint {
        self.body = Some(body);
        self
    }

    pub const fn answers(mut self, status: u16) -> Endpoint {
        self.status = status;
        self
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

static METRICS: &[Endpoint] =
    &[get("/metrics", "Counters and gauges, for Prometheus", Reply::Text, run!(metrics::answer))];

pub fn all() -> impl Iterator<Item = &'static Endpoint> {
    resources::TABLES.iter().copied().chain([METRICS]).flatten()
}
