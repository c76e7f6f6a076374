//! What a trace says of itself and of its places, as JSON whose fields are checked one by one.

use crate::layout::Layout;
use codec::checksum::Checksummer;
use serde_json::{Map, Value, json};
use units::{Checksum, Endian};

/// What is wrong, in words that name the field.
pub type Wrong = String;

pub const VERSION: u64 = 1;
/// So many places a trace has at most.
pub const PLACES_MAX: u32 = 4096;
const TEXT_MAX: usize = 4096;
const PROPERTIES_MAX: usize = 64;

/// Of the whole trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    /// The program that wrote it.
    pub program: String,
    /// What was recorded: `nbd.ops[op=write]`.
    pub statistic: String,
    /// Seconds since 1970.
    pub start: u64,
    /// Names stand for others: the same for the same.
    pub hashed: bool,
    /// Bytes that the cache of blocks could have.
    pub cache: u64,
}

/// What requests were for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    pub dataset: String,
    pub client: String,
    /// As the front calls it; empty where that is the dataset.
    pub lun: String,
    /// Its settings when it was met first, where they were known.
    pub present: Option<Present>,
}

/// The settings of a volume or file system, and what it lies on.
#[derive(Clone, Debug, PartialEq)]
pub struct Present {
    pub is_volume: bool,
    /// Of a volume, in bytes.
    pub size: u64,
    /// `volblocksize` or `recordsize`.
    pub block: u64,
    /// Bytes that it refers to.
    pub referenced: u64,
    /// What compression made of them: 1 where it saves nothing.
    pub ratio: f64,
    /// Of those that matter to a request: compression, sync, logbias and others.
    pub properties: Vec<(String, String)>,
    /// Of the devices that hold data; `None` where they are no set of equal groups.
    pub layout: Option<Layout>,
    pub ashift: u32,
    /// Bytes of the pool that are taken.
    pub allocated: u64,
    /// It has devices for the intent log alone.
    pub has_log: bool,
}

impl Present {
    pub fn property(&self, name: &str) -> Option<&str> {
        self.properties.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str())
    }
}

/// What stands for a name: half of its SHA-256. A name that can be guessed can be found again.
pub fn hashed(name: &str) -> String {
    let words = Checksummer::unsalted().compute(Checksum::Sha256, Endian::Big, name.as_bytes());
    format!("#{:016x}{:016x}", words[0], words[1])
}

/// A JSON object, whose fields are taken by name.
struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    fn of(value: &'a Value, what: &str) -> Result<Fields<'a>, Wrong> {
        value.as_object().map(Fields).ok_or_else(|| format!("'{what}' is no JSON object"))
    }

    fn text(&self, name: &str) -> Result<String, Wrong> {
        let text = self.0.get(name).and_then(Value::as_str).ok_or_else(|| format!("'{name}' is no text"))?;
        if text.len() > TEXT_MAX || text.chars().any(char::is_control) {
            return Err(format!("'{name}' is longer than {TEXT_MAX} bytes, or has control characters"));
        }
        Ok(text.to_string())
    }

    fn number(&self, name: &str, least: u64, most: u64) -> Result<u64, Wrong> {
        let number = self.0.get(name).and_then(Value::as_u64).filter(|n| (least..=most).contains(n));
        number.ok_or_else(|| format!("'{name}' is no number from {least} to {most}"))
    }

    fn flag(&self, name: &str) -> Result<bool, Wrong> {
        self.0.get(name).and_then(Value::as_bool).ok_or_else(|| format!("'{name}' is neither true nor false"))
    }
}

fn object(bytes: &[u8]) -> Result<Value, Wrong> {
    serde_json::from_slice(bytes).map_err(|e| format!("it is no JSON: {e}"))
}

impl Header {
    pub fn encode(&self) -> Vec<u8> {
        let Header { program, statistic, start, hashed, cache } = self;
        let value = json!({
            "version": VERSION, "program": program, "statistic": statistic, "start": start, "hashed": hashed,
            "cache": cache,
        });
        value.to_string().into_bytes()
    }

    pub fn decode(bytes: &[u8]) -> Result<Header, Wrong> {
        let value = object(bytes)?;
        let fields = Fields::of(&value, "header")?;
        let version = fields.number("version", 0, u64::MAX)?;
        if version != VERSION {
            return Err(format!("'version' is {version}, and this program reads {VERSION}"));
        }
        Ok(Header {
            program: fields.text("program")?,
            statistic: fields.text("statistic")?,
            start: fields.number("start", 0, 1 << 40)?,
            hashed: fields.flag("hashed")?,
            cache: fields.number("cache", 0, 1 << 60)?,
        })
    }
}

