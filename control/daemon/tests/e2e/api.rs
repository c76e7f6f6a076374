//! The API as its clients use it: over HTTPS, against the daemon with a pool.
//!
//! The sequences are those of two drivers for such appliances, as their sources make them: OpenStack Cinder's
//! (`cinder/volume/drivers/zfssa`) and Oracle's CSI driver (`zfssa-csi-driver`, `pkg/zfssarest`). What they ask for that
//! the appliance does not have yet is asked too, and its refusal is part of the test.

use crate::home::{Daemon, Home};
use interop::harness::{Need, Trial, trial};
use interop::programs::{command, said};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const MASK_ALL: &str = "com.sun.ms.vss.hg.maskAll";
const INITIATOR: &str = "iqn.2010-10.org.openstack:node1";

pub fn trials() -> Vec<Trial> {
    let needs = [Need::Program("curl")];
    vec![
        trial("cinders_driver_finds_its_appliance", &needs, cinder),
        trial("the_csi_driver_finds_its_appliance", &needs, csi),
        trial("strangers_and_nonsense_are_answered_and_survived", &needs, nonsense),
        trial("services_are_switched_and_moved_live_and_stay_so", &needs, services),
        trial("users_and_sessions_are_as_they_were_left", &needs, users),
    ]
}

struct Api<'a> {
    home: &'a Home,
    url: String,
    /// Sent with each request.
    headers: Vec<String>,
}

struct Answer {
    status: u16,
    headers: String,
    body: Value,
}

impl Answer {
    fn header(&self, name: &str) -> Option<String> {
        let mut lines = self.headers.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_string())
    }
}

impl Api<'_> {
    fn ask(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let (head, text) = (self.home.scratch.join("head"), self.home.scratch.join("body"));
        let mut curl = command("curl");
        curl.args(["-s", "-S", "-m", "60", "--path-as-is", "-X", method, "-w", "%{http_code}"]);
        curl.arg("-D").arg(&head).arg("-o").arg(&text);
        curl.arg("--cacert").arg(self.home.dir().join("tls/cert.pem"));
        for header in &self.headers {
            curl.args(["-H", header]);
        }
        if let Some(body) = body {
            curl.args(["-H", "Content-Type: application/json", "-d", &body.to_string()]);
        }
        std::fs::write(&text, "").unwrap();
        let output = curl.arg(format!("{}{path}", self.url)).output().unwrap();
        assert!(output.status.success(), "{method} {path}: {}", said(&output));
        let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
        let body = serde_json::from_str(&read(&text)).unwrap_or(Value::Null);
        let status = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
        Answer { status, headers: read(&head), body }
    }

    /// Asks, and holds the status against what a driver wants to see.
    fn want(&self, status: u16, method: &str, path: &str, body: Option<Value>) -> Value {
        let answer = self.ask(method, path, body);
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        answer.body
    }

    fn get(&self, path: &str) -> Value {
        self.want(200, "GET", path, None)
    }
}

/// A daemon, and root's password set by the command.
fn served(home: &Home) -> (Daemon, Api<'_>) {
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --https 127.0.0.1:0 --log error");
    let password = home.run("password --generate").trim().to_string();
    let url = url(home);
    let headers = vec!["X-Auth-User: root".into(), format!("X-Auth-Key: {password}")];
    (daemon, Api { home, url, headers })
}

/// Where the daemon of this home has its API.
pub fn url(home: &Home) -> String {
    let services = through_the_socket(home, "/api/service/v1/services/rest");
    services["service"]["addresses"][0].as_str().unwrap().to_string()
}

