//! The appliance over HTTPS: its REST dialect, metrics, and the permission check before both.
//!
//! ```text
//!   TCP ─▶ TLS ─┐                                ┌─ resources::*   (each endpoint's function)
//!   Unix socket ┴─▶ hyper ─▶ admit ─▶ carry_out ─┤                       │ api::Request
//!                            │   │       │       └─ audit                ▼
//!                            │   │       └ body, by the endpoint's Shape  api::Service, on the engine's loops
//!                            │   └ route: the table
//!                            └ who: session, token, password; the peer of the Unix socket
//! ```
//!
//! Each endpoint is said once: a request of the appliance where it is declared, see [`mod@api::declared`]; what is
//! about users, sessions and the API itself in the table of its resource, with its method, path, what it needs, and
//! what its body and its answer hold. Routing, the permission check, the check of bodies, the redaction of secrets in
//! the audit log and the OpenAPI document come from there, see [`table`] and [`openapi`].
//!
//! Before anything else, a request for the web page is answered: see `page`.
//!
//! hyper runs on a thread of its own with tokio, beside the engine's loops, and reaches them through
//! [`api::Service`] alone; passwords are hashed on threads of tokio's, a few at a time.
//!
//! Invariants: nothing is answered before it is known who asks, but that, and the files of the page; a body is read only
//! of a user who may send it, to a limit; every change is in the audit log before it is made and again with what came of it;
//! a secret is told once or never.
//!
//! Not here: who may do what (`access`), and how anything is done (`appliance`).

mod certificate;
mod crowd;
mod drain;
mod endpoint;
mod fault;
mod listen;
mod metrics;
pub mod openapi;
mod page;
mod path;
mod resources;
mod route;
mod server;
pub mod table;
mod who;

pub use api::http::{Arg, Args, Field, Kind, Method, Need, Shape};
pub use certificate::Certificate;
pub use endpoint::{Endpoint, Reply};
pub use fault::{Done, Fault, Outcome};
pub use listen::{Door, Serving, serve};
pub use resources::LISTEN;
pub use server::{About, Admitted, Answer, Asked, Rest};
pub use who::From;
