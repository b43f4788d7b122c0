//! A phone of a test that plays its own tone and records received audio; calls are answered on command.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::common::ports;
use crate::common::process::Process;
use crate::peers::baresip;
use crate::peers::baresip::Setup;
use crate::peers::engine::Engine;
use crate::peers::linphone;
use crate::peers::sound;
use crate::peers::tell;

/// The program of a phone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Baresip,
    Linphone,
}

/// A registered phone.
pub struct Peer {
    pub number: &'static str,
    /// The tone that it plays.
    pub hz: f64,
    pub phone: Process,
    kind: Kind,
    /// The host of the Request-URI of its calls.
    domain: String,
    dir: PathBuf,
    calls: usize,
    rung: usize,
    ended: usize,
}

impl Peer {
    /// The phone of one of the extensions of [`DIRECTORY`], 1001 to 1004.
    pub fn register(engine: &Engine, kind: Kind, number: &'static str) -> Peer {
        Peer::register_over(engine, kind, number, false)
    }

    /// The same, with `secure` over TLS and with SRTP only.
    pub fn register_over(engine: &Engine, kind: Kind, number: &'static str, secure: bool) -> Peer {
        match kind {
            Kind::Baresip => {
                let setup = Setup::new(number, phone(number).0, "");
                let setup = if secure { setup.over(engine, "tls").srtp("srtp-mand") } else { setup };
                Peer::register_baresip(engine, setup)
            }
            Kind::Linphone => {
                let way = if secure { linphone::Way::Secure } else { linphone::Way::Plain };
                Peer::register_linphone(engine, number, way)
            }
        }
    }

    /// A Linphone phone that reaches the engine in this way.
    pub fn register_linphone(engine: &Engine, number: &'static str, way: linphone::Way) -> Peer {
        let (password, hz) = phone(number);
        let plays = format!("{number}.wav");
        sound::write_tone(&engine.dir().join(&plays), 180, hz);
        let mut phone = linphone::playing_phone(engine, number, password, &plays, way);
        linphone::wait_until_registered(&mut phone);
        let mut peer = Peer::new(engine, number, hz, phone, Kind::Linphone);
        peer.keep_next();
        peer
    }

    /// A baresip phone with special settings; it plays its tone and records received audio.
    pub fn register_baresip(engine: &Engine, setup: Setup<'_>) -> Peer {
        let (number, _, hz) = *PHONES.iter().find(|(known, ..)| *known == setup.number).unwrap();
        let plays = format!("{number}.wav");
        sound::write_tone(&engine.dir().join(&plays), 180, hz);
        let setup = Setup { keeps: true, plays: &plays, ..setup };
        let mut phone = baresip::start(engine, &setup);
        phone.wait_for("registered successfully");
        Peer::new(engine, number, hz, phone, Kind::Baresip)
    }

    /// An external party, baresip without a registration: it listens at a port, see [`outside_port`], and calls through
    /// `to`.
    pub fn outside(engine: &Engine, number: &'static str, port: u16, to: &str) -> Peer {
        let (_, hz) = phone(number);
        let plays = format!("{number}.wav");
        sound::write_tone(&engine.dir().join(&plays), 180, hz);
        let domain = format!("127.0.0.1:{port}");
        let setup = Setup {
            keeps: true,
            domain: &domain,
            listen: domain.clone(),
            account: ";regint=0".to_owned(),
            ..Setup::new(number, "", &plays)
        };
        let mut phone = baresip::start(engine, &setup);
        phone.wait_for("baresip is ready");
        let peer = Peer::new(engine, number, hz, phone, Kind::Baresip);
        Peer { domain: to.to_owned(), ..peer }
    }

    fn new(engine: &Engine, number: &'static str, hz: f64, phone: Process, kind: Kind) -> Peer {
        let dir = engine.dir().join(number);
        let domain = "acme.test".to_owned();
        Peer { number, hz, phone, kind, domain, dir, calls: 0, rung: 0, ended: 0 }
    }

    /// Calls a number; the call need not be answered.
    pub fn call(&mut self, number: &str) {
        let line = match self.kind {
            Kind::Baresip => format!("/dial sip:{number}@{}", self.domain),
            Kind::Linphone => format!("call sip:{number}@{}", self.domain),
        };
        self.phone.type_line(&line);
    }

    /// Waits until it rings once more.
    pub fn rings(&mut self) {
        let (sign, rung) = (self.signs().rings, self.rung);
        self.phone.wait("a call that rings", |phone| (count(phone, sign) > rung).then_some(()));
        self.rung += 1;
    }

    /// Waits until it rings once more, and answers.
    pub fn answer(&mut self) {
        self.rings();
        let line = match self.kind {
            Kind::Baresip => "/accept".to_owned(),
            Kind::Linphone => format!("answer {}", self.last_call()),
        };
        self.phone.type_line(&line);
    }

    /// Plays its tone into the current call: Linphone needs a command for that, and again after a hold.
    fn speak(&mut self) {
        if self.kind == Kind::Linphone {
            let file = self.dir.with_extension("wav");
            self.phone.type_line(&format!("play {}", file.display()));
        }
    }

