use super::*;
use sim::Rng;

fn blocks(lba: u64, count: u64) -> Blocks {
    Blocks { lba, count }
}

#[test]
fn every_length_of_read_and_write_has_its_fields() {
    let read = |lba, count, fua| Ok(Command::Read { blocks: blocks(lba, count), fua });
    let write = |lba, count, fua| Ok(Command::Write { blocks: blocks(lba, count), fua, then: None });
    assert_eq!(parse(&[0x08, 0x1f, 2, 3, 0, 0]), read(0x1f0203, 256, false));
    assert_eq!(parse(&[0x0a, 0, 0, 3, 4, 0]), write(3, 4, false));
    assert_eq!(parse(&[0x28, 0x08, 1, 2, 3, 4, 0, 5, 6, 0]), read(0x01020304, 0x0506, true));
    assert_eq!(parse(&[0xaa, 0x02, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0]), write(0x01020304, 0x05060708, true));
    let long = [0x88, 0x10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0];
    assert_eq!(parse(&long), read(0x0102_0304_0506_0708, 0x090a0b0c, false));
}

#[test]
fn what_we_do_not_have_is_refused_at_its_place() {
    for (bytes, sense) in [
        (&[0x28, 0x20, 0, 0, 0, 0, 0, 0, 1, 0][..], Sense::field(1, Some(5))),
        (&[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0x04], Sense::field(9, Some(2))),
        (&[0x12, 0, 1, 0, 96, 0], Sense::field(2, Some(0))),
        (&[0x41, 0x10, 0, 0, 0, 0, 0, 0, 1, 0], Sense::field(1, Some(4))),
        (&[0x2f, 0x04, 0, 0, 0, 0, 0, 0, 1, 0], Sense::field(1, Some(2))),
        (&[0x15, 0x11, 0, 0, 12, 0], Sense::field(1, Some(0))),
        (&[0xc0; 16], Sense::INVALID_OPCODE),
        (&[0x28, 0, 0], Sense::INVALID_OPCODE),
        (&[], Sense::INVALID_OPCODE),
    ] {
        assert_eq!(parse(bytes), Err(sense), "{bytes:x?}");
    }
}

#[test]
fn the_data_of_a_command_is_known_before_it_comes() {
    for (bytes, intake) in [
        (&[0x2a, 0, 0, 0, 0, 9, 0, 0, 2, 0][..], (1024, 4608)),
        (&[0x2f, 0x02, 0, 0, 0, 9, 0, 0, 2, 0], (1024, 4608)),
        (&[0x2f, 0x06, 0, 0, 0, 9, 0, 0, 2, 0], (512, 0)),
        (&[0x2f, 0x00, 0, 0, 0, 9, 0, 0, 2, 0], (0, 0)),
        (&[0x41, 0, 0, 0, 0, 9, 0, 0, 2, 0], (512, 0)),
        (&[0x93, 0x01, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 2, 0, 0], (0, 0)),
        (&[0x89, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 3, 0, 0], (3072, 0)),
        (&[0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0], (24, 0)),
    ] {
        assert_eq!(parse(bytes).map(|c| c.intake()), Ok(intake), "{bytes:x?}");
    }
}

/// Whatever the bytes are, they are a command or refused.
#[test]
fn no_bytes_do_harm() {
    let mut random = Rng::new(7);
    for _ in 0..200_000 {
        let mut bytes: Vec<u8> = (0..random.below(18)).map(|_| random.below(256) as u8).collect();
        if let Some(first) = bytes.first_mut()
            && random.below(2) == 0
        {
            *first = [0x12, 0x1a, 0x28, 0x42, 0x5e, 0x5f, 0x83, 0x84, 0x88, 0x89, 0x93, 0x9e, 0xa3]
                [random.below(13) as usize];
        }
        if let Ok(command) = parse(&bytes) {
            let _ = (command.intake(), command.is_exact());
        }
    }
}
