//! Legs in a mix, on real sockets: the audio that each hears or does not hear, and the reports.
//!
//! No test sleeps: a phone sends its next packet after each one it receives, and the mix sends one every 20
//! ms.

use std::sync::Mutex;

use sidetone_media::codec::{Codec, Decoder, Encoder};
use sidetone_media::mix::{FrameSink, MixCommand, MixId, SeatCommand};
use sidetone_media::session::XrReports;
use sidetone_media::time::Micros;

use super::moves::pcmu_seat;
use super::*;

/// A phone in a mix.
struct Member {
    phone: Phone,
    port: Port,
    encoder: Encoder,
    decoder: Decoder,
    /// The frequency of its tone in Hz; 0 for silence.
    tone_hz: f64,
    at: u32,
}

impl Member {
    fn join(relay: &Relay, group: u64, mix: u64) -> Member {
        let phone = Phone::new(group as u32 + 1);
        let port = relay.open(group, V4).unwrap();
        describe(relay, port, description(&phone));
        relay.command(port.id, Command::Answered).unwrap();
        relay.command(port.id, Command::Join { mix: MixId(mix), seat: pcmu_seat(group) }).unwrap();
        let (encoder, decoder) = (Encoder::new(Codec::Pcmu).unwrap(), Decoder::new(Codec::Pcmu).unwrap());
        Member { phone, port, encoder, decoder, tone_hz: 0.0, at: 0 }
    }

    /// Sends the next 20 ms.
    fn say(&mut self) {
        let mut pcm = [0; 160];
        for (place, sample) in pcm.iter_mut().enumerate() {
            let turns = f64::from(self.at + place as u32) * self.tone_hz / 8_000.0;
            *sample = (8_000.0 * (turns * std::f64::consts::TAU).sin()) as i16;
        }
        self.at += 160;
        let mut packet = self.phone.packet(false, 0);
        let len = self.encoder.encode(&pcm, &mut packet[12..]).unwrap();
        assert_eq!(len, 160);
        self.phone.rtp.send_to(&packet, self.port.rtp).unwrap();
    }

    /// The power of the next received packet, at one frequency and in total.
    fn hear(&mut self, hz: f64) -> (f64, f64) {
        let (packet, source) = self.phone.receive();
        assert_eq!(source, self.port.rtp);
        assert_eq!(packet[1] & 0x7f, 0);
        let mut pcm = [0; 160];
        let samples = self.decoder.decode(&packet[12..], &mut pcm).unwrap();
        assert_eq!(samples, 160);
        let (mut sine, mut cosine, mut all) = (0.0, 0.0, 0.0);
        for (place, sample) in pcm.iter().enumerate() {
            let (angle, sample) = (place as f64 * hz / 8_000.0 * std::f64::consts::TAU, f64::from(*sample));
            sine += sample * angle.sin();
            cosine += sample * angle.cos();
            all += sample * sample;
        }
        ((sine * sine + cosine * cosine) * 2.0 / (160.0 * 160.0), all / 160.0)
    }
}

/// Each sends a packet, then each receives one, until the condition is true for the last one.
fn talk_until(members: &mut [Member], hz: f64, mut enough: impl FnMut((f64, f64)) -> bool) {
    for _ in 0..TURNS_MAX {
        let mut heard = (0.0, 0.0);
        for member in members.iter_mut() {
            member.say();
        }
        for member in members.iter_mut() {
            heard = member.hear(hz);
        }
        if enough(heard) {
            return;
        }
    }
    panic!("what must be heard is not heard");
}

/// Half a minute of ticks.
const TURNS_MAX: u32 = 1_500;

const LOUD: f64 = 1_000_000.0;
const QUIET: f64 = 10_000.0;

