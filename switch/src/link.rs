//! A party that is relayed to a party of another call, for example after a transfer.
//!
//! Each call keeps its own leg, its record and its charge. The party negotiates its media only with us, and each
//! call is notified of the terms of the other's party: its port, its formats, and whether it holds. If the former
//! peer leaves before the new peer answers, the party waits without a peer. A parked party waits in the same way, with
//! music from a mix of its call.

use std::time::Instant;

use sidetone_call::media_plan;
use sidetone_media::mix::MixId;
use sidetone_model::call::{EndedBy, HangupCause};
use sidetone_model::language::Language;
use sidetone_sip::sdp::{self, Codec, Direction, Negotiated, SessionDescription};

use crate::conference_leg;
use crate::ending::Ending;
use crate::io::{LinkHold, LinkedStep, Linking, MediaCommand, Output, Party, Peer};
use crate::leg::Leg;
use crate::linked_mix::{self, connect};
use crate::mixing::SeatHears;
use crate::parties::{Link, Parked, Parties, State};
use crate::transcoding::answer_back;

/// Relays a party of an answered call to a party of another call.
pub(super) fn link(parties: &mut Parties, party: Party, linking: Linking) {
    let Linking { peer, from, to, of_both } = linking;
    let own = peer_of(parties, party);
    if !parties.is_up() || own.is_none() {
        return;
    }
    linked_mix::leave(parties, party);
    if parties.leg(party).is_some_and(Leg::is_seated) && !parties.is_linked(party) {
        // It leaves a room, or the prompt that asked for one.
        parties.push(Output::Left(party, HangupCause::NormalClearing));
        parties.tell(party, Some(MediaCommand::Leave));
    }
    parties.awaiting = None;
    parties.set_link(Link { peer: Some(peer), reported: own, from, to, ..Link::new(party) });
    let is_relayed = |other: &Party| parties.leg(*other).is_some_and(|leg| leg.is_open() && !leg.is_seated());
    if let Some(other) = parties.other(party).filter(is_relayed).filter(|_| of_both) {
        // The other party waits for its own link.
        parties.await_peer(other);
        parties.tell(other, Some(MediaCommand::Unbridge));
    }
    connect(parties, party);
    align(parties, party);
}

/// Seats the linked party in a room; it no longer hears the party of the other call.
pub(super) fn enter_room(parties: &mut Parties, party: Party) {
    if !parties.is_up() || !parties.is_linked(party) {
        return;
    }
    linked_mix::leave(parties, party);
    parties.unlink(party);
    conference_leg::seat_relayed(parties, party);
}

/// Handles new terms of a party's peer in another call; `None` when the peer has left and another is awaited.
pub(super) fn peer_changed(parties: &mut Parties, party: Party, peer: Option<Peer>) {
    if peer.is_none() {
        linked_mix::leave(parties, party);
    }
    let Some(link) = parties.link_of_mut(party) else { return };
    link.peer = peer;
    connect(parties, party);
    align(parties, party);
}

/// Lets a party wait in a slot with music, without its former peer.
pub(super) fn park(parties: &mut Parties, party: Party, parked: Parked) {
    if !parties.is_up() || parties.leg(party).and_then(Leg::formats).is_none() {
        return;
    }
    linked_mix::leave(parties, party);
    parties.await_peer(party);
    if let Some(link) = parties.link_of_mut(party) {
        link.parked = Some(parked);
    }
    let (mix, organisation) = (parties.own_mix_id(), parties.facts.organisation);
    let formats = parties.leg(party).and_then(Leg::formats).map(Box::new);
    let hears = SeatHears::Music;
    let language = Language::default();
    let join = formats.map(|formats| MediaCommand::Join {
        mix,
        organisation,
        language,
        formats,
        muted: true,
        hears,
    });
    parties.tell(party, join);
}

/// Returns when a parked party is to be returned.
pub(super) fn parked_until(parties: &Parties) -> Option<Instant> {
    parties.parked()?.deadline
}

/// Reports that a parked party is to be returned, when its time has come.
pub(super) fn timeout(parties: &mut Parties, now: Instant) {
    let parked = parties.link.as_mut().and_then(|link| link.parked.as_mut());
    if let Some(parked) = parked.filter(|parked| parked.deadline.is_some_and(|deadline| deadline <= now)) {
        parked.deadline = None;
        parties.push(Output::ParkExpired);
    }
}

/// Carries out a step in the mix that this call shares with the linked one.
pub(super) fn mix(parties: &mut Parties, id: MixId, step: LinkedStep) {
    linked_mix::step(parties, id, step);
    if let Some(party) = parties.link.as_ref().map(|link| link.party)
        && matches!(step, LinkedStep::Hold(_))
    {
        align(parties, party);
    }
}