/// What is answered.
pub fn post_through_the_socket(home: &Home, path: &str, body: &str) -> String {
    let mut curl = command("curl");
    curl.args(["-s", "-S", "-f", "-m", "60", "--unix-socket"]).arg(home.dir().join("rest.sock"));
    curl.args(["-H", "Content-Type: application/json", "-d", body]);
    let output = curl.arg(format!("http://localhost{path}")).output().unwrap();
    assert!(output.status.success(), "{path}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// As the owner of the home.
pub fn through_the_socket(home: &Home, path: &str) -> Value {
    let mut curl = command("curl");
    curl.args(["-s", "-S", "-m", "60", "--unix-socket"]).arg(home.dir().join("rest.sock"));
    let output = curl.arg(format!("http://localhost{path}")).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{path}: {e}: {}", said(&output)))
}

/// Opens a session and goes on with that.
fn log_in(api: &mut Api<'_>, path: &str) {
    let answer = api.ask("POST", path, None);
    assert_eq!(answer.status, 201, "{}", answer.body);
    assert!(answer.header("x-auth-name").is_some_and(|n| n.starts_with("REST-")), "{}", answer.headers);
    assert!(answer.body["access"]["services"].as_array().is_some_and(|all| all.len() > 5));
    api.headers = vec![format!("X-Auth-Session: {}", answer.header("x-auth-session").unwrap())];
}

fn cinder() {
    let home = Home::with_pool();
    let (daemon, mut api) = served(&home);
    log_in(&mut api, "/api/access/v1");
    cinder_has_a_schema(&api);
    cinder_sets_up(&api);
    cinder_looks(&api);
    cinder_has_a_volume(&api);
    api.want(204, "DELETE", "/api/access/v1", None);
    api.want(401, "GET", "/api/storage/v1/pools/tank", None);
    daemon.end();
}

/// The properties by which it knows its volumes again: asked for, and made where they are not.
fn cinder_has_a_schema(api: &Api<'_>) {
    let schema = "/api/storage/v1/schema";
    for (property, kind) in [("cinder_managed", "Boolean"), ("image_id", "String"), ("updated_at", "String")]
    {
        let path = format!("{schema}/{property}");
        api.want(404, "GET", &path, None);
        let new = json!({ "property": property, "description": "For Cinder", "type": kind });
        let made = api.want(201, "POST", schema, Some(new.clone()))["property"].clone();
        assert_eq!((&made["href"], &made["type"]), (&json!(path), &json!(kind)));
        assert_eq!(api.get(&path)["property"], made);
        api.want(409, "POST", schema, Some(new));
    }
    let changed =
        api.want(202, "PUT", &format!("{schema}/image_id"), Some(json!({ "description": "The image" })));
    assert_eq!(changed["property"]["description"], "The image");
    let names = api.get(schema)["properties"].as_array().unwrap().len();
    assert_eq!(names, 3);
    for wrong in [
        json!({ "property": "Big Name" }),
        json!({ "property": "x", "type": "Colour" }),
        json!({ "type": "String" }),
    ] {
        api.want(400, "POST", schema, Some(wrong));
    }
}

/// The project, the initiator with its group, the target with its.
fn cinder_sets_up(api: &Api<'_>) {
    let (pool, san) = ("/api/storage/v1/pools/tank", "/api/san/v1/iscsi");
    api.get(pool);
    api.want(404, "GET", &format!("{pool}/projects/cinder"), None);
    let project = json!({ "name": "cinder", "compression": "lz4", "logbias": "latency" });
    api.want(201, "POST", &format!("{pool}/projects"), Some(project));
    let alias = format!("{san}/initiators/alias=node1");
    api.want(404, "GET", &alias, None);
    let initiator = json!({
        "initiator": INITIATOR, "alias": "node1", "chapuser": "cinder", "chapsecret": "secret1234567",
    });
    let made = api.want(201, "POST", &format!("{san}/initiators"), Some(initiator));
    assert_eq!(made["initiator"]["chapsecret"], "********");
    assert_eq!(api.get(&alias)["initiator"]["initiator"], INITIATOR);
    let group = format!("{san}/initiator-groups/nodes");
    api.want(404, "GET", &group, None);
    let new = json!({ "name": "nodes", "initiators": [INITIATOR] });
    api.want(201, "POST", &format!("{san}/initiator-groups"), Some(new));
    let second = "iqn.2010-10.org.openstack:node2";
    let new = json!({ "initiator": second, "alias": "node2" });
    api.want(201, "POST", &format!("{san}/initiators"), Some(new));
    let mut members = api.get(&group)["group"]["initiators"].clone();
    members.as_array_mut().unwrap().push(second.into());
    api.want(202, "PUT", &group, Some(json!({ "initiators": members })));
    assert_eq!(api.get(&group)["group"]["initiators"].as_array().unwrap().len(), 2);
    let alias = format!("{san}/targets/alias=cinder-target");
    api.want(404, "GET", &alias, None);
    let target = json!({
        "alias": "cinder-target", "auth": "chap", "targetchapuser": "cinder", "targetchapsecret": "secret7654321",
    });
    let made = api.want(201, "POST", &format!("{san}/targets"), Some(target));
    let iqn = made["target"]["iqn"].as_str().unwrap().to_string();
    assert_eq!(api.get(&alias)["target"]["iqn"], iqn.as_str());
    let group = format!("{san}/target-groups/cinder-targets");
    api.want(404, "GET", &group, None);
    let new = json!({ "name": "cinder-targets", "targets": [iqn] });
    api.want(201, "POST", &format!("{san}/target-groups"), Some(new));
    api.want(202, "PUT", &group, Some(json!({ "targets": [iqn] })));
}

/// Whether everything is there and the pool is the appliance's, and what room there is.
fn cinder_looks(api: &Api<'_>) {
    let pool = "/api/storage/v1/pools/tank";
    api.get(&format!("/api/san/v1/iscsi/initiators/{INITIATOR}"));
    let (stats, version) = (api.get(pool), api.get("/api/system/v1/version"));
    assert_eq!(stats["pool"]["asn"], version["version"]["asn"]);
    assert_eq!(stats["pool"]["owner"], version["version"]["nodename"]);
    // Its report to the scheduler ended in a KeyError without it.
    assert_eq!(stats["pool"]["profile"], "stripe");
    let usage = &stats["pool"]["usage"];
    assert!(usage["available"].as_u64() > Some(0) && usage["total"].as_u64() >= usage["available"].as_u64());
    let project = api.get(&format!("{pool}/projects/cinder"));
    assert!(project["project"]["space_available"].is_u64() && project["project"]["space_total"].is_u64());
}

/// Made, presented, extended, renamed, taken away, deleted.
fn cinder_has_a_volume(api: &Api<'_>) {
    let luns = "/api/storage/v1/pools/tank/projects/cinder/luns";
    let new = json!({
        "name": "volume-1", "volsize": "64m", "targetgroup": "cinder-targets", "initiatorgroup": MASK_ALL,
        "volblocksize": "8k", "sparse": "True", "compression": "lz4", "logbias": "latency",
        "custom:cinder_managed": true,
    });
    api.want(201, "POST", luns, Some(new.clone()));
    api.want(409, "POST", luns, Some(new));
    let path = format!("{luns}/volume-1");
    let lun = api.get(&path)["lun"].clone();
    assert!(lun["lunguid"].is_string() && lun["assignednumber"][0].is_u64(), "{lun}");
    assert_eq!((&lun["initiatorgroup"], &lun["nodestroy"]), (&json!([MASK_ALL]), &json!(false)));
    assert_eq!((&lun["volsize"], &lun["volblocksize"]), (&json!(64 << 20), &json!(8192)));
    let source = &lun["source"];
    assert_eq!((&source["compression"], &source["checksum"]), (&json!("local"), &json!("default")));
    assert_eq!(
        (&lun["custom:cinder_managed"], &source["custom:cinder_managed"]),
        (&json!(true), &json!("local"))
    );
    assert!(lun.get("custom:image_id").is_none(), "{lun}");
    cinder_marks_its_volume(api, &path);
    api.want(202, "PUT", &path, Some(json!({ "initiatorgroup": "nodes" })));
    cinder_attaches_its_volume(api, &path);
    let lun = api.want(202, "PUT", &path, Some(json!({ "volsize": 128u64 << 20 })));
    assert_eq!(lun["lun"]["volsize"], 128 << 20);
    let lun = api.want(202, "PUT", &path, Some(json!({ "unset": ["compression"] })));
    let (source, value) = (&lun["lun"]["source"]["compression"], &lun["lun"]["compression"]);
    assert_eq!((source, value), (&json!("inherited"), &json!("lz4")));
    api.want(202, "PUT", &path, Some(json!({ "name": "volume-2", "nodestroy": true })));
    let path = format!("{luns}/volume-2");
    api.want(403, "DELETE", &path, None);
    api.want(202, "PUT", &path, Some(json!({ "nodestroy": false, "initiatorgroup": MASK_ALL })));
    cinder_has_snapshots(api, luns, &path);
    api.want(204, "DELETE", &path, None);
    api.want(404, "GET", &path, None);
}

/// The driver gives the LUN to each group that lists the initiator, and reads the number at the group's place in the list.
fn cinder_attaches_its_volume(api: &Api<'_>, path: &str) {
    let groups = api.get("/api/san/v1/iscsi/initiator-groups")["groups"].clone();
    let has_it = |group: &&Value| group["initiators"].as_array().unwrap().contains(&INITIATOR.into());
    let names: Vec<&Value> = groups.as_array().unwrap().iter().filter(has_it).map(|g| &g["name"]).collect();
    assert_eq!(names, ["nodes"], "'default' is for all, and was added to the LUN: {groups}");
    let new = json!({ "name": "others", "initiators": [] });
    api.want(201, "POST", "/api/san/v1/iscsi/initiator-groups", Some(new));
    let two = json!({ "initiatorgroup": ["nodes", "others"] });
    let lun = api.want(202, "PUT", path, Some(two))["lun"].clone();
    let numbers = lun["assignednumber"].as_array().unwrap();
    assert!(numbers.len() == 2 && numbers[0] == numbers[1], "one beside each group: {lun}");
    api.want(202, "PUT", path, Some(json!({ "initiatorgroup": ["nodes"] })));
    api.want(204, "DELETE", "/api/san/v1/iscsi/initiator-groups/others", None);
}

/// Values of its own: inherited, set, unset, of their type only, and not lost with the schema.
fn cinder_marks_its_volume(api: &Api<'_>, path: &str) {
    let (project, schema) = ("/api/storage/v1/pools/tank/projects/cinder", "/api/storage/v1/schema/image_id");
    api.want(202, "PUT", project, Some(json!({ "custom:image_id": "base" })));
    let image = |lun: &Value| (lun["custom:image_id"].clone(), lun["source"]["custom:image_id"].clone());
    assert_eq!(image(&api.get(path)["lun"]), (json!("base"), json!("inherited")));
    let own = api.want(202, "PUT", path, Some(json!({ "custom:image_id": "own" })));
    assert_eq!(image(&own["lun"]), (json!("own"), json!("local")));
    api.want(400, "PUT", path, Some(json!({ "custom:cinder_managed": "perhaps" })));
    api.want(400, "PUT", path, Some(json!({ "custom:colour": "red" })));
    api.want(204, "DELETE", schema, None);
    assert!(api.get(path)["lun"].get("custom:image_id").is_none());
    api.want(201, "POST", "/api/storage/v1/schema", Some(json!({ "property": "image_id" })));
    let unset = api.want(202, "PUT", path, Some(json!({ "unset": ["custom:image_id"] })));
    assert_eq!(image(&unset["lun"]), (json!("base"), json!("inherited")));
    assert_eq!(
        api.home.run("zfs get -H -o value,source custom:cinder_managed tank/cinder/volume-1"),
        "true\tlocal\n"
    );
}

/// Taken, cloned, in use, and gone; and the volume as it was.
fn cinder_has_snapshots(api: &Api<'_>, luns: &str, path: &str) {
    let snapshots = format!("{path}/snapshots");
    let made = api.want(201, "POST", &snapshots, Some(json!({ "name": "snap-1" })))["snapshot"].clone();
    let snapshot = format!("{snapshots}/snap-1");
    assert_eq!((&made["href"], &made["numclones"]), (&json!(snapshot), &json!(0)), "{made}");
    assert_eq!(made["canonical_name"], "tank/cinder/volume-2@snap-1");
    api.want(409, "POST", &snapshots, Some(json!({ "name": "snap-1" })));
    api.want(400, "POST", &snapshots, Some(json!({ "name": "a@b" })));
    assert_eq!(api.get(&snapshot)["snapshot"]["numclones"], 0);
    let clone = json!({ "project": "cinder", "share": "clone-1", "nodestroy": true, "sparse": true });
    let lun = api.want(201, "PUT", &format!("{snapshot}/clone"), Some(clone.clone()))["lun"].clone();
    assert_eq!(lun["sparse"], true);
    // By this the driver knows that a snapshot waits to be deleted with its clone.
    let origin = json!({
        "pool": "tank", "project": "cinder", "share": "volume-2", "snapshot": "snap-1", "collection": "local",
    });
    assert_eq!(lun["origin"], origin);
    assert!(lun["lunguid"].is_string() && lun["assignednumber"][0].is_u64(), "{lun}");
    assert_eq!((&lun["volsize"], &lun["nodestroy"]), (&json!(128 << 20), &json!(true)));
    assert_ne!(lun["lunguid"], api.get(path)["lun"]["lunguid"], "another unit");
    api.want(409, "PUT", &format!("{snapshot}/clone"), Some(clone));
    assert_eq!(api.get(&snapshots)["snapshots"][0]["numclones"], 1);
    let dependents = api.get(&format!("{snapshot}/dependents"))["dependents"].clone();
    assert_eq!((&dependents[0]["share"], &dependents[0]["project"]), (&json!("clone-1"), &json!("cinder")));
    api.want(403, "DELETE", &snapshot, None);
    api.want(403, "DELETE", path, None);
    api.want(
        202,
        "PUT",
        &format!("{luns}/clone-1"),
        Some(json!({ "nodestroy": false, "volsize": 256 << 20 })),
    );
    api.want(204, "DELETE", &format!("{luns}/clone-1"), None);
    api.want(201, "POST", &snapshots, Some(json!({ "name": "snap-2" })));
    let rollback = format!("{snapshot}/rollback");
    api.want(409, "PUT", &rollback, None);
    api.want(202, "PUT", &format!("{rollback}?confirm=true"), None);
    api.want(404, "GET", &format!("{snapshots}/snap-2"), None);
    api.want(202, "PUT", &rollback, None);
    api.want(202, "PUT", &snapshot, Some(json!({ "name": "kept" })));
    api.want(204, "DELETE", &format!("{snapshots}/kept"), None);
    assert_eq!(api.get(&snapshots)["snapshots"], json!([]));
    cinder_has_a_schedule(api, path);
    // All that is in a project, at one moment.
    let project = "/api/storage/v1/pools/tank/projects/cinder/snapshots";
    api.want(201, "POST", project, Some(json!({ "name": "all" })));
    assert_eq!(api.get(&snapshots)["snapshots"][0]["name"], "all");
    api.want(204, "DELETE", &format!("{project}/all"), None);
    assert_eq!(api.get(&snapshots)["snapshots"], json!([]));
}

/// Made, changed, refused, and gone.
fn cinder_has_a_schedule(api: &Api<'_>, path: &str) {
    let automatic = format!("{path}/automatic");
    let new = json!({ "frequency": "week", "day": "Saturday", "hour": 3, "minute": "05", "keep": 4 });
    let made = api.want(201, "POST", &automatic, Some(new))["automatic"].clone();
    let href = format!("{automatic}/automatic-000");
    assert_eq!((&made["href"], &made["day"], &made["hour"]), (&json!(href), &json!("Saturday"), &json!("3")));
    assert_eq!((&made["minute"], &made["keep"]), (&json!("5"), &json!("4")), "{made}");
    let changed = api.want(202, "PUT", &href, Some(json!({ "frequency": "month", "day": 31 })));
    assert_eq!(
        (&changed["automatic"]["frequency"], &changed["automatic"]["day"]),
        (&json!("month"), &json!("31"))
    );
    assert_eq!(api.get(&automatic)["automatics"][0], changed["automatic"]);
    for wrong in [json!({}), json!({ "frequency": "fortnight" }), json!({ "frequency": "hour", "hour": 1 })] {
        api.want(400, "POST", &automatic, Some(wrong));
    }
    api.want(204, "DELETE", &href, None);
    api.want(404, "GET", &href, None);
    assert_eq!(api.get(&automatic)["automatics"], json!([]));
}

fn csi() {
    let home = Home::with_pool();
    let (daemon, mut api) = served(&home);
    for (path, body) in [
        ("/api/storage/v1/pools/tank/projects", json!({ "name": "k8s" })),
        ("/api/san/v1/iscsi/targets", json!({ "alias": "k8s" })),
        ("/api/san/v1/iscsi/initiators", json!({ "initiator": INITIATOR })),
        ("/api/san/v1/iscsi/initiator-groups", json!({ "name": "worker-1", "initiators": [INITIATOR] })),
    ] {
        api.want(201, "POST", path, Some(body));
    }
    let iqn = api.get("/api/san/v1/iscsi/targets/alias=k8s")["target"]["iqn"].clone();
    let group = json!({ "name": "tg", "targets": [iqn] });
    api.want(201, "POST", "/api/san/v1/iscsi/target-groups", Some(group));

    log_in(&mut api, "/api/access/v2");
    assert!(api.want(200, "GET", "/api/access/v2", null())["services"].is_array());
    assert_eq!(api.want(200, "GET", "/api/storage/v2/pools", null())["pools"][0]["name"], "tank");
    let pool = api.want(200, "GET", "/api/storage/v2/pools/tank", null())["pool"].clone();
    assert_eq!((&pool["status"], &pool["href"]), (&json!("online"), &json!("/api/storage/v2/pools/tank")));
    for field in ["available", "used", "free", "total", "usage_snapshots", "usage_data", "usage_metasize"] {
        assert!(pool["usage"][field].is_u64(), "{field}: {pool}");
    }
    let project = "/api/storage/v2/pools/tank/projects/k8s";
    assert_eq!(api.want(200, "GET", project, null())["project"]["pool"], "tank");
    let group = api.want(200, "GET", "/api/san/v2/iscsi/target-groups/tg", null());
    assert_eq!(group["group"]["targets"][0], iqn);
    csi_has_a_block_volume(&api, project);
    csi_has_a_file_system(&api, project);
    daemon.end();
}

/// This driver sends a body with everything.
fn null() -> Option<Value> {
    Some(Value::Null)
}

/// Made, made again, published, unpublished, deleted.
fn csi_has_a_block_volume(api: &Api<'_>, project: &str) {
    let new = json!({
        "name": "pvc-1", "volsize": 32 << 20, "volblocksize": 8192, "targetgroup": "tg", "sparse": true,
        "initiatorgroup": [MASK_ALL],
    });
    let luns = format!("{project}/luns");
    let lun = api.want(201, "POST", &luns, Some(new.clone()))["lun"].clone();
    assert!(lun["assignednumber"][0].is_u64() && lun["targetgroup"] == "tg", "{lun}");
    let href = lun["href"].as_str().unwrap().to_string();
    assert_eq!(href, format!("{luns}/pvc-1"));
    let fault = api.want(409, "POST", &luns, Some(new));
    assert_eq!(
        (&fault["fault"]["name"], &fault["fault"]["code"]),
        (&json!("ERR_OBJECT_EXISTS"), &json!(409))
    );
    assert_eq!(api.want(200, "GET", &href, null())["lun"]["initiatorgroup"], json!([MASK_ALL]));
    api.want(202, "PUT", &href, Some(json!({ "initiatorgroup": ["worker-1"] })));
    assert_eq!(api.get("/api/storage/v2/luns")["luns"][0]["initiatorgroup"], json!(["worker-1"]));
    api.want(202, "PUT", &href, Some(json!({ "initiatorgroup": [MASK_ALL] })));
    api.want(204, "DELETE", &href, null());
    api.want(404, "DELETE", &href, null());
}

/// Made, grown, deleted.
fn csi_has_a_file_system(api: &Api<'_>, project: &str) {
    let filesystems = format!("{project}/filesystems");
    let new = json!({ "name": "pvc-2", "quota": 64 << 20, "reservation": 64 << 20 });
    let made = api.want(201, "POST", &filesystems, Some(new))["filesystem"].clone();
    assert_eq!((&made["quota"], &made["project"]), (&json!(64 << 20), &json!("k8s")));
    assert!(made["mountpoint"].is_string() && made["creation"].is_string(), "{made}");
    let href = made["href"].as_str().unwrap().to_string();
    let grown = json!({ "quota": 128 << 20, "reservation": 128 << 20 });
    assert_eq!(api.want(202, "PUT", &href, Some(grown))["filesystem"]["reservation"], 128 << 20);
    assert_eq!(api.get("/api/storage/v2/filesystems")["filesystems"][0]["name"], "pvc-2");
    let snapshots = format!("{href}/snapshots");
    api.want(201, "POST", &snapshots, Some(json!({ "name": "s" })));
    // Of all pools at once: a snapshot is looked up so by its identifier.
    let all = api.want(200, "GET", "/api/storage/v2/snapshots", null())["snapshots"].clone();
    assert!(all.as_array().unwrap().iter().any(|s| s["canonical_name"] == "tank/k8s/pvc-2@s"), "{all}");
    let listed = api.want(200, "GET", &snapshots, null())["snapshots"].clone();
    assert_eq!((&listed[0]["name"], listed.as_array().unwrap().len()), (&json!("s"), 1), "{listed}");
    let snapshot = listed[0]["href"].as_str().unwrap();
    let clone = json!({ "project": "k8s", "share": "pvc-3", "quota": 32 << 20 });
    let made = api.want(201, "PUT", &format!("{snapshot}/clone"), Some(clone))["filesystem"].clone();
    assert_eq!((&made["quota"], &made["name"]), (&json!(32 << 20), &json!("pvc-3")));
    api.want(403, "DELETE", snapshot, null());
    let dependents = api.want(200, "GET", &format!("{snapshot}/dependents"), null());
    api.want(204, "DELETE", dependents["dependents"][0]["href"].as_str().unwrap(), null());
    api.want(202, "PUT", &format!("{snapshot}/rollback"), null());
    api.want(204, "DELETE", snapshot, null());
    api.want(204, "DELETE", &href, null());
    assert_eq!(api.get(&filesystems)["filesystems"], json!([]));
}

fn nonsense() {
    let home = Home::with_pool();
    let (daemon, api) = served(&home);
    strangers_are_not_known(&api);
    for (body, name) in [
        (json!([]), "ERR_INVALID_ARG"),
        (json!({ "name": 7 }), "ERR_INVALID_ARG"),
        (json!({}), "ERR_MISSING_ARG"),
        (json!({ "name": "p", "colour": "red" }), "ERR_UNKNOWN_ARG"),
        (json!({ "name": "../../p" }), "ERR_INVALID_ARG"),
        (json!({ "name": "p", "compression": "wishful" }), "ERR_INVALID_ARG"),
    ] {
        let fault = api.want(400, "POST", "/api/storage/v1/pools/tank/projects", Some(body));
        assert_eq!(fault["fault"]["name"], name, "{fault}");
    }
    for path in [
        "/api/storage/v1/pools/../pools",
        "/api/storage/v1/pools/tank/%2e%2e/tank",
        "/api/storage/v1//pools",
        "/api/storage/v1/pools%2ftank",
    ] {
        api.want(404, "GET", path, None);
    }
    bodies_have_a_size_and_a_form(&home);
    floods_pass(&api);
    api.get("/api/storage/v1/pools");
    daemon.end();
}

fn strangers_are_not_known(api: &Api<'_>) {
    let stranger = |headers: &[&str]| {
        let headers = headers.iter().map(|h| h.to_string()).collect();
        Api { home: api.home, url: api.url.clone(), headers }
    };
    let pools = "/api/storage/v1/pools";
    for headers in [
        &[][..],
        &["X-Auth-Session: 0123456789abcdef"],
        &["Authorization: Basic cm9vdDp3cm9uZw=="],
        &["Authorization: Bearer x"],
        &["X-Auth-User: root", "X-Auth-Key: wrong"],
    ] {
        let answer = stranger(headers).ask("GET", pools, None);
        assert_eq!(answer.status, 401, "{headers:?}");
        assert_eq!(answer.body["fault"]["name"], "ERR_UNAUTHORIZED");
    }
    // Guessing ends.
    let guess = stranger(&["X-Auth-User: nobody", "X-Auth-Key: guess"]);
    assert!((0..60).any(|_| guess.ask("GET", pools, None).status == 429), "guesses are counted");
}

fn bodies_have_a_size_and_a_form(home: &Home) {
    let big = home.scratch.join("big");
    std::fs::write(&big, vec![b' '; 2 << 20]).unwrap();
    for (kind, data, status) in [
        ("application/json", format!("@{}", big.display()), "413"),
        ("application/x-www-form-urlencoded", "name=p".into(), "415"),
    ] {
        let mut curl = command("curl");
        curl.args(["-s", "-m", "60", "-o", "/dev/null", "-w", "%{http_code}"]);
        curl.args(["-H", &format!("Content-Type: {kind}"), "-H", "Expect:"]);
        curl.args(["--data-binary", &data, "--unix-socket"]).arg(home.dir().join("rest.sock"));
        curl.arg("http://localhost/api/storage/v1/pools/tank/projects");
        // Each time: who is still sending gets to read the answer.
        for _ in 0..5 {
            assert_eq!(String::from_utf8(curl.output().unwrap().stdout).unwrap(), status);
        }
    }
}

/// No TLS at all, TLS that stalls, and more connections than one address may have.
fn floods_pass(api: &Api<'_>) {
    let address = api.url.trim_start_matches("https://").to_string();
    let mut plain = TcpStream::connect(&address).unwrap();
    plain.write_all(b"GET /api/access/v1 HTTP/1.1\r\n\r\n").unwrap();
    plain.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut text = Vec::new();
    let _ = plain.read_to_end(&mut text);
    assert!(!text.starts_with(b"HTTP"), "it speaks nothing without TLS");
    let stalled: Vec<TcpStream> = (0..60).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let begun = Instant::now();
    api.get("/api/storage/v1/pools");
    assert!(begun.elapsed() < Duration::from_secs(10), "the others are served: {:?}", begun.elapsed());
    let flood: Vec<TcpStream> = (0..300).filter_map(|_| TcpStream::connect(&address).ok()).collect();
    drop((stalled, flood));
    let until = Instant::now() + Duration::from_secs(120);
    let is_back = || {
        let mut curl = command("curl");
        curl.args(["-s", "-k", "-m", "5", "-o", "/dev/null", &format!("{}/", api.url)]);
        curl.status().unwrap().success()
    };
    while !is_back() {
        assert!(Instant::now() < until, "it serves again when the flood is over");
    }
}

fn services() {
    let home = Home::with_pool();
    let (daemon, api) = served(&home);
    let path = |name: &str| format!("/api/service/v1/services/{name}");
    let put =
        |api: &Api<'_>, name: &str, verb: &str| api.want(202, "PUT", &format!("{}/{verb}", path(name)), None);
    let of = |api: &Api<'_>, name: &str| {
        let service = api.get(&path(name))["service"].clone();
        let addresses = service["addresses"].as_array().unwrap().clone();
        let tcp =
            addresses.iter().filter_map(Value::as_str).find(|a| a.starts_with("127.")).map(String::from);
        (service["<status>"].as_str().unwrap().to_string(), tcp)
    };
    for name in ["iscsi", "nbd"] {
        let (status, address) = of(&api, name);
        let address = address.unwrap();
        assert_eq!(status, "online");
        let mut client = TcpStream::connect(&address).unwrap();
        assert_eq!(put(&api, name, "disable")["service"]["<status>"], "disabled");
        assert_eq!(of(&api, name), ("disabled".to_string(), None));
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // It is hung up on, in whichever way.
        let ended = client.read_to_end(&mut Vec::new());
        assert!(ended.is_ok() || ended.unwrap_err().kind() != std::io::ErrorKind::WouldBlock, "{name}");
        let until = Instant::now() + Duration::from_secs(120);
        while TcpStream::connect(&address).is_ok() {
            assert!(Instant::now() < until, "{name} listens still");
        }
        put(&api, name, "disable");
        assert_eq!(put(&api, name, "restart")["service"]["<status>"], "disabled", "off is off");
        put(&api, name, "enable");
        assert_eq!(of(&api, name), ("online".to_string(), Some(address.clone())));
        TcpStream::connect(&address).unwrap();
        put(&api, name, "restart");
        TcpStream::connect(&address).unwrap();
    }
    assert!(home.dir().join("nbd.sock").exists());
    api.want(400, "PUT", &format!("{}/disable", path("rest")), None);
    put(&api, "rest", "enable");
    api.want(404, "PUT", &format!("{}/disable", path("ftp")), None);

    // Where it listens is set, but where the command line said it.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let listen = |api: &Api<'_>, status, name: &str, all: &[&str]| {
        api.want(status, "PUT", &path(name), Some(json!({ "listen": all })))
    };
    let before = of(&api, "iscsi");
    let told = listen(&api, 400, "iscsi", &[&taken.local_addr().unwrap().to_string()]).to_string();
    assert!(told.contains("choose another with the property listen of the service iscsi"), "{told}");
    assert_eq!(of(&api, "iscsi"), before, "what cannot be is taken back");
    TcpStream::connect(before.1.unwrap()).unwrap();
    for bad in ["localhost:3260", "127.0.0.1:0", "127.0.0.1"] {
        listen(&api, 400, "iscsi", &[bad]);
    }
    listen(&api, 400, "nbd", &[&free]);
    let moved = listen(&api, 202, "iscsi", &[&free]);
    assert_eq!(
        (&moved["service"]["listen"], &moved["service"]["addresses"]),
        (&json!([free]), &json!([free]))
    );
    TcpStream::connect(&free).unwrap();

    put(&api, "nbd", "disable");
    daemon.kill();
    let (daemon, api) = served(&home);
    assert_eq!(of(&api, "nbd"), ("disabled".to_string(), None));
    assert!(!home.dir().join("nbd.sock").exists(), "not even the socket");
    assert_eq!(of(&api, "iscsi"), ("online".to_string(), Some(free.clone())));
    put(&api, "nbd", "enable");
    TcpStream::connect(of(&api, "nbd").1.unwrap()).unwrap();
    assert_ne!(listen(&api, 202, "iscsi", &[])["service"]["addresses"], json!([free]));
    daemon.end();
}

