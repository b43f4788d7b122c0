//! Response codes and their usual phrases (RFC 3261 §21).

use std::fmt;

/// The three-digit code of a response, 100 to 699.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StatusCode(u16);

#[expect(missing_docs, reason = "each constant is its phrase in RFC 3261 §21")]
impl StatusCode {
    pub const TRYING: Self = Self(100);
    pub const RINGING: Self = Self(180);
    pub const SESSION_PROGRESS: Self = Self(183);
    pub const OK: Self = Self(200);
    pub const ACCEPTED: Self = Self(202);
    pub const MOVED_TEMPORARILY: Self = Self(302);
    pub const BAD_REQUEST: Self = Self(400);
    pub const UNAUTHORIZED: Self = Self(401);
    pub const PAYMENT_REQUIRED: Self = Self(402);
    pub const FORBIDDEN: Self = Self(403);
    pub const NOT_FOUND: Self = Self(404);
    pub const METHOD_NOT_ALLOWED: Self = Self(405);
    pub const NOT_ACCEPTABLE: Self = Self(406);
    pub const PROXY_AUTHENTICATION_REQUIRED: Self = Self(407);
    pub const REQUEST_TIMEOUT: Self = Self(408);
    pub const ENTITY_TOO_LARGE: Self = Self(413);
    pub const UNSUPPORTED_MEDIA_TYPE: Self = Self(415);
    pub const UNSUPPORTED_URI_SCHEME: Self = Self(416);
    pub const BAD_EXTENSION: Self = Self(420);
    pub const SESSION_INTERVAL_TOO_SMALL: Self = Self(422);
    pub const INTERVAL_TOO_BRIEF: Self = Self(423);
    pub const BAD_INFO_PACKAGE: Self = Self(469);
    pub const TEMPORARILY_UNAVAILABLE: Self = Self(480);
    pub const NO_TRANSACTION: Self = Self(481);
    pub const LOOP_DETECTED: Self = Self(482);
    pub const TOO_MANY_HOPS: Self = Self(483);
    pub const ADDRESS_INCOMPLETE: Self = Self(484);
    pub const BUSY_HERE: Self = Self(486);
    pub const REQUEST_TERMINATED: Self = Self(487);
    pub const NOT_ACCEPTABLE_HERE: Self = Self(488);
    pub const BAD_EVENT: Self = Self(489);
    pub const REQUEST_PENDING: Self = Self(491);
    pub const SERVER_ERROR: Self = Self(500);
    pub const NOT_IMPLEMENTED: Self = Self(501);
    pub const SERVICE_UNAVAILABLE: Self = Self(503);
    pub const SERVER_TIMEOUT: Self = Self(504);
    pub const VERSION_NOT_SUPPORTED: Self = Self(505);
    pub const MESSAGE_TOO_LARGE: Self = Self(513);
    pub const BUSY_EVERYWHERE: Self = Self(600);
    pub const DECLINE: Self = Self(603);
}

impl StatusCode {
    /// The code, when it is in 100 to 699.
    #[must_use]
    pub const fn new(code: u16) -> Option<Self> {
        if code >= 100 && code <= 699 { Some(Self(code)) } else { None }
    }

    /// The number on the wire.
    #[must_use]
    pub const fn as_u16(self) -> u16 {
        self.0
    }

    /// The first digit: 1 provisional, 2 success, 3 redirection, 4 to 6 failure.
    #[must_use]
    pub const fn class(self) -> u16 {
        self.0 / 100
    }

    /// 1xx.
    #[must_use]
    pub const fn is_provisional(self) -> bool {
        self.class() == 1
    }

    /// 2xx.
    #[must_use]
    pub const fn is_success(self) -> bool {
        self.class() == 2
    }

    /// 3xx.
    #[must_use]
    pub const fn is_redirection(self) -> bool {
        self.class() == 3
    }

    /// 4xx, 5xx and 6xx.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        self.class() >= 4
    }

    /// Everything but 1xx.
    #[must_use]
    pub const fn is_final(self) -> bool {
        !self.is_provisional()
    }

    /// The usual phrase of the code; the phrase of its class for a code without one.
    #[must_use]
    pub const fn default_reason(self) -> &'static str {
        match self.0 {
            100 => "Trying",
            180 => "Ringing",
            181 => "Call Is Being Forwarded",
            182 => "Queued",
            183 => "Session Progress",
            199 => "Early Dialog Terminated",
            200 => "OK",
            202 => "Accepted",
            204 => "No Notification",
            300 => "Multiple Choices",
            301 => "Moved Permanently",
            302 => "Moved Temporarily",
            305 => "Use Proxy",
            380 => "Alternative Service",
            400 => "Bad Request",
            401 => "Unauthorized",
            402 => "Payment Required",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            406 => "Not Acceptable",
            407 => "Proxy Authentication Required",
            408 => "Request Timeout",
            410 => "Gone",
            412 => "Conditional Request Failed",
            413 => "Request Entity Too Large",
            414 => "Request-URI Too Long",
            415 => "Unsupported Media Type",
            416 => "Unsupported URI Scheme",
            420 => "Bad Extension",
            421 => "Extension Required",
            422 => "Session Interval Too Small",
            423 => "Interval Too Brief",
            428 => "Use Identity Header",
            433 => "Anonymity Disallowed",
            469 => "Bad Info Package",
            480 => "Temporarily Unavailable",
            481 => "Call/Transaction Does Not Exist",
            482 => "Loop Detected",
            483 => "Too Many Hops",
            484 => "Address Incomplete",
            485 => "Ambiguous",
            486 => "Busy Here",
            487 => "Request Terminated",
            488 => "Not Acceptable Here",
            489 => "Bad Event",
            491 => "Request Pending",
            493 => "Undecipherable",
            494 => "Security Agreement Required",
            500 => "Server Internal Error",
            501 => "Not Implemented",
            502 => "Bad Gateway",
            503 => "Service Unavailable",
            504 => "Server Time-out",
            505 => "Version Not Supported",
            513 => "Message Too Large",
            580 => "Precondition Failure",
            600 => "Busy Everywhere",
            603 => "Decline",
            604 => "Does Not Exist Anywhere",
            606 => "Not Acceptable",
            _ => self.class_reason(),
        }
    }

    /// The phrase of the class of a code that has none of its own.
    const fn class_reason(self) -> &'static str {
        match self.class() {
            1 => "Session Progress",
            2 => "OK",
            3 => "Redirection",
            4 => "Bad Request",
            5 => "Server Internal Error",
            _ => "Busy Everywhere",
        }
    }
}

impl fmt::Display for StatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_lie_between_100_and_699() {
        for (code, expected) in [(99, false), (100, true), (699, true), (700, false), (999, false)] {
            assert_eq!(StatusCode::new(code).is_some(), expected, "{code}");
        }
    }

    #[test]
    fn classes() {
        assert!(StatusCode::RINGING.is_provisional() && !StatusCode::RINGING.is_final());
        assert!(StatusCode::OK.is_success() && StatusCode::OK.is_final());
        assert!(StatusCode::BUSY_HERE.is_failure() && StatusCode::DECLINE.is_failure());
    }
}
