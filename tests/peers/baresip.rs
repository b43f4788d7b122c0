//! Two baresip phones: both register, one calls the other, which answers automatically.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::common::ports;
use crate::common::process::Process;
use crate::peers::engine::{AUTHORITY, Engine, Start};
use crate::peers::peer::{self, Peer};
use crate::peers::programs;
use crate::peers::sound;
use crate::peers::tell;
use crate::peers::turn;

#[test]
fn one_baresip_calls_another() {
    let Some(_turn) = turn() else { return };
    // With the default settings: baresip 1.0 fails when any of the challenges is not MD5, so it is offered only MD5.
    let mut engine = Engine::start(8);
    sound::write_wave(&engine.dir().join("tone.wav"), 180);
    let mut callee = phone(&engine, "1002", "the-second-secret", "auto");
    let mut caller = phone(&engine, "1001", "the-first-secret", "manual");
    for phone in [&mut callee, &mut caller] {
        phone.wait_for("registered successfully");
    }
    caller.type_line("/dial sip:1002@acme.test");
    for phone in [&mut caller, &mut callee] {
        phone.wait_for("Call established");
    }
    let answered = Instant::now();
    caller.wait("the end of the talk", |_| (answered.elapsed() >= TALK).then_some(()));
    caller.type_line("/hangup");

    let records = engine.records(1);
    let record = &records[0];
    assert!(record["answered_at"].is_string(), "{record:#}\n{caller}\n{callee}");
    assert_eq!(record["codec_a"], "PCMA", "{record:#}");
    assert_eq!(record["codec_b"], record["codec_a"], "{record:#}");
    assert_eq!(record["media_verdict"], "ok", "{record:#}");
    assert!(record["billsec"].as_u64() >= Some(1), "{record:#}");
    assert_eq!(record["loss_pct"].as_f64(), Some(0.0), "{record:#}");
    tell(&format!("baresip: interval {} ms, jitter {} ms", record["mean_interval_ms"], record["jitter_ms"]));
}

/// Codec and `mediaenc` of a phone.
type Party = (&'static str, &'static str);

/// The transport of both phones, the caller, the callee, and the codecs of the record.
const ROWS: &[(&str, Party, Party, [&str; 2])] = &[
    ("udp", (OPUS, ""), (G722, ""), ["opus", "G722"]),
    ("tcp", (G722, "srtp"), (G722, ""), ["G722", "G722"]),
    ("tls", (OPUS, "srtp"), (G711, "srtp"), ["opus", "PCMA"]),
    ("tls", (OPUS, "srtp"), (OPUS, "srtp"), ["opus", "opus"]),
];

/// Each transport, codec and encryption; both phones hear each other.
#[test]
fn baresip_calls_over_each_transport_with_each_codec() {
    let Some(_turn) = turn() else { return };
    for (transport, caller, callee, codecs) in ROWS {
        let start = Start { calls: 4, directory: peer::DIRECTORY, srtp: "optional", ..Start::default() };
        let mut engine = Engine::run(&start);
        let phone = |number: &'static str, (codec, mediaenc): Party| {
            let setup = Setup::new(number, peer::phone(number).0, "").over(&engine, transport);
            let setup = Setup { codecs: codec, lines: format!("{}{MODULES}", setup.lines), ..setup };
            let setup = if mediaenc.is_empty() { setup } else { setup.srtp(mediaenc) };
            Peer::register_baresip(&engine, setup)
        };
        let (mut from, mut to) = (phone("1001", *caller), phone("1002", *callee));
        from.call("1002");
        to.answer();
        programs::hear_each_other(&mut from, &mut to);
        for (peer, (_, mediaenc)) in [(&mut from, caller), (&mut to, callee)] {
            if !mediaenc.is_empty() {
                peer.phone.wait_for("SRTP is Enabled");
            }
        }
        // A shorter call has no figure for its loss.
        from.phone.pass(TALK);
        from.hang_up();
        to.released();
        let record = engine.records(1).remove(0);
        assert_eq!([&record["codec_a"], &record["codec_b"]], *codecs, "{transport}: {record:#}");
        programs::assert_good(&record);
        tell(&format!("baresip: {caller:?} to {callee:?} over {transport}"));
    }
}

