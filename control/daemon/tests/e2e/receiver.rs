//! A server of the test's that takes what the daemon posts.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;

/// Takes what is posted to it, and answers each so: its address, and the heads and documents that come.
pub fn receiver(answer: &'static str) -> (String, mpsc::Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("http://{}", listener.local_addr().unwrap());
    let (told, asked) = mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(|stream| stream.ok()) {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).is_ok_and(|len| len > 0) {}
            let Some(len) = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")) else {
                continue;
            };
            let mut body = vec![0; len.parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            // A daemon that ends does not wait for it.
            let _ = stream.write_all(answer.as_bytes());
            if told.send((head, serde_json::from_slice(&body).unwrap())).is_err() {
                return;
            }
        }
    });
    (at, asked)
}
