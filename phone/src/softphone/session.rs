//! One phone, used by a person or a script.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use sidetone_model::exact_json::ExactJson;
use tokio::sync::{broadcast, mpsc};
use tokio::time::{Instant, sleep_until, timeout};

use crate::softphone::command::{Command, HELP, Which};
use crate::softphone::console::Console;
use crate::softphone::step::{Condition, Expectation, Script, Step};
use crate::softphone::view::{Fold, clean, plain};
use crate::{CallPlan, Level, News, Phone, PhoneError, Recorder, ShownNote};

/// A note for programs, with every digit as received.
#[derive(Serialize)]
struct NoteEvent {
    event: &'static str,
    number: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    note: ExactJson,
}

/// A phone, its registration, its call and its notes.
pub struct Session {
    phone: Arc<Phone>,
    number: String,
    console: Console,
    recorder: Option<Recorder>,
    news: broadcast::Receiver<News>,
    renew_at: Instant,
    is_registered: bool,
    call: Call,
    /// How the last call ended.
    last_call: Option<(u16, String)>,
    /// The status of the answer to the last acknowledgement.
    last_ack: Option<u16>,
    notes: Vec<Entry>,
    /// The number of notes that `wait note` has consumed.
    waited: usize,
    is_over: bool,
}

enum Call {
    Idle,
    Calling { peer: String },
    Ringing { peer: String },
    Up { peer: String, since: Instant },
}

struct Entry {
    note: ShownNote,
    fold: Fold,
    is_acknowledged: bool,
    is_up: bool,
}

/// A step of a script that failed.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {step}: {reason}")]
pub struct Failed {
    /// Its line.
    pub line: usize,
    /// The text of the step.
    pub step: String,
    /// The reason.
    pub reason: String,
}

impl Session {
    /// A session of `phone` with the extension `number`, not registered yet.
    pub fn new(phone: Phone, number: &str, console: Console, recorder: Option<Recorder>) -> Session {
        let news = phone.news();
        Session {
            phone: Arc::new(phone),
            number: number.to_owned(),
            console,
            recorder,
            news,
            renew_at: Instant::now(),
            is_registered: false,
            call: Call::Idle,
            last_call: None,
            last_ack: None,
            notes: Vec::new(),
            waited: 0,
            is_over: false,
        }
    }

    /// Registers; the binding is renewed while the session runs.
    ///
    /// # Errors
    /// When the switch refuses or does not answer.
    pub async fn register(&mut self) -> Result<(), PhoneError> {
        let silence = PhoneError::Refused { number: self.number.clone(), status: 408 };
        let lasts = match timeout(REGISTER_MAX, self.phone.register(&self.number)).await {
            Ok(Ok(lasts)) => lasts,
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(silence),
        };
        self.renew_at = Instant::now() + (lasts / 2).max(RENEW_MIN);
        if !std::mem::replace(&mut self.is_registered, true) {
            let event = json!({"event": "registered", "seconds": lasts.as_secs()});
            self.console.tell(&event, &format!("registered for {} s", lasts.as_secs()));
        }
        Ok(())
    }

    /// Executes typed commands until the user quits or the input ends.
    pub async fn serve(&mut self, mut lines: mpsc::Receiver<String>) {
        let hello = "help lists the commands, quit ends";
        self.console.tell(&json!({"event": "ready"}), hello);
        while !self.is_over {
            self.prompt();
            tokio::select! {
                line = lines.recv() => match line {
                    Some(line) => self.line(&line).await,
                    None => return,
                },
                () = self.go_on() => {}
            }
        }
    }

    /// Executes a script, line by line.
    ///
    /// # Errors
    /// The first step that fails.
    pub async fn play(&mut self, script: &Script) -> Result<(), Failed> {
        for (line, text, step) in &script.steps {
            if !self.console.is_json() {
                let shown = self.console.view.dim(&format!("> {}", clean(text)));
                self.console.tell(&Value::Null, &shown);
            }
            let done = match step {
                Step::Do(command) => self.execute(command.clone()).await,
                Step::Expect(expectation) => self.expect(expectation),
                Step::Pause(time) => {
                    self.go_on_until(Instant::now() + *time).await;
                    Ok(())
                }
                Step::Wait(condition, limit) => self.wait(condition, *limit).await,
            };
            done.map_err(|reason| Failed { line: *line, step: text.clone(), reason })?;
            if self.is_over {
                break;
            }
        }
        Ok(())
    }

