//! Attributes as they are set become properties of datasets.

use super::lun_facts::list;
use super::masks::Masks;
use super::root::RootWish;
use crate::san::Network;
use api::CustomProperty;
use api::attributes::{Attribute, Change, Kept, OF_ROOT, Shape};
use api::san::Members;
use api::schema::PREFIX;
use api::shares::ItemKind;
use units::{Error, Result};

/// What is to be done to a dataset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Properties that are set as they are.
    pub properties: Vec<(String, String)>,
    /// Properties that are inherited again.
    pub inherit: Vec<String>,
    pub size: Option<u64>,
    pub sparse: Option<bool>,
    pub target_group: Option<String>,
    pub initiator_groups: Option<Vec<String>>,
    pub number: Option<NumberWish>,
    pub root: RootWish,
    /// Something was said that only a LUN has a use for.
    pub concerns_lun: bool,
    pub goes_offline: bool,
}

impl Settings {
    /// Keeps the masks of the original, of which this is a copy, where nothing else was set.
    pub fn keep_masks(&mut self, masks: Masks) {
        for (property, text) in masks {
            if self.properties.iter().any(|(said, _)| said == property) {
                continue;
            }
            match property {
                "cenote:targetgroup" => self.target_group = Some(text.clone()),
                "cenote:initiatorgroup" => self.initiator_groups = Some(list(&text)),
                _ => {}
            }
            self.properties.push((property.into(), text));
        }
    }

    /// A reservation is never above its quota: of both, the one goes first that makes room for the other.
    pub fn put_in_order(&mut self, reserved: u64) {
        let at = self.properties.iter().position(|(name, _)| name == "reservation");
        if let Some((name, text)) = at.map(|at| self.properties.remove(at)) {
            let shrinks = units::parse_size(&text).map_or(true, |new| new < reserved);
            let to = if shrinks { 0 } else { self.properties.len() };
            self.properties.insert(to, (name, text));
        }
    }

    /// The property by which a volume that is there already becomes thin or thick.
    pub fn reservation(&self) -> Option<(String, String)> {
        let text = if self.sparse? { "none" } else { "auto" };
        Some(("refreservation".into(), text.into()))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberWish {
    Auto,
    Number(u16),
}

/// Reads what was typed. `is_new`: it is being created.
pub(crate) fn read(
    kind: ItemKind,
    is_new: bool,
    set: &[(String, String)],
    unset: &[String],
    (network, schema): (&Network, &[CustomProperty]),
) -> Result<Settings> {
    let mut settings = Settings::default();
    for (name, text) in set {
        if let Some(property) = custom(schema, name)? {
            let kept = property.kind.canonical(text.trim());
            let kept = kept
                .map_err(|why| Error::invalid(format!("invalid value \"{text}\" for \"{name}\": {why}")))?;
            settings.properties.push((name.clone(), kept));
            continue;
        }
        let attribute = find(kind, name)?;
        check_change(attribute)?;
        let text = canonical(attribute, text.trim())?;
        match name.as_str() {
            "volsize" => settings.size = Some(size(name, &text)?),
            "sparse" => settings.sparse = Some(text == "true"),
            "lunumber" => settings.number = Some(lunumber(&text)?),
            _ => {}
        }
        if kind == ItemKind::Lun {
            settings.concerns_lun |=
                matches!(name.as_str(), "targetgroup" | "initiatorgroup" | "lunumber" | "status");
        }
        match name.as_str() {
            "targetgroup" => {
                check_group(network, Members::Targets, &text)?;
                settings.target_group = Some(text.clone());
            }
            "initiatorgroup" => {
                let groups = list(&text);
                groups.iter().try_for_each(|group| check_group(network, Members::Initiators, group))?;
                if groups.is_empty() {
                    return Err(bad(attribute, &text, "name at least one group"));
                }
                settings.initiator_groups = Some(groups);
            }
            "status" => settings.goes_offline = text == "offline",
            _ => {}
        }
        // What is stored by other means than a property of that name.
        if settings.root.take(name, &text)?
            || ["sparse", "lunumber"].contains(&name.as_str())
            || (is_new && name == "volsize")
        {
            continue;
        }
        if let Some(property) = attribute.property() {
            settings.properties.push((property.into(), stored(attribute, &text)));
        }
    }
    for name in unset {
        if custom(schema, name)?.is_some() {
            settings.inherit.push(name.clone());
            continue;
        }
        let attribute = find(kind, name)?;
        if attribute.change != Change::Always
            || ["volsize", "volblocksize", "lunumber", "sparse"].contains(&name.as_str())
            || OF_ROOT.contains(&name.as_str())
        {
            return Err(Error::invalid(format!("property \"{name}\" cannot be inherited")));
        }
        settings.inherit.extend(attribute.property().map(String::from));
    }
    Ok(settings)
}

/// The property of the schema, if the name is one's own.
fn custom<'a>(schema: &'a [CustomProperty], name: &str) -> Result<Option<&'a CustomProperty>> {
    let Some(own) = name.strip_prefix(PREFIX) else { return Ok(None) };
    let found = schema.iter().find(|property| property.name == own);
    found
        .map(Some)
        .ok_or_else(|| Error::invalid(format!("invalid property \"{name}\": it is not in the schema")))
}