impl Place {
    pub fn encode(&self) -> Vec<u8> {
        let Place { dataset, client, lun, present } = self;
        let present = present.as_ref().map_or(Value::Null, Present::to_json);
        json!({ "dataset": dataset, "client": client, "lun": lun, "present": present })
            .to_string()
            .into_bytes()
    }

    pub fn decode(bytes: &[u8]) -> Result<Place, Wrong> {
        let value = object(bytes)?;
        let fields = Fields::of(&value, "place")?;
        let present = match fields.0.get("present") {
            None | Some(Value::Null) => None,
            Some(value) => Some(Present::of_json(value)?),
        };
        Ok(Place {
            dataset: fields.text("dataset")?,
            client: fields.text("client")?,
            lun: fields.text("lun")?,
            present,
        })
    }

    /// The shortest thing to call it by.
    pub fn name(&self) -> &str {
        [&self.dataset, &self.lun].into_iter().find(|name| !name.is_empty()).map_or("-", String::as_str)
    }
}

impl Present {
    fn to_json(&self) -> Value {
        let properties =
            self.properties.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
        json!({
            "volume": self.is_volume,
            "size": self.size,
            "block": self.block,
            "referenced": self.referenced,
            "ratio": (self.ratio * 100.0).round() as u64,
            "properties": properties.collect::<Map<_, _>>(),
            "layout": self.layout.map(|layout| layout.to_string()),
            "ashift": self.ashift,
            "allocated": self.allocated,
            "log": self.has_log,
        })
    }

    fn of_json(value: &Value) -> Result<Present, Wrong> {
        let fields = Fields::of(value, "present")?;
        let block = fields.number("block", 512, 16 << 20)?;
        if !block.is_power_of_two() {
            return Err(format!("'block' is {block}, no power of two"));
        }
        let properties = fields.0.get("properties").unwrap_or(&Value::Null);
        let properties = Fields::of(properties, "properties")?;
        if properties.0.len() > PROPERTIES_MAX {
            return Err(format!("'properties' are more than {PROPERTIES_MAX}"));
        }
        let names = properties.0.keys();
        let properties =
            names.map(|name| Ok((name.clone(), properties.text(name)?))).collect::<Result<_, Wrong>>()?;
        let layout = match fields.0.get("layout") {
            None | Some(Value::Null) => None,
            Some(_) => Some(Layout::parse(&fields.text("layout")?).map_err(|e| format!("'layout': {e}"))?),
        };
        Ok(Present {
            is_volume: fields.flag("volume")?,
            size: fields.number("size", 0, crate::request::END_MAX)?,
            block,
            referenced: fields.number("referenced", 0, 1 << 60)?,
            ratio: fields.number("ratio", 100, 1_000_000)? as f64 / 100.0,
            properties,
            layout,
            ashift: fields.number("ashift", 9, 16)? as u32,
            allocated: fields.number("allocated", 0, 1 << 60)?,
            has_log: fields.flag("log")?,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn place() -> Place {
        Place {
            dataset: "tank/v".into(),
            client: "unix:".into(),
            lun: String::new(),
            present: Some(Present {
                is_volume: true,
                size: 1 << 30,
                block: 131_072,
                referenced: 1 << 20,
                ratio: 1.25,
                properties: vec![("compression".into(), "lz4".into()), ("sync".into(), "standard".into())],
                layout: Some(Layout::parse("mirror:2x4").unwrap()),
                ashift: 12,
                allocated: 1 << 21,
                has_log: false,
            }),
        }
    }

    #[test]
    fn header_and_places_are_read_as_they_were_written() {
        let header = Header { start: 1_795_294_245, statistic: "nbd.ops".into(), ..Header::default() };
        assert_eq!(Header::decode(&header.encode()).unwrap(), header);
        assert_eq!(Place::decode(&place().encode()).unwrap(), place());
    }

    #[test]
    fn a_field_that_makes_no_sense_is_named() {
        let text = String::from_utf8(place().encode()).unwrap();
        for (from, to, said) in [
            ("131072", "131073", "'block' is 131073"),
            ("131072", "-1", "'block' is no number"),
            ("mirror:2x4", "mirror:0", "'layout'"),
            ("\"volume\":true", "\"volume\":1", "'volume'"),
            ("tank/v", "tank\\u001b[2J", "'dataset'"),
            ("\"ashift\":12", "\"ashift\":77", "'ashift'"),
            ("{\"client\"", "[\"client\"", "no JSON"),
            ("\"ratio\":125", "\"ratio\":0", "'ratio'"),
        ] {
            assert!(text.contains(from), "{text}");
            let wrong = Place::decode(text.replace(from, to).as_bytes()).unwrap_err();
            assert!(wrong.contains(said), "{wrong}");
        }
        let later =
            String::from_utf8(Header::default().encode()).unwrap().replace("\"version\":1", "\"version\":2");
        assert!(Header::decode(later.as_bytes()).unwrap_err().contains("'version' is 2"));
    }
}
