//! The relay as the switch uses it: ports by the switch's own numbers, prompts by name, and commands that wait while
//! a worker is busy.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sidetone_media::audio::clip::Clip;
use sidetone_media::mix::{FrameSink, Hears, MixCommand, MixId, Seat, SeatCommand};
use sidetone_media::net::{self, Relay, RtcpSink};
use sidetone_media::trace::{TraceHead, TraceSink};
use sidetone_model::ids::{ExtensionId, LegId, OrganisationId};
use sidetone_model::language::Language;
use sidetone_model::prompt::{Prompt, SoundName};
use sidetone_sip::transport::Routes;
use sidetone_switch::conference::NameOrder;
use sidetone_switch::io::{LegName, MediaCommand, Port, PortId, VideoPort};
use sidetone_switch::mixing::{MixOrder, RecordingPlan, SeatHears};

/// The source of prompts and the target of recordings. Its functions must not wait for a disk.
pub trait ConferenceAudio: Send {
    /// Returns the organisation's clip for a prompt, or the built-in one in this language.
    fn clip(&self, organisation: OrganisationId, language: Language, prompt: Prompt) -> Arc<Clip>;

    /// Returns the organisation's clip of this name; `None` when it was removed.
    fn sound(&self, organisation: OrganisationId, language: Language, name: SoundName) -> Option<Arc<Clip>>;

    /// Looks up the recorded name of an extension, and keeps it for the leg; the switch gets the result
    /// ([`Request::NameKnown`](crate::driver::Request::NameKnown)).
    fn find_name(&self, leg: LegId, organisation: OrganisationId, extension: ExtensionId);

    /// Forgets the name of a leg.
    fn forget_name(&self, leg: LegId);

    /// Returns the name of a leg in a room of this organisation.
    fn name(&self, leg: LegId, organisation: OrganisationId) -> Option<Arc<Clip>>;

    /// Starts to record the name of a leg; the switch gets the result. `None` if there is no space for it.
    fn record_name(
        &self,
        leg: LegId,
        organisation: OrganisationId,
        extension: Option<ExtensionId>,
    ) -> Option<Box<dyn FrameSink>>;

    /// Starts a recording, which reports its end to the switch itself
    /// ([`Request::Recorded`](crate::driver::Request::Recorded)).
    ///
    /// # Errors
    /// Why the recording cannot start, as text for the log and the session.
    fn record(&self, plan: RecordingPlan) -> Result<Box<dyn FrameSink>, String>;
}

/// The target of leg traces. Its functions must not wait for a disk.
pub trait Tracing: Send {
    /// Returns the trace head of a leg and the sink of its trace; `None` when the leg is not traced.
    fn begin(&self, leg: LegName) -> Option<(TraceHead, Arc<dyn TraceSink>)>;
}

/// The relay as the switch uses it.
pub(super) struct Media {
    relay: Arc<Relay>,
    external: Option<IpAddr>,
    routes: Routes,
    ids: HashMap<PortId, Known>,
    keys: HashMap<net::PortId, PortId>,
    next: u64,
    orders: VecDeque<Order>,
    audio: Option<Box<dyn ConferenceAudio>>,
    tracing: Option<Box<dyn Tracing>>,
    /// The generator of the SSRCs and sequence numbers of the node's own streams.
    rng: StdRng,
}

/// An open port.
#[derive(Clone, Copy)]
struct Known {
    id: net::PortId,
    /// The organisation and language of the prompts that the party hears, once it has joined a mix.
    spoken: Option<Spoken>,
}

/// The organisation and the language of prompts.
type Spoken = (OrganisationId, Language);

/// A command that waits for a worker.
enum Order {
    Mix(MixId, MixCommand),
    Port(net::PortId, net::Command),
}

