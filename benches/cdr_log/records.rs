//! Records of many organisations, as a year of calls leaves them.

use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use sidetone_model::call::{BillingMode, Direction, HangupCause, Transport};
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::{
    AgentId, CallId, CampaignId, ExtensionId, NodeId, OrganisationId, TeamId, TrunkId,
};
use sidetone_model::money::Amount;
use sidetone_model::quality::{Hundredths, MediaVerdict, Quality};
use sidetone_model::time::Timestamp;
use uuid::Uuid;

/// 2026-01-01T00:00:00Z.
pub const YEAR_START_US: i64 = 1_767_225_600_000_000;
/// 365 days.
pub const YEAR_US: i64 = 365 * 86_400_000_000;

/// Makes records; the same seed makes the same ones.
pub struct Maker {
    rng: StdRng,
}

impl Maker {
    pub fn new(seed: u64) -> Self {
        Self { rng: StdRng::seed_from_u64(seed) }
    }

    /// One call of `organisation`, which has the index `number`, at `place` (0 to 1) within the year.
    pub fn record(&mut self, organisation: OrganisationId, number: usize, place: f64) -> Cdr {
        let rng = &mut self.rng;
        let direction = match rng.random_range(0..100) {
            0..45 => Direction::Outbound,
            45..80 => Direction::Inbound,
            _ => Direction::Internal,
        };
        let extension = rng.random_range(0..60);
        let customer = format!("+4477{:08}", rng.random_range(0..300_000) * 331);
        let own = format!("+442071{:06}", number * 20 + rng.random_range(0..20));
        let (caller, destination) = match direction {
            Direction::Inbound => (customer, own),
            Direction::Internal => (format!("1{extension:03}"), format!("1{:03}", rng.random_range(0..60))),
            Direction::Outbound => (own, customer),
        };
        let hangup_cause = match rng.random_range(0..100_000) {
            0 => HangupCause::Crash,
            1..100 => HangupCause::MediaTimeout,
            100..8_000 => HangupCause::UserBusy,
            8_000..20_000 => HangupCause::NoAnswer,
            20_000..27_000 => HangupCause::OriginatorCancel,
            _ => HangupCause::NormalClearing,
        };
        let answered = hangup_cause == HangupCause::NormalClearing;
        let started_us = YEAR_START_US + (place * YEAR_US as f64) as i64;
        // Most calls are short, a few are long.
        let billsec = if answered { 1 + (rng.random::<f64>().powi(3) * 3_600.0) as u32 } else { 0 };
        let outside = direction != Direction::Internal;
        let mut cdr = Cdr {
            call_uuid: CallId(uuid_v7(started_us, rng)),
            organisation_id: organisation,
            extension_id: Some(ExtensionId(part(number, 1, extension))),
            trunk_id: outside.then(|| TrunkId(part(0, 2, rng.random_range(0..4)))),
            direction,
            transport: if rng.random_ratio(1, 100) { Transport::Whatsapp } else { Transport::Sip },
            started_at: Timestamp::from_micros(started_us),
            answered_at: answered.then(|| Timestamp::from_micros(started_us + 4_000_000)),
            ended_at: Some(Timestamp::from_micros(started_us + 4_000_000 + i64::from(billsec) * 1_000_000)),
            billsec,
            billing_mode: if outside { BillingMode::Rated } else { BillingMode::Free },
            codec_a: Some("PCMA".to_owned()),
            codec_b: Some(if rng.random_ratio(1, 20) { "opus" } else { "PCMA" }.to_owned()),
            caller_number: Some(caller),
            destination_number: Some(destination),
            dialled_number: rng
                .random_ratio(1, 5)
                .then(|| format!("0{:09}", rng.random_range(0..1_000_000_000))),
            agent_id: rng.random_ratio(3, 4).then(|| AgentId(part(number, 3, rng.random_range(0..40)))),
            team_id: Some(TeamId(part(number, 4, extension % 6))),
            campaign_id: rng.random_ratio(1, 5).then(|| CampaignId(part(number, 5, rng.random_range(0..12)))),
            contact_id: None,
            node_id: Some(NodeId(part(0, 6, rng.random_range(0..3)))),
            hangup_cause: Some(hangup_cause),
            bridge_cause: None,
            sip_status: Some(200),
            ended_by: None,
            fax: false,
            transferred_from: None,
            transferred_to: None,
            forwarded_by: None,
            forward_reason: None,
            forwarded_to: None,
            sell_amount: Amount::from_scaled(i64::from(billsec) * 41_667),
            cost_amount: Amount::from_scaled(i64::from(billsec) * 20_000),
            currency: "EUR".parse().ok(),
            quality: Quality {
                jitter_ms: Some(Hundredths(rng.random_range(50..900))),
                loss_pct: Some(Hundredths(rng.random_range(0..60))),
                mean_interval_ms: Some(Hundredths(2_000)),
                mos: Some(Hundredths(440)),
                quality_pct: Some(Hundredths(9_900)),
                verdict: Some(MediaVerdict::Ok),
            },
            ..empty(organisation)
        };
        // About one in eighty-five called parties has bad audio; no further random draw, so the records stay the same.
        let is_bad = cdr.quality.jitter_ms < Some(Hundredths(60));
        let verdict = if is_bad { MediaVerdict::LossyInbound } else { MediaVerdict::Ok };
        cdr.media_b = answered.then_some(Quality { verdict: Some(verdict), ..cdr.quality });
        cdr
    }
}

/// The id of object `number` of one kind of an organisation.
pub fn part(organisation: usize, kind: u128, number: usize) -> Uuid {
    let mut bytes = Uuid::from_u128((organisation as u128) << 64 | kind << 32 | number as u128);
    // Spread over the whole value, as random ids are.
    let mixed = bytes.as_u128().wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
    bytes = uuid::Builder::from_random_bytes(mixed.to_be_bytes()).into_uuid();
    bytes
}

/// A UUIDv7, time first, as the switch makes them.
fn uuid_v7(at_us: i64, rng: &mut StdRng) -> Uuid {
    let mut random = [0; 10];
    rng.fill_bytes(&mut random);
    uuid::Builder::from_unix_timestamp_millis(at_us.unsigned_abs() / 1000, &random).into_uuid()
}

/// A record without any optional field. It is parsed as the journal parses it, so fields that a later version adds
/// need no mention here.
fn empty(organisation: OrganisationId) -> Cdr {
    let text = serde_json::json!({
        "call_uuid": Uuid::nil(), "organisation_id": organisation, "direction": "internal", "transport": "sip",
        "started_at": Timestamp::from_micros(0), "billsec": 0, "billing_mode": "free",
        "sell_amount": Amount::ZERO, "cost_amount": Amount::ZERO, "quality": Quality::default(),
    });
    serde_json::from_value(text).expect("every other field may be missing")
}
