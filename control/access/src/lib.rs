//! Who may do what: users, their roles, how they prove who they are, and the record of what they did.
//!
//! ```text
//!   name, password ──▶ begin ──▶ Attempt::check ──▶ finish ──▶ Identity ──▶ open_session ──▶ a secret for the client
//!                       │         (Argon2id, slow,    │                                              │
//!                     Throttle     without a lock)    refund                  who_is ◀───────────────┘  or a token
//!
//!   User ── roles ──▶ Role ── authorizations ──┐
//!     └────────────── exceptions ──────────────┴─▶ Authorization: scope, filters, permissions ──▶ may(user, Needed)
//! ```
//!
//! The model is the appliance's: an authorization lies in a scope, holds for what its filters name (`*` for all), and
//! gives permissions; a role is a set of them; a user has roles, and exceptions of its own. `root` may do everything and
//! cannot be removed.
//!
//! Invariants:
//! - Nobody learns whether an account exists: an unknown name, a locked account and a wrong password cost the same work
//!   and get the same answer.
//! - Secrets of clients are kept as digests, passwords as Argon2id; neither is ever printed, see [`Secret`].
//! - Nobody gives away what they do not have: see [`State::covers`].
//! - A change is stored before it holds.
//!
//! Pure but for [`Store`]: time and randomness are passed in. Not here: HTTP (`rest`), and what the permissions guard
//! (the table of endpoints there).

mod audit;
mod authorization;
mod error;
mod gate;
mod password;
mod people;
mod refusals;
mod sessions;
mod store;
mod throttle;
mod whole;

pub use api::Secret;
pub use audit::Record;
pub use authorization::{Authorization, Needed, SCOPES, Scope, scope};
pub use error::{AccessError, Kind, Result};
pub use gate::{Access, Attempt, Checked, Denied, Identity, Now, Opened, is_full};
pub use password::Password;
pub use people::{BASIC, Holder, ROOT, Role, State, Token, User, UserChange};
pub use store::{Entropy, Files, Store};
