use super::*;
use crate::http::{Args, Given};
use crate::san::{Auth, Identity, InitiatorChange, Members, San, TargetChange};
use crate::shares::{Place, Shares};
use crate::{
    AutomaticDeed, Class, CustomProperty, CustomType, DeviceAction, Joining, Layout, NewPool, Schema,
    ScrubAction, Secret, Services, ShareDeed, Switch, VdevGroup,
};
use std::collections::BTreeMap;

fn of_device(action: DeviceAction) -> Request {
    Request::PoolDevice { name: "tank".into(), device: "/d/a b".into(), action }
}

fn joining(sequential: bool) -> Joining {
    let ashift = sequential.then_some(12);
    Joining { device: "/d/new".into(), force: !sequential, ashift, sequential }
}

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
        Request::Doctor(crate::Doctor::Advice),
        Request::Doctor(crate::Doctor::Dataset { name: "tank/a b".into() }),
        Request::Doctor(crate::Doctor::Facts),
        Request::DeferredUpdates { pools: Vec::new() },
        Request::ApplyUpdates { pool: "tank".into(), features: vec!["a".into()] },
        Request::ConfigurationTell,
        Request::ConfigurationTake { text: Secret::new("sealed") },
    ];
    let name = || "iscsi.ops[client=iqn.2020-01.org:a/b][size]".to_string();
    let worksheet = || "monday morning".to_string();
    let graph = || crate::analytics::Graph { name: name(), drilldowns: vec!["512K".into()], seconds: 3_600 };
    use crate::analytics::{Analytics, ExportChange, Granularity, SettingsChange};
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
            Analytics::Export,
            Analytics::ExportSet(ExportChange {
                enabled: Some(true),
                headers: Some(Secret::new("api-key=s")),
                ..Default::default()
            }),
            Analytics::ExportTest,
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
    for of in [Members::FcTargets, Members::FcInitiators] {
        let wwn = || "21:00:00:e0:8b:05:05:04".to_string();
        all.push(Request::San(San::FcCreate { of, wwn: wwn(), alias: text("left") }));
        all.push(Request::San(San::FcSet { of, wwn: wwn(), alias: text("") }));
        all.push(Request::San(San::FcDestroy { of, wwn: wwn() }));
    }
    for of in Members::ALL {
        let members = || vec!["iqn.a".to_string(), "iqn.b".into()];
        let name = || "g".to_string();
        all.push(Request::San(San::GroupCreate { of, name: name(), members: members() }));
        all.push(Request::San(San::GroupSet { of, name: name(), new_name: text("h"), members: None }));
        all.push(Request::San(San::GroupSet { of, name: name(), new_name: None, members: Some(members()) }));
        all.push(Request::San(San::GroupDestroy { of, name: name() }));
    }
    all
}