    /// Puts its call on hold by itself.
    pub fn hold(&mut self) {
        let (line, sign) = match self.kind {
            Kind::Baresip => ("/hold", "call: hold"),
            Kind::Linphone => ("pause", "is now paused"),
        };
        let before = count(&self.phone, sign);
        self.phone.type_line(line);
        if self.kind == Kind::Linphone {
            self.phone.wait("the hold", |phone| (count(phone, sign) > before).then_some(()));
        }
    }

    /// Ends the hold of its call.
    pub fn resume(&mut self) {
        let line = match self.kind {
            Kind::Baresip => "/resume",
            Kind::Linphone => "resume",
        };
        self.phone.type_line(line);
    }

    /// Hangs up its only call.
    pub fn hang_up(&mut self) {
        let line = match self.kind {
            Kind::Baresip => "/hangup",
            Kind::Linphone => "terminate",
        };
        self.phone.type_line(line);
        self.released();
    }

    /// Transfers the party of its only call to a number, without waiting for the result.
    pub fn transfer(&mut self, number: &str) {
        let line = match self.kind {
            Kind::Baresip => format!("/transfer sip:{number}@acme.test"),
            Kind::Linphone => format!("transfer sip:{number}@acme.test"),
        };
        self.phone.type_line(&line);
    }

    /// Connects the far ends of two Linphone calls, see [`Self::last_call`].
    pub fn connect(&mut self, first: usize, second: usize) {
        self.phone.type_line(&format!("transfer {first} --to-call {second}"));
    }

    /// Waits until one more of its calls has ended.
    pub fn released(&mut self) {
        let (sign, ended) = (self.signs().ended, self.ended);
        self.phone.wait("the end of a call", |phone| (count(phone, sign) > ended).then_some(()));
        self.ended += 1;
        self.keep_next();
    }

    /// The number that Linphone gave to its latest call.
    pub fn last_call(&self) -> usize {
        let said = self.phone.said();
        let (_, last) = said.rsplit_once("assigned id ").expect("a call");
        let digits: String = last.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    }

    /// Waits until it newly receives these tones and no others.
    pub fn hears(&mut self, wanted: &[f64]) {
        self.hears_of(wanted, &mut || ());
    }

    /// Waits until it receives another phone's tone and no other sound.
    pub fn hears_phone(&mut self, other: &mut Peer) {
        self.hears_phones(&mut [other]);
    }

    /// Waits until it receives these phones' tones and no other sound.
    pub fn hears_phones(&mut self, others: &mut [&mut Peer]) {
        let tones: Vec<f64> = others.iter().map(|other| other.hz).collect();
        self.hears_of(&tones, &mut || others.iter_mut().for_each(|other| other.speak()));
    }

    /// Presses a key.
    pub fn press(&mut self, key: &str) {
        match self.kind {
            Kind::Baresip => baresip::press(&mut self.phone, key),
            Kind::Linphone => linphone::press(&mut self.phone, key),
        }
    }

    /// The same; the playing phones get their command repeatedly, because Linphone ignores it while its audio starts.
    fn hears_of(&mut self, wanted: &[f64], remind: &mut dyn FnMut()) {
        remind();
        let mut reminded = Instant::now();
        let dir = self.dir.clone();
        let from = newest(&dir).map(|(path, length)| (path, length + NEW_LEN));
        let what = format!("{} hears {wanted:?}", self.number);
        let kind = self.kind;
        let mut last = Vec::new();
        let deadline = Instant::now() + HEARD_MAX;
        self.phone.wait(&what, |phone| {
            assert!(Instant::now() < deadline, "{phone} waited in vain until {what}: it hears {last:?}");
            std::thread::park_timeout(POLL);
            if reminded.elapsed() >= REMIND {
                reminded = Instant::now();
                remind();
            }
            if kind == Kind::Baresip && has_recording_ended(&phone.said()) {
                return receives(phone, !wanted.is_empty()).map(|()| {
                    tell(&format!(
                        "NOTICE: {what}: after a re-INVITE, only the rate of its audio was checked"
                    ));
                });
            }
            let (path, length) = newest(&dir)?;
            if from.as_ref().is_some_and(|(before, enough)| *before == path && length < *enough) {
                return None;
            }
            last = RATES_HZ.iter().filter_map(|rate| sound::at_the_end(&path, *rate, &TONES_HZ)).collect();
            last.iter().any(|loud| are_only(wanted, loud)).then_some(())
        });
    }

    /// Waits until audio arrives, or stops. The recordings of baresip 1.0 end at a re-INVITE, so after one only the
    /// displayed bit rate shows it.
    pub fn receives(&mut self, audio: bool) {
        let what = if audio { "audio that comes" } else { "an end of the audio" };
        self.phone.wait(what, |phone| receives(phone, audio));
    }

    /// Linphone needs a file name for the recording of each call in advance, and may crash if it gets one while it
    /// rings; baresip chooses names itself.
    fn keep_next(&mut self) {
        if self.kind == Kind::Linphone {
            self.calls += 1;
            let file = self.dir.join(format!("call{}-dec.wav", self.calls));
            self.phone.type_line(&format!("record {}", file.display()));
        }
    }

