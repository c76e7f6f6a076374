//! What the fronts share: clients taken in and watched over, bytes on their way in and out, and the memory that both may
//! hold.
//!
//! ```text
//!   socket ──▶ Inbox ──▶ requests ──▶ admitted by a Lease of the Budget ──▶ work ──▶ Outbox ──▶ socket
//!                                            └────────── the Load, given back when the reply has left ──┘
//! ```
//!
//! The [`Reception`] takes clients in and runs their sessions; which are taken in is the [`Crowd`]'s to say. A session
//! moves in [`Turns`].
//!
//! Not here: any protocol.

mod accept;
mod budget;
mod crowd;
mod inbox;
mod outbox;
mod piece;
mod reception;
mod turns;
mod vitals;

pub use budget::{Budget, Lease};
pub use crowd::{Crowd, Places, host};
pub use inbox::Inbox;
pub use outbox::{Load, Outbox, Sent};
pub use piece::{Extent, Piece, Reading};
pub use reception::{Arrival, Client, Clients, Guest, Reception};
pub use turns::{Turn, Turns, take_turns};
pub use vitals::{Debts, Vitals};
