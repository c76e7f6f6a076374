//! The settings of a replay: what the trace says, what was given besides, and the change.

use super::plan::Dataset;
use crate::hardware::drive::Drive;
use crate::hardware::flash::Flash;
use crate::models::{DISK_7200, DISK_15000, SSD_SATA};
use crate::parameters::{Parameter, Parameters};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trace::layout::{Kind, Layout};
use trace::present::PROPERTIES;
use trace::read::Contents;
use units::{Error, Result, parse_size, pretty_size};
use world::Disk;

/// What can be set besides the properties of a dataset, and what it is.
pub const KEYS: [(&str, &str); 8] = [
    ("volblocksize", "of volumes: 512 to 16M"),
    ("recordsize", "of file systems: 512 to 16M"),
    ("layout", "raidz2:8, mirror:2x4, stripe:3"),
    ("disks", "7200, 15000, ssd"),
    ("log", "devices for the intent log: none, ssd, ssd:2 (a mirror of two), and as disks"),
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
struct OfDataset {
    is_volume: bool,
    size: u64,
    block: u64,
    properties: BTreeMap<String, String>,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Setup {
    datasets: BTreeMap<String, OfDataset>,
    layout: Layout,
    disks: &'static Model,
    /// Devices for the intent log, which are one mirror.
    log: Option<(&'static Model, usize)>,
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
        let given_block = |key| given_value(key).map(|value| block_size(key, value)).transpose();
        let of_files = trace.header.statistic.starts_with("fs.");
        let mut datasets = BTreeMap::new();
        for place in &trace.places {
            let present = place.present.as_ref();
            let is_volume = present.map_or(!of_files, |present| present.is_volume);
            let key = block_key(is_volume);
            let Some(block) = given_block(key)?.or(present.map(|present| present.block)) else {
                let name = place.name();
                let why = format!("the trace does not say what '{name}' is like; '--present {key}=16K' does");
                return Err(Error::invalid(why));
            };
            let properties =
                present.map(|present| present.properties.iter().cloned().collect()).unwrap_or_default();
            let size = present.map_or(0, |present| present.size);
            datasets.insert(place.name().to_string(), OfDataset { is_volume, size, block, properties });
        }
        let ratios = presents.iter().map(|present| present.ratio);
        let is_off = presents.iter().any(|present| present.property("compression") == Some("off"));
        let known_ratio = if is_off { None } else { ratios.reduce(f64::max) };
        let setup = Setup {
            datasets,
            layout,
            disks: &MODELS[0],
            log: None,
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
            setup.datasets.values().any(|of| of.properties.get("compression").is_some_and(|v| v != "off"));
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
            "volblocksize" | "recordsize" => {
                let (block, is_volume) = (block_size(key, value)?, key == "volblocksize");
                let mut concerned =
                    self.datasets.values_mut().filter(|of| of.is_volume == is_volume).peekable();
                if concerned.peek().is_none() {
                    return Err(Error::invalid(match is_volume {
                        true => "volblocksize is of volumes, and the trace is of file systems: recordsize",
                        false => "recordsize is of file systems, and the trace is of volumes: volblocksize",
                    }));
                }
                concerned.for_each(|of| of.block = block);
            }
            "layout" => self.layout = Layout::parse(value)?,
            "disks" => self.disks = model(value)?,
            "log" => self.log = log(value)?,
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
            key if PROPERTIES.contains(&key) => {
                for of in self.datasets.values_mut() {
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

    pub fn block_of(&self, dataset: &Dataset) -> u64 {
        self.datasets.get(&dataset.name).map_or(16 << 10, |of| of.block)
    }

    pub fn is_volume(&self, name: &str) -> bool {
        self.datasets.get(name).is_none_or(|of| of.is_volume)
    }

    pub fn size_of_name(&self, name: &str) -> Option<u64> {
        self.datasets.get(name).map(|of| of.size)
    }

    pub fn has_log(&self) -> bool {
        self.log.is_some()
    }

    /// What a dataset is made with.
    pub fn properties_of(&self, dataset: &Dataset) -> Vec<(String, String)> {
        let of = self.datasets.get(&dataset.name);
        let mut all: Vec<(String, String)> =
            of.map(|of| of.properties.clone()).unwrap_or_default().into_iter().collect();
        if self.ratio.is_none() {
            // What is written saves nothing, whatever the property: so it is not tried.
            all.retain(|(name, _)| name != "compression");
            all.push(("compression".into(), "off".into()));
        }
        if let Some(of) = of.filter(|of| !of.is_volume) {
            all.push(("recordsize".into(), of.block.to_string()));
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
    pub fn devices(&self, touched: u64) -> Devices {
        let stretch = (self.allocated / touched.max(1)).clamp(1, 1024);
        let data: Vec<PathBuf> =
            (0..self.layout.devices()).map(|i| format!("/lab/disk{i:04}").into()).collect();
        let (log_model, log_count) = self.log.unwrap_or((self.disks, 0));
        let logs: Vec<PathBuf> = (0..log_count).map(|i| format!("/lab/log{i}").into()).collect();
        let of_data = data.iter().map(|path| self.disks.device(path, stretch));
        // A log is a small part of its device.
        let devices = of_data.chain(logs.iter().map(|path| log_model.device(path, 1))).collect();
        let width = if self.layout.kind == Kind::Stripe { data.len() } else { self.layout.width };
        let groups = data.chunks(width).map(<[PathBuf]>::to_vec).collect();
        Devices { groups, logs: if logs.is_empty() { Vec::new() } else { vec![logs] }, devices }
    }
}

/// The devices of a replay; the others name them.
pub struct Devices {
    pub groups: Vec<Vec<PathBuf>>,
    pub logs: Vec<Vec<PathBuf>>,
    pub devices: Vec<Arc<dyn Disk>>,
}

impl Model {
    fn device(&self, path: &Path, stretch: u64) -> Arc<dyn Disk> {
        let parameters = Parameters::of(&[self.parameters]);
        match self.prefix {
            "ssd-" => Arc::new(Flash::new(path, FLASH_SIZE, &parameters, "ssd-")),
            prefix => Arc::new(Drive::new(path, u64::MAX, &parameters, prefix, stretch)),
        }
    }
}

fn model(name: &str) -> Result<&'static Model> {
    MODELS.iter().find(|model| model.name == name).ok_or_else(|| {
        let names: Vec<&str> = MODELS.iter().map(|model| model.name).collect();
        Error::invalid(format!("there is no model '{name}' of disks; there are {}", names.join(", ")))
    })
}

/// Devices of one log: more of them than this is no mirror that anybody builds.
const LOG_DEVICES_MAX: usize = 8;

fn log(value: &str) -> Result<Option<(&'static Model, usize)>> {
    if value == "none" {
        return Ok(None);
    }
    let (name, count) = value.split_once(':').unwrap_or((value, "1"));
    let count = count.parse::<usize>().ok().filter(|count| (1..=LOG_DEVICES_MAX).contains(count));
    let wrong = || {
        Error::invalid(format!(
            "log: '{value}' are no devices: ssd is one, ssd:2 a mirror of two, of {LOG_DEVICES_MAX} at most"
        ))
    };
    Ok(Some((model(name)?, count.ok_or_else(wrong)?)))
}

/// What the size of a dataset's blocks is called.
fn block_key(is_volume: bool) -> &'static str {
    if is_volume { "volblocksize" } else { "recordsize" }
}

fn block_size(key: &str, text: &str) -> Result<u64> {
    let block =
        parse_size(text).ok().filter(|block| block.is_power_of_two() && (512..=16 << 20).contains(block));
    block.ok_or_else(|| Error::invalid(format!("{key}: '{text}' is no power of two from 512 to 16M")))
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}, cache {}", self.layout, self.disks.about, pretty_size(self.cache))?;
        if let Some((model, count)) = self.log {
            write!(f, ", a log on {count} of {}", model.about)?;
        }
        match self.ratio {
            Some(ratio) => write!(f, ", data that compress {ratio:.2}x"),
            None => write!(f, ", data that do not compress"),
        }
    }
}
