//! Two baresip phones: both register, one calls the other, which answers by itself.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::engine::{AUTHORITY, Engine};
use crate::process::Process;
use crate::{ports, sound, tell, turn};

#[test]
fn one_baresip_calls_another() {
    let Some(_turn) = turn() else { return };
    // With the default settings: baresip 1.0 gives up when any of the challenges is not MD5, and is offered MD5 alone.
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

/// A phone without a sound card whose SIP goes over TLS.
fn phone_over_tls(engine: &Engine, number: &str, password: &str, answermode: &str) -> Process {
    let more = format!("sip_cafile {}\n", engine.dir().join(AUTHORITY).display());
    let at = format!("{};transport=tls", engine.sip_tls());
    set_up_at(engine, (number, password, &at), answermode, "tone.wav", &more)
}

/// A phone without a sound card: it plays a file and hears into the void.
pub fn phone(engine: &Engine, number: &str, password: &str, answermode: &str) -> Process {
    set_up(engine, number, password, answermode, "tone.wav", "")
}

/// A phone that plays that file of the test's directory, and keeps what it hears, see [`heard`].
pub fn keeping_phone(engine: &Engine, number: &str, password: &str, plays: &str) -> Process {
    let keeps = format!("module sndfile.so\nsnd_path {}\n", engine.dir().join(number).display());
    set_up(engine, number, password, "manual", plays, &keeps)
}

/// The same phone, which answers by itself.
pub fn answering_phone(engine: &Engine, number: &str, password: &str, plays: &str) -> Process {
    let keeps = format!("module sndfile.so\nsnd_path {}\n", engine.dir().join(number).display());
    set_up(engine, number, password, "auto", plays, &keeps)
}

/// Where a phone that keeps what it hears does so, as it comes: 8,000 Hz.
pub fn heard(engine: &Engine, number: &str) -> Option<PathBuf> {
    let files = std::fs::read_dir(engine.dir().join(number)).unwrap().map(|file| file.unwrap().path());
    files.into_iter().find(|path| path.to_string_lossy().ends_with("-dec.wav"))
}

/// Presses keys, at the pace of a hand.
pub fn press(phone: &mut Process, keys: &str) {
    for key in keys.chars() {
        phone.pass(KEY);
        phone.type_text(&key.to_string());
    }
}

fn set_up(
    engine: &Engine,
    number: &str,
    password: &str,
    answermode: &str,
    plays: &str,
    more: &str,
) -> Process {
    set_up_at(engine, (number, password, engine.sip()), answermode, plays, more)
}

/// A phone of this number and password that sends to that address of the engine.
fn set_up_at(
    engine: &Engine,
    (number, password, at): (&str, &str, &str),
    answermode: &str,
    plays: &str,
    more: &str,
) -> Process {
    let dir = engine.dir().join(number);
    std::fs::create_dir(&dir).unwrap();
    let account = format!(
        "<sip:{number}@acme.test>;auth_user={number};auth_pass={password};outbound=\"sip:{at}\";regint=60;\
         answermode={answermode};audio_codecs=PCMA/8000/1,PCMU/8000/1\n",
    );
    let rtp_first = ports::free(32);
    let config = format!(
        "sip_listen 127.0.0.1:0\nnet_interface 127.0.0.1\nrtp_ports {rtp_first}-{}\n\
         audio_source aufile,{}\naudio_player aubridge,{number}\naudio_alert aubridge,alert{number}\n\
         module_path /usr/lib/baresip/modules\nmodule stdio.so\nmodule g711.so\nmodule aufile.so\n\
         module aubridge.so\n{more}module_tmp account.so\nmodule_app menu.so\n",
        rtp_first + 31,
        engine.dir().join(plays).display(),
    );
    for (name, text) in [("accounts", account.as_str()), ("config", &config), ("contacts", "")] {
        std::fs::write(dir.join(name), text).unwrap();
    }
    // It ends by itself after three minutes, whatever happens.
    Process::spawn("baresip", "baresip", "baresip-core", &dir, ["-4", "-f", ".", "-t", "180"])
}

/// Between two keys that a hand presses.
const KEY: Duration = Duration::from_millis(300);
const TALK: Duration = Duration::from_secs(3);
