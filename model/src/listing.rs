//! A query of a list of managed resources: keys, users, teams, agents.

use crate::ids::{OrganisationId, TeamId};
use crate::page::{Order, Window};

/// The filter, order and window of a list; every given filter must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// One of the organisations in scope.
    pub organisation_id: Option<OrganisationId>,
    /// Resources of one team; never matches a resource without a team.
    pub team_id: Option<TeamId>,
    /// Part of the name or another searchable text; in any case, every character literal.
    pub q: Option<String>,
    /// The sort key; the primary key always follows, so that pages are disjoint.
    pub sort: ListingSort,
    /// The sort order.
    pub order: Order,
    /// The window.
    pub window: Window,
}

/// The sort key of a list of managed resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListingSort {
    /// When it was made.
    CreatedAt,
    /// Its name, or the text that identifies it to people.
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
