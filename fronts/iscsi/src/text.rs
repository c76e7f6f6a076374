//! Keys and values: `Key=value`, each ended by a zero byte. Pure.

/// What one side may say in a row, over all the PDUs it takes.
pub(crate) const MAX_TEXT: usize = 32 << 10;
const MAX_KEY: usize = 63;
const MAX_PAIRS: usize = 256;

/// Keys with their values, in the order they were said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pairs(pub Vec<(String, String)>);

impl Pairs {
    /// `None` when the bytes are no such text.
    pub fn decode(bytes: &[u8]) -> Option<Pairs> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut pairs = Vec::new();
        // Some clients end the whole by more than one zero.
        for pair in text.split('\0').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=')?;
            if key.is_empty() || key.len() > MAX_KEY || pairs.len() == MAX_PAIRS {
                return None;
            }
            pairs.push((key.to_string(), value.to_string()));
        }
        Some(Pairs(pairs))
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (key, value) in &self.0 {
            bytes.extend([key.as_bytes(), b"=", value.as_bytes(), b"\0"].concat());
        }
        bytes
    }

    pub fn say(&mut self, key: &str, value: impl Into<String>) {
        self.0.push((key.into(), value.into()));
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }
}

/// Binary values: `0x` and hexadecimal, or `0b` and base 64.
pub(crate) fn binary(text: &str) -> Option<Vec<u8>> {
    let (kind, digits) = text.split_at_checked(2)?;
    match kind {
        "0x" | "0X" => hexadecimal(digits),
        "0b" | "0B" => base64(digits),
        _ => None,
    }
}

fn hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = digits.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
    let (first, rest) = digits.split_at(digits.len() % 2);
    let pairs = rest.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]);
    Some(first.iter().copied().chain(pairs).collect())
}

fn base64(digits: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for c in digits.trim_end_matches('=').bytes() {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}

/// A binary value as text.
pub(crate) fn as_hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold("0x".to_string(), |text, byte| format!("{text}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_come_back() {
        let mut pairs = Pairs::default();
        pairs.say("TargetName", "iqn.x:y");
        pairs.say("Empty", "");
        assert_eq!(pairs.encode(), b"TargetName=iqn.x:y\0Empty=\0");
        assert_eq!(Pairs::decode(&pairs.encode()), Some(pairs.clone()));
        assert_eq!(Pairs::decode(b"A=b=c").unwrap().get("A"), Some("b=c"), "the end may be missing");
        for wrong in [&b"nothing\0"[..], b"=x\0", &[0xff, b'=', 0], &[b'k'; 70]] {
            assert_eq!(Pairs::decode(wrong), None);
        }
    }

    #[test]
    fn binary_values_have_two_forms() {
        assert_eq!(binary("0x0aFF"), Some(vec![10, 255]));
        assert_eq!(binary("0xabc"), Some(vec![10, 0xbc]));
        assert_eq!(binary("0bTWFu"), Some(b"Man".to_vec()));
        assert_eq!(binary("0bTWE="), Some(b"Ma".to_vec()));
        for wrong in ["", "0", "12", "0xg0", "0b*", "\u{e9}x"] {
            assert_eq!(binary(wrong), None, "{wrong}");
        }
        assert_eq!(binary(&as_hexadecimal(&[1, 0xfe])), Some(vec![1, 0xfe]));
    }
}
