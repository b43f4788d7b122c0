//! Enumerations that describe a call.

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:tt,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize, ::serde::Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant,)* }

        impl $name {
            /// Every value with its name.
            pub const ALL: &'static [($name, &'static str)] = &[$(($name::$variant, $text),)*];

            /// The name that the API and the database use.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// The value of that name; case-sensitive.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some($name::$variant),)* _ => None }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use words;

words! {
    /// The direction of a call.
    Direction {
        /// From a trunk to the organisation.
        Inbound = "inbound",
        /// Between two extensions.
        Internal = "internal",
        /// From an extension to a trunk.
        Outbound = "outbound",
    }
}

words! {
    /// The transport of the call.
    Transport {
        /// SIP between two nodes: a caller who is joined to a room at another node. The node of the caller has the
        /// record of the call itself.
        Node = "node",
        /// SIP.
        Sip = "sip",
        /// WhatsApp calling.
        Whatsapp = "whatsapp",
    }
}

words! {
    /// Whether a call is priced.
    BillingMode {
        /// Never priced.
        Free = "free",
        /// Priced by a tariff.
        Rated = "rated",
    }
}

words! {
    /// Which side ended a call.
    EndedBy {
        /// The called side: it hung up or refused the call.
        Callee = "callee",
        /// The caller: it hung up or cancelled.
        Caller = "caller",
        /// The switch: a limit, a timer, a failure, an operator, or no party that could be reached.
        System = "system",
    }
}

words! {
    /// Why a leg ended: Q.850 names in the spelling that FreeSWITCH made common.
    HangupCause {
        /// The organisation's credit was used up while the call was up.
        AllottedTimeout = "ALLOTTED_TIMEOUT",
        /// Authentication failed or the party does not want the call.
        CallRejected = "CALL_REJECTED",
        /// The engine died while the call was up.
        Crash = "CRASH",
        /// The signalling went in circles.
        ExchangeRoutingError = "EXCHANGE_ROUTING_ERROR",
        /// No codec or media address in common.
        IncompatibleDestination = "INCOMPATIBLE_DESTINATION",
        /// The parties' protocols do not fit.
        Interworking = "INTERWORKING",
        /// The dialled digits are malformed.
        InvalidNumberFormat = "INVALID_NUMBER_FORMAT",
        /// The call was answered elsewhere.
        LoseRace = "LOSE_RACE",
        /// The call lasted for as long as its organisation, its trunk or the node permits.
        MaxCallDuration = "MAX_CALL_DURATION",
        /// Neither RTP nor RTCP arrived for too long.
        MediaTimeout = "MEDIA_TIMEOUT",
        /// The device of the party cannot be reached.
        DestinationOutOfOrder = "DESTINATION_OUT_OF_ORDER",
        /// The far end's network failed.
        NetworkOutOfOrder = "NETWORK_OUT_OF_ORDER",
        /// It rang without an answer.
        NoAnswer = "NO_ANSWER",
        /// There is no way to the destination.
        NoRouteDestination = "NO_ROUTE_DESTINATION",
        /// The destination is there and does not respond.
        NoUserResponse = "NO_USER_RESPONSE",
        /// The network of the far end has no free circuit.
        NormalCircuitCongestion = "NORMAL_CIRCUIT_CONGESTION",
        /// A party hung up.
        NormalClearing = "NORMAL_CLEARING",
        /// A failure without a better name.
        NormalTemporaryFailure = "NORMAL_TEMPORARY_FAILURE",
        /// The call ended for a reason that the party did not give.
        NormalUnspecified = "NORMAL_UNSPECIFIED",
        /// The number is another one now.
        NumberChanged = "NUMBER_CHANGED",
        /// The caller gave up before the answer.
        OriginatorCancel = "ORIGINATOR_CANCEL",
        /// No sell rate of the organisation covers the number, so it may not be called.
        OutgoingCallBarred = "OUTGOING_CALL_BARRED",
        /// A timer of the protocol ran out.
        RecoveryOnTimerExpire = "RECOVERY_ON_TIMER_EXPIRE",
        /// The party was parked and not picked up, and the extension that parked it did not answer.
        ParkTimeout = "PARK_TIMEOUT",
        /// The party has another address now, which was not called.
        RedirectionToNewDestination = "REDIRECTION_TO_NEW_DESTINATION",
        /// The far end has no such service.
        ServiceNotImplemented = "SERVICE_NOT_IMPLEMENTED",
        /// The far end does not offer the service here.
        ServiceUnavailable = "SERVICE_UNAVAILABLE",
        /// No free port, leg or channel here.
        SwitchCongestion = "SWITCH_CONGESTION",
        /// No such number.
        UnallocatedNumber = "UNALLOCATED_NUMBER",
        /// The party was busy.
        UserBusy = "USER_BUSY",
        /// The party is known and registered nowhere.
        UserNotRegistered = "USER_NOT_REGISTERED",
    }
}

