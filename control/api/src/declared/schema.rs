//! The schema over HTTP: properties of an administrator's own, which projects and shares then have as `custom:NAME`.

use crate::http::{Answer, Declared, Face, Need, Word};
use crate::schema::{CustomProperty, CustomType, Schema};
use crate::{Reply, Request, declared, shaped};

impl Word for CustomType {
    fn parse(text: &str) -> Option<CustomType> {
        CustomType::parse(text)
    }

    fn word(self) -> &'static str {
        CustomType::word(self)
    }

    fn refusal(_: &str, text: &str) -> String {
        format!("'{text}' is no type: {TYPES}")
    }
}

const TYPES: &str = "String, Integer, PositiveInteger, Boolean, EmailAddress or Host";
const SCHEMA: &str = "/api/storage/v1/schema";
const A_PROPERTY: &str = "/api/storage/v1/schema/{property}";
const MODIFY: Need = Need::Right("schema", "allow_modify");
const PURPOSE: &str = "What it is for";
const UNPREFIXED: &str = "Its name, without the prefix custom:";

shaped! {
    pub PROPERTY: CustomProperty = "schema_property" at "/api/storage/v1/schema/{property}" (name) {
        must "property" Text name, UNPREFIXED;
        must "type" Text kind, TYPES;
        must "description" Text description, PURPOSE;
    }
}

pub static GET_PROPERTY: Face =
    Face::get(A_PROPERTY, "A custom property", Answer::One("property", &PROPERTY.shape));

declared! {
    pub SHOW: Get SCHEMA, "List the custom properties that projects and shares can have";
    answers Answer::Several("properties", &PROPERTY.shape);
    means { Request::Schema(Schema::Show) }
    gives |answer| Ok(Reply::Schema(PROPERTY.all(answer, "properties")?));

    pub CREATE: Post SCHEMA, "Make a custom property";
    needs MODIFY;
    body "new_schema_property" {
        must "property" Text name, UNPREFIXED;
        may "type" Text kind, TYPES;
        may "description" Text description, PURPOSE;
    }
    answers Answer::One("property", &PROPERTY.shape);
    means { Request::Schema(Schema::Create(CustomProperty { name, kind, description })) }

    pub CHANGE: Put A_PROPERTY, "Change a custom property";
    needs MODIFY;
    path (property = name)
    body "schema_property_changes" {
        may "type" Text kind, "Another type; values that are there are not looked at";
        may "description" Text description, PURPOSE;
    }
    answers Answer::One("property", &PROPERTY.shape);
    means { Request::Schema(Schema::Change { name, kind, description }) }

    pub DESTROY: Delete A_PROPERTY, "Take a custom property out of the schema; values stay, and are not shown";
    needs MODIFY;
    path (property = name)
    answers Answer::Nothing;
    means { Request::Schema(Schema::Destroy { name }) }
}

pub(super) static ALL: &[&Declared] = &[&SHOW, &CREATE, &CHANGE, &DESTROY];
