//! The sequence numbers of one stream that is only counted: finds the missing ones.

/// The newest number of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    newest: Option<u16>,
}

impl Numbers {
    /// Notes the number of an accepted packet, and returns by how much the count of missing packets changes.
    pub(super) fn note(&mut self, sequence: u16) -> i64 {
        let ahead = self.newest.map_or(1, |newest| sequence.wrapping_sub(newest).cast_signed());
        match ahead {
            1.. if ahead <= JUMP_MAX => {
                self.newest = Some(sequence);
                i64::from(ahead) - 1
            }
            0 => 0,
            // An overtaken packet was counted as missing before.
            _ if -JUMP_MAX < ahead && ahead < 0 => -1,
            // The sender restarted its numbers.
            _ => {
                self.newest = Some(sequence);
                0
            }
        }
    }
}

/// Numbers further apart than this belong to another stream of the sender (RFC 3550 A.1 has the same limit); a minute
/// of a fax.
const JUMP_MAX: i16 = 3_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_numbers_are_counted_once() {
        let table: [(&str, &[u16], i64); 6] = [
            ("in order", &[0, 1, 2, 3], 0),
            ("two missing", &[0, 3, 4], 2),
            ("overtaken", &[0, 2, 1, 3], 0),
            ("repeated", &[0, 1, 1, 1, 2], 0),
            ("over the end of the numbers", &[65_534, 65_535, 1], 1),
            ("numbers that start anew", &[40_000, 40_001, 0, 1], 0),
        ];
        for (name, sequences, missing) in table {
            let mut numbers = Numbers::default();
            assert_eq!(
                sequences.iter().map(|sequence| numbers.note(*sequence)).sum::<i64>(),
                missing,
                "{name}"
            );
        }
    }
}
