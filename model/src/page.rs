//! Pages of lists: a window of items and the total, by offset or by cursor.

use std::cmp::Ordering;

use serde::Serialize;

use crate::cursor::{Cursor, KeyValue};

/// Items of a list from `offset`, at most `limit` of `total`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Page<T> {
    /// The items of this window.
    pub items: Vec<T>,
    /// Total number of matching items; on a page by cursor, their number when its first page was read.
    pub total: u64,
    /// The window's size.
    pub limit: u32,
    /// Items before the window; on a page by cursor, items on the pages before.
    pub offset: u64,
    /// Only on a page by cursor: the `cursor` of the next page, or null on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, extensions(("x-nullable" = json!(true)))))]
    pub next_cursor: Option<Option<Cursor>>,
}

impl<T> Page<T> {
    /// A page by offset.
    pub fn by_offset(items: Vec<T>, total: u64, window: &Window) -> Self {
        Self { items, total, limit: window.limit, offset: window.offset, next_cursor: None }
    }

    /// A page by cursor; `total` is the number of matching items if it was counted for this page, `next` the key of the
    /// last item if there are more.
    pub fn by_cursor(
        items: Vec<T>,
        total: Option<u64>,
        limit: u32,
        cursor: &Cursor,
        next: Option<Vec<KeyValue>>,
    ) -> Self {
        let total = total.unwrap_or(cursor.total);
        let next = next.map(|key| cursor.after(total, items.len(), key));
        Self { items, total, limit, offset: cursor.given, next_cursor: Some(next) }
    }

    /// The window of a list in memory that is sorted by `key` in `order`; all keys are distinct.
    pub fn of_sorted(
        sorted: Vec<T>,
        window: &Window,
        order: Order,
        key: impl Fn(&T) -> Vec<KeyValue>,
    ) -> Self {
        let (total, limit) = (sorted.len() as u64, window.limit as usize);
        let Some(cursor) = &window.cursor else {
            let skipped = usize::try_from(window.offset).unwrap_or(usize::MAX);
            return Self::by_offset(sorted.into_iter().skip(skipped).take(limit).collect(), total, window);
        };
        let behind = match order {
            Order::Ascending => Ordering::Greater,
            Order::Descending => Ordering::Less,
        };
        let is_left = |item: &T| cursor.is_first() || compare(&key(item), &cursor.key) == behind;
        let mut left = sorted.into_iter().skip_while(|item| !is_left(item));
        let items: Vec<T> = left.by_ref().take(limit).collect();
        let next = left.next().and_then(|_| items.last()).map(&key);
        let counted = cursor.is_first().then_some(total);
        Self::by_cursor(items, counted, window.limit, cursor, next)
    }

    /// Returns the same window with every item converted.
    pub fn map<U>(self, turn: impl FnMut(T) -> U) -> Page<U> {
        let Page { items, total, limit, offset, next_cursor } = self;
        Page { items: items.into_iter().map(turn).collect(), total, limit, offset, next_cursor }
    }

    /// Returns the same window with borrowed items.
    pub fn as_ref(&self) -> Page<&T> {
        let Page { items, total, limit, offset, next_cursor } = self;
        let (total, limit, offset, next_cursor) = (*total, *limit, *offset, next_cursor.clone());
        Page { items: items.iter().collect(), total, limit, offset, next_cursor }
    }

    /// Returns the same window with these items.
    pub fn with<U>(self, items: Vec<U>) -> Page<U> {
        let Page { total, limit, offset, next_cursor, .. } = self;
        Page { items, total, limit, offset, next_cursor }
    }

    /// Returns the same window with every item converted.
    ///
    /// # Errors
    /// The first failure.
    pub fn try_map<U, E>(self, turn: impl FnMut(T) -> Result<U, E>) -> Result<Page<U>, E> {
        let Page { items, total, limit, offset, next_cursor } = self;
        let items = items.into_iter().map(turn).collect::<Result<_, E>>()?;
        Ok(Page { items, total, limit, offset, next_cursor })
    }
}

/// Compares sort values; values of unexpected kinds are equal, so that no item follows them.
fn compare(own: &[KeyValue], other: &[KeyValue]) -> Ordering {
    let pairs = own.iter().zip(other).map(|pair| match pair {
        (KeyValue::Integer(own), KeyValue::Integer(other)) => own.cmp(other),
        (KeyValue::Text(own), KeyValue::Text(other)) => own.cmp(other),
        _ => Ordering::Equal,
    });
    pairs.fold(Ordering::Equal, Ordering::then)
}

/// The requested window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// 1 to [`Window::LIMIT_MAX`].
    pub limit: u32,
    /// Items to skip; 0 with a cursor.
    pub offset: u64,
    /// The start of the window; `None` for a window by offset.
    pub cursor: Option<Cursor>,
}

impl Window {
    /// A window by offset.
    pub fn at(offset: u64, limit: u32) -> Self {
        Self { limit, offset, cursor: None }
    }

    /// The default size.
    pub const LIMIT_DEFAULT: u32 = 50;
    /// The largest size.
    pub const LIMIT_MAX: u32 = 500;
}

impl Default for Window {
    fn default() -> Self {
        Window { limit: Self::LIMIT_DEFAULT, offset: 0, cursor: None }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn page(items: &[i64], cursor: Option<Cursor>, order: Order) -> Page<i64> {
        let window = Window { limit: 2, offset: 0, cursor };
        Page::of_sorted(items.to_vec(), &window, order, |item| vec![KeyValue::Integer(*item)])
    }

    /// Pages by cursor neither skip nor repeat an item while other items before it are added and removed.
    #[test]
    fn pages_by_cursor_go_on_where_the_last_one_ended() {
        let first = page(&[9, 7, 5, 3], Some(Cursor::default()), Order::Descending);
        assert_eq!((first.items.as_slice(), first.total, first.offset), ([9, 7].as_slice(), 4, 0));
        let cursor = first.next_cursor.flatten();
        let second = page(&[11, 10, 9, 6, 5, 3], cursor, Order::Descending);
        assert_eq!((second.items.as_slice(), second.total, second.offset), ([6, 5].as_slice(), 4, 2));
        let last = page(&[11, 9, 3], second.next_cursor.flatten(), Order::Descending);
        assert_eq!((last.items.as_slice(), last.next_cursor), ([3].as_slice(), Some(None)));
        let rising = page(&[1, 2, 3], Some(Cursor::default()), Order::Ascending);
        let rest = page(&[1, 2, 3], rising.next_cursor.flatten(), Order::Ascending);
        assert_eq!((rest.items.as_slice(), rest.next_cursor), ([3].as_slice(), Some(None)));
        let by_offset = page(&[1, 2, 3], None, Order::Ascending);
        assert_eq!((by_offset.items.as_slice(), by_offset.next_cursor), ([1, 2].as_slice(), None));
    }
}
