//! Configurations that are not as they were: what is accepted can be started with, and the rest changes nothing.

use super::{USERS, USERS_KEY};
use crate::san::Network;
use crate::{Appliance, Config, Home};
use access::{Authorization, Holder, ROOT, State};
use api::automatic::AutomaticDeed;
use api::san::{InitiatorChange, Members, San, TargetChange};
use api::shares::{ItemKind, Place, Shares};
use api::{
    Call, CustomProperty, CustomType, Layout, NewPool, Reply, Request, Schema, Secret, Service, Services,
};
use serde_json::{Value, json};
use sim::Disks;
use std::future::Future;
use std::path::PathBuf;
use store::{Look, Table};

const WWN: &str = "21:00:00:e0:8b:05:05:04";
const TARGET: &str = "iqn.2001-04.com.example:t";
const INITIATOR: &str = "iqn.2001-04.com.example:i";
const MUTANTS: u64 = 2000;

struct Dir(PathBuf);

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run<T: Send + 'static, W: Future<Output = T> + Send + 'static>(
    name: &str,
    work: impl FnOnce(Appliance) -> W + Send + 'static,
) -> T {
    let dir = Dir(std::env::temp_dir().join(format!("cenote-{name}-{}", std::process::id())));
    let _ = std::fs::remove_dir_all(&dir.0);
    let disks = Disks::new();
    disks.add("/sim/a", 256 << 20, sim::Model::NVME);
    let home = Home::find(Some(&dir.0)).unwrap();
    sim::run_with(&disks, 7, sim::Config::default(), async move {
        home.prepare().unwrap();
        let config = Config { home, is_daemon: true, mounts: false, system: Vec::new(), is_safe: false };
        let appliance = Appliance::start(config).await.unwrap();
        fill(&appliance).await;
        let outcome = work(appliance.clone()).await;
        appliance.stop().await.unwrap();
        outcome
    })
}

async fn ask(appliance: &Appliance, request: Request) -> api::Result<Reply> {
    appliance.call(Call { command: "test".into(), uid: 0, request }).await
}

/// Something in every table.
async fn fill(appliance: &Appliance) {
    let pool = NewPool::of("tank", Layout::Stripe, &["/sim/a"]);
    let text = |text: &str| Some(text.to_string());
    let secret = || Some(Secret::new("a secret of chap"));
    let weekly = [("frequency", "week"), ("day", "Saturday"), ("hour", "3"), ("keep", "4")];
    let weekly = weekly.map(|(name, word)| (name.to_string(), word.to_string()));
    let project = Place::project("tank", "p");
    let target = TargetChange { alias: text("t"), chap_secret: secret(), ..TargetChange::default() };
    let initiator = InitiatorChange { alias: text("i"), chap_secret: secret(), ..InitiatorChange::default() };
    let group = |of, name: &str, member: &str| San::GroupCreate {
        of,
        name: name.into(),
        members: vec![member.into()],
    };
    for request in [
        Request::PoolCreate(pool),
        Request::Shares(Shares::Create { place: project.clone(), kind: ItemKind::Project, set: Vec::new() }),
        Request::Shares(Shares::Automatic {
            place: project,
            deed: AutomaticDeed::Create { set: weekly.into() },
        }),
        Request::San(San::TargetCreate { iqn: text(TARGET), set: target }),
        Request::San(San::InitiatorCreate { iqn: INITIATOR.into(), set: initiator }),
        Request::San(group(Members::Targets, "tgt", TARGET)),
        Request::San(group(Members::Initiators, "init", INITIATOR)),
        Request::San(San::FcCreate { of: Members::FcTargets, wwn: WWN.into(), alias: text("left") }),
        Request::San(San::FcCreate { of: Members::FcInitiators, wwn: WWN.into(), alias: None }),
        Request::San(group(Members::FcTargets, "fc-tgt", WWN)),
        Request::San(group(Members::FcInitiators, "fc-init", WWN)),
        Request::San(San::SetIdentity(api::san::Identity::default())),
        Request::Services(Services::Listen {
            name: "iscsi".into(),
            addresses: vec!["192.0.2.1:3260".into()],
        }),
        Request::Schema(Schema::Create(CustomProperty {
            name: "owner".into(),
            kind: CustomType::String,
            description: "Whose".into(),
        })),
    ] {
        ask(appliance, request).await.unwrap();
    }
    let reservations: Table<String> = Table::new("san.reservations");
    let reserved = format!("reservations 1\ngeneration 2\nsurvives\nregistration 7b 1 {INITIATOR}\n");
    let kept = appliance.configuration().unwrap().change(|writer| {
        writer.put(&reservations, "600144f0000000000000000000000001", &reserved)?;
        writer.put(&USERS, USERS_KEY, &people())
    });
    kept.unwrap();
}

