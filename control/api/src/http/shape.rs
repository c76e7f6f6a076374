//! What bodies and answers hold: fields by name, said once for checks and for the OpenAPI document.

use serde_json::{Map, Value, json};

/// What a field may be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Text,
    /// Text, or a number that is taken for text; told as text.
    Word,
    Number,
    Flag,
    /// A number of bytes, or text such as `16K`; told as a number.
    Size,
    /// One text, or a list of them; told as a list.
    Texts,
    /// Text that is never told, see [`crate::Secret`].
    Secret,
    /// Text that is told once, in the answer that makes it.
    ToldOnce,
    Object(&'static Shape),
    List(&'static Shape),
    /// Numbers in a list.
    Numbers,
}

#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
    /// In a body: it must be given. In an answer: it is always there.
    pub is_required: bool,
    /// To change this one takes another permission of the endpoint's scope.
    pub permission: Option<&'static str>,
    /// The one text that is accepted of this one, and why there is no other: what clients say of everything.
    pub always: Option<(&'static str, &'static str)>,
    pub about: &'static str,
}

/// An object.
#[derive(Debug)]
pub struct Shape {
    /// In the OpenAPI document; two shapes do not share one.
    pub name: &'static str,
    pub fields: &'static [Field],
    /// Users' own properties, `custom:NAME`, may stand beside the fields.
    pub has_custom: bool,
}

/// A field that must be there.
pub const fn must(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, is_required: true, permission: None, always: None, about }
}

/// A field that may be there.
pub const fn may(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, is_required: false, permission: None, always: None, about }
}

impl Field {
    pub const fn with(mut self, permission: &'static str) -> Field {
        self.permission = Some(permission);
        self
    }

    /// It can only be `text`, for the reason `why`.
    pub const fn always(mut self, text: &'static str, why: &'static str) -> Field {
        self.always = Some((text, why));
        self
    }
}

impl Shape {
    pub const fn new(name: &'static str, fields: &'static [Field]) -> Shape {
        Shape { name, fields, has_custom: false }
    }

    pub const fn and_custom(mut self) -> Shape {
        self.has_custom = true;
        self
    }

    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|f| f.name == name)
    }

    /// As JSON Schema.
    pub fn schema(&self) -> Value {
        let properties: Map<String, Value> = self
            .fields
            .iter()
            .map(|f| {
                let mut schema = f.kind.schema();
                if let Some(schema) = schema.as_object_mut() {
                    schema.insert("description".into(), f.about.into());
                }
                (f.name.to_string(), schema)
            })
            .collect();
        let required: Vec<&str> = self.fields.iter().filter(|f| f.is_required).map(|f| f.name).collect();
        let mut schema = json!({ "type": "object", "properties": properties });
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        if self.has_custom {
            schema["patternProperties"] = json!({ "^custom:": { "type": ["string", "integer", "boolean"] } });
        }
        schema["additionalProperties"] = false.into();
        schema
    }

    /// The shapes of its fields, and theirs.
    pub fn inner(&self) -> Vec<&'static Shape> {
        let of = |field: &'static Field| match field.kind {
            Kind::Object(shape) | Kind::List(shape) => {
                let mut all = vec![shape];
                all.extend(shape.inner());
                all
            }
            _ => Vec::new(),
        };
        self.fields.iter().flat_map(of).collect()
    }

    /// What is wrong with an answer that claims to have this shape.
    pub fn objections(&self, value: &Value) -> Vec<String> {
        let Some(object) = value.as_object() else { return vec![format!("{} is no object", self.name)] };
        let mut all = Vec::new();
        for field in self.fields {
            match object.get(field.name) {
                Some(value) => {
                    all.extend(field.kind.objections(value).map(|o| format!("{}: {o}", field.name)))
                }
                None if field.is_required => all.push(format!("{} lacks {}", self.name, field.name)),
                None => {}
            }
        }
        let is_known =
            |name: &str| self.field(name).is_some() || (self.has_custom && name.starts_with("custom:"));
        all.extend(object.keys().filter(|k| !is_known(k)).map(|k| format!("{} has no {k}", self.name)));
        all
    }
}

impl Kind {
    fn schema(self) -> Value {
        let reference = |shape: &Shape| json!({ "$ref": format!("#/components/schemas/{}", shape.name) });
        match self {
            Kind::Text | Kind::ToldOnce => json!({ "type": "string" }),
            Kind::Word => json!({ "type": ["string", "integer"] }),
            Kind::Number => json!({ "type": "integer", "minimum": 0 }),
            Kind::Flag => json!({ "type": ["boolean", "string"] }),
            Kind::Size => json!({ "type": ["integer", "string"] }),
            Kind::Texts => json!({ "type": ["array", "string"], "items": { "type": "string" } }),
            Kind::Secret => json!({ "type": "string", "format": "password", "writeOnly": true }),
            Kind::Object(shape) => json!({ "allOf": [reference(shape)] }),
            Kind::List(shape) => json!({ "type": "array", "items": reference(shape) }),
            Kind::Numbers => json!({ "type": "array", "items": { "type": "integer" } }),
        }
    }

    fn objections(self, value: &Value) -> Option<String> {
        let is_right = match self {
            Kind::Text | Kind::Word | Kind::ToldOnce => value.is_string(),
            Kind::Number | Kind::Size => value.is_u64(),
            Kind::Flag => value.is_boolean(),
            Kind::Texts => value.as_array().is_some_and(|all| all.iter().all(Value::is_string)),
            // It may only be told in stars.
            Kind::Secret => value.as_str().is_some_and(|text| text.bytes().all(|b| b == b'*')),
            Kind::Numbers => value.as_array().is_some_and(|all| all.iter().all(Value::is_u64)),
            Kind::Object(shape) => {
                let all = shape.objections(value);
                return (!all.is_empty()).then(|| all.join(", "));
            }
            Kind::List(shape) => match value.as_array() {
                Some(values) => {
                    let all: Vec<String> = values.iter().flat_map(|v| shape.objections(v)).collect();
                    return (!all.is_empty()).then(|| all.join(", "));
                }
                None => false,
            },
        };
        (!is_right).then(|| format!("{value} is not {self:?}"))
    }
}
