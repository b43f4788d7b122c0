//! The mix of one call, which no other call uses. While a program has put a party on hold, two seats in the mix replace
//! the relay between the parties: the party on hold hears music, the holding one nothing. While a program
//! records the call, the mix listens to both parties, whose packets are relayed as before; during a hold it records
//! silence. While a program plays a prompt, the mix also listens, and sends the prompt to the parties it is for.
//! Packets of the other party are not relayed to those parties meanwhile.
//!
//! From then on each party negotiates its media only with us, like a party of a linked call. An offer is answered
//! immediately, and the resulting direction is offered to the other party (RFC 3264 §8.4). A party that refuses
//! the offer keeps its direction: the music does not depend on it. An offer that collides with one of the party (491)
//! is repeated when the user agent reports that it is due (RFC 3261 §14.1).

use std::time::{Duration, Instant};

use sidetone_call::media_plan;
use sidetone_model::call::HangupCause;
use sidetone_model::call_operation::RecordStep;
use sidetone_model::call_prompt::{LivePrompt, PlayResult};
use sidetone_model::ids::ConferenceSessionId;
use sidetone_model::language::Language;
use sidetone_model::live_call::LiveRecording;
use sidetone_sip::sdp::{self, Direction, SessionDescription};

use crate::call_mix::{OwnMix, Playing, Seats};
use crate::ending::Ending;
use crate::io::{MediaCommand, Output, Party, PortId};
use crate::leg::Leg;
use crate::mixing::{MixOrder, RecordingPlan, SeatHears};
use crate::parties::Parties;
use crate::transcoding::answer_back;

/// Puts the party that `holder` talks to on hold; `None` resumes.
pub(super) fn hold(parties: &mut Parties, holder: Option<Party>) {
    let Some(callee) = parties.callee().filter(|_| parties.can_mix()) else { return };
    if parties.holder() == holder {
        return;
    }
    parties.end_prompt(PlayResult::Interrupted);
    if let Some(mix) = open(parties, callee) {
        mix.holder = holder;
    }
    seat(parties, callee);
    align(parties);
}

/// Begins, pauses, resumes or ends the recording of the call.
pub(super) fn record(parties: &mut Parties, step: RecordStep) {
    let Some(callee) = parties.callee() else { return };
    match step {
        RecordStep::Pause | RecordStep::Resume => {
            let recording = parties.own_mix.as_mut().and_then(|mix| mix.recording.as_mut());
            if let Some(recording) = recording {
                recording.paused = step == RecordStep::Pause;
            }
        }
        RecordStep::Start(id) if parties.can_mix() && parties.recording().is_none() => {
            if let Some(mix) = open(parties, callee) {
                mix.recording = Some(LiveRecording { id, paused: false });
            }
            seat(parties, callee);
            let ports = [Party::Caller, Party::Callee(callee)].map(|party| parties.leg(party).map(Leg::port));
            if let [Some(left), Some(right)] = ports {
                let (session, organisation) = (ConferenceSessionId(id.0), parties.facts.organisation);
                let plan = RecordingPlan { session, organisation, sides: Some([left, right]), channels: 2 };
                parties.push(Output::Mix(parties.own_mix_id(), MixOrder::Record(plan)));
            }
            return;
        }
        RecordStep::Start(_) => return,
        RecordStep::Stop => parties.end_recording(),
    }
    seat(parties, callee);
}

/// Plays a prompt in the languages of the caller and the callee, and replaces one that plays; `None` stops it.
pub(super) fn play(parties: &mut Parties, prompt: Option<LivePrompt>, languages: [Language; 2]) {
    let Some(callee) = parties.callee().filter(|_| prompt.is_none() || parties.can_mix()) else { return };
    let Some(prompt) = prompt else {
        return end_prompt(parties, callee, PlayResult::Stopped);
    };
    let seats = parties.own_mix.as_ref().map_or(Seats::None, |mix| mix.seats);
    let replaces = parties.prompt().is_some();
    parties.end_prompt(PlayResult::Replaced);
    let playing = Playing::new(prompt);
    if let Some(mix) = open(parties, callee) {
        mix.playing = Some(playing);
    }
    if seats == Seats::None {
        seat(parties, callee);
    }
    if seats != Seats::Taken {
        if replaces {
            parties.bridge(callee);
        }
        silence(parties);
    }
    let heard = [Party::Caller, Party::Callee(callee)].into_iter().zip(languages);
    for (party, language) in heard.filter(|(party, _)| playing.is_for(*party)) {
        let (prompts, token, language) = (vec![prompt.prompt], playing.token(), Some(language));
        parties.tell(party, Some(MediaCommand::Play { prompts, token, lead: Duration::ZERO, language }));
    }
}

/// Handles the end of a prompt at a port.
pub(super) fn played(parties: &mut Parties, port: PortId, token: u64) {
    let Some(party) = parties.party_at(port) else { return };
    let playing = parties.own_mix.as_mut().and_then(|mix| mix.playing.as_mut());
    // The end of a prompt that was replaced may arrive late.
    let Some(playing) = playing.filter(|playing| playing.token() == token) else { return };
    if playing.has_ended_for(party)
        && let Some(callee) = parties.callee()
    {
        end_prompt(parties, callee, PlayResult::Finished);
    }
}

