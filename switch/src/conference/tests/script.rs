//! Runs text scripts: inputs to rooms in one text, their outputs in another.

use std::fmt::Write as _;
use std::time::Duration;

use expect_test::Expect;
use sidetone_model::call::HangupCause;
use sidetone_model::prompt::SoundName;
use sidetone_model::room::event::{MemberChange, MergedBy, RoomChange};
use sidetone_model::room::{
    Control, DialKind, DialRequest, GainChange, MemberGain, PlayingSound, Role, RoomConfig, RoomName,
};

use crate::conference::tests::world::{ACME, ROOM, World, directory, exempt, extension, pin, plain};
use crate::conference::{DeviceId, DialEnd, DialId, Goal, Hears, Input, NameOrder, Output, RoomsConfig};

/// Runs a script on the room that its first line describes, and compares the outputs.
pub(super) fn check(script: &str, expected: Expect) {
    expected.assert_eq(&run(script));
}

pub(super) fn run(script: &str) -> String {
    let mut lines = script.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap();
    let room = room(first);
    let mut scene = Scene {
        shows_notes: first.ends_with(" notes"),
        world: World::new(&[room], RoomsConfig::default(), 7),
        mixes: Vec::new(),
        text: String::new(),
    };
    for line in lines {
        writeln!(scene.text, "{line}").unwrap();
        scene.step(line);
    }
    scene.text
}

/// Parses `room pin=1234 mod=9876 waits ends record max=3 exempt=ada:moderator member=bob notes`; `notes` at
/// the end shows the notes.
pub(super) fn room(text: &str) -> RoomConfig {
    let mut room = plain();
    let mut words = text.split_whitespace();
    assert_eq!(words.next(), Some("room"));
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("pin", digits) => room.participant_pin = pin(digits),
            ("mod", digits) => room.moderator_pin = pin(digits),
            ("waits", _) => room.wait_for_moderator = true,
            ("ends", _) => room.end_when_moderator_leaves = true,
            ("record", "2") => (room.record, room.record_channels) = (true, 2),
            ("record", _) => room.record = true,
            ("names", _) => room.announce_names = true,
            ("notes", _) => {}
            ("max", most) => room.max_members = most.parse().unwrap(),
            ("member", name) => room.members.push(extension(name).unwrap()),
            ("exempt", who) => {
                let (name, role) = who.split_once(':').unwrap();
                room.exemptions.push(exempt(name, Role::from_name(role).unwrap()));
            }
            other => panic!("a room has no {other:?}"),
        }
    }
    room
}

struct Scene {
    world: World,
    shows_notes: bool,
    /// The mixes, in the order of first use.
    mixes: Vec<u64>,
    text: String,
}