    /// Hangs up, unregisters and flushes the recording to the disk.
    pub async fn end(mut self) {
        let farewell = async {
            // If the switch is unreachable, the phone stops without a response.
            let _ = self.phone.hang_up().await;
            let _ = self.phone.unregister(&self.number).await;
        };
        let _ = timeout(FAREWELL_MAX, farewell).await;
        if let Some(recorder) = &self.recorder {
            let seconds = recorder.seconds();
            let (event, text) = match recorder.flush() {
                Ok(()) => (
                    json!({"event": "recorded", "seconds": seconds}),
                    format!("what was heard is written: {seconds:.1} s"),
                ),
                Err(error) => {
                    let error = format!("what was heard cannot be written ({error})");
                    (json!({"event": "error", "reason": error}), error)
                }
            };
            self.console.tell(&event, &text);
        }
    }

    async fn line(&mut self, line: &str) {
        let done = match Command::parse(line) {
            Ok(Some(command)) => self.execute(command).await,
            Ok(None) => Ok(()),
            Err(reason) => Err(reason),
        };
        if let Err(reason) = done {
            self.console.tell(&json!({"event": "error", "reason": reason}), &clean(&reason));
        }
    }

    /// Handles one event, or renews the binding.
    async fn go_on(&mut self) {
        tokio::select! {
            news = self.news.recv() => {
                // A slow reader loses the oldest events; the phone itself lives as long as this session.
                if let Ok(news) = news {
                    self.happened(news);
                }
            }
            () = sleep_until(self.renew_at) => self.renew().await,
        }
    }

    async fn go_on_until(&mut self, end: Instant) {
        // The future releases its borrows before the next iteration.
        while Instant::now() < end {
            tokio::select! {
                () = self.go_on() => {}
                () = sleep_until(end) => {}
            }
        }
    }

    async fn renew(&mut self) {
        if let Err(error) = self.register().await {
            self.renew_at = Instant::now() + RENEW_RETRY;
            if std::mem::replace(&mut self.is_registered, false) {
                let text = format!("no longer registered: failed to {error}; it is tried again");
                self.console.tell(&json!({"event": "unregistered", "reason": error.to_string()}), &text);
            }
        }
    }

    fn happened(&mut self, news: News) {
        let (event, text) = match news {
            News::Ended { peer, status, reason, by_peer, received } => {
                return self.ended(&peer, status, &reason, by_peer, received);
            }
            News::Lost => {
                self.renew_at = Instant::now();
                (
                    json!({"event": "lost"}),
                    "the connection to the switch is gone; connecting again".to_owned(),
                )
            }
            News::Note(note) => return self.noted(*note),
            News::Progress { status } => {
                let text = if status == 180 { "it rings".to_owned() } else { format!("progress: {status}") };
                (json!({"event": "progress", "status": status}), text)
            }
            News::Ringing { peer, name } => {
                let who = name
                    .as_ref()
                    .map_or_else(|| clean(&peer), |name| format!("{} ({})", clean(name), clean(&peer)));
                self.call = Call::Ringing { peer: peer.clone() };
                (
                    json!({"event": "ringing", "peer": peer, "name": name}),
                    format!("{who} calls: answer or decline"),
                )
            }
            News::Up { peer, codec } => {
                self.call = Call::Up { peer: peer.clone(), since: Instant::now() };
                let text = format!("call with {} is up ({})", clean(&peer), clean(&codec));
                (json!({"event": "up", "peer": peer, "codec": codec}), text)
            }
        };
        self.console.tell(&event, &text);
    }

    fn ended(&mut self, peer: &str, status: u16, reason: &str, by_peer: bool, received: u64) {
        let lasted = match &self.call {
            Call::Up { since, .. } => Some(since.elapsed().as_secs()),
            _ => None,
        };
        self.call = Call::Idle;
        let who = clean(peer);
        let text = match (lasted, by_peer) {
            (Some(seconds), true) => format!("{who} hung up after {seconds} s, {received} packets heard"),
            (Some(seconds), false) => {
                format!("call with {who} ended after {seconds} s, {received} packets heard")
            }
            (None, true) => format!("{who} gave up"),
            (None, false) => format!("no call with {who}: {status} {}", clean(reason)),
        };
        let event = json!({"event": "ended", "peer": peer, "status": status, "reason": reason, "by_peer": by_peer,
            "seconds": lasted, "packets_heard": received});
        self.last_call = Some((status, reason.to_owned()));
        if let Some(recorder) = &self.recorder {
            // The error is reported at the end if it persists.
            let _ = recorder.flush();
        }
        self.console.tell(&event, &text);
    }

