//! Parties of a call that are in a room: how they are seated, and how their dialog negotiates media with
//! the room.
//!
//! A room accepts a party's offer as far as its mix can decode and encode it; no other party is involved. A
//! party that does not want to receive holds the call; the audio that it sends then, usually music, is not mixed.

use std::time::Instant;

use sidetone_model::call::{EndedBy, HangupCause};
use sidetone_sip::sdp::{Direction, SessionDescription};

use crate::ending::Ending;
use crate::io::{MediaCommand, Output, Party};
use crate::leg::Leg;
use crate::parties::{Near, Parties, State};
use crate::transcoding::answer_back;

/// Answers the caller on behalf of a room.
///
/// # Errors
/// The status to refuse the INVITE with.
pub(super) fn take_for_a_room(parties: &mut Parties, ending: &mut Ending, now: Instant) -> Result<(), u16> {
    let Near::Party(caller) = &mut parties.near else { return Ok(()) };
    let (offer, leg) = (caller.offer.clone(), &mut caller.leg);
    let early = leg.early_answer().cloned();
    parties.repeats_answer = early.is_some();
    let answer = match (offer, early) {
        (Some(_), Some(early)) => early,
        (Some(offer), None) => {
            // The offer of a call that has rung is open already.
            if leg.exchange.remote_offer().is_none() {
                leg.exchange.receive_offer(offer.clone()).map_err(|_| 488_u16)?;
            }
            match &parties.awaiting {
                Some(awaited) => {
                    let answer = answer_back(&offer, &awaited.settled, leg.local(), &leg.policy);
                    let answer = answer.map_err(|refused| refused.status())?;
                    leg.exchange.send_answer(answer).map_err(|_| 488_u16)?
                }
                None => leg.answer_for_room()?,
            }
        }
        (None, _) => leg.exchange.send_offer(leg.offer_to_room()).map_err(|_| 488_u16)?,
    };
    parties.describe(Party::Caller);
    ending.await_journal(parties, now, Some(answer));
    Ok(())
}

/// Seats the party that called the room, or that the room called, once the call is answered. A party that
/// has not answered our offer yet is seated when its ACK arrives.
pub(super) fn seat_who_came_for_a_room(parties: &mut Parties) {
    let party = match (&parties.near, parties.winner) {
        (Near::Room, Some(place)) => Party::Callee(place),
        (Near::Party(_), None) => Party::Caller,
        (Near::Room, None) | (Near::Party(_), Some(_)) => return,
    };
    if parties.awaiting.is_some() {
        return parties.push(Output::Reached(party));
    }
    // It gets another offer after its ACK.
    if parties.repeats_answer && parties.leg(party).is_some_and(Leg::sends_unmixable) {
        return;
    }
    seat(parties, party);
}

/// Offers the terms of the room to a caller whose 200 repeated an earlier answer, unless that suits the room.
pub(super) fn seat_caught_up(parties: &mut Parties, party: Party) {
    let lacks_terms = |leg: &Leg| leg.sends_unmixable() || is_held(leg);
    if parties.leg(party).is_some_and(lacks_terms) {
        resume(parties, party);
    }
}

/// Ends the relaying between the parties and seats them, except `without`, which is hung up.
pub(super) fn merge(parties: &mut Parties, ending: &mut Ending, now: Instant, without: Option<Party>) {
    let Some(callee) = parties.winner.filter(|_| parties.can_merge()) else { return };
    parties.leave_own_mix();
    parties.merged = true;
    parties.stop_video();
    let both = [Party::Caller, Party::Callee(callee)];
    for party in both.into_iter().filter(|party| Some(*party) != without) {
        seat_relayed(parties, party);
    }
    if let Some(party) = without {
        ending.dismiss(parties, now, party, HangupCause::NormalClearing, EndedBy::System);
    }
}

/// Seats a party that was relayed to another one.
pub(super) fn seat_relayed(parties: &mut Parties, party: Party) {
    // A mix cannot decode every codec that the parties shared: seat the party after a new offer with another one.
    if parties.leg(party).is_some_and(|leg| leg.sends_unmixable()) {
        return resume(parties, party);
    }
    seat(parties, party);
    // A party that is on hold, or that holds, gets a new offer to send and receive.
    // So does a party with video, which a room does not support.
    if parties.leg(party).is_some_and(is_held) {
        resume(parties, party);
    }
}

