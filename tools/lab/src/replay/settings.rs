//! The settings of a replay: what the trace says, what was given besides, and the change.

use super::plan::Volume;
use crate::hardware::drive::Drive;
use crate::hardware::flash::Flash;
use crate::models::{DISK_7200, DISK_15000, SSD_SATA};
use crate::parameters::{Parameter, Parameters};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use trace::layout::{Kind, Layout};
use trace::present::PROPERTIES;
use trace::read::Contents;
use units::{Error, Result, parse_size, pretty_size};
use world::Disk;

/// What can be set besides the properties of a volume, and what it is.
pub const KEYS: [(&str, &str); 6] = [
    ("volblocksize", "512 to 16M"),
    ("layout", "raidz2:8, mirror:2x4, stripe:3"),
    ("disks", "7200, 15000, ssd"),
    ("cache", "bytes that the cache of blocks may have"),
    ("ratio", "what compression makes of the data: 1.00 saves nothing"),
    ("ashift", "9 to 16"),
];

/// Devices that are modelled: name, parameters, their prefix, what they are.
const MODELS: [Model; 3] = [
    Model { name: "7200", parameters: DISK_7200, prefix: "disk-", about: "7200 rpm disks" },
    Model { name: "15000", parameters: DISK_15000, prefix: "disk15-", about: "15000 rpm disks" },
    Model { name: "ssd", parameters: SSD_SATA, prefix: "ssd-", about: "SATA solid-state disks" },
];

#[derive(Debug)]
struct Model {
    name: &'static str,
    parameters: &'static [Parameter],
    prefix: &'static str,
    about: &'static str,
}

/// Where the trace does not say it.
const CACHE: u64 = 1 << 30;
const CACHE_LEAST: u64 = 16 << 20;
/// As little as no compression is worth the work.
const SAVES_NOTHING: f64 = 1.02;
const FLASH_SIZE: u64 = 1 << 40;

#[derive(Clone, Debug)]
struct OfVolume {
    size: u64,
    block: u64,
    properties: BTreeMap<String, String>,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Setup {
    volumes: BTreeMap<String, OfVolume>,
    layout: Layout,
    disks: &'static Model,
    pub cache: u64,
    pub ashift: u32,
    /// `Some`: data that compress so, and are compressed; `None`: data that do not.
    pub ratio: Option<f64>,
    allocated: u64,
    /// As the trace, or what was given, has it.
    known_ratio: Option<f64>,
}

impl Setup {
    /// What the trace says, with what was given in place of it.
    pub fn of(trace: &Contents, given: &[(String, String)]) -> Result<Setup> {
        let given_value = |key: &str| given.iter().find(|(of, _)| of == key).map(|(_, value)| value.as_str());
        let presents: Vec<_> = trace.places.iter().filter_map(|place| place.present.as_ref()).collect();
        let layouts: Vec<Option<Layout>> = presents.iter().map(|present| present.layout).collect();
        let layout = match given_value("layout") {
            Some(text) => Layout::parse(text)?,
            None => match layouts.split_first() {
                Some((Some(first), rest)) if rest.iter().all(|other| *other == Some(*first)) => *first,
                _ => {
                    let why = "the trace does not say how the pool's devices stand together; '--present layout=raidz2:8' does";
                    return Err(Error::invalid(why));
                }
            },
        };
        let block = given_value("volblocksize").map(block_size).transpose()?;
        let mut volumes = BTreeMap::new();
        for place in &trace.places {
            let present = place.present.as_ref();
            let Some(block) = block.or(present.map(|present| present.block)) else {
                let name = place.name();
                let why = format!(
                    "the trace does not say what '{name}' is like; '--present volblocksize=16K' does"
                );
                return Err(Error::invalid(why));
            };
            let properties =
                present.map(|present| present.properties.iter().cloned().collect()).unwrap_or_default();
            let size = present.map_or(0, |present| present.size);
            volumes.insert(place.name().to_string(), OfVolume { size, block, properties });
        }
        let ratios = presents.iter().map(|present| present.ratio);
        let is_off = presents.iter().any(|present| present.property("compression") == Some("off"));
        let known_ratio = if is_off { None } else { ratios.reduce(f64::max) };
        let setup = Setup {
            volumes,
            layout,
            disks: &MODELS[0],
            cache: if trace.header.cache == 0 { CACHE } else { trace.header.cache.max(CACHE_LEAST) },
            ashift: presents.iter().map(|present| present.ashift).max().unwrap_or(12),
            ratio: None,
            allocated: presents.iter().map(|present| present.allocated).max().unwrap_or(0),
            known_ratio,
        };
        setup.with(given)
    }