    fn noted(&mut self, note: ShownNote) {
        let number = self.notes.len() + 1;
        let event = NoteEvent {
            event: "note",
            number,
            channel: Some(note.channel.as_str()),
            from: Some(note.from.clone()),
            note: note.exact.clone(),
        };
        let bell = if note.level == Level::Alert && self.console.view.colour { "\x07" } else { "" };
        let card = bell.to_owned() + &self.console.view.note(&note, number, &Fold::Closed, false);
        let is_up = note.level == Level::Alert;
        self.notes.push(Entry { note, fold: Fold::Closed, is_acknowledged: false, is_up });
        self.console.tell(&event, &card);
    }

    async fn execute(&mut self, command: Command) -> Result<(), String> {
        match command {
            Command::Acknowledge(which) => return self.acknowledge(which).await,
            Command::Answer => self.phone.answer().await.map_err(|_| "no call is ringing".to_owned())?,
            Command::Call(number) => self.place(number)?,
            Command::Close(number) => self.fold(number, None, true)?,
            Command::Decline => match self.call {
                Call::Ringing { .. } => self.phone.decline().await.map_err(error_text)?,
                _ => return Err("no call is ringing".to_owned()),
            },
            Command::Dial(digits) => {
                let dialled = self.phone.dial(&digits).await;
                dialled.map_err(|_| "no call is up whose other side understands digits".to_owned())?;
                self.console
                    .tell(&json!({"event": "dialled", "digits": digits}), &format!("dialled {digits}"));
            }
            Command::Dismiss(number) => self.dismiss(number)?,
            Command::HangUp => match self.call {
                Call::Idle => return Err("there is no call".to_owned()),
                _ => self.phone.hang_up().await.map_err(error_text)?,
            },
            Command::Help => self.console.tell(&json!({"event": "help"}), HELP),
            Command::Notes => self.list(),
            Command::Open(number, row) => self.fold(number, row, false)?,
            Command::Quit => self.is_over = true,
            Command::Register => {
                self.is_registered = false;
                self.register().await.map_err(error_text)?;
            }
            Command::Show(number) => {
                let at = self.index(number)?;
                self.show(at);
            }
            Command::Status => self.status(),
        }
        Ok(())
    }

    fn place(&mut self, number: String) -> Result<(), String> {
        if !matches!(self.call, Call::Idle) {
            return Err("there is a call already; hangup ends it".to_owned());
        }
        self.console.tell(&json!({"event": "calling", "peer": number}), &format!("calling {number}"));
        self.call = Call::Calling { peer: number.clone() };
        self.last_call = None;
        let phone = Arc::clone(&self.phone);
        let plan = CallPlan { talk_time: None, ..CallPlan::to(number) };
        // Events report its progress.
        tokio::spawn(async move { phone.call(plan).await });
        Ok(())
    }

    async fn acknowledge(&mut self, which: Option<Which>) -> Result<(), String> {
        let at = match which {
            Some(Which::Number(number)) => self.index(Some(number))?,
            Some(Which::Id(id)) => {
                let at = self.notes.iter().rposition(|entry| entry.note.id == id);
                at.ok_or_else(|| format!("no note has the id {id}"))?
            }
            None => {
                let open = |entry: &Entry| entry.note.ack && !entry.is_acknowledged;
                self.notes.iter().rposition(open).ok_or("no note waits for an acknowledgement")?
            }
        };
        let Some(entry) = self.notes.get(at) else { return Err("there is no such note".to_owned()) };
        let number = at + 1;
        if entry.is_acknowledged {
            return Err(format!("note {number} was acknowledged already"));
        }
        if !entry.note.ack {
            return Err(format!("note {number} asks for no acknowledgement"));
        }
        let id = entry.note.id.clone();
        let status = match timeout(ACK_MAX, self.phone.acknowledge(&id)).await {
            Ok(Ok(status)) => status,
            Ok(Err(PhoneError::NoCall)) => {
                return Err(format!(
                    "note {number} came in a call that is over; it cannot be acknowledged any more"
                ));
            }
            Ok(Err(error)) => return Err(error_text(error)),
            Err(_) => 408,
        };
        self.last_ack = Some(status);
        let is_taken = (200..300).contains(&status);
        if let Some(entry) = self.notes.get_mut(at).filter(|_| is_taken) {
            (entry.is_acknowledged, entry.is_up) = (true, false);
        }
        let text = if is_taken {
            format!("note {number} acknowledged")
        } else {
            format!("the switch did not take the acknowledgement of note {number} ({status})")
        };
        let event = json!({"event": "acknowledged", "number": number, "id": id, "status": status});
        self.console.tell(&event, &text);
        Ok(())
    }

