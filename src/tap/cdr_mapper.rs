//! Converts a captured call to its record: its organisation, its direction, and its media quality.
//!
//! Pure: the same packets give the same record, with the same id, however often they are captured.

use sha2::{Digest as _, Sha256};
use sidetone_call::quality::{WallClock, call as call_of_legs, figures as quality_figures, leg};
use sidetone_call::record::{Facts, Outcome, build};
use sidetone_capture::CallReport;
use sidetone_media::session::Report;
use sidetone_model::call::{Direction, HangupCause, Transport};
use sidetone_model::cdr::Cdr;
use sidetone_model::directory::{DirectorySnapshot, Extension, Organisation};
use sidetone_model::ids::{CallId, NodeId, OrganisationId};
use sidetone_model::media_quality::{Blame, CallQuality, LegQuality, LegSide, QualityState};
use sidetone_model::quality::{MediaVerdict, Quality};
use sidetone_model::time::Timestamp;
use sidetone_switch::routing::Directory;
use uuid::Builder;

use super::session::TappedCall;

/// The organisation of the records, and the directory for the numbers in them.
#[derive(Debug)]
pub struct CdrMapper {
    organisation: Organisation,
    directory: Directory,
    node: NodeId,
}

/// Why the organisation of the records cannot be determined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OwnerError {
    /// There is no organisation at all.
    #[error(
        "there is no organisation to own the records: write [[organisations]] with a name and a sip_domain into a file and run `sidetone apply FILE`"
    )]
    Nobody,
    /// There are several.
    #[error(
        "the owner of the records is not set: give --organisation NAME or set [tap] organisation; there are: {}", .0.join(", ")
    )]
    Several(Vec<String>),
    /// There is no organisation with that name.
    #[error("there is no organisation \"{name}\"; there are: {}", .known.join(", "))]
    Unknown {
        /// The given name.
        name: String,
        /// The existing names.
        known: Vec<String>,
    },
}

/// A record with its media quality.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The record.
    pub cdr: Cdr,
    /// The media of both legs.
    pub quality: CallQuality,
}

impl CdrMapper {
    /// A mapper for the organisation called `named`, or for the only one that exists.
    ///
    /// # Errors
    /// When the organisation cannot be determined.
    pub fn new(snapshot: DirectorySnapshot, named: Option<&str>, node: NodeId) -> Result<Self, OwnerError> {
        let known = || snapshot.organisations.iter().take(NAMES_MAX).map(|it| it.name.clone()).collect();
        let organisation = match (named, snapshot.organisations.as_slice()) {
            (_, []) => return Err(OwnerError::Nobody),
            (None, [only]) => only.clone(),
            (None, _) => return Err(OwnerError::Several(known())),
            (Some(name), all) => {
                let found = all.iter().find(|organisation| organisation.name == name);
                found.ok_or_else(|| OwnerError::Unknown { name: name.to_owned(), known: known() })?.clone()
            }
        };
        Ok(CdrMapper { organisation, directory: Directory::new(snapshot), node })
    }

    /// The name of the records' organisation.
    pub fn organisation_name(&self) -> &str {
        &self.organisation.name
    }

    /// The revision of the directory that the numbers are looked up in.
    pub fn revision(&self) -> i64 {
        self.directory.revision()
    }

    /// Replaces the directory by a newer reading.
    pub fn replace(&mut self, directory: Directory) {
        if let Some(organisation) = directory.organisation(self.organisation.id) {
            self.organisation = organisation.clone();
        }
        self.directory = directory;
    }

    /// Returns the record of a call.
    pub fn write(&self, tapped: &TappedCall) -> Entry {
        let call = &tapped.call;
        let id = call_id(self.organisation.id, call);
        let (caller, called) = (self.line(&call.from), self.line(&call.to));
        let on = caller.or(called);
        let facts = Facts {
            call: id,
            organisation: self.organisation.id,
            currency: self.organisation.currency,
            extension: on.map(|line| line.id),
            agent: on.and_then(|line| line.agent_id),
            team: on.and_then(|line| line.team_id),
            // No event for a missed call: the other switch's phones have already shown it.
            called: None,
            trunk: None,
            direction: direction(caller.is_some(), called.is_some()),
            transport: Transport::Sip,
            node: self.node,
            started_at: call.started_at,
            caller_number: Some(call.from.clone()).filter(|number| !number.is_empty()),
            destination_number: Some(call.to.clone()).filter(|number| !number.is_empty()),
            dialled_number: None,
            forwarded: None,
            tariff: None,
        };
        let since_start = |at: Timestamp| at.since(call.started_at);
        let ended_at = call.ended_at.unwrap_or_else(|| Timestamp::from_micros(call.leg.at.0));
        let refused = call.sip_status.filter(|status| *status >= 300);
        let outcome = Outcome {
            answered_after_us: call.answered_at.map(since_start),
            ended_after_us: Some(since_start(ended_at)),
            codec_a: call.codec_a.clone(),
            codec_b: call.far_leg.as_ref().and_then(|report| report.codec.clone()),
            hangup_cause: call.hangup_cause,
            bridge_cause: refused
                .filter(|_| call.hangup_cause != Some(HangupCause::OriginatorCancel))
                .map(HangupCause::from_sip_status),
            sip_status: call.sip_status,
            quality: figures(call),
            quality_b: call.callee().map(quality_figures),
            // A capture does not show which calls a transfer linked.
            ..Outcome::default()
        };
        let quality = self.quality(id, tapped, ended_at);
        let media = (!quality.legs.is_empty()).then(|| Box::new(quality.clone()));
        Entry { cdr: Cdr { media, ..build(&facts, outcome) }, quality }
    }

