//! Conference rooms for the HTTP API: they are in the store, and default PINs are generated here.

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, RngExt};
use sidetone_model::access::Scope;
use sidetone_model::ids::{ExtensionId, RoomId, UserId};
use sidetone_model::listing::Listing;
use sidetone_model::page::Page;
use sidetone_model::ports::PortFuture;
use sidetone_model::room::{
    Exemption, ExpectedRoom, NewRoom, Pin, Room, RoomChange, RoomMember, RoomPin, Rooms, rules,
};
use sidetone_model::time::Timestamp;
use sidetone_store::Store;

/// The participant PIN of a room created without one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefaultPin {
    /// None: every caller who can dial the number may join.
    #[default]
    Empty,
    /// Six random digits.
    Random6,
}

impl DefaultPin {
    /// Every default with its name.
    pub const ALL: [(&'static str, DefaultPin); 2] =
        [("empty", DefaultPin::Empty), ("random6", DefaultPin::Random6)];

    /// The default of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, default)| *default)
    }

    /// A PIN for a room with this moderator PIN, which it must differ from.
    pub(super) fn draw(self, moderator_pin: &Pin, rng: &mut impl Rng) -> Pin {
        match self {
            DefaultPin::Empty => Pin::default(),
            DefaultPin::Random6 => loop {
                let digits = format!("{:06}", rng.random_range(0..1_000_000_u32));
                // Six digits are a valid PIN; with a chance of one in a million it equals the moderators'.
                if let Ok(pin) = rules::pin(&digits)
                    && pin != *moderator_pin
                {
                    return pin;
                }
            },
        }
    }
}

/// The stored rooms, with generated PINs.
#[derive(Debug)]
pub struct RoomPins {
    store: Store,
    default_pin: DefaultPin,
    rng: Mutex<StdRng>,
}

impl RoomPins {
    /// The rooms of `store`; PINs are generated with `rng`.
    pub fn new(store: Store, default_pin: DefaultPin, rng: StdRng) -> Self {
        Self { store, default_pin, rng: Mutex::new(rng) }
    }
}

impl Rooms for RoomPins {
    fn list<'a>(&'a self, scope: Scope, listing: &'a Listing) -> PortFuture<'a, Page<Room>> {
        Rooms::list(&self.store, scope, listing)
    }

    fn find(&self, room: RoomId) -> PortFuture<'_, Option<Room>> {
        Rooms::find(&self.store, room)
    }

    fn create(&self, scope: Scope, mut new: NewRoom, now: Timestamp) -> PortFuture<'_, Room> {
        if new.participant_pin == RoomPin::Default {
            let pin = self.default_pin.draw(&new.moderator_pin, &mut *self.rng.lock());
            new.participant_pin = RoomPin::Given(pin);
        }
        Rooms::create(&self.store, scope, new, now)
    }

    fn change(
        &self,
        scope: Scope,
        room: RoomId,
        expected: ExpectedRoom,
        change: RoomChange,
        now: Timestamp,
    ) -> PortFuture<'_, Room> {
        Rooms::change(&self.store, scope, room, expected, change, now)
    }

    fn delete(&self, scope: Scope, room: RoomId, expected: ExpectedRoom) -> PortFuture<'_, ()> {
        Rooms::delete(&self.store, scope, room, expected)
    }

    fn members(&self, scope: Scope, room: RoomId) -> PortFuture<'_, Vec<RoomMember>> {
        self.store.members(scope, room)
    }

    fn set_members(
        &self,
        scope: Scope,
        room: RoomId,
        expected: ExpectedRoom,
        members: Vec<ExtensionId>,
        now: Timestamp,
    ) -> PortFuture<'_, Vec<RoomMember>> {
        self.store.set_members(scope, room, expected, members, now)
    }

    fn set_exemptions(
        &self,
        scope: Scope,
        room: RoomId,
        expected: ExpectedRoom,
        exemptions: Vec<Exemption>,
        now: Timestamp,
    ) -> PortFuture<'_, Vec<Exemption>> {
        self.store.set_exemptions(scope, room, expected, exemptions, now)
    }

    fn extensions_of(&self, user: UserId) -> PortFuture<'_, Vec<ExtensionId>> {
        self.store.extensions_of(user)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn a_random_pin_is_six_digits_and_not_the_moderators() {
        let mut rng = StdRng::seed_from_u64(1);
        let first = DefaultPin::Random6.draw(&Pin::default(), &mut rng);
        assert_eq!(first.as_str().len(), 6);
        let mut rng = StdRng::seed_from_u64(1);
        assert_ne!(DefaultPin::Random6.draw(&first, &mut rng), first);
        assert!(DefaultPin::Empty.draw(&first, &mut rng).is_empty());
    }
}
