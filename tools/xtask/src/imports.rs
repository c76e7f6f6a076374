//! Which file of a crate imports which, as its `use` items and its paths from `crate`, `super` and `self` say.
//!
//! ```text
//!   lib.rs ── mod san; ──▶ san.rs ── mod view; ──▶ san/view.rs          the files of a crate, by their modules
//!   use crate::san::SanView  ── san.rs says `pub use view::SanView` ──▶ an arrow to san/view.rs, which has it
//! ```
//!
//! What only tests import does not count. Not seen are names that come by a glob, and what a method of a type reaches that
//! an `impl` in another file added.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A module by its names from the crate's root, which has none.
pub type Module = Vec<String>;

/// The files of one target of a crate, and the arrows between them.
#[derive(Debug, Default)]
pub struct Imports {
    pub files: BTreeMap<Module, PathBuf>,
    pub arrows: BTreeMap<Module, BTreeSet<Module>>,
}

/// What a file says of others.
#[derive(Debug, Default)]
struct Said {
    /// Modules in files of their own.
    modules: Vec<String>,
    /// All paths that lead into the crate, or may.
    paths: Vec<Vec<String>>,
    /// Names that are something else's: `pub use view::SanView` says that `SanView` is `view::SanView`.
    re_exports: BTreeMap<String, Vec<String>>,
}

/// Reads a crate from its root file on. `read` gives the text of a file, where there is such a file.
pub fn of_crate(root: &Path, read: impl Fn(&Path) -> Option<String>) -> Imports {
    let mut said: BTreeMap<Module, Said> = BTreeMap::new();
    let mut files = BTreeMap::new();
    let home = root.parent().unwrap_or(Path::new("")).to_owned();
    let mut next = vec![(Module::new(), root.to_owned(), home)];
    while let Some((module, file, home)) = next.pop() {
        let Some(text) = read(&file) else { continue };
        let here = said_in(&text);
        for name in &here.modules {
            let inside = home.join(name);
            let places = [inside.with_extension("rs"), inside.join("mod.rs")];
            let Some(place) = places.into_iter().find(|place| read(place).is_some()) else { continue };
            next.push(([&module[..], std::slice::from_ref(name)].concat(), place, inside));
        }
        files.insert(module.clone(), file);
        said.insert(module, here);
    }
    let mut arrows: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, here) in &said {
        let used = here.paths.iter().filter_map(|path| resolve(&said, module, path, 0));
        arrows.insert(module.clone(), used.filter(|used| used != module).collect());
    }
    Imports { files, arrows }
}

/// The module whose file has what `path` names in `module`; none of what is another crate's.
fn resolve(said: &BTreeMap<Module, Said>, module: &Module, path: &[String], depth: usize) -> Option<Module> {
    // Re-exports that lead in a circle do not compile; they do not keep this busy either.
    if depth > 8 {
        return None;
    }
    let mut at = module.clone();
    let mut rest = path;
    let mut is_ours = false;
    while let Some((first, more)) = rest.split_first() {
        match first.as_str() {
            "crate" => at = Module::new(),
            "self" => {}
            "super" => _ = at.pop(),
            _ => break,
        }
        (rest, is_ours) = (more, true);
    }
    while let Some((first, more)) = rest.split_first() {
        let inner = [&at[..], std::slice::from_ref(first)].concat();
        if !said.contains_key(&inner) {
            break;
        }
        (at, rest, is_ours) = (inner, more, true);
    }
    if !is_ours {
        return None;
    }
    let re_export = rest.first().and_then(|name| said.get(&at)?.re_exports.get(name));
    match re_export {
        Some(path) => resolve(said, &at, path, depth + 1).or(Some(at)),
        None => Some(at),
    }
}

fn said_in(text: &str) -> Said {
    let tokens = without_tests(&tokens(text));
    let mut said = Said::default();
    let mut at = 0;
    while at < tokens.len() {
        let word = tokens[at].as_str();
        let is_inside = at > 0 && tokens[at - 1] == "::";
        if word == "mod" && tokens.get(at + 2).is_some_and(|t| t == ";") {
            said.modules.push(tokens[at + 1].trim_start_matches("r#").to_owned());
            at += 3;
        } else if word == "use" && !is_inside {
            let is_public = at > 0 && matches!(tokens[at - 1].as_str(), "pub" | ")");
            at += 1;
            let mut leaves = Vec::new();
            tree(&tokens, &mut at, &[], &mut leaves);
            for (path, name) in leaves {
                if is_public && name != "*" {
                    said.re_exports.insert(name, path.clone());
                }
                said.paths.push(path);
            }
        } else if matches!(word, "crate" | "super" | "self") && !is_inside {
            let mut path = vec![word.to_owned()];
            while tokens.get(at + 1).is_some_and(|t| t == "::")
                && tokens.get(at + 2).is_some_and(|t| is_word(t))
            {
                path.push(tokens[at + 2].clone());
                at += 2;
            }
            if path.len() > 1 {
                said.paths.push(path);
            }
            at += 1;
        } else {
            at += 1;
        }
    }
    said
}