impl Scene {
    fn step(&mut self, line: &str) {
        let words: Vec<_> = line.split_whitespace().collect();
        let name = RoomName::Stored(ROOM);
        let world = &mut self.world;
        match words.as_slice() {
            ["wait", time] => return self.pass(time),
            ["room", ..] => world.feed(Input::Directory(directory(&[room(line)]))),
            ["no", "room"] => world.feed(Input::Directory(directory(&[]))),
            ["lock"] => self.control(Control::Lock),
            ["unlock"] => self.control(Control::Unlock),
            ["mute-all"] => self.control(Control::MuteAll),
            ["end"] => self.control(Control::End),
            ["record", "on", channels] => {
                self.control(Control::RecordChannels(channels.parse().unwrap()));
                self.write();
                self.control(Control::Record(true));
            }
            ["record", on] => self.control(Control::Record(*on == "on")),
            ["mute", id] => self.control(Control::Mute(id.parse().unwrap())),
            ["unmute", id] => self.control(Control::Unmute(id.parse().unwrap())),
            ["mute-locked", id] => self.control(Control::MuteLocked(id.parse().unwrap())),
            ["deaf", id, on] => self.control(Control::Deaf(id.parse().unwrap(), *on == "on")),
            ["hold", id, on] => self.control(Control::Hold(id.parse().unwrap(), *on == "on")),
            ["gain", id, decibels] => {
                let automatic_gain = (*decibels == "auto").then_some(true);
                let change = GainChange { gain_db: decibels.parse().ok(), automatic_gain };
                self.control(Control::Gain(id.parse().unwrap(), change));
            }
            ["whisper", id, to] => self.control(Control::Whisper(id.parse().unwrap(), to.parse().ok())),
            ["play", name, millis, to @ ..] => {
                let prompt = SoundName::from_name(name).unwrap();
                let member = to.first().map(|to| to.parse().unwrap());
                let sound = PlayingSound { prompt, member };
                self.control(Control::Play { sound, duration_ms: millis.parse().unwrap() });
            }
            ["stop-sound"] => self.control(Control::StopSound),
            ["kick", id] => self.control(Control::Kick(id.parse().unwrap())),
            ["dial", id, "rings"] => world.feed(Input::Ringing(DialId(id.parse().unwrap()))),
            ["dial", target, role, confirm @ ..] if *role != "ends" => {
                let kind = if target.starts_with('+') { DialKind::External } else { DialKind::Extension };
                let role = Role::from_name(role).unwrap();
                let request =
                    DialRequest { kind, target: (*target).to_owned(), role, confirm: confirm == ["confirm"] };
                let done = world.dial(request).map(|dialled| dialled.target);
                writeln!(self.text, "    = {}", done.unwrap_or_else(|refused| refused.to_string())).unwrap();
            }
            ["dial", id, "ends", end] => {
                let end = match *end {
                    "busy" => DialEnd::Busy,
                    "declined" => DialEnd::Declined,
                    "unanswered" => DialEnd::NoAnswer,
                    "unregistered" => DialEnd::Unregistered,
                    status => DialEnd::Status(status.parse().unwrap()),
                };
                world.feed(Input::DialFailed { dial: DialId(id.parse().unwrap()), end });
            }
            ["recorded", bytes, error @ ..] => {
                let session = self.session();
                let error = (!error.is_empty()).then(|| error.join(" "));
                self.world.feed(Input::Recorded { session, bytes: bytes.parse().unwrap(), error });
            }
            ["show"] => {
                let seen = world.rooms.live_room(world.now.wall, name);
                writeln!(self.text, "    {}", seen.map_or("nobody".into(), |room| shown(&room))).unwrap();
            }
            [who, "is", "free"] => world.feed(Input::Free(extension(who).unwrap())),
            [who, "dials"] => world.feed(Input::Arrived(World::arrival(who, Goal::Room(ROOM)))),
            [who, "asks"] => world.feed(Input::Arrived(World::arrival(who, Goal::Ask))),
            [who, "answers", dial] => {
                let goal = Goal::Dialled { dial: DialId(dial.parse().unwrap()) };
                world.feed(Input::Arrived(World::arrival(who, goal)));
            }
            [who, "merges", a, b] => {
                let calls = [a, b].map(|name| World::leg(name).0.into());
                let goal = Goal::Merged {
                    room: RoomName::Merged(calls[0]),
                    calls,
                    by: MergedBy::new(None, extension("ada")),
                };
                world.feed(Input::Arrived(World::arrival(who, goal)));
            }
            [who, "keys", digits] => {
                for digit in digits.chars() {
                    self.world.feed(Input::Digit(World::leg(who), digit));
                }
            }
            [who, "heard"] => {
                let token = world.up[&World::leg(who)].token;
                world.feed(Input::Played(World::leg(who), token));
            }
            [who, "is", "named"] => world.feed(Input::Name(World::leg(who), true)),
            [who, "is", "nameless"] => world.feed(Input::Name(World::leg(who), false)),
            [who, "gone"] => world.feed(Input::Gone(World::leg(who), HangupCause::NormalClearing)),
            [who, "is", "silent"] => world.feed(Input::Silent(World::leg(who), true)),
            [who, "sends", "again"] => world.feed(Input::Silent(World::leg(who), false)),
            [who, "dials", "on", device] => {
                let mut arrival = World::arrival(who, Goal::Room(ROOM));
                let owner = device.split('-').next().unwrap();
                arrival.extension = extension(owner);
                arrival.device = Some(DeviceId(device.bytes().map(u64::from).sum()));
                world.feed(Input::Arrived(arrival));
            }
            [who, "talks"] => world.feed(Input::Talking(World::leg(who), true)),
            [who, "stops"] => world.feed(Input::Talking(World::leg(who), false)),
            [who, "holds"] => world.feed(Input::Held(World::leg(who), true)),
            [who, "resumes"] => world.feed(Input::Held(World::leg(who), false)),
            other => panic!("no such step: {other:?}"),
        }
        self.write();
    }

    fn pass(&mut self, time: &str) {
        let time = match time.strip_suffix("ms") {
            Some(millis) => Duration::from_millis(millis.parse().unwrap()),
            None => Duration::from_secs(time.trim_end_matches('s').parse().unwrap()),
        };
        let until = self.world.now.instant + time;
        let start = self.world.now.instant;
        loop {
            let due = self.world.rooms.next_timeout().filter(|due| *due <= until);
            let to = due.unwrap_or(until);
            self.world.pass(to.saturating_duration_since(self.world.now.instant));
            if !self.world.outputs.is_empty() {
                writeln!(self.text, "  after {} ms", (self.world.now.instant - start).as_millis()).unwrap();
                self.write();
            }
            if due.is_none() {
                return;
            }
        }
    }

