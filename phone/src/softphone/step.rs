//! Scripts: commands, waits and expectations, one per line.

use std::fmt;
use std::time::Duration;

use crate::softphone::command::Command;

/// A script, parsed completely before its first line is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The steps, each with its line number and text.
    pub steps: Vec<(usize, String, Step)>,
}

/// One line of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Execute a command.
    Do(Command),
    /// Fail unless this is true now.
    Expect(Expectation),
    /// Do nothing for a while.
    Pause(Duration),
    /// Wait until this is true; fail on timeout.
    Wait(Condition, Duration),
}

/// A condition to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// This many RTP packets were received, in all calls together.
    Heard(u64),
    /// There is no call.
    Idle,
    /// The next note, or the next note whose title contains this text.
    Note(Option<String>),
    /// The phone is registered.
    Registered,
    /// An incoming call rings.
    Ringing,
    /// A call is up.
    Up,
}

/// An expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// The status of the response to the last acknowledgement.
    Ack(u16),
    /// The final status of the last call.
    Call(u16),
    /// A field of the note of the last `wait note`, by its path, and its value.
    Note(String, String),
    /// How many notes were received.
    Notes(usize),
}

/// The error of a line that is not a step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct ScriptError {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl Script {
    /// Parses a complete script.
    ///
    /// # Errors
    /// The first line that is not a step.
    pub fn parse(text: &str) -> Result<Script, ScriptError> {
        let mut steps = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let step = Step::parse(line).map_err(|reason| ScriptError { line: at + 1, reason })?;
            steps.extend(step.map(|step| (at + 1, line.trim().to_owned(), step)));
        }
        Ok(Script { steps })
    }
}

impl Step {
    /// Parses a line; `None` for an empty line or a comment.
    fn parse(line: &str) -> Result<Option<Step>, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["wait", rest @ ..] => wait(rest).map(Some),
            ["expect", rest @ ..] => expect(rest).map(|expectation| Some(Step::Expect(expectation))),
            _ => Ok(Command::parse(line)?.map(Step::Do)),
        }
    }
}

fn wait(words: &[&str]) -> Result<Step, String> {
    if let [time] = words
        && let Some(time) = duration(time)
    {
        return Ok(Step::Pause(time));
    }
    let (words, limit) = match words {
        [words @ .., last] if !words.is_empty() && duration(last).is_some() => (words, duration(last)),
        _ => (words, None),
    };
    let condition = match words {
        ["heard", count] => {
            Condition::Heard(count.parse().map_err(|_| format!("\"{count}\" is no number of packets"))?)
        }
        ["idle"] => Condition::Idle,
        ["note"] => Condition::Note(None),
        ["note", title @ ..] => Condition::Note(Some(unquoted(&title.join(" ")))),
        ["registered"] => Condition::Registered,
        ["ringing"] => Condition::Ringing,
        ["up"] => Condition::Up,
        _ => return Err(WAITS.to_owned()),
    };
    Ok(Step::Wait(condition, limit.unwrap_or(WAIT_MAX)))
}

fn expect(words: &[&str]) -> Result<Expectation, String> {
    let status = |word: &str| {
        let status = word.parse().ok().filter(|status| (100..700).contains(status));
        status.ok_or_else(|| format!("\"{word}\" is no SIP status; 200 is one"))
    };
    match words {
        ["ack", word] => status(word).map(Expectation::Ack),
        ["call", word] => status(word).map(Expectation::Call),
        ["notes", count] => {
            let count = count.parse().map_err(|_| format!("\"{count}\" is no number of notes"))?;
            Ok(Expectation::Notes(count))
        }
        ["note", path, value @ ..] if !value.is_empty() => {
            Ok(Expectation::Note((*path).to_owned(), unquoted(&value.join(" "))))
        }
        _ => Err(EXPECTS.to_owned()),
    }
}

/// Text without the quotes around it.
fn unquoted(text: &str) -> String {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text).to_owned()
}

/// `500ms`, `30s`, `2m`; a bare number is not a duration, because it may be a number of packets.
fn duration(word: &str) -> Option<Duration> {
    let has_unit = word.ends_with(|c: char| c.is_ascii_alphabetic());
    sidetone_model::duration::parse(word).ok().filter(|_| has_unit)
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Heard(count) => write!(f, "{count} packets were heard"),
            Condition::Idle => f.write_str("no call is there"),
            Condition::Note(None) => f.write_str("a note came"),
            Condition::Note(Some(title)) => write!(f, "a note with \"{title}\" in its title came"),
            Condition::Registered => f.write_str("the phone was registered"),
            Condition::Ringing => f.write_str("a call rang"),
            Condition::Up => f.write_str("a call was up"),
        }
    }
}

const WAITS: &str = "wait for what? wait registered, ringing, up, idle, note [TITLE], heard PACKETS, each with a time \
                     such as 30s behind it if it may take longer than that; or wait 500ms";
const EXPECTS: &str =
    "expect what? expect note FIELD VALUE, expect notes COUNT, expect call STATUS, expect ack STATUS";
/// The default timeout of a wait.
const WAIT_MAX: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_with_its_lines() {
        let text = "# a person\nwait registered\n\ncall 1002\nwait up 10s\nwait note 2m\nwait note \"You owe\"\n\
                    expect note owes.EUR 900\nexpect ack 200\nwait 500ms\nhangup\n";
        let steps = Script::parse(text).unwrap().steps;
        let lines: Vec<usize> = steps.iter().map(|(line, ..)| *line).collect();
        assert_eq!(lines, [2, 4, 5, 6, 7, 8, 9, 10, 11]);
        let steps: Vec<Step> = steps.into_iter().map(|(.., step)| step).collect();
        assert_eq!(steps[0], Step::Wait(Condition::Registered, WAIT_MAX));
        assert_eq!(steps[1], Step::Do(Command::Call("1002".into())));
        assert_eq!(steps[2], Step::Wait(Condition::Up, Duration::from_secs(10)));
        assert_eq!(steps[3], Step::Wait(Condition::Note(None), Duration::from_secs(120)));
        assert_eq!(steps[4], Step::Wait(Condition::Note(Some("You owe".into())), WAIT_MAX));
        assert_eq!(steps[5], Step::Expect(Expectation::Note("owes.EUR".into(), "900".into())));
        assert_eq!(steps[7], Step::Pause(Duration::from_millis(500)));
    }

    #[test]
    fn a_wrong_line_is_named_before_anything_is_done() {
        for (text, reason) in [
            ("call 1002\nwait snow", WAITS),
            ("\nexpect luck", EXPECTS),
            ("\nexpect call ok", "\"ok\" is no SIP status; 200 is one"),
            ("\nsing", "\"sing\" is not a command; help lists them"),
        ] {
            let error = Script::parse(text).unwrap_err();
            assert_eq!((error.line, error.reason.as_str()), (2, reason));
        }
    }
}
