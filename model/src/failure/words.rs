//! A failure in sentences: the event, the contents of the messages, the advice.

use crate::failure::status::{self, Request};
use crate::failure::{Failure, FailureKind, Reason, q850};

impl Failure {
    /// All sentences: the event, further contents of the messages, and the advice.
    pub fn sentence(&self, request: Request) -> String {
        let mut text = self.happened(request);
        let more = self.said().into_iter().chain(self.details.iter().cloned());
        for sentence in more.chain([self.advice(request).to_owned()]) {
            text.push(' ');
            text.push_str(&sentence);
        }
        text
    }

    /// The advice.
    pub fn advice(&self, request: Request) -> &'static str {
        let status = self.status.unwrap_or_default();
        match (self.kind, request) {
            (FailureKind::Cancelled, _) if self.reasons.iter().any(Reason::is_elsewhere) => {
                "Nothing has to be repaired: the call was answered elsewhere."
            }
            (FailureKind::Cancelled, _) if self.rang => "Nothing has to be repaired where a person hung up.",
            (FailureKind::Cancelled, _) => {
                "Nothing has to be repaired where a person hung up; if it never rings, look at where the request went."
            }
            (FailureKind::Challenged, Request::Call) if self.credentials == 0 => {
                "Set the user name and the password of the account in the caller's device, or let the machine that \
                 asked accept calls from its address."
            }
            (FailureKind::Challenged, Request::Registration) if self.credentials == 0 => {
                "Set the user name and the password of the account in the device."
            }
            (FailureKind::NoFinalResponse, _) => {
                "Let the capture run until the call is over; where it did, look at the machine that took the request."
            }
            (FailureKind::NoResponse, _) => {
                "Check that the address is right, that something listens there, and that no firewall blocks SIP in \
                 either direction."
            }
            (FailureKind::Challenged | FailureKind::Redirected | FailureKind::Refused, _) => {
                status::meaning(status, request).1
            }
        }
    }

    fn happened(&self, request: Request) -> String {
        let what = match request {
            Request::Call => "The call was not answered",
            Request::Registration => "The registration was not accepted",
        };
        let whose = match request {
            Request::Call => "the caller",
            Request::Registration => "the device",
        };
        let by = self.by();
        let code = self.code();
        match self.kind {
            FailureKind::Cancelled if self.rang => {
                format!("{what}: {whose} gave up after {}, while it rang.", self.lasted())
            }
            FailureKind::Cancelled => {
                format!("{what}: {whose} gave up after {}; it had not rung by then.", self.lasted())
            }
            FailureKind::Challenged if self.credentials == 0 => {
                format!("{what}: {by} asked for a password{code}, and {whose} sent none.")
            }
            FailureKind::Challenged => {
                let accepted = match self.credentials {
                    1 => format!("did not accept the one that {whose} sent"),
                    count => format!("accepted none of the {count} that {whose} sent"),
                };
                format!("{what}: {by} asked for a password {}{code}, and {accepted}.", times(self.challenges))
            }
            FailureKind::NoFinalResponse => {
                let state = if self.rang { "it rang" } else { "the request was taken" };
                format!("{what}: {state} at {by}, and no final response was seen{}.", self.within())
            }
            FailureKind::NoResponse if self.sent <= 1 => {
                format!("{what}: one request went to {by}, and no response to it was seen.")
            }
            FailureKind::NoResponse => {
                format!(
                    "{what}: {} requests went to {by}{}, and no response was seen.",
                    self.sent,
                    self.within()
                )
            }
            FailureKind::Redirected => {
                let meaning = status::meaning(self.status.unwrap_or_default(), request).0;
                format!("{what}: {by} redirected it{code}, which means that {meaning}.")
            }
            FailureKind::Refused => {
                let meaning = status::meaning(self.status.unwrap_or_default(), request).0;
                let rang = if self.rang { " after it had rung" } else { "" };
                let often =
                    if self.repeated > 1 { format!(" {}", times(self.repeated)) } else { String::new() };
                format!("{what}: {by} refused it{often}{code}{rang}, which means that {meaning}.")
            }
        }
    }

    /// The texts of Reason and Warning headers.
    fn said(&self) -> Vec<String> {
        let mut said: Vec<String> = self
            .reasons
            .iter()
            .map(|reason| format!("The Reason header says: {}.", reason.words()))
            .collect();
        said.extend(
            self.warnings.iter().map(|warning| format!("The Warning header says: {}.", ended(warning))),
        );
        said
    }

    fn by(&self) -> String {
        match (&self.refused_by, &self.server) {
            (Some(address), Some(server)) => format!("{address} ({server})"),
            (Some(address), None) => address.clone(),
            (None, _) => "the far end".to_owned(),
        }
    }

    /// ` (486 Busy Here)`, or nothing.
    fn code(&self) -> String {
        let Some(status) = self.status else { return String::new() };
        match self.phrase.as_deref().filter(|phrase| !phrase.is_empty()) {
            Some(phrase) => format!(" ({status} {phrase})"),
            None => format!(" ({status})"),
        }
    }

    /// ` within 31.5 seconds`, or nothing if the time is negligible.
    fn within(&self) -> String {
        if self.lasted_ms < 1_000 { String::new() } else { format!(" within {}", self.lasted()) }
    }

    fn lasted(&self) -> String {
        let tenths = (self.lasted_ms.max(0) + 50) / 100;
        match (tenths / 10, tenths % 10) {
            (1, 0) => "1 second".to_owned(),
            (whole, 0) => format!("{whole} seconds"),
            (whole, tenth) => format!("{whole}.{tenth} seconds"),
        }
    }
}

impl Reason {
    /// Whether another phone answered (RFC 3326 §2, Q.850).
    fn is_elsewhere(&self) -> bool {
        let is_sip = self.protocol.eq_ignore_ascii_case("SIP");
        self.cause == Some(if is_sip { 200 } else { 26 })
    }

    /// `Q.850 cause 17 (user busy), "No answer"`.
    fn words(&self) -> String {
        let mut text = self.protocol.to_ascii_uppercase();
        let mut known = None;
        if let Some(cause) = self.cause {
            text.push_str(&format!(" cause {cause}"));
            let is_q850 = self.protocol.eq_ignore_ascii_case("Q.850");
            let name = if is_q850 {
                q850::name(cause)
            } else {
                Some(status::phrase(cause)).filter(|it| !it.is_empty())
            };
            if let Some(name) = name {
                text.push_str(&format!(" ({name})"));
            }
            known = name;
        }
        // A text that only repeats the number is left out.
        let said =
            self.text.as_ref().filter(|said| !known.is_some_and(|name| said.eq_ignore_ascii_case(name)));
        if let Some(said) = said {
            text.push_str(&format!(", \"{said}\""));
        }
        text
    }
}

/// A text without a final full stop.
fn ended(text: &str) -> &str {
    text.trim_end_matches('.')
}

fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}
