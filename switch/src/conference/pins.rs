//! Compares a party's digits with the PINs of a room, in the same time for every input.

use sidetone_model::room::{Pin, Role, RoomConfig};
use subtle::{Choice, ConstantTimeEq};

/// Returns the role that a PIN gives. Takes the same time for every PIN, right or wrong.
pub(super) fn role_of(config: &RoomConfig, digits: &str) -> Option<Role> {
    let moderator = is_pin(&config.moderator_pin, digits);
    let participant = is_pin(&config.participant_pin, digits);
    if moderator.into() {
        Some(Role::Moderator)
    } else {
        // A room whose participant PIN was removed meanwhile accepts any digits.
        (participant.into() || config.participant_pin.is_empty()).then_some(Role::Participant)
    }
}

/// Whether `digits` equal `pin`; an empty PIN never matches.
pub(super) fn is_pin(pin: &Pin, digits: &str) -> Choice {
    pin.as_str().as_bytes().ct_eq(digits.as_bytes()) & Choice::from(u8::from(!pin.is_empty()))
}

/// Wrong PINs, and unknown room numbers, allowed per call.
pub(super) const TRIES_MAX: u8 = 3;
