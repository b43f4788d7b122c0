//! The most frequent of a run of values, in constant space.

/// Counts of the values seen most, in four slots; a new value takes the slot with the smallest count.
///
/// Exact while at most four values compete, which is more than the packet durations of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Modal {
    most: Slot,
    others: [Slot; 3],
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    value: i64,
    count: u64,
}

impl Modal {
    /// No values yet; `value` stands for the most frequent until one is counted.
    pub(crate) fn starting_with(value: i64) -> Self {
        Modal { most: Slot { value, count: 0 }, ..Modal::default() }
    }

    /// Counts one value; true when the most frequent value is now another.
    #[inline]
    pub(crate) fn add(&mut self, value: i64) -> bool {
        !self.add_most(value) && self.add_other(value)
    }

    /// Counts `value` if it is the most frequent one; false when it is another and was not counted.
    #[inline]
    pub(crate) fn add_most(&mut self, value: i64) -> bool {
        let is_most = value == self.most.value;
        if is_most {
            self.most.count += 1;
        }
        is_most
    }

    /// The most frequent value.
    pub(crate) fn most(&self) -> i64 {
        self.most.value
    }

    /// How often it was counted.
    pub(crate) fn most_count(&self) -> u64 {
        self.most.count
    }

    /// Counts a value that is not the most frequent one; true when it is now.
    #[cold]
    pub(crate) fn add_other(&mut self, value: i64) -> bool {
        let known = self.others.iter().position(|slot| slot.count > 0 && slot.value == value);
        let slot = match known {
            Some(index) => self.others.get_mut(index),
            None => self.others.iter_mut().min_by_key(|slot| slot.count),
        };
        let Some(slot) = slot else { return false };
        let count = if known.is_some() { slot.count + 1 } else { 1 };
        *slot = Slot { value, count };
        let overtakes = count > self.most.count;
        if overtakes {
            std::mem::swap(slot, &mut self.most);
        }
        overtakes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_value_is_found() {
        let cases: &[(&str, &[i64], i64, u64)] = &[
            ("nothing", &[], 160, 0),
            ("another once", &[240], 240, 1),
            ("the first to lead holds a draw", &[160, 240, 240, 160], 240, 2),
            ("many others once each", &[160, 160, 1, 2, 3, 4, 5, 6, 7, 160], 160, 3),
            ("zero is a value", &[0, 0, 1], 0, 2),
        ];
        for (name, values, most, count) in cases {
            let mut modal = Modal::starting_with(160);
            for value in *values {
                modal.add(*value);
            }
            assert_eq!((modal.most(), modal.most_count()), (*most, *count), "{name}");
        }
    }
}
