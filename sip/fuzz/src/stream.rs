//! A connection whose bytes arrive in pieces.

use sidetone_sip::message::{Message, StreamEvent, StreamParser};

use super::message::check_views;

/// A stream gives the same messages for all divisions into pieces.
pub fn sip_stream(data: &[u8]) {
    let Some((piece, bytes)) = data.split_first() else { return };
    let whole = events(bytes, bytes.len().max(1));
    assert_eq!(events(bytes, usize::from(*piece) + 1), whole);
}

/// An event that can be compared.
#[derive(Debug, PartialEq)]
enum Event {
    Message(Message),
    Ping,
    Rejected(String, bool),
}

fn events(bytes: &[u8], piece: usize) -> Vec<Event> {
    let (mut parser, mut events) = (StreamParser::new(), Vec::new());
    for chunk in bytes.chunks(piece) {
        parser.push(chunk);
        while let Some(event) = parser.poll() {
            events.push(match event {
                StreamEvent::Message(message) => {
                    check_views(&message);
                    Event::Message(message)
                }
                StreamEvent::Ping => Event::Ping,
                StreamEvent::Rejected { rejected, is_fatal, .. } => {
                    Event::Rejected(format!("{:?}", rejected.reason), is_fatal)
                }
            });
            assert!(events.len() <= bytes.len(), "events out of nothing");
        }
    }
    events
}
