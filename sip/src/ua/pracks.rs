//! PRACK (RFC 3262) in both roles: the peer's PRACKs for our provisional responses, and ours for the responses of the
//! peer.

use std::time::Instant;

use crate::dialog::{ReliableInput, ReliableOutput};
use crate::flow::Flow;
use crate::message::{Method, Name, Request, Response, StatusCode};
use crate::transaction::ServerKey;
use crate::ua::draft::Reply;
use crate::ua::event::{Cause, Event};
use crate::ua::leg::{LegKey, Phase};
use crate::ua::reliable::RELIABLE;
use crate::ua::reliable_state::{Received, Reliable};
use crate::ua::session::takes_updates;
use crate::ua::state::{Purpose, Ua};

impl Ua {
    /// Handles a PRACK of the peer: 481 unless it belongs to the pending response (§3). Its offer is an offer in an
    /// early dialog (§5).
    pub(super) fn on_prack(
        &mut self,
        now: Instant,
        key: LegKey,
        server: ServerKey,
        flow: Flow,
        request: Request,
    ) {
        let rack = request.rack().ok().filter(|rack| rack.cseq.method == Method::Invite);
        let Some(leg) = self.legs.get_mut(&key) else { return };
        let rings = matches!(leg.phase, Phase::Ringing { .. });
        let answered = match (leg.reliable.as_deref_mut(), rack) {
            (Some(Reliable::Sent(sent)), Some(rack)) if rings && rack.cseq.number == sent.cseq => {
                sent.machine.handle_input(now, ReliableInput::Prack(rack.rseq));
                let acknowledged = sent.machine.poll_output() == Some(ReliableOutput::Acknowledged);
                sent.answered |= acknowledged && sent.describes;
                acknowledged.then_some(sent.answered)
            }
            _ => None,
        };
        match answered {
            None => return self.answer(now, &server, StatusCode::NO_TRANSACTION),
            Some(_) if request.body().is_empty() => self.answer(now, &server, StatusCode::OK),
            // Our own offer is open.
            Some(true) if leg.update.is_some() => self.answer(now, &server, StatusCode::REQUEST_PENDING),
            Some(true) if leg.updating.is_none() => {
                leg.updating = Some(server);
                self.event(Event::Updated { leg: key, key: server, flow, request });
            }
            // The offer of the INVITE, or an earlier one, has no answer yet.
            Some(_) => self.answer(now, &server, StatusCode::NOT_ACCEPTABLE_HERE),
        }
        self.send_waiting(now, key);
    }

    /// Repeats a response without a PRACK, or refuses the INVITE after the timeout (§3).
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

    /// Acknowledges a provisional response of the peer if it is reliable. `false` if it is a repetition, or if an
    /// earlier one is missing: then the user must not get it (§4).
    pub(super) fn acknowledge_progress(&mut self, now: Instant, key: LegKey, response: &Response) -> bool {
        let Some(rseq) = response.rseq().filter(|_| response.headers().lists(Name::Require, RELIABLE)) else {
            return true;
        };
        let Some(leg) = self.legs.get_mut(&key) else { return true };
        let tag = response.to_tag().unwrap_or_default();
        let Some(at) = leg.dialog_with(response.call_id(), &tag) else { return true };
        let received = leg.reliable.get_or_insert_with(|| Box::new(Reliable::Received(Vec::new())));
        let Reliable::Received(forks) = received.as_mut() else { return true };
        let (answered, takes_updates) = (!response.body().is_empty(), takes_updates(response.headers()));
        match forks.iter_mut().find(|fork| fork.tag == tag) {
            Some(fork) if fork.rseq.checked_add(1) == Some(rseq) => {
                fork.rseq = rseq;
                fork.answered |= answered;
                fork.takes_updates |= takes_updates;
            }
            Some(_) => return false,
            None => forks.push(Received { tag: tag.into_owned(), rseq, answered, takes_updates }),
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
