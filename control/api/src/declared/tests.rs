use super::*;
use crate::http::{Args, Given};
use crate::san::{Auth, Identity, InitiatorChange, Members, San, TargetChange};
use crate::{CustomProperty, CustomType, Schema, Secret, Services, Switch};
use std::collections::BTreeMap;

fn samples() -> Vec<Request> {
    let text = |text: &str| Some(text.to_string());
    let set = TargetChange {
        alias: text("db"),
        auth: Some(Auth::Chap),
        chap_user: text(""),
        chap_secret: Some(Secret::new("twelve letters")),
        interfaces: Some(vec!["eth0".into()]),
    };
    let initiator =
        || InitiatorChange { alias: text("x"), chap_secret: Some(Secret::new("s")), ..Default::default() };
    let mut all = vec![
        Request::San(San::SetIdentity(Identity { vendor: "V".into(), product: "P".into() })),
        Request::San(San::TargetCreate { iqn: text("iqn.2020-01.a:b"), set: set.clone() }),
        Request::San(San::TargetCreate { iqn: None, set: TargetChange::default() }),
        Request::San(San::TargetSet { iqn: "iqn:x y/z".into(), set }),
        Request::San(San::TargetDestroy { iqn: "iqn".into() }),
        Request::San(San::InitiatorCreate { iqn: "iqn".into(), set: initiator() }),
        Request::San(San::InitiatorSet { iqn: "iqn".into(), set: initiator() }),
        Request::San(San::InitiatorDestroy { iqn: "iqn".into() }),
        Request::Schema(Schema::Show),
        Request::Schema(Schema::Create(CustomProperty {
            name: "p".into(),
            kind: CustomType::Host,
            description: "d".into(),
        })),
        Request::Schema(Schema::Change { name: "p".into(), kind: None, description: text("") }),
        Request::Schema(Schema::Change {
            name: "p".into(),
            kind: Some(CustomType::Integer),
            description: None,
        }),
        Request::Schema(Schema::Destroy { name: "p".into() }),
        Request::Services(Services::Show),
        Request::Services(Services::Listen { name: "nbd".into(), addresses: vec!["1.2.3.4:5".into()] }),
        Request::Services(Services::Listen { name: "nbd".into(), addresses: Vec::new() }),
        Request::DeferredUpdates { pools: Vec::new() },
        Request::ApplyUpdates { pool: "tank".into(), features: vec!["a".into()] },
        Request::ConfigurationTell,
        Request::ConfigurationTake { text: Secret::new("sealed") },
    ];
    let name = || "iscsi.ops[client=iqn.2020-01.org:a/b][size]".to_string();
    let worksheet = || "monday morning".to_string();
    let graph = || crate::analytics::Graph { name: name(), drilldowns: vec!["512K".into()], seconds: 3_600 };
    use crate::analytics::{Analytics, Granularity, SettingsChange};
    all.extend(
        [
            Analytics::Statistics,
            Analytics::Datasets,
            Analytics::Open { statistic: name() },
            Analytics::Save { name: name() },
            Analytics::Suspend { name: Some(name()), suspended: false },
            Analytics::Suspend { name: None, suspended: true },
            Analytics::Suspend { name: None, suspended: false },
            Analytics::Destroy { name: name() },
            Analytics::Prune {
                name: name(),
                granularity: Some(Granularity::Minute),
                before: Some(1_795_294_245),
            },
            Analytics::Prune { name: name(), granularity: None, before: None },
            Analytics::Changes,
            Analytics::Worksheets,
            Analytics::WorksheetCreate { name: worksheet(), owner: String::new() },
            Analytics::WorksheetRename { worksheet: worksheet(), name: "x".into() },
            Analytics::WorksheetDestroy { worksheet: worksheet() },
            Analytics::GraphAdd { worksheet: worksheet(), graph: graph() },
            Analytics::GraphSet {
                worksheet: worksheet(),
                graph: "dataset-000".into(),
                drilldowns: None,
                seconds: Some(60),
            },
            Analytics::GraphRemove { worksheet: worksheet(), graph: name() },
            Analytics::Settings,
            Analytics::SettingsSet(SettingsChange { retain_second_data: Some(24), ..Default::default() }),
        ]
        .map(Request::Analytics),
    );
    use crate::alerts::{Alerts, Handler, ReceiverChange, Severity, ThresholdsChange};
    let set = ReceiverChange {
        to: text("https://hooks.example.com/x"),
        severity: Some(Severity::Error),
        enabled: Some(false),
        secret: Some(Secret::new("s")),
        ..ReceiverChange::default()
    };
    all.extend(
        [
            Alerts::Receivers,
            Alerts::Create { name: "hook".into(), handler: Handler::Webhook, set: set.clone() },
            Alerts::Change { name: "hook".into(), set },
            Alerts::Change { name: "hook".into(), set: ReceiverChange::default() },
            Alerts::Destroy { name: "hook".into() },
            Alerts::Test { name: "hook".into() },
            Alerts::Thresholds,
            Alerts::SetThresholds(ThresholdsChange { space_percent: Some(90), ..Default::default() }),
        ]
        .map(Request::Alerts),
    );
    for to in [Switch::Enable, Switch::Disable, Switch::Restart] {
        all.push(Request::Services(Services::Switch { name: "iscsi".into(), to }));
    }
    for of in [Members::Targets, Members::Initiators] {
        let members = || vec!["iqn.a".to_string(), "iqn.b".into()];
        let name = || "g".to_string();
        all.push(Request::San(San::GroupCreate { of, name: name(), members: members() }));
        all.push(Request::San(San::GroupSet { of, name: name(), new_name: text("h"), members: None }));
        all.push(Request::San(San::GroupSet { of, name: name(), new_name: None, members: Some(members()) }));
        all.push(Request::San(San::GroupDestroy { of, name: name() }));
    }
    all
}

/// What the server makes of what a client sent, in the bytes that travel.
fn received(declared: &Declared, sent: &Sent) -> Request {
    let braces = declared.face.path.split('/').filter_map(|p| p.strip_prefix('{')?.strip_suffix('}'));
    let params: BTreeMap<&'static str, String> = braces.zip(sent.params.iter().cloned()).collect();
    assert_eq!(params.len(), sent.params.len(), "{}: a brace for each part", declared.face.path);
    let body = sent.body.clone().map(|body| serde_json::Value::Object(body).to_string());
    let args = Args::read(body.unwrap_or_default().as_bytes(), declared.face.body).unwrap();
    let query: Vec<_> = sent.query.iter().map(|name| (name.to_string(), "true".to_string())).collect();
    (declared.asked)(Given { params: &params, query: &query, args: &args }).unwrap()
}

#[test]
fn a_request_that_is_sent_is_the_one_that_is_received() {
    let mut unused: Vec<String> = TABLE.iter().copied().flatten().map(|d| format!("{:?}", d.face)).collect();
    for request in samples() {
        let (declared, out) = sent(&request).unwrap_or_else(|| panic!("{request:?} is not declared"));
        assert_eq!(received(declared, &out), request);
        unused.retain(|face| *face != format!("{:?}", declared.face));
    }
    assert_eq!(unused, [""; 0], "each declaration has a sample");
}

#[test]
fn no_two_declarations_have_one_face() {
    let mut faces: Vec<_> =
        TABLE.iter().copied().flatten().map(|d| (d.face.method.word(), d.face.path)).collect();
    let count = faces.len();
    faces.sort_unstable();
    faces.dedup();
    assert_eq!(faces.len(), count);
}
