//! The mix of two linked calls, in which each call seats its own party. A program uses it to put a party on hold, to
//! record both parties, or to play a prompt, as [`own_mix`](crate::own_mix) does for the parties of one call.
//!
//! Both calls get every step and show the same state. The call that the program named orders the recording and reports
//! the end of the prompt. The end of the link (by a further transfer, parking, or the end of a call) ends hold,
//! recording and prompt.

use std::time::Duration;

use sidetone_media::mix::MixId;
use sidetone_model::call_operation::RecordStep;
use sidetone_model::call_prompt::PlayResult;
use sidetone_model::ids::ConferenceSessionId;
use sidetone_model::language::Language;
use sidetone_model::live_call::LiveRecording;

use crate::call_mix::{LinkedMix, LinkedPlaying, Seats};
use crate::io::{LinkHold, LinkedPrompt, LinkedStep, MediaCommand, Output, Party, PortId};
use crate::leg::Leg;
use crate::mixing::{MixOrder, RecordingPlan, SeatHears};
use crate::parties::Parties;

/// Carries out a step for the linked party; `id` is the mix of both calls. Does nothing without a party of the other
/// call.
pub(super) fn step(parties: &mut Parties, id: MixId, step: LinkedStep) {
    let Some(link) = parties.link.as_mut().filter(|link| link.peer.is_some()) else { return };
    link.mix.get_or_insert_with(|| Box::new(LinkedMix::new(id)));
    match step {
        LinkedStep::EndPrompt(result) => {
            end_prompt(parties, result);
            match parties.linked_mix().map_or(Seats::None, LinkedMix::wanted) {
                Seats::None => seat(parties),
                Seats::Listened | Seats::Taken => reconnect(parties),
            }
        }
        LinkedStep::Hold(hold) => self::hold(parties, hold),
        LinkedStep::Play(prompt) => play(parties, prompt),
        LinkedStep::Record(step, orders) => record(parties, step, orders),
    }
    if let Some(link) = parties.link.as_mut()
        && link.mix.as_ref().is_some_and(|mix| mix.wanted() == Seats::None)
    {
        link.mix = None;
    }
}

/// Handles the end of a prompt at the port of the linked party; the prompt is over when it has ended for both parties.
pub(super) fn played(parties: &mut Parties, port: PortId, token: u64) {
    let Some(party) = parties.party_at(port) else { return };
    let Some(link) = parties.link.as_mut().filter(|link| link.party == party) else { return };
    let playing = link.mix.as_mut().and_then(|mix| mix.playing.as_mut());
    // The end of a prompt that was replaced may arrive late.
    if let Some(playing) = playing.filter(|playing| playing.order.token() == token) {
        playing.waits = false;
    }
}

/// Ends the seat of a linked party, with its recording, prompt and hold; a parked party leaves its slot.
pub(super) fn leave(parties: &mut Parties, party: Party) {
    // While both parties are linked, they have no mix.
    if parties.link.as_ref().is_none_or(|link| link.party != party) {
        return;
    }
    end(parties, PlayResult::Interrupted);
    let Some(link) = &mut parties.link else { return };
    let (parked, mix) = (link.parked.take(), link.mix.take());
    if parked.is_some() || mix.is_some_and(|mix| mix.seats != Seats::None) {
        parties.tell(party, Some(MediaCommand::Leave));
    }
}

/// Ends the recording and the prompt of linked calls; the seat stays.
pub(super) fn end(parties: &mut Parties, result: PlayResult) {
    end_recording(parties);
    end_prompt(parties, result);
}

/// Relays a linked party's packets to the other party, unless the other party hears a prompt, or either is on hold.
pub(super) fn connect(parties: &mut Parties, party: Party) {
    let Some(link) = parties.link_of(party).filter(|link| link.hold().is_none()) else { return };
    let Some(peer) = &link.peer else { return };
    let Some(leg) = parties.leg(party) else { return };
    let (bridge, plan) = (leg.bridge_towards(peer.port, &peer.negotiated), leg.plan_for(&peer.negotiated));
    let keys = leg.keys_for(&peer.negotiated);
    parties.tell(party, bridge);
    let command = parties.leg_mut(party).and_then(|leg| leg.transcode(plan));
    parties.tell(party, command);
    let command = parties.leg_mut(party).and_then(|leg| leg.watch_keys(keys));
    parties.tell(party, command);
    silence(parties, party);
}

fn reconnect(parties: &mut Parties) {
    if let Some(party) = parties.link.as_ref().map(|link| link.party) {
        connect(parties, party);
    }
}

fn hold(parties: &mut Parties, hold: Option<LinkHold>) {
    if parties.link.as_ref().is_none_or(|link| link.hold() == hold) {
        return;
    }
    end_prompt(parties, PlayResult::Interrupted);
    if let Some(mix) = parties.link.as_mut().and_then(|link| link.mix.as_mut()) {
        mix.hold = hold;
    }
    seat(parties);
}

