//! Properties as they travel: exact values, and where they come from.

use serde::{Deserialize, Serialize};

/// A number in its smallest unit (bytes, hundredths of a ratio, seconds since 1970), or words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    Number(u64),
    Text(String),
}

impl From<u64> for Value {
    fn from(n: u64) -> Value {
        Value::Number(n)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl Value {
    pub fn number(&self) -> Option<u64> {
        match self {
            Value::Number(n) => Some(*n),
            Value::Text(_) => None,
        }
    }
}

/// Where a value comes from: the SOURCE column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// It is computed, or has no sources.
    None,
    Default,
    Local,
    Inherited(String),
    Received,
    Temporary,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Property {
    pub name: String,
    /// `None` where the property has no value just now, such as the origin of what is no clone.
    pub value: Option<Value>,
    pub source: Source,
    /// What came with a stream, whether in force or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<Value>,
}

impl Property {
    pub fn new(name: &str, value: Option<Value>, source: Source) -> Property {
        Property { name: name.into(), value, source, received: None }
    }

    /// One that is computed.
    pub fn computed(name: &str, value: impl Into<Value>) -> Property {
        Property::new(name, Some(value.into()), Source::None)
    }
}
