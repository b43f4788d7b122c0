//! Call records and a throw-away directory for tests.
#![allow(clippy::unwrap_used, dead_code, unreachable_pub, reason = "benches and other crates use a part")]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use sidetone_model::call::{BillingMode, Direction, HangupCause, Transport};
use sidetone_model::cdr::Cdr;
use sidetone_model::ids::{CallId, NodeId, OrganisationId};
use sidetone_model::money::Amount;
use sidetone_model::quality::{Hundredths, MediaVerdict, Quality};
use sidetone_model::time::Timestamp;
use uuid::Uuid;

/// 2026-01-01T00:00:00Z in microseconds.
pub const EPOCH_US: i64 = 1_767_225_600_000_000;

/// The instant `seconds` after the tests' epoch, plus some microseconds, which must be preserved.
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(EPOCH_US + seconds * 1_000_000 + 123_456)
}

/// An organisation's id.
pub fn organisation(number: u128) -> OrganisationId {
    OrganisationId(Uuid::from_u128(0xACE0_0000 + number))
}

/// Call `number`, answered at second 2 and ended at second 62.
pub fn ended(number: u128) -> Cdr {
    Cdr {
        ended_at: Some(at(62)),
        billsec: 60,
        hangup_cause: Some(HangupCause::NormalClearing),
        quality: Quality {
            jitter_ms: Some(Hundredths(110)),
            loss_pct: Some(Hundredths(0)),
            mean_interval_ms: Some(Hundredths(2001)),
            mos: Some(Hundredths(450)),
            quality_pct: Some(Hundredths(10_000)),
            verdict: Some(MediaVerdict::Ok),
        },
        ..answered(number)
    }
}

/// Call `number` as it stands when it is answered at second 2.
pub fn answered(number: u128) -> Cdr {
    Cdr {
        call_uuid: CallId(Uuid::from_u128(0xCA11_0000 + number)),
        organisation_id: organisation(1),
        extension_id: None,
        trunk_id: None,
        direction: Direction::Internal,
        transport: Transport::Sip,
        started_at: at(0),
        answered_at: Some(at(2)),
        ended_at: None,
        billsec: 0,
        billing_mode: BillingMode::Free,
        codec_a: Some("PCMU".to_owned()),
        codec_b: Some("PCMU".to_owned()),
        caller_number: Some("1001".to_owned()),
        destination_number: Some("1002".to_owned()),
        dialled_number: None,
        agent_id: None,
        team_id: None,
        campaign_id: None,
        contact_id: None,
        node_id: Some(NodeId(Uuid::from_u128(0x0DE))),
        hangup_cause: None,
        bridge_cause: None,
        sip_status: Some(200),
        ended_by: None,
        fax: false,
        transferred_from: None,
        transferred_to: None,
        forwarded_by: None,
        forward_reason: None,
        forwarded_to: None,
        sell_amount: Amount::ZERO,
        cost_amount: Amount::ZERO,
        currency: "EUR".parse().ok(),
        called: None,
        ai_tokens: None,
        reference: None,
        billing: sidetone_model::rating::Billing::default(),
        quality: Quality::default(),
        media_b: None,
        device_a: Default::default(),
        device_b: Default::default(),
        media: None,
    }
}

/// A directory that is removed when the value is dropped.
pub struct TempDir(PathBuf);

impl TempDir {
    /// A new, empty directory.
    pub fn new() -> Self {
        let path = std::env::temp_dir().join(format!("sidetone-test-{}", Uuid::new_v4()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A copy of `from` as it is now: the state after a process that dies at this instant.
    pub fn snapshot(from: &Path) -> Self {
        let copy = Self::new();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_file() {
                std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
            }
        }
        copy
    }
}

/// A further action when a directory is removed.
pub static WHEN_DROPPED: OnceLock<fn(&Path)> = OnceLock::new();

impl Drop for TempDir {
    fn drop(&mut self) {
        if let Some(also) = WHEN_DROPPED.get() {
            also(&self.0);
        }
        // A directory left in the temporary folder is harmless.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
