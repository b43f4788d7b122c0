//! The RTCP figures of a leg or a stream, in the API's structure; a part of [`crate::quality`].

use sidetone_media::rtcp::{self, RtcpView};
use sidetone_model::media_quality::{FarEnd, InboundMedia, RoundTrip, VoipMetrics};
use sidetone_model::quality::Hundredths;

/// Adds the party's own counts of sent packets, from its sender reports, to the figures of the received stream.
pub fn inbound(view: &RtcpView, media: InboundMedia) -> InboundMedia {
    let sent = view.sent_by_party;
    InboundMedia {
        sr_packets: sent.map(|sent| sent.packets),
        sr_missing: sent.map(|sent| sent.missing),
        sr_missing_head: sent.and_then(|sent| sent.head_missing),
        sr_missing_tail: sent.map(|sent| sent.tail_missing),
        goodbye: (view.datagrams > 0).then_some(view.goodbye),
        ..media
    }
}

/// The round-trip time to the party.
pub fn round_trip(view: &RtcpView) -> Option<RoundTrip> {
    view.round_trip.map(|trip| RoundTrip {
        last: Some(decimal(trip.last_ms)),
        min: Some(decimal(trip.min_ms)),
        max: Some(decimal(trip.max_ms)),
        mean: Some(decimal(trip.mean_ms)),
    })
}

/// The party's reports on the stream that it receives.
pub fn far_end(view: &RtcpView) -> Option<FarEnd> {
    view.far_end.as_ref().map(|far_end| FarEnd {
        reports: Some(far_end.reports),
        lost: far_end.lost,
        loss_pct: far_end.loss_pct.map(decimal),
        fraction_lost_worst_pct: far_end.fraction_lost_worst_pct.map(decimal),
        jitter_ms: far_end.jitter_ms.map(decimal),
        jitter_max_ms: far_end.jitter_max_ms.map(decimal),
        highest_sequence_moves: (far_end.reports > 0).then_some(far_end.highest_sequence_moves),
        unheard: (far_end.reports > 0).then_some(far_end.unheard),
        voip: far_end.voip.as_ref().map(voip),
        summary_lost: far_end.summary.and_then(|summary| summary.lost),
        summary_duplicates: far_end.summary.and_then(|summary| summary.duplicates),
    })
}

fn voip(metrics: &rtcp::VoipMetrics) -> VoipMetrics {
    VoipMetrics {
        loss_pct: Some(decimal(metrics.loss_pct)),
        discard_pct: Some(decimal(metrics.discard_pct)),
        burst_density_pct: Some(decimal(metrics.burst_density_pct)),
        gap_density_pct: Some(decimal(metrics.gap_density_pct)),
        burst_duration_ms: Some(metrics.burst_duration_ms),
        gap_duration_ms: Some(metrics.gap_duration_ms),
        round_trip_ms: metrics.round_trip_ms,
        end_system_delay_ms: metrics.end_system_delay_ms,
        signal_level_dbm: metrics.signal_level_dbm,
        noise_level_dbm: metrics.noise_level_dbm,
        echo_return_loss_db: metrics.echo_return_loss_db,
        r_factor: metrics.r_factor,
        mos_lq: metrics.mos_lq.map(decimal),
        mos_cq: metrics.mos_cq.map(decimal),
        jitter_buffer_ms: Some(metrics.jitter_buffer_ms),
    }
}

/// The media core's decimal in the record's type.
fn decimal(number: sidetone_media::session::Hundredths) -> Hundredths {
    Hundredths(number.0)
}