/// Handles the end of the call that a party is linked with: it is hung up.
pub(super) fn peer_left(
    parties: &mut Parties,
    ending: &mut Ending,
    now: Instant,
    party: Party,
    cause: HangupCause,
) {
    if !parties.is_linked(party) {
        return;
    }
    let by = match party {
        Party::Callee(_) => EndedBy::Caller,
        Party::Caller => EndedBy::Callee,
    };
    ending.dismiss(parties, now, party, cause, by);
}

/// Returns the terms of a party as another call needs them; `None` unless its media are negotiated.
pub(super) fn peer_of(parties: &Parties, party: Party) -> Option<Peer> {
    let leg = parties.leg(party).filter(|leg| leg.is_open())?;
    // The other call does not need its keys.
    let negotiated = Negotiated { srtp: None, ice: None, video: None, ..leg.exchange.negotiated()?.clone() };
    let wanted = leg.exchange.wanted_by_party();
    let mut settled = leg.settled()?;
    // Video is not relayed between two calls.
    settled.media.truncate(1);
    settled.media.iter_mut().for_each(|media| media.direction = wanted);
    Some(Peer { port: leg.port(), negotiated, settled, policy: leg.policy.clone(), wanted })
}

/// Handles an offer of the linked party.
pub(super) fn offer(parties: &mut Parties, party: Party, offer: Option<SessionDescription>) {
    let result = match offer {
        Some(offer) => answer(parties, party, offer),
        None => offer_ours(parties, party),
    };
    parties.push(Output::OfferResult(party, result));
}

fn answer(parties: &mut Parties, party: Party, offer: SessionDescription) -> Result<SessionDescription, u16> {
    if !matches!(parties.state, State::Up) {
        return Err(481);
    }
    let link = parties.link_of(party);
    let mut towards = link.and_then(|link| link.peer.as_ref()).map(|peer| peer.settled.clone());
    if link.is_some_and(|link| link.hold().is_some()) {
        let direction = wanted(parties, party);
        towards
            .iter_mut()
            .flat_map(|settled| &mut settled.media)
            .for_each(|media| media.direction = direction);
    }
    let Some(leg) = parties.leg_mut(party).filter(|leg| leg.is_open()) else { return Err(481) };
    let offer = leg.srtp.admit(offer).map_err(|refused| refused.status())?;
    leg.exchange.receive_offer(offer.clone()).map_err(|_| 491_u16)?;
    let answer = match &towards {
        Some(settled) => answer_back(&offer, settled, leg.local(), &leg.policy),
        None => sdp::answer(&offer, leg.local(), &leg.policy, Direction::SendRecv),
    };
    let sent = answer.map_err(|refused| refused.status());
    let sent = sent.and_then(|answer| leg.exchange.send_answer(answer).map_err(|_| 488));
    match sent {
        Ok(_) => settled(parties, party),
        Err(_) => leg.exchange.roll_back(),
    }
    sent
}

/// Returns our offer, whose answer arrives with the ACK (RFC 3261 §14.2).
fn offer_ours(parties: &mut Parties, party: Party) -> Result<SessionDescription, u16> {
    let direction = wanted(parties, party);
    let leg = parties.leg_mut(party).filter(|leg| leg.is_open()).ok_or(481_u16)?;
    offer_with(leg, direction, None).ok_or(491)
}

/// Handles the linked party's answer to our offer, or its refusal.
pub(super) fn offered(
    parties: &mut Parties,
    ending: &mut Ending,
    now: Instant,
    party: Party,
    result: Result<Option<SessionDescription>, u16>,
) {
    let Some(leg) = parties.leg_mut(party).filter(|leg| leg.exchange.local_offer().is_some()) else {
        return; // Outdated: no offer of ours is open.
    };
    let is_gone = matches!(result, Err(408 | 481));
    let has_clashed = matches!(result, Err(491));
    if result.ok().flatten().is_some_and(|answer| leg.exchange.receive_answer(answer).is_ok()) {
        return settled(parties, party);
    }
    leg.exchange.roll_back();
    if let Some(link) = parties.link_of_mut(party) {
        link.clashed = has_clashed;
    }
    // The dialog has ended (RFC 5057 §5.1), so the leg ends. Any other refusal changes nothing.
    if is_gone {
        ending.hung_up(parties, now, party, HangupCause::RecoveryOnTimerExpire);
    }
}

