//! One leg on the wire: its two sockets, its session, and the destination of its packets.

use std::net::{IpAddr, SocketAddr};

use crossbeam_channel::Sender;
use sidetone_wire::{BATCH, DATAGRAM_BYTES_MAX, Endpoint, Sent, Wire};

use super::beep::Beep;
use super::clock::Sample;
use super::counters::{Batch, Count};
use super::guard::Guard;
use super::job::Job;
use super::keys::Keys;
use super::message::{PortId, Shaken};
use super::monitor::Monitor;
use super::pair::Pair;
use super::presence::Presence;
use super::protected::{Opened, Protected};
use super::reports::Reports;
use super::rtcp_tap::RtcpTap;
use super::transcoding::Transcoding;
use crate::dtmf::KeySource;
use crate::mix::MixId;
use crate::session::{Description, Disposition, Input, Reason, Session, Watch};
use crate::time::Micros;
use crate::trace::TracedSession;
use crate::webrtc::Protection;

/// State of a leg in its worker.
pub(super) struct Leg {
    pub(super) id: PortId,
    pub(super) session: TracedSession,
    pub(super) rtp: Endpoint,
    pub(super) rtcp: Endpoint,
    pub(super) forward: Option<Forward>,
    /// The mix in which it has a seat. While it has one, nothing is relayed from or to it, unless the mix only listens.
    pub(super) seat: Option<MixId>,
    /// Whether the mix only listens: packets are relayed as for a leg without a seat.
    pub(super) listens: bool,
    /// Sender of RTCP reports about the stream generated for the party.
    pub(super) reports: Option<Reports>,
    /// The same about the party's own stream, when the peer sends no reports.
    pub(super) monitor: Option<Box<Monitor>>,
    /// Copies the leg's RTCP for an export, if there is one.
    pub(super) rtcp_tap: Option<Box<RtcpTap>>,
    /// The mix reported that the party talks.
    pub(super) talking: bool,
    /// A change of `talking` that the switch has not received yet, kept while the leg moves to another worker.
    pub(super) untold: Option<bool>,
    /// A beep to be written over the audio that is sent to the party.
    pub(super) beep: Option<Beep>,
    /// Keys that are converted to or from another form. Most legs have none.
    keys: Option<Box<Keys>>,
    /// Whether SDP has described the leg. Nothing is read before: packets that overtake the answer wait in the socket,
    /// with their receive times, until their payload types are known.
    pub(super) described: bool,
    /// Whether RTP and RTCP share one port, as negotiated (RFC 5761).
    pub(super) rtcp_mux: bool,
    /// SRTP and ICE, if negotiated.
    pub(super) protected: Option<Box<Protected>>,
    /// Source address of the party's SIP.
    pub(super) party: Option<IpAddr>,
    /// When the next snapshot is due, if snapshots are wanted.
    pub(super) next_snapshot: Micros,
    /// Detects media faults of the leg for the switch.
    pub(super) watch: Watch,
    /// Whether any packets of the party arrive.
    pub(super) presence: Presence,
    rtp_target: Option<SocketAddr>,
    pub(super) rtcp_target: Option<SocketAddr>,
}

/// The destination of a leg's accepted packets.
pub(super) struct Forward {
    pub(super) peer: PortId,
    /// Maps the received payload type to the sent one; packets that map to 128 and above are not sent.
    pub(super) payload_map: Option<Box<[u8; 128]>>,
    /// Transcodes packets that the peer's party does not understand.
    pub(super) transcoding: Option<Box<Transcoding>>,
}

/// Positions in the wire's last batch to forward to the peer.
#[derive(Default)]
pub(super) struct Picked {
    pub(super) rtp: Indices,
    pub(super) rtcp: Indices,
    /// Packets that the peer's party receives in another codec.
    pub(super) transcoded: Indices,
    /// Packets that a mix listens to while they are relayed.
    pub(super) listened: Option<Listened>,
}

/// Positions of packets that a mix hears before they are forwarded, with their second octets as received.
#[derive(Default)]
pub(super) struct Listened {
    pub(super) rtp: Indices,
    pub(super) octets: [u8; BATCH],
}

/// A list of positions in a batch that does not allocate.
#[derive(Default)]
pub(super) struct Indices {
    at: [u8; BATCH],
    len: usize,
}

