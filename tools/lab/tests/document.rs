//! `docs/lab.md` shows what the program prints: the parameters, and the experiments that take seconds.

#![allow(clippy::unwrap_used)]

use lab::command::{Wanted, parameters, run};
use lab::experiment::Ask;

#[test]
fn the_document_shows_what_the_program_prints() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lab.md");
    let document = std::fs::read_to_string(path).unwrap();
    assert!(document.contains(&parameters()), "the parameters in docs/lab.md are not those of the models");
    for (name, sensitivity) in [("filesync", false), ("metadata", false), ("metadata", true)] {
        let wanted = Wanted { names: vec![name.into()], ask: Ask::default(), sensitivity, json: false };
        let text = run(&wanted, &|_| ()).unwrap();
        assert!(document.contains(text.trim_end()), "docs/lab.md does not show:\n{text}");
    }
}
