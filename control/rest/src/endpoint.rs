//! An endpoint: its face, and the function that answers it.

use crate::fault::Outcome;
use crate::server::{Asked, Rest};
use api::http::{Declared, Face, Method, Need, Shape};
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;

pub use api::http::Answer as Reply;

pub type Run = fn(Arc<Rest>, Asked) -> Pin<Box<dyn Future<Output = Outcome> + Send>>;

pub struct Endpoint {
    pub face: Face,
    /// The request that it means, see [`Asked::request`].
    pub declared: Option<&'static Declared>,
    pub run: Run,
}

impl Deref for Endpoint {
    type Target = Face;

    fn deref(&self) -> &Face {
        &self.face
    }
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

/// Answers a face that only shows.
pub const fn shows(face: &Face, run: Run) -> Endpoint {
    Endpoint { face: *face, declared: None, run }
}

/// Answers a declared request by a handler.
pub const fn handles(declared: &'static Declared, run: Run) -> Endpoint {
    Endpoint { face: declared.face, declared: Some(declared), run }
}

/// Answers a declared request that is plain: it is asked, and its reply is told.
pub const fn plain(declared: &'static Declared) -> Endpoint {
    handles(declared, run!(crate::server::ask_plainly))
}

const fn endpoint(
    method: Method,
    path: &'static str,
    about: &'static str,
    reply: Reply,
    run: Run,
) -> Endpoint {
    Endpoint { face: Face::new(method, path, about, reply), declared: None, run }
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
        self.face.need = need;
        self
    }

    pub const fn takes(mut self, body: &'static Shape) -> Endpoint {
        self.face.body = Some(body);
        self
    }

    pub const fn answers(mut self, status: u16) -> Endpoint {
        self.face.status = status;
        self
    }
}
