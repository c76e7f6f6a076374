//! Templates of paths, filled in.

/// A part of a path as it is written in one.
pub fn encode(part: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~:@=+,".contains(&b);
    let one = |b: u8| if is_plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") };
    part.bytes().map(one).collect()
}

/// A template with these parts, encoded, in place of its braces, in their order.
pub fn filled<'a>(template: &str, parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut parts = parts.into_iter();
    let one = |part: &str| match part.starts_with('{') {
        true => encode(parts.next().unwrap_or_default()),
        false => part.to_string(),
    };
    template.split('/').map(one).collect::<Vec<_>>().join("/")
}