    fn control(&mut self, control: Control) {
        match self.world.control(RoomName::Stored(ROOM), control) {
            Ok(sidetone_model::room::ControlDone::Done) => {}
            Ok(done) => writeln!(self.text, "    = {done:?}").unwrap(),
            Err(refused) => writeln!(self.text, "    = {refused}").unwrap(),
        }
    }

    /// Returns the session that was recorded last.
    fn session(&self) -> sidetone_model::ids::ConferenceSessionId {
        let mut texts = self.text.lines().rev().filter_map(|line| line.trim().strip_prefix("record mix"));
        let session = texts.find_map(|line| line.split_once(" session ")).expect("something was recorded");
        session.1.split(' ').next().unwrap().parse().unwrap()
    }

    fn mix(&mut self, mix: u64) -> usize {
        let place = self.mixes.iter().position(|seen| *seen == mix);
        place.unwrap_or_else(|| {
            self.mixes.push(mix);
            self.mixes.len() - 1
        }) + 1
    }

    fn write(&mut self) {
        let mut outputs = std::mem::take(&mut self.world.outputs);
        outputs.retain(|output| self.shows_notes || !matches!(output, Output::Note(_)));
        for output in outputs {
            let line = self.line(&output);
            writeln!(self.text, "    {line}").unwrap();
        }
    }

    fn line(&mut self, output: &Output) -> String {
        let hears = |hears: &Hears| match hears {
            Hears::Music => "music",
            Hears::Nothing => "nothing",
            Hears::Room => "room",
        };
        let names = |prompts: &[sidetone_model::prompt::Prompt]| {
            prompts.iter().map(|prompt| prompt.as_str()).collect::<Vec<_>>().join(" ")
        };
        match output {
            Output::CancelDial(dial) => format!("cancel dial {}", dial.0),
            Output::Dial(dial) => {
                assert_eq!((dial.organisation, dial.room), (ACME, ROOM));
                let (number, name) = (&dial.caller_number, &dial.caller_name);
                format!("dial {} {} {} {} as {number} {name}", dial.id.0, dial.kind, dial.target, dial.role)
            }
            Output::DialFailed(failed) => {
                let status = failed.sip_status.map_or(String::new(), |status| format!(" {status}"));
                format!("{} does not join: {}{status}", failed.target, failed.cause)
            }
            Output::Doubt(leg) => format!("{} is doubted", World::name(*leg)),
            Output::Gain(leg, gain) => format!("{} has a gain of {}", World::name(*leg), self::gain(gain)),
            Output::HangUp(leg, HangupCause::NormalClearing) => format!("{} hung up", World::name(*leg)),
            Output::HangUp(leg, cause) => format!("{} hung up: {cause}", World::name(*leg)),
            Output::Hear(leg, what) => format!("{} hears {}", World::name(*leg), hears(what)),
            Output::Join { leg, mix, muted, hears: what, .. } => {
                let muted = if *muted { ", muted" } else { "" };
                format!("{} joins mix {}{muted}, hears {}", World::name(*leg), self.mix(mix.0), hears(what))
            }
            Output::Mute(leg, on) => {
                format!("{} is {}", World::name(*leg), if *on { "muted" } else { "heard" })
            }
            Output::Event(news) => format!("news {}: {}", news.revision, change(&news.what)),
            Output::Name(order) => match order {
                NameOrder::Find { leg, .. } => format!("the name of {} is looked for", World::name(*leg)),
                NameOrder::Forget(leg) => format!("the name of {} is forgotten", World::name(*leg)),
                NameOrder::Play { mix, leg, words, .. } => {
                    format!("mix {} is told the name of {} {words}", self.mix(mix.0), World::name(*leg))
                }
                NameOrder::Record { mix, leg, extension, .. } => {
                    let kept = if extension.is_some() { "" } else { " for now" };
                    format!("{} speaks its name in mix {}{kept}", World::name(*leg), self.mix(mix.0))
                }
            },
            Output::Note(note) => {
                let members: Vec<_> = note.to.iter().map(|phone| phone.member.to_string()).collect();
                format!("note to {}: {}", members.join(","), serde_json::to_string(&note.payload).unwrap())
            }
            Output::PinGuessing(guessing) => format!("PINs are guessed: {}", guessing.limit),
            Output::Play(leg, prompts, _) => format!("{} is told {}", World::name(*leg), names(prompts)),
            Output::PlayAll(mix, _, prompts) => format!("mix {} is told {}", self.mix(mix.0), names(prompts)),
            Output::PlaySound { mix, leg, sound, .. } => match leg {
                None => format!("mix {} hears {sound}", self.mix(mix.0)),
                Some(leg) => format!("{} alone hears {sound}", World::name(*leg)),
            },
            Output::StopSound(mix, None) => format!("mix {} hears no sound", self.mix(mix.0)),
            Output::StopSound(_, Some(leg)) => format!("{} hears no sound", World::name(*leg)),
            Output::Record(mix, session, _) => format!("record mix {} session {session}", self.mix(mix.0)),
            Output::RecordChannels(mix, session, _) => {
                format!("record mix {} session {session} on two channels", self.mix(mix.0))
            }
            Output::Left(leg, left) => {
                format!("{} is on the {}", World::name(*leg), if *left { "left" } else { "right" })
            }
            Output::RecordingFailed(failed) => {
                format!("the recording failed with {} bytes: {}", failed.bytes, failed.error)
            }
            Output::Seek(leg, room) => format!("{} seeks the node of {room}", World::name(*leg)),
            Output::StopPlaying(leg) => format!("{} is told no more", World::name(*leg)),
            Output::StopRecording(mix) => format!("record mix {} no more", self.mix(mix.0)),
            Output::Whisper(leg, to) => {
                format!("{} is heard by {}", World::name(*leg), to.map_or("all".into(), World::name))
            }
        }
    }
}

