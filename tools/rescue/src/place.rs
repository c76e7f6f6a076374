//! What a place on the command line means: `tank/home@monday:/anna/letter`.

/// The datasets that a place may name, each with the path then left, the likeliest first.
///
/// A colon ends the dataset, but names of datasets may have colons too, and so may paths. Whichever reading names a
/// dataset that there is, counts; of several the one with the longest name.
pub fn readings(place: &str) -> Vec<(&str, &str)> {
    let whole = std::iter::once((place, ""));
    let cut = place.char_indices().rev().filter(|(_, c)| *c == ':');
    whole
        .chain(cut.map(|(at, _)| (&place[..at], &place[at + 1..])))
        .filter(|(dataset, _)| !dataset.is_empty())
        .collect()
}

/// The pool of a place.
pub fn pool(place: &str) -> &str {
    place.split(['/', '@', ':']).next().unwrap_or(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colon_may_be_the_one() {
        assert_eq!(readings("tank"), [("tank", "")]);
        let all =
            [("tank/a:b@c:/d:e", ""), ("tank/a:b@c:/d", "e"), ("tank/a:b@c", "/d:e"), ("tank/a", "b@c:/d:e")];
        assert_eq!(readings("tank/a:b@c:/d:e"), all);
        assert_eq!(pool("tank@c:/d"), "tank");
        assert_eq!(pool("tank:etc/x"), "tank");
    }
}
