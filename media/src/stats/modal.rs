//! Finds the most frequent of many values in constant space.

/// Counts of the values other than the most frequent one; almost no packet touches them.
///
/// The caller holds the most frequent value, the leader. Its count is the number of all values minus `apart`,
/// the number of values that were not the leader. With three other values the result is exact while four
/// values compete, which is more than a call has packet durations; a new value replaces the least frequent of
/// the three.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Followers {
    slots: [Slot; 3],
    apart: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    value: i32,
    count: u32,
}

impl Followers {
    /// Starts counting after `total` values.
    pub(crate) fn begin(total: u32) -> Self {
        Followers { slots: Default::default(), apart: total }
    }

    /// How many of `total` values equal the leader.
    pub(crate) fn leader_count(&self, total: u32) -> u32 {
        total.wrapping_sub(self.apart)
    }

    /// Counts a value other than `leader`, the last of `total`; returns true when it becomes the leader.
    #[cold]
    pub(crate) fn add(&mut self, value: i64, leader: &mut i32, total: u32) -> bool {
        let value = narrow(value);
        self.apart = self.apart.wrapping_add(1);
        let leading = self.leader_count(total);
        let known = self.slots.iter().position(|slot| slot.count > 0 && slot.value == value);
        let slot = match known {
            Some(index) => self.slots.get_mut(index),
            None => self.slots.iter_mut().min_by_key(|slot| slot.count),
        };
        let Some(slot) = slot else { return false };
        let count = if known.is_some() { slot.count.saturating_add(1) } else { 1 };
        *slot = Slot { value, count };
        let overtakes = count > leading;
        if overtakes {
            *slot = Slot { value: *leader, count: leading };
            *leader = value;
            self.apart = total.wrapping_sub(count);
        }
        overtakes
    }
}

/// A value in its stored form.
pub(crate) fn narrow(value: i64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_value_is_found() {
        let cases: &[(&str, &[i64], i32, u32)] = &[
            ("nothing", &[], 160, 0),
            ("another once", &[240], 240, 1),
            ("the first to lead holds a draw", &[160, 240, 240, 160], 240, 2),
            ("many others once each", &[160, 160, 1, 2, 3, 4, 5, 6, 7, 160], 160, 3),
            ("zero is a value", &[0, 0, 1], 0, 2),
        ];
        for (name, values, most, count) in cases {
            let (mut leader, mut total) = (160, 7);
            let mut followers = Followers::begin(total);
            for value in *values {
                total += 1;
                if *value != i64::from(leader) {
                    followers.add(*value, &mut leader, total);
                }
            }
            assert_eq!((leader, followers.leader_count(total)), (*most, *count), "{name}");
        }
    }
}
