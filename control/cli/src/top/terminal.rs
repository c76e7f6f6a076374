//! The terminal: taken while the page is shown, and given back however that ends.
//!
//! ```text
//!   Screen::take ── raw, the other screen, no cursor ──▶ draw … draw ──▶ drop ─┐
//!                                            └── a panic: the hook, first ─────┼▶ give_back, once
//!                                            └── asked to end, and nothing is ─┘
//! ```
//!
//! Keys are read by a thread of their own: Ctrl-C ends the program also while the appliance does not answer. Drawing goes
//! through crossterm; only what differs from the last time is written.

use super::page::Press;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::style::{Attribute, Print, SetAttribute, SetForegroundColor};
use crossterm::terminal::{Clear, EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{event, execute, queue, terminal};
use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};
use ratatui_core::terminal::Terminal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once, mpsc};
use std::time::{Duration, Instant};

static IS_TAKEN: AtomicBool = AtomicBool::new(false);
/// How often it is looked whether the program was asked to end.
const LOOK: Duration = Duration::from_millis(100);
/// So long an answer may still take that is waited for when the program is asked to end.
const GRACE: Duration = Duration::from_secs(2);

/// See the module.
pub struct Screen(Terminal<Out>);

impl Screen {
    /// # Errors
    /// The terminal does not do what it is told; it is given back.
    pub fn take() -> io::Result<Screen> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                before(panic);
            }));
        });
        IS_TAKEN.store(true, Ordering::SeqCst);
        let taken = terminal::enable_raw_mode()
            .and_then(|()| execute!(io::stdout(), EnterAlternateScreen, Hide))
            .and_then(|()| Terminal::new(Out(io::stdout())));
        taken.map(Screen).inspect_err(|_| give_back())
    }

    pub fn draw(&mut self, draw: impl FnOnce(&mut Buffer)) -> io::Result<()> {
        self.0.draw(|frame| draw(frame.buffer_mut())).map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// As it was. The second time nothing is done.
fn give_back() {
    if IS_TAKEN.swap(false, Ordering::SeqCst) {
        // Where there is no terminal any more, there is nothing to be given back.
        let _ = execute!(io::stdout(), SetAttribute(Attribute::Reset), Show, LeaveAlternateScreen);
        let _ = terminal::disable_raw_mode();
    }
}

/// Keys as they are pressed, until the terminal is given back. An interrupt that ends nothing ends the program.
pub fn keys() -> io::Result<mpsc::Receiver<Press>> {
    let is_asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, is_asked.clone())?;
    }
    let (keys, pressed) = mpsc::channel();
    std::thread::Builder::new().name("keys".into()).spawn(move || {
        while IS_TAKEN.load(Ordering::SeqCst) {
            let press = match event::poll(LOOK) {
                _ if is_asked.load(Ordering::SeqCst) => Some(Press::Interrupt),
                Ok(false) => None,
                Ok(true) => event::read().map_or(Some(Press::Interrupt), meant),
                Err(_) => Some(Press::Interrupt),
            };
            let Some(press) = press else { continue };
            if keys.send(press).is_err() {
                return;
            }
            if press == Press::Interrupt {
                let asked = Instant::now();
                while asked.elapsed() < GRACE && IS_TAKEN.load(Ordering::SeqCst) {
                    std::thread::sleep(LOOK);
                }
                if IS_TAKEN.load(Ordering::SeqCst) {
                    give_back();
                    std::process::exit(130);
                }
                return;
            }
        }
    })?;
    Ok(pressed)
}

fn meant(event: Event) -> Option<Press> {
    let key = match event {
        Event::Resize(..) => return Some(Press::Redraw),
        Event::Key(KeyEvent {
            code, modifiers, kind: KeyEventKind::Press | KeyEventKind::Repeat, ..
        }) => match (code, modifiers.contains(KeyModifiers::CONTROL)) {
            (KeyCode::Char('c' | 'd'), true) => return Some(Press::Interrupt),
            (KeyCode::Char('l'), true) => return Some(Press::Redraw),
            (_, true) => return None,
            (code, false) => code,
        },
        _ => return None,
    };
    Some(match key {
        KeyCode::Up => Press::Up,
        KeyCode::Down => Press::Down,
        KeyCode::PageUp => Press::PageUp,
        KeyCode::PageDown => Press::PageDown,
        KeyCode::Left => Press::Left,
        KeyCode::Right => Press::Right,
        KeyCode::Home => Press::Home,
        KeyCode::End => Press::End,
        KeyCode::Enter => Press::Enter,
        KeyCode::Esc => Press::Escape,
        KeyCode::Backspace => Press::Backspace,
        KeyCode::Tab => Press::Tab,
        KeyCode::Char(c) => Press::Char(c),
        _ => return None,
    })
}

/// What ratatui draws, as crossterm writes it.
struct Out(io::Stdout);

