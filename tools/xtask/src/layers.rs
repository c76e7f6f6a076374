//! Arrows point down: a crate uses only lower floors, and on its own floor only who stands before it.
//!
//! ```text
//!   program   cli  cenote
//!   tools     inspect  workload  bench                an arrow goes from the user to the used:
//!   control   api  appliance  client                  cenote ──▶ nbd    is down, and fine
//!   fronts    nbd                                     zio    ──▶ dmu    is up, and refused
//!   L6..L0    pool … units
//! ```
//!
//! The helpers stand on top of all: they may use anything, and nothing but tests may use them. The lab is in between: its
//! simulated hardware is for tests on every floor, and for tools that are asked what a workload would do on it.

use crate::house::{self, Dependency, FLOORS, Member, Plane};
use crate::{Failure, Findings};

pub fn check() -> Result<Findings, Failure> {
    let members = house::members()?;
    let mut findings = findings(&members);
    findings.extend(crate::circles::check(&members)?);
    Ok(findings)
}

fn findings(members: &[Member]) -> Findings {
    members.iter().flat_map(of_member).collect()
}

fn of_member(member: &Member) -> Findings {
    if house::place(&member.name).is_none() {
        return vec![format!("{} has no floor: give it a place in the house of tools/xtask", member.name)];
    }
    let ours = member.dependencies.iter().filter(|dependency| dependency.ours);
    ours.filter_map(|dependency| objection(&member.name, dependency)).collect()
}

/// Why this arrow may not be, if it may not.
fn objection(user: &str, used: &Dependency) -> Option<String> {
    let (from, to) = (house::place(user)?, house::place(&used.name)?);
    let plane = house::plane(&used.name);
    let is_helper = plane == Some(Plane::Helpers);
    let is_for_tests = is_helper || plane == Some(Plane::Lab);
    let is_control = house::plane(user) == Some(Plane::Control);
    if house::plane(user) == Some(Plane::Helpers) || (is_for_tests && used.development) {
        return None;
    }
    if to < from && !(plane == Some(Plane::Lab) && is_control) {
        return None;
    }
    let arrow =
        format!("{user} ({}) uses {} ({})", FLOORS[from.floor].name, used.name, FLOORS[to.floor].name);
    Some(if is_helper {
        format!("{arrow}: only tests may, as a dev-dependency")
    } else if plane == Some(Plane::Lab) {
        format!("{arrow}: only tools and tests may")
    } else {
        format!("{arrow}: the arrow points up")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crate_using(name: &str, used: &str, development: bool) -> Member {
        let dependencies = vec![Dependency { name: used.into(), development, ours: true }];
        Member { name: name.into(), directory: "".into(), dependencies, roots: Vec::new() }
    }

    fn check(name: &str, used: &str, development: bool) -> Findings {
        findings(&[crate_using(name, used, development)])
    }

    #[test]
    fn an_arrow_down_is_fine() {
        assert!(check("pool", "units", false).is_empty());
        assert!(check("zio", "vdev", false).is_empty(), "it stands before zio on the same floor");
        assert!(check("cenote", "inspect", false).is_empty());
    }

    #[test]
    fn an_arrow_up_is_named() {
        assert_eq!(check("zio", "dmu", false), ["zio (L2) uses dmu (L3): the arrow points up"]);
        assert_eq!(check("vdev", "zio", true), ["vdev (L2) uses zio (L2): the arrow points up"]);
    }

    #[test]
    fn helpers_are_for_tests() {
        assert!(check("vdev", "sim", true).is_empty());
        assert_eq!(
            check("vdev", "interop", false),
            ["vdev (L2) uses interop (helpers): only tests may, as a dev-dependency"]
        );
        assert!(check("interop", "cenote", false).is_empty());
    }

    #[test]
    fn the_lab_is_for_tests_and_tools() {
        assert!(check("vdev", "sim", true).is_empty() && check("bench", "sim", false).is_empty());
        assert_eq!(check("vdev", "sim", false), ["vdev (L2) uses sim (lab): only tools and tests may"]);
        assert_eq!(
            check("cenote", "sim", false),
            ["cenote (program) uses sim (lab): only tools and tests may"]
        );
    }

    #[test]
    fn a_crate_without_a_floor_is_named() {
        assert_eq!(check("attic", "units", false).len(), 1);
    }
}
