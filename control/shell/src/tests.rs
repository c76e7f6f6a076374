//! The shell against an appliance that only writes down what it is asked.

use crate::context::Context;
use crate::{Shell, help, run_script};
use api::analytics::{Analytics, Told};
use api::automatic::{Automatic, AutomaticDeed, Frequency, When};
use api::san::{FcPort, Group, Members, NO_PORT, San, SanState};
use api::shares::{Item, ItemKind, Shares};
use api::{
    ApiError, Call, Caller, CustomProperty, CustomType, ErrorKind, Reply, Request, Schema, ServiceState,
    Services, Switch,
};

/// Knows a project and a LUN; whatever else is asked for is done.
#[derive(Default)]
struct Book {
    asked: Vec<(String, Request)>,
    refuses: Option<&'static str>,
    /// Also knows this project when all are asked for.
    lists: Option<&'static str>,
}

impl Caller for Book {
    fn outlives_us(&self) -> bool {
        true
    }

    fn call(&mut self, Call { command: line, request, .. }: Call) -> Result<Reply, ApiError> {
        if let Some(why) = self.refuses.filter(|_| !request.is_question()) {
            return Err(ApiError::new(ErrorKind::Invalid, why));
        }
        let reply = match &request {
            Request::Pools { .. } => Reply::Pools(vec![rebuilt("tank"), pool("lake")]),
            Request::Shares(Shares::Get { place }) => {
                let kind = match place.share.as_deref() {
                    None => ItemKind::Project,
                    Some("innodb-data") => ItemKind::Lun,
                    Some(_) => return Err(ApiError::new(ErrorKind::NotFound, "there is no such share")),
                };
                Reply::Items(vec![Item {
                    place: place.clone(),
                    kind,
                    attributes: Vec::new(),
                    custom: Vec::new(),
                }])
            }
            Request::Shares(Shares::Projects { .. }) => Reply::Items(
                self.lists
                    .map(|name| Item {
                        place: api::shares::Place::project("tank", name),
                        kind: ItemKind::Project,
                        attributes: Vec::new(),
                        custom: Vec::new(),
                    })
                    .into_iter()
                    .collect(),
            ),
            Request::Shares(Shares::Shares { .. }) => Reply::Items(Vec::new()),
            Request::San(San::Show) => Reply::San(Box::new(SanState {
                target_groups: vec![Group { name: "default".into(), members: Vec::new() }],
                fc_targets: vec![FcPort { wwn: WWN.into(), alias: "left".into(), status: NO_PORT.into() }],
                ..SanState::default()
            })),
            Request::Shares(Shares::Automatics { .. }) => Reply::Automatics(vec![Automatic {
                when: When { frequency: Frequency::Week, day: 5, hour: 3, minute: 5 },
                keep: 4,
                ..Automatic::default()
            }]),
            Request::Services(Services::Show) => Reply::Services(vec![
                ServiceState { clients: 2, ..service("iscsi", &["127.0.0.1:3260"]) },
                service("nbd", &[]),
            ]),
            Request::Analytics(asked) => analytics(asked),
            Request::Events { since } => Reply::Events(vec![api::Event {
                id: since + 1,
                seconds: 5,
                class: "sysevent.fs.zfs.scrub_start".into(),
                fields: vec![("pool".into(), "ta\u{1b}nk".into()), ("txg".into(), "7".into())],
                ..api::Event::default()
            }]),
            Request::Schema(Schema::Show) => Reply::Schema(vec![CustomProperty {
                name: "owner".into(),
                kind: CustomType::EmailAddress,
                description: "Whose it is".into(),
            }]),
            _ => Reply::Done,
        };
        if !request.is_question() {
            self.asked.push((line, request));
        }
        Ok(reply)
    }
}

