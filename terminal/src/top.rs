//! The live view: four tables and the page of a call, read from the HTTP API every second.
//!
//! A state machine without I/O. It sends one request at a time, and abandons a request after five seconds. After a
//! lost connection it tries again after one second, then at growing intervals of up to ten seconds. The figures of
//! each call cost one request, so only those of a few calls are read each second, the longest unread first.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use serde_json::Value;
use sidetone_model::time::Timestamp;

use crate::asks::{Ask, Failure, Fetch, Over, View};
use crate::call_page::{CallFacts, Summary, call_page, states};
use crate::clean::clean;
use crate::json::{duration, instant, list, or_dash, raw, text};
use crate::key::Key;
use crate::ladder::{LadderMessage, messages};
use crate::list::List;
use crate::screen::{Body, Column, Line, Screen, Tone};
use crate::{calls, registrations, rooms, trunks};

/// An input of the live view.
#[derive(Debug)]
pub enum Input {
    /// The response to the request with that number.
    Answer(u64, Result<Value, Failure>),
    /// A key.
    Key(Key),
    /// The time of [`Top::next_timeout`] is reached.
    Timeout,
}

/// A request of the live view to its caller.
#[derive(Debug, PartialEq, Eq)]
pub enum Output {
    /// Everything was read once, or failed; only without a terminal.
    Done,
    /// Send a request to the API.
    Fetch(Fetch),
    /// The user quits.
    Quit,
}

/// The live view of a server.
#[derive(Debug)]
pub struct Top {
    server: String,
    /// Reads everything once, for plain text output.
    once: bool,
    /// An instant and its wall-clock time.
    anchor: (Instant, Timestamp),
    view: View,
    tables: [Table; 4],
    /// The figures of calls, by call.
    summaries: HashMap<String, Summary>,
    /// The states of trunks, by trunk.
    statuses: HashMap<String, Value>,
    /// When figures or a state were last requested, by call or trunk.
    asked: HashMap<String, Instant>,
    page: Option<Page>,
    link: Link,
    /// The requests of this round that are not sent yet.
    queue: VecDeque<Ask>,
    /// The unanswered request, and its deadline.
    awaited: Option<(u64, Ask, Instant)>,
    /// When the next round begins.
    round_at: Instant,
    /// Requests of this round.
    round_asks: u32,
    number: u64,
    outputs: VecDeque<Output>,
}

/// One of the tables.
#[derive(Debug, Default)]
struct Table {
    list: List,
    items: Vec<Value>,
    /// The pages that the current read has returned so far.
    gathered: Vec<Value>,
    /// When it was last read completely.
    read_at: Option<Instant>,
    /// Number of items on the server; more than are shown if there are very many.
    total: u64,
    /// Why the server refuses it.
    refused: Option<String>,
}

/// The page of a call.
#[derive(Debug)]
struct Page {
    call: Value,
    uuid: String,
    quality: Value,
    ladder: Vec<LadderMessage>,
    ladder_asked: Option<Instant>,
    no_ladder: String,
    state: CallState,
    scroll: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallState {
    Live,
    /// The call has ended, and its final figures are not available yet.
    Over,
    /// These are its final figures.
    Final,
}

/// The state of the connection.
#[derive(Debug)]
enum Link {
    /// Nothing was read yet.
    New,
    Up(Instant),
    /// Since when, why, and the number of failed attempts.
    Lost(Instant, String, u32),
}

impl Top {
    /// A live view of `server`, whose name is shown. `wall` is the wall-clock time at `now`. With `once`, everything
    /// is read once, for [`Top::screens`].
    pub fn new(server: &str, once: bool, now: Instant, wall: Timestamp) -> Self {
        let mut top = Top {
            server: clean(server),
            once,
            anchor: (now, wall),
            view: View::Calls,
            tables: Default::default(),
            summaries: HashMap::new(),
            statuses: HashMap::new(),
            asked: HashMap::new(),
            page: None,
            link: Link::New,
            queue: VecDeque::new(),
            awaited: None,
            round_at: now,
            round_asks: 0,
            number: 0,
            outputs: VecDeque::new(),
        };
        if once {
            top.queue = View::ALL.map(|view| Ask::List(view, String::new())).into();
        }
        top.pump(now);
        top
    }

