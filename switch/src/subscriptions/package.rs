//! The event packages that phones may subscribe to.

use sidetone_model::message_waiting::SUMMARY_TYPE;
use sidetone_sip::message::{Name, Request, StatusCode};
use sidetone_sip::ua::Reply;

/// An event package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Package {
    /// The calls of an extension (RFC 4235).
    Dialog,
    /// The messages in the mailbox of an extension (RFC 3842).
    MessageSummary,
    /// Whether an extension is registered (RFC 3856, RFC 3863).
    Presence,
}

impl Package {
    /// Reads the Event header of a SUBSCRIBE: the package, and the `id` that its NOTIFY requests repeat.
    ///
    /// # Errors
    /// The refusal.
    pub(super) fn of(request: &Request) -> Result<(Self, Option<String>), Reply> {
        let missing = || Reply::new(StatusCode::BAD_REQUEST).reason("Event Expected");
        let mut parts = request.header(Name::Event).ok_or_else(missing)?.split(';');
        let package = match parts.next().unwrap_or_default().trim() {
            "dialog" => Package::Dialog,
            MESSAGE_SUMMARY => Package::MessageSummary,
            "presence" => Package::Presence,
            _ => {
                return Err(
                    Reply::new(StatusCode::BAD_EVENT).header(Name::AllowEvents.as_str(), ALLOWED_EVENTS)
                );
            }
        };
        let mut params = parts.filter_map(|param| param.split_once('='));
        let id = params.find(|(name, _)| name.trim().eq_ignore_ascii_case("id"));
        Ok((package, id.map(|(_, value)| value.trim().to_owned())))
    }

    /// The name in the Event header.
    pub(super) fn name(self) -> &'static str {
        match self {
            Package::Dialog => "dialog",
            Package::MessageSummary => MESSAGE_SUMMARY,
            Package::Presence => "presence",
        }
    }

    /// The content type of its NOTIFY requests.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Package::Dialog => "application/dialog-info+xml",
            Package::MessageSummary => SUMMARY_TYPE,
            Package::Presence => "application/pidf+xml",
        }
    }

    /// Whether the sender of a request accepts the content type of this package; without an Accept header it does.
    pub(super) fn is_accepted_by(self, request: &Request) -> bool {
        let mut types = request.list(Name::Accept).map(|range| range.split(';').next().unwrap_or_default());
        let accepts = |range: &str| {
            ["*/*", "application/*", self.content_type()].contains(&&*range.to_ascii_lowercase())
        };
        !request.contains(Name::Accept) || types.any(|range| accepts(range.trim()))
    }
}

/// The value of Allow-Events.
const ALLOWED_EVENTS: &str = "dialog, message-summary, presence";
/// The event package of mailboxes.
pub(in super::super) const MESSAGE_SUMMARY: &str = "message-summary";
