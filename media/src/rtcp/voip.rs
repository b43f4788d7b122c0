//! The VoIP metrics block of our extended reports (RFC 3611 §4.7): the reception of the party's stream since its
//! beginning.

use super::view::{RoundTrip, VoipMetrics};
use crate::stats::{Figures, Hundredths};

impl VoipMetrics {
    /// The metrics of a stream with these figures.
    ///
    /// A relayed stream has no jitter buffer here. The discarded packets are those that a phone with a buffer of 200 ms
    /// would have discarded, and R is that of such a phone. MOS-LQ is the score of the stream alone, MOS-CQ that of
    /// the E-model for both model phones. Levels and echo are not measured.
    pub fn of(figures: &Figures, round_trip: Option<RoundTrip>) -> VoipMetrics {
        let expected = i128::from(figures.expected);
        let share = |count: u64| Hundredths::ratio(i128::from(count) * 100, expected).unwrap_or_default();
        let millis =
            |value: Option<Hundredths>| value.map_or(0, |value| value.as_f64().round().max(0.0) as u32);
        let bursts = figures.bursts.unwrap_or_default();
        let rating = figures.e_model.as_ref().map(|model| model.phones[1].rating);
        VoipMetrics {
            loss_pct: share(figures.lost),
            discard_pct: share(figures.late_200),
            burst_density_pct: bursts.burst_loss_pct.unwrap_or_default(),
            gap_density_pct: bursts.gap_loss_pct.unwrap_or_default(),
            burst_duration_ms: millis(bursts.burst_mean_ms),
            gap_duration_ms: millis(bursts.gap_mean_ms),
            round_trip_ms: round_trip.map(|round_trip| millis(Some(round_trip.last_ms))),
            end_system_delay_ms: None,
            signal_level_dbm: None,
            noise_level_dbm: None,
            echo_return_loss_db: None,
            gmin: GMIN,
            r_factor: rating.map(|rating| rating.as_f64().round().clamp(0.0, 100.0) as u8),
            external_r_factor: None,
            mos_lq: figures.mos,
            mos_cq: figures.mos_e_model,
            jitter_buffer_ms: BUFFER_MS,
            jitter_buffer_max_ms: BUFFER_MS,
            jitter_buffer_limit_ms: BUFFER_MS,
        }
    }

    /// The block's words after the SSRC.
    pub(super) fn words(&self) -> [u32; 7] {
        let share = |pct: Hundredths| (pct.as_f64() * 2.56).round().clamp(0.0, 255.0) as u8;
        let [loss, discard] = [share(self.loss_pct), share(self.discard_pct)];
        let [burst, gap] = [share(self.burst_density_pct), share(self.gap_density_pct)];
        let both = |high: u32, low: u32| high.min(0xffff) << 16 | low.min(0xffff);
        let mos = |mos: Option<Hundredths>| mos.map_or(UNKNOWN, |mos| (mos.as_f64() * 10.0).round() as u8);
        let level = |level: Option<i8>| level.map_or(UNKNOWN, |level| level as u8);
        [
            u32::from_be_bytes([loss, discard, burst, gap]),
            both(self.burst_duration_ms, self.gap_duration_ms),
            both(self.round_trip_ms.unwrap_or_default(), self.end_system_delay_ms.unwrap_or_default()),
            u32::from_be_bytes([
                level(self.signal_level_dbm),
                level(self.noise_level_dbm),
                self.echo_return_loss_db.unwrap_or(UNKNOWN),
                self.gmin,
            ]),
            u32::from_be_bytes([
                self.r_factor.unwrap_or(UNKNOWN),
                self.external_r_factor.unwrap_or(UNKNOWN),
                mos(self.mos_lq),
                mos(self.mos_cq),
            ]),
            // Receiver configuration: concealment unknown, no adaptation.
            both(0, self.jitter_buffer_ms),
            both(self.jitter_buffer_max_ms, self.jitter_buffer_limit_ms),
        ]
    }
}

/// Received packets in a row that end a burst (§4.7.2), as in our figures.
const GMIN: u8 = 16;
/// The buffer of the phone that the metrics assume.
const BUFFER_MS: u32 = 200;
/// The code for a value that was not measured (§4.7.4, §4.7.5).
const UNKNOWN: u8 = 127;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Bursts;

    #[test]
    fn figures_become_the_fields_of_the_block() {
        let figures = Figures {
            expected: 1_000,
            lost: 100,
            late_200: 50,
            mos: Some(Hundredths(312)),
            mos_e_model: Some(Hundredths(254)),
            bursts: Some(Bursts {
                burst_loss_pct: Some(Hundredths(2_500)),
                gap_loss_pct: Some(Hundredths(100)),
                burst_mean_ms: Some(Hundredths(12_040)),
                gap_mean_ms: Some(Hundredths(7_000_000)),
                ..Bursts::default()
            }),
            ..Figures::default()
        };
        let words = VoipMetrics::of(&figures, None).words();
        assert_eq!(words[0].to_be_bytes(), [26, 13, 64, 3]);
        assert_eq!(words[1].to_be_bytes(), [0, 120, 0xff, 0xff], "at most 16 bits");
        assert_eq!(words[2], 0, "no round trip was measured");
        assert_eq!(words[3].to_be_bytes(), [127, 127, 127, 16]);
        assert_eq!(words[4].to_be_bytes(), [127, 127, 31, 25], "no codec of the E-model");
        assert_eq!((words[5], words[6]), (200, 200 << 16 | 200));
        assert_eq!(VoipMetrics::of(&Figures::default(), None).loss_pct, Hundredths(0));
    }
}