    /// Handles a key, a response, or a timeout.
    pub fn handle_input(&mut self, now: Instant, input: Input) {
        match input {
            Input::Answer(number, result) => match self.awaited.take() {
                Some((awaited, ask, _)) if awaited == number => self.answered(now, ask, result),
                // The response to an abandoned request.
                other => self.awaited = other,
            },
            Input::Key(key) => self.key(now, key),
            Input::Timeout => {
                if let Some((_, ask, _)) = self.awaited.take_if(|(_, _, until)| *until <= now) {
                    let reason = format!("no answer within {} s", ANSWER_MAX.as_secs());
                    self.failed(now, ask, Failure::unreachable(reason));
                }
            }
        }
        self.pump(now);
    }

    /// Returns the next output; drain after every input.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns when to feed [`Input::Timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        Some(self.awaited.as_ref().map_or(self.round_at, |(_, _, until)| *until))
    }

    /// Why the server could not be read; `None` if it could.
    pub fn problem(&self) -> Option<&str> {
        match &self.link {
            Link::Lost(_, reason, _) => Some(reason),
            Link::New | Link::Up(_) => None,
        }
    }

    /// Sends the next request, and begins a round when it is due.
    fn pump(&mut self, now: Instant) {
        if self.awaited.is_some() {
            return;
        }
        if self.queue.is_empty() && self.once && !self.outputs.contains(&Output::Done) {
            self.outputs.push_back(Output::Done);
        }
        if self.queue.is_empty() && !self.once && now >= self.round_at {
            self.plan(now);
            (self.round_at, self.round_asks) = (now + ROUND_EVERY, 0);
        }
        if let Some(ask) = self.queue.pop_front() {
            self.number += 1;
            self.round_asks += 1;
            // A round of many pages takes longer, so that the key's rate limit is not exceeded.
            if self.round_asks > ROUND_ASKS {
                self.round_at += ROUND_EVERY / ROUND_ASKS;
            }
            self.outputs.push_back(Output::Fetch(Fetch { number: self.number, path: ask.path() }));
            self.awaited = Some((self.number, ask, now + ANSWER_MAX));
        }
    }

    /// The requests of a round: the view or the page that is shown, and at intervals the other views.
    fn plan(&mut self, now: Instant) {
        let is_due = |at: Option<Instant>| at.is_none_or(|at| now >= at + OTHERS_EVERY);
        if let Some(page) = &mut self.page {
            match page.state {
                CallState::Live => self.queue.push_back(Ask::Quality(page.uuid.clone(), true)),
                CallState::Over => self.queue.push_back(Ask::Record(page.uuid.clone())),
                CallState::Final => {}
            }
            if is_due(page.ladder_asked) {
                page.ladder_asked = Some(now);
                let over = Over(page.state != CallState::Live);
                self.queue.push_back(Ask::Signalling(page.uuid.clone(), over));
            }
        }
        for (view, table) in View::ALL.into_iter().zip(&self.tables) {
            let is_shown = view == self.view && self.page.is_none();
            if is_shown || is_due(table.read_at) {
                self.queue.push_back(Ask::List(view, String::new()));
            }
        }
        let shown = Ask::List(self.view, String::new());
        // Data that is shown comes first.
        self.queue.make_contiguous().sort_by_key(|ask| matches!(ask, Ask::List(..)) && *ask != shown);
    }