fn change(what: &RoomChange) -> String {
    match what {
        RoomChange::AllMuted(on) => format!("all muted {on}"),
        RoomChange::Ended => "ended".into(),
        RoomChange::Invited(invite) => {
            let reason = invite.last_reason.to_string();
            format!("invite {} {} {reason}", invite.name, invite.state).trim_end().into()
        }
        RoomChange::Joined(person) => {
            format!("{} joined as {} {}", World::name(person.leg), person.role, person.member)
        }
        RoomChange::Left { member, cause, talked_ms } => {
            let cause =
                if *cause == HangupCause::NormalClearing { String::new() } else { format!(" {cause}") };
            let talked = if *talked_ms > 0 { format!(", talked {talked_ms} ms") } else { String::new() };
            format!("{member} left{cause}{talked}")
        }
        RoomChange::Locked(on) => format!("locked {on}"),
        RoomChange::Member { member, change } => match change {
            MemberChange::Deaf(on) => format!("{member} deaf {on}"),
            MemberChange::Gain(now) => format!("{member} gain {}", gain(now)),
            MemberChange::Hold(on) => format!("{member} on hold {on}"),
            MemberChange::MuteLock(on) => format!("{member} mute locked {on}"),
            MemberChange::Whisper(to) => format!("{member} whispers to {to:?}"),
        },
        RoomChange::Merged { by, .. } => format!("merged by ada {}", by.extension_id == extension("ada")),
        RoomChange::Muted { member, muted } => format!("{member} muted {muted}"),
        RoomChange::Opened { room_name } => format!("opened {room_name}"),
        RoomChange::Played { sound, stopped } => {
            format!("played {}{}", sound.prompt, if *stopped { ", stopped" } else { "" })
        }
        RoomChange::Playing(sound) => {
            let to = sound.member.map_or(String::new(), |member| format!(" to {member}"));
            format!("playing {}{to}", sound.prompt)
        }
        RoomChange::Recorded { bytes, error } => format!("recorded {bytes} {error:?}"),
        RoomChange::RecordingChannels(channels) => format!("recorded on {channels} channels"),
        RoomChange::Recording(on) => format!("recording {on}"),
        RoomChange::Talking { member, talking } => format!("{member} talking {talking}"),
    }
}

fn gain(gain: &MemberGain) -> String {
    format!("{} dB{}", gain.gain_db, if gain.automatic_gain { ", automatic" } else { "" })
}

fn shown(room: &sidetone_model::room::LiveRoom) -> String {
    let mut flags = Vec::new();
    flags.extend(room.locked.then_some("locked"));
    flags.extend(room.recording.then_some("recording"));
    flags.extend(room.playing.map(|_| "playing"));
    flags.extend(room.all_muted.then_some("all-muted"));
    let mut text = format!(
        "{} [{}] {} s, revision {}:",
        room.room_name,
        flags.join(" "),
        room.run_seconds,
        room.revision
    );
    for member in &room.members {
        let muted = if member.muted { " muted" } else { "" };
        let talking = if member.talking { " talking" } else { "" };
        let extra = [
            (member.mute_locked, " mute-locked".to_owned()),
            (member.deaf, " deaf".to_owned()),
            (member.on_hold, " on-hold".to_owned()),
            (member.waiting, " waiting".to_owned()),
            (member.gain != MemberGain::default(), format!(" gain {}", gain(&member.gain))),
            (member.whisper_to.is_some(), format!(" whispers-to {:?}", member.whisper_to)),
        ];
        let extra: String = extra.into_iter().filter_map(|(holds, word)| holds.then_some(word)).collect();
        let who = if member.name.is_empty() { &member.number } else { &member.name };
        write!(text, " {}={who} {}{muted}{talking}{extra};", member.id, member.role).unwrap();
    }
    text
}
