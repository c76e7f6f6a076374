fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let options = hits::parse(&words).unwrap();
    print!("{}", hits::render(&hits::run(&options, |_| ()).unwrap()));
}