impl Media {
    /// Opens a port for a party whose SIP comes from `towards`, and one for its `video`; `group` is one per call,
    /// `rtcp` receives the RTCP of the leg. Returns `None` if no port is free. Without a free port for video, the
    /// call has none.
    pub(super) fn open(
        &mut self,
        now: Instant,
        leg: LegName,
        group: u64,
        (towards, video): (IpAddr, bool),
        rtcp: Option<Arc<dyn RtcpSink>>,
    ) -> Option<Port> {
        let local = self.routes.local_address_towards(now, towards).ok()?;
        let (id, port, advertised) = self.open_pair(group, local)?;
        if let Some((head, sink)) = self.tracing.as_ref().and_then(|tracing| tracing.begin(leg)) {
            self.orders.push_back(Order::Port(port.id, net::Command::Trace { head: Box::new(head), sink }));
        }
        if let Some(sink) = rtcp {
            self.orders.push_back(Order::Port(port.id, net::Command::TapRtcp(sink)));
        }
        let video = if video { self.open_pair(group, local) } else { None };
        let video = video.map(|(id, _, advertised)| VideoPort { id, advertised });
        Some(Port { id, advertised, video })
    }

    /// Opens a pair of ports; returns its number in the switch, its port in the relay, and its address in SDP.
    fn open_pair(&mut self, group: u64, local: IpAddr) -> Option<(PortId, net::Port, SocketAddr)> {
        let port = match self.relay.open_later(group, local) {
            Ok(port) => port,
            Err(error) => {
                tracing::error!(%error, "no media port for a call");
                return None;
            }
        };
        let id = PortId(self.next);
        self.next = self.next.wrapping_add(1);
        self.ids.insert(id, Known { id: port.id, spoken: None });
        self.keys.insert(port.id, id);
        let advertised = match self.external.filter(|_| !local.is_loopback()) {
            Some(external) => SocketAddr::new(external, port.rtp.port()),
            None => port.rtp,
        };
        Some((id, port, advertised))
    }
}

impl Media {
    /// Wraps the relay, with no ports open; `external` is the address in SDP instead of the local one.
    pub(super) fn new(relay: Arc<Relay>, external: Option<IpAddr>) -> Self {
        Media {
            relay,
            external,
            routes: Routes::default(),
            ids: HashMap::new(),
            keys: HashMap::new(),
            next: 0,
            orders: VecDeque::new(),
            audio: None,
            tracing: None,
            rng: StdRng::seed_from_u64(0),
        }
    }

    /// Enables prompts and recordings; `seed` determines the SSRCs and sequence numbers of the node's own streams.
    pub(super) fn sound(&mut self, audio: Box<dyn ConferenceAudio>, seed: u64) {
        self.audio = Some(audio);
        self.rng = StdRng::seed_from_u64(seed);
    }

    /// Enables traces of legs opened from now on; `tracing` selects the legs.
    pub(super) fn trace(&mut self, tracing: Box<dyn Tracing>) {
        self.tracing = Some(tracing);
    }

    /// Returns the number of ports that are open or closing.
    pub(super) fn ports(&self) -> usize {
        self.ids.len()
    }

    /// Whether a thread of the relay has died, and its legs with it.
    pub(super) fn has_lost_a_worker(&self) -> bool {
        self.relay.has_lost_a_worker()
    }

    /// Returns the number of commands that wait for a worker.
    pub(super) fn orders(&self) -> usize {
        self.orders.len()
    }

    /// Returns the next notice of a worker.
    pub(super) fn notice(&self) -> Option<net::Notice> {
        self.relay.notices().try_recv().ok()
    }

    /// Queues a command to a port; [`Media::flush`] passes it on before the next SIP message is sent, or at the end of the
    /// iteration. So a worker is woken only once for several commands.
    pub(super) fn order(&mut self, port: PortId, command: MediaCommand) {
        let Some(known) = self.ids.get(&port).copied() else { return };
        if let Some(command) = self.command(port, known, command) {
            self.orders.push_back(Order::Port(known.id, command));
        }
    }

