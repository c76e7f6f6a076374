//! What both sides agree on: every key of the protocol, and how its value is found. Pure.

/// The data of one PDU to us.
pub(crate) const MAX_RECEIVE: usize = 256 << 10;
/// Data that one R2T asks for, and one sequence of data carries.
const MAX_BURST: usize = 1 << 20;
/// Data that come without being asked for.
const MAX_FIRST_BURST: usize = 64 << 10;
const MAX_R2T: u64 = 8;
/// The lengths a client may name.
const LENGTHS: std::ops::RangeInclusive<u64> = 512..=0xff_ffff;

/// As the protocol has it before anything is said, then as agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Params {
    pub header_digest: bool,
    pub data_digest: bool,
    pub initial_r2t: bool,
    pub immediate_data: bool,
    /// The data of one PDU to the client.
    pub max_send: usize,
    pub max_burst: usize,
    pub first_burst: usize,
    pub max_r2t: usize,
    pub time_to_wait: u16,
    pub time_to_retain: u16,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            header_digest: false,
            data_digest: false,
            initial_r2t: true,
            immediate_data: true,
            max_send: 8 << 10,
            max_burst: 256 << 10,
            first_burst: 64 << 10,
            max_r2t: 1,
            time_to_wait: 2,
            time_to_retain: 0,
        }
    }
}

/// What is said to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// Nothing: the key only declares.
    Noted,
    Value(String),
    /// The value makes no sense: the login cannot go on.
    Wrong,
}

const YES: &str = "Yes";
const NO: &str = "No";

impl Params {
    /// In the order in which they are negotiated: what is said first may be no more than a burst, of which the same text
    /// may say more further on.
    pub fn in_order(pairs: &[(String, String)]) -> impl Iterator<Item = &(String, String)> {
        let is_burst = |(key, _): &&(String, String)| key == "MaxBurstLength";
        pairs.iter().filter(is_burst).chain(pairs.iter().filter(move |pair| !is_burst(pair)))
    }

    /// Keys that may be negotiated in this phase; those of names and authentication are not here.
    pub fn negotiate(&mut self, key: &str, value: &str) -> Said {
        let said = self.agree(key, value);
        // Neither may be longer than both.
        self.first_burst = self.first_burst.min(self.max_burst);
        said
    }

    fn agree(&mut self, key: &str, value: &str) -> Said {
        match key {
            "HeaderDigest" => digest(value, &mut self.header_digest),
            "DataDigest" => digest(value, &mut self.data_digest),
            "MaxRecvDataSegmentLength" => match length(value) {
                Some(len) => {
                    self.max_send = len;
                    Said::Noted
                }
                None => Said::Wrong,
            },
            "InitialR2T" => either(value, false, &mut self.initial_r2t),
            "ImmediateData" => both(value, true, &mut self.immediate_data),
            "MaxBurstLength" => least(value, MAX_BURST, &mut self.max_burst),
            "FirstBurstLength" => least(value, MAX_FIRST_BURST.min(self.max_burst), &mut self.first_burst),
            "MaxOutstandingR2T" => number(value, 1..=65535, |n| {
                self.max_r2t = n.min(MAX_R2T) as usize;
                n.min(MAX_R2T)
            }),
            "DefaultTime2Wait" => number(value, 0..=3600, |n| {
                self.time_to_wait = n as u16;
                n
            }),
            "DefaultTime2Retain" => number(value, 0..=3600, |_| 0),
            "MaxConnections" => number(value, 1..=65535, |_| 1),
            "ErrorRecoveryLevel" => number(value, 0..=2, |_| 0),
            // Data come in order.
            "DataPDUInOrder" | "DataSequenceInOrder" => either(value, true, &mut true),
            "OFMarker" | "IFMarker" => both(value, false, &mut false),
            "OFMarkInt" | "IFMarkInt" => Said::Value("Irrelevant".into()),
            "TaskReporting" => choose(value, &["RFC3720"]),
            "iSCSIProtocolLevel" => number(value, 0..=31, |n| n.min(1)),
            "InitiatorAlias" | "X#NodeArchitecture" => Said::Noted,
            _ => Said::Value("NotUnderstood".into()),
        }
    }
}

fn boolean(value: &str) -> Option<bool> {
    match value {
        YES => Some(true),
        NO => Some(false),
        _ => None,
    }
}

fn yes_or_no(value: bool) -> Said {
    Said::Value(if value { YES } else { NO }.into())
}