    fn key(&mut self, now: Instant, key: Key) {
        if key == Key::Interrupt {
            self.outputs.push_back(Output::Quit);
            return;
        }
        let wall = self.wall(now);
        if let Some(page) = &mut self.page {
            match scrolled(page.scroll, page.lines(wall).len(), key) {
                Some(scroll) => page.scroll = scroll,
                None if matches!(key, Key::Escape | Key::Left | Key::Backspace) => {
                    self.go(now, None, self.view)
                }
                None if key == Key::Char('q') => self.outputs.push_back(Output::Quit),
                None => {}
            }
            return;
        }
        if self.table().list.key(key) {
            return;
        }
        match key {
            Key::Char('q') => self.outputs.push_back(Output::Quit),
            Key::Tab | Key::Right => self.go(now, None, self.view.after(1)),
            Key::BackTab | Key::Left => self.go(now, None, self.view.after(View::ALL.len() - 1)),
            Key::Char(digit @ '1'..='4') => {
                let place = usize::try_from(u32::from(digit) - u32::from('1')).unwrap_or_default();
                self.go(now, None, View::Calls.after(place));
            }
            Key::Enter if self.view == View::Calls => {
                let table = self.table();
                let uuid = table.list.selected().unwrap_or_default().to_owned();
                let call = table.items.iter().find(|call| raw(call, "uuid") == uuid).cloned();
                if let Some(call) = call {
                    self.go(now, Some(Page::of(uuid, call)), self.view);
                }
            }
            _ => {}
        }
    }

    /// Shows a page or a view, and reads it immediately.
    fn go(&mut self, now: Instant, page: Option<Page>, view: View) {
        (self.page, self.view) = (page, view);
        // For a lost connection, the time of the next attempt stays.
        if !matches!(self.link, Link::Lost(..)) {
            self.queue.clear();
            self.round_at = now;
        }
    }

    fn answered(&mut self, now: Instant, ask: Ask, result: Result<Value, Failure>) {
        let answer = match result {
            Ok(answer) => answer,
            Err(failure) => return self.failed(now, ask, failure),
        };
        self.link = Link::Up(now);
        match ask {
            Ask::List(view, _) => self.listed(now, view, &answer),
            Ask::Quality(uuid, _) => {
                self.summaries.insert(uuid.clone(), Summary::of(&answer));
                self.on_page(&uuid, |page| page.quality = answer);
            }
            Ask::Record(uuid) => self.on_page(&uuid, |page| {
                (page.quality, page.state) = (answer, CallState::Final);
                // So that its last messages are read.
                page.ladder_asked = None;
            }),
            Ask::Signalling(uuid, _) => self.on_page(&uuid, |page| page.ladder = messages(&answer)),
            Ask::TrunkStatus(id) => drop(self.statuses.insert(id, answer)),
        }
        self.fill(now);
    }

    /// Handles a page of a list; after the last page, requests further data of its items.
    fn listed(&mut self, now: Instant, view: View, answer: &Value) {
        let is_shown = self.once || (view == self.view && self.page.is_none());
        let Some(table) = self.tables.get_mut(view.place()) else { return };
        table.refused = None;
        table.gathered.extend_from_slice(list(answer, "items"));
        let next = raw(answer, "next_cursor");
        if !next.is_empty() && !list(answer, "items").is_empty() && table.gathered.len() < ITEMS_MAX {
            self.queue.push_front(Ask::List(view, next.to_owned()));
            return;
        }
        table.items = std::mem::take(&mut table.gathered);
        let count = u64::try_from(table.items.len()).unwrap_or(u64::MAX);
        table.total = answer.get("total").and_then(Value::as_u64).unwrap_or_default().max(count);
        table.read_at = Some(now);
        if is_shown {
            self.ask_behind(now, view);
        }
        self.forget();
    }