impl Leg {
    /// A leg that waits for its description.
    pub(super) fn new(id: PortId, session: Session, pair: Pair, now: Micros) -> Leg {
        let Pair { rtp, rtcp } = pair;
        Leg {
            id,
            session: TracedSession::new(session),
            rtp,
            rtcp,
            forward: None,
            seat: None,
            listens: false,
            reports: None,
            monitor: None,
            rtcp_tap: None,
            talking: false,
            untold: None,
            beep: None,
            keys: None,
            described: false,
            rtcp_mux: false,
            protected: None,
            party: None,
            next_snapshot: now,
            watch: Watch::default(),
            presence: Presence::new(now),
            rtp_target: None,
            rtcp_target: None,
        }
    }

    /// Whether packets that its peer receives are sent to it.
    pub(super) fn is_relayed(&self) -> bool {
        self.seat.is_none() || self.listens
    }

    /// The socket for which epoll reported an event.
    pub(super) fn endpoint_mut(&mut self, rtcp: bool) -> &mut Endpoint {
        if rtcp { &mut self.rtcp } else { &mut self.rtp }
    }

    /// Sets, changes or removes the protection of packets; `jobs` is the queue to the thread of the DTLS handshakes.
    pub(super) fn secure(&mut self, now: Micros, protection: Option<Protection>, jobs: &Sender<Job>) {
        match (&mut self.protected, protection) {
            (Some(protected), Some(protection)) => protected.change(now, self.id, protection, jobs),
            (protected, protection) => {
                *protected = protection.map(|protection| Box::new(Protected::new(self.id, protection, jobs)));
            }
        }
    }

    /// Applies an SDP result. With ICE, the address is that of the path found by ICE.
    pub(super) fn describe(&mut self, now: Micros, description: Description, guard: &Guard) {
        self.rtcp_mux = description.rtcp_mux;
        self.party = description.signalling;
        let description = match &mut self.protected {
            Some(protected) => protected.describe(description),
            None => description,
        };
        self.session.describe(now, description);
        self.retarget(guard);
    }

    /// Whether ICE found another path with the last datagrams.
    #[inline]
    pub(super) fn has_moved(&mut self) -> bool {
        self.protected.as_mut().is_some_and(|protected| protected.has_moved())
    }

    /// Uses the path found by ICE.
    pub(super) fn follow_path(&mut self, now: Micros, guard: &Guard) {
        let Some(protected) = &mut self.protected else { return };
        if let Some(description) = protected.relocate() {
            self.session.describe(now, description);
        }
        self.retarget(guard);
    }

    /// Checks ICE and the handshake, once a second.
    pub(super) fn look_after_path(&mut self, now: Micros, guard: &Guard) {
        if self.protected.as_mut().is_some_and(|protected| protected.look(now)) {
            self.retarget(guard);
        }
    }

    /// Takes the keys of a DTLS handshake, then sends its datagrams.
    pub(super) fn take_shaken(&mut self, wire: &mut Wire, now: Micros, shaken: Shaken, guard: &Guard) {
        let Some(protected) = &mut self.protected else { return };
        let Some(web) = protected.web.as_ref().filter(|web| web.round() == shaken.round) else { return };
        let to = web.handshake_target().filter(|to| guard.allows(self.rtp.local().ip(), *to, self.party));
        if let Some(keys) = shaken.keys {
            protected.set_keys(now, *keys);
        }
        if let Some(to) = to {
            // A lost one is repeated.
            for datagram in &shaken.datagrams {
                wire.send_own(&self.rtp, to, datagram);
            }
        }
        self.retarget(guard);
    }

    /// Queries the session's destinations again; call it after every input that may change them.
    pub(super) fn retarget(&mut self, guard: &Guard) {
        let local = self.rtp.local().ip();
        let may_send = self.protected.as_ref().is_none_or(|protected| protected.may_send());
        let target =
            |to: Option<SocketAddr>| to.filter(|to| may_send && guard.allows(local, *to, self.party));
        self.rtp_target = target(self.session.destination());
        self.rtcp_target = target(self.session.rtcp_destination());
    }