fn either(value: &str, ours: bool, agreed: &mut bool) -> Said {
    let Some(theirs) = boolean(value) else { return Said::Wrong };
    *agreed = theirs || ours;
    yes_or_no(*agreed)
}

fn both(value: &str, ours: bool, agreed: &mut bool) -> Said {
    let Some(theirs) = boolean(value) else { return Said::Wrong };
    *agreed = theirs && ours;
    yes_or_no(*agreed)
}

/// A numerical value (RFC 7143, 6.1): decimal, or hexadecimal after `0x`.
pub(crate) fn parse(value: &str) -> Option<u64> {
    match value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    }
}

fn length(value: &str) -> Option<usize> {
    parse(value).filter(|n| LENGTHS.contains(n)).map(|n| n as usize)
}

fn least(value: &str, ours: usize, agreed: &mut usize) -> Said {
    let Some(theirs) = length(value) else { return Said::Wrong };
    *agreed = theirs.min(ours);
    Said::Value(agreed.to_string())
}

fn number(value: &str, range: std::ops::RangeInclusive<u64>, agree: impl FnOnce(u64) -> u64) -> Said {
    match parse(value).filter(|n| range.contains(n)) {
        Some(n) => Said::Value(agree(n).to_string()),
        None => Said::Wrong,
    }
}

/// The first of the client's list that we have.
fn choose(value: &str, ours: &[&str]) -> Said {
    let chosen = value.split(',').find(|v| ours.contains(v));
    Said::Value(chosen.unwrap_or("Reject").into())
}

fn digest(value: &str, agreed: &mut bool) -> Said {
    let said = choose(value, &["CRC32C", "None"]);
    *agreed = said == Said::Value("CRC32C".into());
    if said == Said::Value("Reject".into()) { Said::Wrong } else { said }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_agreed_on_by_its_own_rule() {
        let mut params = Params::default();
        for (key, value, said) in [
            ("HeaderDigest", "CRC32C,None", "CRC32C"),
            ("DataDigest", "None", "None"),
            ("InitialR2T", "No", "No"),
            ("ImmediateData", "Yes", "Yes"),
            ("MaxBurstLength", "16776192", "1048576"),
            ("FirstBurstLength", "0x8000", "32768"),
            ("MaxOutstandingR2T", "1", "1"),
            ("MaxConnections", "8", "1"),
            ("ErrorRecoveryLevel", "2", "0"),
            ("DataPDUInOrder", "No", "Yes"),
            ("DataSequenceInOrder", "Yes", "Yes"),
            ("DefaultTime2Wait", "5", "5"),
            ("DefaultTime2Retain", "20", "0"),
            ("OFMarker", "Yes", "No"),
            ("TaskReporting", "FastAbort,RFC3720", "RFC3720"),
            ("X-com.example.key", "1", "NotUnderstood"),
        ] {
            assert_eq!(params.negotiate(key, value), Said::Value(said.into()), "{key}");
        }
        assert_eq!(params.negotiate("MaxRecvDataSegmentLength", "262144"), Said::Noted);
        assert_eq!((params.max_send, params.first_burst, params.initial_r2t), (262144, 32768, false));
        params.negotiate("MaxBurstLength", "4096");
        assert_eq!(params.first_burst, 4096, "what comes first is a part of a burst");
    }

    /// It was told 65536, and held to 16384.
    #[test]
    fn what_comes_first_is_answered_as_it_is_held_to() {
        let pair = |key: &str, value: &str| (key.to_string(), value.to_string());
        let said = [pair("FirstBurstLength", "65536"), pair("MaxBurstLength", "16384")];
        let mut params = Params::default();
        let answers: Vec<Said> =
            Params::in_order(&said).map(|(key, value)| params.negotiate(key, value)).collect();
        assert_eq!(answers, [Said::Value("16384".into()), Said::Value("16384".into())]);
        assert_eq!((params.first_burst, params.max_burst), (16384, 16384));
    }

    #[test]
    fn values_that_make_no_sense_end_the_login() {
        for (key, value) in [
            ("HeaderDigest", "MD5"),
            ("InitialR2T", "maybe"),
            ("MaxBurstLength", "0"),
            ("MaxBurstLength", "99999999999999999999"),
            ("MaxRecvDataSegmentLength", "-1"),
            ("MaxConnections", "0"),
            ("ErrorRecoveryLevel", ""),
        ] {
            assert_eq!(Params::default().negotiate(key, value), Said::Wrong, "{key}={value}");
        }
    }
}