    /// Requests the figures of calls, or the state of trunks: those requested the longest time ago.
    fn ask_behind(&mut self, now: Instant, view: View) {
        let Some(table) = self.tables.get(view.place()) else { return };
        let mut ids: Vec<String> = match view {
            View::Calls => {
                let up = table.items.iter().filter(|call| raw(call, "state") == "answered");
                up.map(|call| raw(call, "uuid").to_owned()).collect()
            }
            View::Rooms => {
                let members = table.items.iter().flat_map(|room| list(room, "members"));
                members.map(|member| raw(member, "call_uuid").to_owned()).collect()
            }
            View::Trunks => table.items.iter().map(|trunk| raw(trunk, "id").to_owned()).collect(),
            View::Registrations => return,
        };
        let is_known = |id: &String| self.once && self.asked.contains_key(id);
        ids.retain(|id| !id.is_empty() && !is_known(id));
        ids.sort_by_key(|id| self.asked.get(id).copied());
        ids.truncate(if self.once { BEHIND_ONCE } else { BEHIND_EACH_ROUND });
        for id in ids {
            self.asked.insert(id.clone(), now);
            self.queue.push_back(match view {
                View::Trunks => Ask::TrunkStatus(id),
                _ => Ask::Quality(id, false),
            });
        }
    }

    /// Drops the figures of calls and trunks that no longer exist, so that they do not accumulate over days.
    fn forget(&mut self) {
        let id = |value: &Value, key: &str| raw(value, key).to_owned();
        let mut known: HashSet<String> = self.page.iter().map(|page| page.uuid.clone()).collect();
        let [calls, _, rooms, trunks] = &self.tables;
        known.extend(calls.items.iter().map(|call| id(call, "uuid")));
        known.extend(trunks.items.iter().map(|trunk| id(trunk, "id")));
        let members = rooms.items.iter().flat_map(|room| list(room, "members"));
        known.extend(members.map(|member| id(member, "call_uuid")));
        self.summaries.retain(|id, _| known.contains(id));
        self.statuses.retain(|id, _| known.contains(id));
        self.asked.retain(|id, _| known.contains(id));
    }

    fn failed(&mut self, now: Instant, ask: Ask, failure: Failure) {
        let Failure { status, reason, retry_after } = failure;
        let reason = clean(&reason);
        match (status, ask) {
            // The call ended; its record follows.
            (Some(404), Ask::Quality(uuid, _)) => {
                self.summaries.remove(&uuid);
                self.on_page(&uuid, |page| page.state = CallState::Over);
            }
            // Not stored yet: a record takes up to a second.
            (Some(404), Ask::Record(_)) => {}
            (Some(404), Ask::Signalling(uuid, _)) => {
                self.on_page(&uuid, |page| page.no_ladder = NOT_KEPT.to_owned());
            }
            (Some(403), Ask::Signalling(uuid, _) | Ask::Record(uuid) | Ask::Quality(uuid, _)) => {
                self.on_page(&uuid, |page| page.no_ladder = reason);
            }
            // Nodes without calls have no state of trunks.
            (Some(403 | 404), Ask::TrunkStatus(_)) => {}
            (Some(403), Ask::List(view, _)) => {
                if let Some(table) = self.tables.get_mut(view.place()) {
                    table.refused = Some(reason);
                    (table.items, table.read_at) = (Vec::new(), Some(now));
                    table.gathered.clear();
                }
            }
            (status, _) => return self.lost(now, status, reason, retry_after),
        }
        self.link = Link::Up(now);
        self.fill(now);
    }

    fn lost(&mut self, now: Instant, status: Option<u16>, reason: String, retry_after: Option<Duration>) {
        let (since, attempts) = match &self.link {
            Link::Lost(since, _, attempts) => (*since, attempts.saturating_add(1)),
            Link::New | Link::Up(_) => (now, 1),
        };
        let slower = ROUND_EVERY.saturating_mul(2_u32.saturating_pow(attempts.saturating_sub(1)));
        let wait = match retry_after {
            Some(asked) => asked.clamp(ROUND_EVERY, ASKED_MAX),
            None => slower.min(RETRY_MAX),
        };
        let reason = match status {
            Some(401) => format!("{reason}; check the key"),
            Some(404) => format!("{reason}; check that the URL is that of a Sidetone server"),
            _ => reason,
        };
        self.link = Link::Lost(since, reason, attempts);
        self.queue.clear();
        self.tables.iter_mut().for_each(|table| table.gathered.clear());
        self.round_at = now + wait;
    }