    /// Feeds the `count` datagrams that `wire` received on one of the leg's sockets to the session, and picks
    /// those to forward.
    ///
    /// Payload types are rewritten in the receive buffer.
    pub(super) fn measure(
        &mut self,
        wire: &mut Wire,
        on_rtcp: bool,
        count: usize,
        sample: Sample,
        batch: &mut Batch,
    ) -> Picked {
        let listened = (self.seat.is_some() && self.listens).then(Listened::default);
        let mut picked = Picked { listened, ..Picked::default() };
        let mut unauthenticated = 0;
        for index in 0..count {
            let Some((arrival, datagram)) = wire.datagram(index) else { break };
            let at = sample.mono(arrival.stamp_us);
            batch.add(Count::ReceivedBytes, u32::try_from(datagram.len()).unwrap_or_default());
            batch.add(Count::Unstamped, u32::from(arrival.stamp_us.is_none()));
            if let Some(drops) = arrival.drops {
                self.count_drops(on_rtcp, at, drops, batch);
            }
            if arrival.truncated {
                batch.add(Count::Oversize, 1);
                continue;
            }
            let datagram = match &mut self.protected {
                None => datagram,
                Some(protected) => match open(protected, wire, index, (on_rtcp, at), [&self.rtp, &self.rtcp])
                {
                    Ok(Some(datagram)) => datagram,
                    Ok(None) => continue,
                    Err(reason) => {
                        unauthenticated += u32::from(reason == Reason::Unauthenticated && !on_rtcp);
                        batch.discard(reason);
                        continue;
                    }
                },
            };
            let disposition = if on_rtcp {
                self.session.receive_rtcp(at, arrival.source, datagram)
            } else {
                self.session.receive(at, arrival.source, datagram)
            };
            let is_rtcp = match disposition {
                Disposition::Discard(reason) => {
                    batch.discard(reason);
                    continue;
                }
                Disposition::Relay => on_rtcp,
                Disposition::RelayRtcp => true,
            };
            self.presence.heard(at);
            if is_rtcp {
                self.tap_received(sample, at, (arrival.source, on_rtcp), datagram);
            } else if let Some(keys) = self.keys.as_mut().filter(|_| !self.session.carries_fax()) {
                keys.hear(at, datagram);
            }
            let stale = sample.now.since(at) > STALE_US;
            if !stale && self.pass_to_mix((index, is_rtcp), datagram, &mut picked) {
                continue;
            }
            let Some(forward) = self.forward.as_ref().filter(|_| !stale) else {
                batch.add(Count::Held, 1);
                continue;
            };
            forward.pick((index, is_rtcp), datagram, &mut picked, batch);
        }
        if unauthenticated > 0 {
            self.session.handle_input(sample.now, Input::Unauthenticated { packets: unauthenticated });
        }
        picked
    }

    /// Picks a datagram for the mix in which the leg has a seat. Returns whether it is for the mix only.
    fn pass_to_mix(&self, (index, is_rtcp): (usize, bool), datagram: &[u8], picked: &mut Picked) -> bool {
        if let Some(listened) = picked.listened.as_mut().filter(|_| !is_rtcp) {
            listened.take(index, datagram);
            return false;
        }
        let is_seated = self.seat.is_some() && !self.listens;
        if is_seated {
            // The mix knows the party's payload types; RTCP is not forwarded.
            let taken = if is_rtcp { &mut picked.rtcp } else { &mut picked.rtp };
            taken.push(index);
        }
        is_seated
    }

    /// Copies RTCP accepted from the party; `on_rtcp` is whether it arrived on the RTCP port.
    fn tap_received(
        &mut self,
        sample: Sample,
        at: Micros,
        (source, on_rtcp): (SocketAddr, bool),
        bytes: &[u8],
    ) {
        let Some(tap) = &mut self.rtcp_tap else { return };
        let destination = if on_rtcp { self.rtcp.local() } else { self.rtp.local() };
        tap.received(sample, at, (source, destination), bytes);
    }

    /// Copies RTCP that is sent to the party, before it is protected.
    pub(super) fn tap_sent(&mut self, now: Micros, to: SocketAddr, bytes: &[u8]) {
        let Some(tap) = &mut self.rtcp_tap else { return };
        let source = if self.rtcp_mux { self.rtp.local() } else { self.rtcp.local() };
        tap.sent(now, (source, to), bytes);
    }

