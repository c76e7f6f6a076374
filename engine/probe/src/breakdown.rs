//! What a statistic can be broken down and filtered by.

use crate::histogram::Scale;
use crate::names::table;
use std::fmt;

table! {
    /// By what a statistic is broken down or filtered; the description is its title on a page.
    Breakdown {
        Op "op": "type of operation",
        Command "command": "command",
        Class "class": "class of the queue",
        HitMiss "hit/miss": "hit or miss",
        Component "component": "component",
        Stage "stage": "stage",
        Type "type": "type of object",
        Mode "mode": "mode",
        Device "device": "device",
        Direction "direction": "direction",
        Application "application": "application",
        Cpu "cpu": "CPU",
        Client "client": "client",
        Target "target": "target",
        Lun "lun": "LUN",
        Share "share": "share",
        Project "project": "project",
        Dataset "dataset": "dataset",
        Pool "pool": "pool",
        Disk "disk": "disk",
        File "file": "file name",
        Size "size": "size",
        Latency "latency": "latency",
        Offset "offset": "offset",
        Writers "writers": "writers",
        Utilization "utilization": "percent utilization",
    }
}

/// What numbers of a range are, as queries write and read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// `512K`.
    Bytes,
    /// In nanoseconds: `10ms`.
    Time,
    /// `95`.
    Number,
}

/// Where the value of a breakdown stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// In each event: what was done.
    Op,
    /// In each event: the one other word that events of its family have.
    Kind,
    /// In the labels of the place where events are told, at this index.
    Label(usize),
    File,
    Bytes,
    Latency,
    Offset,
    Writers,
    /// In no event: only readings have it.
    Asked,
}

impl Breakdown {
    /// How many breakdowns are labels of a place.
    pub(crate) const LABELS: usize = 8;

    pub(crate) fn field(self) -> Field {
        match self {
            Breakdown::Op => Field::Op,
            Breakdown::Command
            | Breakdown::Class
            | Breakdown::HitMiss
            | Breakdown::Component
            | Breakdown::Stage
            | Breakdown::Type => Field::Kind,
            Breakdown::Client => Field::Label(0),
            Breakdown::Target => Field::Label(1),
            Breakdown::Lun => Field::Label(2),
            Breakdown::Share => Field::Label(3),
            Breakdown::Project => Field::Label(4),
            Breakdown::Dataset => Field::Label(5),
            Breakdown::Pool => Field::Label(6),
            Breakdown::Disk => Field::Label(7),
            Breakdown::File => Field::File,
            Breakdown::Size => Field::Bytes,
            Breakdown::Latency => Field::Latency,
            Breakdown::Offset => Field::Offset,
            Breakdown::Writers => Field::Writers,
            Breakdown::Mode
            | Breakdown::Device
            | Breakdown::Direction
            | Breakdown::Application
            | Breakdown::Cpu
            | Breakdown::Utilization => Field::Asked,
        }
    }

    /// Its values are numbers in buckets, drawn as a heat map; those of the others are words.
    pub fn is_range(self) -> bool {
        self.quantity().is_some()
    }

    /// What the numbers of a range are; `None` for a breakdown by words.
    pub fn quantity(self) -> Option<Quantity> {
        match self {
            Breakdown::Size | Breakdown::Offset => Some(Quantity::Bytes),
            Breakdown::Latency => Some(Quantity::Time),
            Breakdown::Writers | Breakdown::Utilization => Some(Quantity::Number),
            _ => None,
        }
    }

    /// The buckets of a range whose buckets are always the same; an offset's grow with the largest that was seen.
    pub(crate) fn scale(self) -> Option<Scale> {
        match self {
            Breakdown::Size => Some(Scale::TRANSFER),
            Breakdown::Latency => Some(Scale::LATENCY),
            Breakdown::Writers => Some(Scale::NUMBER),
            _ => None,
        }
    }

    pub fn named(name: &str) -> Option<Breakdown> {
        Breakdown::ALL.iter().copied().find(|b| b.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_label_has_an_index_of_its_own() {
        let labels = Breakdown::ALL.iter().filter_map(|b| match b.field() {
            Field::Label(index) => Some(index),
            _ => None,
        });
        assert_eq!(labels.collect::<BTreeSet<_>>(), (0..Breakdown::LABELS).collect());
    }
}