#[test]
fn legs_of_two_workers_hear_each_other_and_not_themselves() {
    let relay = start();
    // Both workers are homes; the mix lives in one of them.
    let mut members = [Member::join(&relay, 0, 7), Member::join(&relay, 1, 7)];
    members[0].tone_hz = 1_000.0;
    talk_until(&mut members, 1_000.0, |(tone, _)| tone > LOUD);
    members.reverse();
    let mut silent = 0;
    talk_until(&mut members, 1_000.0, |(_, all)| {
        assert!(all < QUIET, "the one who talks hears itself");
        silent += 1;
        silent == 25
    });
    let report = close(&relay, members[0].port.id);
    assert!(report.counters.sent_after_answer >= 25, "what a mix sends is sent");
    assert_eq!(report.figures.received, u64::from(members[0].at) / 160);
    assert!(relay.counters().mixed >= 50);
    assert!(relay.counters().ticks.total() > 0);
}

#[test]
fn who_talks_is_told_and_a_mute_silences() {
    let relay = start();
    let mut members = [Member::join(&relay, 0, 1), Member::join(&relay, 1, 1)];
    let talker = members[0].port.id;
    members[0].tone_hz = 600.0;
    let told = |wanted| {
        let relay = &relay;
        move |_| {
            relay.notices().try_iter().any(|notice| match notice {
                Notice::Talking { id, talking } => {
                    assert_eq!((id, talking), (talker, wanted));
                    true
                }
                _ => false,
            })
        }
    };
    talk_until(&mut members, 600.0, told(true));
    talk_until(&mut members, 600.0, |(tone, _)| tone > LOUD);
    relay.command(talker, Command::Seat(SeatCommand::Mute(true))).unwrap();
    talk_until(&mut members, 600.0, |(_, all)| all < QUIET);
    members[0].tone_hz = 0.0;
    talk_until(&mut members, 600.0, told(false));
}

#[test]
fn a_beep_is_heard_by_one_alone() {
    let relay = start();
    let mut members = [Member::join(&relay, 0, 5), Member::join(&relay, 1, 5)];
    talk_until(&mut members, 1_400.0, |_| true);
    relay.command(members[1].port.id, Command::Tone).unwrap();
    talk_until(&mut members, 1_400.0, |(tone, _)| tone > LOUD);
    members.reverse();
    talk_until(&mut members, 1_400.0, |(_, all)| {
        assert!(all < QUIET, "the other hears it too");
        true
    });
    members.reverse();
    talk_until(&mut members, 1_400.0, |(_, all)| all < QUIET);
}

#[test]
fn nobody_else_is_heard_from_a_members_port() {
    let relay = start();
    let mut members = [Member::join(&relay, 0, 4), Member::join(&relay, 1, 4)];
    // Until the party's own address is accepted.
    let mut turns = 0;
    talk_until(&mut members, 800.0, |_| {
        turns += 1;
        turns == 50
    });
    // What was sent so far is counted.
    for member in &members {
        let _ = snapshot(&relay, member.port.id);
    }
    let before = relay.counters();
    let mut attacker = Phone::new(99);
    let port = members[0].port.rtp;
    let mut turns = 0;
    talk_until(&mut members, 800.0, |(_, all)| {
        assert!(all < QUIET, "an attacker is heard");
        // A very loud packet with the party's own numbers.
        let mut packet = attacker.packet(false, 0);
        packet[8..12].copy_from_slice(&1_u32.to_be_bytes());
        for (place, byte) in packet[12..].iter_mut().enumerate() {
            *byte = if place % 8 < 4 { 0x80 } else { 0x00 };
        }
        attacker.rtp.send_to(&packet, port).unwrap();
        turns += 1;
        turns == 50
    });
    let foreign = |counters: &sidetone_media::net::Counters| {
        counters.discarded_for(sidetone_media::session::Reason::Source)
    };
    // Packets may wait in a socket while the counters are read.
    talk_until(&mut members, 800.0, |_| {
        turns += 1;
        foreign(&relay.counters()) - foreign(&before) == 50
    });
    let mixed = relay.counters().mixed - before.mixed;
    assert!(
        mixed <= 2 * (turns + 1),
        "{mixed} packets in {turns} turns: the members' own, and two from before"
    );
}