fn people() -> State {
    let mut state = State::first();
    state.create_user("ann", "Ann", None).unwrap();
    state.create_role(ROOT, "op", "Operators", None).unwrap();
    let filters = [("pool".to_string(), "tank".to_string())].into();
    let auth = Authorization::new("nas", filters, ["allow_destroy".to_string()].into()).unwrap();
    state.authorize(ROOT, Holder::Role("op"), auth).unwrap();
    state.settings.insert("rest.listen".into(), "127.0.0.1:8443".into());
    state
}

fn tables(appliance: &Appliance) -> Value {
    let text = appliance.configuration().unwrap().backup_text().unwrap();
    serde_json::from_str(text.split_once('\n').unwrap().1).unwrap()
}

async fn restore(appliance: &Appliance, tables: &Value) -> api::Result<Reply> {
    let text = Secret::new(store::sealed(&tables.to_string()));
    ask(appliance, Request::ConfigurationTake { text }).await
}

/// As a daemon that starts reads it, and as it is asked for afterwards.
async fn is_readable(appliance: &Appliance) -> Result<(), String> {
    let configuration = appliance.configuration().unwrap();
    let users = configuration.look(|reader| reader.get(&USERS, USERS_KEY)).map_err(|e| e.to_string())?;
    users.unwrap_or_default().check().map_err(|e| e.message)?;
    configuration.look(Network::read).map_err(|e| e.to_string())?;
    for request in [
        Request::San(San::Show),
        Request::Services(Services::Show),
        Request::Schema(Schema::Show),
        Request::Shares(Shares::Automatics { place: Place::project("tank", "p") }),
        Request::ConfigurationTell,
    ] {
        ask(appliance, request).await.map_err(|e| e.message)?;
    }
    Ok(())
}

/// Of 200 changed configurations 195 were accepted, and with one of them no daemon started any more.
#[test]
fn a_changed_configuration_is_refused_or_can_be_lived_with() {
    run("mutants", |appliance| async move {
        let good = tables(&appliance);
        assert_eq!(good.as_object().unwrap().len(), 15, "something of every table: {good}");
        let (mut accepted, mut refused) = (0, 0);
        for seed in 0..MUTANTS {
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
            let mut mutant = good.clone();
            for _ in 0..=random.below(2) {
                mutate(&mut mutant, &mut random);
            }
            let before = tables(&appliance);
            match restore(&appliance, &mutant).await {
                Ok(_) => {
                    accepted += 1;
                    let read = is_readable(&appliance).await;
                    read.unwrap_or_else(|e| panic!("seed {seed}: it was accepted, and now {e}: {mutant}"));
                    let kept = tables(&appliance);
                    // An older schema was brought up to this one.
                    mutant["store"] = good["store"].clone();
                    assert!(holds(&kept, &mutant), "seed {seed}: {mutant} became {kept}");
                    restore(&appliance, &good).await.unwrap();
                }
                Err(_) => {
                    refused += 1;
                    assert_eq!(tables(&appliance), before, "seed {seed}");
                }
            }
        }
        assert!(refused > MUTANTS / 2, "{refused} were refused, {accepted} accepted");
        assert!(accepted > MUTANTS / 100, "other names and numbers are no mistake: {accepted}");
    });
}

/// What each of them would have done when the daemon started the next time, or somebody logged in.
#[test]
fn a_configuration_that_nobody_could_have_made_is_refused() {
    run("nonsense", |appliance| async move {
        let good = tables(&appliance);
        let other = json!({ "schema": 1, "more": 1 });
        for (at, value) in [
            ("/access.state/state/users", json!({})),
            ("/access.state/state/users/ann/roles", json!(["ghost"])),
            ("/access.state/state/settings/rest.listen", json!("everywhere")),
            ("/access.state", json!({ "statue": people() })),
            ("/services/iscsi/listen", json!(["nowhere"])),
            ("/services/iscsi/listen", json!("192.0.2.1:3260")),
            ("/services", json!({ "telnet": { "enabled": true, "listen": [] } })),
            ("/san.targets", json!({})),
            ("/san.target_groups/tgt", json!(["no name"])),
            ("/san.initiator_groups", json!({ "default": [] })),
            ("/san.settings/identity/vendor", json!("far too long")),
            ("/san.reservations/600144f0000000000000000000000001", json!("mine")),
            ("/shares.schema", json!({ "Big Name": { "kind": "String", "description": "" } })),
            ("/shares.schema/owner/kind", json!("Colour")),
            ("/shares.automatic", json!({ "x": { "dataset": "tank/p", "pool": 1, "schedules": [] } })),
            ("/store", other),
        ] {
            let mut mutant = good.clone();
            let changed = mutant.pointer_mut(at).unwrap_or_else(|| panic!("{at}: {good}"));
            *changed = value.clone();
            assert!(restore(&appliance, &mutant).await.is_err(), "{at} = {value}");
            assert_eq!(tables(&appliance), good, "{at} = {value}");
        }
        let mut unknown = good.clone();
        unknown["san.lasers"] = json!({});
        unknown["san.lasers"]["a"] = json!(1);
        assert!(restore(&appliance, &unknown).await.is_err());
        restore(&appliance, &good).await.unwrap();
        assert_eq!(tables(&appliance), good);
    });
}

