//! One request: do it, or refuse it. Pure.

use crate::errno::Errno;
use crate::negotiation::Terms;
use crate::wire::MAX_PAYLOAD;
use crate::wire::command::{DF, FAST_ZERO, FUA, NO_HOLE, REQ_ONE};
use crate::wire::request::{Command, Request};

/// What a volume is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// `whole`: in one chunk, holes as zeros.
    Read {
        offset: u64,
        len: u32,
        whole: bool,
    },
    Write {
        offset: u64,
        len: u32,
        fua: bool,
    },
    Zero {
        offset: u64,
        len: u32,
        may_be_hole: bool,
        fast: bool,
        fua: bool,
    },
    Trim {
        offset: u64,
        len: u32,
        fua: bool,
    },
    Prefetch {
        offset: u64,
        len: u32,
    },
    Status {
        offset: u64,
        len: u32,
        one: bool,
    },
    Flush,
    /// Nothing to do and nothing to wait for: a range of no bytes.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    Do(Operation),
    Refuse(Errno, &'static str),
    /// The client leaves.
    Leave,
    /// Going on would make us read or hold more than anybody may ask for.
    HangUp(&'static str),
}

/// The volume as far as it decides what is allowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub size: u64,
    pub read_only: bool,
}

pub(crate) fn plan(request: &Request, limits: Limits, terms: Terms) -> Plan {
    if request.command == Command::Disconnect {
        return Plan::Leave;
    }
    if request.payload() > MAX_PAYLOAD {
        return Plan::HangUp("a write is longer than the longest payload");
    }
    match check(request, limits, terms) {
        Ok(()) => Plan::Do(operation(request)),
        Err((errno, why)) => Plan::Refuse(errno, why),
    }
}

type Refusal = (Errno, &'static str);

fn check(request: &Request, limits: Limits, terms: Terms) -> Result<(), Refusal> {
    let Some(allowed) = allowed_flags(request.command, terms) else {
        return Err((Errno::Invalid, "the command is not known, or was not negotiated"));
    };
    if request.flags & !allowed != 0 {
        return Err((Errno::Invalid, "a flag does not belong to the command"));
    }
    if limits.read_only && writes(request.command) {
        return Err((Errno::Perm, "the export is read-only"));
    }
    check_range(request, limits.size)
}

/// The flags that a command may carry, or `None` when it may not be sent at all. FUA is allowed everywhere, because
/// some clients set it everywhere; it means something only where something is written.
fn allowed_flags(command: Command, terms: Terms) -> Option<u16> {
    match command {
        Command::Read => Some(if terms.structured { FUA | DF } else { FUA }),
        Command::Write | Command::Flush | Command::Trim | Command::Cache => Some(FUA),
        Command::WriteZeroes => Some(FUA | NO_HOLE | FAST_ZERO),
        Command::BlockStatus => terms.contexts.then_some(FUA | REQ_ONE),
        Command::Disconnect => Some(u16::MAX),
        Command::Unknown(_) => None,
    }
}

fn writes(command: Command) -> bool {
    matches!(command, Command::Write | Command::WriteZeroes | Command::Trim)
}

fn check_range(request: &Request, size: u64) -> Result<(), Refusal> {
    let Request { command, offset, len, .. } = *request;
    if command == Command::Flush {
        let empty = offset == 0 && len == 0;
        return if empty { Ok(()) } else { Err((Errno::Invalid, "a flush has no range")) };
    }
    if offset.checked_add(u64::from(len)).is_none_or(|end| end > size) {
        // The protocol names the error by the direction of the data.
        let errno = match command {
            Command::Write | Command::WriteZeroes => Errno::NoSpace,
            _ => Errno::Invalid,
        };
        return Err((errno, "the range reaches past the end of the export"));
    }
    match command {
        Command::Read if len > MAX_PAYLOAD => {
            Err((Errno::Overflow, "a read is longer than the longest payload"))
        }
        Command::BlockStatus if len == 0 => Err((Errno::Invalid, "block status of an empty range")),
        _ => Ok(()),
    }
}

fn operation(request: &Request) -> Operation {
    let Request { flags, command, offset, len, .. } = *request;
    let is_set = |flag| flags & flag != 0;
    let fua = is_set(FUA);
    match command {
        Command::Flush => Operation::Flush,
        Command::Read => Operation::Read { offset, len, whole: is_set(DF) },
        _ if len == 0 => Operation::Nothing,
        Command::Write => Operation::Write { offset, len, fua },
        Command::Trim => Operation::Trim { offset, len, fua },
        Command::Cache => Operation::Prefetch { offset, len },
        Command::BlockStatus => Operation::Status { offset, len, one: is_set(REQ_ONE) },
        Command::WriteZeroes => {
            Operation::Zero { offset, len, may_be_hole: !is_set(NO_HOLE), fast: is_set(FAST_ZERO), fua }
        }
        Command::Disconnect | Command::Unknown(_) => Operation::Nothing,
    }
}

#[cfg(test)]
mod tests;