    /// The same with these set.
    pub fn with(&self, change: &[(String, String)]) -> Result<Setup> {
        let mut setup = self.clone();
        for (key, value) in change {
            setup.set(key, value)?;
        }
        let compresses =
            setup.volumes.values().any(|of| of.properties.get("compression").is_some_and(|v| v != "off"));
        let sets_it = change.iter().any(|(key, value)| key == "compression" && value != "off");
        if sets_it && setup.known_ratio.is_none() {
            let why = "what compression makes of the data is not known, for it is off at present and a trace has no data; \
                       'ratio=1.5' says it";
            return Err(Error::invalid(why));
        }
        // Data that do not compress are those of a model that keeps them in little memory.
        setup.ratio = setup.known_ratio.filter(|ratio| compresses && *ratio > SAVES_NOTHING);
        Ok(setup)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let size = |value: &str| {
            parse_size(value).map_err(|why| Error::invalid(format!("{key}: bad size '{value}': {why}")))
        };
        match key {
            "volblocksize" => {
                let block = block_size(value)?;
                self.volumes.values_mut().for_each(|of| of.block = block);
            }
            "layout" => self.layout = Layout::parse(value)?,
            "disks" => {
                let known = MODELS.iter().find(|model| model.name == value);
                let names: Vec<&str> = MODELS.iter().map(|model| model.name).collect();
                let none = || {
                    Error::invalid(format!(
                        "there is no model '{value}' of disks; there are {}",
                        names.join(", ")
                    ))
                };
                self.disks = known.ok_or_else(none)?;
            }
            "cache" => {
                self.cache = size(value)?;
                if self.cache < CACHE_LEAST {
                    return Err(Error::invalid(format!(
                        "cache: it has {} at least",
                        pretty_size(CACHE_LEAST)
                    )));
                }
            }
            "ratio" => {
                let ratio = value
                    .trim_end_matches('x')
                    .parse::<f64>()
                    .ok()
                    .filter(|ratio| (1.0..=100.0).contains(ratio));
                let wrong = || Error::invalid(format!("ratio: '{value}' is no number from 1.00 to 100"));
                self.known_ratio = Some(ratio.ok_or_else(wrong)?);
            }
            "ashift" => {
                let shift = value.parse::<u32>().ok().filter(|shift| (9..=16).contains(shift));
                self.ashift = shift
                    .ok_or_else(|| Error::invalid(format!("ashift: '{value}' is no number from 9 to 16")))?;
            }
            "recordsize" => {
                return Err(Error::invalid(
                    "recordsize is of file systems, and the trace is of volumes: volblocksize",
                ));
            }
            key if PROPERTIES.contains(&key) => {
                for of in self.volumes.values_mut() {
                    of.properties.insert(key.into(), value.into());
                }
            }
            key => {
                let keys = KEYS.iter().map(|(key, _)| *key).chain(PROPERTIES).collect::<Vec<_>>().join(", ");
                return Err(Error::invalid(format!("'{key}' cannot be set for a replay; there are {keys}")));
            }
        }
        Ok(())
    }

    pub fn block_of_name(&self, name: &str) -> u64 {
        self.volumes.get(name).map_or(16 << 10, |of| of.block)
    }

    pub fn block_of(&self, volume: &Volume) -> u64 {
        self.block_of_name(&volume.name)
    }

    pub fn size_of_name(&self, name: &str) -> Option<u64> {
        self.volumes.get(name).map(|of| of.size)
    }

    /// What a volume is made with.
    pub fn properties_of(&self, volume: &Volume) -> Vec<(String, String)> {
        let of = self.volumes.get(&volume.name);
        let mut all: Vec<(String, String)> =
            of.map(|of| of.properties.clone()).unwrap_or_default().into_iter().collect();
        if self.ratio.is_none() {
            // What is written saves nothing, whatever the property: so it is not tried.
            all.retain(|(name, _)| name != "compression");
            all.push(("compression".into(), "off".into()));
        }
        all
    }

    pub fn vdev_layout(&self) -> vdev::Layout {
        match self.layout.kind {
            Kind::Stripe => vdev::Layout::Stripe,
            Kind::Mirror => vdev::Layout::Mirror,
            Kind::Raidz(parity) => vdev::Layout::Raidz { parity },
        }
    }

    /// The devices, and how they are grouped. What is `touched` stands for all that the pool holds: arms move as far.
    pub fn devices(&self, touched: u64) -> (Vec<Vec<PathBuf>>, Vec<Arc<dyn Disk>>) {
        let paths: Vec<PathBuf> =
            (0..self.layout.devices()).map(|i| format!("/lab/disk{i:04}").into()).collect();
        let stretch = (self.allocated / touched.max(1)).clamp(1, 1024);
        let parameters = Parameters::of(&[self.disks.parameters]);
        let device = |path: &PathBuf| -> Arc<dyn Disk> {
            match self.disks.prefix {
                "ssd-" => Arc::new(Flash::new(path, FLASH_SIZE, &parameters, "ssd-")),
                prefix => Arc::new(Drive::new(path, u64::MAX, &parameters, prefix, stretch)),
            }
        };
        let devices = paths.iter().map(device).collect();
        let width = if self.layout.kind == Kind::Stripe { paths.len() } else { self.layout.width };
        (paths.chunks(width).map(<[PathBuf]>::to_vec).collect(), devices)
    }
}

fn block_size(text: &str) -> Result<u64> {
    let block =
        parse_size(text).ok().filter(|block| block.is_power_of_two() && (512..=16 << 20).contains(block));
    block.ok_or_else(|| Error::invalid(format!("volblocksize: '{text}' is no power of two from 512 to 16M")))
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}, cache {}", self.layout, self.disks.about, pretty_size(self.cache))?;
        match self.ratio {
            Some(ratio) => write!(f, ", data that compress {ratio:.2}x"),
            None => write!(f, ", data that do not compress"),
        }
    }
}
