//! Controls of one member by programs: loudness, deafness, hold, a mute that the member cannot end, a whisper.
//!
//! [`Controls`] are the current settings; [`Live`] computes the seat from them and updates the media engine.

use sidetone_model::room::MemberGain;
use sidetone_model::room::event::MemberChange;

/// The settings of a member made by controls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Controls {
    /// The member cannot end its mute with a key.
    pub(super) mute_locked: bool,
    /// Hears nothing of the room.
    pub(super) deaf: bool,
    /// Hears music and is not heard.
    pub(super) on_hold: bool,
    pub(super) gain: MemberGain,
    /// The only member that hears it.
    pub(super) whisper_to: Option<u32>,
}

impl Controls {
    /// The changes from the settings of a new member to these settings.
    pub(super) fn changes(self) -> impl Iterator<Item = MemberChange> {
        let gain = (self.gain != MemberGain::default()).then_some(MemberChange::Gain(self.gain));
        let changes = [
            self.mute_locked.then_some(MemberChange::MuteLock(true)),
            self.deaf.then_some(MemberChange::Deaf(true)),
            self.on_hold.then_some(MemberChange::Hold(true)),
            gain,
            self.whisper_to.map(|to| MemberChange::Whisper(Some(to))),
        ];
        changes.into_iter().flatten()
    }
}