/// A phone with ICE, without and with SRTP, calls one without ICE, and is called by it; they hear each other.
#[test]
fn baresip_with_ice_is_heard() {
    let Some(_turn) = turn() else { return };
    if !has_network("baresip with ICE") {
        return;
    }
    for mediaenc in ["", "srtp"] {
        let start = Start { calls: 4, directory: peer::DIRECTORY, srtp: "optional", ..Start::default() };
        let mut engine = Engine::run(&start);
        let setup = |number: &'static str| Setup::new(number, peer::phone(number).0, "");
        let with_ice = setup("1001").ice();
        let with_ice = if mediaenc.is_empty() { with_ice } else { with_ice.srtp(mediaenc) };
        let mut ice = Peer::register_baresip(&engine, with_ice);
        let mut plain = Peer::register_baresip(&engine, setup("1002"));
        for calls in 1..=2 {
            let (from, to) = if calls == 1 { (&mut ice, &mut plain) } else { (&mut plain, &mut ice) };
            from.call(to.number);
            to.answer();
            programs::hear_each_other(from, to);
            from.phone.pass(TALK);
            from.hang_up();
            to.released();
            let records = engine.records(calls);
            let record = records.iter().find(|record| record["caller_number"] == from.number).unwrap();
            programs::assert_good(record);
            tell(&format!(
                "baresip: one with ICE {mediaenc} {}",
                if calls == 1 { "calls" } else { "is called" }
            ));
        }
    }
}

/// Whether there is a network interface besides loopback; baresip and Linphone offer no candidate for loopback.
fn has_network(whose: &str) -> bool {
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let is_there = probe.connect("192.0.2.1:9").is_ok();
    if !is_there {
        tell(&format!("NOTICE: {whose} is SKIPPED; there is no network interface but loopback"));
    }
    is_there
}

/// Two phones with generated video receive each other's picture, without and with SRTP.
#[test]
fn baresip_phones_see_each_other() {
    let Some(_turn) = turn() else { return };
    for mediaenc in ["", "srtp"] {
        let srtp = if mediaenc.is_empty() { "" } else { "optional" };
        let start = Start { calls: 8, directory: peer::DIRECTORY, srtp, video: true, ..Start::default() };
        let mut engine = Engine::run(&start);
        let setup = |number: &'static str| {
            let setup = Setup::new(number, peer::phone(number).0, "").video();
            if mediaenc.is_empty() { setup } else { setup.srtp(mediaenc) }
        };
        let mut from = Peer::register_baresip(&engine, setup("1001"));
        let mut to = Peer::register_baresip(&engine, setup("1002"));
        from.call("1002");
        to.answer();
        programs::hear_each_other(&mut from, &mut to);
        from.phone.pass(TALK);
        from.hang_up();
        to.released();
        let record = engine.records(1).remove(0);
        programs::assert_good(&record);
        let quality = engine.get(&format!("/api/v1/cdrs/{}/quality", record["call_uuid"].as_str().unwrap()));
        let seen = |leg: &serde_json::Value| {
            let video = &leg["video"];
            [&video["received"], &video["sent"], &video["missing"]].map(|count| count.as_u64().unwrap_or(0))
        };
        let [one, other] = [0, 1].map(|place| seen(&quality["legs"][place]));
        // Ten pictures a second of one packet at least.
        assert!(one[0] >= 20 && other[0] >= 20, "{quality:#}\n{}\n{}", from.phone, to.phone);
        // A picture may be in flight when one leg ends before the other, and a busy machine may drop some packets.
        let is_near = |sent: u64, received: u64| received.abs_diff(sent) <= 10;
        assert!(is_near(one[1], other[0]) && is_near(other[1], one[0]), "{quality:#}");
        assert!(one[2] * 10 <= one[0] && other[2] * 10 <= other[0], "{quality:#}");
        tell(&format!("baresip: video {mediaenc}, {} packets one way and {} the other", one[0], other[0]));
    }
}