/// Ends the prompt that plays: the parties hear each other again, or the music or silence of a hold.
fn end_prompt(parties: &mut Parties, callee: usize, result: PlayResult) {
    if parties.prompt().is_none() {
        return;
    }
    parties.end_prompt(result);
    let Some(mix) = &parties.own_mix else { return };
    let (is_taken, listens) = (mix.is_taken(), mix.recording.is_some());
    if is_taken {
        return;
    }
    if !listens {
        seat(parties, callee);
    }
    parties.bridge(callee);
}

/// Relays between both parties, except to those that hear a prompt.
fn relay(parties: &mut Parties, callee: usize) {
    parties.bridge(callee);
    silence(parties);
}

/// Stops the relay to the parties that hear a prompt.
fn silence(parties: &mut Parties) {
    let Some(callee) = parties.callee() else { return };
    let Some(playing) = parties.own_mix.as_ref().and_then(|mix| mix.playing) else { return };
    for (heard, by) in [(Party::Caller, Party::Callee(callee)), (Party::Callee(callee), Party::Caller)] {
        if playing.is_for(by) {
            parties.tell(heard, Some(MediaCommand::Unbridge));
        }
    }
}

/// Returns the call's own mix; creates it at its first use.
fn open(parties: &mut Parties, callee: usize) -> Option<&mut OwnMix> {
    if parties.own_mix.is_none() {
        let asked = [Party::Caller, Party::Callee(callee)].map(|party| asked_before(parties, party));
        parties.own_mix = Some(Box::new(OwnMix {
            holder: None,
            playing: None,
            recording: None,
            seats: Seats::None,
            asked,
        }));
    }
    parties.own_mix.as_deref_mut()
}

/// Handles an offer of a party inside its dialog; without a description it requests ours.
pub(super) fn offer(parties: &mut Parties, party: Party, offer: Option<SessionDescription>) {
    let result = match offer {
        Some(offer) => answer(parties, party, offer),
        None => offer_ours(parties, party),
    };
    parties.push(Output::OfferResult(party, result));
}

/// Handles a party's answer to our offer, or its refusal.
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
    let status = result.as_ref().err().copied();
    if result.ok().flatten().is_some_and(|answer| leg.exchange.receive_answer(answer).is_ok()) {
        return settled(parties, party);
    }
    leg.exchange.roll_back();
    match status {
        Some(491) => note_asked(parties, party, None),
        // The dialog has ended (RFC 5057 §5.1), so the call ends.
        Some(408 | 481) => ending.hung_up(parties, now, party, HangupCause::RecoveryOnTimerExpire),
        // Any other refusal changes nothing.
        _ => {}
    }
}

/// Applies the result of a negotiation of one party.
pub(super) fn settled(parties: &mut Parties, party: Party) {
    let seats = parties.own_mix.as_ref().map_or(Seats::None, |mix| mix.seats);
    parties.describe(party);
    if seats != Seats::None {
        let formats = parties.leg(party).and_then(Leg::formats);
        parties.tell(party, formats.map(|formats| MediaCommand::Format(Box::new(formats))));
    }
    if let Some(callee) = parties.callee().filter(|_| seats != Seats::Taken) {
        relay(parties, callee);
    }
    align(parties);
}

/// Offers each party the direction that it should have, unless that was offered already or the party holds itself.
pub(super) fn align(parties: &mut Parties) {
    let Some(callee) = parties.callee() else { return };
    for party in [Party::Caller, Party::Callee(callee)] {
        let wanted = direction_for(parties, party);
        let Some(mix) = &parties.own_mix else { return };
        if mix.asked(party) == Some(wanted) {
            continue;
        }
        let mixable = mix.is_taken();
        let wishes = parties.leg(party).map(|leg| leg.exchange.wanted_by_party());
        if wishes != Some(Direction::SendRecv) {
            continue;
        }
        if let Some(offer) = open_offer(parties, party, wanted, mixable) {
            note_asked(parties, party, Some(wanted));
            parties.push(Output::Offer(party, offer));
        }
    }
}

fn answer(parties: &mut Parties, party: Party, offer: SessionDescription) -> Result<SessionDescription, u16> {
    if !parties.is_up() {
        return Err(481);
    }
    let direction = direction_for(parties, party);
    let seated = parties.own_mix.as_ref().is_some_and(|mix| mix.is_taken());
    let peer = parties.other(party).and_then(|other| parties.leg(other)).filter(|_| !seated);
    let towards = peer.and_then(|leg| leg.settled()).map(|mut towards| {
        towards.media.iter_mut().for_each(|media| media.direction = direction);
        towards
    });
    let Some(leg) = parties.leg_mut(party).filter(|leg| leg.is_open()) else { return Err(481) };
    let offer = leg.admit(offer).map_err(|refused| refused.status())?;
    leg.exchange.receive_offer(offer.clone()).map_err(|_| 491_u16)?;
    let answer = match &towards {
        Some(settled) => answer_back(&offer, settled, leg.local(), &leg.policy).map(|mut answer| {
            leg.accept_video(&mut answer, &offer, settled);
            answer
        }),
        None => {
            let mut possible = offer;
            for media in possible.media.iter_mut().filter(|media| media.is_carried()) {
                media.codecs.retain(media_plan::is_mixable);
            }
            sdp::answer(&possible, leg.local(), &leg.policy, direction)
        }
    };
    let sent = answer.map_err(|refused| refused.status());
    let sent = sent.and_then(|answer| leg.exchange.send_answer(answer).map_err(|_| 488));
    match sent {
        Ok(_) => {
            note_asked(parties, party, Some(direction));
            settled(parties, party);
        }
        Err(_) => leg.exchange.roll_back(),
    }
    sent
}