    /// Sends the packets that the peer received and picked to this leg's party, from the receive buffers.
    pub(super) fn send(&mut self, wire: &mut Wire, picked: &Picked, now: Micros, batch: &mut Batch) {
        if let Some(to) = hold_or_target(self.rtp_target, &picked.rtp, batch) {
            if !self.session.carries_fax() {
                self.write_beep(wire, &picked.rtp);
                self.write_keys(wire, &picked.rtp, now);
            }
            let sealed;
            let rtp = match &mut self.protected {
                None => &picked.rtp,
                Some(secured) => {
                    sealed = seal(secured, wire, &picked.rtp, false, batch);
                    &sealed
                }
            };
            let outcome = wire.send(&self.rtp, to, rtp.as_slice());
            if outcome.sent + outcome.queued > 0 {
                self.session.sent(now, outcome.sent + outcome.queued, to);
            }
            let last = rtp.as_slice().last();
            if let Some((_, datagram)) = last.and_then(|index| wire.datagram(usize::from(*index))) {
                self.sends(now, datagram);
            }
            count_sent(outcome, batch);
        }
        if let Some(to) = hold_or_target(self.rtcp_target, &picked.rtcp, batch) {
            for index in picked.rtcp.as_slice() {
                if let Some((_, datagram)) = wire.datagram(usize::from(*index)) {
                    self.session.sent_rtcp(now, datagram);
                    self.tap_sent(now, to, datagram);
                }
            }
            if let Some(monitor) = &mut self.monitor {
                monitor.relayed(now);
            }
            let sealed;
            let rtcp = match &mut self.protected {
                None => &picked.rtcp,
                Some(secured) => {
                    sealed = seal(secured, wire, &picked.rtcp, true, batch);
                    &sealed
                }
            };
            let endpoint = if self.rtcp_mux { &self.rtp } else { &self.rtcp };
            count_sent(wire.send(endpoint, to, rtcp.as_slice()), batch);
        }
    }

    /// Sends the party a packet that was generated for it.
    pub(super) fn send_own(&mut self, wire: &mut Wire, datagram: &[u8], now: Micros, batch: &mut Batch) {
        let Some(to) = self.rtp_target else { return };
        let mut beeping;
        let mut datagram = datagram;
        if let Some(beep) = &mut self.beep {
            beeping = [0; DATAGRAM_BYTES_MAX];
            if let Some(copy) = beeping.get_mut(..datagram.len()) {
                copy.copy_from_slice(datagram);
                beep.write_over(copy);
                datagram = copy;
            }
            if beep.is_over() {
                self.beep = None;
            }
        }
        let mut pressing;
        if let Some(keys) = self.keys.as_mut().filter(|keys| keys.has_any()) {
            pressing = [0; DATAGRAM_BYTES_MAX];
            let len = copied(&mut pressing, datagram).map(|len| keys.write_over(&mut pressing, len, now));
            datagram = len.and_then(|len| pressing.get(..len)).unwrap_or(datagram);
        }
        let sent = match &mut self.protected {
            None => wire.send_own(&self.rtp, to, datagram),
            Some(secured) => {
                let mut buffer = [0; DATAGRAM_BYTES_MAX];
                let sealed = copied(&mut buffer, datagram).and_then(|len| secured.seal(&mut buffer, len));
                let sealed = sealed.and_then(|len| buffer.get(..len));
                sealed.is_some_and(|sealed| wire.send_own(&self.rtp, to, sealed))
            }
        };
        if sent {
            self.session.sent(now, 1, to);
            self.sends(now, datagram);
            if let Some(reports) = &mut self.reports {
                reports.note(datagram, now);
            }
            batch.add(Count::Originated, 1);
            batch.add(Count::OriginatedBytes, u32::try_from(datagram.len()).unwrap_or_default());
        } else {
            batch.add(Count::OriginateErrors, 1);
        }
    }

    /// Reports the SSRC that is sent to the party to the session.
    fn sends(&mut self, now: Micros, datagram: &[u8]) {
        if let Some([.., s0, s1, s2, s3]) = datagram.first_chunk::<12>() {
            self.session.sends(now, u32::from_be_bytes([*s0, *s1, *s2, *s3]));
        }
    }

    /// Starts a beep in the audio that is sent from now on.
    pub(super) fn begin_beep(&mut self) {
        self.beep = Some(Beep::new());
    }

    /// Writes the beep over packets about to be sent; they were measured before, unchanged.
    fn write_beep(&mut self, wire: &mut Wire, picked: &Indices) {
        let Some(beep) = &mut self.beep else { return };
        for index in picked.as_slice() {
            if let Some((_, datagram)) = wire.datagram(usize::from(*index)) {
                beep.write_over(datagram);
            }
        }
        if beep.is_over() {
            self.beep = None;
        }
    }

    /// The keys of the leg, created at first use.
    pub(super) fn keys(&mut self) -> &mut Keys {
        self.keys.get_or_insert_default()
    }