/// One dataset and one worksheet.
fn analytics(asked: &Analytics) -> Reply {
    Reply::Analytics(match asked {
        Analytics::Datasets => Told::Datasets(vec![api::analytics::Dataset {
            name: "io.ops[size]".into(),
            unit: "operations/s".into(),
            incore: 516 << 10,
            size: 6 << 20,
            saved: true,
            ..Default::default()
        }]),
        Analytics::Worksheets => Told::Worksheets(vec![api::analytics::Worksheet {
            uuid: "u-1".into(),
            name: "split".into(),
            graphs: vec![api::analytics::Graph { name: "io.ops[size]".into(), ..Default::default() }],
            ..Default::default()
        }]),
        Analytics::Data(query) => Told::Data(api::analytics::Data {
            name: query.name.clone(),
            unit: "operations/s".into(),
            scale: "bytes".into(),
            points: vec![api::analytics::Point {
                sample: 0,
                samples: 1,
                value: 5,
                sum: 5,
                min: 5,
                max: 5,
                parts: vec![api::analytics::Part {
                    key: api::analytics::Key::Range(524_288, 1 << 20),
                    value: 5,
                    sum: 5,
                }],
            }],
        }),
        Analytics::Open { statistic } => return Reply::Named { name: statistic.clone() },
        _ => return Reply::Done,
    })
}

#[test]
fn datasets_are_listed_read_and_changed_and_worksheets_get_graphs() {
    let (text, asked) = transcript(
        "analytics datasets\nshow\nselect dataset-000\nread 1\ncsv 1\nset suspended=true\ncommit\ncd /\n\
         analytics datasets create iscsi.ops[size]\n\
         analytics worksheets select split dataset\nset name=iscsi.ops[size] seconds=60\ncommit\n\
         analytics datasets destroy io.ops[size]\n",
    );
    assert!(text.contains("dataset-000  active  516K    6M      io.ops[size]"), "{text}");
    assert!(text.contains("1970-01-01 00:00:00             5            5 512K"), "{text}");
    assert!(text.contains("1970-01-01T00:00:00Z,512K,5"), "{text}");
    assert!(text.ends_with("To go on, say \"confirm destroy io.ops[size]\"\n"), "{text}");
    let expected = [
        Analytics::Suspend { name: Some("io.ops[size]".into()), suspended: true },
        Analytics::Open { statistic: "iscsi.ops[size]".into() },
        Analytics::Save { name: "iscsi.ops[size]".into() },
        Analytics::GraphAdd {
            worksheet: "u-1".into(),
            graph: api::analytics::Graph {
                name: "iscsi.ops[size]".into(),
                drilldowns: Vec::new(),
                seconds: 60,
            },
        },
    ];
    let asked: Vec<Request> = asked.into_iter().map(|(_, request)| request).collect();
    assert_eq!(asked, expected.map(Request::Analytics));
}

#[test]
fn words_that_are_declared_ask_print_and_leave_what_is_gone() {
    let (text, asked) = transcript(
        "analytics datasets suspend\nanalytics worksheets select split\nselect dataset-000\ndestroy\nup\ncreate new\n\
         cd /\nmaintenance system events 41\nanalytics datasets select dataset-000\nconfirm prune hour\n\
         prune\n",
    );
    let prompts = prompts(&text);
    assert!(prompts[4].starts_with("zfs:analytics worksheet split> up"), "{text}");
    assert!(
        text.contains(&format!("Events:\n\nID  TIME  {:<29}FIELDS\n42  5     sysevent", "CLASS")),
        "{text}"
    );
    assert!(text.contains("pool=ta\u{2039}U+001B\u{203a}nk, txg=7\n"), "{text}");
    assert!(
        text.ends_with("This forgets samples of the dataset. To go on, say \"confirm prune\"\n"),
        "{text}"
    );
    let uuid = || "u-1".to_string();
    let name = || "io.ops[size]".to_string();
    let granularity = Some(api::analytics::Granularity::Hour);
    let expected = [
        ("shell: analytics datasets suspend", Analytics::Suspend { name: None, suspended: true }),
        (
            "shell: analytics worksheet split io.ops[size] destroy",
            Analytics::GraphRemove { worksheet: uuid(), graph: name() },
        ),
        (
            "shell: analytics worksheets create new",
            Analytics::WorksheetCreate { name: "new".into(), owner: String::new() },
        ),
        (
            "shell: analytics dataset-000 prune hour",
            Analytics::Prune { name: name(), granularity, before: None },
        ),
    ];
    assert_eq!(asked, expected.map(|(line, asked)| (line.to_string(), Request::Analytics(asked))));
    let (text, _) = transcript("configuration alerts\nhelp destroy\ndestroy\n");
    assert!(text.contains("destroy receiver => sends none to one any more\n"), "{text}");
    assert!(text.ends_with("it is: destroy receiver\n"), "{text}");
}

