//! What a reader of a list of standing things asks for: keys, users, teams, agents.

use crate::ids::{OrganisationId, TeamId};
use crate::page::{Order, Window};

/// Which part of a list, of which things; every filter that is given must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// One organisation of those in scope.
    pub organisation_id: Option<OrganisationId>,
    /// Those of one team; of things that belong to none, nothing.
    pub team_id: Option<TeamId>,
    /// Part of the name or another searchable text; in any case, every character literal.
    pub q: Option<String>,
    /// Sorted by what; the primary key always follows, so that pages are disjoint.
    pub sort: ListingSort,
    /// Which way.
    pub order: Order,
    /// Which part.
    pub window: Window,
}

/// What a list of standing things is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListingSort {
    /// When it was made.
    CreatedAt,
    /// Its name, or whatever tells it apart for people.
    #[default]
    Name,
}

impl Default for Listing {
    fn default() -> Self {
        Self {
            organisation_id: None,
            team_id: None,
            q: None,
            sort: ListingSort::default(),
            order: Order::Ascending,
            window: Window::default(),
        }
    }
}
