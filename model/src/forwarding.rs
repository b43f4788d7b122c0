//! Forwarding of an extension's calls, and do not disturb.

use serde::Serialize;

use crate::call::words;
use crate::numbering::without_separators;

/// Where calls to an extension go instead of its phones. Each number is dialled as the extension itself would dial it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Forwarding {
    /// The number that every call goes to, without ringing a phone; null for none.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub always: Option<String>,
    /// The number for calls that a phone refuses with 486, 600 or 603, and for calls during do not disturb; null for
    /// none.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub busy: Option<String>,
    /// The number for calls that no phone answers in `no_answer_seconds`, or that a phone refuses with 480; null for
    /// none.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub no_answer: Option<String>,
    /// How long phones ring before `no_answer`, in seconds.
    pub no_answer_seconds: u16,
    /// The number for calls while no phone is registered or none can be reached; null for none.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub unregistered: Option<String>,
}

/// The changes of a [`Forwarding`]; `None` keeps the stored value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForwardingChange {
    /// Another number for every call, or none.
    pub always: Option<Option<String>>,
    /// Another number for calls to a busy phone, or none.
    pub busy: Option<Option<String>>,
    /// Another number for calls without an answer, or none.
    pub no_answer: Option<Option<String>>,
    /// Another ringing time in seconds.
    pub no_answer_seconds: Option<u16>,
    /// Another number for calls that reach no phone, or none.
    pub unregistered: Option<Option<String>>,
}

words! {
    /// Why an extension forwarded a call.
    ForwardReason {
        /// It forwards every call.
        Always = "always",
        /// Its phone was busy or refused the call.
        Busy = "busy",
        /// It does not want to be disturbed.
        DoNotDisturb = "do_not_disturb",
        /// No phone answered in time.
        NoAnswer = "no_answer",
        /// Its phone redirected the call (301 or 302).
        Redirected = "redirected",
        /// No phone was registered, or none could be reached.
        Unregistered = "unregistered",
    }
}

impl Default for Forwarding {
    /// No forwarding.
    fn default() -> Self {
        Forwarding {
            always: None,
            busy: None,
            no_answer: None,
            no_answer_seconds: NO_ANSWER_SECONDS_DEFAULT,
            unregistered: None,
        }
    }
}

impl Forwarding {
    /// Returns the number to which calls are forwarded for this reason; a redirecting phone supplies its own
    /// number.
    pub fn target(&self, reason: ForwardReason) -> Option<&str> {
        match reason {
            ForwardReason::Always => self.always.as_deref(),
            ForwardReason::Busy | ForwardReason::DoNotDisturb => self.busy.as_deref(),
            ForwardReason::NoAnswer => self.no_answer.as_deref(),
            ForwardReason::Redirected => None,
            ForwardReason::Unregistered => self.unregistered.as_deref(),
        }
    }

    /// Returns the numbers with the names of their fields.
    pub fn targets(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [
            ("always", &self.always),
            ("busy", &self.busy),
            ("no_answer", &self.no_answer),
            ("unregistered", &self.unregistered),
        ]
        .into_iter()
        .filter_map(|(field, target)| Some((field, target.as_deref()?)))
    }

    /// Returns the settings after a change.
    #[must_use]
    pub fn changed(self, change: ForwardingChange) -> Self {
        Forwarding {
            always: change.always.unwrap_or(self.always),
            busy: change.busy.unwrap_or(self.busy),
            no_answer: change.no_answer.unwrap_or(self.no_answer),
            no_answer_seconds: change.no_answer_seconds.unwrap_or(self.no_answer_seconds),
            unregistered: change.unregistered.unwrap_or(self.unregistered),
        }
    }
}

/// Checks a number to which calls are forwarded; returns it without separators.
///
/// # Errors
/// The rule that the text breaks.
pub fn forward_target(text: &str) -> Result<String, String> {
    let number = without_separators(text);
    let digits = number.strip_prefix('+').unwrap_or(&number);
    if (1..=TARGET_LEN_MAX).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(number);
    }
    Err(format!(
        "must be 1 to {TARGET_LEN_MAX} digits as the extension dials them, such as 1002 or +442071230000"
    ))
}

/// Ringing time before forwarding without an answer, in seconds, unless the extension sets another.
pub const NO_ANSWER_SECONDS_DEFAULT: u16 = 20;
/// Shortest ringing time in seconds: one ring.
pub const NO_ANSWER_SECONDS_MIN: u16 = 5;
/// Longest ringing time in seconds; the ringing time of calls may be shorter.
pub const NO_ANSWER_SECONDS_MAX: u16 = 120;
/// The most digits of a number: the international prefix and the 15 digits of E.164.
const TARGET_LEN_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_numbers_that_a_phone_can_dial() {
        for (text, expected) in [
            ("1002", Some("1002")),
            ("+44 (20) 7123-0000", Some("+442071230000")),
            ("00442071230000", Some("00442071230000")),
            ("", None),
            ("+", None),
            ("*72", None),
            ("bob@acme.test", None),
            ("100000000000000000000", None),
        ] {
            assert_eq!(forward_target(text).ok().as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_change_keeps_what_it_does_not_name() {
        let before = Forwarding { busy: Some("1002".into()), ..Forwarding::default() };
        let change = ForwardingChange {
            always: Some(Some("1003".into())),
            no_answer_seconds: Some(30),
            ..ForwardingChange::default()
        };
        let after = before.changed(change);
        assert_eq!(after.targets().collect::<Vec<_>>(), [("always", "1003"), ("busy", "1002")]);
        assert_eq!((after.no_answer_seconds, after.target(ForwardReason::DoNotDisturb)), (30, Some("1002")));
        let cleared = after.changed(ForwardingChange { always: Some(None), ..ForwardingChange::default() });
        assert_eq!(cleared.target(ForwardReason::Always), None);
    }
}
