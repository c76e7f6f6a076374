//! Targets, initiators and their groups.

use super::values::{list, text, texts};
use super::{Remote, encode};
use api::san::{
    Auth, Group, Identity, Initiator, InitiatorChange, Members, San, SanState, Target, TargetChange,
};
use api::{Reply, Result, Secret};
use serde_json::{Map, Value, json};

const INQUIRY: &str = "/api/san/v1/inquiry";

fn objects(of: Members) -> &'static str {
    match of {
        Members::Targets => "/api/san/v1/iscsi/targets",
        Members::Initiators => "/api/san/v1/iscsi/initiators",
    }
}

fn groups(of: Members) -> &'static str {
    match of {
        Members::Targets => "/api/san/v1/iscsi/target-groups",
        Members::Initiators => "/api/san/v1/iscsi/initiator-groups",
    }
}

fn members(of: Members) -> &'static str {
    match of {
        Members::Targets => "targets",
        Members::Initiators => "initiators",
    }
}

fn at(folder: &str, name: &str) -> String {
    format!("{folder}/{}", encode(name))
}

/// Of what is said, nothing more.
fn body<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let said = fields.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?)));
    Value::Object(said.collect::<Map<_, _>>())
}

fn of_target(iqn: Option<String>, set: TargetChange) -> Value {
    body([
        ("iqn", iqn.map(Value::from)),
        ("alias", set.alias.map(Value::from)),
        ("auth", set.auth.map(|auth| auth.word().into())),
        ("targetchapuser", set.chap_user.map(Value::from)),
        ("targetchapsecret", set.chap_secret.as_ref().map(Secret::reveal).map(Value::from)),
        ("interfaces", set.interfaces.map(Value::from)),
    ])
}

fn of_initiator(iqn: Option<String>, set: InitiatorChange) -> Value {
    body([
        ("initiator", iqn.map(Value::from)),
        ("alias", set.alias.map(Value::from)),
        ("chapuser", set.chap_user.map(Value::from)),
        ("chapsecret", set.chap_secret.as_ref().map(Secret::reveal).map(Value::from)),
    ])
}

impl Remote {
    pub(super) fn san(&mut self, asked: San) -> Result<Reply> {
        let (targets, initiators) = (objects(Members::Targets), objects(Members::Initiators));
        match asked {
            San::Show => return Ok(Reply::San(Box::new(self.san_state()?))),
            San::TargetCreate { iqn, set } => {
                let made = self.post(targets, &of_target(iqn, set))?;
                return Ok(Reply::Named { name: text(&made["target"], "iqn") });
            }
            San::TargetSet { iqn, set } => self.put(&at(targets, &iqn), &of_target(None, set))?,
            San::TargetDestroy { iqn } => return self.delete(&at(targets, &iqn)),
            San::InitiatorCreate { iqn, set } => {
                self.post(initiators, &of_initiator(Some(iqn.clone()), set))?;
                return Ok(Reply::Named { name: iqn });
            }
            San::InitiatorSet { iqn, set } => self.put(&at(initiators, &iqn), &of_initiator(None, set))?,
            San::InitiatorDestroy { iqn } => return self.delete(&at(initiators, &iqn)),
            San::GroupCreate { of, name, members: all } => {
                self.post(groups(of), &json!({ "name": name, members(of): all }))?;
                return Ok(Reply::Named { name });
            }
            San::GroupSet { of, name, new_name, members: all } => {
                let body = body([("name", new_name.map(Value::from)), (members(of), all.map(Value::from))]);
                self.put(&at(groups(of), &name), &body)?
            }
            San::GroupDestroy { of, name } => return self.delete(&at(groups(of), &name)),
            San::SetIdentity(identity) => {
                self.put(INQUIRY, &json!({ "vendor": identity.vendor, "product": identity.product }))?
            }
        };
        Ok(Reply::Done)
    }

    fn san_state(&mut self) -> Result<SanState> {
        let target = |t: &Value| Target {
            iqn: text(t, "iqn"),
            alias: text(t, "alias"),
            auth: if t["auth"] == "chap" { Auth::Chap } else { Auth::None },
            chap_user: text(t, "targetchapuser"),
            has_chap_secret: !text(t, "targetchapsecret").is_empty(),
            interfaces: texts(t, "interfaces"),
        };
        let initiator = |i: &Value| Initiator {
            iqn: text(i, "initiator"),
            alias: text(i, "alias"),
            chap_user: text(i, "chapuser"),
            has_chap_secret: !text(i, "chapsecret").is_empty(),
        };
        let group = |of| move |g: &Value| Group { name: text(g, "name"), members: texts(g, members(of)) };
        let targets = self.get(objects(Members::Targets))?;
        let initiators = self.get(objects(Members::Initiators))?;
        let target_groups = self.get(groups(Members::Targets))?;
        let initiator_groups = self.get(groups(Members::Initiators))?;
        let inquiry = self.get(INQUIRY)?;
        Ok(SanState {
            targets: list(&targets, "targets").map(target).collect(),
            target_groups: list(&target_groups, "groups").map(group(Members::Targets)).collect(),
            initiators: list(&initiators, "initiators").map(initiator).collect(),
            initiator_groups: list(&initiator_groups, "groups").map(group(Members::Initiators)).collect(),
            identity: Identity {
                vendor: text(&inquiry["inquiry"], "vendor"),
                product: text(&inquiry["inquiry"], "product"),
            },
        })
    }
}