#[test]
fn a_key_is_told_once() {
    let relay = start();
    let mut member = [Member::join(&relay, 1, 2)];
    talk_until(&mut member, 600.0, |_| true);
    for (place, end) in [(0, false), (1, false), (2, false), (3, true), (3, true), (3, true)] {
        let phone = &mut member[0].phone;
        let mut packet = phone.packet(place == 0, 101);
        let begun = member[0].at;
        packet[4..8].copy_from_slice(&begun.to_be_bytes());
        let duration = (place + 1) * 160_u16;
        packet.truncate(12);
        packet.extend([5, u8::from(end) << 7 | 10]);
        packet.extend(duration.to_be_bytes());
        member[0].phone.rtp.send_to(&packet, member[0].port.rtp).unwrap();
    }
    // A second key, so that packets between the two would be noticed.
    let mut packet = member[0].phone.packet(true, 101);
    packet[4..8].copy_from_slice(&(member[0].at + 800).to_be_bytes());
    packet.truncate(12);
    packet.extend([11, 0x8a, 3, 0x20]);
    member[0].phone.rtp.send_to(&packet, member[0].port.rtp).unwrap();
    let mut digits = Vec::new();
    while digits.len() < 2 {
        if let Notice::Digit { id, digit } = notice(&relay) {
            assert_eq!(id, member[0].port.id);
            digits.push(digit);
        }
    }
    assert_eq!(digits, ['5', '#']);
}

#[test]
fn a_party_in_a_mix_is_sent_reports_of_our_stream_and_its_own() {
    let relay = start();
    let mut member = Member::join(&relay, 1, 2);
    let rtcp = member.phone.rtcp.try_clone().unwrap();
    let waiting = std::thread::spawn(move || receive(&rtcp));
    while !waiting.is_finished() {
        member.say();
        let _ = member.hear(1_000.0);
    }
    let (report, source) = waiting.join().unwrap();
    assert_eq!(source, member.port.rtcp);
    assert_eq!((report[0], report[1], report[53]), (0x81, 200, 202), "a sender report and a canonical name");
    let (packet, _) = member.phone.receive();
    assert_eq!(report[4..8], packet[8..12], "of the stream that it receives");
    assert_eq!(report[28..32], member.phone.ssrc.to_be_bytes(), "and how its own is heard");
    assert_eq!(report[32..36], [0; 4], "of which nothing was lost");
    let _ = close(&relay, member.port.id);
    let goodbye = std::iter::repeat_with(|| receive(&member.phone.rtcp).0).find(|packet| has_bye(packet));
    assert!(goodbye.is_some(), "the reports end with the leg (RFC 3550 §6.6)");
}

/// RFC 3611: a party that wants them receives the answer to its reference time and the losses with the first report.
#[test]
fn a_party_in_a_mix_gets_the_extended_report_that_it_wants() {
    let relay = start();
    let mut member = Member::join(&relay, 1, 2);
    let wish = XrReports { round_trip: true, summary: true, voip: true };
    describe(&relay, member.port, Description { xr: wish, ..description(&member.phone) });
    let ssrc = member.phone.ssrc.to_be_bytes();
    let rtcp = member.phone.rtcp.try_clone().unwrap();
    let waiting = std::thread::spawn(move || receive(&rtcp));
    let mut turns = 0;
    while !waiting.is_finished() {
        member.say();
        let _ = member.hear(1_000.0);
        turns += 1;
        match turns {
            10 => member.phone.seq += 3,
            20 => {
                let mut request = receiver_report(member.phone.ssrc);
                request.extend([0x80, 207, 0, 4]);
                request.extend(ssrc);
                request.extend([4, 0, 0, 2, 0, 0, 1, 2, 3, 4, 0, 0]);
                member.phone.rtcp.send_to(&request, member.port.rtcp).unwrap();
            }
            _ => {}
        }
    }
    let (report, _) = waiting.join().unwrap();
    // Sender report with a block, canonical name, then the extended report.
    let extended = &report[80..];
    assert_eq!(extended[..4], [0x80, 207, 0, 24]);
    assert_eq!(extended[4..8], report[4..8]);
    assert_eq!((&extended[8..12], &extended[12..16]), (&[5, 0, 0, 3][..], &ssrc[..]));
    assert_eq!(extended[16..20], [1, 2, 3, 4]);
    let delay = u32::from_be_bytes(extended[20..24].try_into().unwrap());
    assert!((1..65_536 * 90).contains(&delay), "{delay}");
    assert_eq!((&extended[24..28], &extended[28..32]), (&[6, 0xe0, 0, 9][..], &ssrc[..]));
    assert_eq!(extended[36..40], [0, 0, 0, 3], "three were lost");
    assert_eq!(extended[40..44], [0; 4], "and none came twice");
    let word = |at: usize| u32::from_be_bytes(extended[at..at + 4].try_into().unwrap());
    let [least, most, mean] = [44, 48, 52].map(word);
    assert!(least <= mean && mean <= most && most > 0, "jitter {least} {mean} {most}");
    assert_eq!((&extended[64..68], &extended[68..72]), (&[7, 0, 0, 8][..], &ssrc[..]));
    assert!(extended[72] > 0, "what was lost counts");
    assert_eq!(extended.len(), 100);
    let _ = close(&relay, member.port.id);
}

