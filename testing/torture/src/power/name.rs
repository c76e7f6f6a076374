//! The name of a case, from which all of it follows.

use super::setup::Setup;
use super::workload::Workload;
use std::fmt;
use std::str::FromStr;

/// `SETUP:WORKLOAD`, or with one spot of it `SETUP:WORKLOAD:SPOT`.
///
/// A spot is `ROUND.PICTURE.FATE`, with `.lost` when the log devices are gone, and with `.PICTURE` more when the power
/// was cut again during the recovery: `0.f12.1.w3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    pub setup: Setup,
    pub workload: Workload,
    pub spot: Option<String>,
}

impl Case {
    /// All of a workload.
    pub fn of(setup: Setup, workload: Workload) -> Case {
        Case { setup, workload, spot: None }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.setup, self.workload)?;
        match &self.spot {
            Some(spot) => write!(f, ":{spot}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Case, String> {
        let mut words = text.splitn(3, ':');
        let (setup, workload) = (words.next().unwrap_or_default(), words.next());
        let workload = workload.ok_or_else(|| format!("'{text}' is no case: SETUP:WORKLOAD[:SPOT]"))?;
        Ok(Case { setup: setup.parse()?, workload: workload.parse()?, spot: words.next().map(String::from) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_its_name() {
        for name in ["mirror+slog/latency/16K/9@clone:SfU:0.f12.1.w3", "raidz1/throughput/4K/12:77"] {
            assert_eq!(name.parse::<Case>().unwrap().to_string(), name);
        }
        assert!("mirror".parse::<Case>().is_err());
    }
}