/// Of what the kind of a share must be known to send it, with that kind.
fn of_shares() -> Vec<(Option<ItemKind>, Request)> {
    let words = |words: &[(&str, &str)]| -> Vec<(String, String)> {
        words.iter().map(|(name, word)| (name.to_string(), word.to_string())).collect()
    };
    let text = |text: &str| Some(text.to_string());
    let name = || "s".to_string();
    let project = Place::project("tank", "my sql");
    let mut all = vec![
        (None, Shares::Projects { pool: None }),
        (None, Shares::Projects { pool: text("tank") }),
        (
            None,
            Shares::Create {
                place: project.clone(),
                kind: ItemKind::Project,
                set: words(&[("quota", "1024")]),
            },
        ),
    ];
    for kind in [ItemKind::Filesystem, ItemKind::Lun] {
        all.extend([
            (None, Shares::Shares { pool: None, project: None, kind: Some(kind) }),
            (None, Shares::Shares { pool: text("tank"), project: text("p"), kind: Some(kind) }),
            (None, Shares::Create { place: project.share("a"), kind, set: words(&[("custom:x", "y")]) }),
        ]);
    }
    let of_lun =
        words(&[("copies", "2"), ("initiatorgroup", "a,c"), ("volsize", "2097152"), ("writecache", "false")]);
    for (kind, place) in [
        (None, project.clone()),
        (Some(ItemKind::Filesystem), project.share("logs")),
        (Some(ItemKind::Lun), project.share("data")),
    ] {
        let set = match kind {
            Some(ItemKind::Lun) => of_lun.clone(),
            _ => words(&[("atime", "true"), ("recordsize", "16384")]),
        };
        let to = Place::project("tank", "other");
        let deed = |deed| Shares::Snapshot { place: place.clone(), name: name(), deed };
        let mut of_place = vec![
            Shares::Get { place: place.clone() },
            Shares::change(place.clone(), set.clone(), vec!["logbias".into()]),
            Shares::rename(place.clone(), &if kind.is_none() { to } else { to.share("b") }),
            Shares::Destroy { place: place.clone(), force: false },
            Shares::Destroy { place: place.clone(), force: true },
            Shares::Snapshots { place: place.clone() },
            Shares::Dependents { place: place.clone(), name: name() },
            deed(ShareDeed::Take),
            deed(ShareDeed::Rename { to: "t".into() }),
            deed(ShareDeed::Destroy),
            Shares::Automatics { place: place.clone() },
        ];
        let when = || words(&[("frequency", "week"), ("keep", "7")]);
        of_place.extend(
            [
                AutomaticDeed::Create { set: when() },
                AutomaticDeed::Change { id: 3, set: when() },
                AutomaticDeed::Destroy { id: 12 },
            ]
            .map(|deed| Shares::Automatic { place: place.clone(), deed }),
        );
        if kind.is_some() {
            of_place.extend([
                deed(ShareDeed::Clone { project: None, share: "c".into(), set: set.clone() }),
                deed(ShareDeed::Clone { project: text("p"), share: "c".into(), set: Vec::new() }),
                deed(ShareDeed::Rollback { newer: true, force: false }),
                deed(ShareDeed::Rollback { newer: false, force: true }),
            ]);
        }
        all.extend(of_place.into_iter().map(|asked| (kind, asked)));
    }
    all.into_iter().map(|(kind, asked)| (kind, Request::Shares(asked))).collect()
}

fn of_pools() -> Vec<(Option<ItemKind>, Request)> {
    let name = || "tank".to_string();
    let group = |class, layout, devices: &[&str]| VdevGroup {
        class,
        layout,
        devices: devices.iter().map(ToString::to_string).collect(),
    };
    let mirrors = NewPool {
        name: name(),
        vdevs: vec![
            group(Class::Normal, Layout::Mirror, &["/a", "/b"]),
            group(Class::Normal, Layout::Mirror, &["/c", "/d"]),
            group(Class::Log, Layout::Stripe, &["/l"]),
        ],
        ..NewPool::default()
    };
    let raidz = NewPool {
        name: name(),
        vdevs: vec![group(Class::Normal, Layout::Raidz { parity: 2 }, &["/a", "/b", "/c", "/d"])],
        ..NewPool::default()
    };
    let all = [
        Request::Pools { names: Vec::new() },
        Request::Events { since: 0 },
        Request::Events { since: 4_096 },
        Request::PoolCreate(mirrors),
        Request::PoolCreate(raidz),
        Request::PoolDestroy { name: name(), force: false },
        Request::PoolScrub { name: name(), action: ScrubAction::Start },
        Request::PoolScrub { name: name(), action: ScrubAction::Errors },
        Request::PoolScrub { name: name(), action: ScrubAction::Stop },
        Request::PoolClear { name: name(), device: None },
        of_device(DeviceAction::Replace(joining(true))),
        of_device(DeviceAction::Replace(joining(false))),
        of_device(DeviceAction::Attach(joining(true))),
        of_device(DeviceAction::Detach),
        of_device(DeviceAction::Offline { temporary: true, fault: false }),
        of_device(DeviceAction::Offline { temporary: false, fault: true }),
        of_device(DeviceAction::Online { expand: true }),
        of_device(DeviceAction::Online { expand: false }),
    ];
    all.into_iter().map(|request| (None, request)).collect()
}

#[test]
fn a_pool_that_no_profile_makes_is_not_sent() {
    let group = |layout| VdevGroup {
        class: Class::Normal,
        layout,
        devices: vec!["/a".into(), "/b".into(), "/c".into()],
    };
    let mixed = vec![group(Layout::Mirror), group(Layout::Raidz { parity: 1 })];
    let forced = vec![group(Layout::Mirror)];
    for (vdevs, force) in [(mixed, false), (forced, true)] {
        let new = NewPool { name: "tank".into(), vdevs, force, ..NewPool::default() };
        assert!(sent(&Request::PoolCreate(new), None).is_none());
    }
}

