//! Runs text scripts: inputs to a call in one text, its outputs in another.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use expect_test::Expect;
use sidetone_call::record::Facts;
use sidetone_media::session::{Report, VideoCounters};
use sidetone_media::webrtc::Protection;
use sidetone_model::call::{Direction, HangupCause};
use sidetone_model::call_operation::RecordStep;
use sidetone_model::call_parking::ParkedIn;
use sidetone_model::call_prompt::{LivePrompt, PlaySide};
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::{CallId, CallRecordingId, NodeId, OrganisationId, TrunkId};
use sidetone_model::language::Language;
use sidetone_model::prompt::Prompt;
use sidetone_model::time::Timestamp;
use sidetone_sip::sdp::{CodecPolicy, KeySeed, SessionDescription, SrtpRule};
use uuid::Uuid;

use crate::call::Call;
use crate::io::{
    Attempt, Awaited, CalleeAt, CalleeSide, Callees, CallerSide, Forwards, Input, KeyForm, Limits,
    MediaCommand, Onward, Output, Party, Port, PortId, Setup, Sides, VideoPort,
};
use crate::mixing::MixOrder;

#[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
pub(crate) fn any_instant() -> Instant {
    Instant::now()
}

/// Opens the ports 20000, 20002, … of 198.51.100.1.
pub(super) struct Counting {
    pub(super) next: u64,
    pub(super) left: usize,
}

impl Counting {
    pub(super) fn open(&mut self, video: bool) -> Option<Port> {
        let (id, advertised) = self.pair()?;
        let video = if video { self.pair() } else { None };
        Some(Port { id, advertised, video: video.map(|(id, advertised)| VideoPort { id, advertised }) })
    }

    fn pair(&mut self) -> Option<(PortId, SocketAddr)> {
        self.left = self.left.checked_sub(1)?;
        let id = PortId(self.next);
        self.next += 1;
        let number = 20_000 + u16::try_from(id.0).unwrap() * 2;
        Some((id, SocketAddr::new("198.51.100.1".parse().unwrap(), number)))
    }
}

fn facts() -> Facts {
    Facts {
        call: CallId(Uuid::from_u128(1)),
        organisation: OrganisationId(Uuid::from_u128(2)),
        currency: "EUR".parse().unwrap(),
        extension: None,
        agent: None,
        team: None,
        called: None,
        trunk: None,
        direction: Direction::Internal,
        transport: sidetone_model::call::Transport::Sip,
        node: NodeId(Uuid::from_u128(3)),
        started_at: Timestamp::from_micros(0),
        caller_number: Some("1001".into()),
        destination_number: Some("1002".into()),
        dialled_number: None,
        forwarded: None,
        tariff: None,
    }
}

pub(super) fn setup(offer: Option<SessionDescription>, callees: Callees) -> Setup {
    of_sides(Sides::Bridge { caller: calling(offer), callee: called(callees) })
}

fn of_sides(sides: Sides) -> Setup {
    Setup {
        facts: facts(),
        limits: Limits::default(),
        sides,
        session_id: 100,
        group: 100,
        keys: KeySeed::new([7; 32]),
    }
}

fn calling(offer: Option<SessionDescription>) -> CallerSide {
    CallerSide {
        offer,
        policy: CodecPolicy::ANY,
        key_form: KeyForm::Unknown,
        user_agent: None,
        srtp: SrtpRule::Off,
        at: "192.0.2.1".parse().unwrap(),
    }
}

fn called(callees: Callees) -> CalleeSide {
    CalleeSide { policy: CodecPolicy::ANY, srtp: SrtpRule::Off, callees, forwards: Forwards::default() }
}

/// This number of callees that ring at the same time.
pub(super) fn forks(count: usize) -> Callees {
    let target = CalleeAt { at: "192.0.2.2".parse().unwrap(), is_browser: false, has_ice: false };
    Callees::AtOnce(vec![target; count])
}

/// The video section after the audio section, with a port number higher by ten: `VP8`, `H264`, `0VP8` for a refused
/// section, and `VP8-sendonly` for one with its own direction. Its key differs from that of the audio.
fn video(text: &str, port: u16, direction: &str, protocol: &str, letter: Option<&str>) -> String {
    let (codec, direction) = text.split_once('-').unwrap_or((text, direction));
    if codec.starts_with('0') {
        return "m=video 0 RTP/AVPF 102\r\n".to_owned();
    }
    let number = if codec == "VP8" { 102 } else { 103 };
    let crypto = letter.map_or(String::new(), |letter| {
        format!("a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:{}\r\n", format!("{letter}v").repeat(20))
    });
    format!(
        "m=video {} RTP/{protocol}F {number}\r\na=rtpmap:{number} {codec}/90000\r\na=rtcp-fb:{number} nack pli\r\n{crypto}a={direction}\r\n",
        port + 10
    )
}

