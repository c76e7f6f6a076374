//! What the fronts share: clients taken in and watched over, bytes on their way in and out, and the memory that both may
//! hold.
//!
//! ```text
//!   socket ──▶ Inbox ──▶ requests ──▶ admitted by a Lease of the Budget ──▶ work ──▶ Outbox ──▶ socket
//!                                            └────────── the Load, given back when the reply has left ──┘
//! ```
//!
//! Which clients are taken in at all is the [`Crowd`]'s to say.
//!
//! Not here: any protocol.

mod accept;
mod budget;
mod crowd;
mod inbox;
mod outbox;
mod piece;
mod vitals;

pub use accept::accept;
pub use budget::{Budget, Lease};
pub use crowd::{Crowd, Entry, Places, host};
pub use inbox::Inbox;
pub use outbox::{Load, Outbox};
pub use piece::{Extent, Piece};
pub use vitals::Vitals;