    fn index(&self, number: Option<usize>) -> Result<usize, String> {
        match number {
            None if self.notes.is_empty() => Err("no note has come yet".to_owned()),
            None => Ok(self.notes.len() - 1),
            Some(number) if (1..=self.notes.len()).contains(&number) => Ok(number - 1),
            Some(number) => Err(format!("there is no note {number}; notes lists them")),
        }
    }

    fn fold(&mut self, number: Option<usize>, row: Option<String>, closes: bool) -> Result<(), String> {
        let at = self.index(number)?;
        if let Some(entry) = self.notes.get_mut(at) {
            entry.fold = match (row, closes) {
                (_, true) => Fold::Closed,
                (None, false) => Fold::All,
                (Some(row), false) => {
                    if !entry.note.rows.iter().any(|(name, _)| *name == row) {
                        return Err(format!("note {} has no row \"{row}\"", at + 1));
                    }
                    let mut rows = match std::mem::take(&mut entry.fold) {
                        Fold::Rows(rows) => rows,
                        Fold::All | Fold::Closed => Vec::new(),
                    };
                    rows.push(row);
                    Fold::Rows(rows)
                }
            };
        }
        self.show(at);
        Ok(())
    }

    fn dismiss(&mut self, number: Option<usize>) -> Result<(), String> {
        let at = match number {
            Some(_) => self.index(number)?,
            None => self.notes.iter().rposition(|entry| entry.is_up).ok_or("no alert is up")?,
        };
        match self.notes.get_mut(at).filter(|entry| entry.is_up) {
            Some(entry) => entry.is_up = false,
            None => return Err(format!("note {} has no banner up", at + 1)),
        }
        self.console.tell(&json!({"event": "dismissed", "number": at + 1}), "");
        Ok(())
    }

    fn show(&mut self, at: usize) {
        let Some(entry) = self.notes.get(at) else { return };
        let text = self.console.view.note(&entry.note, at + 1, &entry.fold, entry.is_acknowledged);
        let note = entry.note.exact.clone();
        let event = NoteEvent { event: "shown", number: at + 1, channel: None, from: None, note };
        self.console.tell(&event, &text);
    }

    fn list(&mut self) {
        let numbered = self.notes.iter().enumerate();
        let view = self.console.view;
        let text: String =
            numbered.map(|(at, entry)| view.line(&entry.note, at + 1, entry.is_acknowledged)).collect();
        let notes: Vec<Value> = self
            .notes
            .iter()
            .map(|entry| json!({"id": entry.note.id, "title": entry.note.title, "acknowledged": entry.is_acknowledged}))
            .collect();
        let text = if text.is_empty() { "no note has come yet".to_owned() } else { text };
        self.console.tell(&json!({"event": "notes", "notes": notes}), &text);
    }

    fn status(&mut self) {
        let (state, peer) = match &self.call {
            Call::Idle => ("no call", None),
            Call::Calling { peer } => ("calling", Some(peer)),
            Call::Ringing { peer } => ("called by", Some(peer)),
            Call::Up { peer, .. } => ("in a call with", Some(peer)),
        };
        let registered = if self.is_registered { "registered" } else { "not registered" };
        let peer_text = peer.map_or_else(String::new, |peer| format!(" {}", clean(peer)));
        let text = format!(
            "{} {registered}, {state}{peer_text}; notes: {}, packets heard: {}",
            self.number,
            self.notes.len(),
            self.phone.heard()
        );
        let event = json!({"event": "status", "registered": self.is_registered, "call": state, "peer": peer,
            "notes": self.notes.len(), "packets_heard": self.phone.heard()});
        self.console.tell(&event, &text);
    }

    fn prompt(&mut self) {
        let up = self.notes.iter().enumerate().filter(|(_, entry)| entry.is_up);
        let banners: String = up.map(|(at, entry)| self.console.view.banner(&entry.note, at + 1)).collect();
        self.console.prompt(&banners);
    }

