//! Extensions as the API manages them.

use serde::Serialize;

use crate::access::Scope;
use crate::directory::{Secret, Srtp, StrictSource, Video};
use crate::forwarding::{Forwarding, ForwardingChange};
use crate::ids::{ExtensionId, OrganisationId, TeamId, UserId};
use crate::language::Language;
use crate::listing::Listing;
use crate::message_waiting::MessageWaiting;
use crate::page::Page;
use crate::port_future::PortFuture;
use crate::time::Timestamp;

/// An extension, without its password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Extension))]
pub struct ExtensionRecord {
    /// The extension.
    pub id: ExtensionId,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// The team on its call records; null when it has none.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub team_id: Option<TeamId>,
    /// The digits to dial, and the user name of its phone; unique within the organisation.
    pub number: String,
    /// The person's name; may be empty.
    pub name: String,
    /// The offered codecs in order, separated by commas; empty means that the codec profile decides: every codec that
    /// the switch supports.
    pub codec_string: String,
    /// Which source addresses of media are accepted; null uses the node's setting.
    #[cfg_attr(feature = "openapi", schema(required, inline))]
    pub strict_source: Option<StrictSource>,
    /// Whether media is encrypted by SRTP: never (`off`), when the phone has it too (`optional`), always
    /// (`required`), or by DTLS with ICE for contacts over WebSocket, which are browsers, and for other phones when
    /// they have it too (`webrtc`).
    #[cfg_attr(feature = "openapi", schema(inline))]
    pub srtp: Srtp,
    /// Whether video is relayed unchanged between its phones and a party that has it too (`pass`), or refused in its place
    /// (`off`).
    #[cfg_attr(feature = "openapi", schema(inline))]
    pub video: Video,
    /// Where calls go instead of the extension's phones.
    pub forwarding: Forwarding,
    /// Whether calls are refused with 480, or go to `forwarding.busy`. Calls of the extension and its notes are not
    /// affected.
    pub do_not_disturb: bool,
    /// The language of the built-in prompts that the extension hears; null for the organisation's.
    #[cfg_attr(feature = "openapi", schema(required, inline))]
    pub language: Option<Language>,
    /// How many phones may be registered at once. One more takes the place of the oldest registration: first of the same
    /// device, then of the same `User-Agent`, then of any.
    pub max_registrations: u32,
    /// Whether the registered phones are sent the state of the mailbox without a subscription, for phones that do not
    /// subscribe.
    pub notify_message_waiting: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// The last change.
    pub updated_at: Timestamp,
}

/// An extension to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewExtension {
    /// The owner.
    pub organisation_id: OrganisationId,
    /// Its team, of the same organisation.
    pub team_id: Option<TeamId>,
    /// Unique within the organisation.
    pub number: String,
    /// The person's name.
    pub name: String,
    /// The phone's password; generated if there is none.
    pub password: Option<Secret>,
    /// Codecs in order of preference; empty means every codec.
    pub codecs: Vec<String>,
    /// See [`ExtensionRecord`].
    pub strict_source: Option<StrictSource>,
    /// See [`ExtensionRecord`].
    pub srtp: Srtp,
    /// See [`ExtensionRecord`].
    pub video: Video,
    /// See [`ExtensionRecord`].
    pub forwarding: Forwarding,
    /// See [`ExtensionRecord`].
    pub do_not_disturb: bool,
    /// See [`ExtensionRecord`].
    pub language: Option<Language>,
    /// See [`ExtensionRecord`].
    pub max_registrations: u32,
    /// See [`ExtensionRecord`].
    pub notify_message_waiting: bool,
}

/// The changes of an extension; `None` keeps the stored value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtensionChange {
    /// Another team, or none.
    pub team_id: Option<Option<TeamId>>,
    /// Another number; it requires a password, because the stored credential is not valid for another number.
    pub number: Option<String>,
    /// The new name.
    pub name: Option<String>,
    /// The new password.
    pub password: Option<Secret>,
    /// The new codecs.
    pub codecs: Option<Vec<String>>,
    /// Another source of media, or the node's setting.
    pub strict_source: Option<Option<StrictSource>>,
    /// Whether media is encrypted from now on.
    pub srtp: Option<Srtp>,
    /// Whether it has video from now on.
    pub video: Option<Video>,
    /// Changes of the forwarding.
    pub forwarding: Option<ForwardingChange>,
    /// Whether it refuses calls from now on.
    pub do_not_disturb: Option<bool>,
    /// Another language, or the organisation's.
    pub language: Option<Option<Language>>,
    /// Another limit of registrations, for new registrations.
    pub max_registrations: Option<u32>,
    /// Whether its phones are sent the state of the mailbox without a subscription from now on.
    pub notify_message_waiting: Option<bool>,
}

/// The limits of an extension's registrations.
pub const REGISTRATIONS: std::ops::RangeInclusive<i64> = 1..=50;
/// The default limit.
pub const REGISTRATIONS_DEFAULT: u32 = 10;

impl ExtensionChange {
    /// Whether the change contains only fields that users may set on their own extension: the forwarding and do not
    /// disturb.
    pub fn is_personal(&self) -> bool {
        let personal = ExtensionChange {
            forwarding: self.forwarding.clone(),
            do_not_disturb: self.do_not_disturb,
            ..ExtensionChange::default()
        };
        *self == personal
    }
}

/// The stored extensions.
pub trait Extensions: Send + Sync {
    /// The extensions inside `scope`, by number unless `listing` sets another sort.
    fn list<'a>(&'a self, scope: Scope, listing: &'a Listing) -> PortFuture<'a, Page<ExtensionRecord>>;

    /// One extension, of any organisation.
    fn find(&self, extension: ExtensionId) -> PortFuture<'_, Option<ExtensionRecord>>;

    /// The extension whose calls the agent of `user` takes.
    fn of_user(&self, user: UserId) -> PortFuture<'_, Option<ExtensionId>>;

    /// Creates an extension inside `scope`, and returns its password if it was generated: it is not stored. A
    /// conflict when the organisation has one of that number.
    fn create(
        &self,
        scope: Scope,
        new: NewExtension,
        now: Timestamp,
    ) -> PortFuture<'_, (ExtensionRecord, Option<Secret>)>;

    /// Changes an extension inside `scope`; the changed extension must be inside as well.
    fn change(
        &self,
        scope: Scope,
        extension: ExtensionId,
        change: ExtensionChange,
        now: Timestamp,
    ) -> PortFuture<'_, ExtensionRecord>;

    /// The messages in the mailbox of an extension inside `scope`.
    fn message_waiting(&self, scope: Scope, extension: ExtensionId) -> PortFuture<'_, MessageWaiting>;

    /// Replaces the messages in the mailbox of an extension inside `scope`; its phones are notified.
    fn set_message_waiting(
        &self,
        scope: Scope,
        extension: ExtensionId,
        waiting: MessageWaiting,
    ) -> PortFuture<'_, ()>;

    /// The WAV file of the spoken name of an extension inside `scope`.
    fn spoken_name(&self, scope: Scope, extension: ExtensionId) -> PortFuture<'_, Vec<u8>>;

    /// Deletes the spoken name of an extension inside `scope`.
    fn remove_spoken_name(&self, scope: Scope, extension: ExtensionId) -> PortFuture<'_, ()>;

    /// Removes an extension inside `scope`. A conflict while a number refers to it or an agent takes its
    /// calls.
    fn delete(&self, scope: Scope, extension: ExtensionId) -> PortFuture<'_, ()>;
}
