//! A line as words. Pure.
//!
//! Blanks separate words, and nothing between quotes does; a `;` outside of quotes ends a command, and a `#` at the begin of
//! a word everything. A line that ends in a backslash goes on with the next one.

/// What a line that is continued on the next one says, without the backslash at its end.
pub(crate) fn continued(line: &str) -> Option<&str> {
    let line = line.trim_end_matches('\r');
    let backslashes = line.len() - line.trim_end_matches('\\').len();
    // Two of them are a value that ends in one.
    (backslashes % 2 == 1).then(|| &line[..line.len() - 1])
}

/// The commands of a line.
pub(crate) fn commands(line: &str) -> Vec<String> {
    let mut commands = vec![String::new()];
    let (mut quote, mut before) = (None, ' ');
    for c in line.chars() {
        let current = commands.last_mut().expect("one is there from the start");
        match (quote, c) {
            (None, '#') if before.is_whitespace() || before == ';' => break,
            (None, ';') => commands.push(String::new()),
            (None, '"' | '\'') => {
                quote = Some(c);
                current.push(c);
            }
            (Some(q), _) => {
                quote = if c == q { None } else { quote };
                current.push(c);
            }
            _ => current.push(c),
        }
        before = c;
    }
    commands.into_iter().map(|c| c.trim().to_string()).filter(|c| !c.is_empty()).collect()
}

/// The words of a command, without their quotes.
pub(crate) fn split(command: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in command.chars() {
        match (quote, c) {
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(q), _) if c == q => quote = None,
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    match quote {
        Some(_) => Err("a quote is not closed".into()),
        None => Ok(words),
    }
}

/// `name=value`.
pub(crate) fn setting(word: &str) -> Result<(&str, &str), String> {
    match word.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name, value)),
        _ => Err(format!("invalid property assignment \"{word}\": it is like name=value")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_together_what_belongs_together() {
        assert_eq!(
            split(r#"set  alias="Target 0" x='a "b"' y="""#).unwrap(),
            ["set", "alias=Target 0", "x=a \"b\"", "y="]
        );
        assert!(split("set alias=\"a").is_err());
        assert_eq!(commands("a b; c 'x;y' ;; # d"), ["a b", "c 'x;y'"]);
        assert_eq!(commands("set alias=a#b"), ["set alias=a#b"]);
        assert!(commands("  # nothing").is_empty());
        assert_eq!(setting("a=b=c").unwrap(), ("a", "b=c"));
        assert!(setting("a").is_err() && setting("=a").is_err());
    }
}