    /// Begins or ends reporting the party's keys of this source.
    pub(super) fn watch_keys(&mut self, source: Option<KeySource>) {
        if source.is_some() || self.keys.is_some() {
            self.keys().watch(source);
        }
    }

    /// The next key pressed by the party, and its duration in milliseconds.
    pub(super) fn take_key(&mut self) -> Option<(char, u32)> {
        self.keys.as_mut()?.take()
    }

    /// Writes keys over packets about to be sent.
    fn write_keys(&mut self, wire: &mut Wire, picked: &Indices, now: Micros) {
        let Some(keys) = self.keys.as_mut().filter(|keys| keys.has_any()) else { return };
        for index in picked.as_slice().iter().map(|index| usize::from(*index)) {
            let Some((len, buffer)) = wire.buffer(index) else { break };
            let len = keys.write_over(buffer, len, now);
            wire.resize(index, len);
        }
    }

    /// Reads ICMP errors about sent RTP, at most [`BATCH`] entries.
    pub(super) fn hear_unreachable(&mut self, wire: &mut Wire, now: Micros, batch: &mut Batch) {
        for _ in 0..BATCH {
            let Some(error) = wire.unreachable(&self.rtp) else { break };
            // An error about an address that is no longer the target is no evidence about the party; an error
            // about an address that was never sent to is forged. RTCP on the shared port is not audio.
            if error.unreachable && error.to.is_some() && error.to == self.rtp_target {
                batch.add(Count::Unreachable, 1);
                self.session.handle_input(now, Input::Unreachable);
            }
        }
    }

    fn count_drops(&mut self, on_rtcp: bool, at: Micros, drops: u32, batch: &mut Batch) {
        let endpoint = self.endpoint_mut(on_rtcp);
        let packets = drops.wrapping_sub(endpoint.drops_seen);
        endpoint.drops_seen = drops;
        if packets == 0 {
            return;
        }
        batch.add(Count::LocalDrops, packets);
        // Lost RTCP is not lost audio.
        if !on_rtcp {
            self.session.handle_input(at, Input::LocalDrop { packets });
        }
    }
}

impl Forward {
    /// Picks an accepted datagram for the peer, as RTP or RTCP.
    #[inline]
    fn pick(
        &self,
        (index, is_rtcp): (usize, bool),
        datagram: &mut [u8],
        picked: &mut Picked,
        batch: &mut Batch,
    ) {
        let transcoding = self.transcoding.as_ref();
        if is_rtcp && transcoding.is_some_and(|transcoding| transcoding.is_active()) {
            // The peer's party receives a stream and reports that are generated here.
            batch.add(Count::Mixed, 1);
        } else if is_rtcp {
            picked.rtcp.push(index);
        } else if self.rewrite(datagram) {
            picked.rtp.push(index);
        } else if transcoding.is_some() {
            picked.transcoded.push(index);
        } else {
            batch.add(Count::Unmapped, 1);
        }
    }

    /// Writes the peer's payload type into the datagram; `false` when the peer has none for it.
    fn rewrite(&self, datagram: &mut [u8]) -> bool {
        let Some(map) = &self.payload_map else { return true };
        let Some(octet) = datagram.get_mut(1) else { return false };
        match map.get(usize::from(*octet & 0x7f)) {
            Some(number) if *number < 0x80 => {
                // The marker bit is kept (RFC 3550 §5.1).
                *octet = (*octet & 0x80) | number;
                true
            }
            _ => false,
        }
    }
}

impl Picked {
    /// Number of packets, RTP and RTCP.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.rtp.len + self.rtcp.len).unwrap_or(u32::MAX)
    }
}

impl Listened {
    fn take(&mut self, index: usize, datagram: &[u8]) {
        if let (Some(kept), Some(octet)) = (self.octets.get_mut(self.rtp.len), datagram.get(1)) {
            *kept = *octet;
            self.rtp.push(index);
        }
    }
}

impl Indices {
    pub(super) fn as_slice(&self) -> &[u8] {
        self.at.get(..self.len).unwrap_or_default()
    }

    /// Ignores a position beyond the batch.
    fn push(&mut self, index: usize) {
        if let (Some(slot), Ok(index)) = (self.at.get_mut(self.len), u8::try_from(index)) {
            *slot = index;
            self.len += 1;
        }
    }
}