/// A word that is declared for a place that no context has could be said nowhere; one that a context has of its own
/// would not be heard.
#[test]
fn declared_words_are_of_contexts_that_are_there_and_are_said_once() {
    let name = || "a".to_string();
    let draft = crate::draft::Draft::default;
    let contexts = [
        Context::Shares,
        Context::Schema,
        Context::SchemaProperty { name: name(), new: false, draft: draft() },
        Context::Configuration,
        Context::Services,
        Context::Service { name: name(), draft: draft() },
        Context::Alerts { draft: draft() },
        Context::Receiver { name: name(), new: false, draft: draft() },
        Context::San,
        Context::Inquiry { draft: draft() },
        Context::Maintenance,
        Context::System,
        Context::Updates,
        Context::Analytics,
        Context::Datasets,
        Context::Dataset { name: name(), label: name(), draft: draft() },
        Context::Worksheets,
        Context::Worksheet { uuid: name(), name: name(), draft: draft() },
        Context::Graph { worksheet: name(), name: Some(name()), draft: draft() },
        Context::AnalyticsSettings { draft: draft() },
        Context::AnalyticsExport { draft: draft() },
    ];
    for spoken in api::declared::TABLE.iter().copied().flatten().flat_map(|declared| declared.said) {
        let there =
            contexts.iter().find(|context| context.place().is_some_and(|(place, _)| place == spoken.place));
        let there = there.unwrap_or_else(|| panic!("no context is \"{}\"", spoken.place));
        let things = there.place().map_or(0, |(_, things)| things.len());
        assert_eq!(things, spoken.place.matches('{').count(), "{}", spoken.place);
        let words = help::own(there).into_iter().chain(help::EVERYWHERE.iter().copied());
        let same = words.filter(|(usage, _)| usage.split(' ').next() == Some(spoken.word())).count();
        assert_eq!(same, 1, "{} \"{}\"", spoken.place, spoken.word());
    }
}

fn service(name: &str, addresses: &[&str]) -> ServiceState {
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    ServiceState { name: name.into(), enabled: !addresses.is_empty(), addresses, ..ServiceState::default() }
}

/// A pool of which only the name matters.
fn pool(name: &str) -> api::Pool {
    api::Pool {
        name: name.into(),
        guid: 1,
        txg: 1,
        health: "ONLINE".into(),
        properties: Vec::new(),
        vdevs: None,
        scan: None,
        error_scrub: None,
        errors: api::DataErrors::default(),
        unusable: Vec::new(),
        suspended: None,
        logs: Vec::new(),
        problem: None,
        clock_ns: 0,
    }
}

/// One with a mirror, of which a device is copied to in the order of the disk.
fn rebuilt(name: &str) -> api::Pool {
    let leaf = |path: &str, why: Option<&str>| api::Vdev {
        kind: "file".into(),
        path: Some(path.into()),
        state: "ONLINE".into(),
        why: why.map(String::from),
        ..Default::default()
    };
    let rebuild = api::Rebuild { scanned: 1 << 30, expected: 4 << 30, ..Default::default() };
    let mirror = api::Vdev {
        kind: "mirror".into(),
        state: "ONLINE".into(),
        rebuild: Some(Box::new(rebuild)),
        children: vec![leaf("/d/a", None), leaf("/d/b", Some("(resilvering)"))],
        ..Default::default()
    };
    let root = api::Vdev {
        kind: "root".into(),
        state: "ONLINE".into(),
        children: vec![mirror],
        ..Default::default()
    };
    api::Pool { vdevs: Some(root), ..pool(name) }
}

