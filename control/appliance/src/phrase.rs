//! Errors as OpenZFS's commands word them, where it has words for them.

use api::ApiError;
use std::error::Error as _;
use units::{Error, Kind};

/// What a request was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    Pool,
    Dataset,
}

/// `cannot DOING: why`.
pub(crate) fn cannot(about: About, doing: &str, e: &Error) -> ApiError {
    ApiError::new(e.kind().into(), format!("cannot {doing}: {}", why(about, e)))
}

fn why(about: About, e: &Error) -> String {
    // What lies behind an error of these kinds says more than the kind; for the others the error is a sentence.
    let phrase = match (e.kind(), about) {
        (Kind::NotFound, About::Pool) => "no such pool",
        (Kind::NotFound, About::Dataset) => "dataset does not exist",
        (Kind::Exists, About::Pool) => "pool already exists",
        (Kind::Exists, About::Dataset) => "dataset already exists",
        (Kind::Busy, About::Pool) => "pool is busy",
        (Kind::Busy, About::Dataset) => "dataset is busy",
        (Kind::NoSpace, _) => "out of space",
        (Kind::ReadOnly, _) => "pool is read-only",
        _ => return e.to_string(),
    };
    match e.source() {
        Some(source) => source.to_string(),
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
        let sentence = Error::invalid("'volsize' must be a multiple of volume block size (16K)");
        assert_eq!(
            cannot(About::Dataset, "create 'tank/v'", &sentence).message,
            "cannot create 'tank/v': 'volsize' must be a multiple of volume block size (16K)"
        );
    }
}
