//! Verdicts on the legs of calls, counted by a common property: the time, the trunk, the extension, the network or
//! the User-Agent; and which groups are worse than the rest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::quality::MediaVerdict;

/// What the legs of a group have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum CountBy {
    /// The day of UTC on which the call started; both legs of each call.
    Day,
    /// The extension whose phone was the leg.
    Extension,
    /// The hour in which the call started; both legs of each call.
    Hour,
    /// The network of the leg's party.
    Network,
    /// The trunk that carried the leg.
    Trunk,
    /// The User-Agent of the leg's party.
    UserAgent,
}

/// The number of legs with each verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerdictCounts(BTreeMap<MediaVerdict, u64>);

/// The legs of one group: those of callers and those of called parties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerdictGroup {
    /// The start of the hour or day, the id of the trunk or extension, the network or the User-Agent.
    pub value: String,
    /// The callers' legs.
    pub caller: VerdictCounts,
    /// The called parties' legs.
    pub callee: VerdictCounts,
}

impl VerdictCounts {
    /// Adds `legs` with a verdict.
    pub fn add(&mut self, verdict: MediaVerdict, legs: u64) {
        *self.0.entry(verdict).or_default() += legs;
    }

    /// The legs whose audio was judged: all but those of unanswered calls.
    pub fn judged(&self) -> u64 {
        self.0.iter().filter(|(verdict, _)| **verdict != MediaVerdict::Unanswered).map(|(_, legs)| legs).sum()
    }

    /// The judged legs that were not `ok`.
    pub fn bad(&self) -> u64 {
        self.judged() - self.0.get(&MediaVerdict::Ok).copied().unwrap_or_default()
    }

    fn view(&self) -> BTreeMap<&'static str, u64> {
        self.0.iter().map(|(verdict, legs)| (verdict.as_str(), *legs)).collect()
    }
}

/// Judged and bad legs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    judged: u64,
    bad: u64,
}

impl VerdictGroup {
    /// A group without legs.
    pub fn new(value: String) -> Self {
        Self { value, caller: VerdictCounts::default(), callee: VerdictCounts::default() }
    }

    fn share(&self) -> Share {
        Share {
            judged: self.caller.judged() + self.callee.judged(),
            bad: self.caller.bad() + self.callee.bad(),
        }
    }
}

impl Share {
    fn pct(self) -> Option<f64> {
        (self.judged > 0).then(|| rounded(self.bad as f64 * 100.0 / self.judged as f64))
    }

    /// The number of standard errors by which the share of bad legs exceeds that of the rest: the two-proportion test
    /// with a pooled share and Yates' continuity correction. `None` if either group is too small for it.
    fn z(self, rest: Share) -> Option<f64> {
        if self.judged < JUDGED_MIN || self.bad < BAD_MIN || rest.judged < JUDGED_MIN {
            return None;
        }
        let (n, m) = (self.judged as f64, rest.judged as f64);
        let pooled = (self.bad + rest.bad) as f64 / (n + m);
        let deviation = (pooled * (1.0 - pooled) * (1.0 / n + 1.0 / m)).sqrt();
        let difference = self.bad as f64 / n - rest.bad as f64 / m - (1.0 / n + 1.0 / m) / 2.0;
        (deviation > 0.0).then(|| difference / deviation)
    }
}

/// The groups as the API writes them: times in order, all others the worst first. At most `limit` of them;
/// for times, the last ones.
pub fn view(by: CountBy, groups: Vec<VerdictGroup>, limit: usize) -> VerdictCountsView {
    let all = groups.iter().map(VerdictGroup::share).fold(Share::default(), |all, group| Share {
        judged: all.judged + group.judged,
        bad: all.bad + group.bad,
    });
    let total = groups.len() as u64;
    let is_time = matches!(by, CountBy::Hour | CountBy::Day);
    let mut groups: Vec<(f64, VerdictGroupView)> = groups
        .into_iter()
        .map(|group| {
            let share = group.share();
            let rest = Share { judged: all.judged - share.judged, bad: all.bad - share.bad };
            let z = share.z(rest).filter(|_| !is_time);
            let view = VerdictGroupView {
                judged: share.judged,
                bad: share.bad,
                bad_pct: share.pct(),
                rest_bad_pct: rest.pct().filter(|_| !is_time),
                worse: z.is_some_and(|z| z >= Z_MIN),
                caller: group.caller.view(),
                callee: group.callee.view(),
                value: group.value,
            };
            (z.unwrap_or(f64::NEG_INFINITY), view)
        })
        .collect();
    if is_time {
        groups.sort_by(|(_, one), (_, other)| one.value.cmp(&other.value));
        groups.drain(..groups.len().saturating_sub(limit));
    } else {
        groups.sort_by(|(z, one), (other_z, other)| {
            let by_number = || other.bad.cmp(&one.bad).then(other.judged.cmp(&one.judged));
            other_z.total_cmp(z).then_with(by_number).then_with(|| one.value.cmp(&other.value))
        });
        groups.truncate(limit);
    }
    VerdictCountsView {
        by,
        total,
        judged: all.judged,
        bad: all.bad,
        bad_pct: all.pct(),
        groups: groups.into_iter().map(|(_, group)| group).collect(),
    }
}