/// The leaves of a `use` tree, each with the name that it has from then on.
fn tree(tokens: &[String], at: &mut usize, before: &[String], leaves: &mut Vec<(Vec<String>, String)>) {
    let mut path = before.to_vec();
    while let Some(token) = tokens.get(*at) {
        match token.as_str() {
            "::" => *at += 1,
            "{" => {
                *at += 1;
                while tokens.get(*at).is_some_and(|t| t != "}") {
                    tree(tokens, at, &path, leaves);
                    if tokens.get(*at).is_some_and(|t| t == ",") {
                        *at += 1;
                    }
                }
                *at += 1;
                return;
            }
            "as" => {
                let name = tokens.get(*at + 1).cloned().unwrap_or_default();
                *at += 2;
                leaves.push((path, name));
                return;
            }
            "self" if !path.is_empty() => *at += 1,
            "*" => {
                *at += 1;
                leaves.push((path, "*".into()));
                return;
            }
            word if is_word(word) => {
                path.push(word.to_owned());
                *at += 1;
            }
            // `,` `}` `;`, or what no `use` holds.
            _ => {
                let stray = !matches!(token.as_str(), "," | "}" | ";");
                *at += usize::from(stray);
                break;
            }
        }
    }
    if let Some(name) = path.last().cloned().filter(|_| path.len() > before.len() || !before.is_empty()) {
        leaves.push((path, name));
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Leaves out every item with `#[cfg(test)]`.
fn without_tests(tokens: &[String]) -> Vec<String> {
    let mark = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at..].iter().take(mark.len()).eq(mark) {
            at += mark.len();
            let mut depth = 0_usize;
            // Up to a `;` outside of all braces, or the end of the first braces.
            while let Some(token) = tokens.get(at) {
                at += 1;
                match token.as_str() {
                    "{" => depth += 1,
                    "}" => depth = depth.saturating_sub(1),
                    _ => {}
                }
                if depth == 0 && (token == ";" || token == "}") {
                    break;
                }
            }
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// Words, `::` and single signs; comments, numbers' inner signs and what quotes hold are left out.
fn tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let mut tokens = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        let c = chars[i];
        if c == '/' && at(i + 1) == '/' {
            while i < chars.len() && chars[i] != '\n' {
                i += 1;
            }
        } else if c == '/' && at(i + 1) == '*' {
            while i < chars.len() && !(chars[i] == '*' && at(i + 1) == '/') {
                i += 1;
            }
            i += 2;
        } else if c == '"' {
            i = after_string(&chars, i);
        } else if c == '\'' {
            // A character, or a lifetime.
            if at(i + 1) == '\\' {
                i += 3;
                while i < chars.len() && chars[i] != '\'' {
                    i += 1;
                }
                i += 1;
            } else {
                i += if at(i + 2) == '\'' { 3 } else { 1 };
            }
        } else if c.is_alphanumeric() || c == '_' {
            let start = i;
            while i < chars.len() && (chars[i].is_alphanumeric() || chars[i] == '_') {
                i += 1;
            }
            let word: String = chars[start..i].iter().collect();
            let hashes = chars[i..].iter().take_while(|c| **c == '#').count();
            if matches!(word.as_str(), "r" | "br" | "cr") && at(i + hashes) == '"' {
                i = after_raw_string(&chars, i + hashes + 1, hashes);
            } else {
                tokens.push(word);
            }
        } else if c == ':' && at(i + 1) == ':' {
            tokens.push("::".into());
            i += 2;
        } else {
            if !c.is_whitespace() {
                tokens.push(c.into());
            }
            i += 1;
        }
    }
    tokens
}

fn after_string(chars: &[char], start: usize) -> usize {
    let mut i = start + 1;
    while i < chars.len() && chars[i] != '"' {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    i + 1
}

fn after_raw_string(chars: &[char], start: usize, hashes: usize) -> usize {
    let mut i = start;
    while i < chars.len() {
        if chars[i] == '"' && chars[i + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes {
            return i + 1 + hashes;
        }
        i += 1;
    }
    i
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], arrows: &[(&str, &str)]) {
        let texts: BTreeMap<&Path, &str> =
            files.iter().map(|(name, text)| (Path::new(*name), *text)).collect();
        let imports = of_crate(Path::new("lib.rs"), |file| texts.get(file).map(|text| (*text).to_owned()));
        let found: Vec<(String, String)> = imports
            .arrows
            .iter()
            .flat_map(|(from, to)| to.iter().map(|to| (from.join("::"), to.join("::"))))
            .collect();
        let wanted: Vec<(String, String)> =
            arrows.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        assert_eq!(found, wanted, "{files:?}");
    }

    #[test]
    fn an_import_leads_to_the_file_that_has_the_name() {
        let view = ("a/view.rs", "use super::names::Name;\nuse crate::b::{self, B as Other};\nuse std::fmt;");
        check(
            &[
                ("lib.rs", "mod a;\npub(crate) mod b;\npub use a::View;"),
                ("a.rs", "mod names;\nmod view;\npub use view::View;"),
                view,
                ("a/names.rs", ""),
                ("b.rs", "fn f() -> crate::View { crate::a::View::new() }"),
            ],
            &[("", "a::view"), ("a", "a::view"), ("a::view", "a::names"), ("a::view", "b"), ("b", "a::view")],
        );
    }

    #[test]
    fn what_tests_comments_and_quotes_say_is_no_import() {
        let text = "// crate::a\n/* use crate::a; */ const T: &str = \"use crate::a;\\\"\"; const R: &str = r#\"\"crate::a::X\"#;\n\
                    const C: char = '\"'; fn f<'a>(x: &'a str) {}\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n\
                    #[cfg(test)]\nuse crate::a;\nuse crate::c::C;";
        check(
            &[("lib.rs", "mod a;\nmod b;\nmod c;"), ("a.rs", ""), ("b.rs", text), ("c.rs", "")],
            &[("b", "c")],
        );
    }

    #[test]
    fn crates_of_the_same_name_as_a_module_elsewhere_are_not_it() {
        check(
            &[
                ("lib.rs", "mod a;\nmod pool;"),
                ("a.rs", "mod inner;\nuse pool::Pool;"),
                ("a/inner.rs", "use super::super::pool::X;\nuse zip::{a, b::*};"),
                ("pool.rs", ""),
            ],
            &[("a::inner", "pool")],
        );
    }
}
