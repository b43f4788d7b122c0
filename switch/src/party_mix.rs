//! The parties of a call in the call's own mix, and their links with parties of other calls.

use sidetone_media::mix::MixId;
use sidetone_model::call_prompt::{LivePrompt, PlayResult};
use sidetone_model::live_call::LiveRecording;

use crate::call_mix::{LinkedMix, Seats};
use crate::io::{MediaCommand, Output, Party};
use crate::leg::Leg;
use crate::mixing::MixOrder;
use crate::parties::{Link, Parked, Parties};

impl Parties {
    /// Whether the parties may be moved into a room now.
    pub(super) fn can_merge(&self) -> bool {
        let callee = self.winner.map(Party::Callee);
        let settled = |party: Party| self.leg(party).is_some_and(|leg| leg.exchange.negotiated().is_some());
        self.is_up()
            && !self.is_merged()
            && self.has_caller()
            && callee.is_some_and(|callee| settled(callee) && settled(Party::Caller))
    }

    /// Whether the parties may have seats in the call's own mix: they have answered and are relayed to each other here.
    pub(super) fn can_mix(&self) -> bool {
        let parties = [Some(Party::Caller), self.winner.map(Party::Callee)];
        self.can_merge()
            && parties.into_iter().flatten().all(|party| self.leg(party).is_some_and(Leg::is_mixable))
    }

    /// Ends the call's own mix. The parties hear nothing until they are relayed or get another seat.
    pub(super) fn leave_own_mix(&mut self) {
        let callee = self.winner.map(Party::Callee);
        self.end_recording();
        self.end_prompt(PlayResult::Interrupted);
        if self.own_mix.take().is_some_and(|mix| mix.seats != Seats::None) {
            for party in std::iter::once(Party::Caller).chain(callee) {
                self.tell(party, Some(MediaCommand::Leave));
            }
        }
    }

    /// Ends the recording of the call, if there is one.
    pub(super) fn end_recording(&mut self) {
        let recording = self.own_mix.as_mut().and_then(|mix| mix.recording.take());
        if recording.is_some() {
            self.push(Output::Mix(self.own_mix_id(), MixOrder::StopRecording));
        }
    }

    /// Ends the prompt that plays, if there is one.
    pub(super) fn end_prompt(&mut self, result: PlayResult) {
        let Some(playing) = self.own_mix.as_mut().and_then(|mix| mix.playing.take()) else { return };
        let parties = [Some(Party::Caller), self.winner.map(Party::Callee)];
        for (party, waits) in parties.into_iter().zip(playing.waits) {
            if let Some(party) = party.filter(|_| waits) {
                self.tell(party, Some(MediaCommand::StopPlaying));
            }
        }
        self.push(Output::PromptEnded(playing.prompt, result));
    }

    /// Returns the prompt that plays.
    pub(super) fn prompt(&self) -> Option<LivePrompt> {
        match &self.own_mix {
            Some(mix) => mix.playing.map(|playing| playing.prompt),
            None => self.linked_mix()?.playing.map(|playing| playing.order.prompt),
        }
    }

    /// Returns the mix of this call and the linked one.
    pub(super) fn linked_mix(&self) -> Option<&LinkedMix> {
        self.link.as_ref()?.mix.as_deref()
    }

    /// Returns the id of the call's own mix.
    pub(super) fn own_mix_id(&self) -> MixId {
        // The mix is in the worker that has the ports: a leg that is moved to another worker loses its bridge.
        MixId(self.group)
    }

    /// Returns the recording of the call.
    pub(super) fn recording(&self) -> Option<LiveRecording> {
        let own = self.own_mix.as_ref().and_then(|mix| mix.recording);
        own.or_else(|| self.linked_mix()?.recording)
    }

    /// Returns the party that holds the other on a program's request.
    pub(super) fn holder(&self) -> Option<Party> {
        self.own_mix.as_ref().and_then(|mix| mix.holder)
    }

    /// Lets a party of an answered call wait alone, because the other left during its transfer.
    pub(super) fn await_peer(&mut self, party: Party) {
        self.set_link(Link::new(party));
    }

    /// Sets the link of a party that is no longer relayed within this call. The call ids of an earlier link are kept.
    pub(super) fn set_link(&mut self, link: Link) {
        self.leave_own_mix();
        let Some(leg) = self.leg_mut(link.party) else { return };
        leg.seat();
        self.merged = true;
        self.stop_video();
        let party = link.party;
        let is_twin = self.twin.as_ref().is_some_and(|twin| twin.party == party);
        // The link of a party that has left this call has ended.
        let is_open = |party: Party| self.leg(party).is_some_and(Leg::is_open);
        let keeps = self.link.as_ref().is_some_and(|other| other.party != party && is_open(other.party));
        let slot = if is_twin || keeps { &mut self.twin } else { &mut self.link };
        let (was_from, was_to) = slot.take().map_or((None, None), |before| (before.from, before.to));
        *slot = Some(Box::new(Link { from: link.from.or(was_from), to: link.to.or(was_to), ..link }));
    }

    /// Removes the link of a party; the link of the other party stays. Returns whether the party had a peer in another
    /// call.
    pub(super) fn unlink(&mut self, party: Party) -> bool {
        let link = if self.twin.as_ref().is_some_and(|twin| twin.party == party) {
            self.twin.take()
        } else if self.link.as_ref().is_some_and(|link| link.party == party) {
            std::mem::replace(&mut self.link, self.twin.take())
        } else {
            None
        };
        let Some(link) = link else { return false };
        // The record still names the calls.
        if let Some(kept) = &mut self.link {
            (kept.from, kept.to) = (kept.from.or(link.from), kept.to.or(link.to));
        }
        link.peer.is_some()
    }

    /// The link of a party.
    pub(super) fn link_of(&self, party: Party) -> Option<&Link> {
        self.links().find(|link| link.party == party)
    }

    /// The link of a party, to change it.
    pub(super) fn link_of_mut(&mut self, party: Party) -> Option<&mut Link> {
        let mut links = [&mut self.link, &mut self.twin].into_iter().flatten().map(Box::as_mut);
        links.find(|link| link.party == party)
    }

    /// The links of its parties.
    pub(super) fn links(&self) -> impl Iterator<Item = &Link> {
        [&self.link, &self.twin].into_iter().flatten().map(Box::as_ref)
    }

    /// Returns the slot that a party waits in.
    pub(super) fn parked(&self) -> Option<Parked> {
        self.link.as_ref()?.parked
    }

    /// Whether a party negotiates its media with us on behalf of a party of another call.
    pub(super) fn is_linked(&self, party: Party) -> bool {
        self.link_of(party).is_some()
    }

    /// Whether a party of another call is linked with this one.
    pub(super) fn has_peer(&self, party: Party) -> bool {
        self.link_of(party).is_some_and(|link| link.peer.is_some())
    }
}
