//! The legs of one worker, by their position in the port range.

use super::leg::Leg;
use super::message::PortId;

/// Every leg that a worker holds.
pub(super) struct Legs {
    places: Vec<Option<Box<Leg>>>,
    /// The lowest port of the range; its leg has position 0.
    first_port: u16,
    open: usize,
}

impl Legs {
    /// An empty table for the pairs of ports from `first` to `last`.
    pub(super) fn new(first: u16, last: u16) -> Legs {
        let places = usize::from(last.saturating_sub(first)) / 2 + 1;
        Legs { places: std::iter::repeat_with(|| None).take(places).collect(), first_port: first, open: 0 }
    }

    /// Adds a leg.
    pub(super) fn insert(&mut self, leg: Box<Leg>) {
        if let Some(slot) = self.place(leg.id).and_then(|place| self.places.get_mut(place)) {
            debug_assert!(slot.is_none(), "a pair of ports was opened twice");
            *slot = Some(leg);
            self.open += 1;
        }
    }

    /// Removes a leg.
    pub(super) fn remove(&mut self, id: PortId) -> Option<Box<Leg>> {
        let place = self.place(id)?;
        let leg = self.places.get_mut(place)?.take_if(|leg| leg.id == id)?;
        self.open -= 1;
        Some(leg)
    }

    /// The leg with that id; `None` when its ports are closed or belong to a later leg.
    pub(super) fn get_mut(&mut self, id: PortId) -> Option<&mut Leg> {
        let place = self.place(id)?;
        self.places.get_mut(place)?.as_deref_mut().filter(|leg| leg.id == id)
    }

    /// The leg at a position.
    pub(super) fn at_mut(&mut self, place: usize) -> Option<&mut Leg> {
        self.places.get_mut(place)?.as_deref_mut()
    }

    /// All legs.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Leg> {
        self.places.iter().flatten().map(Box::as_ref)
    }

    /// Number of positions, with and without a leg.
    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    /// How many legs there are.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    fn place(&self, id: PortId) -> Option<usize> {
        id.port().checked_sub(self.first_port).map(|offset| usize::from(offset / 2))
    }
}