/// Returns our offer, whose answer arrives with the ACK (RFC 3261 §14.2).
fn offer_ours(parties: &mut Parties, party: Party) -> Result<SessionDescription, u16> {
    let direction = direction_for(parties, party);
    let mixable = parties.own_mix.as_ref().is_some_and(|mix| mix.is_taken());
    if !parties.leg(party).is_some_and(|leg| leg.is_open()) {
        return Err(481);
    }
    let offer = open_offer(parties, party, direction, mixable).ok_or(491_u16)?;
    note_asked(parties, party, Some(direction));
    Ok(offer)
}

/// Opens an exchange with the present description in this direction. It offers the codecs that the party uses and no
/// others, so that the party does not change to another.
fn open_offer(
    parties: &mut Parties,
    party: Party,
    direction: Direction,
    mixable: bool,
) -> Option<SessionDescription> {
    let leg = parties.leg_mut(party).filter(|leg| leg.is_open())?;
    let mut fresh = leg.exchange.in_force()?.clone();
    let used: Vec<_> = leg.exchange.negotiated()?.payloads.iter().map(|payload| &payload.codec).collect();
    for audio in fresh.media.iter_mut().filter(|media| media.is_carried()) {
        audio.direction = direction;
        audio.codecs.retain(|codec| used.iter().any(|used| used.matches(codec)));
        if mixable {
            audio.codecs.retain(media_plan::is_mixable);
        }
    }
    for video in fresh.media.iter_mut().filter(|media| media.is_carried_video()) {
        // A party that hears music gets no video.
        video.direction = if direction == Direction::SendRecv { direction } else { Direction::Inactive };
    }
    leg.exchange.send_offer(fresh).ok()
}

/// Returns the direction that a party should have, from our view.
fn direction_for(parties: &Parties, party: Party) -> Direction {
    match parties.own_mix.as_ref().and_then(|mix| mix.holder) {
        Some(holder) if holder == party => Direction::Inactive,
        Some(_) => Direction::SendOnly,
        None => {
            let other = parties.other(party).and_then(|other| parties.leg(other));
            other.map_or(Direction::SendRecv, |leg| leg.exchange.wanted_by_party())
        }
    }
}

/// Seats both parties in the mix, changes their seats, or relays between them again.
fn seat(parties: &mut Parties, callee: usize) {
    let Some(mix) = &mut parties.own_mix else { return };
    let (holder, paused) = (mix.holder, mix.recording.is_some_and(|recording| recording.paused));
    let listens = mix.recording.is_some() || mix.playing.is_some();
    let wanted = match (holder, listens) {
        (Some(_), _) => Seats::Taken,
        (None, true) => Seats::Listened,
        (None, false) => Seats::None,
    };
    let before = std::mem::replace(&mut mix.seats, wanted);
    let (id, organisation) = (parties.own_mix_id(), parties.facts.organisation);
    for party in [Party::Caller, Party::Callee(callee)] {
        let hears = if holder == Some(party) { SeatHears::Nothing } else { SeatHears::Music };
        let formats = parties.leg(party).and_then(Leg::formats).map(Box::new);
        let command = match (before, wanted) {
            (Seats::None, Seats::None) => None,
            (_, Seats::None) => Some(MediaCommand::Leave),
            (Seats::Listened, Seats::Listened) => Some(MediaCommand::Mute(paused)),
            (_, Seats::Listened) => {
                formats.map(|formats| MediaCommand::Listen { mix: id, organisation, formats, muted: paused })
            }
            (Seats::Taken, Seats::Taken) => Some(MediaCommand::Hear(hears)),
            (_, Seats::Taken) => formats.map(|formats| MediaCommand::Join {
                mix: id,
                organisation,
                // Music does not depend on the language.
                language: Language::default(),
                formats,
                muted: true,
                hears,
            }),
        };
        parties.tell(party, command);
    }
    if before == Seats::Taken && wanted != Seats::Taken {
        relay(parties, callee);
    }
}

/// Returns the direction that we last offered to a party, unless the party refused it.
fn asked_before(parties: &Parties, party: Party) -> Option<Direction> {
    let local = parties.leg(party)?.exchange.in_force()?;
    Some(local.direction_of(local.carried_audio()?.1))
}

fn note_asked(parties: &mut Parties, party: Party, direction: Option<Direction>) {
    if let Some(mix) = &mut parties.own_mix {
        *mix.asked_mut(party) = direction;
    }
}