fn users() {
    let home = Home::with_pool();
    assert!(home.fails("password nobody --generate", 1).contains("there is no user 'nobody'"));
    let (daemon, api) = served(&home);
    let new = json!({ "logname": "ann", "fullname": "Ann", "initial_password": "correct horse" });
    api.want(201, "POST", "/api/user/v1/users", Some(new));
    let auth = json!({ "scope": "nas", "pool": "tank", "project": "hers", "allow_createProject": true });
    api.want(201, "POST", "/api/user/v1/users/ann/exceptions", Some(auth));
    let token = json!({ "name": "prometheus" });
    let made = api.want(201, "POST", "/api/user/v1/users/root/preferences/tokens", Some(token));
    let token = made["token"]["token"].as_str().unwrap().to_string();
    daemon.kill();

    // As it was left, although it was killed.
    let (daemon, again) = served(&home);
    let metrics = {
        let mut curl = command("curl");
        curl.args(["-s", "-m", "60", "--cacert"]).arg(home.dir().join("tls/cert.pem"));
        curl.args(["-H", &format!("Authorization: Bearer {token}"), &format!("{}/metrics", again.url)]);
        String::from_utf8(curl.output().unwrap().stdout).unwrap()
    };
    assert!(metrics.contains("cenote_pool_healthy{pool=\"tank\",state=\"ONLINE\"} 1\n"), "{metrics}");
    let headers = vec!["Authorization: Basic YW5uOmNvcnJlY3QgaG9yc2U=".into()];
    let ann = Api { home: &home, url: again.url.clone(), headers };
    let projects = "/api/storage/v1/pools/tank/projects";
    ann.want(403, "POST", projects, Some(json!({ "name": "his" })));
    ann.want(201, "POST", projects, Some(json!({ "name": "hers" })));
    ann.want(403, "DELETE", &format!("{projects}/hers"), None);
    ann.want(403, "GET", "/api/log/v1/logs/audit", None);
    let audit = again.get("/api/log/v1/logs/audit").to_string();
    for part in ["POST /api/storage/v1/pools/tank/projects", "\"ann\"", "127.0.0.1", "********"] {
        assert!(audit.contains(part), "{part}: {audit}");
    }
    assert!(!audit.contains("correct horse"));
    // What is changed over the API is in the pool's history, with who did it.
    let history = home.run("zpool history tank");
    assert!(history.contains("POST /api/storage/v1/pools/tank/projects (by ann)"), "{history}");
    daemon.end();
}