/// Handles an offer of a party inside its dialog.
pub(super) fn offer_in_room(parties: &mut Parties, party: Party, offer: Option<SessionDescription>) {
    if !matches!(parties.state, State::Up | State::Answering { .. }) {
        return parties.push(Output::OfferResult(party, Err(481)));
    }
    let Some(leg) = parties.leg_mut(party).filter(|leg| leg.is_open()) else {
        return parties.push(Output::OfferResult(party, Err(481)));
    };
    let Some(offer) = offer else {
        // The answer arrives with the ACK.
        let offered = leg.exchange.send_offer(leg.offer_to_room()).map_err(|_| 491);
        return parties.push(Output::OfferResult(party, offered));
    };
    let offer = match leg.srtp.admit(offer) {
        Ok(offer) => offer,
        Err(refused) => return parties.push(Output::OfferResult(party, Err(refused.status()))),
    };
    if leg.exchange.receive_offer(offer).is_err() {
        return parties.push(Output::OfferResult(party, Err(491)));
    }
    match leg.answer_for_room() {
        Ok(answer) => {
            settle_in_room(parties, party);
            parties.push(Output::OfferResult(party, Ok(answer)));
        }
        Err(status) => {
            leg.exchange.roll_back();
            parties.push(Output::OfferResult(party, Err(status)));
        }
    }
}

/// Handles a party's answer to our offer, or its refusal.
pub(super) fn offered_in_room(
    parties: &mut Parties,
    ending: &mut Ending,
    now: Instant,
    party: Party,
    result: Result<Option<SessionDescription>, u16>,
) {
    let Some(leg) = parties.leg_mut(party) else { return };
    if leg.exchange.local_offer().is_none() {
        return; // Outdated: no offer of ours is open.
    }
    // An offer sent before the party entered the room, such as a hold, does not resume it.
    let resumed = leg.exchange.local_offer().is_some_and(offers_both_ways);
    if let Ok(Some(answer)) = &result
        && leg.exchange.receive_answer(answer.clone()).is_ok()
    {
        leg.resumes &= !resumed;
        let resumes = leg.resumes;
        settle_in_room(parties, party);
        if resumes {
            resume(parties, party);
        }
        return;
    }
    leg.exchange.roll_back();
    leg.resumes &= result == Err(491);
    let has_no_seat = !leg.is_seated() && result != Err(491) && leg.sends_unmixable();
    if has_no_seat && parties.is_up() {
        let cause = HangupCause::IncompatibleDestination;
        return ending.dismiss(parties, now, party, cause, EndedBy::System);
    }
    // The dialog has ended (RFC 5057 §5.1), so the leg ends. Any other refusal changes nothing.
    if matches!(result, Err(408 | 481)) {
        ending.hung_up(parties, now, party, HangupCause::RecoveryOnTimerExpire);
    }
}

/// Repeats our offer that collided with the party's, if it is still needed.
pub(super) fn offer_due(parties: &mut Parties, party: Party) {
    if parties.leg(party).is_some_and(|leg| leg.resumes) {
        resume(parties, party);
    }
}

/// Handles a completed negotiation between a party and the room: seats the party, or changes its seat.
pub(super) fn settle_in_room(parties: &mut Parties, party: Party) {
    let Some(leg) = parties.leg_mut(party) else { return };
    let formats = leg.formats();
    let (is_seated, held) = (leg.is_seated(), leg.holding_changed());
    parties.describe(party);
    if !is_seated {
        // The call may still wait for the journal.
        if parties.is_up() {
            seat(parties, party);
        }
        return;
    }
    parties.tell(party, formats.map(|formats| MediaCommand::Format(Box::new(formats))));
    if let Some(holds) = held {
        parties.push(Output::Held(party, holds));
    }
}

fn seat(parties: &mut Parties, party: Party) {
    let Some(leg) = parties.leg_mut(party).filter(|leg| leg.exchange.negotiated().is_some()) else { return };
    leg.seat();
    let held = leg.holding_changed();
    parties.push(Output::Seat(party));
    if let Some(holds) = held {
        parties.push(Output::Held(party, holds));
    }
}

/// Whether a party is on hold or holds, or has video.
fn is_held(leg: &Leg) -> bool {
    let waits = leg.exchange.local_offer().is_some_and(|offer| !offers_both_ways(offer));
    waits || leg.has_video() || leg.exchange.negotiated().is_some_and(|n| n.direction != Direction::SendRecv)
}

fn offers_both_ways(offer: &SessionDescription) -> bool {
    offer.carried_audio().is_some_and(|(_, audio)| offer.direction_of(audio) == Direction::SendRecv)
}

/// Offers a party to send and receive; if an earlier offer of ours has no answer yet, after that answer.
fn resume(parties: &mut Parties, party: Party) {
    let Some(leg) = parties.leg_mut(party) else { return };
    leg.resumes = true;
    if let Ok(offer) = leg.exchange.send_offer(leg.offer_to_room()) {
        parties.push(Output::Offer(party, offer));
    }
}