fn find(kind: ItemKind, name: &str) -> Result<&'static Attribute> {
    Attribute::find(name, kind).ok_or_else(|| Error::invalid(format!("invalid property \"{name}\"")))
}

fn check_change(attribute: &Attribute) -> Result<()> {
    match attribute.change {
        Change::Never => Err(Error::invalid(format!("property \"{}\" is read-only", attribute.name))),
        _ => Ok(()),
    }
}

/// The one spelling in which a value is kept, where there are several.
fn canonical(attribute: &Attribute, text: &str) -> Result<String> {
    let flag = |text: &str| match text {
        "true" | "on" | "yes" => Some("true"),
        "false" | "off" | "no" => Some("false"),
        _ => None,
    };
    Ok(match (attribute.shape, attribute.kept) {
        // A native flag may have words of its own besides.
        (Shape::Flag, Kept::Native(_)) => flag(text).unwrap_or(text).into(),
        (Shape::Flag, _) => flag(text).ok_or_else(|| bad(attribute, text, "it is true or false"))?.into(),
        (Shape::Size, Kept::User(_)) => size(attribute.name, text)?.to_string(),
        _ if attribute.name == "status" && !["online", "offline"].contains(&text) => {
            return Err(bad(attribute, text, "it is online or offline"));
        }
        _ => text.into(),
    })
}

/// As OpenZFS spells it.
fn stored(attribute: &Attribute, text: &str) -> String {
    match (attribute.kept, attribute.shape, text) {
        (Kept::Native(_), Shape::Flag, "true") => "on".into(),
        (Kept::Native(_), Shape::Flag, "false") => "off".into(),
        (Kept::User(_), Shape::List, text) => list(text).join(","),
        // No limit: the word of OpenZFS, which takes no zero for it everywhere.
        (Kept::Native("quota" | "reservation"), _, "0") => "none".into(),
        _ => text.into(),
    }
}

fn size(name: &str, text: &str) -> Result<u64> {
    units::parse_size(text)
        .map_err(|why| Error::invalid(format!("invalid value \"{text}\" for \"{name}\": {why}")))
}

fn lunumber(text: &str) -> Result<NumberWish> {
    match text {
        "auto" => Ok(NumberWish::Auto),
        _ => text.parse().map(NumberWish::Number).map_err(|_| {
            Error::invalid(format!("invalid value \"{text}\" for \"lunumber\": it is a number or auto"))
        }),
    }
}

fn check_group(network: &Network, of: Members, name: &str) -> Result<()> {
    match network.has_group(of, name) {
        true => Ok(()),
        false => {
            let what = if of == Members::Targets { "target" } else { "initiator" };
            Err(Error::invalid(format!("there is no {what} group \"{name}\"")))
        }
    }
}

