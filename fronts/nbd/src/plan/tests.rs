use super::*;

const SIZE: u64 = 1 << 30;
const WRITABLE: Limits = Limits { size: SIZE, read_only: false };
const PLAIN: Terms = Terms { structured: false, contexts: false };
const FULL: Terms = Terms { structured: true, contexts: true };

fn request(command: Command, flags: u16, offset: u64, len: u32) -> Request {
    Request { flags, command, cookie: 7, offset, len }
}

fn refusal(plan: Plan) -> Option<Errno> {
    match plan {
        Plan::Refuse(errno, _) => Some(errno),
        _ => None,
    }
}

#[test]
fn well_formed_requests_become_operations() {
    use Command::*;
    use Operation as Op;
    let end = SIZE - 4096;
    for (command, flags, offset, len, operation) in [
        (Read, 0, 0, 4096, Op::Read { offset: 0, len: 4096, whole: false }),
        (Read, DF, end, 4096, Op::Read { offset: end, len: 4096, whole: true }),
        (Read, FUA, 5, 1, Op::Read { offset: 5, len: 1, whole: false }),
        (Write, 0, end, 4096, Op::Write { offset: end, len: 4096, fua: false }),
        (Write, FUA, 1, 2, Op::Write { offset: 1, len: 2, fua: true }),
        (Flush, 0, 0, 0, Op::Flush),
        (Flush, FUA, 0, 0, Op::Flush),
        (Trim, 0, 0, 1 << 30, Op::Trim { offset: 0, len: 1 << 30, fua: false }),
        (Cache, 0, 0, 1 << 30, Op::Prefetch { offset: 0, len: 1 << 30 }),
        (BlockStatus, REQ_ONE, 0, 512, Op::Status { offset: 0, len: 512, one: true }),
        (Write, 0, SIZE, 0, Op::Nothing),
        (WriteZeroes, 0, 9, 0, Op::Nothing),
    ] {
        let request = request(command, flags, offset, len);
        assert_eq!(plan(&request, WRITABLE, FULL), Plan::Do(operation), "{request:?}");
    }
    let zero = |flags| plan(&request(WriteZeroes, flags, 0, 8), WRITABLE, PLAIN);
    let made = |may_be_hole, fast, fua| Plan::Do(Op::Zero { offset: 0, len: 8, may_be_hole, fast, fua });
    assert_eq!(zero(0), made(true, false, false));
    assert_eq!(zero(NO_HOLE | FUA), made(false, false, true));
    assert_eq!(zero(FAST_ZERO), made(true, true, false));
}

#[test]
fn ranges_past_the_end_are_refused_by_the_direction_of_the_data() {
    use Command::*;
    for command in [Read, Write, WriteZeroes, Trim, Cache, BlockStatus] {
        for (offset, len) in [(SIZE, 1), (SIZE - 1, 2), (u64::MAX, 1), (u64::MAX - 3, 4), (1, 1 << 30)] {
            if command == Write && len > MAX_PAYLOAD {
                continue;
            }
            let expected =
                if matches!(command, Write | WriteZeroes) { Errno::NoSpace } else { Errno::Invalid };
            let request = request(command, 0, offset, len);
            assert_eq!(refusal(plan(&request, WRITABLE, FULL)), Some(expected), "{request:?}");
        }
    }
}

#[test]
fn a_flag_is_accepted_only_with_its_command() {
    use Command::*;
    let allowed = [
        (Read, FUA | DF),
        (Write, FUA),
        (Flush, FUA),
        (Trim, FUA),
        (Cache, FUA),
        (WriteZeroes, FUA | NO_HOLE | FAST_ZERO),
        (BlockStatus, FUA | REQ_ONE),
    ];
    for (command, allowed) in allowed {
        let len = if command == Flush { 0 } else { 512 };
        for bit in 0..16 {
            let request = request(command, 1 << bit, 0, len);
            let expected = (allowed & (1 << bit) == 0).then_some(Errno::Invalid);
            assert_eq!(refusal(plan(&request, WRITABLE, FULL)), expected, "{request:?}");
        }
    }
}

#[test]
fn what_was_not_negotiated_is_refused() {
    use Command::*;
    for (command, flags) in [(BlockStatus, 0), (Read, DF), (Unknown(8), 0), (Unknown(999), 0)] {
        let request = request(command, flags, 0, 512);
        assert_eq!(refusal(plan(&request, WRITABLE, PLAIN)), Some(Errno::Invalid), "{request:?}");
    }
}

#[test]
fn a_read_only_export_refuses_only_what_changes_it() {
    use Command::*;
    let limits = Limits { read_only: true, ..WRITABLE };
    for command in [Read, Flush, Cache, BlockStatus, Write, WriteZeroes, Trim] {
        let len = if command == Flush { 0 } else { 512 };
        let expected = matches!(command, Write | WriteZeroes | Trim).then_some(Errno::Perm);
        assert_eq!(refusal(plan(&request(command, 0, 0, len), limits, FULL)), expected, "{command:?}");
    }
}

#[test]
fn oversized_payloads_end_the_connection_and_oversized_reads_do_not() {
    let over = MAX_PAYLOAD + 1;
    assert!(matches!(plan(&request(Command::Write, 0, 0, over), WRITABLE, FULL), Plan::HangUp(_)));
    let read = plan(&request(Command::Read, 0, 0, over), WRITABLE, FULL);
    assert_eq!(refusal(read), Some(Errno::Overflow));
    for command in [Command::Read, Command::Write] {
        let largest = plan(&request(command, 0, 0, MAX_PAYLOAD), WRITABLE, FULL);
        assert!(matches!(largest, Plan::Do(_)), "{command:?}");
    }
}

#[test]
fn odd_requests_are_refused_and_a_farewell_is_always_understood() {
    for (offset, len) in [(1, 0), (0, 1)] {
        let flush = plan(&request(Command::Flush, 0, offset, len), WRITABLE, FULL);
        assert_eq!(refusal(flush), Some(Errno::Invalid));
    }
    let empty = plan(&request(Command::BlockStatus, 0, 0, 0), WRITABLE, FULL);
    assert_eq!(refusal(empty), Some(Errno::Invalid));
    assert_eq!(plan(&request(Command::Disconnect, 0xffff, 9, 9), WRITABLE, PLAIN), Plan::Leave);
}
