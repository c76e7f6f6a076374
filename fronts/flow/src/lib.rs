//! What the fronts share: bytes on their way in, bytes on their way out, and the memory that both may hold.
//!
//! ```text
//!   socket ──▶ Inbox ──▶ requests ──▶ admitted by a Lease of the Budget ──▶ work ──▶ Outbox ──▶ socket
//!                                            └────────── the Load, given back when the reply has left ──┘
//! ```
//!
//! Not here: any protocol.

mod budget;
mod inbox;
mod outbox;

pub use budget::{Budget, Lease};
pub use inbox::Inbox;
pub use outbox::{Load, Outbox};
