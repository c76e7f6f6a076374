//! `/api/storage/v1/pools/{pool}/devices`: the tree of a pool's vdevs, as a list from the top down.

use crate::endpoint::{Endpoint, Reply, get, run};
use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Rest};
use api::http::{Kind, Shape, may, must};
use api::{Class, Request, Vdev};
use serde_json::{Value, json};
use std::sync::Arc;

const DEVICE: Shape = Shape::new(
    "device",
    &[
        must("guid", Kind::Text, "Its number, in decimal"),
        must("name", Kind::Text, "mirror-0, raidz2-1, or the path of a device"),
        may("path", Kind::Text, "Of a device, not of a group"),
        must("depth", Kind::Number, "0 for what stands for itself; what follows with more is inside it"),
        must("class", Kind::Text, "normal, log, special, dedup, cache or spare"),
        must("state", Kind::Text, "ONLINE, DEGRADED, ..., as zpool status words it"),
        may("why", Kind::Text, "The reason of a state other than online"),
        must("read_errors", Kind::Number, "Since it was opened or cleared"),
        must("write_errors", Kind::Number, "Since it was opened or cleared"),
        must("checksum_errors", Kind::Number, "Since it was opened or cleared"),
        must("size", Kind::Number, "Bytes of the device; 0 of a group"),
        may(
            "rebuild",
            Kind::Object(&REBUILD),
            "Of what stands for itself: the last copy in the order of the disk",
        ),
        may("wear", Kind::Object(&WEAR), "Of a cache or log device: what was written to it"),
    ],
);

const REBUILD: Shape = Shape::new(
    "rebuild",
    &[
        must("state", Kind::Text, "running, finished or canceled"),
        must("examined", Kind::Number, "Bytes"),
        must("to_examine", Kind::Number, "Bytes"),
        must("copied", Kind::Number, "Bytes"),
        must("errors", Kind::Number, "Pieces that could not be read anywhere"),
    ],
);

const WEAR: Shape = Shape::new(
    "wear",
    &[
        must("seconds", Kind::Number, "Since its pool was opened, or it joined the pool"),
        must("written_bytes", Kind::Number, "Bytes it was given to write since then"),
        must("bytes_per_day", Kind::Number, "Bytes in a day at that rate"),
        may("again_bytes", Kind::Number, "Of a cache device, bytes read from it rather than from the pool"),
    ],
);

pub(crate) static ENDPOINTS: &[Endpoint] = &[get(
    "/api/storage/v1/pools/{pool}/devices",
    "The devices of a pool and their groups",
    Reply::Several("devices", &DEVICE),
    run!(list),
)];

async fn list(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let name = asked.param("pool").to_string();
    let missing = Fault::not_found(format!("there is no pool '{name}'"));
    let api::Reply::Pools(pools) = rest.call(&asked, Request::Pools { names: vec![name] }).await? else {
        return Err(super::unexpected());
    };
    let pool = pools.first().ok_or(missing)?;
    let mut all = Vec::new();
    for top in pool.vdevs.iter().flat_map(|root| &root.children) {
        tell(top, 0, top.class.unwrap_or(Class::Normal), &mut all);
    }
    Ok(json!({ "devices": all }).into())
}

fn tell(vdev: &Vdev, depth: u64, class: Class, all: &mut Vec<Value>) {
    let mut told = json!({
        "guid": vdev.guid.to_string(),
        "name": name(vdev),
        "depth": depth,
        "class": class,
        "state": vdev.state,
        "read_errors": vdev.read_errors,
        "write_errors": vdev.write_errors,
        "checksum_errors": vdev.checksum_errors,
        "size": vdev.size,
    });
    for (key, value) in [("path", &vdev.path), ("why", &vdev.why)] {
        if let Some(value) = value {
            told[key] = json!(value);
        }
    }
    if let Some(rebuild) = &vdev.rebuild {
        told["rebuild"] = json!({
            "state": rebuild.state, "examined": rebuild.scanned, "to_examine": rebuild.expected,
            "copied": rebuild.rebuilt, "errors": rebuild.errors,
        });
    }
    if let Some(wear) = &vdev.wear {
        told["wear"] = json!({
            "seconds": wear.seconds, "written_bytes": wear.written_bytes, "bytes_per_day": wear.bytes_per_day(),
        });
        if let Some(again) = wear.again_bytes {
            told["wear"]["again_bytes"] = json!(again);
        }
    }
    all.push(told);
    vdev.children.iter().for_each(|child| tell(child, depth + 1, class, all));
}

fn name(vdev: &Vdev) -> String {
    match (&vdev.path, vdev.kind.as_str()) {
        (Some(path), _) => path.clone(),
        (None, "raidz" | "draid") => format!("{}{}-{}", vdev.kind, vdev.parity.max(1), vdev.id),
        (None, kind) => format!("{kind}-{}", vdev.id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_told_from_the_top_down_and_what_is_inside_has_the_class_of_its_group() {
        let disk = |path: &str| Vdev { kind: "disk".into(), path: Some(path.into()), ..Vdev::default() };
        let group = Vdev {
            kind: "raidz".into(),
            parity: 2,
            id: 3,
            class: Some(Class::Special),
            children: vec![disk("/a"), disk("/b")],
            rebuild: Some(Box::new(api::Rebuild { scanned: 1, expected: 4, ..Default::default() })),
            ..Vdev::default()
        };
        let mut all = Vec::new();
        tell(&group, 0, group.class.unwrap(), &mut all);
        assert_eq!(
            all[0]["rebuild"],
            json!({ "state": "running", "examined": 1, "to_examine": 4, "copied": 0, "errors": 0 })
        );
        let told: Vec<_> =
            all.iter().map(|d| (d["name"].as_str().unwrap(), &d["depth"], &d["class"])).collect();
        let special = json!("special");
        assert_eq!(
            told,
            [("raidz2-3", &json!(0), &special), ("/a", &json!(1), &special), ("/b", &json!(1), &special)]
        );
    }
}
