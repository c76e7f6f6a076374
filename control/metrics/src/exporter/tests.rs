use super::*;
use crate::families::tests::{pool, told};
use crate::otlp::{Moment, Series, document};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Instant;

fn until(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed().as_secs() < 120, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A request of HTTP: head and body.
fn request(stream: &TcpStream) -> Option<(String, String)> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let len = head.lines().find_map(|line| line.strip_prefix("Content-Length: "))?.parse().ok()?;
    let mut body = vec![0; len];
    reader.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8(body).ok()?))
}

/// Answers each request by the next of these texts, for ever by the last; each request is told.
fn collector(answers: Vec<Vec<u8>>) -> (String, mpsc::Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("http://{}", listener.local_addr().unwrap());
    let (told, asked) = mpsc::channel();
    std::thread::spawn(move || {
        for n in 0.. {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let Some(request) = request(&stream) else { continue };
            if told.send(request).is_err() {
                return;
            }
            // What is hung up on does not take all of it.
            let _ = stream.write_all(&answers[n.min(answers.len() - 1)]);
        }
    });
    (at, asked)
}

fn status(text: &str) -> Vec<u8> {
    format!("HTTP/1.1 {text}\r\nContent-Length: 0\r\n\r\n").into_bytes()
}

fn quick() -> Exporter {
    Exporter::trying_again_after(Duration::from_millis(5))
}

fn target(endpoint: &str) -> Option<Target> {
    Some(Target { endpoint: endpoint.into(), headers: None })
}

fn figures() -> String {
    let mut series = Series::new(Moment { seconds: 100, nanos: 0 });
    document(&told(&[pool(7)]), &[], &mut series, Moment { seconds: 160, nanos: 0 })
}

#[test]
fn a_collector_that_is_busy_gets_each_document_once_it_answers() {
    let answers = ["503 Busy", "429 Too Many", "502 Bad", "504 Late", "200 OK"].map(status).to_vec();
    let (at, asked) = collector(answers);
    let exporter = quick();
    exporter.offer("nowhere".into());
    assert_eq!(exporter.state(), State::default(), "it is off");
    let headers = Some(Secret::new("api-key=correct horse, x-tenant = 7"));
    exporter.set(Some(Target { endpoint: at, headers }));
    exporter.offer(figures());
    let tries: Vec<(String, String)> = (0..5).map(|_| asked.recv().unwrap()).collect();
    for (head, body) in &tries {
        assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("\r\nContent-Type: application/json\r\n"), "{head}");
        assert!(head.contains("\r\napi-key: correct horse\r\nx-tenant: 7\r\n"), "{head}");
        assert_eq!(*body, tries[0].1);
    }
    crate::otlp::tests::check(&serde_json::from_str(&tries[0].1).unwrap());
    until("it was taken", || exporter.state().sent == 1);
    let state = exporter.state();
    assert_eq!((state.failed, state.dropped, state.waiting, state.problem), (4, 0, 0, None));
    exporter.offer("{}".into());
    assert_eq!(asked.recv().unwrap().1, "{}");
    assert!(!format!("{exporter:?}").contains("horse"));
}

#[test]
fn what_a_collector_does_not_want_is_given_up_and_the_next_is_tried() {
    let partly = br#"{"partialSuccess":{"rejectedDataPoints":"3","errorMessage":"x"}}"#;
    let partly =
        [format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", partly.len()).as_bytes(), partly].concat();
    let (at, asked) = collector(vec![status("400 Bad"), status("302 Elsewhere"), partly, status("200 OK")]);
    let exporter = quick();
    exporter.set(target(&format!("{at}/other/path")));
    for n in 0..4 {
        exporter.offer(n.to_string());
    }
    let tries: Vec<(String, String)> = (0..4).map(|_| asked.recv().unwrap()).collect();
    assert_eq!(tries.iter().map(|(_, body)| body.as_str()).collect::<Vec<_>>(), ["0", "1", "2", "3"]);
    assert!(tries[0].0.starts_with("POST /other/path "));
    until("all are done with", || exporter.state().sent == 2);
    assert_eq!((exporter.state().failed, exporter.state().dropped), (3, 2));
}

#[test]
fn strangers_are_no_collectors_and_take_no_memory() {
    let endless = [b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), vec![b'x'; 8 << 20]].concat();
    let answers = vec![b"\xff\xfe\0garbage".to_vec(), Vec::new(), b"SSH-2.0-x\r\n".to_vec(), endless];
    let (at, asked) = collector(answers);
    let exporter = quick();
    exporter.set(target(&at));
    exporter.offer("a".into());
    (0..4).for_each(|_| drop(asked.recv().unwrap()));
    // Of the endless one the status was enough.
    until("it was taken", || exporter.state().sent == 1);
    assert_eq!(exporter.state().failed, 3);
}

