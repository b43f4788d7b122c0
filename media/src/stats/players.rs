//! Two model phones with a playout buffer each, and the number of packets that each had to conceal.
//!
//! A phone plays every packet at a fixed time after the packet's timestamp. That time is the *anchor*, the
//! mean transit of its first packets, plus the buffer. A packet with a larger transit is too late. A packet
//! that arrives far too early does not fit into any buffer, so the audio before it is dropped. Most packets
//! change nothing; [`Kept`] defines which.

/// The two phones. Transit is counted as in [`Playout`](super::playout::Playout).
#[derive(Clone, Debug)]
pub(crate) struct Players {
    /// The phone with a buffer of 80 ms.
    pub(crate) short: Player,
    /// The phone with a buffer of 200 ms.
    pub(crate) long: Player,
}

/// One phone.
#[derive(Clone, Debug)]
pub(crate) struct Player {
    buffer_us: i64,
    anchor_us: i64,
    /// Packets averaged in the anchor.
    anchored: u8,
    /// Packets in a row that were too late.
    row: u32,
    /// Packets that were too late, and frames dropped because later ones arrived far too early.
    pub(crate) late: u64,
    /// Runs of such packets and frames.
    pub(crate) runs: u64,
}

/// The range of transits, ends included, with which a packet changes neither phone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) least_us: i32,
    pub(crate) most_us: i32,
}

impl Kept {
    /// Every packet changes a phone.
    pub(crate) const NONE: Kept = Kept { least_us: i32::MAX, most_us: i32::MIN };

    /// Whether every packet changes a phone.
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.least_us > self.most_us
    }

    /// Whether a packet with this transit changes neither phone.
    #[inline]
    pub(crate) fn holds(self, transit_us: i32) -> bool {
        (self.least_us <= transit_us) & (transit_us <= self.most_us)
    }
}

impl Players {
    /// Restarts both phones: a packet with transit 0 is the first of both anchors.
    pub(crate) fn rebase(&mut self) {
        self.short.rebase();
        self.long.rebase();
    }

    /// Plays the next packet, and returns the range of transits that change nothing from now on.
    #[cold]
    pub(crate) fn play(&mut self, transit_us: i32, ptime_us: i64, is_overtaken: bool) -> Kept {
        for player in [&mut self.short, &mut self.long] {
            player.play(transit_us.into(), ptime_us.max(1), is_overtaken);
        }
        self.kept()
    }

    /// Moves the origin of the transits to `origin_us`.
    pub(crate) fn shift(&mut self, origin_us: i64) -> Kept {
        for player in [&mut self.short, &mut self.long] {
            player.anchor_us = player.anchor_us.saturating_sub(origin_us);
        }
        self.kept()
    }

    fn kept(&self) -> Kept {
        let Players { short, long } = self;
        if !(short.is_settled() && long.is_settled()) {
            return Kept::NONE;
        }
        let least_us = short.anchor_us.max(long.anchor_us).saturating_sub(PATIENCE_US);
        let most_us = short.due_us().min(long.due_us());
        Kept { least_us: narrow(least_us), most_us: narrow(most_us) }
    }
}

impl Default for Players {
    fn default() -> Self {
        Players { short: Player::new(SHORT_BUFFER_MS), long: Player::new(LONG_BUFFER_MS) }
    }
}

impl Player {
    fn new(buffer_ms: u32) -> Self {
        Player { buffer_us: i64::from(buffer_ms) * 1000, anchor_us: 0, anchored: 1, row: 0, late: 0, runs: 0 }
    }

    fn rebase(&mut self) {
        self.anchor_us = 0;
        self.anchored = 1;
        self.row = 0;
    }

    /// Whether a packet in time changes nothing.
    fn is_settled(&self) -> bool {
        self.anchored == ANCHOR_PACKETS && self.row == 0
    }

    /// A larger transit is too late.
    fn due_us(&self) -> i64 {
        self.anchor_us.saturating_add(self.buffer_us)
    }

