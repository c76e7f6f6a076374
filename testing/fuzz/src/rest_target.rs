//! Bodies of the API, each against the shapes of all endpoints that take one.

use rest::{Args, Kind};

fn endpoints() -> impl Iterator<Item = &'static rest::Endpoint> {
    rest::table::all().filter(|endpoint| endpoint.body.is_some())
}

/// The first two bytes choose the endpoint.
///
/// # Panics
/// When what is given cannot be asked for, or a secret is shown.
pub fn rest_body(bytes: &[u8]) {
    let (which, body) = crate::split(bytes);
    let count = endpoints().count();
    let endpoint = endpoints().nth(which % count).expect("there are so many");
    let _ = Args::read(body, None);
    let Ok(args) = Args::read(body, endpoint.body) else { return };
    let _ = format!("{args:?}");
    let names: Vec<&str> = args.names().collect();
    for name in names {
        let _ = (args.text(name), args.number(name), args.flag(name), args.texts(name));
    }
    if let Some(shape) = endpoint.body {
        let _ = args.words(shape, &[]);
    }
}

/// For each endpoint a body with all its fields.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let body = |(number, endpoint): (usize, &rest::Endpoint)| {
        let field = |field: &rest::Field| {
            let value = match field.kind {
                Kind::Number => "7",
                Kind::Flag => "true",
                Kind::Texts => "[\"a\", \"b\"]",
                Kind::Size => "\"16K\"",
                _ => "\"text\"",
            };
            format!("\"{}\": {value}", field.name)
        };
        let fields: Vec<String> =
            endpoint.body.into_iter().flat_map(|shape| shape.fields.iter().map(field)).collect();
        [&(number as u16).to_be_bytes()[..], format!("{{{}}}", fields.join(", ")).as_bytes()].concat()
    };
    endpoints().enumerate().map(body).collect()
}
