//! `zfs userspace`, `zfs groupspace` and `zfs projectspace`: one table for all three.

use crate::args::SortKey;
use crate::args::zfs::Space;
use crate::expect_reply;
use crate::session::{Failure, Outcome, Session};
use crate::text::number::{bytes, count};
use crate::text::table::{Column, render};
use api::{Reply, Request, Usage, Whose};
use std::cmp::Ordering;

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Type,
    Name,
    Used,
    Quota,
    ObjUsed,
    ObjQuota,
}

const FIELDS: [(&str, Field); 6] = [
    ("type", Field::Type),
    ("name", Field::Name),
    ("used", Field::Used),
    ("quota", Field::Quota),
    ("objused", Field::ObjUsed),
    ("objquota", Field::ObjQuota),
];

/// The words of `-t`. Identities of another system's domain have nothing in what a POSIX machine writes.
const TYPES: [(&str, &[Whose]); 5] = [
    ("all", &[Whose::Users, Whose::Groups]),
    ("posixuser", &[Whose::Users]),
    ("posixgroup", &[Whose::Groups]),
    ("smbuser", &[]),
    ("smbgroup", &[]),
];

/// Whose, and what he has.
type Row = (Whose, Usage);

pub(super) fn run(session: &mut Session<'_>, args: &Space, whose: Whose) -> Outcome {
    let fields = match &args.fields[..] {
        [] => FIELDS.map(|(_, field)| field).to_vec(),
        words => words.iter().map(|word| field(word, "for -o option")).collect::<Outcome<Vec<_>>>()?,
    };
    let mut keys = Vec::new();
    for SortKey { property, descending } in &args.sort.0 {
        keys.push((field(property, "to sort by")?, *descending));
    }
    let kinds = kinds(args, whose)?;
    let dataset = dataset(session, &args.dataset)?;
    let mut rows: Vec<Row> = Vec::new();
    for whose in kinds {
        let asked = Request::DatasetUsage { name: dataset.clone(), whose };
        let all = expect_reply!(session.ask(asked)?, Reply::Usage(all) => all);
        rows.extend(all.into_iter().map(|usage| (whose, usage)));
    }
    let is_numeric = args.numeric || whose == Whose::Projects;
    sort(&mut rows, &keys, is_numeric);
    if rows.is_empty() {
        return Ok(());
    }
    session.print(&table(&rows, &fields, is_numeric, args.exact, args.scripted))
}

fn field(word: &str, what: &str) -> Outcome<Field> {
    let found = FIELDS.into_iter().find(|(name, _)| *name == word);
    found.map(|(_, field)| field).ok_or_else(|| Failure::Usage(format!("invalid type '{word}' {what}")))
}

fn kinds(args: &Space, whose: Whose) -> Outcome<Vec<Whose>> {
    if whose == Whose::Projects {
        let wrong = [(args.numeric, 'n'), (!args.types.is_empty(), 't'), (args.translate, 'i')];
        return match wrong.into_iter().find(|(is_given, _)| *is_given) {
            Some((_, option)) => Err(Failure::Usage(format!("invalid option '{option}'"))),
            None => Ok(vec![whose]),
        };
    }
    if args.types.is_empty() {
        return Ok(vec![whose]);
    }
    let mut kinds = Vec::new();
    for word in &args.types {
        let found = TYPES.into_iter().find(|(name, _)| name == word);
        let (_, these) =
            found.ok_or_else(|| Failure::Usage(format!("invalid type '{word}' for -t option")))?;
        kinds.extend_from_slice(these);
    }
    kinds.sort();
    kinds.dedup();
    Ok(kinds)
}

/// A path is of the file system that is mounted nearest to it.
fn dataset(session: &mut Session<'_>, name: &str) -> Outcome<String> {
    if !name.starts_with('/') {
        return Ok(name.to_string());
    }
    let mounted = expect_reply!(session.ask(Request::Mounts)?, Reply::Mounts(mounted) => mounted);
    let path = std::path::Path::new(name);
    let nearest = mounted.into_iter().filter(|m| path.starts_with(&m.at)).max_by_key(|m| m.at.len());
    let nearest = nearest.map(|mounted| mounted.dataset);
    nearest.ok_or_else(|| Failure::Failed(format!("cannot open '{name}': not a ZFS filesystem")))
}

