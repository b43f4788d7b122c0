//! The dialogs of new legs, for a driver that assigns SIP messages to calls.

use sidetone_model::ids::{CallId, OrganisationId};

use crate::machine::Switch;

/// The dialog of a leg at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedLeg {
    /// The call of the leg.
    pub call: CallId,
    /// The organisation of the call.
    pub organisation: OrganisationId,
    /// The Call-ID of the leg's INVITE.
    pub call_id: String,
    /// The tag of our side.
    pub our_tag: String,
    /// The tag of the peer, if the peer sent the INVITE.
    pub peer_tag: Option<String>,
}

impl Switch {
    /// Notes new legs of calls from now on for [`Switch::poll_leg`]. Without this call, no legs are noted.
    pub fn watch_legs(&mut self) {
        self.control.calls.watch();
    }

    /// Returns the next new leg of a call; drain to `None` after every input and before every output.
    pub fn poll_leg(&mut self) -> Option<WatchedLeg> {
        while let Some((call, organisation, leg)) = self.control.calls.poll_watched() {
            let ua = &self.shared.ua;
            // A leg that has already ended has sent and received no message to assign.
            let (Some(call_id), Some(our_tag)) = (ua.call_id(leg), ua.tag_of(leg)) else { continue };
            let peer_tag = ua.dialog_of(leg).map(|(_, _, peers)| peers.to_owned());
            return Some(WatchedLeg {
                call,
                organisation,
                call_id: call_id.to_owned(),
                our_tag: our_tag.to_owned(),
                peer_tag,
            });
        }
        None
    }
}