    fn line(&self, number: &str) -> Option<&Extension> {
        self.directory.line(self.organisation.id, number)
    }

    fn quality(&self, id: CallId, tapped: &TappedCall, ended_at: Timestamp) -> CallQuality {
        let call = &tapped.call;
        let side = |report: &Report, side, party: &str| {
            let party = Some(party.to_owned()).filter(|party| !party.is_empty());
            leg(report, side, party, WallClock::unix())
        };
        // A leg without a settled SDP had no media.
        let near = call.leg.verdict.is_some().then(|| side(&call.leg, LegSide::A, &call.from));
        let far = call.far_leg.as_deref().filter(|report| report.verdict.is_some());
        let far = far.map(|report| side(report, LegSide::B, &call.to));
        let mut legs: Vec<LegQuality> = near.into_iter().chain(far).collect();
        if tapped.missed > 0 {
            legs.iter_mut().for_each(|leg| own_up(leg, tapped.missed));
        }
        let mut quality = call_of_legs(id, QualityState::Final, ended_at, legs);
        if let Some(words) = &call.leg.words {
            quality.sentence.clone_from(words);
        }
        if call.ended_at.is_none() {
            quality.flags.push(CUT.to_owned());
        }
        quality
    }
}

/// Packets that the tap itself lost during the call are not attributed to the network.
fn own_up(leg: &mut LegQuality, missed: u64) {
    leg.flags.push(TAP_DROPS.to_owned());
    if matches!(leg.media_verdict, None | Some(MediaVerdict::Ok)) {
        return;
    }
    if leg.blame != Some(Blame::Remote) {
        leg.blame = None;
    }
    let packets = if missed == 1 { "packet" } else { "packets" };
    leg.sentence.push_str(&format!(
        " While the call was up, the machine that listened missed {missed} {packets} of all its traffic itself, so part of this may be its own."
    ));
}

/// The direction of a call, by which of its numbers belong to the organisation. A call with none of them, or with no
/// numbers declared at all, counts as internal to the captured switch, because there is no other information.
fn direction(caller_is_ours: bool, called_is_ours: bool) -> Direction {
    match (caller_is_ours, called_is_ours) {
        (true, false) => Direction::Outbound,
        (false, true) => Direction::Inbound,
        (true, true) | (false, false) => Direction::Internal,
    }
}

/// The same call has the same id wherever and however often it is captured: RFC 9562 §5.8, built from the SHA-256 of
/// the organisation, the Call-ID and the start, as in its appendix B.2.
fn call_id(organisation: OrganisationId, call: &CallReport) -> CallId {
    let mut hash = Sha256::new();
    hash.update(b"sidetone tap\0");
    hash.update(organisation.0.as_bytes());
    hash.update(call.started_at.as_micros().to_be_bytes());
    hash.update(call.call_id.as_bytes());
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(hash.finalize()).for_each(|(byte, hashed)| *byte = hashed);
    CallId(Builder::from_custom_bytes(bytes).into_uuid())
}

fn figures(call: &CallReport) -> Quality {
    Quality {
        jitter_ms: call.jitter_ms,
        loss_pct: call.loss_pct,
        mean_interval_ms: call.mean_interval_ms,
        mos: call.mos,
        quality_pct: call.quality_pct,
        verdict: call.media_verdict.and_then(MediaVerdict::from_name),
    }
}

/// The flag of a call during which the tap lost packets.
pub const TAP_DROPS: &str = "tap_drops";
/// The flag of a call whose end was not captured.
pub const CUT: &str = "cut";
/// Organisations listed in an error.
const NAMES_MAX: usize = 20;
