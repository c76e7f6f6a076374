//! The house: every crate of ours on its floor, and what cargo knows about the crates.
//!
//! [`FLOORS`] is the one place where the order is said. `layers` holds the arrows against it, `tidy` asks it which
//! plane a crate belongs to, and a crate that is not in it does not pass.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::{Failure, root};

/// One floor: its name, and its crates in the order in which they may use one another, the used before the user.
pub struct Floor {
    pub name: &'static str,
    pub plane: Plane,
    pub crates: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plane {
    Engine,
    Fronts,
    /// Simulated worlds: only tools may use them, and all tests.
    Lab,
    Tools,
    Control,
    /// Helps us and is part of no program that users run; may use anything, and only tests may use it.
    Helpers,
}

/// From the ground up. A crate may use what stands on lower floors and what stands before it on its own.
pub const FLOORS: &[Floor] = &[
    floor("L0", Plane::Engine, &["units", "ondisk", "codec", "tunables"]),
    floor("L1", Plane::Engine, &["world", "linux", "probe"]),
    floor("L2", Plane::Engine, &["vdev", "metaslab", "arc", "l2arc", "zio"]),
    floor("L3", Plane::Engine, &["txg", "dmu", "zap"]),
    floor("L4", Plane::Engine, &["dsl"]),
    // The pool stands above what fills its datasets: it makes the content of new ones.
    floor("L5", Plane::Engine, &["zil", "zpl", "zvol"]),
    floor("L6", Plane::Engine, &["pool"]),
    floor("fronts", Plane::Fronts, &["flow", "tls", "nbd", "scsi", "iscsi", "disk", "fuse"]),
    floor(
        "control",
        Plane::Control,
        &[
            "doctor",
            "store",
            "api",
            "access",
            "alerts",
            "metrics",
            "analytics",
            "appliance",
            "client",
            "web",
            "rest",
        ],
    ),
    // Modelled hardware: tests of every floor run on it, and tools ask what a workload would do on it. What serves pools
    // never does.
    floor("lab", Plane::Lab, &["sim"]),
    // These are tools and also subcommands of the program, so the program may use them; they look at the pool
    // through the appliance, as the fronts' users do.
    floor("tools", Plane::Tools, &["inspect", "rescue", "workload", "trace", "hits", "bench", "lab"]),
    floor("program", Plane::Control, &["cli", "shell", "cenote"]),
    floor("helpers", Plane::Helpers, &["interop", "torture", "fuzz", "xtask"]),
];

/// The rooms of a crate of the control plane, the used before the user: modules, those inside them included that have no
/// line of their own. `layers` checks the arrows between the files of the crate against it.
pub const ROOMS: &[(&str, &[&str])] = &[("appliance", APPLIANCE)];

const APPLIANCE: &[&str] = &[
    // What all rooms speak of.
    "home",
    "config",
    "values",
    "error_text",
    "memory",
    // What each room keeps, which knows nothing of the appliance.
    "pools::open_elsewhere",
    "pools::host",
    "pools::features",
    "pools::vdevs",
    "tunables::kept",
    "shares::lun_facts",
    "shares::lun_index",
    "shares::masks",
    "pools::seen",
    "pools::state",
    "alerts::state",
    "pools::event_ring",
    "datasets::migration::state",
    "datasets::quotas",
    "mounts::temporary",
    "mounts::state",
    "san::names",
    "san::records",
    "san::fc",
    "san::check",
    "shares::claims",
    "san::view",
    "san::interfaces",
    "san::places",
    "san::lans",
    "san::reservations",
    "san::directory",
    "san::iscsi",
    "san::state",
    "alerts::records",
    "analytics::exporting",
    "analytics::histograms",
    "analytics::records",
    "analytics::state",
    "analytics::traces",
    "schedules::moments",
    "schedules::records",
    "schedules::state",
    "configuration::state",
    "services::offers",
    "services::state",
    // It has all of these; what is asked of a room is on top of it.
    "appliance",
    "tunables",
    "pools",
    "in_use",
    "mounts",
    "datasets",
    "schedules",
    "analytics",
    "alerts",
    "shares",
    "san",
    "services",
    "configuration",
    "doctor",
    "service",
];

/// The rooms of a crate, if it has an order of them.
pub fn rooms(name: &str) -> Option<&'static [&'static str]> {
    ROOMS.iter().find(|(of, _)| *of == name).map(|(_, rooms)| *rooms)
}

const fn floor(name: &'static str, plane: Plane, crates: &'static [&'static str]) -> Floor {
    Floor { name, plane, crates }
}

/// Where a crate stands: the floor's number and the place on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub floor: usize,
    pub position: usize,
}

/// Where `name` stands, if it stands anywhere.
pub fn place(name: &str) -> Option<Place> {
    FLOORS.iter().enumerate().find_map(|(floor, f)| {
        f.crates.iter().position(|c| *c == name).map(|position| Place { floor, position })
    })
}

pub fn plane(name: &str) -> Option<Plane> {
    place(name).map(|place| FLOORS[place.floor].plane)
}

/// A crate of the workspace, as its manifest states it.
#[derive(Debug)]
pub struct Member {
    pub name: String,
    pub directory: PathBuf,
    pub dependencies: Vec<Dependency>,
    /// The root files of its targets: the library, the programs, the tests.
    pub roots: Vec<PathBuf>,
}

#[derive(Debug)]
pub struct Dependency {
    pub name: String,
    pub development: bool,
    /// Whether it is another member of the workspace.
    pub ours: bool,
}

/// Asks cargo for the members of the workspace.
pub fn members() -> Result<Vec<Member>, Failure> {
    let metadata = metadata(&["--no-deps"])?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    Ok(packages.iter().map(member).collect())
}

/// Runs `cargo metadata` with these arguments more.
pub fn metadata(arguments: &[&str]) -> Result<Value, Failure> {
    let output = Command::new(cargo())
        .current_dir(root())
        .args(["metadata", "--format-version", "1"])
        .args(arguments)
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The cargo that started us, so that a chosen toolchain stays chosen.
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

fn member(package: &Value) -> Member {
    let manifest = PathBuf::from(text(&package["manifest_path"]));
    Member {
        name: text(&package["name"]),
        directory: manifest.parent().map(PathBuf::from).unwrap_or_default(),
        dependencies: list(&package["dependencies"]).iter().map(dependency).collect(),
        roots: list(&package["targets"]).iter().map(|t| PathBuf::from(text(&t["src_path"]))).collect(),
    }
}

fn dependency(value: &Value) -> Dependency {
    Dependency {
        name: text(&value["name"]),
        development: value["kind"] == "dev",
        ours: value["source"].is_null(),
    }
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