/// Runs lines; the transcript, and what was asked for.
fn transcript(lines: &str) -> (String, Vec<(String, Request)>) {
    let mut book = Book::default();
    let mut shell = Shell::new("zfs", 0, &mut book);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    run_script(&mut shell, lines.as_bytes(), true, &mut out, &mut err).unwrap();
    out.extend(err);
    (String::from_utf8(out).unwrap(), book.asked)
}

fn prompts(text: &str) -> Vec<String> {
    text.lines().filter(|l| l.starts_with("zfs:")).map(String::from).collect()
}

#[test]
fn a_commit_leads_back_to_where_the_line_began() {
    let (text, asked) = transcript(
        "shares project mysql\nset logbias=latency\ncommit\nshares select mysql\nlun innodb-log\nset volsize=256G\ncommit\ndone\n",
    );
    assert_eq!(
        text,
        "zfs:> shares project mysql\n\
         zfs:shares mysql (uncommitted)> set logbias=latency\n\
         \x20                      logbias = latency (uncommitted)\n\
         zfs:shares mysql (uncommitted)> commit\n\
         zfs:> shares select mysql\n\
         zfs:shares mysql> lun innodb-log\n\
         zfs:shares mysql/innodb-log (uncommitted)> set volsize=256G\n\
         \x20                      volsize = 256G (uncommitted)\n\
         zfs:shares mysql/innodb-log (uncommitted)> commit\n\
         zfs:shares mysql> done\n"
    );
    let lines: Vec<&str> = asked.iter().map(|(line, _)| line.as_str()).collect();
    assert_eq!(lines, ["shell: project mysql logbias=latency", "shell: lun mysql/innodb-log volsize=256G"]);
}

/// What wrapped examples of documents look like: the second line was taken for a command.
#[test]
fn a_line_that_ends_in_a_backslash_goes_on_with_the_next() {
    let whole = "shares project mysql\nset logbias=latency\ncommit\n";
    let split = "shares \\\n  project my\\\nsql\nset \\\r\nlogbias=latency\ncommit\\\n";
    assert_eq!(transcript(split).1, transcript(whole).1);
    assert!(transcript(split).1.len() == 1 && transcript(split).0.contains("> set logbias=latency\n"));
}

#[test]
fn a_set_at_the_end_of_a_line_is_committed_and_leaves_everything_where_it_was() {
    let (text, asked) =
        transcript("shares select mysql select innodb-data set logbias=throughput\nhelp show\n");
    assert!(text.lines().last().unwrap().contains("=>") && prompts(&text)[1].starts_with("zfs:> "), "{text}");
    assert!(
        matches!(&asked[..], [(_, Request::Shares(Shares::Change { set, .. }))]
            if set[..] == [("logbias".to_string(), "throughput".to_string())]),
        "{asked:?}"
    );
}

const WWN: &str = "21:00:00:e0:8b:05:05:04";

#[test]
fn targets_of_fibre_channel_are_configured_by_wwn_and_told_to_have_no_port() {
    let (text, asked) = transcript(
        "configuration san targets fc\nlist\ncreate\nset wwn=210000e08b050504 alias=left\ncommit\ngroups create\n\
         set name=fc targets=210000e08b050504\ncommit\n",
    );
    assert!(text.contains(&format!("target-000  left   {WWN}  no port\n")), "{text}");
    assert!(text.contains("This machine serves no port of Fibre Channel.\n"), "{text}");
    let asked: Vec<&Request> =
        asked.iter().map(|(_, request)| request).filter(|r| !r.is_question()).collect();
    let (of, alias) = (Members::FcTargets, Some("left".to_string()));
    let create = San::FcCreate { of, wwn: "210000e08b050504".into(), alias };
    let group = San::GroupCreate { of, name: "fc".into(), members: vec!["210000e08b050504".into()] };
    assert_eq!(asked, [&Request::San(create), &Request::San(group)]);
    // By whatever spelling it is selected.
    for name in ["target-000", "left", "wwn.210000E08B050504"] {
        let (text, _) = transcript(&format!("configuration san targets fc select {name} show"));
        assert!(text.contains(WWN) && text.contains("status = no port"), "{name}: {text}");
    }
    let (text, asked) = transcript("configuration san initiators fc create\nset alias=x\ncommit\n");
    assert!(text.contains("property \"wwn\" must be set") && asked.is_empty(), "{text}");
    let (text, _) = transcript("configuration san targets fc create set iqn=x");
    assert!(text.contains("invalid property \"iqn\""), "{text}");
    let (text, _) = transcript("configuration san targets fc select target-000 set wwn=1");
    assert!(text.contains("error: "), "a name is given once: {text}");
}