impl HangupCause {
    /// The cause for a final SIP response, as FreeSWITCH maps it (cf. RFC 3398 §7.2.4.1).
    pub const fn from_sip_status(status: u16) -> Self {
        match status {
            200..=299 => HangupCause::NormalClearing,
            300..=399 => HangupCause::RedirectionToNewDestination,
            401..=403 | 407 | 603 | 607 | 608 => HangupCause::CallRejected,
            404 => HangupCause::UnallocatedNumber,
            405 => HangupCause::ServiceUnavailable,
            406 | 415 | 501 => HangupCause::ServiceNotImplemented,
            408 | 504 => HangupCause::RecoveryOnTimerExpire,
            410 => HangupCause::NumberChanged,
            413 | 414 | 416 | 420 | 421 | 423 | 505 | 513 => HangupCause::Interworking,
            480 => HangupCause::NoUserResponse,
            482 | 483 => HangupCause::ExchangeRoutingError,
            484 => HangupCause::InvalidNumberFormat,
            485 | 604 => HangupCause::NoRouteDestination,
            486 | 600 => HangupCause::UserBusy,
            487 => HangupCause::OriginatorCancel,
            488 | 606 => HangupCause::IncompatibleDestination,
            502 => HangupCause::NetworkOutOfOrder,
            _ => HangupCause::NormalTemporaryFailure,
        }
    }

    /// The cause with a code of Q.850, as in a Reason header (RFC 3326); `None` for a code without a name here.
    pub fn from_q850(code: u16) -> Option<Self> {
        Q850.iter().find(|(other, _)| *other == code).map(|(_, cause)| *cause)
    }

    /// The code in Q.850; `None` for a cause of SIP or of this engine alone.
    pub fn q850(self) -> Option<u16> {
        Q850.iter().find(|(_, cause)| *cause == self).map(|(code, _)| *code)
    }
}

/// Codes of ITU-T Q.850; the first code of a cause is the one that is sent.
const Q850: &[(u16, HangupCause)] = &[
    (1, HangupCause::UnallocatedNumber),
    (3, HangupCause::NoRouteDestination),
    (16, HangupCause::NormalClearing),
    (17, HangupCause::UserBusy),
    (18, HangupCause::NoUserResponse),
    (19, HangupCause::NoAnswer),
    (20, HangupCause::UserNotRegistered),
    (21, HangupCause::CallRejected),
    (22, HangupCause::NumberChanged),
    (23, HangupCause::RedirectionToNewDestination),
    (25, HangupCause::ExchangeRoutingError),
    (27, HangupCause::DestinationOutOfOrder),
    (28, HangupCause::InvalidNumberFormat),
    (31, HangupCause::NormalUnspecified),
    (34, HangupCause::NormalCircuitCongestion),
    (38, HangupCause::NetworkOutOfOrder),
    (41, HangupCause::NormalTemporaryFailure),
    (42, HangupCause::SwitchCongestion),
    (52, HangupCause::OutgoingCallBarred),
    (63, HangupCause::ServiceUnavailable),
    (79, HangupCause::ServiceNotImplemented),
    (69, HangupCause::ServiceNotImplemented),
    (88, HangupCause::IncompatibleDestination),
    (102, HangupCause::RecoveryOnTimerExpire),
    (127, HangupCause::Interworking),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_uses_the_same_names() {
        assert_eq!(serde_json::to_string(&Direction::Internal).unwrap(), "\"internal\"");
        assert_eq!(serde_json::to_string(&HangupCause::UserBusy).unwrap(), "\"USER_BUSY\"");
        assert_eq!(HangupCause::from_name("USER_BUSY"), Some(HangupCause::UserBusy));
        assert_eq!(HangupCause::from_name("user_busy"), None);
    }

    #[test]
    fn sip_statuses_have_causes() {
        let cases = [
            (200, HangupCause::NormalClearing),
            (404, HangupCause::UnallocatedNumber),
            (480, HangupCause::NoUserResponse),
            (302, HangupCause::RedirectionToNewDestination),
            (486, HangupCause::UserBusy),
            (487, HangupCause::OriginatorCancel),
            (488, HangupCause::IncompatibleDestination),
            (503, HangupCause::NormalTemporaryFailure),
            (603, HangupCause::CallRejected),
            (500, HangupCause::NormalTemporaryFailure),
        ];
        for (status, cause) in cases {
            assert_eq!(HangupCause::from_sip_status(status), cause, "{status}");
        }
    }

    #[test]
    fn a_code_that_is_sent_is_read_as_the_same_cause() {
        for (code, cause) in Q850 {
            assert_eq!(HangupCause::from_q850(*code), Some(*cause));
            assert_eq!(cause.q850().and_then(HangupCause::from_q850), Some(*cause), "{cause}");
        }
        assert_eq!(HangupCause::from_q850(99), None);
        assert_eq!(HangupCause::ServiceNotImplemented.q850(), Some(79));
        assert_eq!(HangupCause::OriginatorCancel.q850(), None);
    }
}
