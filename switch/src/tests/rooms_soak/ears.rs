//! The mixes of the rooms in a soak test, with phones that send tones: the audio of each phone must match the live
//! rooms.

use std::collections::BTreeMap;
use std::f64::consts::TAU;

use sidetone_media::codec::{Decoder, Encoder};
use sidetone_media::mix::{Formats, Hears, Mix, MixId, Seat, SeatCommand, SeatKey};
use sidetone_media::rtp::{Packet, RtpPacket};
use sidetone_media::time::Micros;
use sidetone_model::room::{LiveMember, LiveRoom};

use crate::io::{MediaCommand, PortId};
use crate::mixing::SeatHears;

/// The tone of the member that must be heard, and that of the member that must not.
const HEARD_HZ: f64 = 500.0;
const UNHEARD_HZ: f64 = 1_700.0;
const AMPLITUDE: f64 = 4_000.0;
/// Ticks of one comparison: a voice is heard after at most ten of them.
const TICKS: usize = 16;
/// The last ticks, in which the audio is measured.
const MEASURED: usize = 4;
/// 20 ms at 8 kHz.
const FRAME: usize = 160;

/// The mixes, and the place of every seated port.
#[derive(Default)]
pub(super) struct Ears {
    mixes: BTreeMap<MixId, Mix>,
    seats: BTreeMap<PortId, (MixId, Formats)>,
    now: i64,
    sent: u16,
    /// Pairs of a talker and a party that heard it, so far.
    pub(super) heard: usize,
    /// Parties that did not hear a member that is muted or waits.
    pub(super) unheard: usize,
}

impl Ears {
    /// Carries out a command of the switch, as the relay does.
    pub(super) fn command(&mut self, port: PortId, command: &MediaCommand) {
        match command {
            MediaCommand::Join { mix, formats, muted, hears, .. } => {
                self.leave(port);
                let formats = Formats::clone(formats);
                let seat =
                    Seat { formats: formats.clone(), muted: *muted, hears: source(*hears), seed: port.0 };
                self.mixes.entry(*mix).or_default().seat(SeatKey(port.0), seat).unwrap();
                self.seats.insert(port, (*mix, formats));
            }
            MediaCommand::Leave => self.leave(port),
            MediaCommand::Format(formats) => {
                if let Some((_, known)) = self.seats.get_mut(&port) {
                    known.clone_from(formats);
                }
                self.seat(port, SeatCommand::Format(formats.clone()));
            }
            MediaCommand::Gain(gain) => self.seat(port, SeatCommand::Gain(*gain)),
            MediaCommand::Hear(hears) => self.seat(port, SeatCommand::Hear(source(*hears))),
            MediaCommand::Mute(muted) => self.seat(port, SeatCommand::Mute(*muted)),
            MediaCommand::Whisper(to) => {
                self.seat(port, SeatCommand::Whisper(to.map(|to| SeatKey(to.0))));
            }
            _ => {}
        }
    }

    fn seat(&mut self, port: PortId, command: SeatCommand) {
        let Some((mix, _)) = self.seats.get(&port) else { return };
        self.mixes.get_mut(mix).unwrap().command(SeatKey(port.0), command).unwrap();
    }

    fn leave(&mut self, port: PortId) {
        let Some((id, _)) = self.seats.remove(&port) else { return };
        let mix = self.mixes.get_mut(&id).unwrap();
        assert!(mix.unseat(SeatKey(port.0)), "a seat that the mix does not know");
        if mix.figures().seats == 0 {
            self.mixes.remove(&id);
        }
    }

    /// Drops the seats of ports that are closed.
    pub(super) fn keep(&mut self, is_open: impl Fn(PortId) -> bool) {
        let closed: Vec<PortId> = self.seats.keys().copied().filter(|port| !is_open(*port)).collect();
        closed.into_iter().for_each(|port| self.leave(port));
    }

