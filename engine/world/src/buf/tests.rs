use super::*;

#[test]
fn buffers_of_every_size_are_aligned_initialised_and_as_long_as_asked() {
    for len in [0, 1, 511, 512, 513, 4095, 4096, 4097, 6144, 6145, 100_000, 1 << 20, (16 << 20) + 1] {
        let mut buf = IoBuf::zeroed(len);
        assert_eq!(buf.len(), len);
        assert!(buf.iter().all(|&b| b == 0));
        let align = if len > 2048 { ALIGN } else { 512 };
        assert!(len == 0 || (buf.as_ptr() as usize).is_multiple_of(align), "{len}");
        assert!(
            buf.capacity() >= len
                && buf.capacity() <= (len * 3 / 2).max(len.next_multiple_of(ALIGN)).max(512)
        );
        buf.fill(7);
        assert!(buf.freeze().iter().all(|&b| b == 7));
    }
}

#[test]
fn zeroed_is_zero_even_in_used_memory() {
    for _ in 0..100 {
        let mut buf = IoBuf::zeroed(5000);
        assert!(buf.iter().all(|&b| b == 0));
        buf.fill(0xff);
    }
}

#[test]
fn a_buffer_alone_is_changed_in_place_and_a_shared_one_is_copied() {
    let buf = Buf::copy_from(b"hello, world");
    let place = buf.as_ptr();
    let other = buf.clone();
    let mut copy = buf.into_mut();
    assert_ne!(copy.as_ptr(), place);
    copy[0] = b'j';
    assert_eq!(&other[..], b"hello, world");
    let head = other.slice(0..5);
    drop(other);
    let mut same = head.into_mut();
    assert_eq!((same.as_ptr(), &same[..]), (place, &b"hello"[..]));
    same[0] = b'j';
    assert_eq!(&same.freeze().slice(1..5).into_mut()[..], b"ello");
}

#[test]
fn a_buffer_is_changed_where_it_is_only_while_nobody_else_holds_it() {
    let mut buf = Buf::copy_from(b"hello, world");
    let place = buf.as_ptr();
    buf.make_mut()[0] = b'j';
    assert_eq!((buf.as_ptr(), &buf[..]), (place, &b"jello, world"[..]));
    let mut tail = buf.slice(7..12);
    tail.make_mut()[0] = b'W';
    assert_eq!((&tail[..], &buf[..]), (&b"World"[..], &b"jello, world"[..]));
    assert_eq!(buf.as_ptr(), place);
}

#[test]
fn a_buffer_grows_where_it_is_while_there_is_room_and_nobody_else_holds_it() {
    let mut used = IoBuf::scratch(4096);
    used.fill(0xff);
    drop(used);
    let mut buf = Buf::copy_from(&[7; 2500]);
    let place = buf.as_ptr();
    for len in [2501, 3000, 4096] {
        buf.resize(len);
        assert_eq!((buf.as_ptr(), buf.len()), (place, len));
        assert!(buf[..2500].iter().all(|b| *b == 7) && buf[2500..].iter().all(|b| *b == 0));
    }
    buf.resize(4097);
    assert!(buf.as_ptr() != place && buf[..2500].iter().all(|b| *b == 7));
    let held = buf.clone();
    buf.resize(5000);
    assert!(buf.as_ptr() != held.as_ptr() && held.len() == 4097 && buf[4096..].iter().all(|b| *b == 0));
    // What was cut off does not come back.
    let mut cut = Buf::copy_from(b"hello, world").slice(0..5);
    cut.resize(12);
    assert_eq!(&cut[..], b"hello\0\0\0\0\0\0\0");
    let mut tail = Buf::copy_from(b"hello, world").slice(7..12);
    tail.resize(7);
    assert_eq!(&tail[..], b"world\0\0");
    tail.resize(2);
    assert_eq!(&tail[..], b"wo");
}

#[test]
fn what_is_lent_is_the_same_bytes_and_is_copied_before_it_is_changed() {
    let mut buf = Buf::copy_from(b"hello, world");
    let place = buf.as_ptr();
    let mut lent = buf.slice(0..5).lend();
    assert_eq!((&lent[..], lent.as_ptr()), (&b"hello"[..], place));
    buf.make_mut()[0] = b'j';
    assert!(buf.as_ptr() != place && &lent[..] == b"hello");
    // Its memory lives on, and is nothing that could be written to by one of those that it is lent to.
    let mut again = lent.lend();
    lent.make_mut()[0] = b'c';
    assert_eq!((&lent[..], &again[..], again.as_ptr()), (&b"cello"[..], &b"hello"[..], place));
    assert_ne!(again.clone().into_mut().as_ptr(), place);
    again.resize(7);
    assert_eq!((&again[..], again.as_ptr() != place), (&b"hello\0\0"[..], true));
    let lent = buf.lend();
    drop(lent);
    let place = buf.as_ptr();
    buf.make_mut()[0] = b'm';
    assert_eq!((&buf[..5], buf.as_ptr()), (&b"mello"[..], place));
}

#[test]
#[should_panic(expected = "within its buffer")]
fn a_slice_past_the_end_is_refused() {
    let _ = Buf::zeroed(10).slice(0..4).slice(2..5);
}
