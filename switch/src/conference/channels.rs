//! The channels of a room's recording: one with the entire mix, or two, with the moderators on the left and all others
//! on the right. While there is no moderator, the member who has been there for longest is on the left, so that
//! two parties are never on one channel.

use sidetone_model::room::Role;

/// The channels of a session's recordings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Channels {
    two: bool,
    /// Whether a recording has begun, which fixes the channels of the file.
    are_fixed: bool,
}

impl Channels {
    /// The channels of a room whose stored setting is this number.
    pub(super) fn of(channels: u16) -> Self {
        Channels { two: channels == 2, are_fixed: false }
    }

    /// The number of channels: 1 or 2.
    pub(super) fn count(self) -> u16 {
        if self.two { 2 } else { 1 }
    }

    /// Whether members have sides, which change when members join, leave or become moderators.
    pub(super) fn have_sides(self) -> bool {
        self.two
    }

    /// Changes the number of channels; returns whether that is possible. All recordings of a session are in one file,
    /// so the first recording fixes the number.
    pub(super) fn choose(&mut self, channels: u16) -> bool {
        let is_possible = !self.are_fixed || self.count() == channels;
        if is_possible {
            self.two = channels == 2;
        }
        is_possible
    }

    /// Fixes the number of channels; returns whether this is the first recording of the session.
    pub(super) fn fix(&mut self) -> bool {
        !std::mem::replace(&mut self.are_fixed, true)
    }

    /// Whether a member is on the left; `is_first` is the member who has been there for longest.
    pub(super) fn is_left(self, role: Role, is_moderated: bool, is_first: bool) -> bool {
        self.two && (role == Role::Moderator || !is_moderated && is_first)
    }
}
