use super::*;
use crate::header::tests::place;
use crate::request::Op;
use crate::write::Writer;

fn requests(random: &mut sim::Rng, count: u64) -> Vec<Request> {
    let one = |random: &mut sim::Rng| Request {
        at: random.below(1 << 34),
        latency: random.below(1 << 24),
        place: random.below(2) as u32,
        op: Op::ALL[random.below(5) as usize],
        object: 0,
        offset: random.below(1 << 30),
        bytes: random.below(1 << 20),
        durable: random.below(2) == 0,
        failed: false,
    };
    (0..count).map(|_| one(random)).collect()
}

/// A whole trace, and where its pieces end.
fn trace(random: &mut sim::Rng) -> (Vec<u8>, Vec<usize>, Vec<Request>) {
    let header = Header { statistic: "nbd.ops".into(), cache: 1 << 30, ..Header::default() };
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    let (mut ends, mut all) = (vec![writer.written() as usize], Vec::new());
    for client in ["a", "b"] {
        writer.place(&Place { client: client.into(), ..place() }).unwrap();
        ends.push(writer.written() as usize);
    }
    for count in [3, 100, 40] {
        let mut some = requests(random, count);
        writer.requests_of(&mut some, 1).unwrap();
        ends.push(writer.written() as usize);
        all.extend(some);
    }
    (writer.end(1 << 34).unwrap(), ends, all)
}

fn read(bytes: &[u8]) -> Result<Contents> {
    Contents::read(bytes, "f")
}

#[test]
fn a_trace_is_read_as_it_was_written() {
    let (bytes, _, mut all) = trace(&mut sim::Rng::new(1));
    all.sort_by_key(|request| (request.at, request.place, request.offset));
    let contents = read(&bytes).unwrap();
    assert_eq!(contents.requests, all);
    assert_eq!(contents.end, Some(End { requests: 143, dropped: 3, length: 1 << 34 }));
    assert_eq!((contents.places.len(), contents.places[1].client.as_str()), (2, "b"));
}

/// Bytes of the file for each request, of a busy volume and in the worst case.
#[test]
fn a_request_takes_few_bytes_however_odd_it_is() {
    let random = &mut sim::Rng::new(7);
    let mut likely = requests(random, 20_000);
    let mut at = 0;
    for request in &mut likely {
        // Ten thousand a second, 16K at random on a terabyte.
        at += random.below(200_000);
        (request.at, request.bytes, request.place) = (at, 16 << 10, 0);
        request.offset = random.below(1 << 26) << 14;
    }
    let mut odd = requests(random, 20_000);
    for (number, request) in odd.iter_mut().enumerate() {
        let far = if number % 2 == 0 { 0 } else { 1 << 62 };
        (request.at, request.latency, request.object) = (far, u64::MAX, u64::MAX);
        (request.offset, request.bytes, request.place) = (far, 1 << 62, 4095);
    }
    for (mut some, most) in [(likely, 20), (odd, 64)] {
        let mut writer = Writer::new(Vec::new(), &Header::default()).unwrap();
        let before = writer.written();
        writer.requests_of(&mut some, 0).unwrap();
        let each = (writer.written() - before) as f64 / some.len() as f64;
        assert!(each < f64::from(most), "{each:.1} bytes a request");
        println!("{each:.1} bytes a request");
    }
}

#[test]
fn a_trace_that_was_cut_is_read_to_its_last_whole_piece() {
    let (bytes, ends, _) = trace(&mut sim::Rng::new(2));
    for len in 0..bytes.len() {
        let whole = ends.iter().filter(|end| **end <= len).count();
        match read(&bytes[..len]) {
            Ok(contents) => {
                let expected = [0, 0, 0, 3, 103, 143][whole - 1];
                assert_eq!((contents.requests.len(), contents.end), (expected, None), "{len}");
            }
            Err(e) => assert!(whole == 0, "{len}: {e}"),
        }
    }
    let e = read(&bytes[..ends[0] - 1]).unwrap_err();
    assert!(e.to_string().contains("cut within its header"), "{e}");
}

#[test]
fn a_byte_that_changed_is_told_with_its_piece() {
    let (bytes, ends, _) = trace(&mut sim::Rng::new(3));
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 0x10;
        // A length that grew may reach beyond the end: then the trace seems to be cut there.
        let read = read(&bad);
        let is_length = ends.iter().chain([&8]).any(|begin| (begin + 1..begin + 5).contains(&at));
        match read {
            Ok(contents) => assert!(is_length && contents.end.is_none(), "{at}"),
            Err(e) => assert!(e.to_string().starts_with("f: "), "{at}: {e}"),
        }
    }
    let mut bad = bytes.clone();
    bad[ends[3] + 9] ^= 1;
    let e = read(&bad).unwrap_err().to_string();
    assert_eq!(e, format!("f: piece 4 at byte {}: 'checksum' is wrong: it is damaged", ends[3]));
}

/// Whatever is in a file, and with checksums that are right: no panic, and no more memory than the file has.
#[test]
fn mutated_traces_are_read_or_refused() {
    let mut random = sim::Rng::new(4);
    let (bytes, ends, _) = trace(&mut random);
    let (mut refused, mut good) = (0, 0);
    for _ in 0..4000 {
        let mut bad = bytes.clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(bad.len() as u64) as usize;
            bad[at] = random.next_u64() as u8;
        }
        // Half of them with the checksum of the changed piece made right again.
        if random.below(2) == 0 {
            let mut begin = 8;
            for end in ends.iter().copied().chain([bad.len()]) {
                let body = &bad[begin..end - TAIL];
                let sum = checksum(&body[..HEAD], &body[HEAD..]).to_le_bytes();
                bad[end - TAIL..end].copy_from_slice(&sum);
                begin = end;
            }
        }
        match read(&bad) {
            Ok(contents) => {
                good += 1;
                assert!(contents.requests.len() <= bad.len() / 7);
                assert!(contents.requests.iter().all(|r| (r.place as usize) < contents.places.len()));
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 1000 && good > 100, "{refused} {good}");
    // A length that a file does not have is not taken for one.
    for len in [PAYLOAD_MAX as u32, u32::MAX] {
        let mut bad = bytes[..ends[0]].to_vec();
        bad.push(REQUESTS);
        bad.extend_from_slice(&len.to_le_bytes());
        let read = read(&bad);
        assert_eq!(read.is_ok(), len == PAYLOAD_MAX as u32, "cut, or refused");
    }
}
