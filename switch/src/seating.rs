//! Parties of a call that are in a room: how they get their seat, and how their dialog negotiates media with
//! the room.
//!
//! A room accepts a party's offer as far as its mix can decode and encode it; no other party is asked. A
//! party that wants to receive nothing holds the call; what it sends then, usually music, is not mixed.

use std::time::Instant;

use sidetone_model::call::HangupCause;
use sidetone_sip::sdp::{Direction, SessionDescription};

use crate::call::{Call, Near, State};
use crate::face::{Input, MediaCommand, Output, Party};
use crate::leg::Leg;

impl Call {
    /// Answers the caller on behalf of a room.
    ///
    /// # Errors
    /// The status to refuse the INVITE with.
    pub(super) fn take_for_a_room(&mut self, now: Instant) -> Result<(), u16> {
        let Near::Party(caller) = &mut self.near else { return Ok(()) };
        let (offer, leg) = (caller.offer.clone(), &mut caller.leg);
        let answer = match offer {
            Some(offer) => {
                leg.exchange.receive_offer(offer).map_err(|_| 488_u16)?;
                leg.answer_for_room()?
            }
            None => leg.exchange.send_offer(leg.offer_to_room()).map_err(|_| 488_u16)?,
        };
        let description = leg.describe();
        self.tell(Party::Caller, description);
        self.await_journal(now, Some(answer));
        Ok(())
    }

    /// Seats the party that called the room, or that the room called, once the call is answered. A party that
    /// has yet to answer our offer is seated when its ACK arrives.
    pub(super) fn seat_who_came_for_a_room(&mut self) {
        let party = match (&self.near, self.winner) {
            (Near::Room, Some(place)) => Party::Callee(place),
            (Near::Party(_), None) => Party::Caller,
            (Near::Room, None) | (Near::Party(_), Some(_)) => return,
        };
        self.seat(party);
    }

    /// Whether the parties may be moved into a room now.
    pub(super) fn can_merge(&self) -> bool {
        let callee = self.winner.map(Party::Callee);
        let settled = |party: Party| self.leg(party).is_some_and(|leg| leg.exchange.negotiated().is_some());
        self.is_up()
            && !self.is_merged()
            && self.renegotiation.is_none()
            && self.has_caller()
            && callee.is_some_and(|callee| settled(callee) && settled(Party::Caller))
    }

    /// Ends the relaying between the parties and seats them, except `without`, which is hung up.
    pub(super) fn merge(&mut self, now: Instant, without: Option<Party>) {
        let Some(callee) = self.winner.filter(|_| self.can_merge()) else { return };
        self.merged = true;
        let parties = [Party::Caller, Party::Callee(callee)];
        for party in parties.into_iter().filter(|party| Some(*party) != without) {
            self.seat(party);
            // A party that is on hold, or that holds, is asked to send and receive again.
            let is_held =
                |leg: &Leg| leg.exchange.negotiated().is_some_and(|n| n.direction != Direction::SendRecv);
            if self.leg(party).is_some_and(is_held) {
                self.resume(party);
            }
        }
        if let Some(party) = without {
            self.dismiss(now, party, HangupCause::NormalClearing);
        }
    }

    /// Whether its parties talked to each other before they were moved into a room: then each leaves
    /// separately.
    pub(super) fn is_merged(&self) -> bool {
        self.merged
    }

    /// Whether a party of the call is in a room.
    pub(super) fn has_seats(&self) -> bool {
        self.seats().next().is_some()
    }