impl Backend for Out {
    type Error = io::Error;

    fn draw<'a, I: Iterator<Item = (u16, u16, &'a Cell)>>(&mut self, content: I) -> io::Result<()> {
        let out = &mut self.0;
        let mut style = (Color::Reset, Modifier::empty());
        let mut next = None;
        for (x, y, cell) in content {
            if next != Some((x, y)) {
                queue!(out, MoveTo(x, y))?;
            }
            if style != (cell.fg, cell.modifier) {
                style = (cell.fg, cell.modifier);
                queue!(out, SetAttribute(Attribute::Reset))?;
                for (modifier, attribute) in ATTRIBUTES {
                    if cell.modifier.contains(modifier) {
                        queue!(out, SetAttribute(attribute))?;
                    }
                }
                if let Some(colour) = colour(cell.fg) {
                    queue!(out, SetForegroundColor(colour))?;
                }
            }
            queue!(out, Print(cell.symbol()))?;
            // Where the cursor is after a wide character is asked of no terminal.
            next = (cell.symbol().len() == 1).then_some((x + 1, y));
        }
        queue!(out, SetAttribute(Attribute::Reset))
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        execute!(self.0, Hide)
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        execute!(self.0, Show)
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        crossterm::cursor::position().map(Position::from)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        execute!(self.0, MoveTo(x, y))
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        use crossterm::terminal::ClearType as Region;
        let region = match region {
            ClearType::All => Region::All,
            ClearType::AfterCursor => Region::FromCursorDown,
            ClearType::BeforeCursor => Region::FromCursorUp,
            ClearType::CurrentLine => Region::CurrentLine,
            ClearType::UntilNewLine => Region::UntilNewLine,
        };
        execute!(self.0, Clear(region))
    }

    fn size(&self) -> io::Result<Size> {
        terminal::size().map(Size::from)
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::default() })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

const ATTRIBUTES: [(Modifier, Attribute); 3] = [
    (Modifier::BOLD, Attribute::Bold),
    (Modifier::DIM, Attribute::Dim),
    (Modifier::REVERSED, Attribute::Reverse),
];

/// Those that strokes are drawn with; none is the terminal's own.
fn colour(colour: Color) -> Option<crossterm::style::Color> {
    match colour {
        Color::Cyan => Some(crossterm::style::Color::DarkCyan),
        Color::Red => Some(crossterm::style::Color::DarkRed),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_mean_what_the_page_says() {
        let key = |code, modifiers| meant(Event::Key(KeyEvent::new(code, modifiers)));
        let none = KeyModifiers::NONE;
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Press::Interrupt));
        assert_eq!(key(KeyCode::Char('z'), KeyModifiers::CONTROL), None);
        assert_eq!(key(KeyCode::Char('c'), none), Some(Press::Char('c')));
        assert_eq!(key(KeyCode::Char('B'), KeyModifiers::SHIFT), Some(Press::Char('B')));
        assert_eq!(key(KeyCode::Enter, none), Some(Press::Enter));
        assert_eq!(key(KeyCode::F(1), none), None);
        assert_eq!(meant(Event::Resize(1, 1)), Some(Press::Redraw));
        assert_eq!(meant(Event::FocusGained), None);
    }

    /// Run by the next in a terminal: it panics while it has it.
    #[test]
    #[ignore = "another test runs it in a terminal of its own"]
    fn panics_with_the_terminal() {
        let mut screen = Screen::take().unwrap();
        let drawn = screen.draw(|buffer| {
            buffer.set_string(0, 0, "drawn", ratatui_core::style::Style::new());
        });
        drawn.unwrap();
        panic!("a bug, on purpose");
    }

    /// The message of a panic stands on a screen that can be used.
    #[test]
    fn a_panic_gives_the_terminal_back_before_it_says_why() {
        use std::process::{Command, Stdio};
        let own = std::env::current_exe().unwrap();
        let line = format!(
            "stty rows 24 cols 80; before=$(stty -g); '{}' --ignored --exact --nocapture top::terminal::tests::panics_with_the_terminal; \
             test \"$before\" = \"$(stty -g)\" && echo as-before",
            own.display()
        );
        let mut script = Command::new("script");
        script.args(["-q", "-e", "-c", &line, "/dev/null"]).stdin(Stdio::null()).env("TERM", "xterm");
        let output = script.output().expect("script, which every Linux has");
        let text = String::from_utf8_lossy(&output.stdout);
        let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part:?} in {text:?}"));
        let (taken, drawn) = (place("\u{1b}[?1049h"), place("drawn"));
        let (given, said) = (place("\u{1b}[?1049l"), place("a bug, on purpose"));
        assert!(taken < drawn && drawn < given && given < said, "{text:?}");
        assert!(place("\u{1b}[?25h") < said && place("as-before") > said, "{text:?}");
    }
}