/// By the keys, then by type and name, as OpenZFS: groups before users.
fn sort(rows: &mut [Row], keys: &[(Field, bool)], is_numeric: bool) {
    let compare = |field, a: &Row, b: &Row| match field {
        Field::Type => rank(a.0).cmp(&rank(b.0)),
        Field::Name => by_name(&a.1, &b.1, is_numeric),
        Field::Used => a.1.used.cmp(&b.1.used),
        Field::Quota => a.1.quota.cmp(&b.1.quota),
        Field::ObjUsed => objects(a, |o| o.used).cmp(&objects(b, |o| o.used)),
        Field::ObjQuota => objects(a, |o| o.quota).cmp(&objects(b, |o| o.quota)),
    };
    let keys = keys.iter().copied().chain([(Field::Type, false), (Field::Name, false)]);
    rows.sort_by(|a, b| {
        let orders = keys.clone().map(|(field, descending)| {
            let order = compare(field, a, b);
            if descending { order.reverse() } else { order }
        });
        orders.fold(Ordering::Equal, Ordering::then)
    });
}

fn rank(whose: Whose) -> u8 {
    match whose {
        Whose::Groups => 0,
        Whose::Users => 1,
        Whose::Projects => 2,
    }
}

fn by_name(a: &Usage, b: &Usage, is_numeric: bool) -> Ordering {
    match (&a.name, &b.name) {
        (Some(a), Some(b)) if !is_numeric => a.cmp(b),
        // Owners without a name come before those with one.
        (a_name, b_name) if !is_numeric && a_name.is_some() != b_name.is_some() => {
            a_name.is_some().cmp(&b_name.is_some())
        }
        _ => a.id.cmp(&b.id),
    }
}

fn objects(row: &Row, of: impl Fn(&api::ObjectUsage) -> u64) -> Option<u64> {
    row.1.objects.as_ref().map(of)
}

fn table(rows: &[Row], fields: &[Field], is_numeric: bool, exact: bool, scripted: bool) -> String {
    let heading = |field: &Field| {
        let (name, _) = FIELDS.into_iter().find(|(_, known)| known == field).unwrap_or(FIELDS[0]);
        let right = !matches!(field, Field::Type | Field::Name);
        Column { heading: name.to_uppercase(), right, min: 0 }
    };
    let columns: Vec<Column> = fields.iter().map(heading).collect();
    let quota = |n: u64, shown: String| if n == 0 && !exact { "none".to_string() } else { shown };
    let cell = |row: &Row, field: &Field| match field {
        Field::Type => kind(row.0).to_string(),
        Field::Name => match &row.1.name {
            Some(name) if !is_numeric => name.clone(),
            _ => row.1.id.to_string(),
        },
        Field::Used => bytes(row.1.used, exact),
        Field::Quota => quota(row.1.quota, bytes(row.1.quota, exact)),
        Field::ObjUsed => objects(row, |o| o.used).map_or("-".into(), |n| count(n, exact)),
        Field::ObjQuota => objects(row, |o| o.quota).map_or("-".into(), |n| quota(n, count(n, exact))),
    };
    let cells: Vec<Vec<String>> =
        rows.iter().map(|row| fields.iter().map(|field| cell(row, field)).collect()).collect();
    render(&columns, &cells, scripted)
}

fn kind(whose: Whose) -> &'static str {
    match whose {
        Whose::Users => "POSIX User",
        Whose::Groups => "POSIX Group",
        Whose::Projects => "Project",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::ObjectUsage;

    fn rows() -> Vec<Row> {
        let usage = |id, name: Option<&str>, used, quota| Usage {
            id,
            name: name.map(String::from),
            used,
            quota,
            objects: (id < 1000).then_some(ObjectUsage { used: id + 1, quota: 0 }),
        };
        vec![
            (Whose::Users, usage(0, Some("root"), 1536, 0)),
            (Whose::Users, usage(999, Some("bob"), 1 << 20, 10 << 30)),
            (Whose::Users, usage(1000, None, 7, 0)),
            (Whose::Groups, usage(0, Some("root"), 512, 0)),
        ]
    }

    #[test]
    fn the_table_is_that_of_openzfs() {
        let all = FIELDS.map(|(_, field)| field);
        let mut rows = rows();
        sort(&mut rows, &[], false);
        let expected = "\
TYPE         NAME   USED  QUOTA  OBJUSED  OBJQUOTA
POSIX Group  root   512B   none        1      none
POSIX User   1000     7B   none        -         -
POSIX User   bob      1M    10G     1000      none
POSIX User   root  1.50K   none        1      none
";
        assert_eq!(table(&rows, &all, false, false, false), expected);
        sort(&mut rows, &[(Field::Used, true)], true);
        let names = table(&rows, &[Field::Name, Field::Quota], true, true, true);
        assert_eq!(names, "999\t10737418240\n0\t0\n0\t0\n1000\t0\n");
    }
}
