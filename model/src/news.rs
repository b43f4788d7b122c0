//! What the switch tells at once, beside its records: each becomes one event.

use crate::event::Event;
use crate::guessing::Guessing;
use crate::live_call::CallNews;

/// Something that is told at once, and stored for its own sake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// Something about a live call.
    Call(CallNews),
    /// Passwords are guessed.
    Guessing(Guessing),
}

impl News {
    /// A new event that tells of it.
    pub fn event(&self) -> Event {
        match self {
            News::Call(news) => news.event(),
            News::Guessing(guessing) => guessing.event(),
        }
    }
}

impl From<CallNews> for News {
    fn from(news: CallNews) -> Self {
        News::Call(news)
    }
}

impl From<Guessing> for News {
    fn from(guessing: Guessing) -> Self {
        News::Guessing(guessing)
    }
}
