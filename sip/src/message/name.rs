//! Header names: known ones as an enum, compact forms as their long ones, all others as text (RFC 3261
//! §7.3.3).

use std::fmt;

/// Declares [`Known`], [`Name`] and the lookup between them from one list.
macro_rules! names {
    ($($variant:ident $long:literal $lower:literal $(| $compact:literal)?;)*) => {
        /// The known headers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub(crate) enum Known { $($variant),* }

        impl Known {
            fn from_lower(lower: &[u8]) -> Option<Self> {
                match lower {
                    $($lower $(| $compact)? => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        /// The name of a header; it converts from text in any case, compact or long.
        #[derive(Clone, Copy, Debug)]
        #[expect(missing_docs, reason = "each variant is the header of its name")]
        pub enum Name<'a> {
            $($variant,)*
            /// An unknown header.
            Other(&'a str),
        }

        impl<'a> Name<'a> {
            pub(crate) const fn known(self) -> Option<Known> {
                match self {
                    $(Self::$variant => Some(Known::$variant),)*
                    Self::Other(_) => None,
                }
            }

            /// The long form, as it is written.
            #[must_use]
            pub const fn as_str(self) -> &'a str {
                match self {
                    $(Self::$variant => $long,)*
                    Self::Other(name) => name,
                }
            }
        }

        impl From<Known> for Name<'static> {
            fn from(known: Known) -> Self {
                match known { $(Known::$variant => Self::$variant),* }
            }
        }
    };
}

names! {
    Accept "Accept" b"accept";
    AcceptContact "Accept-Contact" b"accept-contact" | b"a";
    AcceptEncoding "Accept-Encoding" b"accept-encoding";
    AcceptLanguage "Accept-Language" b"accept-language";
    AlertInfo "Alert-Info" b"alert-info";
    Allow "Allow" b"allow";
    AllowEvents "Allow-Events" b"allow-events" | b"u";
    AuthenticationInfo "Authentication-Info" b"authentication-info";
    Authorization "Authorization" b"authorization";
    CallId "Call-ID" b"call-id" | b"i";
    CallInfo "Call-Info" b"call-info";
    Contact "Contact" b"contact" | b"m";
    ContentDisposition "Content-Disposition" b"content-disposition";
    ContentEncoding "Content-Encoding" b"content-encoding" | b"e";
    ContentLanguage "Content-Language" b"content-language";
    ContentLength "Content-Length" b"content-length" | b"l";
    ContentType "Content-Type" b"content-type" | b"c";
    CSeq "CSeq" b"cseq";
    Date "Date" b"date";
    Diversion "Diversion" b"diversion";
    ErrorInfo "Error-Info" b"error-info";
    Event "Event" b"event" | b"o";
    Expires "Expires" b"expires";
    From "From" b"from" | b"f";
    InReplyTo "In-Reply-To" b"in-reply-to";
    MaxForwards "Max-Forwards" b"max-forwards";
    MimeVersion "MIME-Version" b"mime-version";
    MinExpires "Min-Expires" b"min-expires";
    MinSe "Min-SE" b"min-se";
    Organization "Organization" b"organization";
    PAssertedIdentity "P-Asserted-Identity" b"p-asserted-identity";
    Path "Path" b"path";
    PPreferredIdentity "P-Preferred-Identity" b"p-preferred-identity";
    Priority "Priority" b"priority";
    Privacy "Privacy" b"privacy";
    ProxyAuthenticate "Proxy-Authenticate" b"proxy-authenticate";
    ProxyAuthorization "Proxy-Authorization" b"proxy-authorization";
    ProxyRequire "Proxy-Require" b"proxy-require";
    RAck "RAck" b"rack";
    Reason "Reason" b"reason";
    RecordRoute "Record-Route" b"record-route";
    ReferredBy "Referred-By" b"referred-by" | b"b";
    ReferTo "Refer-To" b"refer-to" | b"r";
    RejectContact "Reject-Contact" b"reject-contact" | b"j";
    Replaces "Replaces" b"replaces";
    ReplyTo "Reply-To" b"reply-to";
    RequestDisposition "Request-Disposition" b"request-disposition" | b"d";
    Require "Require" b"require";
    RetryAfter "Retry-After" b"retry-after";
    Route "Route" b"route";
    RSeq "RSeq" b"rseq";
    Server "Server" b"server";
    ServiceRoute "Service-Route" b"service-route";
    SessionExpires "Session-Expires" b"session-expires" | b"x";
    SipEtag "SIP-ETag" b"sip-etag";
    SipIfMatch "SIP-If-Match" b"sip-if-match";
    Subject "Subject" b"subject" | b"s";
    SubscriptionState "Subscription-State" b"subscription-state";
    Supported "Supported" b"supported" | b"k";
    Timestamp "Timestamp" b"timestamp";
    To "To" b"to" | b"t";
    Unsupported "Unsupported" b"unsupported";
    UserAgent "User-Agent" b"user-agent";
    Via "Via" b"via" | b"v";
    Warning "Warning" b"warning";
    WwwAuthenticate "WWW-Authenticate" b"www-authenticate";
}

/// At least the length of the longest known name; longer names are unknown.
const KNOWN_LEN_MAX: usize = 24;

impl Known {
    /// The known header of this name, in any case, compact or long.
    pub(crate) fn from_bytes(name: &[u8]) -> Option<Self> {
        let mut lower = [0_u8; KNOWN_LEN_MAX];
        let room = lower.get_mut(..name.len())?;
        for (to, from) in room.iter_mut().zip(name) {
            *to = from.to_ascii_lowercase();
        }
        Self::from_lower(room)
    }

    /// Whether the value has a grammar with quoted strings, in contrast to free text.
    pub(crate) const fn is_structured(self) -> bool {
        !matches!(
            self,
            Self::AlertInfo
                | Self::CallId
                | Self::CallInfo
                | Self::Date
                | Self::ErrorInfo
                | Self::Organization
                | Self::Reason
                | Self::Server
                | Self::Subject
                | Self::UserAgent
                | Self::Warning
        )
    }

    /// Whether the value may contain a display name; that is text, and phones send Latin-1 in it.
    pub(crate) const fn has_display_name(self) -> bool {
        matches!(
            self,
            Self::Contact
                | Self::Diversion
                | Self::From
                | Self::PAssertedIdentity
                | Self::Path
                | Self::PPreferredIdentity
                | Self::RecordRoute
                | Self::ReferredBy
                | Self::ReferTo
                | Self::ReplyTo
                | Self::Route
                | Self::ServiceRoute
                | Self::To
        )
    }
}

impl<'a> From<&'a str> for Name<'a> {
    fn from(name: &'a str) -> Self {
        match Known::from_bytes(name.as_bytes()) {
            Some(known) => Name::from(known),
            None => Self::Other(name),
        }
    }
}

impl<'a> From<&'a String> for Name<'a> {
    fn from(name: &'a String) -> Self {
        Self::from(name.as_str())
    }
}

impl PartialEq for Name<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_str().eq_ignore_ascii_case(other.as_str())
    }
}

impl Eq for Name<'_> {}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case_and_compact() {
        for (input, expected) in [
            ("Via", "Via"),
            ("vIA", "Via"),
            ("v", "Via"),
            ("F", "From"),
            ("call-id", "Call-ID"),
            ("CSEQ", "CSeq"),
            ("x", "Session-Expires"),
            ("www-authenticate", "WWW-Authenticate"),
            ("X-Bypass-Me", "X-Bypass-Me"),
            ("q", "q"),
        ] {
            assert_eq!(Name::from(input).as_str(), expected, "{input}");
        }
        assert_eq!(Name::from("X-a"), Name::from("x-A"));
        assert!(Known::from_bytes(&[b'a'; 300]).is_none());
    }

    #[test]
    fn every_known_name_finds_itself() {
        for known in [Known::ProxyAuthorization, Known::PPreferredIdentity, Known::MimeVersion, Known::RAck] {
            assert_eq!(Known::from_bytes(Name::from(known).as_str().as_bytes()), Some(known));
        }
    }
}
