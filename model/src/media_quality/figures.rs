//! The figures of a leg, by name; a figure that cannot be judged is left out.

use serde::{Deserialize, Serialize};

use crate::media_quality::QualityTimeline;
use crate::quality::Hundredths;
use crate::time::Timestamp;

/// Declares a set of figures, each of them optional.
macro_rules! figures {
    ($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        pub struct $name {
            $($(#[$fdoc])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$type>,)*
        }
    };
}

figures! {
    /// Packets that arrived from a party.
    InboundMedia {
        /// Unique packets of every kind.
        packets: u64,
        /// Packets sent, according to the sequence numbers.
        expected: u64,
        /// Packets that never arrived, without those that our own host dropped.
        lost: u64,
        /// The same in percent of the expected.
        loss_pct: Hundredths,
        /// Missing packets that our own receive queue dropped.
        local_drop: u64,
        /// Packets whose sequence number had already arrived.
        duplicates: u64,
        /// Packets that arrived after a later one; not lost.
        reordered: u64,
        /// Late packets from before the first packet of their segment; not counted elsewhere.
        before_segment: u64,
        /// Audio packets.
        audio_packets: u64,
        /// Comfort-noise packets.
        cn_packets: u64,
        /// Packets of pressed keys and of other kinds.
        event_packets: u64,
        /// Packets after the answer.
        after_answer: u64,
        /// Runs of continuous numbering.
        segments: u64,
        /// Jumps of the sequence number within one SSRC.
        sequence_jumps: u64,
        /// Changes of SSRC.
        ssrc_changes: u64,
        /// Packets of an SSRC that was never confirmed.
        stray_ssrc: u64,
        /// Discontinuities of the timestamp that nothing explains.
        ts_resets: u64,
        /// Changes of the accepted source after the first.
        source_changes: u64,
        /// Silences that the sender announced.
        pauses: u64,
        /// Announced silence, ms.
        silence_ms: i64,
        /// Gaps over a second within contiguous packets.
        interruptions: u64,
        /// Time within interruptions, ms.
        interruption_ms: i64,
        /// Flawed packets: lost, half of `late_80` and `late_200` together, unexplained timestamps.
        flaws: u64,
        /// Packets without flaw in percent of the received.
        quality_pct: Hundredths,
        /// Mean opinion score, derived only from `quality_pct`.
        mos: Hundredths,
        /// Peak of the smoothed interarrival jitter (RFC 3550 §6.4.1), ms.
        jitter_ms: Hundredths,
        /// Mean of the same, ms.
        jitter_mean_ms: Hundredths,
        /// Mean gap between arriving audio packets, ms.
        mean_interval_ms: Hundredths,
        /// Longest gap between two arrivals, ms.
        max_gap_ms: Hundredths,
        /// Packet duration by the timestamps, ms.
        ptime_ms: Hundredths,
        /// Packet duration by the payload of a codec of constant bit rate, ms.
        payload_ptime_ms: Hundredths,
        /// Runs of lost packets by their length: 1, 2, … 9, and 10 or more.
        loss_runs: Vec<u32>,
        /// Packets by lateness: under 10, 20, 40, 60, 100, 200, 500 ms, and beyond.
        lateness_packets: Vec<u32>,
        /// Missing packets in the longest run of them.
        longest_loss_packets: u64,
        /// The duration of that audio, ms.
        longest_loss_ms: i64,
        /// Missing packets that lay in bursts (RFC 3611 §4.7.2), in percent of all missing.
        burst_share: Hundredths,
        /// Packets that a phone with a buffer of 80 ms had to conceal because they came too late.
        late_80: u64,
        /// Packets that a phone with a buffer of 200 ms had to conceal because they came too late.
        late_200: u64,
        /// Media time in percent of the time in which it came: below 100 the sender is slow.
        pace_ratio: Hundredths,
        /// Parts per million by which the sender's clock is fast against ours.
        clock_skew_ppm: i64,
        /// Mean opinion score by the E-model (ITU-T G.107), for codecs with published values.
        mos_e_model: Hundredths,
        /// The lateness that half of the packets stayed under, ms.
        lateness_p50_ms: Hundredths,
        /// The lateness that 95 percent of the packets stayed under, ms.
        lateness_p95_ms: Hundredths,
        /// The lateness that 99 percent of the packets stayed under, ms.
        lateness_p99_ms: Hundredths,
        /// How late the latest packet was, ms.
        lateness_max_ms: Hundredths,
        /// Telephone events, each counted once however many packets carried it.
        dtmf_events: u64,
        /// Time after the answer in which the party should have sent, ms.
        receive_expected_ms: i64,
        /// From the answer to the first packet after it, ms.
        first_rtp_after_answer_ms: Hundredths,
        /// From the last packet to the end while audio was expected, ms.
        tail_silence_ms: i64,
        /// From the first packet of the source that was latched to the latching, ms.
        latch_delay_ms: Hundredths,
        /// When the first packet arrived.
        first_at: Timestamp,
        /// When the last packet arrived.
        last_at: Timestamp,
        /// The SSRC last confirmed, in hexadecimal.
        ssrc: String,
        /// The RTP clock of the audio, Hz.
        clock_rate: u32,
        /// The payload types received, ascending.
        payload_types: Vec<u8>,
        /// Datagrams on the RTP port, of every sort.
        datagrams: u64,
        /// RTP packets from sources that are not the party's.
        rejected_source: u64,
        /// RTP packets of payload types that were not negotiated.
        rejected_payload_type: u64,
        /// SRTP packets that could not be authenticated; absent when there were none.
        srtp_failed: u64,
        /// Datagrams that are neither valid RTP nor valid RTCP.
        malformed: u64,
        /// STUN, DTLS and other protocols.
        foreign: u64,
        /// RTP packets without payload.
        empty: u64,
        /// RTCP datagrams accepted.
        rtcp_packets: u64,
        /// RTCP datagrams refused.
        rtcp_rejected: u64,
        /// Packets sent according to the party's RTCP reports, over all its sources.
        sr_packets: u64,
        /// Of these, packets that never arrived, including those before the first and after the last received packet.
        sr_missing: u64,
        /// Lost packets before the first received packet; absent when they may have been sent before we could receive
        /// them.
        sr_missing_head: u64,
        /// Lost packets after the last received packet.
        sr_missing_tail: u64,
        /// The party's source sent an RTCP BYE.
        goodbye: bool,
        /// The worst ten seconds.
        worst_10s: WorstStretch,
        /// The measured audio level, if any packets were measured.
        audio: AudioEvidence,
        /// Second by second.
        timeline: QualityTimeline,
    }
}

figures! {
    /// Packets to a party, and what is known about their arrival.
    OutboundMedia {
        /// RTP packets sent to the party.
        packets: u64,
        /// Those sent after the answer.
        after_answer: u64,
        /// Time after the answer in which we should have sent, ms.
        send_expected_ms: i64,
        /// ICMP errors: no process listened at the destination.
        unreachable: u64,
        /// The round trip by RTCP, ms.
        round_trip_ms: RoundTrip,
        /// The party's RTCP reports about our packets.
        far_end: FarEnd,
    }
}

figures! {
    /// A round trip by RTCP (RFC 3550 §6.4.1), ms.
    RoundTrip {
        /// The last one.
        last: Hundredths,
        /// The shortest.
        min: Hundredths,
        /// The longest.
        max: Hundredths,
        /// The mean.
        mean: Hundredths,
    }
}

figures! {
    /// A party's RTCP reports about our packets.
    FarEnd {
        /// Reports of it.
        reports: u64,
        /// Packets that it reports lost.
        lost: i64,
        /// The same in percent of those we sent.
        loss_pct: Hundredths,
        /// The worst loss between two reports, in percent.
        fraction_lost_worst_pct: Hundredths,
        /// Its jitter, by its own clock, ms.
        jitter_ms: Hundredths,
        /// The highest reported jitter, ms.
        jitter_max_ms: Hundredths,
        /// Whether its reported highest sequence number rose while we sent; if not, no packets arrive there, whatever
        /// loss it reports.
        highest_sequence_moves: bool,
        /// Packets sent since that number last rose.
        unheard: u64,
        /// Its VoIP metrics (RFC 3611 §4.7).
        voip: VoipMetrics,
        /// Packets lost by its statistics summary (RFC 3611 §4.6).
        summary_lost: u32,
        /// Duplicates by the same.
        summary_duplicates: u32,
    }
}

figures! {
    /// A party's report on its jitter buffer and our packets (RFC 3611 §4.7).
    VoipMetrics {
        /// Packets lost, percent.
        loss_pct: Hundredths,
        /// Packets discarded as too late or too early, percent.
        discard_pct: Hundredths,
        /// Packets lost or discarded within bursts, percent.
        burst_density_pct: Hundredths,
        /// The same outside bursts, percent.
        gap_density_pct: Hundredths,
        /// Mean length of a burst, ms.
        burst_duration_ms: u32,
        /// Mean length of a gap between bursts, ms.
        gap_duration_ms: u32,
        /// Round trip between the RTP interfaces, ms.
        round_trip_ms: u32,
        /// Delay of the party's own buffers and codecs, ms.
        end_system_delay_ms: u32,
        /// Level of speech, dBm0.
        signal_level_dbm: i8,
        /// Level of silence, dBm0.
        noise_level_dbm: i8,
        /// Residual echo return loss, dB.
        echo_return_loss_db: u8,
        /// Transmission rating R (ITU-T G.107).
        r_factor: u8,
        /// Listening quality, 1.00 to 5.00.
        mos_lq: Hundredths,
        /// Conversational quality, 1.00 to 5.00.
        mos_cq: Hundredths,
        /// Nominal delay of its jitter buffer, ms.
        jitter_buffer_ms: u32,
    }
}

figures! {
    /// The audio level of a leg after the answer, measured on a few samples of every fourth G.711 packet.
    AudioEvidence {
        /// Packets that were measured.
        looked_at_packets: u64,
        /// The duration of the measured audio, ms.
        looked_at_ms: u64,
        /// Mean level, dBov; -127 is digital silence.
        level_dbov: Hundredths,
        /// Level of the loudest sample, dBov.
        peak_dbov: Hundredths,
        /// Silent packets in percent of the measured packets.
        silent_share_pct: Hundredths,
        /// Clipped packets in percent of those that are not silent.
        clipped_share_pct: Hundredths,
        /// The longest silence, ms.
        longest_silence_ms: u64,
    }
}

figures! {
    /// The worst stretch of a leg.
    WorstStretch {
        /// Where it begins, in seconds of the timeline.
        at_s: u32,
        /// Lost packets, percent.
        loss_pct: Hundredths,
        /// Peak jitter, ms.
        jitter_ms: Hundredths,
        /// Packets without flaw, percent.
        quality_pct: Hundredths,
    }
}
