//! Declarations: `declared!` of a request, `shaped!` of a value in answers.

use super::{Args, Face, Field, Kind, Shape, Spoken, Wrong, must};
use crate::shares::ItemKind;
use crate::{Reply, Request};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What the server received: what the braces of the path stand for, the query, and the body.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    pub params: &'a BTreeMap<&'static str, String>,
    pub query: &'a [(String, String)],
    pub args: &'a Args,
}

impl Given<'_> {
    pub fn param(&self, name: &str) -> String {
        self.params.get(name).cloned().unwrap_or_default()
    }

    pub fn is_said(&self, name: &str) -> bool {
        self.query.iter().any(|(n, value)| n == name && value == "true")
    }

    /// A number of the query; 0 where it says none.
    pub fn number(&self, name: &str) -> Result<u64, Wrong> {
        match self.query.iter().find(|(n, _)| n == name) {
            None => Ok(0),
            Some((_, value)) => {
                value.parse().map_err(|_| Wrong::Invalid(format!("{name}: a number is wanted")))
            }
        }
    }
}

/// What the client sends: the same, to be written down. Braces are in the order of the path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sent {
    pub params: Vec<String>,
    pub query: Vec<(&'static str, String)>,
    pub body: Option<Map<String, Value>>,
}

/// A request over HTTP, both ways.
#[derive(Clone, Copy, Debug)]
pub struct Declared {
    pub face: Face,
    /// Of one whose path says the kind of the share that the request is about: that kind. The request does not say it.
    pub of: Option<ItemKind>,
    /// How it is sent; `None` of a request that is declared elsewhere.
    pub sent: fn(&Request) -> Option<Sent>,
    /// What was received, as a request.
    pub asked: fn(Given<'_>) -> Result<Request, Wrong>,
    /// The reply, from the body of an answer.
    pub taken: fn(&Value) -> Result<Reply, Wrong>,
    /// The body of an answer, from the reply: of one that is plain. `None`: that is no reply to it.
    pub told: Option<fn(&Reply) -> Option<Value>>,
    /// Words of the shell that make it.
    pub said: &'static [Spoken],
}

/// A value of `api` as answers tell it.
#[derive(Debug)]
pub struct Shaped<T> {
    pub shape: Shape,
    pub tell: fn(&T) -> Map<String, Value>,
    pub take: fn(&Args) -> Result<T, Wrong>,
}

impl<T> Shaped<T> {
    /// What stands under `name` in an answer.
    pub fn one(&self, answer: &Value, name: &str) -> Result<T, Wrong> {
        (self.take)(&Args::told(&answer[name], &self.shape))
    }

    /// The list that stands under `name` in an answer.
    pub fn all(&self, answer: &Value, name: &str) -> Result<Vec<T>, Wrong> {
        let listed = answer[name].as_array().into_iter().flatten();
        listed.map(|value| (self.take)(&Args::told(value, &self.shape))).collect()
    }

