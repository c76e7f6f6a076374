//! The words after the pool's name: which devices, in what groups, for what.
//!
//! ```text
//!   mirror a b   raidz2 c d e f   special mirror g h   log i   cache j   spare k
//!   └─ layout ─┘                  └ class: holds for the groups up to the next class ┘
//! ```

use api::{Class, LAYOUTS, Layout, VdevGroup};

/// Reads the groups of a new pool, which needs one that holds data.
pub fn parse(words: &[String]) -> Result<Vec<VdevGroup>, String> {
    let groups = parse_more(words)?;
    if !groups.iter().any(|g| !matches!(g.class, Class::Cache | Class::Spare | Class::Log)) {
        return Err("invalid vdev specification: at least one toplevel vdev must be specified".into());
    }
    Ok(groups)
}

/// Reads groups for a pool that there is; what a device is, is not looked at.
pub fn parse_more(words: &[String]) -> Result<Vec<VdevGroup>, String> {
    let mut groups: Vec<VdevGroup> = Vec::new();
    let mut class = Class::Normal;
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        if let Some(next) = class_of(word) {
            class = next;
            if words.peek().is_none_or(|next| class_of(next).is_some()) {
                return Err(format!("invalid vdev specification: '{word}' requires at least one device"));
            }
            continue;
        }
        match layout_of(word)? {
            Some(layout) => {
                check_layout(class, layout, word)?;
                let mut devices = Vec::new();
                while let Some(device) =
                    words.next_if(|w| class_of(w).is_none() && !matches!(layout_of(w), Ok(Some(_)) | Err(_)))
                {
                    devices.push(device.to_string());
                }
                check_count(word, layout, devices.len())?;
                groups.push(VdevGroup { class, layout, devices });
                // After a group of another class, plain devices are of that class still; OpenZFS reads it so too.
            }
            None => match groups.last_mut() {
                Some(last) if last.layout == Layout::Stripe && last.class == class => {
                    last.devices.push(word.into())
                }
                _ => groups.push(VdevGroup { class, layout: Layout::Stripe, devices: vec![word.into()] }),
            },
        }
    }
    Ok(groups)
}

fn class_of(word: &str) -> Option<Class> {
    Some(match word {
        "log" => Class::Log,
        "special" => Class::Special,
        "dedup" => Class::Dedup,
        "cache" => Class::Cache,
        "spare" => Class::Spare,
        _ => return None,
    })
}

fn layout_of(word: &str) -> Result<Option<Layout>, String> {
    if word.starts_with("draid") && !word.contains('/') {
        return Err("draid cannot be created yet; use raidz or mirror".into());
    }
    for kind in &LAYOUTS {
        let (least, most) = (*kind.parity.start(), *kind.parity.end());
        match word.strip_prefix(kind.word) {
            Some("") => return Ok(Some(kind.layout(least))),
            Some(number) if most > 0 && number.bytes().all(|b| b.is_ascii_digit()) => {
                let parity =
                    number.parse().ok().filter(|n| !number.starts_with('0') && kind.parity.contains(n));
                let why = || {
                    let lesser: Vec<String> = (least..most).map(|n| n.to_string()).collect();
                    format!("{} has {} or {most} devices of parity", kind.word, lesser.join(", "))
                };
                return match parity {
                    Some(parity) => Ok(Some(kind.layout(parity))),
                    None => Err(format!("invalid vdev specification: '{word}': {}", why())),
                };
            }
            _ => {}
        }
    }
    Ok(None)
}

fn check_layout(class: Class, layout: Layout, word: &str) -> Result<(), String> {
    if matches!(class, Class::Cache | Class::Spare) {
        let class = if class == Class::Cache { "cache" } else { "spare" };
        return Err(format!("invalid vdev specification: '{class}' devices cannot be in a {word}"));
    }
    match layout.kind() {
        Some(kind) if class == Class::Log && !kind.can_be_log => {
            Err(format!("invalid vdev specification: unsupported 'log' device: {}", kind.word))
        }
        _ => Ok(()),
    }
}

fn check_count(word: &str, layout: Layout, given: usize) -> Result<(), String> {
    let (min, max) = layout.devices().into_inner();
    if given < min {
        return Err(format!("invalid vdev specification: {word} requires at least {min} devices"));
    }
    if given > max {
        return Err(format!("invalid vdev specification: {word} supports no more than {max} devices"));
    }
    Ok(())
}