#[test]
fn one_that_hangs_or_is_gone_holds_nothing_up_and_the_queue_is_bounded() {
    // It is connected to, and answers nothing.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let exporter = quick();
    exporter.set(target(&format!("http://{}", listener.local_addr().unwrap())));
    let begun = Instant::now();
    for n in 0..1_000 {
        exporter.offer(n.to_string());
    }
    let state = exporter.state();
    assert!(state.waiting == QUEUE_MAX as u64 && state.dropped == 1_000 - QUEUE_MAX as u64, "{state:?}");
    (0..20).for_each(|_| exporter.offer("x".repeat(QUEUE_BYTES / 4)));
    assert!(exporter.state().waiting <= 4, "{:?}", exporter.state().waiting);
    assert!(begun.elapsed() < Duration::from_secs(60), "no offer waits");
    // Off: what waits is given up, and the one under way is not told of.
    exporter.set(None);
    assert_eq!((exporter.state().waiting, exporter.state().problem), (0, None));
    exporter.offer("x".into());
    assert_eq!(exporter.state().waiting, 0);
    let place = listener.local_addr().unwrap();
    drop(listener);
    let gone = quick();
    gone.set(target(&format!("http://{place}")));
    gone.offer("x".into());
    until("it fails", || gone.state().failed > 2);
    let state = gone.state();
    assert!(
        state.waiting == 1 && state.problem.unwrap().starts_with("127.0.0.1:"),
        "it is kept, and says where"
    );
}

#[test]
fn what_an_answer_means() {
    let answer = |status, retry_after| Ok(Answer { status, retry_after, body: Vec::new() });
    let of = |answer| Outcome::of(answer, "c:1");
    assert_eq!(of(answer(204, None)), Outcome::Taken);
    let busy = Outcome::Later("c:1: it answers 429".into(), Some(Duration::from_secs(7)));
    assert_eq!(of(answer(429, Some(7))), busy);
    let long = Outcome::Later("c:1: it answers 503".into(), Some(LAST));
    assert_eq!(of(answer(503, Some(u64::MAX))), long, "a year is not waited for");
    assert_eq!(of(answer(404, Some(7))), Outcome::Never("c:1: it answers 404".into()));
    assert_eq!(of(Err("x".into())), Outcome::Later("x".into(), None));
    for (body, count) in [("", 0), ("[1", 0), (r#"{"partialSuccess":{"rejectedDataPoints":2}}"#, 2)] {
        assert_eq!(rejected(body.as_bytes()), count);
    }
}

#[test]
fn a_target_is_checked_and_tells_no_secret() {
    let check = |endpoint: &str, headers: &str| {
        Target { endpoint: endpoint.into(), headers: Some(Secret::new(headers)) }.check()
    };
    assert_eq!(check("https://otel.example.com:4318", ""), Ok(()));
    assert_eq!(check("https://otel.example.com/x", "Authorization=Bearer a.b=,x=y"), Ok(()));
    for (endpoint, headers) in [
        ("otel:4318", ""),
        ("grpc://otel:4317", ""),
        ("http://a", "hidden"),
        ("http://a", "=hidden"),
        ("http://a", "Host=hidden"),
        ("http://a", "x y=hidden"),
        ("http://a", "x=hidden\r\nY: z"),
        ("http://a", "x=hiddené"),
    ] {
        let why = check(endpoint, headers).unwrap_err();
        assert!(!why.contains("hidden"), "{why}");
    }
}