    fn on_page(&mut self, uuid: &str, change: impl FnOnce(&mut Page)) {
        if let Some(page) = self.page.as_mut().filter(|page| page.uuid == uuid) {
            change(page);
        }
    }

    /// Rebuilds the rows of every table.
    fn fill(&mut self, now: Instant) {
        let wall = self.wall(now);
        let [calls, registrations, rooms, trunks] = &mut self.tables;
        calls.list.set(calls::rows(&calls.items, &self.summaries, wall));
        registrations.list.set(registrations::rows(&registrations.items, wall));
        rooms.list.set(rooms::rows(&rooms.items, &self.summaries, wall));
        trunks.list.set(trunks::rows(&trunks.items, &self.statuses));
    }

    fn table(&mut self) -> &mut Table {
        let [calls, registrations, rooms, trunks] = &mut self.tables;
        match self.view {
            View::Calls => calls,
            View::Registrations => registrations,
            View::Rooms => rooms,
            View::Trunks => trunks,
        }
    }

    fn wall(&self, now: Instant) -> Timestamp {
        let (then, wall) = self.anchor;
        let passed = i64::try_from(now.saturating_duration_since(then).as_micros()).unwrap_or_default();
        Timestamp::from_micros(wall.as_micros().saturating_add(passed))
    }

    /// Returns the current screen.
    pub fn screen(&self, now: Instant) -> Screen {
        match &self.page {
            None => self.view_screen(now, self.view),
            Some(page) => {
                let lines = page.lines(self.wall(now));
                let scroll = page.scroll.min(lines.len().saturating_sub(1));
                Screen {
                    title: self.title(),
                    tabs: Vec::new(),
                    tab: 0,
                    status: self.status(now, None),
                    body: Body::Page(lines, scroll),
                    footer: "Esc back  arrows scroll  q quit".to_owned(),
                }
            }
        }
    }

    /// Returns the screens of all views, for plain text output.
    pub fn screens(&self, now: Instant) -> Vec<Screen> {
        View::ALL.map(|view| self.view_screen(now, view)).into()
    }

    fn title(&self) -> String {
        format!("sidetone top  {}", self.server)
    }

    fn view_screen(&self, now: Instant, view: View) -> Screen {
        let empty = Table::default();
        let table = self.tables.get(view.place()).unwrap_or(&empty);
        let footer = match (table.list.is_typing(), table.list.filter()) {
            (true, filter) => format!("/{filter}_   Enter keeps the filter, Esc clears it"),
            (false, "") => "Tab views  arrows rows  / filter  Enter call  q quit".to_owned(),
            (false, filter) => format!("filter {filter}   Esc clears it  Tab views  q quit"),
        };
        let tabs = View::ALL.into_iter().zip(&self.tables).map(|(view, table)| match table.read_at {
            Some(_) if table.refused.is_none() => format!("{} {}", view.name(), table.total),
            _ => view.name().to_owned(),
        });
        Screen {
            title: self.title(),
            tabs: tabs.collect(),
            tab: view.place(),
            status: self.status(now, Some(view)),
            body: Body::List(table.list.body(columns(view), &table.why_empty(view))),
            footer,
        }
    }

    fn status(&self, now: Instant, view: Option<View>) -> (Tone, String) {
        match &self.link {
            Link::New => (Tone::Dim, "reading".to_owned()),
            Link::Up(at) => {
                let time = self.wall(*at).to_string();
                let table = view.and_then(|view| self.tables.get(view.place()));
                let hidden = |table: &Table| {
                    table.total.saturating_sub(u64::try_from(table.list.len()).unwrap_or(u64::MAX))
                };
                let more = match table.map_or(0, hidden) {
                    0 => String::new(),
                    more => format!(", {more} more are not shown"),
                };
                (Tone::Dim, format!("read at {} UTC{more}", time.get(11..19).unwrap_or(&time)))
            }
            Link::Lost(since, reason, _) => {
                let lost = now.saturating_duration_since(*since).as_secs();
                let next = self.round_at.saturating_duration_since(now).as_secs_f64().ceil();
                let again =
                    if self.once { String::new() } else { format!("; the next attempt is in {next:.0} s") };
                (Tone::Bad, format!("lost for {lost} s: {reason}{again}"))
            }
        }
    }
}