    fn play(&mut self, transit_us: i64, ptime_us: i64, is_overtaken: bool) {
        if self.anchored < ANCHOR_PACKETS {
            self.anchored += 1;
            let from_anchor_us = transit_us.saturating_sub(self.anchor_us);
            self.anchor_us = self.anchor_us.saturating_add(from_anchor_us.div_euclid(self.anchored.into()));
        }
        let late_us = transit_us.saturating_sub(self.due_us());
        if late_us > 0 {
            self.conceal(transit_us, late_us, ptime_us, is_overtaken);
            return;
        }
        self.row = 0;
        let early_us = self.anchor_us.saturating_sub(transit_us);
        if early_us > PATIENCE_US {
            self.late = self.late.saturating_add((early_us / ptime_us).unsigned_abs());
            self.runs = self.runs.saturating_add(1);
            self.anchor_us = transit_us;
        }
    }

    fn conceal(&mut self, transit_us: i64, late_us: i64, ptime_us: i64, is_overtaken: bool) {
        self.runs = self.runs.saturating_add(u64::from(self.row == 0));
        self.late = self.late.saturating_add(1);
        self.row = self.row.saturating_add(1);
        if !is_overtaken && late_us <= ptime_us / 10 {
            // The sender's clock is slow: the phone inserts one frame of silence and is in time again.
            self.anchor_us = self.anchor_us.saturating_add(ptime_us);
            self.row = 0;
        } else if i64::from(self.row).saturating_mul(ptime_us) >= PATIENCE_US {
            // The delay has increased permanently.
            self.anchor_us = transit_us;
            self.anchored = ANCHOR_PACKETS;
            self.row = 0;
        }
    }
}

fn narrow(us: i64) -> i32 {
    i32::try_from(us).unwrap_or(if us < 0 { i32::MIN } else { i32::MAX })
}

/// The buffers of the two phones in milliseconds.
pub(crate) const SHORT_BUFFER_MS: u32 = 80;
pub(crate) const LONG_BUFFER_MS: u32 = 200;
/// Packets averaged in the anchor.
const ANCHOR_PACKETS: u8 = 16;
/// A phone adapts to a different delay after this time.
const PATIENCE_US: i64 = 300_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Packets and runs that each phone concealed.
    type Concealed = [(u64, u64); 2];

    /// Both phones after packets with these transits in milliseconds.
    fn played(transits_ms: &[i32]) -> Concealed {
        let mut players = Players::default();
        players.rebase();
        for transit_ms in transits_ms {
            players.play(transit_ms * 1000, 20_000, false);
        }
        [&players.short, &players.long].map(|player| (player.late, player.runs))
    }

    #[test]
    fn each_phone_conceals_what_comes_too_late_for_its_buffer() {
        let after = |late: &[i32]| [&[0; 20][..], late, &[0; 5]].concat();
        let cases: Vec<(&str, Vec<i32>, Concealed)> = vec![
            ("in time", after(&[80, -100, 80]), [(0, 0), (0, 0)]),
            ("late for the short buffer", after(&[100]), [(1, 1), (0, 0)]),
            ("late for both", after(&[300, 280]), [(2, 1), (2, 1)]),
            ("two runs", after(&[100, 0, 100]), [(2, 2), (0, 0)]),
            ("a slow clock costs one frame", after(&[82]), [(1, 1), (0, 0)]),
            ("the delay has grown for good", after(&[150; 40]), [(15, 1), (0, 0)]),
            ("far too early, and those after it too late", after(&[-400]), [(25, 2), (25, 2)]),
            ("the anchor is a mean", vec![160; 15], [(0, 0), (0, 0)]),
        ];
        for (name, transits_ms, expected) in cases {
            assert_eq!(played(&transits_ms), expected, "{name}");
        }
    }

    proptest! {
        /// Transits within [`Kept`] leave both phones unchanged.
        #[test]
        fn kept_transits_change_nothing(
            transits_us in prop::collection::vec(-400_000..400_000_i32, 1..60),
            probes_us in prop::collection::vec(-900_000..900_000_i32, 1..60),
        ) {
            let mut players = Players::default();
            players.rebase();
            let mut kept = Kept::NONE;
            for transit_us in transits_us {
                kept = players.play(transit_us, 20_000, false);
            }
            for probe_us in probes_us.into_iter().filter(|probe_us| kept.holds(*probe_us)) {
                let before = format!("{players:?}");
                players.play(probe_us, 20_000, probe_us % 2 == 0);
                prop_assert_eq!(format!("{players:?}"), before);
            }
        }
    }
}