fn record(parties: &mut Parties, step: RecordStep, orders: bool) {
    let Some(link) = &mut parties.link else { return };
    let (party, Some(mix)) = (link.party, link.mix.as_deref_mut()) else { return };
    match step {
        RecordStep::Pause | RecordStep::Resume => {
            let Some(recording) = &mut mix.recording else { return };
            recording.paused = step == RecordStep::Pause;
            let (paused, seats) = (recording.paused, mix.seats);
            // During a hold the mix hears neither party anyway.
            if seats == Seats::Listened {
                parties.tell(party, Some(MediaCommand::Mute(paused)));
            }
        }
        RecordStep::Start(_) if mix.recording.is_some() => {}
        RecordStep::Start(id) => {
            mix.recording = Some(LiveRecording { id, paused: false });
            mix.orders = orders;
            // A prompt may have kept the seat, which a paused earlier recording may have muted.
            if mix.seats == Seats::Listened {
                parties.tell(party, Some(MediaCommand::Mute(false)));
            }
            seat(parties);
            if orders {
                order_recording(parties, ConferenceSessionId(id.0));
            }
        }
        RecordStep::Stop => {
            end_recording(parties);
            seat(parties);
        }
    }
}

/// Begins the file. The party of the other call replaces the one that left this call, so that the caller's side is on
/// the left channel.
fn order_recording(parties: &mut Parties, session: ConferenceSessionId) {
    let Some(link) = &parties.link else { return };
    let (Some(mix), Some(peer), Some(leg)) = (&link.mix, &link.peer, parties.leg(link.party)) else { return };
    let sides = if link.is_caller() { [leg.port(), peer.port] } else { [peer.port, leg.port()] };
    let organisation = parties.facts.organisation;
    let plan = RecordingPlan { session, organisation, sides: Some(sides), channels: 2 };
    let output = Output::Mix(mix.id, MixOrder::Record(plan));
    parties.push(output);
}

fn end_recording(parties: &mut Parties) {
    let Some(mix) = parties.link.as_mut().and_then(|link| link.mix.as_mut()) else { return };
    let orders = mix.recording.take().is_some() && std::mem::take(&mut mix.orders);
    let id = mix.id;
    if orders {
        parties.push(Output::Mix(id, MixOrder::StopRecording));
    }
}

/// Plays a prompt; it replaces one that plays.
fn play(parties: &mut Parties, order: LinkedPrompt) {
    let replaces = parties.prompt().is_some();
    end_prompt(parties, PlayResult::Replaced);
    let Some(link) = &mut parties.link else { return };
    let (party, hears) = (link.party, order.is_for(link.is_caller()));
    let Some(mix) = link.mix.as_deref_mut() else { return };
    mix.playing = Some(LinkedPlaying { order, waits: hears });
    let before = mix.seats;
    seat(parties);
    match before {
        Seats::Taken => {}
        Seats::Listened if replaces => connect(parties, party),
        Seats::Listened | Seats::None => silence(parties, party),
    }
    if hears {
        let (prompts, token, language) = (vec![order.prompt.prompt], order.token(), Some(order.language));
        parties.tell(party, Some(MediaCommand::Play { prompts, token, lead: Duration::ZERO, language }));
    }
}

/// Stops the relay to the other party while that party hears a prompt.
fn silence(parties: &mut Parties, party: Party) {
    let Some(link) = parties.link_of(party) else { return };
    let playing = link.mix.as_ref().and_then(|mix| mix.playing);
    if playing.is_some_and(|playing| playing.order.is_for(!link.is_caller())) {
        parties.tell(party, Some(MediaCommand::Unbridge));
    }
}

/// Ends the prompt that plays, if there is one; the call that began it reports its end.
fn end_prompt(parties: &mut Parties, result: PlayResult) {
    let Some(link) = &mut parties.link else { return };
    let party = link.party;
    let Some(playing) = link.mix.as_mut().and_then(|mix| mix.playing.take()) else { return };
    if playing.waits {
        parties.tell(party, Some(MediaCommand::StopPlaying));
    }
    if playing.order.reports {
        parties.push(Output::PromptEnded(playing.order.prompt, result));
    }
}

/// Seats the linked party, changes its seat, or ends it.
fn seat(parties: &mut Parties) {
    let Some(link) = &mut parties.link else { return };
    let (party, Some(mix)) = (link.party, link.mix.as_deref_mut()) else { return };
    let wanted = mix.wanted();
    let before = std::mem::replace(&mut mix.seats, wanted);
    let (id, muted) = (mix.id, mix.recording.is_some_and(|recording| recording.paused));
    let holds = mix.hold.is_some_and(|hold| hold.is_own);
    let organisation = parties.facts.organisation;
    let formats = parties.leg(party).and_then(Leg::formats).map(Box::new);
    let hears = if holds { SeatHears::Nothing } else { SeatHears::Music };
    let command = match (before, wanted) {
        (Seats::None, Seats::None) | (Seats::Listened, Seats::Listened) => None,
        (_, Seats::None) => Some(MediaCommand::Leave),
        (_, Seats::Listened) => {
            formats.map(|formats| MediaCommand::Listen { mix: id, organisation, formats, muted })
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
    // A leg that was moved from another worker loses its bridge when its seat ends.
    if before != wanted && (before == Seats::Taken || wanted == Seats::None) {
        connect(parties, party);
    }
}