    async fn wait(&mut self, condition: &Condition, limit: Duration) -> Result<(), String> {
        let deadline = Instant::now() + limit;
        loop {
            if self.holds(condition) {
                return Ok(());
            }
            if let (Condition::Up, Call::Idle, Some((status, reason))) =
                (condition, &self.call, &self.last_call)
            {
                return Err(format!("the call ended with {status} {}", clean(reason)));
            }
            if Instant::now() >= deadline {
                return Err(format!("within {limit:?} it did not come about that {condition}"));
            }
            // Received packets cause no events, so they are counted at intervals.
            self.go_on_until(deadline.min(Instant::now() + LOOK_EVERY)).await;
        }
    }

    fn holds(&mut self, condition: &Condition) -> bool {
        match condition {
            Condition::Heard(count) => self.phone.heard() >= *count,
            Condition::Idle => matches!(self.call, Call::Idle),
            Condition::Note(title) => {
                let fits =
                    |entry: &Entry| title.as_ref().is_none_or(|title| entry.note.title.contains(title));
                let next = self.notes.iter().skip(self.waited).position(fits);
                self.waited += next.map_or(0, |at| at + 1);
                next.is_some()
            }
            Condition::Registered => self.is_registered,
            Condition::Ringing => matches!(self.call, Call::Ringing { .. }),
            Condition::Up => matches!(self.call, Call::Up { .. }),
        }
    }

    fn expect(&self, expectation: &Expectation) -> Result<(), String> {
        let differs = |what: &str| Err(format!("it is {what}"));
        match expectation {
            Expectation::Ack(status) => match self.last_ack {
                Some(last) if last == *status => Ok(()),
                Some(last) => differs(&last.to_string()),
                None => Err("nothing was acknowledged".to_owned()),
            },
            Expectation::Call(status) => match &self.last_call {
                Some((last, _)) if last == status => Ok(()),
                Some((last, reason)) => differs(&format!("{last} {}", clean(reason))),
                None => Err("no call has ended".to_owned()),
            },
            Expectation::Notes(count) if *count == self.notes.len() => Ok(()),
            Expectation::Notes(_) => differs(&self.notes.len().to_string()),
            Expectation::Note(path, expected) => {
                let at = self.waited.checked_sub(1).unwrap_or(self.notes.len().saturating_sub(1));
                let entry = self.notes.get(at).ok_or("no note has come yet")?;
                match field(&entry.note.exact, path).as_ref().map(plain) {
                    Some(value) if value == *expected => Ok(()),
                    Some(value) => differs(&format!("\"{}\"", clean(&value))),
                    None => Err(format!("the note has no \"{path}\"")),
                }
            }
        }
    }
}

/// A field by its path: names, and array positions from 1, separated by dots.
fn field(value: &ExactJson, path: &str) -> Option<ExactJson> {
    let member = |value: &ExactJson, wanted: &str| {
        value.members()?.into_iter().find(|(name, _)| name == wanted).map(|(_, value)| value)
    };
    member(value, path).or_else(|| {
        path.split('.').try_fold(value.clone(), |value, part| match value.items() {
            Some(mut items) => {
                let at = part.parse::<usize>().ok()?.checked_sub(1)?;
                (at < items.len()).then(|| items.swap_remove(at))
            }
            None => member(&value, part),
        })
    })
}

fn error_text(error: PhoneError) -> String {
    format!("failed to {error}")
}

/// How long the switch may take to answer a REGISTER.
const REGISTER_MAX: Duration = Duration::from_secs(8);
/// A shorter granted duration is not renewed more often than this.
const RENEW_MIN: Duration = Duration::from_secs(5);
const RENEW_RETRY: Duration = Duration::from_secs(10);
/// How long the switch may take to answer an acknowledgement.
const ACK_MAX: Duration = Duration::from_secs(8);
/// How long a phone tries to unregister at the end.
const FAREWELL_MAX: Duration = Duration::from_secs(2);
/// How often packets are counted during a wait.
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_path() {
        let note = br#"{"title": "t", "owes": {"EUR": 900.00}, "items": [{"no": 17}], "a.b": 1}"#;
        let note = ExactJson::object(note).unwrap();
        let cases = [
            ("title", Some("t")),
            ("owes.EUR", Some("900.00")),
            ("items.1.no", Some("17")),
            ("a.b", Some("1")),
        ];
        for (path, expected) in cases {
            assert_eq!(field(&note, path).as_ref().map(plain).as_deref(), expected, "{path}");
        }
        for path in ["none", "items.0.no", "items.2.no", "title.x"] {
            assert_eq!(field(&note, path), None, "{path}");
        }
    }
}
