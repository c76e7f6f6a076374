//! Targets, initiators and groups as properties, and drafts of them as requests. Pure.

use crate::context::{Context, side};
use crate::draft::Draft;
use crate::show::SECRET;
use crate::vocabulary::{Result, Shown};
use api::Secret;
use api::san::{Auth, Identity, InitiatorChange, Members, San, SanState, TargetChange};

/// IQNs or WWNs, and aliases.
pub(crate) fn names(state: &SanState, of: Members) -> Vec<(String, String)> {
    match of {
        Members::Targets => state.targets.iter().map(|t| (t.iqn.clone(), t.alias.clone())).collect(),
        Members::Initiators => state.initiators.iter().map(|i| (i.iqn.clone(), i.alias.clone())).collect(),
        Members::FcTargets | Members::FcInitiators => {
            state.ports(of).iter().map(|port| (port.wwn.clone(), port.alias.clone())).collect()
        }
    }
}

/// What a draft asks for.
pub(crate) fn request(context: Context, state: &SanState) -> Result<San> {
    Ok(match context {
        Context::Object { of: Members::Targets, iqn, mut draft, .. } => {
            let set = target(&mut draft)?;
            match iqn {
                Some(iqn) => San::TargetSet { iqn, set },
                None => San::TargetCreate { iqn: draft.take("iqn"), set },
            }
        }
        Context::Object { of: Members::Initiators, iqn, mut draft, .. } => {
            let set = InitiatorChange {
                alias: draft.take("alias"),
                chap_user: draft.take("chapuser"),
                chap_secret: draft.take("chapsecret").map(Secret::new),
            };
            match iqn {
                Some(iqn) => San::InitiatorSet { iqn, set },
                None => {
                    let iqn = draft.take("initiator").ok_or("property \"initiator\" must be set")?;
                    San::InitiatorCreate { iqn, set }
                }
            }
        }
        Context::Object { of, iqn, mut draft, .. } => {
            let alias = draft.take("alias");
            match iqn {
                Some(wwn) => San::FcSet { of, wwn, alias },
                None => {
                    let wwn = draft.take("wwn").ok_or("property \"wwn\" must be set")?;
                    San::FcCreate { of, wwn, alias }
                }
            }
        }
        Context::Group { of, name, mut draft, .. } => {
            let members = draft.take(side(of)).map(|text| list(&text));
            let new_name = draft.take("name");
            match name {
                Some(name) => San::GroupSet { of, name, new_name, members },
                None => San::GroupCreate {
                    of,
                    name: new_name.ok_or("property \"name\" must be set")?,
                    members: members.unwrap_or_default(),
                },
            }
        }
        Context::Inquiry { mut draft } => San::SetIdentity(Identity {
            vendor: draft.take("vendor").unwrap_or_else(|| state.identity.vendor.clone()),
            product: draft.take("product").unwrap_or_else(|| state.identity.product.clone()),
        }),
        _ => San::Show,
    })
}

fn target(draft: &mut Draft) -> Result<TargetChange> {
    let auth = match draft.take("auth").as_deref() {
        None => None,
        Some("none") => Some(Auth::None),
        Some("chap") => Some(Auth::Chap),
        Some("radius") => {
            return Err("RADIUS is not part of this version of Cenote yet; auth is none or chap".into());
        }
        Some(text) => return Err(format!("invalid value \"{text}\" for \"auth\": it is none or chap")),
    };
    Ok(TargetChange {
        alias: draft.take("alias"),
        auth,
        chap_user: draft.take("targetchapuser"),
        chap_secret: draft.take("targetchapsecret").map(Secret::new),
        interfaces: draft.take("interfaces").map(|text| list(&text)),
    })
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(String::from).collect()
}

/// What there is, with what the draft makes of it.
pub(crate) fn properties(context: &Context, state: &SanState) -> Vec<Shown> {
    let unset = |text: &str| if text.is_empty() { "(unset)".to_string() } else { text.to_string() };
    let secret = |has: bool| if has { SECRET.to_string() } else { "(unset)".to_string() };
    let shown: Vec<(&str, String)> = match context {
        Context::Object { of: Members::Targets, iqn, .. } => {
            let found = iqn.as_ref().and_then(|iqn| state.targets.iter().find(|t| t.iqn == *iqn));
            let t = found.cloned().unwrap_or_default();
            vec![
                ("iqn", if t.iqn.is_empty() { "(unset)".into() } else { t.iqn }),
                ("alias", unset(&t.alias)),
                ("auth", t.auth.word().into()),
                ("targetchapuser", unset(&t.chap_user)),
                ("targetchapsecret", secret(t.has_chap_secret)),
                ("interfaces", unset(&t.interfaces.join(", "))),
            ]
        }
        Context::Object { of: Members::Initiators, iqn, .. } => {
            let found = iqn.as_ref().and_then(|iqn| state.initiators.iter().find(|i| i.iqn == *iqn));
            let i = found.cloned().unwrap_or_default();
            vec![
                ("initiator", unset(&i.iqn)),
                ("alias", unset(&i.alias)),
                ("chapuser", unset(&i.chap_user)),
                ("chapsecret", secret(i.has_chap_secret)),
            ]
        }
        Context::Object { of, iqn, .. } => {
            let found = iqn.as_ref().and_then(|iqn| state.ports(*of).iter().find(|port| port.wwn == *iqn));
            let port = found.cloned().unwrap_or_default();
            let mut shown = vec![("wwn", unset(&port.wwn)), ("alias", unset(&port.alias))];
            if found.is_some() && of.is_target() {
                shown.push(("status", port.status));
            }
            shown
        }
        Context::Group { of, name, .. } => {
            let found = name.as_ref().and_then(|name| state.groups(*of).iter().find(|g| g.name == *name));
            let group = found.cloned().unwrap_or_default();
            vec![("name", unset(&group.name)), (side(*of), unset(&group.members.join(", ")))]
        }
        Context::Inquiry { .. } => {
            vec![("vendor", state.identity.vendor.clone()), ("product", state.identity.product.clone())]
        }
        _ => Vec::new(),
    };
    let drafted = |name: &str| context.draft().and_then(|draft| draft.get(name));
    let one = |(name, value): (&str, String)| match drafted(name) {
        Some(_) if name.ends_with("secret") => Shown::new(name, SECRET, "uncommitted"),
        Some(text) => Shown::new(name, text, "uncommitted"),
        None => Shown::new(name, value, ""),
    };
    shown.into_iter().map(one).collect()
}