#[test]
fn contexts_are_left_by_done_up_and_top_but_not_with_a_draft() {
    let (text, _) = transcript(
        "configuration\nsan targets\niscsi\ncd ..\ndone\ndone\ndone\nmaintenance system updates\ntop\nshares\nproject x\nabort\nproject y\ncd ..\n",
    );
    assert_eq!(
        prompts(&text),
        [
            "zfs:> configuration",
            "zfs:configuration> san targets",
            "zfs:configuration san targets> iscsi",
            "zfs:configuration san targets iscsi> cd ..",
            "zfs:configuration san targets> done",
            "zfs:configuration> done",
            "zfs:> done",
        ]
    );
    assert!(text.ends_with("error: this is the top\n"), "the first error ends a script: {text}");
    let (text, asked) = transcript("shares\nproject x\nset quota=1G\nabort\nproject y\ncd ..\n");
    assert!(text.ends_with("error: there are uncommitted changes; use commit or abort\n"), "{text}");
    assert!(asked.is_empty());
}

#[test]
fn errors_are_said_and_leave_one_where_one_was() {
    for (line, said) in [
        ("nonsense", "error: invalid command \"nonsense\""),
        ("shares nonsense", "error: invalid command \"nonsense\""),
        ("shares select mysql select gone", "error: there is no such share"),
        ("shares project x set nonsense=1", "error: invalid property \"nonsense\""),
        ("shares project x set quota", "error: invalid property assignment \"quota\": it is like name=value"),
        (
            "shares project x set quota=much",
            "error: invalid value \"much\" for \"quota\": a size starts with a number",
        ),
        ("shares select mysql select innodb-data set lunguid=1", "error: property \"lunguid\" is read-only"),
        ("shares destroy mysql", "To go on, say \"confirm destroy mysql\""),
        ("shares set pool=sea", "error: there is no pool \"sea\""),
        ("configuration san targets iscsi select target-007", "error: there is no target \"target-007\""),
        ("configuration san targets iscsi create set auth=radius; commit", "error: RADIUS is not part"),
        ("set alias=\"x", "error: a quote is not closed"),
    ] {
        let (text, asked) = transcript(line);
        assert!(text.contains(said), "{line}: {text}");
        assert!(asked.is_empty(), "{line}: {asked:?}");
    }
    let mut book = Book { refuses: Some("cannot create: out of space"), ..Book::default() };
    let mut shell = Shell::new("zfs", 0, &mut book);
    shell.run("shares project x").unwrap();
    assert_eq!(shell.run("commit").unwrap_err(), "cannot create: out of space");
    assert_eq!(shell.prompt(), "zfs:shares x (uncommitted)> ", "what was set is not lost");
}

/// It was an invalid property, and with it in a list nothing was shown.
#[test]
fn an_attribute_of_which_there_is_nothing_to_say_is_empty() {
    let (text, _) = transcript("shares select mysql select innodb-data get migration volsize problem");
    assert!(text.contains("migration = \n") && text.contains("problem = \n"), "{text}");
    let (text, _) = transcript("shares select mysql select innodb-data get nonsense");
    assert!(text.contains("invalid property \"nonsense\""), "{text}");
}

