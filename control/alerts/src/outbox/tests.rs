use super::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;

pub(crate) fn alert(severity: Severity, summary: &str) -> Alert {
    let fields = vec![("pool".into(), "tank".into())];
    Alert { severity, seconds: 1_800_000_000, class: "a.class".into(), summary: summary.into(), fields }
}

pub(crate) fn receiver(handler: Handler, to: &str) -> Receiver {
    Receiver {
        name: "one".into(),
        handler,
        to: to.into(),
        server: String::new(),
        from: String::new(),
        user: String::new(),
        secret: None,
        severity: Severity::Info,
        enabled: true,
    }
}

fn until(what: &str, is: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !is() {
        assert!(begun.elapsed().as_secs() < 120, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn state(outbox: &Outbox) -> State {
    outbox.states().remove("one").unwrap()
}

fn quick() -> Outbox {
    Outbox::trying_again_after("here".into(), Duration::from_millis(5))
}

/// A request of HTTP: head and body.
fn request(stream: &TcpStream) -> (String, String) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
    }
    let len = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap().parse().unwrap();
    let mut body = vec![0; len];
    reader.read_exact(&mut body).unwrap();
    (head, String::from_utf8(body).unwrap())
}

/// Answers each request by the next of these words, for ever by the last.
fn hook(answers: &'static [&'static str]) -> (String, mpsc::Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("http://{}/hook", listener.local_addr().unwrap());
    let (told, asked) = mpsc::channel();
    std::thread::spawn(move || {
        for n in 0.. {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let _ = told.send(request(&stream));
            let answer = answers[n.min(answers.len() - 1)];
            let _ = stream.write_all(format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n").as_bytes());
        }
    });
    (at, asked)
}

#[test]
fn a_webhook_gets_each_alert_once_it_answers_and_no_secret_is_shown() {
    let (at, asked) = hook(&["503 Busy", "302 Elsewhere", "204 Taken"]);
    let outbox = quick();
    let mut own = receiver(Handler::Webhook, &at);
    own.secret = Some(Secret::new("correct horse"));
    outbox.set(vec![own.clone()]);
    outbox.offer(alert(Severity::Warning, "pool tank is \"DEGRADED\""));
    let tries: Vec<(String, String)> = (0..3).map(|_| asked.recv().unwrap()).collect();
    assert!(tries.iter().all(|(head, _)| head.contains("\r\nAuthorization: Bearer correct horse\r\n")));
    assert!(tries[0].0.starts_with("POST /hook HTTP/1.1\r\n") && tries[0].1 == tries[2].1);
    let body: serde_json::Value = serde_json::from_str(&tries[2].1).unwrap();
    assert_eq!(body["summary"], "pool tank is \"DEGRADED\"");
    assert_eq!((&body["severity"], &body["host"]), (&"warning".into(), &"here".into()));
    assert_eq!((&body["time"], &body["fields"]["pool"]), (&"2027-01-15T08:00:00Z".into(), &"tank".into()));
    until("it is sent", || state(&outbox).sent == 1);
    assert_eq!(state(&outbox), State { sent: 1, ..State::default() });
    assert!(!format!("{own:?} {outbox:?}").contains("correct"));
}

#[test]
fn a_queue_is_bounded_and_what_is_offered_never_waits() {
    // It is connected to, and answers nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let outbox = quick();
    let own = receiver(Handler::Webhook, &format!("http://{}/", silent.local_addr().unwrap()));
    outbox.set(vec![own.clone()]);
    let begun = std::time::Instant::now();
    for n in 0..QUEUE_MAX + 50 {
        outbox.offer(alert(Severity::Error, &n.to_string()));
    }
    assert!(begun.elapsed() < crate::PATIENCE, "it does not wait for the receiver");
    assert_eq!((state(&outbox).waiting, state(&outbox).dropped), (QUEUE_MAX as u64, 50));
    // Corrected, it is tried at once, whatever it waited for; the newest are there.
    let (at, asked) = hook(&["200 OK"]);
    drop(silent);
    outbox.set(vec![Receiver { to: at, ..own }]);
    until("all are sent", || state(&outbox).waiting == 0);
    let last = asked.try_iter().last().unwrap().1;
    assert!(last.contains(&format!("\"summary\":\"{}\"", QUEUE_MAX + 49)), "{last}");
}

#[test]
fn a_receiver_gets_what_it_wants_and_ends_when_it_is_removed() {
    let (at, asked) = hook(&["200 OK"]);
    let outbox = quick();
    let own = Receiver { severity: Severity::Warning, ..receiver(Handler::Webhook, &at) };
    let off = Receiver { name: "off".into(), enabled: false, ..own.clone() };
    outbox.set(vec![own.clone(), off]);
    for (severity, text) in [(Severity::Info, "a"), (Severity::Error, "b"), (Severity::Warning, "c")] {
        outbox.offer(alert(severity, text));
    }
    until("two are sent", || state(&outbox).sent == 2);
    assert_eq!(outbox.states()["off"], State::default());
    let seen: Vec<String> = asked.try_iter().map(|(_, body)| body).collect();
    assert!(seen.len() == 2 && seen[0].contains("\"b\"") && seen[1].contains("\"c\""), "{seen:?}");
    outbox.set(Vec::new());
    outbox.offer(alert(Severity::Error, "late"));
    assert!(outbox.states().is_empty());
}

/// A server of mail that takes everything: what it was told, line by line.
fn post() -> (String, mpsc::Receiver<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("smtp://{}", listener.local_addr().unwrap());
    let (told, asked) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(|stream| stream.ok()) {
            let mut answers = stream.try_clone().unwrap();
            let mut say = |text: &str| answers.write_all(format!("{text}\r\n").as_bytes()).unwrap();
            say("220 mx.example ESMTP");
            let (mut all, mut is_data) = (Vec::new(), false);
            for line in BufReader::new(stream).lines().map_while(|line| line.ok()) {
                match line.as_str() {
                    "." if is_data => {
                        is_data = false;
                        say("250 taken");
                    }
                    _ if is_data => {}
                    "DATA" => {
                        is_data = true;
                        say("354 go on");
                    }
                    "QUIT" => say("221 bye"),
                    _ => say("250 fine"),
                }
                all.push(line);
            }
            let _ = told.send(all);
        }
    });
    (at, asked)
}

#[test]
fn a_mail_is_handed_to_its_server() {
    let (server, asked) = post();
    let outbox = quick();
    let own = receiver(Handler::Mail, "ops@example.com,night@example.com");
    outbox.set(vec![Receiver { server, from: "cenote@example.com".into(), ..own }]);
    outbox.offer(alert(Severity::Error, "pool tänk is suspended"));
    let lines = asked.recv().unwrap();
    let has = |text: &str| lines.iter().any(|line| line.starts_with(text));
    for text in [
        "MAIL FROM:<cenote@example.com>",
        "RCPT TO:<ops@example.com>",
        "RCPT TO:<night@example.com>",
        "Subject: =?utf-8?Q?=5Berror=5D_here=3A_pool_t=C3=A4nk_is_suspended?=",
        "From: Cenote on here <cenote@example.com>",
        "Date: Fri, 15 Jan 2027 08:00:00 +0000",
        "pool tänk is suspended",
        "  pool = tank",
    ] {
        assert!(has(text), "{text}: {lines:#?}");
    }
    until("it is sent", || state(&outbox).sent == 1);
}
