//! The thresholds of the verdict's rules; each is configurable by name.

use crate::stats::Hundredths;

/// Declares [`Thresholds`]: one numeric field per line, with its default.
macro_rules! thresholds {
    ($($(#[doc = $doc:literal])+ $name:ident: $default:expr,)+) => {
        /// The thresholds of the media verdict.
        ///
        /// Numbers have two decimal places; [`Thresholds::set`] sets them by name, for a configuration.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Thresholds {
            $($(#[doc = $doc])+ pub $name: Hundredths,)+
            /// Whether a source that differs from the advertised address is a fault although latching made
            /// the audio work.
            pub strict_address: bool,
        }

        impl Default for Thresholds {
            fn default() -> Self {
                Thresholds { $($name: Hundredths($default),)+ strict_address: false }
            }
        }

        impl Thresholds {
            /// The names of all numeric thresholds; `strict_address` is not one of them.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),+];

            /// The numeric threshold called `name`.
            pub fn get(&self, name: &str) -> Option<Hundredths> {
                match name {
                    $(stringify!($name) => Some(self.$name),)+
                    _ => None,
                }
            }

            fn slot(&mut self, name: &str) -> Option<&mut Hundredths> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)+
                    _ => None,
                }
            }
        }
    };
}

thresholds! {
    /// Fewer packets than this are not media but hole punching and keepalives.
    media_packets: 500,
    /// Media counts as missing only after this time, in milliseconds.
    media_grace_ms: 50_000,
    /// This many packets from a rejected source mean that audio came from another address.
    rejected_packets: 1_000,
    /// This many ICMP errors mean that the advertised port is closed.
    unreachable_errors: 300,
    /// Sending to an unreachable address for this time is a fault, in milliseconds.
    blackhole_ms: 300_000,
    /// Sending to an unreachable address for this share of the sending time is a fault, in percent.
    blackhole_share_pct: 5_000,
    /// Loss from which a leg is lossy, in percent.
    loss_pct: 200,
    /// Fewer lost packets are never a verdict.
    lost_packets: 300,
    /// Smoothed jitter that counts as high, in milliseconds.
    jitter_ms: 3_000,
    /// Share of samples with high jitter, in percent.
    jitter_share_pct: 500,
    /// Fewer samples with high jitter are never a verdict.
    jitter_packets: 1_000,
    /// Lateness beyond which a packet counts as late, in milliseconds.
    late_ms: 10_000,
    /// Share of late packets, in percent.
    late_share_pct: 200,
    /// Fewer late packets are never a verdict.
    late_packets: 500,
    /// When the peak jitter is below this, late packets are slow drift, which buffers follow; in
    /// milliseconds.
    late_jitter_ms: 1_500,
    /// A gap below this share of the packet duration is back to back, in whole percent.
    clump_gap_pct: 2_500,
    /// Share of back-to-back gaps from which packets count as clumped, in percent.
    clump_share_pct: 5_000,
    /// Coefficient of variation up to which clumps have equal spacing, in percent.
    clump_variation_pct: 3_500,
    /// Clumps closer together than this are harmless, in milliseconds.
    clump_spacing_ms: 5_000,
    /// Clumps closer together than this many packet durations are harmless.
    clump_spacing_ptimes: 250,
    /// With fewer gaps clumps are not judged.
    clump_gaps: 5_000,
    /// Deviation of the media rate from real time that counts as off pace, in percent; whole percent in
    /// windows.
    pace_pct: 1_000,
    /// Share of five-second windows off pace, in percent.
    pace_share_pct: 8_000,
    /// Drift below this is never a verdict, in milliseconds.
    pace_drift_ms: 30_000,
    /// Difference of packet durations that counts as a mismatch, in milliseconds.
    ptime_ms: 500,
    /// Share of packets that must have the same duration, in percent.
    ptime_share_pct: 8_000,
    /// With fewer contiguous pairs the duration is not judged.
    ptime_pairs: 5_000,
    /// Quality below which audio counts as degraded, in percent.
    quality_pct: 9_500,
    /// With fewer received packets the quality is not judged.
    quality_packets: 10_000,
    /// Silence at the end from which the audio counts as stopped, in milliseconds.
    tail_ms: 500_000,
    /// The same as a share of the time in which audio was expected, in percent.
    tail_share_pct: 1_000,
}

impl Thresholds {
    /// Sets the threshold called `name`; `strict_address` takes 0 or 1.
    ///
    /// # Errors
    /// When no threshold has this name, or when the value is negative, above ten million or not a number.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), ThresholdError> {
        if !(0.0..=VALUE_MAX).contains(&value) {
            return Err(ThresholdError::Value);
        }
        if name == "strict_address" {
            self.strict_address = value != 0.0;
            return Ok(());
        }
        let slot = self.slot(name).ok_or(ThresholdError::Name)?;
        #[allow(clippy::cast_possible_truncation, reason = "bounded by VALUE_MAX")]
        let hundredths = (value * 100.0).round() as i64;
        *slot = Hundredths(hundredths);
        Ok(())
    }
}

/// Why a threshold could not be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThresholdError {
    /// No threshold has this name.
    #[error("set a verdict threshold: no threshold has this name")]
    Name,
    /// The value is negative, too large or not a number.
    #[error("set a verdict threshold: the value must be between 0 and 10,000,000")]
    Value,
}

const VALUE_MAX: f64 = 10_000_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_can_be_set_and_read() {
        let mut thresholds = Thresholds::default();
        for name in Thresholds::NAMES {
            thresholds.set(name, 12.34).unwrap();
            assert_eq!(thresholds.get(name), Some(Hundredths(1234)), "{name}");
        }
        thresholds.set("strict_address", 1.0).unwrap();
        assert!(thresholds.strict_address);
    }

    #[test]
    fn wrong_names_and_values_are_refused() {
        let mut thresholds = Thresholds::default();
        assert_eq!(thresholds.set("loss", 1.0), Err(ThresholdError::Name));
        for value in [-1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert_eq!(thresholds.set("loss_pct", value), Err(ThresholdError::Value));
        }
        assert_eq!(thresholds, Thresholds::default());
    }
}