#[test]
fn what_cannot_be_undone_wants_to_be_confirmed() {
    let (_, asked) =
        transcript("shares confirm destroy mysql\nshares set pool=lake\nshares select web confirm destroy\n");
    let places: Vec<String> = asked
        .iter()
        .map(|(_, request)| match request {
            Request::Shares(Shares::Destroy { place, force: true }) => place.dataset(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(places, ["tank/mysql", "lake/web"]);
}

#[test]
fn secrets_are_neither_echoed_nor_shown() {
    let (text, asked) = transcript(
        "configuration san initiators iscsi create\nset initiator=iqn.2001-04.com.example:a chapsecret=correct-horse\nshow\nget chapsecret\ncommit\n",
    );
    let typed = text.lines().filter(|l| l.contains("correct-horse")).count();
    assert_eq!(typed, 1, "only where it was typed: {text}");
    assert!(text.contains("chapsecret = ******** (uncommitted)"), "{text}");
    match &asked[..] {
        [(line, Request::San(San::InitiatorCreate { iqn, set }))] => {
            assert_eq!((line.as_str(), iqn.as_str()), ("", "iqn.2001-04.com.example:a"));
            assert_eq!(set.chap_secret.as_ref().unwrap().reveal(), "correct-horse");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn groups_are_made_where_the_appliance_has_them() {
    let (text, asked) = transcript(
        "configuration san targets iscsi groups create\nset name=mysql-tgt targets=\"iqn.2001-04.com.example:t, iqn.2001-04.com.example:u\"\ncommit\n",
    );
    assert_eq!(
        prompts(&text)[1],
        "zfs:configuration san targets iscsi group (uncommitted)> set name=mysql-tgt targets=\"iqn.2001-04.com.example:t, iqn.2001-04.com.example:u\""
    );
    assert!(
        matches!(&asked[..], [(_, Request::San(San::GroupCreate { name, members, .. }))]
            if name == "mysql-tgt" && members.len() == 2),
        "{asked:?}"
    );
}

/// Devices could not be replaced in the shell at all, and a copy in the order of the disk was shown nowhere in it.
#[test]
fn devices_are_listed_with_how_far_they_are_and_replaced_in_either_order() {
    let (text, asked) = transcript(
        "maintenance hardware\nlist\nreplace tank /d/a /d/b sequential\nreplace tank /d/a\n\
         attach tank 4711 /d/c\ndetach tank /d/a\noffline tank /d/a\nonline tank /d/a\nreplace tank /d/a b\n\
         offline tank /d/a sequential\n",
    );
    let words: Vec<&str> = text.split_whitespace().collect();
    let words = words.join(" ");
    for part in [
        "POOL DEVICE STATE READ WRITE CKSUM NOTE",
        "tank ONLINE 0 0 0 mirror-0 ONLINE 0 0 0 sequential resilver: 25% of 4G",
        "/d/b ONLINE 0 0 0 (resilvering)",
        "\"b\" is no absolute path of a device",
    ] {
        assert!(words.contains(part), "{part}: {text}");
    }
    use api::{DeviceAction, Joining};
    let new =
        |device: &str, sequential| Joining { device: device.into(), force: false, ashift: None, sequential };
    let expected = [
        ("shell: replace tank /d/a /d/b sequential", "/d/a", DeviceAction::Replace(new("/d/b", true))),
        ("shell: replace tank /d/a", "/d/a", DeviceAction::Replace(new("/d/a", false))),
        ("shell: attach tank 4711 /d/c", "4711", DeviceAction::Attach(new("/d/c", false))),
        ("shell: detach tank /d/a", "/d/a", DeviceAction::Detach),
        ("shell: offline tank /d/a", "/d/a", DeviceAction::Offline { temporary: false, fault: false }),
        ("shell: online tank /d/a", "/d/a", DeviceAction::Online { expand: false }),
    ];
    let expected: Vec<_> = expected
        .into_iter()
        .map(|(line, device, action)| {
            (line.to_string(), Request::PoolDevice { name: "tank".into(), device: device.into(), action })
        })
        .collect();
    let changes: Vec<_> = asked.into_iter().filter(|(_, request)| !request.is_question()).collect();
    assert_eq!(changes, expected, "{text}");
}

#[test]
fn the_schema_is_a_context_and_its_properties_are_set_like_others() {
    let (text, asked) = transcript(
        "shares schema\nlist\ncreate priority\nset type=PositiveInteger description=\"How soon\"\nshow\ncommit\nselect owner get type\nselect owner set description=Who\nconfirm destroy owner\ntop\nshares select mysql set custom:owner=ann@example.com\n",
    );
    assert!(
        prompts(&text).contains(&"zfs:shares schema priority (uncommitted)> commit".to_string()),
        "{text}"
    );
    assert!(text.contains("owner  EmailAddress  Whose it is"), "{text}");
    assert!(text.contains("                          type = PositiveInteger (uncommitted)\n"), "{text}");
    assert!(text.contains("                          type = EmailAddress\n"), "{text}");
    assert!(text.contains("                  custom:owner = ann@example.com (uncommitted)\n"), "{text}");
    let asked: Vec<Request> = asked.into_iter().map(|(_, request)| request).collect();
    assert_eq!(
        asked[..3],
        [
            Request::Schema(Schema::Create(CustomProperty {
                name: "priority".into(),
                kind: CustomType::PositiveInteger,
                description: "How soon".into(),
            })),
            Request::Schema(Schema::Change {
                name: "owner".into(),
                kind: None,
                description: Some("Who".into())
            }),
            Request::Schema(Schema::Destroy { name: "owner".into() }),
        ]
    );
    assert!(matches!(&asked[3], Request::Shares(Shares::Change { set, .. })
        if set[..] == [("custom:owner".to_string(), "ann@example.com".to_string())]));
    for (line, said) in [
        ("shares schema select gone", "there is no property \"gone\" in the schema"),
        (
            "shares schema select owner set type=colour",
            "invalid value \"colour\" for \"type\": it is one of String, ",
        ),
        ("shares schema destroy owner", "say \"confirm destroy owner\""),
        ("configuration san inquiry set custom:owner=x", "invalid property"),
    ] {
        assert!(transcript(line).0.contains(said), "{line}: {}", transcript(line).0);
    }
}

#[test]
fn schedules_are_a_context_of_snapshots() {
    let (text, asked) = transcript(
        "shares select mysql snapshots automatic\nlist\ncreate\nset frequency=month day=31 hour=14 minute=15 keep=4\nshow\ncommit\nselect automatic-000 set keep=7\nselect automatic-000 get day\nconfirm destroy automatic-000\n",
    );
    assert!(text.contains("automatic-000  week       Saturday  03:05  4"), "{text}");
    let prompt = "zfs:shares mysql snapshots automatic schedule (uncommitted)> commit";
    assert!(prompts(&text).contains(&prompt.to_string()), "{text}");
    assert!(text.contains("                           day = 31 (uncommitted)\n"), "{text}");
    assert!(text.contains("                           day = Saturday\n"), "{text}");
    let deeds: Vec<AutomaticDeed> = asked
        .into_iter()
        .map(|(_, request)| match request {
            Request::Shares(Shares::Automatic { place, deed }) if place.dataset() == "tank/mysql" => deed,
            other => panic!("{other:?}"),
        })
        .collect();
    let words = |words: &[(&str, &str)]| words.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
    let set =
        words(&[("frequency", "month"), ("day", "31"), ("hour", "14"), ("minute", "15"), ("keep", "4")]);
    assert_eq!(
        deeds,
        [
            AutomaticDeed::Create { set },
            AutomaticDeed::Change { id: 0, set: words(&[("keep", "7")]) },
            AutomaticDeed::Destroy { id: 0 },
        ]
    );
    for (line, said) in [
        ("shares select mysql snapshots automatic select daily", "there is no schedule \"daily\""),
        (
            "shares select mysql snapshots automatic destroy automatic-000",
            "what it took stays. To go on, say",
        ),
    ] {
        assert!(transcript(line).0.contains(said), "{line}: {}", transcript(line).0);
    }
}

#[test]
fn services_are_contexts_that_are_switched_and_moved() {
    let (text, asked) = transcript(
        "configuration services\nlist\niscsi\nshow\nconfirm disable\nset listen=192.0.2.1:3260,[::1]:3260\nget listen\ncommit\nup\nselect nbd enable\nnbd disable\nnbd set listen=\niscsi confirm restart\ntop\nconfiguration services iscsi disable\n",
    );
    assert!(text.contains("iscsi  online    127.0.0.1:3260\nnbd    disabled"), "{text}");
    assert!(text.contains("                      <status> = online\n"), "{text}");
    assert!(text.contains("                        listen =  (default)\n"), "{text}");
    assert!(
        text.contains("                        listen = 192.0.2.1:3260, [::1]:3260 (uncommitted)\n"),
        "{text}"
    );
    assert!(text.ends_with("error: This ends 2 clients. To go on, say \"confirm disable\"\n"), "{text}");
    let switched = |name: &str, to| Request::Services(Services::Switch { name: name.into(), to });
    let moved = |name: &str, addresses: &[&str]| {
        let addresses = addresses.iter().map(ToString::to_string).collect();
        Request::Services(Services::Listen { name: name.into(), addresses })
    };
    let asked: Vec<Request> = asked.into_iter().map(|(_, request)| request).collect();
    assert_eq!(
        asked,
        [
            switched("iscsi", Switch::Disable),
            moved("iscsi", &["192.0.2.1:3260", "[::1]:3260"]),
            switched("nbd", Switch::Enable),
            switched("nbd", Switch::Disable),
            moved("nbd", &[]),
            switched("iscsi", Switch::Restart),
        ]
    );
    for (line, said) in [
        ("configuration services ftp", "invalid command \"ftp\""),
        ("configuration services select ftp", "there is no service \"ftp\""),
        ("configuration services iscsi set port=1", "invalid property \"port\""),
    ] {
        assert!(transcript(line).0.contains(said), "{line}: {}", transcript(line).0);
    }
}

/// Only the first word of a line was completed, and a property's name; what came behind a context was not known.
#[test]
fn completion_follows_a_path_and_knows_values() {
    let mut book = Book::default();
    let mut shell = Shell::new("zfs", 0, &mut book);
    let prompt = shell.prompt();
    let mut at = |line: &str| crate::complete::at(&mut shell, line);
    assert!(at("sh").1.contains(&"shares".into()));
    assert_eq!(at("configuration ser"), (14, vec!["services".into()]));
    assert_eq!(at("configuration services select n"), (30, vec!["nbd".into()]));
    assert_eq!(at("shares select mysql set logb"), (24, vec!["logbias=".into()]));
    let values = at("shares select mysql set logbias=").1;
    assert_eq!(values, ["logbias=latency", "logbias=throughput"]);
    assert_eq!(at("shares select mysql set logbias=t").1, ["logbias=throughput"]);
    assert_eq!(at("show; configuration services select i").1, ["iscsi"]);
    assert_eq!(at("nowhere at all x").1, Vec::<String>::new());
    assert_eq!(shell.prompt(), prompt, "one is where one was");
    assert!(book.asked.is_empty(), "nothing was changed");
}

/// A project that was there was drafted anew, and refused when all of it had been set.
#[test]
fn what_is_there_is_not_made_again() {
    let mut book = Book { lists: Some("there"), ..Book::default() };
    let mut shell = Shell::new("zfs", 0, &mut book);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let lines = "shares set pool=tank\nshares project there\n";
    assert!(!run_script(&mut shell, lines.as_bytes(), false, &mut out, &mut err).unwrap());
    let said = String::from_utf8(err).unwrap();
    assert_eq!(said, "error: project \"there\" exists already; select it instead\n");
    assert!(book.asked.is_empty());
}