    /// Queues an order to a mix.
    ///
    /// # Errors
    /// For an order to record: why the recording cannot start.
    pub(super) fn order_mix(&mut self, mix: MixId, order: MixOrder) -> Result<(), String> {
        let command = match order {
            MixOrder::Play { organisation, language, prompts } => {
                MixCommand::Play(self.clips(Some((organisation, language)), &prompts))
            }
            MixOrder::PlaySound { organisation, language, sound } => {
                match self.named(Some((organisation, language)), sound) {
                    Some(clip) => MixCommand::PlaySound(clip),
                    None => return Ok(()),
                }
            }
            MixOrder::Record(plan) => {
                let audio = self.audio.as_ref().ok_or("there is nothing to record with")?;
                let channels = plan.channels;
                let sink = audio.record(plan)?;
                let seat = |port: PortId| self.ids.get(&port).map(|known| known.id.seat());
                match plan.sides.map(|sides| sides.map(seat)) {
                    Some([Some(left), Some(right)]) => MixCommand::RecordSides { sink, sides: [left, right] },
                    // A port that is closed already: the call and its recording have ended.
                    Some(_) => return Ok(()),
                    None if channels == 2 => MixCommand::RecordChannels(sink),
                    None => MixCommand::Record(sink),
                }
            }
            MixOrder::StopRecording => MixCommand::StopRecording,
            MixOrder::StopSound => MixCommand::StopSound,
        };
        self.orders.push_back(Order::Mix(mix, command));
        Ok(())
    }

    /// Executes an order about the name of a member; `language` is that of the words. A missing name is replaced by a
    /// chime.
    pub(super) fn order_name(&mut self, order: NameOrder, language: Language) {
        let Some(audio) = &self.audio else { return };
        match order {
            NameOrder::Find { leg, organisation, extension } => audio.find_name(leg, organisation, extension),
            NameOrder::Forget(leg) => audio.forget_name(leg),
            NameOrder::Play { mix, leg, organisation, words } => {
                let clip = |prompt| audio.clip(organisation, language, prompt);
                let clips = match audio.name(leg, organisation) {
                    Some(name) => vec![name, clip(words)],
                    None if words == Prompt::HasLeft => vec![clip(Prompt::Left)],
                    None => vec![clip(Prompt::Joined)],
                };
                self.orders.push_back(Order::Mix(MixId(mix.0), MixCommand::Play(clips)));
            }
            NameOrder::Record { mix, leg, organisation, extension } => {
                if let Some(sink) = audio.record_name(leg, organisation, extension) {
                    self.orders.push_back(Order::Mix(MixId(mix.0), MixCommand::Record(sink)));
                }
            }
        }
    }

    /// Passes waiting commands to the workers, in order, until one is busy, and wakes the workers once.
    pub(super) fn flush(&mut self) {
        self.pass_on();
        self.relay.wake();
    }

    fn pass_on(&mut self) {
        while let Some(order) = self.orders.pop_front() {
            let busy = match order {
                Order::Port(id, command) => match self.relay.command_later(id, command) {
                    Err(net::CommandRefused { error: net::CommandError::Busy, command }) => {
                        Some(Order::Port(id, *command))
                    }
                    _ => None,
                },
                Order::Mix(mix, command) => match self.relay.mix_later(mix, command) {
                    Err(net::MixRefused { error: net::CommandError::Busy, command }) => {
                        Some(Order::Mix(mix, command))
                    }
                    _ => None,
                },
            };
            if let Some(order) = busy {
                self.orders.push_front(order);
                return;
            }
        }
    }

    /// Returns the switch's id of a port of the relay.
    pub(super) fn port(&self, id: net::PortId) -> Option<PortId> {
        self.keys.get(&id).copied()
    }

    pub(super) fn forget(&mut self, id: net::PortId) -> Option<PortId> {
        let port = self.keys.remove(&id)?;
        self.ids.remove(&port);
        Some(port)
    }

