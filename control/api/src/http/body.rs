//! Bodies of requests: JSON objects whose fields are those of a [`Shape`], and nothing else.

use super::Wrong;
use super::shape::{Field, Kind, Shape};
use crate::Secret;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The value of a field, as its kind says.
#[derive(Clone, PartialEq, Eq)]
pub enum Arg {
    Text(String),
    Number(u64),
    Flag(bool),
    Texts(Vec<String>),
    Secret(Secret),
}

impl std::fmt::Debug for Arg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Arg::Text(text) => write!(f, "{text:?}"),
            Arg::Number(n) => write!(f, "{n}"),
            Arg::Flag(flag) => write!(f, "{flag}"),
            Arg::Texts(texts) => write!(f, "{texts:?}"),
            Arg::Secret(secret) => write!(f, "{secret:?}"),
        }
    }
}

/// What a body gave. Shown, it holds stars for secrets.
#[derive(Clone, Default)]
pub struct Args {
    given: BTreeMap<&'static str, Arg>,
    /// Users' own properties, with their prefix.
    pub custom: BTreeMap<String, String>,
}

impl std::fmt::Debug for Args {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(&self.given).entries(&self.custom).finish()
    }
}

impl Args {
    /// Reads a body. Without a shape it must be empty, or say nothing.
    pub fn read(bytes: &[u8], shape: Option<&Shape>) -> Result<Args, Wrong> {
        let value: Value = match bytes.iter().all(u8::is_ascii_whitespace) {
            true => Value::Null,
            false => serde_json::from_slice(bytes)
                .map_err(|e| Wrong::Invalid(format!("the body is no JSON: {e}")))?,
        };
        let object = match value {
            // Some clients send it with everything.
            Value::Null => Map::new(),
            Value::Object(object) => object,
            _ => return Err(Wrong::Invalid("the body is no JSON object".into())),
        };
        let Some(shape) = shape else {
            return object.keys().next().map_or(Ok(Args::default()), |name| Err(Wrong::Unknown(name.into())));
        };
        let mut args = Args::default();
        for (name, value) in object {
            match shape.field(&name) {
                Some(field) => drop(args.given.insert(field.name, read(field, value)?)),
                None if shape.has_custom && name.starts_with("custom:") => {
                    let text = match value {
                        Value::String(text) => text,
                        Value::Bool(flag) => flag.to_string(),
                        Value::Number(number) => number.to_string(),
                        _ => return Err(Wrong::Invalid(format!("'{name}' is no text, number or truth"))),
                    };
                    args.custom.insert(name, text);
                }
                None => return Err(Wrong::Unknown(name)),
            }
        }
        let missing = shape.fields.iter().find(|f| f.is_required && !args.has(f.name));
        missing.map_or(Ok(args), |field| Err(Wrong::Missing(field.name)))
    }

    /// What an answer tells of the fields of its shape. Other fields are those of a later version, and are left away.
    pub fn told(value: &Value, shape: &Shape) -> Args {
        let fields = shape.fields.iter();
        let given = fields.filter_map(|f| Some((f.name, read(f, value.get(f.name)?.clone()).ok()?)));
        Args { given: given.collect(), custom: BTreeMap::new() }
    }

    pub fn get(&self, name: &str) -> Option<&Arg> {
        self.given.get(name)
    }

