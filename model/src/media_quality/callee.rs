//! A summary of the called party's leg, beside the caller's in the quality of a call.

use serde::{Deserialize, Serialize};

use crate::media_quality::Blame;
use crate::quality::{Hundredths, MediaVerdict, Quality};

/// A summary of the called party's leg: the verdict, the party responsible, and the figures of a record.
///
/// Figures that cannot be judged are absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CalleeQuality {
    /// The judgement on the leg.
    pub media_verdict: MediaVerdict,
    /// The condition of the rule that held; absent when it has no name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The party responsible; absent when nothing is wrong or no party can be named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blame: Option<Blame>,
    /// The verdict as a sentence.
    pub sentence: String,
    /// Percent of inbound packets that never arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_pct: Option<Hundredths>,
    /// Peak inbound jitter, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ms: Option<Hundredths>,
    /// Mean gap between arriving packets, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_interval_ms: Option<Hundredths>,
    /// Received packets minus flaws, as a share of received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality_pct: Option<Hundredths>,
    /// Mean opinion score, derived only from `quality_pct`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mos: Option<Hundredths>,
}

impl CalleeQuality {
    /// Builds the summary if only the record's figures were stored.
    pub(super) fn of_record(figures: Quality) -> Option<Self> {
        CalleeQuality::judged(figures, None, None, FIGURES_ALONE)
    }

    /// Builds the summary from a leg's figures and verdict details; `None` if the leg of the called party was
    /// not judged.
    pub(super) fn judged(
        figures: Quality,
        reason: Option<&str>,
        blame: Option<Blame>,
        sentence: &str,
    ) -> Option<Self> {
        let Quality { jitter_ms, loss_pct, mean_interval_ms, mos, quality_pct, verdict } =
            figures.of_callee()?;
        Some(CalleeQuality {
            media_verdict: verdict?,
            reason: reason.map(str::to_owned),
            blame,
            sentence: sentence.to_owned(),
            loss_pct,
            jitter_ms,
            mean_interval_ms,
            quality_pct,
            mos,
        })
    }
}

/// The sentence if nothing else was stored.
pub(super) const FIGURES_ALONE: &str = "Nothing but the record's own figures was kept of this call's media.";
