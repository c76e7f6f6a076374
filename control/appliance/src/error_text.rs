//! Errors as OpenZFS's commands word them, where it has words for them.

use api::ApiError;
use pool::Estranged;
use units::{Error, Kind};
use vdev::Lacking;

/// What a request was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    Pool,
    Dataset,
    Snapshot,
}

/// `cannot DOING: why`.
pub(crate) fn cannot(about: About, doing: &str, e: &Error) -> ApiError {
    let why = plain(&why(about, e));
    ApiError::new(e.kind().into(), format!("cannot {doing}: {}", without_name(doing, &why)))
}

/// `No such file or directory (os error 2)` without the number, wherever that stands.
pub(crate) fn plain(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| text + part.split_once(')').map_or("", |(_, rest)| rest))
}

/// `invalid name 'a b': why` and `rename 'a' to 'b': why` without what the line said already.
fn without_name<'a>(doing: &str, why: &'a str) -> &'a str {
    let says_again = ["invalid name '", "create dataset '", "create snapshot '", "promote '", "rename '"]
        .into_iter()
        .find_map(|verb| {
            let rest = why.strip_prefix(verb)?;
            let (name, _) = rest.split_once('\'')?;
            doing.contains(&format!("'{name}'")).then(|| rest.rsplit_once("': "))?
        });
    says_again.map_or(why, |(_, why)| why)
}

/// The devices that a pool would need to be opened, one line each.
pub(crate) fn lacking(e: &Error) -> Option<&Lacking> {
    let cause: &(dyn std::error::Error + 'static) = e.cause()?;
    cause.downcast_ref()
}

/// The devices of a pool that went on without one another.
pub(crate) fn estranged(e: &Error) -> Option<&Estranged> {
    let cause: &(dyn std::error::Error + 'static) = e.cause()?;
    cause.downcast_ref()
}

/// What went wrong, in the words of OpenZFS where it has some.
pub(crate) fn why(about: About, e: &Error) -> String {
    if let Some(lacking) = lacking(e) {
        return lacking.to_string();
    }
    if let Some(estranged) = estranged(e) {
        return estranged.to_string();
    }
    // What lies behind an error of these kinds says more than the kind; for the others the error is a sentence.
    let phrase = match (e.kind(), about) {
        (Kind::NotFound, About::Pool) => "no such pool",
        (Kind::NotFound, About::Dataset) => "dataset does not exist",
        (Kind::NotFound, About::Snapshot) => "snapshot does not exist",
        (Kind::Exists, About::Pool) => "pool already exists",
        (Kind::Exists, About::Dataset | About::Snapshot) => "dataset already exists",
        (Kind::Busy, About::Pool) => "pool is busy",
        (Kind::Busy, About::Dataset | About::Snapshot) => "dataset is busy",
        (Kind::NoSpace, _) => "out of space",
        (Kind::ReadOnly, _) => "pool is read-only",
        // Without a cause it is a sentence about the request.
        (Kind::Invalid, _) if e.cause().is_some() => "invalid request",
        _ => return e.to_string(),
    };
    match e.cause() {
        Some(cause) => cause.to_string(),
        None => phrase.into(),
    }
}

pub(crate) fn no_such_pool(name: &str) -> ApiError {
    ApiError::new(api::ErrorKind::NotFound, format!("cannot open '{name}': no such pool"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_worded_as_openzfs_words_them() {
        let said = |kind| cannot(About::Dataset, "open 'tank/x'", &Error::new(kind, "open dataset")).message;
        assert_eq!(said(Kind::NotFound), "cannot open 'tank/x': dataset does not exist");
        assert_eq!(said(Kind::Exists), "cannot open 'tank/x': dataset already exists");
        assert_eq!(said(Kind::NoSpace), "cannot open 'tank/x': out of space");
        let deeper = Error::new(Kind::NoSpace, "set quota")
            .because("size is less than current used or reserved space");
        assert_eq!(
            cannot(About::Dataset, "set property for 'tank'", &deeper).message,
            "cannot set property for 'tank': size is less than current used or reserved space"
        );
        assert_eq!(plain("a: no (os error 2): b (os error 13)"), "a: no: b");
        let name = Error::invalid("invalid name '9': name must begin with a letter");
        let said = cannot(About::Pool, "create '9'", &name).message;
        assert_eq!(said, "cannot create '9': name must begin with a letter");
        let sentence = Error::invalid("'volsize' must be a multiple of volume block size (16K)");
        assert_eq!(
            cannot(About::Dataset, "create 'tank/v'", &sentence).message,
            "cannot create 'tank/v': 'volsize' must be a multiple of volume block size (16K)"
        );
    }
}