    /// Translates a command for the relay; `None` when its peer or its sound no longer exists.
    fn command(&mut self, port: PortId, known: Known, command: MediaCommand) -> Option<net::Command> {
        Some(match command {
            MediaCommand::Answered => net::Command::Answered,
            MediaCommand::Bridge { peer, payload_map } => {
                // A peer whose final report has arrived cannot be bridged to.
                net::Command::Bridge { peer: self.ids.get(&peer)?.id, payload_map }
            }
            MediaCommand::Close => net::Command::Close,
            MediaCommand::Describe(description) => net::Command::Describe(description),
            MediaCommand::Format(formats) => net::Command::Seat(SeatCommand::Format(formats)),
            MediaCommand::Gain(gain) => net::Command::Seat(SeatCommand::Gain(gain)),
            MediaCommand::Hear(hears) => {
                net::Command::Seat(SeatCommand::Hear(self.hears(known.spoken, hears)))
            }
            MediaCommand::Join { mix, organisation, language, formats, muted, hears } => {
                let spoken = Some((organisation, language));
                if let Some(known) = self.ids.get_mut(&port) {
                    known.spoken = spoken;
                }
                let hears = self.hears(spoken, hears);
                let seat = Seat { formats: *formats, muted, hears, seed: self.rng.random() };
                net::Command::Join { mix, seat: Box::new(seat) }
            }
            MediaCommand::Left(left) => net::Command::Seat(SeatCommand::Left(left)),
            MediaCommand::Leave => net::Command::Leave,
            MediaCommand::Listen { mix, organisation, formats, muted } => {
                if let Some(known) = self.ids.get_mut(&port) {
                    known.spoken = Some((organisation, Language::default()));
                }
                let seat = Seat { formats: *formats, muted, hears: Hears::Nothing, seed: self.rng.random() };
                net::Command::Listen { mix, seat: Box::new(seat) }
            }
            MediaCommand::Mute(muted) => net::Command::Seat(SeatCommand::Mute(muted)),
            MediaCommand::Play { prompts, token, lead, language } => {
                let spoken = known.spoken.map(|(whose, before)| (whose, language.unwrap_or(before)));
                if let Some(known) = self.ids.get_mut(&port) {
                    known.spoken = spoken;
                }
                let mut clips = self.clips(spoken, &prompts);
                if !clips.is_empty() && !lead.is_zero() {
                    clips.insert(0, Arc::new(Clip::silence(lead)));
                }
                net::Command::Seat(SeatCommand::Play { clips, token })
            }
            MediaCommand::PlaySound { sound, language } => {
                let spoken = known.spoken.map(|(whose, _)| (whose, language));
                net::Command::Seat(SeatCommand::PlaySound(self.named(spoken, sound)?))
            }
            MediaCommand::PlayKey(key) => net::Command::PlayKey(key),
            MediaCommand::Press(key) => net::Command::Press(key),
            MediaCommand::Secure(keys) => net::Command::Secure(keys),
            MediaCommand::Snapshot => net::Command::Snapshot,
            MediaCommand::StopPlaying => net::Command::Seat(SeatCommand::StopPlaying),
            MediaCommand::StopSound => net::Command::Seat(SeatCommand::StopSound),
            MediaCommand::Tone => net::Command::Tone,
            MediaCommand::Whisper(to) => {
                // If the listener has left, the party is muted: the whisper is for no one else.
                let Some(to) = to else { return Some(net::Command::Seat(SeatCommand::Whisper(None))) };
                match self.ids.get(&to) {
                    Some(listener) => net::Command::Seat(SeatCommand::Whisper(Some(listener.id.seat()))),
                    None => net::Command::Seat(SeatCommand::Mute(true)),
                }
            }
            MediaCommand::Transcode(plan) => net::Command::Transcode { plan, seed: self.rng.random() },
            MediaCommand::Unbridge => net::Command::Unbridge,
            MediaCommand::WatchKeys(source) => net::Command::WatchKeys(source),
        })
    }

    fn hears(&self, spoken: Option<Spoken>, hears: SeatHears) -> Hears {
        match hears {
            SeatHears::Music => match self.clip(spoken, Prompt::HoldMusic) {
                Some(music) => Hears::Music(music),
                None => Hears::Nothing,
            },
            SeatHears::Nothing => Hears::Nothing,
            SeatHears::Room => Hears::Mix,
            SeatHears::Silence => Hears::Silence,
        }
    }

    /// Returns the clips of these prompts. Without a source of audio there are none, and playing ends immediately.
    fn clips(&self, spoken: Option<Spoken>, prompts: &[Prompt]) -> Vec<Arc<Clip>> {
        prompts.iter().filter_map(|prompt| self.clip(spoken, *prompt)).collect()
    }

    fn named(&self, spoken: Option<Spoken>, name: SoundName) -> Option<Arc<Clip>> {
        let (organisation, language) = spoken?;
        self.audio.as_ref()?.sound(organisation, language, name)
    }

    fn clip(&self, spoken: Option<Spoken>, prompt: Prompt) -> Option<Arc<Clip>> {
        let (organisation, language) = spoken?;
        Some(self.audio.as_ref()?.clip(organisation, language, prompt))
    }
}
