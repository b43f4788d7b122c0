//! The terminal of `top` and `analyze -i`: its screen, and its keys. Its state is always restored: at the end, after
//! a signal, and after a panic.

use std::io::{self, IsTerminal};
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use sidetone_terminal::{Key, Screen, draw};
use tokio::task::{JoinHandle, spawn_blocking};

/// Control of the complete terminal, until it is dropped.
pub(super) struct FullScreen {
    terminal: DefaultTerminal,
    colour: bool,
}

impl FullScreen {
    /// Sets the terminal up: the alternate screen, and keys without echo. A panic restores it before its message.
    pub(super) fn open() -> io::Result<FullScreen> {
        // <https://no-color.org>.
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        match ratatui::try_init() {
            Ok(terminal) => Ok(FullScreen { terminal, colour: !unwanted }),
            Err(error) => {
                // The setup may have been partly done.
                let _ = ratatui::try_restore();
                Err(error)
            }
        }
    }

    /// Shows a screen.
    pub(super) fn show(&mut self, screen: &Screen) -> io::Result<()> {
        self.terminal.draw(|frame| draw(frame, screen, self.colour)).map(drop)
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        // If the terminal was closed, nothing needs to be restored.
        let _ = ratatui::try_restore();
    }
}

/// Whether a full screen can be shown and keys can be read.
pub(super) fn is_there() -> bool {
    io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// An input of the user.
pub(super) enum Pressed {
    Key(Key),
    /// The terminal has another size.
    Resized,
}

/// The keys, read outside the runtime's threads.
#[derive(Default)]
pub(super) struct Keys {
    reading: Option<JoinHandle<io::Result<Option<Event>>>>,
}

impl Keys {
    /// Waits for a key or a new size. It is cancel-safe.
    ///
    /// # Errors
    /// When the terminal was closed.
    pub(super) async fn next(&mut self) -> io::Result<Pressed> {
        loop {
            let reading = self.reading.get_or_insert_with(|| spawn_blocking(read));
            let event = reading.await;
            self.reading = None;
            if let Some(pressed) = event.map_err(io::Error::other)??.and_then(pressed) {
                return Ok(pressed);
            }
        }
    }
}

/// Reads for a short time only, so that the end of the program does not wait for a key.
fn read() -> io::Result<Option<Event>> {
    if event::poll(READ_TIME)? { event::read().map(Some) } else { Ok(None) }
}

fn pressed(event: Event) -> Option<Pressed> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => key_of(key).map(Pressed::Key),
        Event::Resize(..) => Some(Pressed::Resized),
        _ => None,
    }
}

fn key_of(KeyEvent { code, modifiers, .. }: KeyEvent) -> Option<Key> {
    if modifiers.contains(KeyModifiers::CONTROL) {
        return matches!(code, KeyCode::Char('c' | 'd')).then_some(Key::Interrupt);
    }
    Some(match code {
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Char(letter) => Key::Char(letter),
        KeyCode::Down => Key::Down,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Home => Key::Home,
        KeyCode::Left => Key::Left,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::Right => Key::Right,
        KeyCode::Tab => Key::Tab,
        KeyCode::Up => Key::Up,
        _ => return None,
    })
}

/// How long one read of keys waits.
const READ_TIME: Duration = Duration::from_millis(200);
