//! The words after the pool's name: which devices, in what groups, for what.
//!
//! ```text
//!   mirror a b   raidz2 c d e f   special mirror g h   log i   cache j   spare k
//!   └─ layout ─┘                  └ class: holds for the groups up to the next class ┘
//! ```

use api::{Class, Layout, VdevGroup};

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
    if word == "mirror" {
        return Ok(Some(Layout::Mirror));
    }
    if word.starts_with("draid") && !word.contains('/') {
        return Err("draid cannot be created yet; use raidz or mirror".into());
    }
    let Some(parity) = word.strip_prefix("raidz") else { return Ok(None) };
    match parity {
        "" | "1" => Ok(Some(Layout::Raidz { parity: 1 })),
        "2" => Ok(Some(Layout::Raidz { parity: 2 })),
        "3" => Ok(Some(Layout::Raidz { parity: 3 })),
        n if n.bytes().all(|b| b.is_ascii_digit()) => {
            Err(format!("invalid vdev specification: '{word}': raidz has 1, 2 or 3 devices of parity"))
        }
        _ => Ok(None),
    }
}

fn check_layout(class: Class, layout: Layout, word: &str) -> Result<(), String> {
    match (class, layout) {
        (Class::Cache | Class::Spare, _) => {
            let class = if class == Class::Cache { "cache" } else { "spare" };
            Err(format!("invalid vdev specification: '{class}' devices cannot be in a {word}"))
        }
        (Class::Log, Layout::Raidz { .. }) => {
            Err("invalid vdev specification: unsupported 'log' device: raidz".into())
        }
        _ => Ok(()),
    }
}

fn check_count(word: &str, layout: Layout, given: usize) -> Result<(), String> {
    let (min, max) = match layout {
        Layout::Stripe => (1, usize::MAX),
        Layout::Mirror => (2, usize::MAX),
        Layout::Raidz { parity } => (parity as usize + 1, 255),
    };
    if given < min {
        return Err(format!("invalid vdev specification: {word} requires at least {min} devices"));
    }
    if given > max {
        return Err(format!("invalid vdev specification: {word} supports no more than {max} devices"));
    }
    Ok(())
}