/// A phone with DTLS-SRTP and ICE, as in browsers, calls one with plain RTP. Its certificate uses an elliptic curve,
/// because the engine's DTLS does not support the RSA certificate that baresip 1.0 makes by itself.
#[test]
fn baresip_with_dtls_srtp_is_heard() {
    let Some(_turn) = turn() else { return };
    if !has_network("baresip with DTLS-SRTP") {
        return;
    }
    let mut engine = Engine::run(&Start { calls: 4, directory: peer::DIRECTORY, ..Start::default() });
    let Some(curve) = elliptic(&engine) else {
        return tell("NOTICE: baresip with DTLS-SRTP is SKIPPED; apt-get install gcc libssl-dev");
    };
    let setup = Setup::new("1001", peer::phone("1001").0, "").ice();
    let account = format!("{};mediaenc=dtls_srtp;rtcp_mux=yes", setup.account);
    let lines = format!("{}module dtls_srtp.so\nrtcp_mux yes\n", setup.lines);
    let mut dtls = Peer::register_baresip(&engine, Setup { account, lines, preload: Some(curve), ..setup });
    let mut plain = Peer::register_baresip(&engine, Setup::new("1002", peer::phone("1002").0, ""));
    dtls.call("1002");
    plain.answer();
    dtls.phone.wait_for("DTLS-SRTP complete (audio/RTP)");
    programs::hear_each_other(&mut dtls, &mut plain);
    dtls.phone.pass(TALK);
    dtls.hang_up();
    plain.released();
    programs::assert_good(&engine.records(1)[0]);
    tell("baresip: one with DTLS-SRTP and a certificate of P-256 calls");
}

/// A library that gives baresip a certificate of an elliptic curve; `None` where it cannot be built.
fn elliptic(engine: &Engine) -> Option<PathBuf> {
    let library = engine.dir().join("elliptic.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/elliptic.c");
    let built = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-w", "-o"])
        .arg(&library)
        .arg(source)
        .stderr(std::process::Stdio::null())
        .status();
    built.is_ok_and(|status| status.success()).then_some(library)
}

/// Linphone with ICE calls and is called.
#[test]
fn linphone_with_ice_is_heard() {
    let Some(_turn) = turn() else { return };
    if !crate::peers::linphone::is_there() {
        return tell("NOTICE: Linphone with ICE is SKIPPED; apt-get install linphone-cli");
    }
    if !has_network("Linphone with ICE") {
        return;
    }
    let settings = "[signalling]\nkeep_days = 1\n";
    let start = Start { calls: 4, directory: peer::DIRECTORY, settings, ..Start::default() };
    let mut engine = Engine::run(&start);
    let mut ice = Peer::register_linphone(&engine, "1002", crate::peers::linphone::Way::Ice);
    let mut plain = Peer::register_baresip(&engine, Setup::new("1001", peer::phone("1001").0, ""));
    for calls in 1..=2 {
        let (from, to) = if calls == 1 { (&mut ice, &mut plain) } else { (&mut plain, &mut ice) };
        from.call(to.number);
        to.answer();
        programs::hear_each_other(from, to);
        from.phone.pass(TALK);
        from.hang_up();
        to.released();
        let records = engine.records(calls);
        let record = records.iter().find(|record| record["caller_number"] == from.number).unwrap();
        programs::assert_good(record);
        if calls == 1 {
            // Linphone offered candidates, and got those of the engine.
            let path = format!("/api/v1/cdrs/{}/signalling", record["call_uuid"].as_str().unwrap());
            let sdp = engine.get(&path).to_string();
            let [offered, answered] = ["a=candidate:1 1 UDP ", "a=ice-lite"].map(|line| sdp.contains(line));
            assert!(offered && answered, "{sdp}");
        }
        tell(if calls == 1 { "Linphone with ICE calls" } else { "Linphone with ICE is called" });
    }
}

