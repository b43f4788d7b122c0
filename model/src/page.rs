//! Pages of lists: a window of items and the total.

use serde::Serialize;

/// Items of a list from `offset`, at most `limit` of `total`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Page<T> {
    /// The items of this window.
    pub items: Vec<T>,
    /// Total number of matching items.
    pub total: u64,
    /// The window's size.
    pub limit: u32,
    /// Items before the window.
    pub offset: u64,
}

impl<T> Page<T> {
    /// Returns the same window with every item converted.
    pub fn map<U>(self, turn: impl FnMut(T) -> U) -> Page<U> {
        let Page { items, total, limit, offset } = self;
        Page { items: items.into_iter().map(turn).collect(), total, limit, offset }
    }
}

/// The requested window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// 1 to [`Window::LIMIT_MAX`].
    pub limit: u32,
    /// Items to skip.
    pub offset: u64,
}

impl Window {
    /// The default size.
    pub const LIMIT_DEFAULT: u32 = 50;
    /// The largest size.
    pub const LIMIT_MAX: u32 = 500;
}

impl Default for Window {
    fn default() -> Self {
        Window { limit: Self::LIMIT_DEFAULT, offset: 0 }
    }
}

/// The direction of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

impl Order {
    /// The order of that name: `asc` or `desc`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "asc" => Some(Order::Ascending),
            "desc" => Some(Order::Descending),
            _ => None,
        }
    }
}
