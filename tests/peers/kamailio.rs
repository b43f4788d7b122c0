//! kamailio is the carrier of a trunk: the trunk registers with a digest over TLS, calls work in both directions, and a
//! call moves to the server with free capacity.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::ports;
use crate::common::process::Process;
use crate::common::records::TempDir;
use crate::peers::engine::{self, Engine, Start};
use crate::peers::peer::{self, Kind, OUTSIDE, Peer};
use crate::peers::programs::{assert_good, hear_each_other};
use crate::peers::tell;
use crate::peers::turn;

/// A running kamailio, see `kamailio.cfg`.
struct Carrier {
    process: Process,
    /// Ports for TLS, for UDP, and for UDP where it answers that it has no capacity.
    tls: u16,
    udp: u16,
    busy: u16,
    /// The port of the external party.
    outside: u16,
    dir: TempDir,
}

impl Carrier {
    /// Starts it; `None` where it is not installed.
    fn start(test: &str) -> Option<Carrier> {
        let there = Command::new("kamailio").arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if there.is_err() || !has_tls() {
            tell(&format!("NOTICE: {test} is SKIPPED; apt-get install kamailio kamailio-tls-modules"));
            return None;
        }
        let dir = TempDir::new();
        engine::certify(dir.path(), "carrier", "carrier.example");
        let (first, outside) = (ports::free(3), peer::outside_port());
        let (tls, udp, busy) = (first, first + 1, first + 2);
        let path = |name: &str| dir.path().join(name).display().to_string();
        let defines = [
            format!("OUTSIDE_PORT={outside}"),
            format!("BUSY_PORT={busy}"),
            format!("TLS_KEY=\"{}\"", path("carrier.key")),
            format!("TLS_CERTIFICATE=\"{}\"", path("carrier.pem")),
        ];
        let listens = [("tls", tls), ("udp", udp), ("udp", busy)];
        let mut args: Vec<String> =
            ["-f", CONFIG, "-DD", "-E", "-m", "64", "-M", "8"].map(str::to_owned).into();
        args.extend(["-Y".to_owned(), path(""), "-P".to_owned(), path("pid")]);
        args.extend(
            listens
                .iter()
                .flat_map(|(protocol, port)| ["-l".to_owned(), format!("{protocol}:127.0.0.1:{port}")]),
        );
        args.extend(defines.into_iter().flat_map(|define| ["-A".to_owned(), define]));
        let process = Process::spawn("kamailio", "kamailio", "kamailio", dir.path(), args);
        let carrier = Carrier { process, tls, udp, busy, outside, dir };
        [udp, busy].into_iter().for_each(ports::wait_until_bound);
        ports::wait_until_accepting(tls);
        Some(carrier)
    }

    /// An engine with a trunk to it, and the phone 1001, whose number it is.
    fn engine(&self, trunk: &str) -> Engine {
        let directory = format!(
            "[[organisations.numbers]]\nnumber = \"{INSIDE}\"\ndestination = {{ extension = \"1001\" }}\n\
             [[trunks]]\nname = \"carrier\"\nusername = \"acme\"\npassword = \"hush\"\nrealm = \"carrier.example\"\n{trunk}"
        );
        let authority = self.dir.path().join("carrier.pem");
        let tls = format!("[[tls.trunks]]\nhost = \"127.0.0.1\"\nca = \"{}\"\n", authority.display());
        Engine::run(&Start { calls: 8, directory: &directory, settings: &tls, ..Start::default() })
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.process.terminate();
    }
}

/// The newest of this many records.
fn assert_record(engine: &mut Engine, count: usize, wanted: [&str; 4]) -> Value {
    let record = engine.records(count).swap_remove(0);
    let seen = ["direction", "caller_number", "destination_number", "ended_by"].map(|field| &record[field]);
    assert_eq!(seen, wanted, "{record:#}");
    assert_good(&record);
    record
}

#[test]
fn kamailio_registers_a_trunk_over_tls_and_carries_its_calls() {
    let Some(_turn) = turn() else { return };
    let Some(mut carrier) = Carrier::start("kamailio over TLS") else { return };
    let trunk = format!("address = \"sip:127.0.0.1:{};transport=tls\"\nregister = true\n", carrier.tls);
    let mut engine = carrier.engine(&trunk);
    let mut phone = Peer::register(&engine, Kind::Baresip, "1001");
    let mut outside = Peer::outside(&engine, OUTSIDE, carrier.outside, &format!("127.0.0.1:{}", carrier.udp));
    carrier.process.wait_for("registered: acme by tls");
    for (by_caller, ended_by) in [(true, "caller"), (false, "callee")] {
        let count = if by_caller { 0 } else { 2 };
        phone.call(OUTSIDE);
        outside.answer();
        hear_each_other(&mut phone, &mut outside);
        end(by_caller, &mut phone, &mut outside);
        assert_record(&mut engine, count + 1, ["outbound", INSIDE, OUTSIDE, ended_by]);

        outside.call(INSIDE);
        phone.answer();
        hear_each_other(&mut phone, &mut outside);
        end(by_caller, &mut outside, &mut phone);
        assert_record(&mut engine, count + 2, ["inbound", OUTSIDE, INSIDE, ended_by]);
    }
    carrier.process.wait_for("in the call: BYE by tls");
}

/// No server listens at the first address, and the second has no capacity.
#[test]
fn a_call_goes_on_to_the_server_of_kamailio_that_has_room() {
    let Some(_turn) = turn() else { return };
    let Some(mut carrier) = Carrier::start("the failover to kamailio") else { return };
    let trunk = format!(
        "address = \"sip:127.0.0.1:{};transport=tcp\"\n\
         backup_addresses = [\"sip:127.0.0.1:{}\", \"sip:127.0.0.1:{};transport=tls\"]\n",
        ports::free(1),
        carrier.busy,
        carrier.tls
    );
    let mut engine = carrier.engine(&trunk);
    let mut phone = Peer::register(&engine, Kind::Baresip, "1001");
    let mut outside = Peer::outside(&engine, OUTSIDE, carrier.outside, &format!("127.0.0.1:{}", carrier.udp));
    phone.call(OUTSIDE);
    outside.answer();
    hear_each_other(&mut phone, &mut outside);
    outside.hang_up();
    phone.released();
    let record = assert_record(&mut engine, 1, ["outbound", INSIDE, OUTSIDE, "callee"]);
    assert_eq!(record["sip_status"], 200, "{record:#}");
    let said = carrier.process.wait_for("from the account");
    let (refused, _) = said.split_once("from the account").unwrap();
    assert!(refused.contains(&format!("no room: {OUTSIDE}")), "the second server first: {said}");
}

/// Whether the TLS module is installed, which is a separate package.
fn has_tls() -> bool {
    let mut folders = std::fs::read_dir("/usr/lib").into_iter().flatten().filter_map(Result::ok);
    folders.any(|folder| folder.path().join("kamailio/modules/tls.so").exists())
}

/// One of the two parties hangs up, and the other one is released.
fn end(by_caller: bool, caller: &mut Peer, callee: &mut Peer) {
    let (by, other) = if by_caller { (caller, callee) } else { (callee, caller) };
    by.hang_up();
    other.released();
}

/// The number of 1001.
const INSIDE: &str = "+442071230000";
const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/kamailio.cfg");