    fn signs(&self) -> &'static Signs {
        match self.kind {
            Kind::Baresip => &BARESIP,
            Kind::Linphone => &LINPHONE,
        }
    }
}

/// A port for [`Peer::outside`]: baresip uses the next one for TLS.
pub fn outside_port() -> u16 {
    ports::free(2)
}

/// Password and tone of a phone.
pub fn phone(number: &str) -> (&'static str, f64) {
    let (_, password, hz) = *PHONES.iter().find(|(known, ..)| *known == number).expect("a known number");
    (password, hz)
}

/// Whether these tones are loud and the others are not.
pub fn are_only(wanted: &[f64], loud: &[f64]) -> bool {
    let mut tones = TONES_HZ.iter().zip(loud);
    tones.all(|(hz, loud)| if wanted.contains(hz) { *loud > LOUD } else { *loud < QUIET })
}

/// Whether the bit rate that baresip shows is that of audio, or zero.
fn receives(phone: &Process, audio: bool) -> Option<()> {
    let said = phone.said();
    let (before, _) = said.rsplit_once(" (bit/s)")?;
    let (_, bit_rate) = before.rsplit_once('/')?;
    let bit_rate: u32 = bit_rate.parse().ok()?;
    (if audio { bit_rate > 32_000 } else { bit_rate == 0 }).then_some(())
}

/// Whether a re-INVITE has ended the last recording of baresip 1.0.
fn has_recording_ended(said: &str) -> bool {
    let last = said.rsplit_once("sndfile: dumping decode audio");
    last.is_some_and(|(_, since)| since.contains("got re-INVITE"))
}

/// The newest recording, and its length in bytes.
fn newest(dir: &Path) -> Option<(PathBuf, u64)> {
    let files = std::fs::read_dir(dir).ok()?.filter_map(Result::ok);
    let kept = files.filter(|file| file.file_name().to_string_lossy().ends_with("-dec.wav"));
    let known = kept.filter_map(|file| {
        let about = file.metadata().ok()?;
        Some((about.modified().ok()?, file.path(), about.len()))
    });
    known.max().map(|(_, path, length)| (path, length))
}

fn count(phone: &Process, sign: &str) -> usize {
    phone.said().matches(sign).count()
}

/// The output of a program.
struct Signs {
    rings: &'static str,
    ended: &'static str,
}

const BARESIP: Signs = Signs { rings: "Incoming call from:", ended: "terminated (duration:" };
const LINPHONE: Signs = Signs { rings: "Receiving new incoming call from", ended: " ended (" };

/// Number, password and tone; no tone is near a multiple of another.
const PHONES: [(&str, &str, f64); 5] = [
    ("1001", "the-first-secret", 440.0),
    ("1002", "the-second-secret", 700.0),
    ("1003", "the-third-secret", 1_150.0),
    ("1004", "the-fourth-secret", 1_850.0),
    (OUTSIDE, "", 1_850.0),
];
/// An external number.
pub const OUTSIDE: &str = "+447700900123";
/// The tone of the organisation's music and questions, see [`announce`].
pub const OURS_HZ: f64 = 2_950.0;
pub const TONES_HZ: [f64; 5] = [440.0, 700.0, 1_150.0, 1_850.0, OURS_HZ];

/// Makes a prompt of the organisation a tone of [`OURS_HZ`].
pub fn announce(engine: &Engine, prompt: &str) {
    let file = engine.dir().join(format!("{prompt}.wav"));
    sound::write_tone(&file, 10, OURS_HZ);
    let organisation = engine.get("/api/v1/conference-rooms")["items"][0]["organisation_id"].clone();
    let path = format!("/api/v1/organisations/{}/prompts/{prompt}", organisation.as_str().unwrap());
    assert_eq!(engine.upload(&path, &std::fs::read(&file).unwrap()), 200);
}

/// The extensions 1003 and 1004, and two rooms.
pub const DIRECTORY: &str = r#"
  [[organisations.extensions]]
  number = "1003"
  name = "Third"
  password = "the-third-secret"
  [[organisations.extensions]]
  number = "1004"
  name = "Fourth"
  password = "the-fourth-secret"
  [[organisations.rooms]]
  name = "Stand-up"
  number = "200"
  participant_pin = "1234"
  moderator_pin = "9876"
  [[organisations.rooms]]
  name = "Open"
  number = "300"
"#;

/// Of an amplitude of 6,000, after a codec and a playout buffer.
const LOUD: f64 = 1_500.0;
const QUIET: f64 = 300.0;
/// G.711, G.722, Opus with one channel, and with two whose samples are equal and interleaved.
const RATES_HZ: [u32; 4] = [8_000, 16_000, 48_000, 96_000];
/// Bytes of new audio that are required: a second of G.711.
const NEW_LEN: u64 = 16_000;
const REMIND: Duration = Duration::from_secs(4);
const POLL: Duration = Duration::from_millis(100);
const HEARD_MAX: Duration = Duration::from_secs(30);