/// Parses a party's description: `port codec,codec direction`. `PCMU+VP8` adds video; `T38` as codecs is a fax, `0+T38`
/// a fax after refused audio, `PCMU+0T38` the reverse. For SRTP, the transport and a letter that determines the key
/// follow: `port codec,codec direction SAVP A`.
pub(super) fn description(text: &str) -> SessionDescription {
    let words: Vec<_> = text.split_whitespace().collect();
    let (port, codecs, direction, protocol, crypto) = match words.as_slice() {
        [port, codecs, direction] => (port, codecs, direction, "AVP", String::new()),
        [port, codecs, direction, protocol, letter] => {
            let key = letter.repeat(40);
            let line = format!("a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:{key}\r\n");
            (port, codecs, direction, *protocol, line)
        }
        _ => panic!("a description: {text}"),
    };
    let letter = words.get(4).copied();
    let (codecs, behind) = match (codecs.strip_suffix("+0T38"), codecs.split_once('+')) {
        (Some(codecs), _) => (codecs, "m=image 0 udptl t38\r\n".to_owned()),
        (None, Some((codecs, behind))) if codecs != "0" => {
            (codecs, video(behind, port.parse().unwrap(), direction, protocol, letter))
        }
        _ => (*codecs, String::new()),
    };
    if let Some(before) = codecs.strip_suffix("T38") {
        let refused = if before.is_empty() { "" } else { "m=audio 0 RTP/AVP 0\r\n" };
        let sdp = format!(
            "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n{refused}m=image {port} udptl t38\r\n\
             a=T38FaxVersion:0\r\na=T38FaxUdpEC:t38UDPRedundancy\r\na={direction}\r\n{behind}"
        );
        return SessionDescription::parse(sdp.as_bytes()).unwrap();
    }
    let numbers: Vec<_> = codecs
        .split(',')
        .map(|codec| match codec {
            "PCMU" => "0",
            "PCMA" => "8",
            "G722" => "9",
            "G729" => "18",
            // With two channels: too large for a packet.
            "L16" => "10",
            other => panic!("codec {other}"),
        })
        .collect();
    let sdp = format!(
        "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio {port} RTP/{protocol} {}\r\n{crypto}a={direction}\r\n{behind}",
        numbers.join(" ")
    );
    SessionDescription::parse(sdp.as_bytes()).unwrap()
}

fn summary(sdp: &SessionDescription) -> String {
    let (place, audio) = sdp.carried().unwrap_or((0, &sdp.media[0]));
    let place = match sdp.media.len() {
        1 => String::new(),
        count => format!(" in {} of {count}", place + 1),
    };
    if audio.is_fax() {
        let direction = audio.direction.as_str();
        let lines = sdp.to_string().matches("a=T38").count();
        return format!("{} T38 {direction} lines {lines}{place} v{}", audio.port, sdp.origin.version);
    }
    let codecs: Vec<_> = audio.codecs.iter().map(|codec| codec.name.as_str()).collect();
    let keys = match audio.crypto.len() {
        0 => String::new(),
        count => format!(" {} keys {count}", audio.protocol),
    };
    let direction = audio.direction.as_str();
    let video: String = sdp.carried_video().map_or_else(String::new, |(_, video)| {
        let codecs: Vec<_> = video.codecs.iter().map(|codec| codec.name.as_str()).collect();
        let lines = sdp.to_string().matches("a=rtcp-fb").count();
        let keys = video.crypto.len();
        let direction = video.direction.as_str();
        format!(
            " + {} {} {direction} {} lines {lines} keys {keys}",
            video.port,
            codecs.join(","),
            video.protocol
        )
    });
    format!("{} {} {direction}{keys}{place}{video} v{}", audio.port, codecs.join(","), sdp.origin.version)
}

fn party(text: &str) -> Party {
    match text {
        "caller" => Party::Caller,
        fork => Party::Callee(fork.parse().unwrap()),
    }
}

fn name(party: &Party) -> String {
    match party {
        Party::Caller => "caller".into(),
        Party::Callee(fork) => format!("fork {fork}"),
    }
}