/// Both phones over TLS, and each checks the certificate of the engine.
#[test]
fn baresip_calls_over_tls() {
    let Some(_turn) = turn() else { return };
    let mut engine = Engine::start(8);
    sound::write_wave(&engine.dir().join("tone.wav"), 180);
    let mut callee = phone_over_tls(&engine, "1002", "the-second-secret", "auto");
    let mut caller = phone_over_tls(&engine, "1001", "the-first-secret", "manual");
    for phone in [&mut callee, &mut caller] {
        phone.wait_for("registered successfully");
    }
    caller.type_line("/dial sip:1002@acme.test");
    for phone in [&mut caller, &mut callee] {
        phone.wait_for("Call established");
    }
    let answered = Instant::now();
    caller.wait("the end of the talk", |_| (answered.elapsed() >= TALK).then_some(()));
    caller.type_line("/hangup");
    let records = engine.records(1);
    let record = &records[0];
    assert!(record["answered_at"].is_string(), "{record:#}\n{caller}\n{callee}");
    assert_eq!(record["media_verdict"], "ok", "{record:#}");
    assert_eq!(record["hangup_cause"], "NORMAL_CLEARING", "{record:#}");
}

/// A phone without a sound card whose SIP uses TLS.
fn phone_over_tls(engine: &Engine, number: &str, password: &str, answermode: &str) -> Process {
    let setup = Setup { answermode, ..Setup::new(number, password, "tone.wav") };
    start(engine, &setup.over(engine, "tls"))
}

/// A phone without a sound card: it plays a file and discards received audio.
pub fn phone(engine: &Engine, number: &str, password: &str, answermode: &str) -> Process {
    start(engine, &Setup { answermode, ..Setup::new(number, password, "tone.wav") })
}

/// A phone that plays this file of the test's directory, and records received audio, see [`heard`].
pub fn keeping_phone(engine: &Engine, number: &str, password: &str, plays: &str) -> Process {
    start(engine, &Setup { keeps: true, ..Setup::new(number, password, plays) })
}

/// The same phone, which answers automatically.
pub fn answering_phone(engine: &Engine, number: &str, password: &str, plays: &str) -> Process {
    start(engine, &Setup { keeps: true, answermode: "auto", ..Setup::new(number, password, plays) })
}

/// The growing recording of a phone's received audio: 8,000 Hz.
pub fn heard(engine: &Engine, number: &str) -> Option<PathBuf> {
    let files = std::fs::read_dir(engine.dir().join(number)).unwrap().map(|file| file.unwrap().path());
    files.into_iter().find(|path| path.to_string_lossy().ends_with("-dec.wav"))
}

/// Presses keys, at human speed.
pub fn press(phone: &mut Process, keys: &str) {
    for key in keys.chars() {
        phone.pass(KEY);
        phone.type_text(&key.to_string());
    }
}

/// The configuration of a phone.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// The user part of its address.
    pub number: &'a str,
    pub password: &'a str,
    /// The file of the test's directory that it plays.
    pub plays: &'a str,
    /// Whether it records received audio, see [`heard`].
    pub keeps: bool,
    pub answermode: &'a str,
    /// Its codecs, in the account's notation.
    pub codecs: &'a str,
    /// The domain of its address; the next field is its listening address. A carrier has its own.
    pub domain: &'a str,
    pub listen: String,
    /// More parameters of the account, each after a semicolon; those of the route to the engine are among them.
    pub account: String,
    /// More lines of the configuration.
    pub lines: String,
    /// A library that is loaded before its own.
    pub preload: Option<PathBuf>,
}

impl<'a> Setup<'a> {
    /// A phone of an extension over UDP with G.711, which answers on command.
    pub fn new(number: &'a str, password: &'a str, plays: &'a str) -> Setup<'a> {
        Setup {
            number,
            password,
            plays,
            keeps: false,
            answermode: "manual",
            codecs: "PCMA/8000/1,PCMU/8000/1",
            domain: "acme.test",
            listen: "127.0.0.1:0".to_owned(),
            account: String::new(),
            lines: String::new(),
            preload: None,
        }
    }

    /// The same over that transport; over TLS it checks the certificate of the engine.
    pub fn over(mut self, engine: &Engine, transport: &str) -> Setup<'a> {
        let at = match transport {
            "tcp" => format!("{};transport=tcp", engine.sip_tcp()),
            "tls" => format!("{};transport=tls", engine.sip_tls()),
            _ => engine.sip().to_owned(),
        };
        self.account += &format!(";outbound=\"sip:{at}\"");
        self.lines += &format!("sip_cafile {}\n", engine.dir().join(AUTHORITY).display());
        self
    }