impl Table {
    /// The text of the table when it has no rows.
    fn why_empty(&self, view: View) -> String {
        match (&self.refused, self.read_at) {
            (Some(reason), _) => format!("The server does not show this: {reason}"),
            (None, None) => "Not read yet.".to_owned(),
            (None, Some(_)) => match view {
                View::Calls => "No call is up.",
                View::Registrations => "No phone is registered.",
                View::Rooms => "No room is live.",
                View::Trunks => "There is no trunk.",
            }
            .to_owned(),
        }
    }
}

impl Page {
    fn of(uuid: String, call: Value) -> Self {
        Page {
            call,
            uuid,
            quality: Value::Null,
            ladder: Vec::new(),
            ladder_asked: None,
            no_ladder: "The SIP messages are not read yet.".to_owned(),
            state: CallState::Live,
            scroll: 0,
        }
    }

    fn lines(&self, wall: Timestamp) -> Vec<Line> {
        let (from, to) = (or_dash(text(&self.call, "caller")), or_dash(text(&self.call, "destination")));
        let state = match self.state {
            CallState::Live => {
                format!(
                    "{}, begun {} ago",
                    states(&self.call),
                    duration(instant(&self.call, "started_at"), wall)
                )
            }
            CallState::Over => "over; its final figures follow".to_owned(),
            CallState::Final => "over; these are its final figures".to_owned(),
        };
        let facts = CallFacts {
            heading: format!("{from} -> {to}   {state}   {}", clean(&self.uuid)),
            quality: self.quality.clone(),
            ladder: self.ladder.clone(),
            no_ladder: self.no_ladder.clone(),
            is_unannounced: false,
        };
        call_page(&facts)
    }
}

/// The scroll position of a page with this many lines after a key; `None` for a key that does not scroll.
pub(crate) fn scrolled(scroll: usize, lines: usize, key: Key) -> Option<usize> {
    let last = lines.saturating_sub(1);
    let to = match key {
        Key::Up | Key::Char('k') => scroll.saturating_sub(1),
        Key::Down | Key::Char('j') => scroll.saturating_add(1),
        Key::PageUp => scroll.saturating_sub(PAGE_LINES),
        Key::PageDown => scroll.saturating_add(PAGE_LINES),
        Key::Home | Key::Char('g') => 0,
        Key::End | Key::Char('G') => last,
        _ => return None,
    };
    Some(to.min(last))
}

fn columns(view: View) -> &'static [Column] {
    match view {
        View::Calls => &calls::COLUMNS,
        View::Registrations => &registrations::COLUMNS,
        View::Rooms => &rooms::COLUMNS,
        View::Trunks => &trunks::COLUMNS,
    }
}

/// How often the shown data is read.
const ROUND_EVERY: Duration = Duration::from_secs(1);
/// How often the other views are read.
const OTHERS_EVERY: Duration = Duration::from_secs(5);
/// How long a response may take.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// The longest time between two attempts after a lost connection.
const RETRY_MAX: Duration = Duration::from_secs(10);
/// The longest wait that a server can request: the API counts requests per minute.
const ASKED_MAX: Duration = Duration::from_secs(60);
/// Requests in a round of one second: 540 of the 600 a minute that a key may send by default.
const ROUND_ASKS: u32 = 9;
/// Calls or trunks whose figures are read in one round.
const BEHIND_EACH_ROUND: usize = 4;
/// The same for plain text output.
const BEHIND_ONCE: usize = 100;
/// Maximum items of one table.
const ITEMS_MAX: usize = 5_000;
/// Lines that a page key scrolls.
const PAGE_LINES: usize = 15;
const NOT_KEPT: &str = "No SIP messages are kept of this call.";