fn record(cdr: &Cdr) -> String {
    format!(
        "{} answered {} billsec {} bridge {} status {} codecs {}/{} verdict {}{}{}",
        cdr.hangup_cause.map_or("-", HangupCause::as_str),
        cdr.answered_at.map_or("-".into(), |at| at.to_string()),
        cdr.billsec,
        cdr.bridge_cause.map_or("-", HangupCause::as_str),
        cdr.sip_status.map_or("-".into(), |status| status.to_string()),
        cdr.codec_a.as_deref().unwrap_or("-"),
        cdr.codec_b.as_deref().unwrap_or("-"),
        cdr.quality.verdict.map_or("-", |verdict| verdict.as_str()),
        cdr.trunk_id.map_or(String::new(), |trunk| format!(" trunk {}", trunk.0.as_u128())),
        if cdr.fax { " fax" } else { "" },
    )
}

fn write_output(log: &mut String, output: &Output) {
    let text = match output {
        Output::Answer(Some(sdp)) => format!("200 caller [{}]", summary(sdp)),
        Output::Answer(None) => "up".into(),
        Output::CancelOffer(party) => format!("CANCEL re-INVITE {}", name(party)),
        Output::CallerAnswered(fork) => format!("caller is fork {fork}"),
        Output::AskHeard(fork) => format!("is fork {fork} heard"),
        Output::Bye(party, cause) => format!("BYE {} {cause}", name(party)),
        Output::Cancel(fork, cause) => format!("CANCEL fork {fork} {cause}"),
        Output::Ended(cdr) => format!("record {}", record(cdr)),
        Output::Held(party, holds) => format!("{} {}", name(party), if *holds { "holds" } else { "is back" }),
        Output::Invite(fork, sdp) => format!("INVITE fork {fork} [{}]", summary(sdp)),
        Output::Journal(_) => "journal".into(),
        Output::Left(party, _) => format!("{} left its seat", name(party)),
        Output::Media(port, command) => match command {
            MediaCommand::Answered => format!("media {} answered", port.0),
            MediaCommand::Bridge { peer, payload_map } => {
                format!(
                    "media {} to {}{}",
                    port.0,
                    peer.0,
                    if payload_map.is_some() { " renumbered" } else { "" }
                )
            }
            MediaCommand::Close => format!("media {} close", port.0),
            MediaCommand::Tone => format!("media {} tone", port.0),
            MediaCommand::Transcode(None) => format!("media {} relayed alone", port.0),
            MediaCommand::Transcode(Some(plan)) => {
                let from: Vec<_> = plan.audio.iter().map(|(_, codec)| codec.name()).collect();
                let keys = plan
                    .events
                    .map_or(String::new(), |events| format!(" keys {} as {}", events.from.0, events.to.0));
                format!("media {} from {} to {}{keys}", port.0, from.join(" "), plan.send.1.name())
            }
            MediaCommand::Describe(description) => format!(
                "media {} party {} receive {} send {}{}",
                port.0,
                description.remote.map_or("-".into(), |remote| remote.port().to_string()),
                description.receive,
                description.send,
                match (description.udptl, description.video) {
                    (true, _) => " fax",
                    (_, true) => " video",
                    _ => "",
                }
            ),
            MediaCommand::Format(formats) => {
                format!(
                    "media {} {} hears {} speaks {}",
                    port.0,
                    formats.send.1.name(),
                    formats.hears,
                    formats.speaks
                )
            }
            MediaCommand::Gain(gain) => format!("media {} gain {} dB", port.0, gain.decibels),
            MediaCommand::Hear(hears) => format!("media {} hears {hears:?}", port.0),
            MediaCommand::Join { mix, formats, muted, hears, .. } => format!(
                "media {} joins mix {} in {}{} hears {hears:?}",
                port.0,
                mix.0,
                formats.send.1.name(),
                if *muted { " muted" } else { "" }
            ),
            MediaCommand::Listen { mix, formats, muted, .. } => format!(
                "media {} is heard by mix {} in {}{}",
                port.0,
                mix.0,
                formats.send.1.name(),
                if *muted { " muted" } else { "" }
            ),
            MediaCommand::Left(left) => format!("media {} on the left: {left}", port.0),
            MediaCommand::Leave => format!("media {} leaves its mix", port.0),
            MediaCommand::PlayKey(key) => {
                format!("media {} hears key {} for {} ms", port.0, key.code, key.duration_ms)
            }
            MediaCommand::Press(key) => format!("media {} is sent key {}", port.0, key.code),
            MediaCommand::WatchKeys(source) => format!("media {} reports keys {source:?}", port.0),
            MediaCommand::Mute(muted) => {
                format!("media {} {}", port.0, if *muted { "muted" } else { "unmuted" })
            }
            MediaCommand::Play { prompts, token, language, .. } => {
                let language = language.filter(|language| *language != Language::default());
                let language = language.map_or(String::new(), |language| format!(" in {language}"));
                format!("media {} plays {prompts:?} as {token}{language}", port.0)
            }
            MediaCommand::PlaySound { sound, .. } => format!("media {} plays sound {sound}", port.0),
            MediaCommand::StopSound => format!("media {} plays no sound", port.0),
            MediaCommand::Secure(keys) => {
                let suite = match keys.as_deref() {
                    None => "nothing",
                    Some(Protection::Ice(_, None)) => "nothing, by ICE",
                    Some(Protection::Ice(_, Some(keys))) => keys.receive.suite().as_str(),
                    Some(Protection::Sdes(keys)) => keys.receive.suite().as_str(),
                    Some(Protection::Webrtc(_)) => "DTLS",
                };
                format!("media {} secured by {suite}", port.0)
            }
            MediaCommand::Snapshot => format!("media {} how it does", port.0),
            MediaCommand::Unbridge => format!("media {} to no one", port.0),
            MediaCommand::StopPlaying => format!("media {} plays nothing", port.0),
            MediaCommand::Whisper(to) => format!("media {} whispers to {:?}", port.0, to.map(|to| to.0)),
        },
        Output::Mix(mix, MixOrder::Record(plan)) => format!("record mix {} {:?}", mix.0, plan.sides),
        Output::Mix(mix, order) => format!("mix {} {order:?}", mix.0),
        Output::NextAttempt(status) => format!("next after {status}"),
        Output::Offer(party, sdp) => format!("re-INVITE {} [{}]", name(party), summary(sdp)),
        Output::OfferResult(party, Ok(sdp)) => format!("re-INVITE {} 200 [{}]", name(party), summary(sdp)),
        Output::OfferResult(party, Err(status)) => format!("re-INVITE {} {status}", name(party)),
        Output::FirstAttempt | Output::OpenPort { .. } | Output::Redirected(_) => {
            unreachable!("the harness carries it out")
        }
        Output::ParkExpired => "not picked up".into(),
        Output::PromptEnded(prompt, result) => {
            format!("prompt {} to {} {}", prompt.prompt, prompt.side, result.as_str())
        }
        Output::Reached(party) => format!("reached {}", name(party)),
        Output::Terms(..) => "terms".into(),
        Output::Unlinked(_, cause) => format!("unlinked {cause}"),
        Output::Refused(status) => format!("refused {status}"),
        Output::Probe(party) => format!("are you there, {}", name(party)),
        Output::Reject(status, cause) => {
            format!("{status} caller {}", cause.map_or("-", HangupCause::as_str))
        }
        Output::Ring(status, sdp) => {
            format!(
                "{status} caller{}",
                sdp.as_ref().map_or(String::new(), |sdp| format!(" [{}]", summary(sdp)))
            )
        }
        Output::Seat(party) => format!("seat {}", name(party)),
    };
    writeln!(log, "          {text}").unwrap();
}