    /// A list, as an answer tells it under `name`.
    pub fn tell_all(&self, all: &[T], name: &str) -> Value {
        let all: Vec<Value> = all.iter().map(|one| Value::Object((self.tell)(one))).collect();
        Value::Object(Map::from_iter([(name.to_string(), all.into())]))
    }
}

/// The field that says where the value is, by a template that its parts fill in.
pub const fn href(_: &'static str) -> Field {
    must("href", Kind::Text, "Its path")
}

/// A value in answers: its shape, and the field of the type that each field of JSON holds.
///
/// ```text
/// shaped! {
///     pub TARGET: Target = "target" at "/api/san/v1/iscsi/targets/{target}" (iqn) {
///         must "iqn" Text iqn, "Its iSCSI name";
///         must "targetchapsecret" Secret has_chap_secret as Stars, "Stars, if there is one";
///     } also { must("profile", Kind::Text, "What the server adds") }
/// }
/// ```
#[macro_export]
macro_rules! shaped {
    (
        $(#[$note:meta])*
        $vis:vis $id:ident: $type:ident = $name:literal $(at $path:literal ($($part:ident),*))? {
            $($need:ident $wire:literal $kind:ident $field:ident $(as $codec:ident)?, $about:expr;)*
        } $(also { $($more:expr),* $(,)? })?
    ) => {
        $(#[$note])*
        $vis static $id: $crate::http::Shaped<$type> = $crate::http::Shaped {
            shape: $crate::http::Shape::new($name, &[
                $($crate::http::declare::href($path),)?
                $($crate::http::$need($wire, $crate::http::Kind::$kind, $about),)*
                $($($more,)*)?
            ]),
            tell: |told: &$type| {
                let mut map = serde_json::Map::new();
                $(map.insert("href".into(), $crate::http::filled($path, [$(told.$part.as_str()),*]).into());)?
                $(if let Some(value) = $crate::shaped!(@tell &told.$field $(, $codec)?) {
                    map.insert($wire.into(), value);
                })*
                map
            },
            take: |args: &$crate::http::Args| {
                let mut taken = <$type>::default();
                $(taken.$field = $crate::shaped!(@take $wire, args.get($wire) $(, $codec)?)?;)*
                Ok(taken)
            },
        };
    };
    (@tell $value:expr) => { $crate::http::Held::tell($value) };
    (@tell $value:expr, $codec:ident) => { $codec::tell($value) };
    (@take $wire:literal, $arg:expr) => { $crate::http::Held::from_arg($wire, $arg) };
    (@take $wire:literal, $arg:expr, $codec:ident) => { $codec::from_arg($wire, $arg) };
}

/// A request: its face, and the variant that it is, once for both directions.
///
/// ```text
/// declared! {
///     pub CHANGE_TARGET: Put "/api/san/v1/iscsi/targets/{target}", "Change a target";
///     needs Need::Right("stmf", "allow_configure");
///     of ItemKind::Lun;                            it is this one of those that are of LUNs; else of whatever matches
///     path (target = iqn)                          braces = variables, in the order of the path, some `as` a codec
///     query (force = force)                        ?force=true = a variable that is a bool
///     number (since = since)                       ?since=5 = a variable that is a number
///     always confirm;                              ?confirm=true is always sent: the person was asked before
///     every (pools)                                variables that do not travel: it is asked for all of them
///     body "target_changes" { may "alias" Text alias, "What people call it"; }
///     takes LUN_CHANGES { "name" name; others set; }
///                                                  or a body of that shape: variables of some fields, and one of all
///                                                  others, as words by their names
///     answers Answer::One("target", &TARGET.shape);
///     means { Request::San(San::TargetSet { iqn, set: TargetChange { alias } }) }
///     gives |answer| Ok(Reply::Done);              Done, unless it is said
///     plain |reply| ...;                           the server has no code of its own for it
///     said "san targets {target}" "test [alias]", "help" sure "What cannot be undone.";
///                                                  a word of the shell, see [`Spoken`]; any number of them
/// }
/// ```
#[macro_export]
macro_rules! declared {
    ($(
        $(#[$note:meta])*
        pub $id:ident: $method:ident $path:expr, $about:expr;
        $(needs $needed:expr;)?
        $(of $of:expr;)?
        $(path ($($brace:ident = $part:ident $(as $codec:ident)?),*))?
        $(query ($($asked:ident = $flag:ident),*))?
        $(number ($($number:ident = $counted:ident),*))?
        $(always $always:ident;)?
        $(every ($($every:ident),*))?
        $(body $body:literal { $($need:ident $wire:literal $kind:ident $var:ident, $text:expr;)* })?
        $(takes $shape:ident { $($known:literal $into:ident;)* $(others $others:ident;)? })?
        answers $answer:expr;
        $(status $status:literal;)?
        means { $($means:tt)* }
        $(gives $gives:expr;)?
        $(plain $plain:expr;)?
        $(said $place:literal $usage:literal, $help:literal $(sure $sure:literal)?;)*
    )*) => {$(
        $(#[$note])*
        pub static $id: $crate::http::Declared = $crate::http::Declared {
            face: {
                #[allow(unused_mut)]
                let mut face = $crate::http::Face::new($crate::http::Method::$method, $path, $about, $answer);
                $(face.need = $needed;)?
                $(face.status = $status;)?
                $({
                    static BODY: $crate::http::Shape = $crate::http::Shape::new(
                        $body, &[$($crate::http::$need($wire, $crate::http::Kind::$kind, $text)),*],
                    );
                    face.body = Some(&BODY);
                })?
                $(face.body = Some(&$shape);)?
                face
            },
            of: $crate::declared!(@option $($of)?),
            #[allow(unused_mut, unused_variables, unreachable_patterns)]
            sent: |request| match request {
                $($means)* => {
                    let mut sent = $crate::http::Sent::default();
                    $($(sent.params.push($crate::declared!(@sent $part $(, $codec)?));)*)?
                    $(sent.query.push((stringify!($always), "true".into()));)?
                    $($(if *$flag { sent.query.push((stringify!($asked), "true".into())); })*)?
                    $($(sent.query.push((stringify!($number), $counted.to_string()));)*)?
                    $({
                        let mut body = serde_json::Map::new();
                        $(if let Some(value) = $crate::http::Held::tell($var) { body.insert($wire.into(), value); })*
                        sent.body = Some(body);
                    })?
                    $({
                        let mut body = serde_json::Map::new();
                        $(body.extend($crate::http::spelt(&$shape, $others));)?
                        $(if let Some(value) = $crate::http::Held::tell($into) { body.insert($known.into(), value); })*
                        sent.body = Some(body);
                    })?
                    Some(sent)
                }
                _ => None,
            },
            #[allow(unused_variables)]
            asked: |given| {
                $($(let $part = $crate::declared!(@got given.param(stringify!($brace)) $(, $codec)?);)*)?
                $($(let $flag = given.is_said(stringify!($asked));)*)?
                $($(let $counted = given.number(stringify!($number))?;)*)?
                $($(let $every = Default::default();)*)?
                $($(let $var = $crate::http::Held::from_arg($wire, given.args.get($wire))?;)*)?
                $(
                    $(let $into = $crate::http::Held::from_arg($known, given.args.get($known))?;)*
                    let known: &[&str] = &[$($known),*];
                    $(let $others = given.args.words(&$shape, known)?;)?
                )?
                Ok($($means)*)
            },
            taken: $crate::declared!(@or |_| Ok($crate::Reply::Done) $(, $gives)?),
            told: $crate::declared!(@option $($plain)?),
            said: &[$($crate::http::Spoken {
                place: $place,
                usage: $usage,
                about: $help,
                sure: $crate::declared!(@option $($sure)?),
            }),*],
        };
    )*};
    (@sent $part:ident) => { $part.to_string() };
    (@sent $part:ident, $codec:ident) => { $codec::sent($part) };
    (@got $text:expr) => { $text };
    (@got $text:expr, $codec:ident) => { $codec::got(&$text)? };
    (@or $default:expr) => { $default };
    (@or $default:expr, $given:expr) => { $given };
    (@option) => { None };
    (@option $given:expr) => { Some($given) };
}
