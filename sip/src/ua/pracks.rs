//! PRACK (RFC 3262) in both roles: those of the peer for our provisional responses, and ours for the responses of
//! the peer.

use std::time::Instant;

use crate::dialog::{ReliableInput, ReliableOutput};
use crate::message::{Method, Name, Request, Response, StatusCode};
use crate::transaction::ServerKey;
use crate::ua::draft::Reply;
use crate::ua::event::Cause;
use crate::ua::leg::{LegKey, Phase};
use crate::ua::reliable::RELIABLE;
use crate::ua::reliable_state::Reliable;
use crate::ua::state::{Purpose, Ua};

impl Ua {
    /// Handles a PRACK of the peer: 481 unless it belongs to the response that waits (§3).
    pub(super) fn on_prack(&mut self, now: Instant, key: LegKey, server: &ServerKey, request: &Request) {
        let rack = request.rack().ok().filter(|rack| rack.cseq.method == Method::Invite);
        let Some(leg) = self.legs.get_mut(&key) else { return };
        let ringing = match &leg.phase {
            Phase::Ringing { server, .. } => Some(*server),
            _ => None,
        };
        let next = match (leg.reliable.as_deref_mut(), rack, ringing) {
            (Some(Reliable::Sent(sent)), Some(rack), Some(ringing)) if rack.cseq.number == sent.cseq => {
                sent.machine.handle_input(now, ReliableInput::Prack(rack.rseq));
                let acknowledged = sent.machine.poll_output() == Some(ReliableOutput::Acknowledged);
                acknowledged.then(|| (ringing, sent.waiting.pop_front()))
            }
            _ => None,
        };
        let Some((ringing, next)) = next else {
            return self.answer(now, server, StatusCode::NO_TRANSACTION);
        };
        // A new offer in a PRACK is not supported; its response is acknowledged nevertheless.
        let status = if request.body().is_empty() { StatusCode::OK } else { StatusCode::NOT_ACCEPTABLE_HERE };
        self.answer(now, server, status);
        if let Some(next) = next {
            let _ = self.send_reply(now, &ringing, next); // It fails only if a CANCEL has crossed.
        }
    }

    /// Repeats a response without a PRACK, or refuses the INVITE when it takes too long (§3).
    pub(super) fn repeat_reliable(&mut self, now: Instant, key: LegKey) {
        let Some(leg) = self.legs.get_mut(&key) else { return };
        let Phase::Ringing { server, .. } = leg.phase else { return };
        let Some(Reliable::Sent(sent)) = leg.reliable.as_deref_mut() else { return };
        sent.machine.handle_input(now, ReliableInput::Timeout);
        match sent.machine.poll_output() {
            Some(ReliableOutput::Retransmit) => self.layer.retransmit(now, &server),
            Some(ReliableOutput::GiveUp) => {
                self.release(key, Cause::PrackMissing);
                if self.send_reply(now, &server, Reply::new(StatusCode::SERVER_TIMEOUT)).is_err() {
                    self.remove_leg(now, key); // Its transaction is over already.
                }
            }
            Some(ReliableOutput::Acknowledged) | None => {}
        }
    }

    /// Acknowledges a provisional response of the peer if it is reliable. `false` if it is a repetition, or if one
    /// before it is missing: then the user must not get it (§4).
    pub(super) fn acknowledge_progress(&mut self, now: Instant, key: LegKey, response: &Response) -> bool {
        let Some(rseq) = response.rseq().filter(|_| response.headers().lists(Name::Require, RELIABLE)) else {
            return true;
        };
        let Some(leg) = self.legs.get_mut(&key) else { return true };
        let tag = response.to_tag().unwrap_or_default();
        let Some(at) = leg.dialog_with(response.call_id(), &tag) else { return true };
        let received = leg.reliable.get_or_insert_with(|| Box::new(Reliable::Received(Vec::new())));
        let Reliable::Received(last) = received.as_mut() else { return true };
        match last.iter_mut().find(|(of, _)| *of == tag) {
            Some((_, last)) if last.checked_add(1) == Some(rseq) => *last = rseq,
            Some(_) => return false,
            None => last.push((tag.into_owned(), rseq)),
        }
        let invite = leg.invite.as_ref().and_then(|invite| invite.cseq().ok());
        let (Some(invite), Some(dialog)) = (invite, leg.dialogs.get_mut(at)) else { return true };
        let cseq = dialog.next_cseq();
        let Ok(mut prack) = dialog.request(Method::Prack, cseq) else { return true };
        let flow = dialog.route();
        if prack.push(Name::RAck, format_args!("{rseq} {} {}", invite.number, Method::Invite)).is_ok()
            && let Ok(client) = self.layer.request(now, flow, prack)
        {
            self.purposes.insert(client, Purpose::Prack(key));
        }
        true
    }
}