/// Runs a script on a call and compares the outputs. The first line is `call OFFER -> FORKS` (`-` without an
/// offer, `room` instead of either side, `trunks` for attempts in turn, `request` for a call that a program requests);
/// each further line is `MS event…`.
pub(super) fn check(script: &str, expect: Expect) {
    expect.assert_eq(&play(script));
}

/// Like [`check`], for parties with SRTP: the rules of the caller and the callee.
pub(super) fn check_srtp(rules: [SrtpRule; 2], script: &str, expect: Expect) {
    expect.assert_eq(&play_with(rules, [false; 2], script));
}

/// Like [`check_srtp`], for parties that may have video, both or one of them.
pub(super) fn check_video(rules: [SrtpRule; 2], video: [bool; 2], script: &str, expect: Expect) {
    expect.assert_eq(&play_with(rules, video, script));
}

/// Returns the outputs of a script.
pub(super) fn play(script: &str) -> String {
    play_with([SrtpRule::Off; 2], [false; 2], script)
}

/// Like [`play`], for parties with SRTP and video.
pub(super) fn play_video(rules: [SrtpRule; 2], video: [bool; 2], script: &str) -> String {
    play_with(rules, video, script)
}

fn play_with(
    [caller_srtp, callee_srtp]: [SrtpRule; 2],
    [caller_video, callee_video]: [bool; 2],
    script: &str,
) -> String {
    let mut lines = script.lines().map(str::trim).filter(|line| !line.is_empty());
    let (offer, whom) = lines
        .next()
        .and_then(|l| l.strip_prefix("call "))
        .and_then(|line| line.split_once(" -> "))
        .expect("call OFFER -> FORKS");
    let start = any_instant();
    let mut log = String::new();
    let callees = || if whom == "trunks" { Callees::InTurn } else { forks(whom.parse().unwrap()) };
    let mut ports = Counting { next: 0, left: 12 };
    let offered = || (offer != "-").then(|| description(offer));
    let mut setup = match (offer, whom) {
        ("request", _) => of_sides(Sides::Requested { caller: called(callees()) }),
        ("room", _) => of_sides(Sides::FromRoom { callee: called(callees()) }),
        (_, "room") => of_sides(Sides::IntoRoom { caller: calling(offered()) }),
        _ => setup(offered(), callees()),
    };
    match &mut setup.sides {
        Sides::Bridge { caller, callee } => (caller.srtp, callee.srtp) = (caller_srtp, callee_srtp),
        Sides::ForPeer { callee, .. } | Sides::FromRoom { callee } => callee.srtp = callee_srtp,
        Sides::Requested { caller } => caller.srtp = caller_srtp,
        Sides::IntoRoom { caller } | Sides::TakeOver { caller, .. } => caller.srtp = caller_srtp,
    }
    match &mut setup.sides {
        Sides::Bridge { caller, callee } => {
            caller.policy = CodecPolicy::ANY.with_video(caller_video);
            callee.policy = CodecPolicy::ANY.with_video(callee_video);
        }
        Sides::IntoRoom { caller } => caller.policy = CodecPolicy::ANY.with_video(caller_video),
        _ => {}
    }
    let mut call = Call::new(start, setup);
    let begun = drain(&mut call, start, &mut ports);
    if let Some(Output::Refused(status)) = begun.last() {
        let closes = |output: &&Output| matches!(output, Output::Media(_, MediaCommand::Close));
        writeln!(log, "stillborn {status} ports {}", begun.iter().filter(closes).count()).unwrap();
        return log;
    }
    begun.iter().for_each(|output| write_output(&mut log, output));
    for line in lines {
        writeln!(log, "{line}").unwrap();
        let (ms, what) = line.split_once(' ').expect("MS what");
        let now = start + Duration::from_millis(ms.parse().unwrap());
        let mut input = match what.strip_prefix("attempt ") {
            Some(trunk) => attempt(trunk.parse().unwrap()),
            None => input(what),
        };
        match &mut input {
            Input::Onward(Onward::Callee(side)) => side.srtp = callee_srtp,
            Input::Attempt(attempt) => attempt.policy = CodecPolicy::ANY.with_video(callee_video),
            _ => {}
        }
        call.handle_input(now, input);
        drain(&mut call, now, &mut ports).iter().for_each(|output| write_output(&mut log, output));
    }
    log
}