/// Two decimals, as every share of the API.
fn rounded(pct: f64) -> f64 {
    (pct * 100.0).round() / 100.0
}

/// Verdicts counted by group.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VerdictCountsView {
    /// What the legs of a group have in common.
    pub by: CountBy,
    /// The number of groups; more than are listed where `max_groups` cut them.
    pub total: u64,
    /// Judged legs of all groups.
    pub judged: u64,
    /// Those that were not `ok`.
    pub bad: u64,
    /// Their share, in per cent; null when none was judged.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>, extensions(("x-nullable" = json!(true)))))]
    pub bad_pct: Option<f64>,
    /// The groups: hours and days in their order, all others the worst first.
    pub groups: Vec<VerdictGroupView>,
}

/// The legs of one hour, day, trunk, extension, network or User-Agent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VerdictGroupView {
    /// The instant with which the hour or day begins (RFC 3339), the id of the trunk or extension, the network (such as
    /// `192.0.2.0/24`) or the User-Agent.
    pub value: String,
    /// Legs whose audio was judged; those of unanswered calls are not.
    pub judged: u64,
    /// Judged legs that were not `ok`.
    pub bad: u64,
    /// Their share, in per cent; null when none was judged.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>, extensions(("x-nullable" = json!(true)))))]
    pub bad_pct: Option<f64>,
    /// The share in all other groups, in per cent; null for hours and days, and when none was judged.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>, extensions(("x-nullable" = json!(true)))))]
    pub rest_bad_pct: Option<f64>,
    /// Whether the share is significantly above that of the other groups: by the two-proportion test at 3.3 standard
    /// errors (one chance in 2,000 for each group), with at least 20 judged legs on both sides and 5 bad ones.
    pub worse: bool,
    /// Callers' legs with each verdict.
    pub caller: BTreeMap<&'static str, u64>,
    /// Called parties' legs with each verdict.
    pub callee: BTreeMap<&'static str, u64>,
}

/// Shares of fewer judged legs are not compared: three bad calls of three are not significant.
const JUDGED_MIN: u64 = 20;
/// The usual minimum of the test, which assumes nearly normal counts.
const BAD_MIN: u64 = 5;
/// The z value with a one-sided chance of 0.0005 for a group that is like the rest.
const Z_MIN: f64 = 3.29;

#[cfg(test)]
mod tests {
    use super::*;

    fn group(value: &str, judged: u64, bad: u64) -> VerdictGroup {
        let mut group = VerdictGroup::new(value.to_owned());
        group.caller.add(MediaVerdict::Ok, judged - bad);
        group.callee.add(MediaVerdict::LossyInbound, bad);
        group.callee.add(MediaVerdict::Unanswered, 7);
        group
    }

    fn worse(groups: Vec<VerdictGroup>) -> Vec<String> {
        let view = view(CountBy::Trunk, groups, 100);
        view.groups.into_iter().filter(|group| group.worse).map(|group| group.value).collect()
    }

    /// 40 of 200 beside 60 of 600: z is 3.703 without the correction.
    #[test]
    fn the_test_is_that_of_two_proportions() {
        let z = Share { judged: 200, bad: 40 }.z(Share { judged: 600, bad: 60 }).unwrap();
        assert!((z - 3.580).abs() < 0.001, "{z}");
    }

    #[test]
    fn three_bad_calls_are_no_finding_and_thirty_are() {
        assert_eq!(worse(vec![group("a", 3, 3), group("b", 1_000, 20)]), [""; 0]);
        assert_eq!(worse(vec![group("a", 30, 4), group("b", 1_000, 20)]), [""; 0]);
        assert_eq!(worse(vec![group("a", 60, 30), group("b", 1_000, 20), group("c", 900, 17)]), ["a"]);
        // Without other groups there is no comparison; equal shares are not worse.
        assert_eq!(worse(vec![group("a", 60, 30)]), [""; 0]);
        assert_eq!(worse(vec![group("a", 60, 30), group("b", 60, 30)]), [""; 0]);
        assert_eq!(worse(vec![group("a", 60, 60), group("b", 60, 60)]), [""; 0], "no deviation");
    }

    #[test]
    fn the_worst_come_first_and_times_in_their_order() {
        let groups = || vec![group("b", 100, 50), group("a", 1_000, 20), group("c", 2, 2)];
        let names = |by, limit| {
            let view = view(by, groups(), limit);
            assert_eq!((view.total, view.judged, view.bad, view.bad_pct), (3, 1_102, 72, Some(6.53)));
            view.groups.into_iter().map(|group| group.value).collect::<Vec<_>>()
        };
        assert_eq!(names(CountBy::Trunk, 3), ["b", "a", "c"]);
        assert_eq!(names(CountBy::Trunk, 1), ["b"]);
        assert_eq!(names(CountBy::Hour, 2), ["b", "c"], "the last ones");
    }

    #[test]
    fn unanswered_legs_are_listed_and_not_judged() {
        let mut busy = VerdictGroup::new("x".to_owned());
        busy.callee.add(MediaVerdict::Unanswered, 7);
        let view = view(CountBy::Day, vec![busy], 1);
        assert_eq!((view.judged, view.bad, view.bad_pct), (0, 0, None));
        assert_eq!(view.groups[0].callee, BTreeMap::from([("unanswered", 7)]));
    }
}
