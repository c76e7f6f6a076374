//! Which disks of a host are LUNs of ours, and how large their blocks are.
//!
//! A disk is ours when its world-wide name is that of a LUN that the appliance told of, or when it says our vendor.
//! The block size is
//! the LUN's; where only the host was asked, what the LUN exports as its granularity (`minimum_io_size`).

use crate::{Facts, generate};
use std::collections::{BTreeMap, BTreeSet};

/// LUNs of the appliance that the documents are about.
const SUN: &str = "SUN";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// As below `/sys/block`: `sdb`, `dm-2`.
    pub name: String,
    /// The LUN, if the appliance told of it.
    pub lun: Option<String>,
    /// In bytes.
    pub block: u64,
    /// Several paths as one.
    pub is_multipath: bool,
    /// As its INQUIRY, or that of its paths, says.
    pub vendor: &'static str,
}

impl Disk {
    /// The fact of this disk's own, such as `queue/scheduler`.
    pub fn key(&self, name: &str) -> String {
        format!("/sys/block/{}/{name}", self.name)
    }

    pub fn shown(&self) -> String {
        match &self.lun {
            Some(lun) => format!("/dev/{} (LUN {lun})", self.name),
            None => format!("/dev/{}", self.name),
        }
    }
}

/// All disks of the host that are ours. Linear in what is known, for hosts with thousands.
pub fn disks(facts: &Facts) -> Vec<Disk> {
    let luns: BTreeMap<String, &str> = facts
        .under("lun ")
        .filter_map(|(name, _)| Some((bare(facts.field(&format!("lun {name}"), "wwid")?), name)))
        .filter(|(wwid, _)| !wwid.is_empty())
        .collect();
    let mut names: Vec<&str> =
        facts.under("/sys/block/").filter_map(|(rest, _)| rest.split('/').next()).collect();
    names.dedup();
    let key = |name: &str, rest: &str| format!("/sys/block/{name}/{rest}");
    let wwid_of = |name: &str| facts.text(&key(name, "device/wwid")).map(bare);
    let of_vendor: BTreeSet<String> =
        names.iter().filter(|name| is_vendor_ours(facts, name)).filter_map(|name| wwid_of(name)).collect();
    let is_suns = |name: &&&str| facts.text(&key(name, "device/vendor")) == Some(SUN);
    let of_sun: BTreeSet<String> = names.iter().filter(is_suns).filter_map(|name| wwid_of(name)).collect();
    let disk = |name: &&str| {
        let uuid = facts.text(&key(name, "dm/uuid"));
        let wwid = match uuid {
            // A partition of a multipath device is no disk.
            Some(uuid) => uuid.strip_prefix("mpath-").map(bare)?,
            None => wwid_of(name).unwrap_or_default(),
        };
        let lun = luns.get(&wwid).map(ToString::to_string);
        let is_ours =
            lun.is_some() || is_vendor_ours(facts, name) || uuid.is_some() && of_vendor.contains(&wwid);
        let told = lun.as_ref().and_then(|lun| facts.field_number(&format!("lun {lun}"), "block"));
        let exported = || facts.number(&key(name, "queue/minimum_io_size"));
        let is_block = |block: &u64| block.is_power_of_two() && (512..=16 << 20).contains(block);
        let block = told.filter(is_block).or_else(exported).filter(is_block).unwrap_or(512);
        let vendor = if is_suns(&name) || of_sun.contains(&wwid) { SUN } else { generate::VENDOR };
        is_ours.then(|| Disk { name: name.to_string(), lun, block, is_multipath: uuid.is_some(), vendor })
    };
    names.iter().filter_map(disk).collect()
}

/// The disk among `all` that a name in `/dev` leads to, and so the LUN beneath a mount: `/dev/sdb1`, `/dev/mapper/mpatha1`.
pub fn of_device(facts: &Facts, all: &[Disk], device: &str) -> Option<Disk> {
    if let Some(name) = device.strip_prefix("/dev/mapper/") {
        let is_named = |lines: &[String]| lines.first().is_some_and(|line| line.trim() == name);
        let named = facts
            .under("/sys/block/dm-")
            .find(|(rest, lines)| rest.ends_with("/dm/name") && is_named(lines))?;
        let dm = named.0.split('/').next()?;
        let wwid = bare(facts.text(&format!("/sys/block/dm-{dm}/dm/uuid"))?.rsplit("mpath-").next()?);
        let is_of = |disk: &&Disk| {
            facts
                .text(&disk.key("dm/uuid"))
                .is_some_and(|uuid| bare(uuid.trim_start_matches("mpath-")) == wwid)
        };
        return all.iter().find(is_of).cloned();
    }
    let name = device.strip_prefix("/dev/")?;
    let is_of = |disk: &&Disk| {
        name.strip_prefix(disk.name.as_str()).is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
    };
    all.iter().find(is_of).cloned()
}

/// `naa.600144f0…` in sysfs and `3600144f0…` in multipath are the same name.
fn bare(wwid: &str) -> String {
    let wwid = wwid.trim().to_ascii_lowercase();
    let wwid = wwid
        .strip_prefix("naa.")
        .or_else(|| wwid.strip_prefix('3').filter(|w| w.len() == 32))
        .unwrap_or(&wwid);
    wwid.to_string()
}

fn is_vendor_ours(facts: &Facts, name: &str) -> bool {
    let told = |rest: &str| facts.text(&format!("/sys/block/{name}/device/{rest}")).unwrap_or_default();
    told("vendor") == generate::VENDOR || told("vendor") == SUN && told("model").contains("ZFS")
}
