//! Authorizations as they travel: flat, a field for each filter and each permission of their scope.

use crate::fault::Fault;
use access::{Authorization, scope};
use api::http::Args;
use api::http::{Field, Kind, Shape, may, must};
use serde_json::{Map, Value};

/// A permission.
const fn allow(name: &'static str) -> Field {
    may(name, Kind::Flag, "Whether it gives this permission; which ones a scope has, the scope says")
}

/// A filter.
const fn only(name: &'static str) -> Field {
    may(name, Kind::Text, "For which alone it holds; * for all")
}

const SCOPE: Field = must(
    "scope",
    Kind::Text,
    "The field of work: analytics, nas, schema, stmf, user, role, svc, hardware, update, appliance",
);

macro_rules! fields {
    ($($first:expr),*) => {
        &[
            $($first,)*
            SCOPE,
            only("pool"),
            only("project"),
            only("share"),
            only("name"),
            only("service"),
            allow("allow_administer"),
            allow("allow_audit"),
            allow("allow_backup"),
            allow("allow_changeAuths"),
            allow("allow_changeDatasets"),
            allow("allow_changeGeneralProps"),
            allow("allow_changePassword"),
            allow("allow_changeProperties"),
            allow("allow_changeProtocolProps"),
            allow("allow_changeRoles"),
            allow("allow_changeSettings"),
            allow("allow_changeSpaceProps"),
            allow("allow_changeWorksheets"),
            allow("allow_clone"),
            allow("allow_configure"),
            allow("allow_createProject"),
            allow("allow_createShare"),
            allow("allow_destroy"),
            allow("allow_modify"),
            allow("allow_openStatistics"),
            allow("allow_pool"),
            allow("allow_rename"),
            allow("allow_rollback"),
            allow("allow_scheduleSnap"),
            allow("allow_scrub"),
            allow("allow_takeSnap"),
            allow("allow_update"),
        ]
    };
}

pub(super) const NEW: Shape = Shape::new("new_authorization", fields!());
pub(super) const AUTH: Shape = Shape::new("authorization", fields!(must("href", Kind::Text, "Its path")));

pub(super) fn read(args: &Args) -> Result<Authorization, Fault> {
    let name = args.text("scope").unwrap_or_default();
    let words = |kind: fn(&str) -> bool| args.names().filter(move |n| *n != "scope" && kind(n));
    let is_permission = |n: &str| n.starts_with("allow_");
    let filters = words(|n| !n.starts_with("allow_"));
    let filters = filters.filter_map(|n| Some((n.to_string(), args.text(n)?.to_string()))).collect();
    let given = words(is_permission);
    // What is not given is said by leaving it out, or by saying so.
    let unknown = scope(name).and_then(|s| words(is_permission).find(|p| !s.permissions.contains(p)));
    if let Some(word) = unknown {
        return Err(Fault::unknown_argument(word));
    }
    let permissions = given.filter(|n| args.flag(n) == Some(true)).map(String::from).collect();
    Ok(Authorization::new(name, filters, permissions)?)
}

pub(super) fn show(auth: &Authorization, href: String) -> Value {
    let mut object = Map::from_iter([
        ("scope".to_string(), Value::from(auth.scope.as_str())),
        ("href".to_string(), Value::from(href)),
    ]);
    if let Some(scope) = scope(&auth.scope) {
        object.extend(scope.filters.iter().map(|f| (f.to_string(), Value::from(auth.filter(f)))));
        let permissions = scope.permissions.iter();
        object.extend(permissions.map(|p| (p.to_string(), Value::from(auth.permissions.contains(*p)))));
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_every_scope_has_its_field() {
        let mut words: Vec<&str> = Vec::new();
        for scope in access::SCOPES {
            words.extend(scope.filters.iter().chain(scope.permissions));
        }
        for word in &words {
            assert!(NEW.field(word).is_some(), "{word}");
        }
        let others = NEW.fields.iter().map(|f| f.name).filter(|n| !words.contains(n));
        assert_eq!(others.collect::<Vec<_>>(), ["scope"]);
    }

    #[test]
    fn an_authorization_is_shown_as_it_is_read() {
        let body = br#"{"scope":"nas","pool":"p0","allow_destroy":true,"allow_rename":false}"#;
        let auth = read(&Args::read(body, Some(&NEW)).unwrap()).unwrap();
        let shown = show(&auth, "/x".into());
        assert_eq!((&shown["pool"], &shown["project"]), (&Value::from("p0"), &Value::from("*")));
        assert_eq!((&shown["allow_destroy"], &shown["allow_rename"]), (&true.into(), &false.into()));
        assert_eq!(AUTH.objections(&shown), Vec::<String>::new());
        let wrong = Args::read(br#"{"scope":"user","allow_rename":false}"#, Some(&NEW)).unwrap();
        assert_eq!(read(&wrong).unwrap_err().name, "ERR_UNKNOWN_ARG");
    }
}