/// Drains the outputs of a call and opens the ports that it requests.
pub(super) fn drain(call: &mut Call, now: Instant, ports: &mut Counting) -> Vec<Output> {
    let mut outputs = Vec::new();
    while let Some(output) = call.poll_output() {
        match output {
            Output::OpenPort { video, .. } => call.handle_input(now, Input::PortOpened(ports.open(video))),
            Output::FirstAttempt => {}
            Output::Redirected(_) => call.handle_input(now, Input::NotDiverted),
            output => outputs.push(output),
        }
    }
    outputs
}

/// Returns the next attempt, over a trunk with that number.
pub(super) fn attempt(trunk: u128) -> Input {
    let at = "192.0.2.9".parse().unwrap();
    let trunk = TrunkId(Uuid::from_u128(trunk));
    Input::Attempt(Attempt {
        trunk,
        at,
        cost: None,
        limit: None,
        srtp: SrtpRule::Off,
        policy: CodecPolicy::ANY,
    })
}

pub(super) fn input(what: &str) -> Input {
    let words: Vec<_> = what.split_whitespace().collect();
    let sdp = |from: usize| (words.len() > from).then(|| description(&words[from..].join(" ")));
    match words[0] {
        "ack" => Input::Acknowledged(party(words[1]), sdp(2)),
        "answered" => Input::Answered(words[1].parse().unwrap(), sdp(2)),
        "bye" => Input::HungUp(party(words[1]), HangupCause::NormalClearing),
        "cancel" => Input::Cancelled(HangupCause::OriginatorCancel),
        "dismiss" => Input::Dismiss(party(words[1]), HangupCause::NormalClearing),
        "due" => Input::OfferDue(party(words[1])),
        "end" => Input::End(HangupCause::NormalClearing),
        "enter" => Input::EnterRoom(Box::new(facts())),
        "exhausted" => Input::Exhausted(503, HangupCause::NetworkOutOfOrder),
        "failed" => {
            let status = words[2].parse().unwrap();
            Input::Failed(words[1].parse().unwrap(), status, HangupCause::from_sip_status(status))
        }
        "hold" => Input::Hold((words[1] != "-").then(|| party(words[1]))),
        "journalled" => Input::Journalled,
        "merge" => Input::Merge(words.get(2).map(|without| party(without))),
        "offer" => Input::Offer(party(words[1]), sdp(2)),
        "onward" => Input::Onward(match words[1] {
            "room" => Onward::Room,
            "trunks" => Onward::Callee(called(Callees::InTurn)),
            "refused" => Onward::Refused(480, HangupCause::UserNotRegistered),
            count => Onward::Callee(called(forks(count.parse().unwrap()))),
        }),
        "offered" if words.len() == 3 => Input::Offered(party(words[1]), Err(words[2].parse().unwrap())),
        "offered" => Input::Offered(party(words[1]), Ok(sdp(2))),
        "park" => {
            let place = ParkedIn {
                slot: 1,
                by: Uuid::from_u128(11).into(),
                until: Timestamp::from_micros(300_000_000),
            };
            Input::Park(party(words[1]), place, any_instant() + Duration::from_secs(300))
        }
        "pickup" => Input::PickUp(Box::new(Awaited {
            settled: sdp(1).unwrap(),
            policy: CodecPolicy::ANY,
            from: CallId(Uuid::from_u128(9)),
        })),
        "heard" => Input::Silent(PortId(words[1].parse().unwrap()), None),
        "play" => {
            let prompt = (words[1] != "-").then(|| LivePrompt {
                play_id: Uuid::from_u128(words[3].parse().unwrap()).into(),
                prompt: Prompt::from_name(words[1]).unwrap(),
                side: PlaySide::from_name(words[2]).unwrap(),
            });
            let language = |at: usize| {
                words.get(at).map_or(Language::default(), |name| Language::from_name(name).unwrap())
            };
            Input::Play(prompt, [language(4), language(5)])
        }
        "played" => Input::Played(PortId(words[1].parse().unwrap()), words[2].parse().unwrap()),
        "refresh" => Input::Refresh(party(words[1])),
        "refers" => Input::Referring((words[1] != "-").then(|| party(words[1]))),
        "probed" => Input::Probed(party(words[1]), words[2] == "yes"),
        "silent" => {
            let silent_for = Duration::from_millis(words[2].parse().unwrap());
            Input::Silent(PortId(words[1].parse().unwrap()), Some(silent_for))
        }
        "ringing" => Input::Provisional(words[1].parse().unwrap(), words[2].parse().unwrap(), sdp(3)),
        "record" => Input::Record(match words[1] {
            "start" => RecordStep::Start(CallRecordingId(Uuid::from_u128(7))),
            "pause" => RecordStep::Pause,
            "resume" => RecordStep::Resume,
            _ => RecordStep::Stop,
        }),
        "report" => {
            let shown = (words.get(2) == Some(&"video")).then(|| VideoCounters {
                received: words[3].parse().unwrap(),
                received_bytes: 1_000,
                sent: 7,
                missing: 2,
            });
            let codec = words.get(2).filter(|_| shown.is_none()).map(|name| (*name).to_owned());
            let report = Report { codec, video: shown, ..Report::default() };
            Input::Report(PortId(words[1].parse().unwrap()), Box::new(report))
        }
        "timeout" => Input::Timeout,
        "withdrawn" => Input::OfferWithdrawn(party(words[1])),
        "unheard" => Input::Unheard(words[1].parse().unwrap()),
        "unreached" => Input::Unreached(words[1].parse().unwrap(), words[2].parse().unwrap()),
        other => panic!("input {other}"),
    }
}