    pub fn has(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.given.keys().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.given.is_empty() && self.custom.is_empty()
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        match self.given.get(name)? {
            Arg::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        match self.given.get(name)? {
            Arg::Number(n) => Some(*n),
            _ => None,
        }
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.given.get(name)? {
            Arg::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    pub fn texts(&self, name: &str) -> Option<&[String]> {
        match self.given.get(name)? {
            Arg::Texts(texts) => Some(texts),
            _ => None,
        }
    }

    pub fn secret(&self, name: &str) -> Option<&Secret> {
        match self.given.get(name)? {
            Arg::Secret(secret) => Some(secret),
            _ => None,
        }
    }

    /// What was given as the words of a command, by their names: all but the fields that a declaration names, and users'
    /// own properties after them. Errors: a field that can only be one text is another.
    pub fn words(&self, shape: &Shape, named: &[&str]) -> Result<Vec<(String, String)>, Wrong> {
        let mut words = Vec::new();
        for (name, arg) in &self.given {
            let always = shape.field(name).and_then(|field| field.always);
            match always {
                Some((text, why)) if *arg != Arg::Text(text.into()) => {
                    return Err(Wrong::Invalid(format!("property '{name}' is '{text}': {why}")));
                }
                Some(_) => {}
                None if named.contains(name) => {}
                None => words.push((name.to_string(), arg.word())),
            }
        }
        words.extend(self.custom.iter().map(|(name, text)| (name.clone(), text.clone())));
        Ok(words)
    }
}

impl Arg {
    /// As a command says it: `true`, `16384`, `gzip`, `a,b`.
    fn word(&self) -> String {
        match self {
            Arg::Text(text) => text.clone(),
            Arg::Number(n) => n.to_string(),
            Arg::Flag(flag) => flag.to_string(),
            Arg::Texts(texts) => texts.join(","),
            Arg::Secret(secret) => secret.reveal().into(),
        }
    }
}

/// Words of a command as a body holds them, by the kinds of the fields of their names.
pub fn spelt(shape: &Shape, words: &[(String, String)]) -> Map<String, Value> {
    let one = |name: &str, word: &str| -> Value {
        match shape.field(name).map(|field| field.kind) {
            Some(Kind::Texts) => {
                word.split(',').map(str::trim).filter(|w| !w.is_empty()).collect::<Vec<_>>().into()
            }
            Some(Kind::Number) => word.parse::<u64>().map_or_else(|_| word.into(), Value::from),
            _ => word.into(),
        }
    };
    words.iter().map(|(name, word)| (name.clone(), one(name, word))).collect()
}

fn read(field: &Field, value: Value) -> Result<Arg, Wrong> {
    let wrong = |what: &str| Wrong::Invalid(format!("property '{}' is no {what}", field.name));
    let text = |value: Value| match value {
        Value::String(text) => Ok(text),
        _ => Err(wrong("text")),
    };
    match field.kind {
        Kind::Text | Kind::ToldOnce => text(value).map(Arg::Text),
        Kind::Word => match value {
            Value::Number(number) => Ok(Arg::Text(number.to_string())),
            value => text(value).map(Arg::Text),
        },
        Kind::Secret => text(value).map(|t| Arg::Secret(Secret::new(t))),
        Kind::Number => value.as_u64().map(Arg::Number).ok_or_else(|| wrong("number")),
        // Clients that read their own configuration send words.
        Kind::Flag => match &value {
            Value::Bool(flag) => Ok(Arg::Flag(*flag)),
            Value::String(word) if word.eq_ignore_ascii_case("true") => Ok(Arg::Flag(true)),
            Value::String(word) if word.eq_ignore_ascii_case("false") => Ok(Arg::Flag(false)),
            _ => Err(wrong("truth")),
        },
        Kind::Size => match value {
            Value::String(text) => units::parse_size(&text)
                .map(Arg::Number)
                .map_err(|e| Wrong::Invalid(format!("'{}': {e}", field.name))),
            // Clients that reckon with floats send them.
            Value::Number(n) => n
                .as_u64()
                .or_else(|| {
                    n.as_f64().filter(|f| f.fract() == 0.0 && (0.0..9e15).contains(f)).map(|f| f as u64)
                })
                .map(Arg::Number)
                .ok_or_else(|| wrong("size")),
            _ => Err(wrong("size")),
        },
        Kind::Texts => match value {
            Value::String(one) => Ok(Arg::Texts(vec![one])),
            Value::Array(all) => all.into_iter().map(text).collect::<Result<_, _>>().map(Arg::Texts),
            _ => Err(wrong("list of texts")),
        },
        Kind::Object(_) | Kind::List(_) | Kind::Numbers => Err(wrong("value that can be given")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{may, must};

    const SHAPE: Shape = Shape::new(
        "test",
        &[
            must("name", Kind::Text, ""),
            may("size", Kind::Size, ""),
            may("thin", Kind::Flag, ""),
            may("groups", Kind::Texts, ""),
            may("key", Kind::Secret, ""),
            may("day", Kind::Word, ""),
        ],
    )
    .and_custom();

    fn read(text: &str) -> Result<Args, Wrong> {
        Args::read(text.as_bytes(), Some(&SHAPE))
    }

    #[test]
    fn bodies_give_what_their_shape_knows() {
        let args = read(r#"{"name":"a","size":"16K","groups":"g","thin":true,"key":"tops","custom:x":"y","custom:n":-5,"custom:b":true}"#)
            .unwrap();
        assert_eq!(args.number("size"), Some(16 << 10));
        assert_eq!(args.texts("groups").unwrap(), ["g"]);
        assert_eq!(args.custom["custom:x"], "y");
        assert_eq!((args.custom["custom:n"].as_str(), args.custom["custom:b"].as_str()), ("-5", "true"));
        assert_eq!(args.secret("key").unwrap().reveal(), "tops");
        assert_eq!(read(r#"{"name":"a","day":15}"#).unwrap().text("day"), Some("15"));
        assert_eq!(read(r#"{"name":"a","thin":"False"}"#).unwrap().flag("thin"), Some(false));
        assert!(!format!("{args:?}").contains("tops"), "{args:?}");
        assert_eq!(read(r#"{"name":"a","size":1.0e9}"#).unwrap().number("size"), Some(1_000_000_000));
        assert!(Args::read(b" null ", None).unwrap().is_empty() && Args::read(b"", None).unwrap().is_empty());
    }

    const MISSING: &str = "missing";
    const INVALID: &str = "invalid";
    const UNKNOWN: &str = "unknown";

    fn kind(wrong: &Wrong) -> &'static str {
        match wrong {
            Wrong::Missing(_) => MISSING,
            Wrong::Invalid(_) => INVALID,
            Wrong::Unknown(_) => UNKNOWN,
        }
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        for (body, name) in [
            ("", MISSING),
            ("{}", MISSING),
            (r#"{"name":1}"#, INVALID),
            (r#"{"name":"a","size":-1}"#, INVALID),
            (r#"{"name":"a","size":1.5}"#, INVALID),
            (r#"{"name":"a","size":"big"}"#, INVALID),
            (r#"{"name":"a","thin":"perhaps"}"#, INVALID),
            (r#"{"name":"a","groups":[1]}"#, INVALID),
            (r#"{"name":"a","more":1}"#, UNKNOWN),
            (r#"{"name":"a","custom:x":[1]}"#, INVALID),
            ("[]", INVALID),
            ("{\"name\":", INVALID),
            (&"[".repeat(100_000), INVALID),
        ] {
            assert_eq!(kind(&read(body).unwrap_err()), name, "{}", &body[..body.len().min(40)]);
        }
        assert_eq!(kind(&Args::read(b"{\"a\":1}", None).unwrap_err()), UNKNOWN);
    }
}