    /// Lets one member that must be heard and one that must not be heard talk, and compares the audio of all members'
    /// phones with the live room. `phones` are the ports of the members whose phone is alive.
    pub(super) fn look(&mut self, room: &LiveRoom, phones: &BTreeMap<u32, PortId>, choice: usize) {
        let here: Vec<(&LiveMember, PortId)> = room
            .members
            .iter()
            .filter_map(|member| Some((member, *phones.get(&member.id)?)))
            .filter(|(_, port)| self.seats.contains_key(port))
            .collect();
        let is_silent = |member: &LiveMember| member.muted || member.waiting || member.on_hold;
        let speaks = |port: &PortId| self.seats[port].1.speaks;
        let pick = |silent: bool| {
            let fit: Vec<PortId> = here
                .iter()
                .filter(|(member, port)| is_silent(member) == silent && speaks(port))
                .map(|(_, port)| *port)
                .collect();
            (!fit.is_empty()).then(|| fit[choice % fit.len()])
        };
        let (talker, muted) = (pick(false), pick(true));
        let Some(mix) = here.first().map(|(_, port)| self.seats[port].0) else { return };
        for (_, port) in &here {
            assert_eq!(self.seats[port].0, mix, "members of a room in two mixes");
        }
        let heard = self.run(mix, talker, muted);
        for (member, port) in here {
            let pcm = heard.get(&port).map(Vec::as_slice).unwrap_or_default();
            let (loud, quiet) = (amplitude(pcm, HEARD_HZ), amplitude(pcm, UNHEARD_HZ));
            let listens = !member.waiting && !member.on_hold && !member.deaf && self.seats[&port].1.hears;
            if let Some(talker) = talker.filter(|talker| *talker != port) {
                assert_eq!(
                    loud > AMPLITUDE / 2.0,
                    listens,
                    "port {} hears {loud:.0} of port {}: {member:?}",
                    port.0,
                    talker.0
                );
                self.heard += usize::from(listens);
            }
            assert!(quiet < AMPLITUDE / 50.0, "port {} hears {quiet:.0} of a silent member", port.0);
            self.unheard += usize::from(muted.is_some_and(|muted| muted != port));
        }
    }

    /// Runs a mix for some time while two ports send their tones; returns the audio of every port at the end.
    fn run(
        &mut self,
        mix: MixId,
        talker: Option<PortId>,
        muted: Option<PortId>,
    ) -> BTreeMap<PortId, Vec<i16>> {
        let mut heard: BTreeMap<PortId, Vec<i16>> = BTreeMap::new();
        let tones = [(talker, HEARD_HZ), (muted, UNHEARD_HZ)];
        let mut senders: Vec<(PortId, f64, Encoder)> = tones
            .into_iter()
            .filter_map(|(port, hz)| Some((port?, hz, Encoder::new(self.seats[&port?].1.send.1).unwrap())))
            .collect();
        let mix = self.mixes.get_mut(&mix).unwrap();
        for tick in 0..TICKS {
            for (port, hz, encoder) in &mut senders {
                let formats = &self.seats[port].1;
                send(mix, (self.now, self.sent), *port, (formats.send.0, encoder), *hz);
            }
            self.sent = self.sent.wrapping_add(1);
            self.now += 20_000;
            while mix.next_tick().is_some_and(|next| next <= Micros(self.now)) {
                mix.tick(Micros(self.now));
                while let Some((key, datagram)) = mix.poll_packet() {
                    if tick + MEASURED < TICKS {
                        continue;
                    }
                    let port = PortId(key.0);
                    let mut pcm = [0; 5_760];
                    let packet = RtpPacket::parse(datagram).unwrap();
                    let mut decoder = Decoder::new(self.seats[&port].1.send.1).unwrap();
                    let count = decoder.decode(packet.payload, &mut pcm).unwrap();
                    heard.entry(port).or_default().extend_from_slice(&pcm[..count]);
                }
            }
        }
        // The next comparison begins after the longest pause that counts as one talk spurt.
        self.now += 1_000_000;
        heard
    }
}

/// Sends 20 ms of a tone.
fn send(
    mix: &mut Mix,
    (now, sent): (i64, u16),
    port: PortId,
    (payload_type, encoder): (u8, &mut Encoder),
    hz: f64,
) {
    let pcm: Vec<i16> =
        (0..FRAME).map(|n| (AMPLITUDE * (TAU * hz * n as f64 / 8_000.0).sin()) as i16).collect();
    let mut payload = [0; FRAME];
    let len = encoder.encode(&pcm, &mut payload).unwrap();
    let header = Packet {
        ssrc: port.0 as u32,
        timestamp: (now / 125) as u32,
        payload_len: len as u32,
        sequence: sent,
        payload_type,
        marker: false,
    };
    mix.receive(Micros(now), SeatKey(port.0), &RtpPacket { header, payload: &payload[..len] });
}

fn source(hears: SeatHears) -> Hears {
    match hears {
        SeatHears::Room => Hears::Mix,
        SeatHears::Nothing => Hears::Nothing,
        // The music of these soaks is silent.
        SeatHears::Music => Hears::Music(std::sync::Arc::new(silent_clip())),
        SeatHears::Silence => Hears::Silence,
    }
}

fn silent_clip() -> sidetone_media::audio::clip::Clip {
    sidetone_media::audio::clip::Clip::new(vec![0; 16_000])
}

/// The amplitude of one frequency in PCM of 8 kHz.
fn amplitude(pcm: &[i16], hz: f64) -> f64 {
    let (mut sine, mut cosine) = (0.0, 0.0);
    for (n, sample) in pcm.iter().enumerate() {
        let angle = TAU * hz * n as f64 / 8_000.0;
        sine += f64::from(*sample) * angle.sin();
        cosine += f64::from(*sample) * angle.cos();
    }
    if pcm.is_empty() { 0.0 } else { 2.0 * f64::hypot(sine, cosine) / pcm.len() as f64 }
}
