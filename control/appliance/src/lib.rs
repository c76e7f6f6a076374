//! The appliance: carries out what the API can ask, over pools that it owns.
//!
//! ```text
//!   api::Call ──▶ Appliance ──┬─ create  add  remove  import  leave   pools come and go      ── home: which there are,
//!                             ├─ pool_info  pool_set  history    what is said of them      remembered between runs
//!                             ├─ query  datasets  settings       datasets
//!                             ├─ snapshots                     snapshots, clones, holds
//!                             ├─ automatic                     snapshots that are taken by themselves
//!                             ├─ shares  updates               datasets as projects, file systems and LUNs
//!                             ├─ san ◀─ configuration          targets, initiators, who sees which LUN
//!                             ├─ san_directory ◀── iscsi::Server   LUNs, while clients use them  ── interfaces
//!                             ├─ mounts ◀── fuse::Mount          file systems in the machine's own tree
//!                             ├─ exports ◀── nbd::Server         volumes, while clients use them ── offers: which, where
//!                             ├─ services                      what serves clients: off, on, and where
//!                             └─ migration ── served           another block size, while clients use them
//! ```
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

mod add;
mod automatic;
mod clear;
mod configuration;
mod create;
mod datasets;
mod devices;
mod exports;
mod features;
mod handle_device;
mod history;
mod home;
mod host;
mod import;
mod importable;
mod interfaces;
mod journal;
mod labelclear;
mod leave;
mod lun;
mod lun_unit;
mod memory;
mod migration;
mod mounts;
mod offers;
mod owner;
mod phrase;
mod pool_info;
mod pool_set;
mod pools;
mod projects_of_files;
mod query;
mod quotas;
mod remove;
mod san;
mod san_directory;
mod scrub;
mod served;
mod service;
mod services;
mod settings;
mod shares;
mod snapshots;
mod tunables;
mod updates;
mod usage;
mod users;
mod values;
mod vdevs;
mod volumes;

pub use configuration::{USERS, USERS_KEY};
pub use exports::{Exported, Held};
pub use home::{Home, HomeLock, Known};
pub use lun::Lun;
pub use lun_unit::LunUnit;
pub use offers::Offers;
pub use san::{Credentials, InitiatorRecord, Lu, Proof, SanView, TargetRecord};
pub use san_directory::Iscsi;
pub use served::Served;
pub use service::{Appliance, Config};
pub use services::{Doors, Front};
pub use shares::LunFacts;
