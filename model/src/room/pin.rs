//! The PIN that a caller enters to join a room.

use std::fmt;

use serde::Serialize;

/// A PIN, or none. Readers of a room may see it; logs and events must not contain it.
#[derive(Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Pin(pub(super) String);

impl Pin {
    /// The digits; empty when there is no PIN.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether there is no PIN.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `digits` equal this PIN; false if there is no PIN.
    pub fn is(&self, digits: &str) -> bool {
        !self.0.is_empty() && self.0 == digits
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "Pin()" } else { "Pin(..)" })
    }
}

/// The participant PIN of a new room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoomPin {
    /// The default for rooms without a given PIN: empty, or six random digits, according to the
    /// configuration.
    Default,
    /// This PIN.
    Given(Pin),
}

impl RoomPin {
    /// The PIN, if one was given.
    pub fn given(&self) -> Option<&Pin> {
        match self {
            RoomPin::Default => None,
            RoomPin::Given(pin) => Some(pin),
        }
    }
}