/// What the server makes of what a client sent, in the bytes that travel.
fn received(declared: &Declared, sent: &Sent) -> Request {
    let braces = declared.face.path.split('/').filter_map(|p| p.strip_prefix('{')?.strip_suffix('}'));
    let params: BTreeMap<&'static str, String> = braces.zip(sent.params.iter().cloned()).collect();
    assert_eq!(params.len(), sent.params.len(), "{}: a brace for each part", declared.face.path);
    let body = sent.body.clone().map(|body| serde_json::Value::Object(body).to_string());
    let args = Args::read(body.unwrap_or_default().as_bytes(), declared.face.body).unwrap();
    let query: Vec<_> = sent.query.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    (declared.asked)(Given { params: &params, query: &query, args: &args }).unwrap()
}

#[test]
fn a_request_that_is_sent_is_the_one_that_is_received() {
    let mut unused: Vec<String> = TABLE.iter().copied().flatten().map(|d| format!("{:?}", d.face)).collect();
    let plain = samples().into_iter().map(|request| (None, request));
    for (kind, request) in plain.chain(of_shares()).chain(of_pools()) {
        let (declared, out) = sent(&request, kind).unwrap_or_else(|| panic!("{request:?} is not declared"));
        assert_eq!(received(declared, &out), request);
        unused.retain(|face| *face != format!("{:?}", declared.face));
    }
    assert_eq!(unused, [""; 0], "each declaration has a sample");
}

/// The words of a declaration name what it has: it is sent with all of them.
#[test]
fn a_word_of_the_shell_makes_the_request_that_declares_it() {
    let is_brace = |part: &&str| part.starts_with('{');
    for declared in TABLE.iter().copied().flatten() {
        for spoken in declared.said {
            let at = format!("{} \"{}\"", spoken.place, spoken.usage);
            let count =
                |text: &'static str, counts: fn(&&str) -> bool| text.split(' ').filter(counts).count();
            let things = vec!["tank".to_string(); count(spoken.place, |part| part.starts_with('{'))];
            // A number, or one of the words of granularities, is what some can only be.
            let word = |text: &str| vec![text.to_string(); spoken.usage.split(' ').count() - 1];
            let made = ["7", "hour"].map(|text| (text, declared.say(spoken, &things, &word(text))));
            let (text, request) =
                made.into_iter().find(|(_, made)| made.is_ok()).unwrap_or_else(|| panic!("{at}"));
            let request = request.unwrap();
            let back = (declared.sent)(&request).unwrap_or_else(|| panic!("{at}: {request:?}"));
            let params = back.params.iter().cloned();
            let query = back.query.iter().map(|(_, value)| value.clone());
            let body =
                back.body.iter().flatten().map(|(_, value)| value.to_string().trim_matches('"').to_string());
            let mut arrives: Vec<String> = params.chain(query).chain(body).collect();
            for told in things.iter().chain(&word(text)) {
                let at_last = arrives.iter().position(|value| value == told);
                arrives.swap_remove(at_last.unwrap_or_else(|| panic!("{at}: {told} is not in {request:?}")));
            }
            assert!(declared.say(spoken, &things, &[word("7"), vec!["8".into()]].concat()).is_err(), "{at}");
            assert!(declared.face.is_change() || declared.told.is_some(), "{at}: its answer is not told");
            assert!(declared.face.path.split('/').filter(is_brace).count() <= back.params.len(), "{at}");
        }
    }
}

#[test]
fn what_a_word_lacks_is_said() {
    let said = |place, word: &str| said_at(place).find(|(_, spoken)| spoken.word() == word).unwrap();
    let say = |place, word, follow: &[&str]| {
        let (declared, spoken) = said(place, word);
        let words: Vec<String> = follow.iter().map(ToString::to_string).collect();
        declared.say(spoken, &["one".into()], &words).map_err(|wrong| wrong.to_string())
    };
    assert_eq!(say("maintenance system", "events", &[]), Ok(Request::Events { since: 0 }));
    assert_eq!(say("maintenance system", "events", &["5"]), Ok(Request::Events { since: 5 }));
    for (place, word, follow, expected) in [
        ("configuration alerts", "destroy", &[][..], "it is: destroy receiver"),
        ("configuration alerts", "destroy", &["a", "b"], "it is: destroy receiver"),
        ("maintenance system", "events", &["today"], "since: a number is wanted"),
        (
            "analytics datasets {dataset}",
            "prune",
            &["week"],
            "'week' is no granularity: second, minute or hour",
        ),
    ] {
        assert_eq!(say(place, word, follow), Err(expected.to_string()), "{word} {follow:?}");
    }
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
