//! Temporary options: what `zfs mount -o` and `-O` ask for beside the properties.
//!
//! They belong to the mount, and not to the dataset: they hold until it is unmounted by request, whatever is set meanwhile,
//! also where the mount is made anew, and are remembered with it (docs/rfd/0104). A property that is set on the dataset
//! itself ends those in its place.

use crate::home::KnownMount;
use api::Mount;
use dsl::props::{Prop, PropName};

/// What was asked for beside the properties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Temporary {
    pub overlay: bool,
    pub options: Vec<String>,
}

impl From<&Mount> for Temporary {
    fn from(asked: &Mount) -> Temporary {
        Temporary { overlay: asked.overlay, options: asked.options.clone() }
    }
}

impl Temporary {
    /// How a mount with these is remembered.
    pub fn at(self, at: String) -> KnownMount {
        match self == Temporary::default() {
            true => KnownMount::At(at),
            false => KnownMount::With { at, overlay: self.overlay, options: self.options },
        }
    }

    /// Where a mount was, and with what.
    pub fn of(known: &KnownMount) -> (String, Temporary) {
        match known.clone() {
            KnownMount::At(at) => (at, Temporary::default()),
            KnownMount::With { at, overlay, options } => (at, Temporary { overlay, options }),
        }
    }

    /// Without the options in place of these properties, which were just set on the dataset itself: the last word holds.
    pub fn without(mut self, properties: &[String]) -> Temporary {
        let set: Vec<PropName> = properties.iter().filter_map(|name| PropName::parse(name).ok()).collect();
        self.options
            .retain(|option| property_of(option).is_none_or(|prop| !set.contains(&PropName::Native(prop))));
        self
    }
}

/// In place of which property an option is.
fn property_of(option: &str) -> Option<Prop> {
    Some(match option {
        "ro" | "rw" => Prop::ReadOnly,
        "exec" | "noexec" => Prop::Exec,
        "suid" | "setuid" | "nosuid" | "nosetuid" => Prop::Setuid,
        "dev" | "devices" | "nodev" | "nodevices" => Prop::Devices,
        "atime" | "noatime" => Prop::Atime,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_property_that_is_set_ends_the_options_in_its_place_and_no_others() {
        let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        let temporary = || Temporary { overlay: true, options: words(&["ro", "noexec", "nosuid", "rw"]) };
        let left = |set: &[&str]| temporary().without(&words(set)).options;
        assert_eq!(left(&["compression", "cenote:x", "atime"]), words(&["ro", "noexec", "nosuid", "rw"]));
        assert_eq!(left(&["readonly"]), words(&["noexec", "nosuid"]));
        assert_eq!(left(&["setuid", "exec"]), words(&["ro", "rw"]));
    }

    /// Those of before temporary options were remembered are places alone.
    #[test]
    fn what_is_remembered_is_read_as_it_was_written() {
        let read = |text: &str| Temporary::of(&serde_json::from_str(text).unwrap());
        assert_eq!(read(r#""/a""#), ("/a".into(), Temporary::default()));
        for temporary in [
            Temporary::default(),
            Temporary { overlay: true, options: Vec::new() },
            Temporary { overlay: false, options: vec!["ro".into()] },
        ] {
            let text = serde_json::to_string(&temporary.clone().at("/a".into())).unwrap();
            assert_eq!(read(&text), ("/a".into(), temporary), "{text}");
        }
    }
}