    /// Returns the parties that are in a room.
    pub(super) fn seats(&self) -> impl Iterator<Item = Party> + '_ {
        let callee = self.winner.map(Party::Callee);
        let parties = std::iter::once(Party::Caller).chain(callee);
        parties.filter(|party| self.leg(*party).is_some_and(Leg::is_seated))
    }

    /// Whether a party negotiates its media with a room only.
    pub(super) fn is_for_a_room(&self, party: Party) -> bool {
        match (&self.near, self.winner) {
            _ if self.is_merged() => true,
            (Near::Room, Some(place)) => party == Party::Callee(place),
            (Near::Party(_), None) => party == Party::Caller && !self.is_ringing(),
            (Near::Room, None) | (Near::Party(_), Some(_)) => false,
        }
    }

    /// Handles an offer of a party inside its dialog.
    pub(super) fn offer_in_room(&mut self, party: Party, offer: Option<SessionDescription>) {
        if !matches!(self.state, State::Up | State::Answering { .. }) {
            return self.push(Output::OfferResult(party, Err(481)));
        }
        let Some(leg) = self.leg_mut(party).filter(|leg| leg.is_open()) else {
            return self.push(Output::OfferResult(party, Err(481)));
        };
        let Some(offer) = offer else {
            // The answer arrives with the ACK.
            let offered = leg.exchange.send_offer(leg.offer_to_room()).map_err(|_| 491);
            return self.push(Output::OfferResult(party, offered));
        };
        if leg.exchange.receive_offer(offer).is_err() {
            return self.push(Output::OfferResult(party, Err(491)));
        }
        match leg.answer_for_room() {
            Ok(answer) => {
                self.settle_in_room(party);
                self.push(Output::OfferResult(party, Ok(answer)));
            }
            Err(status) => {
                leg.exchange.roll_back();
                self.push(Output::OfferResult(party, Err(status)));
            }
        }
    }

    /// Handles a party's answer to our offer, or its refusal.
    pub(super) fn offered_in_room(
        &mut self,
        now: Instant,
        party: Party,
        result: Result<Option<SessionDescription>, u16>,
    ) {
        let Some(leg) = self.leg_mut(party) else { return };
        if leg.exchange.local_offer().is_none() {
            return; // The call moved on: the answer belongs to nothing.
        }
        if let Ok(Some(answer)) = &result
            && leg.exchange.receive_answer(answer.clone()).is_ok()
        {
            leg.resumes = false;
            return self.settle_in_room(party);
        }
        leg.exchange.roll_back();
        leg.resumes &= result == Err(491);
        // The dialog is gone (RFC 5057 §5.1), so the leg ends. Any other refusal changes nothing.
        if matches!(result, Err(408 | 481)) {
            self.handle_input(now, Input::HungUp(party, HangupCause::RecoveryOnTimerExpire));
        }
    }

    /// Repeats our offer that clashed with the party's, if it is still needed.
    pub(super) fn offer_due(&mut self, party: Party) {
        if self.leg(party).is_some_and(|leg| leg.is_seated() && leg.resumes) {
            self.resume(party);
        }
    }

    /// Handles a completed negotiation between a party and the room: seats the party, or changes its seat.
    pub(super) fn settle_in_room(&mut self, party: Party) {
        let Some(leg) = self.leg_mut(party) else { return };
        let (description, formats) = (leg.describe(), leg.formats());
        let (is_seated, held) = (leg.is_seated(), leg.holding_changed());
        self.tell(party, description);
        if !is_seated {
            // The call may still wait for the journal.
            if self.is_up() {
                self.seat(party);
            }
            return;
        }
        self.tell(party, formats.map(|formats| MediaCommand::Format(Box::new(formats))));
        if let Some(holds) = held {
            self.push(Output::Held(party, holds));
        }
    }

    fn seat(&mut self, party: Party) {
        let Some(leg) = self.leg_mut(party).filter(|leg| leg.exchange.negotiated().is_some()) else { return };
        leg.seat();
        let held = leg.holding_changed();
        self.push(Output::Seat(party));
        if let Some(holds) = held {
            self.push(Output::Held(party, holds));
        }
    }

    /// Offers a party to send and receive.
    fn resume(&mut self, party: Party) {
        let Some(leg) = self.leg_mut(party) else { return };
        if let Ok(offer) = leg.exchange.send_offer(leg.offer_to_room()) {
            leg.resumes = true;
            self.push(Output::Offer(party, offer));
        }
    }
}