/// Applies the result of a negotiation of the linked party, and reports it to the other call if it changed.
pub(super) fn settled(parties: &mut Parties, party: Party) {
    parties.describe(party);
    if parties.link_of(party).is_some_and(|link| link.parked.is_some() || link.mix.is_some()) {
        let formats = parties.leg(party).and_then(Leg::formats);
        parties.tell(party, formats.map(|formats| MediaCommand::Format(Box::new(formats))));
    }
    connect(parties, party);
    let own = peer_of(parties, party);
    if let Some(link) = parties.link_of_mut(party)
        && link.peer.is_some()
        && link.reported != own
    {
        link.reported.clone_from(&own);
        parties.outputs.extend(own.map(|own| Output::Terms(party, Box::new(own))));
    }
    align(parties, party);
}

/// Offers the linked party the direction that the other party wants, unless that is its direction already or it holds
/// itself. Offers other codecs if it may send one that cannot be relayed to the other party. An offer that collided is
/// repeated, because the party has not accepted it.
pub(super) fn align(parties: &mut Parties, party: Party) {
    let Some(link) = parties.link_of(party) else { return };
    let (Some(peer), clashed) = (link.peer.as_ref(), link.clashed) else { return };
    let wanted = wanted(parties, party);
    let terms = peer.negotiated.clone();
    let Some(leg) = parties.leg_mut(party).filter(|leg| leg.is_open()) else { return };
    if leg.is_fax() {
        // T.38 concerned only the two devices that were connected before.
        let audio = leg.offer_to_room();
        if let Ok(offer) = leg.exchange.send_offer(audio) {
            parties.push(Output::Offer(party, offer));
        }
        return;
    }
    // A refused fax offer does not show the terms of its audio.
    let sent = leg.exchange.local().filter(|sent| sent.carried_fax().is_none()).or(leg.exchange.in_force());
    let local = || sent?.carried_audio().map(|(_, audio)| audio);
    let present = sent.zip(local()).map(|(local, audio)| local.direction_of(audio));
    let keeps_direction =
        (present == Some(wanted) && !clashed) || leg.exchange.wanted_by_party() != Direction::SendRecv;
    let codecs = local().and_then(|audio| other_codecs(leg, &audio.codecs, &terms));
    if keeps_direction && codecs.is_none() && !clashed && !leg.has_video() {
        return;
    }
    let direction = present.filter(|_| keeps_direction).unwrap_or(wanted);
    if let Some(offer) = offer_with(leg, direction, codecs) {
        if let Some(link) = parties.link_of_mut(party) {
            link.clashed = false;
        }
        parties.push(Output::Offer(party, offer));
    }
}

/// Returns the codecs to offer in place of `offered`, the codecs of the last offer; `None` when audio in all of those
/// can be relayed or transcoded for a party with the terms of `peer`. After a failure the offer is not repeated.
fn other_codecs(leg: &Leg, offered: &[Codec], peer: &Negotiated) -> Option<Vec<Codec>> {
    let is_shared = |codec: &Codec| peer.payloads.iter().any(|other| other.codec.matches(codec));
    let reaches = |codec: &Codec| media_plan::is_mixable(codec) || is_shared(codec);
    if offered.iter().all(reaches) {
        return None;
    }
    let kept: Vec<Codec> = offered.iter().filter(|codec| reaches(codec)).cloned().collect();
    if kept.iter().any(|codec| !codec.is_auxiliary()) {
        return Some(kept);
    }
    let own: Vec<Codec> = leg.policy.codecs().into_iter().filter(media_plan::is_mixable).collect();
    own.iter().any(|codec| !codec.is_auxiliary()).then_some(own)
}

/// Returns the direction that a linked party should have, from our view.
fn wanted(parties: &Parties, party: Party) -> Direction {
    let Some(link) = parties.link_of(party) else { return Direction::SendRecv };
    match link.hold() {
        Some(LinkHold { is_own: true, .. }) => Direction::Inactive,
        Some(LinkHold { is_own: false, .. }) => Direction::SendOnly,
        None => link.peer.as_ref().map_or(Direction::SendRecv, |peer| peer.wanted),
    }
}

/// Opens an exchange with the present description in this direction, with other codecs if there are some.
fn offer_with(leg: &mut Leg, direction: Direction, codecs: Option<Vec<Codec>>) -> Option<SessionDescription> {
    let mut fresh = leg.exchange.in_force()?.clone();
    fresh.refuse_video();
    for audio in fresh.media.iter_mut().filter(|media| media.is_carried()) {
        audio.direction = direction;
        audio.codecs = codecs.clone().unwrap_or_else(|| std::mem::take(&mut audio.codecs));
    }
    leg.exchange.send_offer(fresh).ok()
}
