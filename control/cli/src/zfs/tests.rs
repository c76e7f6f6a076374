//! Layouts of `zfs list` and `zfs get`.

use super::fields::{Field, Line, render};
use super::{list, scope};
use crate::args::zfs::Scope;
use api::{Dataset, DatasetKind, Property, Source};

fn dataset(name: &str, used: u64, mountpoint: Option<&str>) -> Dataset {
    Dataset {
        name: name.into(),
        kind: if mountpoint.is_some() { DatasetKind::Filesystem } else { DatasetKind::Volume },
        properties: vec![
            Property::computed("used", used),
            Property::computed("available", 39_900u64 << 20),
            Property::computed("referenced", 24_576u64),
            Property::new("mountpoint", mountpoint.map(Into::into), Source::Default),
        ],
    }
}

fn names(columns: &str) -> Vec<String> {
    columns.split(',').map(String::from).collect()
}

#[test]
fn list_prints_the_columns_of_openzfs() {
    let datasets = [dataset("tank", 405_504, Some("/tank")), dataset("tank/vol1", 1 << 30, None)];
    let expected = "\
NAME        USED  AVAIL  REFER  MOUNTPOINT
tank        396K  39.0G    24K  /tank
tank/vol1     1G  39.0G    24K  -
";
    assert_eq!(
        list::render(&datasets, &names("name,used,available,referenced,mountpoint"), false, false),
        expected
    );
    let scripted = list::render(&datasets, &names("name,type,used"), true, true);
    assert_eq!(scripted, "tank\tfilesystem\t405504\ntank/vol1\tvolume\t1073741824\n");
}

#[test]
fn a_column_of_words_has_room_for_the_longest_word_there_is() {
    let datasets = [dataset("t", 0, Some("/t"))];
    let text = list::render(&datasets, &names("name,sync,used"), false, false);
    assert_eq!(text, "NAME  SYNC       USED\nt     -            0B\n");
}

#[test]
fn get_prints_the_columns_of_openzfs() {
    let line = |property: &str, value: &str, source| Line {
        name: "tank".into(),
        property: property.into(),
        value: value.into(),
        received: None,
        source,
    };
    let lines = [
        line("type", "filesystem", Source::None),
        line("creation", "Fri Nov 20 23:00 2026", Source::None),
        line("compression", "lz4", Source::Local),
        line("atime", "off", Source::Inherited("tank".into())),
    ];
    let fields = Field::parse(&[], &[Field::Name, Field::Property, Field::Value, Field::Source]).unwrap();
    let expected = "\
NAME  PROPERTY     VALUE                  SOURCE
tank  type         filesystem             -
tank  creation     Fri Nov 20 23:00 2026  -
tank  compression  lz4                    local
tank  atime        off                    inherited from tank
";
    assert_eq!(render(&lines, &fields, 14, false), expected);
    let fields = Field::parse(&names("value,name"), &[]).unwrap();
    assert_eq!(render(&lines[2..3], &fields, 14, true), "lz4\ttank\n");
    assert!(Field::parse(&names("nonsense"), &[]).is_err());
    // The value of a user's property, which programs have to have as it is.
    let evil = [line("org.x:y", "a\u{1b}[2J\nb", Source::Local)];
    let fields = Field::parse(&names("value"), &[]).unwrap();
    assert_eq!(
        render(&evil, &fields, 0, false),
        "VALUE\na\u{2039}U+001B\u{203a}[2J\u{2039}U+000A\u{203a}b\n"
    );
    assert_eq!(render(&evil, &fields, 0, true), "a\u{1b}[2J\nb\n");
}

#[test]
fn how_far_down_depends_on_what_is_asked_for() {
    use DatasetKind::{Filesystem, Snapshot};
    let plain = Scope::default();
    let named = names("tank");
    assert_eq!(scope::depth(&plain, &[], &[Filesystem]), None);
    assert_eq!(scope::depth(&plain, &named, &[Filesystem]), Some(0));
    assert_eq!(scope::depth(&plain, &named, &[Snapshot]), Some(1));
    assert_eq!(scope::depth(&Scope { recursive: true, ..plain.clone() }, &named, &[Filesystem]), None);
    assert_eq!(scope::depth(&Scope { depth: Some(2), ..plain }, &[], &[Filesystem]), Some(2));
    assert!(scope::kinds(&names("all")).unwrap().len() == 4);
    assert!(scope::kinds(&names("filesystem,nonsense")).is_err());
}

#[test]
fn what_several_names_lead_to_is_listed_once_and_in_order() {
    let dataset = |name: &str, txg: u64| Dataset {
        name: name.into(),
        kind: DatasetKind::Filesystem,
        properties: vec![Property::computed("createtxg", txg)],
    };
    let mut all: Vec<Dataset> = [("t/b", 1), ("t@new", 9), ("t/b", 1), ("t", 1), ("t@old", 2), ("t/a", 3)]
        .map(|(name, txg)| dataset(name, txg))
        .into();
    scope::in_order(&mut all);
    let names: Vec<&str> = all.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["t", "t@old", "t@new", "t/a", "t/b"]);
}