/// Whether everything that was said is there.
fn holds(kept: &Value, said: &Value) -> bool {
    match (kept, said) {
        (Value::Object(kept), Value::Object(said)) => said.iter().all(|(name, said)| match kept.get(name) {
            Some(kept) => holds(kept, said),
            // A table without records is none.
            None => said.as_object().is_some_and(serde_json::Map::is_empty),
        }),
        _ => kept == said,
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// The paths of everything in it.
fn paths(of: &Value, at: &str, all: &mut Vec<String>) {
    let below: Vec<(String, &Value)> = match of {
        Value::Object(fields) => {
            let escaped = |name: &String| name.replace('~', "~0").replace('/', "~1");
            fields.iter().map(|(name, value)| (escaped(name), value)).collect()
        }
        Value::Array(items) => items.iter().enumerate().map(|(n, value)| (n.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    for (name, value) in below {
        let path = format!("{at}/{name}");
        paths(value, &path, all);
        all.push(path);
    }
}

/// Changes one thing.
fn mutate(tables: &mut Value, random: &mut Random) {
    let mut all = Vec::new();
    paths(tables, "", &mut all);
    if all.is_empty() {
        return;
    }
    let at = all[random.below(all.len())].clone();
    let elsewhere = tables.pointer(&all[random.below(all.len())]).cloned().unwrap_or_default();
    let (parent, name) = at.rsplit_once('/').unwrap_or(("", ""));
    match random.below(8) {
        0 => remove(tables.pointer_mut(parent), name),
        1 => {
            // Under another name.
            let value = tables.pointer(&at).cloned().unwrap_or_default();
            remove(tables.pointer_mut(parent), name);
            if let Some(Value::Object(fields)) = tables.pointer_mut(parent) {
                fields.insert(format!("{name}x"), value);
            }
        }
        2 => {
            if let Some(Value::Object(fields)) = tables.pointer_mut(&at) {
                fields.insert("more".into(), elsewhere);
            }
        }
        3 => {
            if let Some(Value::Array(items)) = tables.pointer_mut(&at) {
                items.extend(items.clone());
            }
        }
        4 => drop(tables.pointer_mut(&at).map(|value| *value = elsewhere)),
        _ => drop(tables.pointer_mut(&at).map(|value| *value = other(value, random))),
    }
}

fn remove(parent: Option<&mut Value>, name: &str) {
    match parent {
        Some(Value::Object(fields)) => drop(fields.remove(&name.replace("~1", "/").replace("~0", "~"))),
        Some(Value::Array(items)) => {
            drop(name.parse().ok().filter(|n| *n < items.len()).map(|n: usize| items.remove(n)))
        }
        _ => {}
    }
}

fn other(value: &Value, random: &mut Random) -> Value {
    let any = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(u64::MAX),
        json!(1.5),
        json!(""),
        json!("x"),
        json!("\u{0}"),
        json!("x".repeat(5000)),
        json!([]),
        json!({}),
        json!(["x"]),
    ];
    match value {
        Value::Bool(flag) if random.below(2) == 0 => json!(!flag),
        Value::Number(number) if random.below(2) == 0 => {
            json!(number.as_u64().unwrap_or(0).wrapping_add(random.next() % 1000))
        }
        Value::String(text) if random.below(2) == 0 => {
            let mut bytes: Vec<char> = text.chars().collect();
            let at = random.below(bytes.len() + 1);
            bytes.insert(
                at,
                *[':', '0', 'a', 'Z', '/', ' ', '\n', '\u{e9}'].get(random.below(8)).unwrap_or(&'b'),
            );
            json!(bytes.into_iter().collect::<String>())
        }
        _ => any[random.below(any.len())].clone(),
    }
}