fn bad(attribute: &Attribute, text: &str, why: &str) -> Error {
    Error::invalid(format!("invalid value \"{text}\" for \"{}\": {why}", attribute.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_one(kind: ItemKind, is_new: bool, name: &str, text: &str) -> Result<Settings> {
        read(kind, is_new, &[(name.into(), text.into())], &[], (&Network::default(), &[]))
    }

    #[test]
    fn words_of_the_appliance_become_words_of_openzfs() {
        for (name, text, property, value) in [
            ("logbias", "latency", "logbias", "latency"),
            ("atime", "false", "atime", "off"),
            ("atime", "on", "atime", "on"),
            ("dedup", "verify", "dedup", "verify"),
            ("quota", "0", "quota", "none"),
            ("quota", "10G", "quota", "10G"),
            ("default_volblocksize", "16K", "cenote:default_volblocksize", "16384"),
            ("nodestroy", "yes", "cenote:nodestroy", "true"),
        ] {
            let settings = read_one(ItemKind::Project, false, name, text).unwrap();
            assert_eq!(settings.properties, [(property.to_string(), value.to_string())], "{name}={text}");
        }
    }

    /// A share that shrank was refused, since its quota was set before its reservation had left it.
    #[test]
    fn quota_and_reservation_change_in_the_order_that_can_be() {
        let order = |text: &str, reserved| {
            let set = [("quota", text), ("readonly", "true"), ("reservation", text)];
            let set = set.map(|(name, text)| (name.to_string(), text.to_string()));
            let mut settings =
                read(ItemKind::Filesystem, false, &set, &[], (&Network::default(), &[])).unwrap();
            settings.put_in_order(reserved);
            settings.properties.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(order("1G", 2 << 30), ["reservation", "quota", "readonly"]);
        assert_eq!(order("0", 2 << 30), ["reservation", "quota", "readonly"]);
        assert_eq!(order("2G", 1 << 30), ["quota", "readonly", "reservation"]);
    }

    #[test]
    fn what_cannot_be_set_is_said_in_one_sentence() {
        for (kind, is_new, name, text, said) in [
            (ItemKind::Lun, false, "nonsense", "1", "invalid property \"nonsense\""),
            (ItemKind::Project, false, "volsize", "1G", "invalid property \"volsize\""),
            (ItemKind::Lun, false, "lunguid", "1", "property \"lunguid\" is read-only"),
            (ItemKind::Lun, true, "volsize", "much", "invalid value \"much\" for \"volsize\""),
            (ItemKind::Lun, true, "targetgroup", "tgt", "there is no target group \"tgt\""),
            (ItemKind::Lun, true, "initiatorgroup", "default,x", "there is no initiator group \"x\""),
            (ItemKind::Lun, true, "lunumber", "first", "it is a number or auto"),
            (ItemKind::Lun, true, "status", "away", "it is online or offline"),
            (ItemKind::Lun, true, "sparse", "maybe", "it is true or false"),
        ] {
            let e = read_one(kind, is_new, name, text).unwrap_err().to_string();
            assert!(e.contains(said), "{name}={text}: {e}");
        }
        let unset = read(ItemKind::Lun, false, &[], &["volsize".into()], (&Network::default(), &[]));
        assert!(unset.unwrap_err().to_string().contains("cannot be inherited"));
    }

    #[test]
    fn properties_of_ones_own_are_those_of_the_schema() {
        let schema = [CustomProperty {
            name: "priority".into(),
            kind: api::CustomType::PositiveInteger,
            description: String::new(),
        }];
        let network = Network::default();
        let set = |name: &str, text: &str| {
            let set = [(name.to_string(), text.to_string())];
            read(ItemKind::Filesystem, true, &set, &[], (&network, &schema))
        };
        let kept = [("custom:priority".to_string(), "5".to_string())];
        assert_eq!(set("custom:priority", " 5").unwrap().properties, kept);
        for (name, text, said) in [
            (
                "custom:priority",
                "-5",
                "invalid value \"-5\" for \"custom:priority\": it is an integer above 0",
            ),
            ("custom:owner", "ann", "invalid property \"custom:owner\": it is not in the schema"),
            ("custom:", "ann", "invalid property \"custom:\""),
        ] {
            let e = set(name, text).unwrap_err().to_string();
            assert!(e.contains(said), "{e}");
        }
        let unset =
            read(ItemKind::Lun, false, &[], &["custom:priority".into()], (&network, &schema)).unwrap();
        assert_eq!(unset.inherit, ["custom:priority"]);
    }
}
