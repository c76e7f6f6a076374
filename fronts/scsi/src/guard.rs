//! Which commands a reservation keeps out. Pure.

use crate::cdb::Command;
use crate::registrations::{Registrant, Registrations};

/// What a command does to others, as far as reservations care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Touch {
    /// Allowed to everybody, always.
    Nothing,
    /// Reads the medium.
    Read,
    /// Changes the medium or the unit.
    Change,
}

fn touch(command: &Command) -> Touch {
    match command {
        Command::TestUnitReady
        | Command::RequestSense { .. }
        | Command::Inquiry { .. }
        | Command::ReportLuns { .. }
        | Command::ReadCapacity10
        | Command::ReadCapacity16 { .. }
        | Command::ReportOpcodes { .. }
        | Command::ReportTaskFunctions { .. }
        | Command::ReportPortGroups { .. }
        | Command::GetLbaStatus { .. }
        | Command::CopyParameters { .. }
        // These have rules of their own.
        | Command::PersistentIn { .. }
        | Command::PersistentOut { .. }
        | Command::Reserve { .. }
        | Command::Release => Touch::Nothing,
        Command::StartStop { start_only } if *start_only => Touch::Nothing,
        Command::PreventAllow { prevent: false } => Touch::Nothing,
        Command::Read { .. }
        | Command::Verify { .. }
        | Command::Prefetch { .. }
        | Command::PopulateToken { .. }
        | Command::CopyStatus { .. }
        | Command::TokenInformation { .. }
        | Command::AbortCopy { .. } => Touch::Read,
        Command::Write { .. }
        | Command::Synchronize { .. }
        | Command::Unmap { .. }
        | Command::WriteSame { .. }
        | Command::CompareAndWrite { .. }
        | Command::OrWrite { .. }
        | Command::ExtendedCopy { .. }
        | Command::WriteUsingToken { .. }
        | Command::ModeSense { .. }
        | Command::ModeSelect { .. }
        | Command::StartStop { .. }
        | Command::PreventAllow { .. } => Touch::Change,
    }
}

/// Whether the persistent reservation keeps this command of `registrant` out.
pub(crate) fn conflicts(registrations: &Registrations, registrant: &Registrant, command: &Command) -> bool {
    let Some(reservation) = &registrations.reservation else { return false };
    if registrations.holds(registrant)
        || (reservation.kind.is_shared() && registrations.is_registered(registrant))
    {
        return false;
    }
    match touch(command) {
        Touch::Nothing => false,
        Touch::Read => reservation.kind.is_exclusive(),
        Touch::Change => true,
    }
}

/// Whether the old kind of reservation (RESERVE), which another nexus holds, keeps this command out.
pub(crate) fn conflicts_with_old(command: &Command) -> bool {
    !matches!(
        command,
        Command::Inquiry { .. }
            | Command::RequestSense { .. }
            | Command::ReportLuns { .. }
            | Command::Release
            | Command::PreventAllow { prevent: false }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cdb::Blocks;
    use crate::registrations::{Kind, Register};

    #[test]
    fn each_type_keeps_out_whom_it_should() {
        let named = |name: &str| Registrant { initiator: name.into(), port: 1 };
        let blocks = Blocks { lba: 0, count: 1 };
        let read = Command::Read { blocks, fua: false };
        let write = Command::Write { blocks, fua: false, then: None };
        for (kind, registrant, stranger) in [
            // Who may (read, write).
            (Kind::WriteExclusive, (true, false), (true, false)),
            (Kind::ExclusiveAccess, (false, false), (false, false)),
            (Kind::WriteExclusiveRegistrants, (true, true), (true, false)),
            (Kind::ExclusiveAccessRegistrants, (true, true), (false, false)),
            (Kind::WriteExclusiveAll, (true, true), (true, false)),
            (Kind::ExclusiveAccessAll, (true, true), (false, false)),
        ] {
            let mut registrations = Registrations::default();
            for (name, new) in [("holder", 1), ("registrant", 2)] {
                let ask = Register { old: None, new, survives: false, ports: vec![1], others: Vec::new() };
                registrations.register(&named(name), &ask).unwrap();
            }
            registrations.reserve(&named("holder"), 1, kind).unwrap();
            for (name, may) in [("holder", (true, true)), ("registrant", registrant), ("stranger", stranger)]
            {
                let found = (
                    !conflicts(&registrations, &named(name), &read),
                    !conflicts(&registrations, &named(name), &write),
                );
                assert_eq!(found, may, "{kind:?} {name}");
                assert!(!conflicts(&registrations, &named(name), &Command::TestUnitReady));
            }
        }
    }
}
