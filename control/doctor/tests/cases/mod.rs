//! Cases of hosts and pools, each as changes to a healthy one or by itself: what is in `wrong.txt` and `right.txt`, and how
//! it is written there.

use doctor::Facts;

pub const HEALTHY: &str = include_str!("../healthy.facts");
const WRONG: &str = include_str!("../wrong.txt");
const RIGHT: &str = include_str!("../right.txt");

#[derive(Debug)]
pub struct Case {
    pub name: String,
    pub facts: Facts,
    /// Rules, each with words of its fix. None, where nothing is to be said.
    pub expected: Vec<(String, String)>,
}

/// What is set wrong.
pub fn wrong() -> Vec<Case> {
    cases(WRONG)
}

/// What is healthy.
pub fn right() -> Vec<Case> {
    cases(RIGHT)
}

fn cases(text: &str) -> Vec<Case> {
    let healthy = || Facts::parse(HEALTHY.as_bytes()).unwrap();
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let begun = line.strip_prefix("= ").map(|name| (name, healthy()));
        if let Some((name, facts)) = begun.or_else(|| Some((line.strip_prefix("== ")?, Facts::default()))) {
            cases.push(Case { name: name.into(), facts, expected: Vec::new() });
            continue;
        }
        let case = cases.last_mut().expect("a case has a name first");
        if let Some(expected) = line.strip_prefix("! ") {
            let (rule, words) = expected.split_once(": ").expect("a rule and its words");
            case.expected.push((rule.into(), words.into()));
        } else {
            change(&mut case.facts, line);
        }
    }
    cases
}

fn change(facts: &mut Facts, line: &str) {
    if let Some((key, field)) = line.split_once('~') {
        let (name, _) = field.split_once('=').unwrap();
        let now = facts.text(key).unwrap_or_else(|| panic!("no fact {key}"));
        let others = now.split(' ').filter(|f| !f.starts_with(&format!("{name}=")));
        let with = others.chain([field]).collect::<Vec<_>>().join(" ");
        facts.set(key, &with);
    } else if let Some((key, value)) = line.split_once("+ ").filter(|(key, _)| !key.contains(": ")) {
        facts.add(key, value);
    } else if let Some((key, value)) = line.split_once(": ") {
        facts.set(key, value);
    } else {
        facts.forget(line.strip_suffix('-').unwrap_or_else(|| panic!("what is '{line}'?")));
    }
}
