//! Inside a crate: files do not import one another in large circles, and in the control plane arrows point down as well.
//!
//! ```text
//!   circle   a.rs ──▶ b.rs ──▶ c.rs ──▶ d.rs ──▶ a.rs      more than three files: none of them is read without the others
//!   room     appliance: pools ──▶ datasets                  against the order of the crate's rooms in `house`
//! ```
//!
//! Arrows between a module and those inside it do not count for a circle: a parent introduces its children, who speak its
//! words. What cannot be so yet is ratcheted in `tools/xtask/circles.txt`.

use crate::house::{self, Member};
use crate::imports::{self, Imports, Module};
use crate::tidy::Ratchet;
use crate::{Failure, Findings, root};
use std::collections::{BTreeMap, BTreeSet};

/// Circles of so many files are left alone.
const FILES_MAX: usize = 3;

pub fn check(members: &[Member]) -> Result<Findings, Failure> {
    let mut ratchet = Ratchet::load("tools/xtask/circles.txt")?;
    let mut findings = Findings::new();
    for member in members {
        let mains = member.roots.iter().filter(|r| r.ends_with("src/lib.rs") || r.ends_with("src/main.rs"));
        for file in mains {
            let imports = imports::of_crate(file, |file| std::fs::read_to_string(file).ok());
            let circles = circles(&imports);
            let size = circles.iter().map(BTreeSet::len).sum();
            if size > 0 && !ratchet.allows("circle", &member.name, size) {
                findings.extend(circles.iter().map(|circle| tell(&member.name, &imports, circle)));
            }
            let up = house::rooms(&member.name).map_or_else(Vec::new, |rooms| up(&imports, rooms));
            if !up.is_empty() && !ratchet.allows("room", &member.name, up.len()) {
                findings.extend(up.iter().map(|arrow| format!("{}: {arrow}", member.name)));
            }
        }
    }
    findings.extend(ratchet.slack());
    Ok(findings)
}

/// Sets of more than [`FILES_MAX`] modules each of which reaches all others of its set.
fn circles(imports: &Imports) -> Vec<BTreeSet<Module>> {
    let counts = |from: &Module, to: &Module| !from.starts_with(to) && !to.starts_with(from);
    let reach: BTreeMap<&Module, BTreeSet<&Module>> = imports
        .arrows
        .keys()
        .map(|start| {
            let mut reached = BTreeSet::new();
            let mut next = vec![start];
            while let Some(from) = next.pop() {
                let to = imports.arrows.get(from).into_iter().flatten().filter(|to| counts(from, to));
                next.extend(to.filter(|to| reached.insert(*to)));
            }
            (start, reached)
        })
        .collect();
    let mut circles: Vec<BTreeSet<Module>> = Vec::new();
    for (module, reached) in &reach {
        let circle: BTreeSet<Module> = reached
            .iter()
            .filter(|other| reach.get(*other).is_some_and(|back| back.contains(module)))
            .map(|other| (*other).clone())
            .collect();
        if circle.len() > FILES_MAX && circle.contains(*module) && !circles.contains(&circle) {
            circles.push(circle);
        }
    }
    circles
}

fn tell(name: &str, imports: &Imports, circle: &BTreeSet<Module>) -> String {
    let file = |module: &Module| {
        let path = imports.files.get(module).map(|f| f.strip_prefix(root()).unwrap_or(f));
        path.map_or_else(String::new, |path| path.display().to_string())
    };
    let mut text = format!("{name}: {} files import one another in a circle:", circle.len());
    for module in circle {
        let used = imports.arrows.get(module).into_iter().flatten().filter(|used| circle.contains(*used));
        let used: Vec<String> = used.map(|used| used.join("::")).collect();
        text += &format!("\n    {} uses {}", file(module), used.join(", "));
    }
    text
}

/// Arrows that point up, by the order of rooms, the lowest first.
fn up(imports: &Imports, rooms: &[&str]) -> Vec<String> {
    let mut up = Vec::new();
    for (from, used) in &imports.arrows {
        for to in used {
            // The root names all rooms, and nothing but names is taken from it.
            if from.is_empty() || to.is_empty() {
                continue;
            }
            match (room(rooms, from), room(rooms, to)) {
                (Some(a), Some(b)) if a < b => up.push(format!(
                    "{} (in {}) uses {} (in {}): the arrow points up",
                    from.join("::"),
                    rooms[a],
                    to.join("::"),
                    rooms[b]
                )),
                (None, _) => up.push(format!("{} has no room in the house of tools/xtask", from.join("::"))),
                _ => {}
            }
        }
    }
    up.dedup();
    up
}

/// The room that a module is in: the most exact that is named.
fn room(rooms: &[&str], module: &Module) -> Option<usize> {
    let name = module.join("::");
    let inside =
        |room: &str| name.strip_prefix(room).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
    let named = rooms.iter().enumerate().filter(|(_, room)| inside(room));
    named.max_by_key(|(_, room)| room.len()).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(name: &str) -> Module {
        name.split("::").map(str::to_owned).collect()
    }

    fn imports(arrows: &[(&str, &str)]) -> Imports {
        let mut imports = Imports::default();
        for (from, to) in arrows {
            imports.arrows.entry(module(to)).or_default();
            imports.arrows.entry(module(from)).or_default().insert(module(to));
        }
        imports
    }

    #[test]
    fn circles_of_more_than_three_files_are_found_whole() {
        let four = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("x", "a"), ("d", "y")];
        let found = circles(&imports(&four));
        assert_eq!(found, [["a", "b", "c", "d"].map(module).into()]);
        assert!(circles(&imports(&[("a", "b"), ("b", "c"), ("c", "a")])).is_empty());
        assert!(circles(&imports(&[("a", "b"), ("b", "c"), ("c", "d")])).is_empty());
    }

    #[test]
    fn a_parent_and_its_children_are_no_circle() {
        let arrows = [("p", "p::a"), ("p::a", "p::b"), ("p::b", "p::c"), ("p::c", "p")];
        assert!(circles(&imports(&arrows)).is_empty());
        let among = [("p::a", "p::b"), ("p::b", "p::c"), ("p::c", "p::d"), ("p::d", "p::a")];
        assert_eq!(circles(&imports(&among)).len(), 1, "siblings are");
    }

    #[test]
    fn an_arrow_to_a_later_room_is_named_and_a_module_without_a_room_too() {
        let rooms = ["words", "pools::state", "service", "pools"];
        let fine = [("pools::add", "service"), ("service", "pools::state"), ("pools", "words")];
        assert!(up(&imports(&fine), &rooms).is_empty());
        let found = up(&imports(&[("pools::state", "pools::add"), ("attic", "words")]), &rooms);
        assert_eq!(
            found,
            [
                "attic has no room in the house of tools/xtask",
                "pools::state (in pools::state) uses pools::add (in pools): the arrow points up"
            ]
        );
    }
}
