//! The most frequent of a run of values, in constant space.

/// The value counted most often, and how often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Modal {
    value: i32,
    count: u32,
}

/// The three values that come next; a new value takes the place of the least of them.
///
/// With the leader that is exact while four values compete, which is more than the packet durations of a
/// call. They are apart from the leader because almost no packet touches them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Followers([Modal; 3]);

impl Modal {
    /// Nothing counted yet; `value` stands for the most frequent.
    pub(crate) fn starting_with(value: i64) -> Self {
        Modal { value: narrow(value), count: 0 }
    }

    /// Counts `value` if it is the most frequent one; false when it is another and was not counted.
    #[inline]
    pub(crate) fn add(&mut self, value: i64) -> bool {
        let is_most = value == i64::from(self.value);
        if is_most {
            self.count = self.count.saturating_add(1);
        }
        is_most
    }

    /// Counts a value that is not the most frequent one; true when it is now.
    #[cold]
    pub(crate) fn add_other(&mut self, value: i64, followers: &mut Followers) -> bool {
        let value = narrow(value);
        let Followers(slots) = followers;
        let known = slots.iter().position(|slot| slot.count > 0 && slot.value == value);
        let slot = match known {
            Some(index) => slots.get_mut(index),
            None => slots.iter_mut().min_by_key(|slot| slot.count),
        };
        let Some(slot) = slot else { return false };
        let count = if known.is_some() { slot.count.saturating_add(1) } else { 1 };
        *slot = Modal { value, count };
        let overtakes = count > self.count;
        if overtakes {
            std::mem::swap(slot, self);
        }
        overtakes
    }

    /// The most frequent value.
    #[inline]
    pub(crate) fn value(self) -> i64 {
        i64::from(self.value)
    }

    /// How often it was counted.
    pub(crate) fn count(self) -> u32 {
        self.count
    }
}

fn narrow(value: i64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_value_is_found() {
        let cases: &[(&str, &[i64], i64, u32)] = &[
            ("nothing", &[], 160, 0),
            ("another once", &[240], 240, 1),
            ("the first to lead holds a draw", &[160, 240, 240, 160], 240, 2),
            ("many others once each", &[160, 160, 1, 2, 3, 4, 5, 6, 7, 160], 160, 3),
            ("zero is a value", &[0, 0, 1], 0, 2),
        ];
        for (name, values, most, count) in cases {
            let mut modal = Modal::starting_with(160);
            let mut followers = Followers::default();
            for value in *values {
                if !modal.add(*value) {
                    modal.add_other(*value, &mut followers);
                }
            }
            assert_eq!((modal.value(), modal.count()), (*most, *count), "{name}");
        }
    }
}
