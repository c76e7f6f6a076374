//! The appliance: carries out what the API can ask, over pools that it owns.
//!
//! ```text
//!   api::Call ──▶ service ──┬─ pools       come and go; what is said of them; which there are: home
//!                           ├─ datasets    made, set, told of; snapshots, clones, holds; another block size
//!                           ├─ shares      datasets as projects, file systems and LUNs
//!                           ├─ schedules   snapshots that are taken by themselves
//!                           ├─ san         targets, initiators, which client sees which LUN ◀── iscsi::Server
//!                           ├─ mounts      file systems in the machine's own tree ◀── fuse::Mount
//!                           ├─ services    what serves clients: off, on, where; which volumes NBD offers ◀── nbd::Server
//!                           ├─ analytics   statistics that are kept over time, worksheets ◀── analytics::Recorder
//!                           ├─ alerts      what a person should know of, and where it is sent ◀── alerts::Outbox
//!                           ├─ doctor      what is set wrong: facts of all of these, judged ◀── doctor::examine
//!                           └─ tunables  configuration  memory
//! ```
//!
//! What clients read and write does not come through here: a client is given a volume ([`disk`]), and has it from then on.
//!
//! A pool is opened when it is first needed; to answer questions alone it is opened read-only, and opened again for
//! writing when something is to be changed. A daemon opens all of them at once and keeps them.
//!
//! Every change of a pool is recorded in its history as the command line that asked for it.
//!
//! Invariants: one process has a home's pools, and holds its lock; a volume that a client uses is not destroyed, and its
//! pool is not given up, unless force is asked for, which ends the clients first.
//!
//! Not here: how requests arrive (`daemon`), and how pools work (`engine`).

mod alerts;
mod analytics;
mod appliance;
mod config;
mod configuration;
mod datasets;
mod doctor;
mod error_text;
mod home;
mod in_use;
mod memory;
mod mounts;
mod pools;
mod san;
mod schedules;
mod service;
mod services;
mod shares;
mod tunables;
mod turns;
mod values;

pub use appliance::Appliance;
pub use config::Config;
pub use configuration::{USERS, USERS_KEY};
pub use home::{Home, HomeLock, Known, KnownMount};
pub use memory::dirty_data_max;
pub use san::{Credentials, InitiatorRecord, Iscsi, Lu, Proof, SanView, TargetRecord};

pub use services::nbd::Exported;
pub use services::offers::Offers;
pub use services::{Doors, Front};
pub use shares::LunFacts;
