//! Random actions of parties, rooms and carriers: every leg ends, and no state is left.

use std::collections::HashMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sidetone_model::call::HangupCause;
use sidetone_model::ids::CallId;
use sidetone_model::room::{Control, DialKind, DialRequest, Requester, Role, RoomName};
use sidetone_sip::flow::{Flow, ListenerId};
use sidetone_sip::message::{Method, StatusCode};
use sidetone_sip::ua::{Draft, Extra, Reply};

use crate::machine::Input;
use crate::queries::{ControlRoom, DialIntoRoom, Merge};
use crate::tests::conference_adapter::{CARRIER, WORLD, room_id, with_rooms};
use crate::tests::network::{Net, Plan, SDP, SWITCH, address, extension};

/// The network and the random generator of a run.
struct Chaos {
    net: Net,
    rng: StdRng,
}

impl Chaos {
    fn new(seed: u64) -> Chaos {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut directory = with_rooms();
        directory.rooms[1].members = vec![extension(11, 1, "acme.test", "1001").id];
        directory.rooms[1].end_when_moderator_leaves = rng.random();
        directory.rooms[1].wait_for_moderator = rng.random();
        directory.rooms[0].record = rng.random();
        let mut net = Net::new(directory);
        let plans = [Plan::Accept, Plan::Ring, Plan::Refuse(486, Vec::new()), Plan::Silence];
        let plans: Vec<Plan> = (0..3).map(|_| plans[rng.random_range(0..plans.len())].clone()).collect();
        net.carrier(CARRIER, plans);
        Chaos { net, rng }
    }

    fn act(&mut self, serial: usize) {
        let room = [51, 52][self.rng.random_range(0..2)];
        match self.rng.random_range(0..16) {
            0 => self.net.dial("200"),
            1 => self.net.dial("300"),
            2 => self.net.dial(WORLD),
            3 => self.net.try_call_in(&format!("+3314000{serial:04}")),
            4 => {
                let port = self.rng.random_range(1..=self.net.ports.0.len().max(1)) as u64;
                let keys = ["1234#", "9876#", "300#", "*1", "*2", "*5", "*7", "*0", "0000#"];
                self.net.key(port, keys[self.rng.random_range(0..keys.len())]);
            }
            5 if self.net.leg.is_some() => self.net.hang_up(),
            6 => self.net.refusal = self.rng.random::<bool>().then(|| Reply::new(busy())),
            7 => self.dial_into(room),
            8 if self.net.ringing.is_some() => self.net.try_pick_up(),
            9 => self.control(room),
            10 => {
                self.net.is_disk_slow = !self.net.is_disk_slow;
                self.net.write();
            }
            11 if self.net.leg.is_some() => self.net.try_to_hold(&format!("{SDP}a=sendonly\r\n")),
            12 => {
                self.net.dial(WORLD);
                self.net.dial(WORLD);
                self.merge();
            }
            13 => self.net.try_to_register(),
            _ => self.net.wait(Duration::from_millis(self.rng.random_range(0..20_000))),
        }
    }

    fn dial_into(&mut self, room: u128) {
        let (kind, target) = match self.rng.random::<bool>() {
            true => (DialKind::Extension, "1001"),
            false => (DialKind::External, WORLD),
        };
        let role = if self.rng.random() { Role::Moderator } else { Role::Participant };
        let request = DialRequest { kind, target: target.into(), role, confirm: false };
        let _ = self.net.ask(DialIntoRoom(room_id(room), request));
    }

    fn control(&mut self, room: u128) {
        let member = self.rng.random_range(1..4);
        let controls = [
            Control::End,
            Control::Kick(member),
            Control::Lock,
            Control::Mute(member),
            Control::MuteAll,
            Control::Record(self.rng.random()),
            Control::Unlock,
            Control::Unmute(member),
        ];
        let control = controls[self.rng.random_range(0..controls.len())];
        let name = RoomName::Stored(room_id(room));
        let _ = self.net.ask(ControlRoom(name, control));
    }

    fn merge(&mut self) {
        let ids: Vec<CallId> = self.net.news.iter().map(|news| news.call().uuid).collect();
        if let [.., with, call] = ids.as_slice() {
            let (call, with) = (*call, *with);
            let _ = self.net.ask(Merge { call, with, by: Requester::default() });
        }
    }
}

impl Net {
    /// 1001 answers the ringing call, if it still rings.
    pub(super) fn try_pick_up(&mut self) {
        let Some((leg, key)) = self.ringing.take() else { return };
        let reply = Reply::new(StatusCode::OK).content("application/sdp", SDP);
        if self.phone.respond(self.now(), &key, reply).is_ok() {
            self.leg = Some(leg);
        }
        self.run();
    }

    /// 1001 sends an offer inside its call, if it has one.
    pub(super) fn try_to_hold(&mut self, sdp: &str) {
        let extra = Extra::new().content("application/sdp", sdp.to_owned());
        if let Some(leg) = self.leg {
            let _ = self.phone.reinvite(self.now(), leg, &extra);
        }
        self.run();
    }

    /// 1001 registers, again if it is registered.
    pub(super) fn try_to_register(&mut self) {
        let aor = "<sip:1001@acme.test>";
        let draft = Draft::new(Method::Register, "sip:acme.test", aor, aor).header("Expires", "600");
        let _ = self.phone.request(self.now(), Flow::udp(ListenerId(0), address(SWITCH)), draft);
        self.run();
    }
}

fn busy() -> StatusCode {
    StatusCode::new(486).unwrap()
}

#[test]
fn whatever_happens_to_rooms_nothing_is_left_behind() {
    let (mut joined, mut merged, mut answered) = (0, 0, 0);
    for seed in 0..120 {
        let mut chaos = Chaos::new(seed);
        for serial in 0..60 {
            chaos.act(serial);
        }
        let net = &mut chaos.net;
        net.is_disk_slow = false;
        net.write();
        net.feed(Input::EndCalls(HangupCause::NormalClearing));
        net.run();
        net.wait(Duration::from_secs(400));
        let switch = &net.switch;
        assert_eq!((switch.live_calls(), switch.legs()), (0, 0), "seed {seed}");
        let rooms = &switch.control.conferences;
        assert!(rooms.seats.is_empty() && rooms.dials.is_empty(), "seed {seed}");
        assert!(switch.control.calls.is_empty(), "seed {seed}");
        assert!(switch.control.calls.has_no_outbound() && switch.control.hunts.is_empty(), "seed {seed}");

        let mut records = HashMap::new();
        for record in &net.records {
            *records.entry(record.call_uuid).or_insert(0) += 1;
        }
        assert!(records.values().all(|count| *count == 1), "seed {seed}: one record a call");
        let heard = net.heard_of_rooms();
        let count = |what: &str| heard.lines().filter(|line| line.contains(what)).count();
        assert_eq!(count(" joined as "), count("news Left"), "seed {seed}\n{heard}");
        assert_eq!(count("news Opened"), count("news Ended"), "seed {seed}\n{heard}");
        (joined, merged) = (joined + count(" joined as "), merged + count("news merged"));
        answered += net.records.iter().filter(|record| record.answered_at.is_some()).count();
    }
    assert!(joined > 300 && merged > 3 && answered > 300, "{joined} {merged} {answered}: much came to pass");
}
