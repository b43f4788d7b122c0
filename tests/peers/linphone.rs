//! linphonec, the console phone of Linphone: it answers automatically, without a sound card.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::ports;
use crate::common::process::Process;
use crate::peers::engine::{AUTHORITY, Engine};

/// Whether it is installed: not every system has it.
pub fn is_there() -> bool {
    Command::new("linphonec").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// A phone that registers and answers.
pub fn phone(engine: &Engine, number: &str, password: &str) -> Process {
    set_up(engine, number, password, "tone.wav", &["-a"], Way::Plain)
}

/// A phone that records received audio, see [`heard`].
pub fn keeping_phone(engine: &Engine, number: &str, password: &str) -> Process {
    let mut phone = set_up(engine, number, password, "tone.wav", &[], Way::Plain);
    phone.type_line(&format!("record {}", heard(engine, number).display()));
    phone
}

/// A phone that plays this file of the test's directory.
pub fn playing_phone(engine: &Engine, number: &str, password: &str, plays: &str, way: Way) -> Process {
    set_up(engine, number, password, plays, &[], way)
}

/// How a phone reaches the engine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Over UDP with ICE, with candidates of only its own addresses.
    Ice,
    /// Over UDP.
    Plain,
    /// Over TLS and with SRTP only.
    Secure,
}

/// The growing recording of a phone's received audio: 48,000 Hz in a call with Opus.
pub fn heard(engine: &Engine, number: &str) -> PathBuf {
    engine.dir().join(number).join("heard.wav")
}

/// Plays a file of the test's directory into the current call.
pub fn play(engine: &Engine, phone: &mut Process, file: &str) {
    phone.type_line(&format!("play {}", engine.dir().join(file).display()));
}

/// Presses keys.
pub fn press(phone: &mut Process, keys: &str) {
    for key in keys.chars() {
        phone.pass(KEY);
        phone.type_line(&key.to_string());
    }
}

fn set_up(engine: &Engine, number: &str, password: &str, plays: &str, args: &[&str], way: Way) -> Process {
    let dir = engine.dir().join(number);
    // Without these it finds no place for its database and stops.
    for folder in [".local/share/linphone", ".config/linphone"] {
        std::fs::create_dir_all(dir.join(folder)).unwrap();
    }
    let (sip_port, rtp_first) = (ports::free(2), ports::free(32));
    let (at, listens) = if way == Way::Secure {
        // Its library compares the server's name only with names, not with addresses.
        let (_, port) = engine.sip_tls().rsplit_once(':').unwrap();
        let listens = format!(
            "sip_port=0\nsip_tcp_port=0\nsip_tls_port={sip_port}\nroot_ca={}\nverify_server_certs=1\n\
             verify_server_cn=1\nmedia_encryption=srtp\nmedia_encryption_mandatory=1",
            engine.dir().join(AUTHORITY).display()
        );
        (format!("localhost:{port};transport=tls"), listens)
    } else {
        (format!("{};transport=udp", engine.sip()), format!("sip_port={sip_port}\nsip_tcp_port=0"))
    };
    let (ice, policy) = match way {
        Way::Ice => {
            ("[nat_policy_0]\nref=ice\nprotocols=ice\n[net]\nnat_policy_ref=ice\n", "nat_policy_ref=ice\n")
        }
        Way::Plain | Way::Secure => ("", ""),
    };
    let config = format!(
        "{ice}[sip]\n{listens}\ndefault_proxy=0\nguess_hostname=0\nbind_address=127.0.0.1\n\
         use_ipv6=0\n[rtp]\naudio_rtp_port={rtp_first}-{}\n[video]\nenabled=0\ndisplay=0\ncapture=0\n\
         [proxy_0]\nreg_proxy=<sip:{at}>\nreg_route=<sip:{at};lr>\n\
         reg_identity=sip:{number}@acme.test\nreg_expires=300\nreg_sendregister=1\npublish=0\n{policy}\
         [auth_info_0]\nusername={number}\nuserid={number}\npasswd={password}\ndomain=acme.test\nrealm=acme.test\n",
        rtp_first + 31,
    );
    std::fs::write(dir.join("linphonerc"), config).unwrap();
    let args = ["-c", "linphonerc", "-d", "0"].iter().chain(args);
    let mut phone = Process::spawn("linphone", "linphonec", "linphone-cli", &dir, args);
    phone.wait_for("linphonec>");
    phone.type_line(&format!("soundcard use files {}", engine.dir().join(plays).display()));
    phone
}

/// Repeats a command until the output appears.
pub fn wait_until_registered(phone: &mut Process) {
    let mut asked = 0;
    while !phone.said().contains("registered, identity=") {
        asked += 1;
        assert!(asked <= 300, "{phone} does not register");
        // Counted before the command, because the output may appear immediately.
        let said = phone.said().matches("linphonec>").count();
        phone.type_line("status register");
        phone.wait("an answer", |phone| (phone.said().matches("linphonec>").count() > said).then_some(()));
        std::thread::park_timeout(Duration::from_millis(200));
    }
}

/// The pause between two keys; it sends each for a tenth of a second.
const KEY: Duration = Duration::from_millis(400);