    /// The same with ICE.
    pub fn ice(mut self) -> Setup<'a> {
        self.account += ";medianat=ice";
        self.lines += "module ice.so\n";
        self
    }

    /// The same with VP8 video: a generated picture, and no display.
    pub fn video(mut self) -> Setup<'a> {
        self.account += ";video_codecs=vp8";
        self.lines += "module vp8.so\nmodule fakevideo.so\nvideo_source fakevideo,nil\nvideo_display fakevideo,nil\n\
                       video_size 176x144\nvideo_fps 10\n";
        self
    }

    /// The same with keys in SDP: `srtp` offers them, `srtp-mand` requires them.
    pub fn srtp(mut self, mediaenc: &str) -> Setup<'a> {
        self.account += &format!(";mediaenc={mediaenc}");
        self.lines += "module srtp.so\n";
        self
    }
}

/// Starts a phone; one without a route gets the one over UDP.
pub fn start(engine: &Engine, setup: &Setup<'_>) -> Process {
    let Setup { number, password, answermode, codecs, domain, listen, account, lines, .. } = setup;
    let dir = engine.dir().join(number);
    std::fs::create_dir(&dir).unwrap();
    let route = match account.contains(";outbound=") || account.contains(";regint=0") {
        true => String::new(),
        false => format!(";outbound=\"sip:{}\"", engine.sip()),
    };
    let interval = if account.contains(";regint=") { "" } else { ";regint=60" };
    // Without a password it would prompt for one.
    let auth = match *password {
        "" => String::new(),
        password => format!(";auth_user={number};auth_pass={password}"),
    };
    let account = format!(
        "<sip:{number}@{domain}>;answermode={answermode};audio_codecs={codecs}{auth}{interval}{route}{account}\n",
    );
    let keeps = match setup.keeps {
        true => format!("module sndfile.so\nsnd_path {}\n", dir.display()),
        false => String::new(),
    };
    let rtp_first = ports::free(32);
    let config = format!(
        "sip_listen {listen}\nnet_interface 127.0.0.1\nrtp_ports {rtp_first}-{}\n\
         ausrc_srate 8000\nausrc_channels 1\naudio_source aufile,{}\naudio_player aubridge,{number}\naudio_alert aubridge,alert{number}\n\
         module_path /usr/lib/baresip/modules\nmodule stdio.so\nmodule g711.so\nmodule aufile.so\n\
         module aubridge.so\n{keeps}{lines}module_tmp account.so\nmodule_app menu.so\n",
        rtp_first + 31,
        engine.dir().join(setup.plays).display(),
    );
    for (name, text) in [("accounts", account.as_str()), ("config", &config), ("contacts", "")] {
        std::fs::write(dir.join(name), text).unwrap();
    }
    // It ends after three minutes in any case.
    let args = ["-4", "-f", ".", "-t", "180"];
    match &setup.preload {
        None => Process::spawn("baresip", "baresip", "baresip-core", &dir, args),
        Some(library) => {
            let begin = [format!("LD_PRELOAD={}", library.display()), "baresip".to_owned()];
            let args = begin.into_iter().chain(args.map(str::to_owned));
            Process::spawn("baresip", "env", "baresip-core", &dir, args)
        }
    }
}

const G711: &str = "PCMA/8000/1";
const G722: &str = "G722/16000/1";
const OPUS: &str = "opus/48000/2";
const MODULES: &str = "module g722.so\nmodule opus.so\n";
/// The pause between two keys at human speed.
const KEY: Duration = Duration::from_millis(300);
const TALK: Duration = Duration::from_secs(3);
