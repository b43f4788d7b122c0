//! Commands that a user types, one per line.

use crate::is_digit;

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Acknowledge a note.
    Acknowledge(Option<Which>),
    /// Answer the ringing call.
    Answer,
    /// Call this number.
    Call(String),
    /// Close all rows of a note.
    Close(Option<usize>),
    /// Decline the ringing call.
    Decline,
    /// Send digits in the call.
    Dial(String),
    /// Remove the banner of an alert.
    Dismiss(Option<usize>),
    /// End the call, or cancel it.
    HangUp,
    /// Print the commands.
    Help,
    /// List the notes.
    Notes,
    /// Open one row of a note, or all.
    Open(Option<usize>, Option<String>),
    /// End.
    Quit,
    /// Register now.
    Register,
    /// Show a note again.
    Show(Option<usize>),
    /// Print the state.
    Status,
}

/// A note, by the number in its corner or by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// Its id.
    Id(String),
    /// Its number.
    Number(usize),
}

impl Command {
    /// Reads a line; `None` for an empty one and a comment.
    ///
    /// # Errors
    /// What is wrong with it, as text.
    pub fn parse(line: &str) -> Result<Option<Command>, String> {
        let line = line.trim();
        if line.starts_with('#') {
            return Ok(None);
        }
        let mut words = line.split_whitespace();
        let Some(verb) = words.next() else { return Ok(None) };
        let rest: Vec<&str> = words.collect();
        let command = match (verb, rest.as_slice()) {
            ("a" | "ack", []) => Command::Acknowledge(None),
            ("a" | "ack", [note]) => Command::Acknowledge(Some(which(note))),
            ("answer", []) => Command::Answer,
            ("c" | "call", [number]) => Command::Call(number_to_call(number)?),
            ("close", note) => Command::Close(optional(note)?),
            ("decline", []) => Command::Decline,
            ("d" | "dial", digits @ [_, ..]) => Command::Dial(digits_to_dial(&digits.concat())?),
            ("x" | "dismiss", note) => Command::Dismiss(optional(note)?),
            ("h" | "hangup", []) => Command::HangUp,
            ("?" | "help", []) => Command::Help,
            ("n" | "notes", []) => Command::Notes,
            ("o" | "open", []) => Command::Open(None, None),
            ("o" | "open", [note]) if note.parse::<usize>().is_ok() => Command::Open(number(note).ok(), None),
            ("o" | "open", [note, row @ ..]) if note.parse::<usize>().is_ok() => {
                Command::Open(number(note).ok(), Some(row.join(" ")))
            }
            ("o" | "open", row) => Command::Open(None, Some(row.join(" "))),
            ("q" | "quit" | "exit", []) => Command::Quit,
            ("register", []) => Command::Register,
            ("show", note) => Command::Show(optional(note)?),
            ("s" | "status", []) => Command::Status,
            ("c" | "call", []) => return Err("call needs a number, such as call 1002".to_owned()),
            ("d" | "dial", []) => return Err("dial what? dial 123#".to_owned()),
            (verb, _) if VERBS.contains(&verb) => {
                return Err(format!("{verb} takes fewer words; help shows how"));
            }
            (verb, _) => return Err(format!("\"{verb}\" is not a command; help lists them")),
        };
        Ok(Some(command))
    }
}

fn which(note: &str) -> Which {
    note.parse().map_or_else(|_| Which::Id(note.to_owned()), Which::Number)
}

fn optional(words: &[&str]) -> Result<Option<usize>, String> {
    match words {
        [] => Ok(None),
        [note] => number(note).map(Some),
        _ => Err("give the number of one note, as notes lists them".to_owned()),
    }
}

fn number(word: &str) -> Result<usize, String> {
    word.parse().map_err(|_| format!("\"{word}\" is no number of a note; notes lists them"))
}

/// The characters allowed before the @ of a SIP URI without escapes (RFC 3261 §25.1, unreserved and
/// user-unreserved).
fn number_to_call(number: &str) -> Result<String, String> {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || "-_.!~*'()&=+$,;?/".contains(c);
    if number.len() <= NUMBER_LEN_MAX && number.chars().all(is_fit) {
        return Ok(number.to_owned());
    }
    Err(format!("\"{number}\" cannot be called; a number such as 1002 or +442071230000 can"))
}

fn digits_to_dial(digits: &str) -> Result<String, String> {
    match digits.chars().find(|key| !is_digit(*key)) {
        Some(key) => Err(format!("a keypad has no {key:?}; it has 0 to 9, *, # and A to D")),
        None => Ok(digits.to_owned()),
    }
}

/// The output of `help`.
pub const HELP: &str = "  call NUMBER     c    call an extension or an outside number
  answer               answer the ringing call; decline refuses it
  hangup          h    end or cancel the call
  dial DIGITS     d    send digits inside the call
  notes           n    list the notes; show N shows one again
  open [N] [ROW]  o    unfold one row or all rows of a note; close [N] folds them
  ack [N|ID]      a    acknowledge a note, by default the newest
  dismiss [N]     x    dismiss the banner of an alert
  status          s    show the status; register registers now
  help            ?    this
  quit            q    end";

const VERBS: [&str; 23] = [
    "a", "ack", "answer", "c", "call", "decline", "d", "dial", "h", "hangup", "?", "help", "n", "notes", "q",
    "quit", "exit", "register", "s", "status", "o", "open", "show",
];
/// A longer text is not a number.
const NUMBER_LEN_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_commands() {
        let cases: [(&str, Option<Command>); 16] = [
            ("", None),
            ("   # a comment", None),
            ("call 1002", Some(Command::Call("1002".into()))),
            (" c  +442071230000 ", Some(Command::Call("+442071230000".into()))),
            ("answer", Some(Command::Answer)),
            ("h", Some(Command::HangUp)),
            ("dial 12 3#", Some(Command::Dial("123#".into()))),
            ("a", Some(Command::Acknowledge(None))),
            ("ack 2", Some(Command::Acknowledge(Some(Which::Number(2))))),
            ("ack 0199-ab", Some(Command::Acknowledge(Some(Which::Id("0199-ab".into()))))),
            ("open", Some(Command::Open(None, None))),
            ("open 3", Some(Command::Open(Some(3), None))),
            ("open 3 open orders", Some(Command::Open(Some(3), Some("open orders".into())))),
            ("open address", Some(Command::Open(None, Some("address".into())))),
            ("x 1", Some(Command::Dismiss(Some(1)))),
            ("quit", Some(Command::Quit)),
        ];
        for (line, expected) in cases {
            assert_eq!(Command::parse(line), Ok(expected), "{line:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_words() {
        let cases = [
            ("dance", "\"dance\" is not a command; help lists them"),
            ("call", "call needs a number, such as call 1002"),
            ("call <sip:x>", "\"<sip:x>\" cannot be called; a number such as 1002 or +442071230000 can"),
            ("call 1 2", "call takes fewer words; help shows how"),
            ("dial 12x", "a keypad has no 'x'; it has 0 to 9, *, # and A to D"),
            ("show one", "\"one\" is no number of a note; notes lists them"),
        ];
        for (line, expected) in cases {
            assert_eq!(Command::parse(line), Err(expected.to_owned()), "{line:?}");
        }
    }
}