/// Authenticates and decrypts the datagram at `index` of the wire's last batch, and returns its content. `None` for an
/// ICE check, which is answered from the socket it arrived on, and for a part of the handshake.
fn open<'a>(
    protected: &mut Protected,
    wire: &'a mut Wire,
    index: usize,
    (on_rtcp, at): (bool, Micros),
    [rtp, rtcp]: [&Endpoint; 2],
) -> Result<Option<&'a mut [u8]>, Reason> {
    let (arrival, datagram) = wire.datagram(index).ok_or(Reason::Malformed)?;
    let source = arrival.source;
    match protected.open(at, source, on_rtcp, datagram) {
        Opened::Check(answer) => {
            // If the answer is lost, the check is repeated.
            wire.send_own(if on_rtcp { rtcp } else { rtp }, source, answer.as_slice());
            Ok(None)
        }
        Opened::Packet(len) => {
            wire.resize(index, len);
            wire.datagram(index).map(|(_, datagram)| Some(datagram)).ok_or(Reason::Malformed)
        }
        Opened::Refused(reason) => Err(reason),
        Opened::Taken => Ok(None),
    }
}

/// Protects the datagrams at `indices` in the receive buffers, and returns those that can be sent. A repeated packet is
/// left out: its receiver would refuse it.
fn seal(
    secured: &mut Protected,
    wire: &mut Wire,
    indices: &Indices,
    is_rtcp: bool,
    batch: &mut Batch,
) -> Indices {
    let mut sealed = Indices::default();
    for index in indices.as_slice().iter().map(|index| usize::from(*index)) {
        let Some((len, buffer)) = wire.buffer(index) else { break };
        let len = if is_rtcp { secured.seal_rtcp(buffer, len) } else { secured.seal(buffer, len) };
        match len {
            Some(len) => {
                wire.resize(index, len);
                sealed.push(index);
            }
            None => batch.discard(Reason::Replayed),
        }
    }
    sealed
}

/// Copies a packet to the start of a buffer; returns its length, or `None` when it does not fit.
pub(super) fn copied(buffer: &mut [u8], packet: &[u8]) -> Option<usize> {
    buffer.get_mut(..packet.len())?.copy_from_slice(packet);
    Some(packet.len())
}

/// The target, when there are packets to send. Without a target the picked packets are counted as held.
fn hold_or_target(target: Option<SocketAddr>, indices: &Indices, batch: &mut Batch) -> Option<SocketAddr> {
    let count = u32::try_from(indices.len).unwrap_or(u32::MAX);
    if count > 0 && target.is_none() {
        batch.add(Count::Held, count);
    }
    target.filter(|_| count > 0)
}

/// Counts the result of sending relayed packets.
pub(super) fn count_sent(outcome: Sent, batch: &mut Batch) {
    batch.add(Count::Relayed, outcome.sent);
    batch.add(Count::RelayedBytes, outcome.sent_bytes);
    batch.add(Count::SendErrors, outcome.failed);
}

/// A packet that waited here for longer is measured but not sent: no jitter buffer can use it.
const STALE_US: i64 = 2_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_type_is_rewritten_and_the_marker_kept() {
        let mut map = Box::new([0xff; 128]);
        map[101] = 96;
        map[0] = 0;
        let mapped = Forward { peer: PortId::new(1, 0, 2), payload_map: Some(map), transcoding: None };
        let plain = Forward { peer: PortId::new(1, 0, 2), payload_map: None, transcoding: None };
        for (name, forward, octet, expected) in [
            ("mapped", &mapped, 101, Some(96)),
            ("mapped with marker", &mapped, 0x80 | 101, Some(0x80 | 96)),
            ("the same number", &mapped, 0x80, Some(0x80)),
            ("unknown to the peer", &mapped, 8, None),
            ("no map", &plain, 0x80 | 8, Some(0x80 | 8)),
        ] {
            let mut datagram = [0x80, octet, 0, 1];
            let sent = forward.rewrite(&mut datagram);
            assert_eq!(sent.then_some(datagram[1]), expected, "{name}");
        }
        assert!(!mapped.rewrite(&mut [0x80]));
    }

    #[test]
    fn a_batch_of_positions_has_a_bound() {
        let mut indices = Indices::default();
        for index in 0..100 {
            indices.push(index);
        }
        assert_eq!(indices.as_slice().len(), BATCH);
        assert_eq!(indices.as_slice()[..3], [0, 1, 2]);
    }
}