/// Whether a compound packet holds a BYE.
fn has_bye(mut compound: &[u8]) -> bool {
    while let [_, kind, high, low, ..] = compound {
        if *kind == 203 {
            return true;
        }
        let len = 4 * (1 + usize::from(u16::from_be_bytes([*high, *low])));
        compound = compound.get(len..).unwrap_or_default();
    }
    false
}

/// A sink that counts frames, and can panic or end at a given frame.
struct Tape {
    frames: Arc<Mutex<u32>>,
    panics_at: Option<u32>,
    ends_at: Option<u32>,
}

impl FrameSink for Tape {
    fn frame(&mut self, _at: Micros, pcm_16k: &[i16]) -> bool {
        assert_eq!(pcm_16k.len(), 320);
        let mut frames = self.frames.lock().unwrap();
        *frames += 1;
        assert_ne!(Some(*frames), self.panics_at, "a sink that is broken on purpose");
        Some(*frames) != self.ends_at
    }
}

#[test]
fn a_recording_that_ends_is_told_of() {
    let relay = start();
    let frames = Arc::new(Mutex::new(0));
    let tape = Tape { frames: Arc::clone(&frames), panics_at: None, ends_at: Some(20) };
    relay.mix(MixId(3), MixCommand::Record(Box::new(tape))).unwrap();
    let _member = Member::join(&relay, 0, 3);
    while !matches!(notice(&relay), Notice::RecordingEnded { mix: MixId(3) }) {}
    assert_eq!(*frames.lock().unwrap(), 20);
}

/// Loudness of each channel, summed over the frames.
struct Stereo(Arc<Mutex<[u64; 2]>>);

impl FrameSink for Stereo {
    fn frame(&mut self, _at: Micros, pcm: &[i16]) -> bool {
        assert_eq!(pcm.len(), 640);
        let mut sums = self.0.lock().unwrap();
        for pair in pcm.chunks_exact(2) {
            sums.iter_mut().zip(pair).for_each(|(sum, sample)| *sum += u64::from(sample.unsigned_abs()));
        }
        true
    }
}

