//! The commands by themselves, for who works on them: `cargo run -p inspect --example inspect -- mos tank`.
#![allow(clippy::disallowed_macros, reason = "a program for the terminal")]

fn main() -> std::process::ExitCode {
    let args = match inspect::InspectArgs::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(e) => {
            eprintln!("{e}");
            return 2.into();
        }
    };
    match linux::block_on(inspect::run(args)) {
        Ok(output) => {
            print!("{}", output.text);
            u8::from(!output.is_sound).into()
        }
        Err(e) => {
            eprintln!("{e}");
            1.into()
        }
    }
}
