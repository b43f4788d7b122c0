//! The figures of legs as JSON, under the names that heplify-server reads from reports of RTP agents.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use sidetone_model::ids::CallId;
use sidetone_model::media_quality::{CallQuality, LegQuality, LiveQuality, QualityState};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use crate::hep::packet::{Kind, Packet};
use crate::hep::sender::HepSender;

/// The calls that are up, with the Call-ID of the first leg.
pub type LiveCallIds = Arc<Mutex<HashMap<CallId, String>>>;

/// Reports the legs of live calls.
pub struct LiveFigures {
    /// The sender of the reports.
    pub hep: HepSender,
    /// The calls that are up.
    pub calls: LiveCallIds,
    /// The figures of the switch.
    pub quality: Arc<dyn LiveQuality>,
}

impl LiveFigures {
    /// Reports every ten seconds until `stopped` turns true.
    pub async fn run(&self, mut stopped: watch::Receiver<bool>) {
        let mut tick = tokio::time::interval(REPORT_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tick.tick().await;
        loop {
            tokio::select! {
                _ = stopped.wait_for(|stopped| *stopped) => return,
                _ = tick.tick() => {}
            }
            let calls: Vec<(CallId, String)> =
                self.calls.lock().iter().take(CALLS_MAX).map(|(call, id)| (*call, id.clone())).collect();
            for (call, call_id) in calls {
                if *stopped.borrow() {
                    return;
                }
                // If the switch is busy, it is not queried again in this round.
                match self.quality.quality(call).await {
                    Ok(Some(live)) => report(&self.hep, &call_id, &live.quality),
                    Ok(None) => drop(self.calls.lock().remove(&call)),
                    Err(_) => break,
                }
            }
        }
    }
}

/// Sends the figures of every leg of a call.
pub fn report(hep: &HepSender, call_id: &str, quality: &CallQuality) {
    let kind = if quality.state == QualityState::Final { Kind::FullReport } else { Kind::ShortReport };
    for leg in &quality.legs {
        let address = |text: &Option<String>| text.as_ref().and_then(|text| text.parse::<SocketAddr>().ok());
        let source = address(&leg.addresses.source).or(address(&leg.addresses.advertised));
        let own = address(&leg.addresses.own_advertised);
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let payload = json_of(call_id, quality, leg).to_string();
        hep.send(&Packet {
            kind,
            at: quality.at,
            source: source.unwrap_or(nowhere),
            destination: own.unwrap_or(nowhere),
            is_udp: true,
            correlation: call_id,
            payload: payload.as_bytes(),
        });
    }
}

fn json_of(call_id: &str, quality: &CallQuality, leg: &LegQuality) -> Value {
    let inbound = serde_json::to_value(&leg.inbound).unwrap_or_default();
    let outbound = serde_json::to_value(&leg.outbound).unwrap_or_default();
    let at = |of: &Value, path: &str| of.pointer(path).cloned().unwrap_or_default();
    let mut report = Map::new();
    let texts = [
        ("CORRELATION_ID", json!(call_id)),
        ("CALL_UUID", json!(quality.call_uuid)),
        ("LEG", json!(leg.leg)),
        ("TYPE", json!(if quality.state == QualityState::Final { "FINAL" } else { "PERIODIC" })),
        ("CODEC_NAME", json!(leg.codec)),
        ("VERDICT", json!(leg.media_verdict)),
    ];
    let figures = [
        ("SSRC", at(&inbound, "/ssrc")),
        ("TOTAL_PK", at(&inbound, "/packets")),
        ("EXPECTED_PK", at(&inbound, "/expected")),
        ("PACKET_LOSS", at(&inbound, "/lost")),
        ("LOSS_PCT", at(&inbound, "/loss_pct")),
        ("JITTER", at(&inbound, "/jitter_ms")),
        ("DELTA", at(&inbound, "/max_gap_ms")),
        ("SKEW", at(&inbound, "/clock_skew_ppm")),
        ("MOS", at(&inbound, "/mos")),
        ("SENT_PK", at(&outbound, "/packets")),
        ("ROUND_TRIP", at(&outbound, "/round_trip_ms/last")),
        ("FAR_LOSS_PCT", at(&outbound, "/far_end/loss_pct")),
        ("FAR_JITTER", at(&outbound, "/far_end/jitter_ms")),
    ];
    for (name, value) in texts.into_iter().chain(figures) {
        // Values that were not measured are absent, never zero.
        if !value.is_null() {
            report.insert(name.to_owned(), value);
        }
    }
    Value::Object(report)
}

/// How often the figures of a live leg are reported.
const REPORT_EVERY: Duration = Duration::from_secs(10);
/// Live calls whose figures are reported in a round; if there are more, any of them.
const CALLS_MAX: usize = 2_000;

#[cfg(test)]
mod tests {
    use sidetone_model::time::Timestamp;

    use super::*;

    #[test]
    fn what_was_not_measured_is_absent() {
        let leg = json!({"leg": "a", "media_verdict": "ok", "sentence": "x", "codec": "PCMU",
            "inbound": {"packets": 500, "lost": 3, "mos": 4.2, "jitter_ms": 1.5}});
        let legs = vec![serde_json::from_value::<LegQuality>(leg).unwrap()];
        let call = CallId(uuid::Uuid::from_u128(7));
        let quality = CallQuality::of_legs(call, QualityState::Live, Timestamp::from_micros(1), legs);
        let report = json_of("abc@d", &quality, &quality.legs[0]);
        let expected = json!({"CORRELATION_ID": "abc@d", "CALL_UUID": call, "LEG": "a", "TYPE": "PERIODIC",
            "CODEC_NAME": "PCMU", "VERDICT": "ok", "TOTAL_PK": 500, "PACKET_LOSS": 3, "JITTER": 1.5, "MOS": 4.2});
        assert_eq!(report, expected);
    }
}