/// The packets of a bridged call reach the peer with mapped payload types, and a mix hears them as received; without
/// the mix the bridge continues.
#[test]
fn a_mix_listens_to_a_bridge() {
    let relay = start();
    let mut members = [0, 1].map(|group| {
        let phone = Phone::new(group + 1);
        let port = relay.open(0, V4).unwrap();
        describe(&relay, port, description(&phone));
        relay.command(port.id, Command::Answered).unwrap();
        (phone, port)
    });
    let mut map: [u8; 128] = std::array::from_fn(|number| number as u8);
    map[0] = 100;
    for (own, peer) in [(0, 1), (1, 0)] {
        let payload_map = Some(Box::new(map));
        relay.command(members[own].1.id, Command::Bridge { peer: members[peer].1.id, payload_map }).unwrap();
        let listen = Command::Listen { mix: MixId(0), seat: pcmu_seat(own as u64) };
        relay.command(members[own].1.id, listen).unwrap();
    }
    let sums = Arc::new(Mutex::new([0; 2]));
    let sides = [members[0].1.id.seat(), members[1].1.id.seat()];
    let sink = Box::new(Stereo(Arc::clone(&sums)));
    relay.mix(MixId(0), MixCommand::RecordSides { sink, sides }).unwrap();
    let mut encoder = Encoder::new(Codec::Pcmu).unwrap();
    let tone: [i16; 160] = std::array::from_fn(|at| if at % 16 < 8 { 8_000 } else { -8_000 });
    let mut relayed = 0;
    // A member of the mix, whose packets give the time.
    let mut third = Member::join(&relay, 0, 0);
    // Only the first one talks.
    while sums.lock().unwrap()[0] < 50_000_000 {
        third.hear(1_000.0);
        let mut packet = members[0].0.packet(false, 0);
        encoder.encode(&tone, &mut packet[12..]).unwrap();
        members[0].0.rtp.send_to(&packet, members[0].1.rtp).unwrap();
        let (received, _) = members[1].0.receive();
        assert_eq!((received[1] & 0x7f, &received[12..]), (100, &packet[12..]));
        relayed += 1;
    }
    assert!(relayed > 10);
    assert_eq!(sums.lock().unwrap()[1], 0, "the other is silent");
    for (_, port) in &members {
        relay.command(port.id, Command::Leave).unwrap();
    }
    let packet = members[0].0.packet(false, 0);
    members[0].0.rtp.send_to(&packet, members[0].1.rtp).unwrap();
    let (received, _) = members[1].0.receive();
    assert_eq!(received[1] & 0x7f, 100, "the bridge goes on");
}

#[test]
fn a_panic_in_a_mix_costs_its_legs_and_no_other() {
    let relay = start();
    let frames = Arc::new(Mutex::new(0));
    let mut others = [Member::join(&relay, 0, 6), Member::join(&relay, 1, 6)];
    let doomed = [Member::join(&relay, 0, 8), Member::join(&relay, 1, 8)];
    let bystander = Phone::new(50);
    let bystander_port = relay.open(0, V4).unwrap();
    describe(&relay, bystander_port, description(&bystander));
    relay
        .mix(MixId(8), MixCommand::Record(Box::new(Tape { frames, panics_at: Some(5), ends_at: None })))
        .unwrap();
    let mut closed = Vec::new();
    let mut ended = false;
    while closed.len() < 2 || !ended {
        match notice(&relay) {
            Notice::Closed { id, report } => {
                assert!(report.counters.sent > 0, "its report is whole");
                closed.push(id);
            }
            Notice::RecordingEnded { mix } => ended = mix == MixId(8),
            _ => {}
        }
    }
    closed.sort_unstable();
    let mut expected = doomed.map(|member| member.port.id);
    expected.sort_unstable();
    assert_eq!(closed, expected);
    others[0].tone_hz = 1_000.0;
    talk_until(&mut others, 1_000.0, |(tone, _)| tone > LOUD);
    let _ = snapshot(&relay, bystander_port.id);
    assert!(relay.counters().panics >= 1);
    assert_eq!((relay.counters().mixes, relay.counters().seats), (1, 2));
}

#[test]
fn a_call_becomes_a_conference_and_a_call_again() {
    let relay = start();
    let (caller, callee) = (Phone::new(1), Phone::new(2));
    let (one, other) = call(&relay, 0, &caller, &callee);
    for port in [one, other] {
        relay.command(port.id, Command::Join { mix: MixId(9), seat: pcmu_seat(1) }).unwrap();
    }
    // From now on the packets come from the mix, which sends without input.
    for phone in [&caller, &callee] {
        assert!(phone.receive().0.len() > 12);
    }
    for port in [one, other] {
        relay.command(port.id, Command::Leave).unwrap();
    }
    bridge(&relay, one, other);
    let _ = snapshot(&relay, one.id);
    let _ = snapshot(&relay, other.id);
    let mut caller = caller;
    let sent = caller.send(one.rtp);
    while callee.receive().0 != sent {}
    // The worker publishes its counters at the end of its turn, after it has sent the packet.
    let empty = (0..10_000).any(|_| {
        let _ = snapshot(&relay, one.id);
        relay.counters().seats == 0
    });
    assert!(empty, "{} seats", relay.counters().seats);
}
