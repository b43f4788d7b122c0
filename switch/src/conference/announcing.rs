//! The announcement when a member joins or leaves: a chime, or the member's spoken name. Many joins or leaves in a
//! short time get one chime.

use std::time::Duration;

use sidetone_model::ids::LegId;
use sidetone_model::prompt::Prompt;
use sidetone_model::room::RoomName;
use sidetone_model::time::Now;

use crate::conference::live::{Announced, Live};
use crate::conference::outputs::Outputs;
use crate::conference::{NameOrder, Output};

impl Live {
    /// Whether joins and leaves are announced; in a large room the announcements would never stop.
    pub(super) fn is_announced(&self) -> bool {
        matches!(self.name, RoomName::Stored(_)) && !self.is_moving && self.members.len() <= ANNOUNCED_MAX
    }

    /// Announces a join or a leave; `named` is the leg of a member whose spoken name is recorded. Within two seconds of
    /// a name, further joins (or leaves) get one chime; within two seconds of a chime they are not announced.
    pub(super) fn announce(&mut self, now: Now, joins: bool, named: Option<LegId>, outputs: &mut Outputs) {
        if self.members.is_empty() {
            return;
        }
        let [joined, left] = &mut self.announced;
        let last = if joins { joined } else { left };
        let recent = last.filter(|last| now.instant.saturating_duration_since(last.at) < ANNOUNCEMENT_EVERY);
        if recent.is_some_and(|last| !last.by_name) {
            return;
        }
        let named = named.filter(|_| recent.is_none());
        *last = Some(Announced { at: now.instant, by_name: named.is_some() });
        let (chime, words) =
            if joins { (Prompt::Joined, Prompt::HasJoined) } else { (Prompt::Left, Prompt::HasLeft) };
        match named {
            Some(leg) => {
                let (mix, organisation) = (self.mix, self.organisation);
                outputs.push(Output::Name(NameOrder::Play { mix, leg, organisation, words }));
            }
            None => self.say(vec![chime], outputs),
        }
    }
}

/// Members of a room up to which joins and leaves are announced.
const ANNOUNCED_MAX: usize = 12;

/// Within this time of a name a join is announced by a chime, and within this time of a chime it is not announced;
/// leaves likewise.
const ANNOUNCEMENT_EVERY: Duration = Duration::from_secs(2);
