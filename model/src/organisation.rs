//! Organisations as the API manages them.

use serde::Serialize;

use crate::access::Scope;
use crate::call_info::CallInfoTarget;
use crate::directory::{Numbering, Secret};
use crate::ids::OrganisationId;
use crate::language::Language;
use crate::listing::Listing;
use crate::money::{Amount, Currency};
use crate::page::Page;
use crate::port_future::PortFuture;
use crate::problem::FieldProblem;
use crate::time::Timestamp;

/// A stored organisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrganisationRecord {
    /// Primary key.
    pub id: OrganisationId,
    /// Unique name.
    pub name: String,
    /// The SIP domain and digest realm of its phones; lower case, unique.
    pub sip_domain: String,
    /// The currency of its amounts.
    pub currency: Currency,
    /// Its credit; `None` means no limit.
    pub credit: Option<Amount>,
    /// The credit used by its calls.
    pub spent: Amount,
    /// How its users write phone numbers.
    pub numbering: Numbering,
    /// The largest number of simultaneous outbound calls; `None` sets no limit.
    pub max_outbound_calls: Option<u32>,
    /// The longest duration of an answered call in seconds; `None` takes the node's limit.
    pub max_call_seconds: Option<u32>,
    /// The URL that is requested for answered calls; empty means none.
    pub call_info_url: String,
    /// Whether there is a secret for the call-info URL; never the secret.
    pub has_call_info_secret: bool,
    /// Whether there is a secret that signs the callbacks of requested calls; never the secret.
    pub has_callback_secret: bool,
    /// Days that its recordings are kept; 0 means forever.
    pub recording_retention_days: u32,
    /// The language of its prompts.
    pub language: Language,
    /// Whether its phones change their forwarding and do not disturb by star codes.
    pub star_codes: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// The last change.
    pub updated_at: Timestamp,
}

impl OrganisationRecord {
    /// The remaining credit; `None` without a limit.
    pub fn balance(&self) -> Option<Amount> {
        Some(self.credit?.checked_sub(self.spent).unwrap_or(Amount::from_scaled(i64::MIN)))
    }

    /// The organisation as a client sees it; amounts are for callers with `billing:read`.
    pub fn view(&self, billing: bool) -> OrganisationView<'_> {
        OrganisationView {
            id: self.id,
            name: &self.name,
            sip_domain: &self.sip_domain,
            currency: self.currency,
            credit: self.credit.filter(|_| billing).map(|credit| credit.to_text(self.currency.places())),
            balance: self.balance().filter(|_| billing).map(|left| left.to_text(self.currency.places())),
            country_code: self.numbering.country_code.as_deref().unwrap_or_default(),
            national_prefix: &self.numbering.national_prefix,
            international_prefix: &self.numbering.international_prefix,
            max_outbound_calls: self.max_outbound_calls,
            max_call_seconds: self.max_call_seconds,
            call_info_url: &self.call_info_url,
            has_call_info_secret: self.has_call_info_secret,
            has_callback_secret: self.has_callback_secret,
            recording_retention_days: self.recording_retention_days,
            language: self.language,
            star_codes: self.star_codes,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

/// An organisation as callers see it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Organisation))]
pub struct OrganisationView<'a> {
    /// The organisation.
    id: OrganisationId,
    /// Unique name.
    name: &'a str,
    /// Its phones register as `number@sip_domain`.
    sip_domain: &'a str,
    /// The currency of its amounts.
    currency: Currency,
    /// The credit, an exact decimal; absent when there is no limit, and without `billing:read`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Amount>))]
    credit: Option<String>,
    /// The rest of `credit` after all settled calls, an exact decimal; negative when the credit was lowered below the
    /// amount used; absent whenever `credit` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Amount>))]
    balance: Option<String>,
    /// The country code; empty when national numbers are not dialled.
    country_code: &'a str,
    /// The digits dialled before a national number; may be empty.
    national_prefix: &'a str,
    /// The digits dialled in place of `+`.
    international_prefix: &'a str,
    /// The greatest number of simultaneous outbound calls; null means no limit.
    #[cfg_attr(feature = "openapi", schema(required))]
    max_outbound_calls: Option<u32>,
    /// The longest duration of an answered call, in seconds; null uses the node's limit.
    #[cfg_attr(feature = "openapi", schema(required))]
    max_call_seconds: Option<u32>,
    /// The URL that the service requests on every answered call for a note to show on the phone; empty for none.
    call_info_url: &'a str,
    /// Whether there is a signing secret; the secret itself is never shown.
    has_call_info_secret: bool,
    /// Whether there is a secret that signs the callbacks of `POST /calls`; the secret itself is never shown.
    has_callback_secret: bool,
    /// Days that recordings of rooms are kept after the session; 0 means without limit.
    recording_retention_days: u32,
    /// The language of the built-in prompts for callers, except for extensions that have another one.
    #[cfg_attr(feature = "openapi", schema(inline))]
    language: Language,
    /// Whether its phones change their own forwarding and do not disturb by dialling star codes.
    star_codes: bool,
    /// When it was made.
    created_at: Timestamp,
    /// The last change.
    updated_at: Timestamp,
}

/// An organisation to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOrganisation {
    /// See [`OrganisationRecord`].
    pub name: String,
    /// See [`OrganisationRecord`].
    pub sip_domain: String,
    /// See [`OrganisationRecord`].
    pub currency: Currency,
    /// See [`OrganisationRecord`].
    pub credit: Option<Amount>,
    /// See [`OrganisationRecord`].
    pub numbering: Numbering,
    /// See [`OrganisationRecord`].
    pub max_outbound_calls: Option<u32>,
    /// See [`OrganisationRecord`].
    pub max_call_seconds: Option<u32>,
    /// The call-info URL and its secret.
    pub call_info: Option<CallInfoTarget>,
    /// The secret of callbacks; empty means none.
    pub callback_secret: Secret,
    /// See [`OrganisationRecord`].
    pub recording_retention_days: u32,
    /// See [`OrganisationRecord`].
    pub language: Language,
    /// See [`OrganisationRecord`].
    pub star_codes: bool,
}

/// The changes of an organisation; `None` keeps the stored value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrganisationChange {
    /// The new name.
    pub name: Option<String>,
    /// Another domain; only possible while no phone has a password for the old one.
    pub sip_domain: Option<String>,
    /// The new currency.
    pub currency: Option<Currency>,
    /// Another credit, or no limit.
    pub credit: Option<Option<Amount>>,
    /// The new country code, or empty for none.
    pub country_code: Option<Option<String>>,
    /// The new prefix.
    pub national_prefix: Option<String>,
    /// The new prefix.
    pub international_prefix: Option<String>,
    /// Another limit, or none.
    pub max_outbound_calls: Option<Option<u32>>,
    /// Another limit, or the node's.
    pub max_call_seconds: Option<Option<u32>>,
    /// Another call-info URL; empty removes it and the secret.
    pub call_info_url: Option<String>,
    /// Another secret; empty removes it and the URL.
    pub call_info_secret: Option<Secret>,
    /// Another secret of callbacks; empty removes it.
    pub callback_secret: Option<Secret>,
    /// Another number of days.
    pub recording_retention_days: Option<u32>,
    /// Another language.
    pub language: Option<Language>,
    /// Whether star codes work.
    pub star_codes: Option<bool>,
}

impl OrganisationChange {
    /// The names of changed fields that only the operator may change: names and credit are agreed between the
    /// operator and the organisation.
    pub fn for_operators(&self, before: &OrganisationRecord) -> Vec<&'static str> {
        let differs = [
            ("sip_domain", self.sip_domain.as_ref().is_some_and(|domain| *domain != before.sip_domain)),
            ("currency", self.currency.is_some_and(|currency| currency != before.currency)),
            ("credit", self.credit.is_some_and(|credit| credit != before.credit)),
            (
                "max_outbound_calls",
                self.max_outbound_calls.is_some_and(|limit| limit != before.max_outbound_calls),
            ),
            ("max_call_seconds", self.max_call_seconds.is_some_and(|limit| limit != before.max_call_seconds)),
        ];
        differs.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
    }

    /// Checks that the call-info URL and its secret are both set or both empty after the change of `before`:
    /// an unsigned request could not be verified, and a secret without a URL is a mistake.
    ///
    /// # Errors
    /// The wrong field, with the reason.
    pub fn require_signed_call_info(&self, had_secret: bool, had_url: bool) -> Result<(), FieldProblem> {
        let url = self.call_info_url.as_ref().map(|url| !url.is_empty());
        let secret = self.call_info_secret.as_ref().map(|secret| !secret.0.is_empty());
        let wrong = |field: &str, message: &str| {
            Err(FieldProblem { field: field.to_owned(), message: message.to_owned() })
        };
        match (url, secret) {
            (Some(true), Some(false)) => wrong("call_info_secret", "must not be empty with a call_info_url"),
            (Some(true), None) if !had_secret => wrong(
                "call_info_secret",
                "is required with call_info_url: what is sent there is signed with it",
            ),
            (Some(false), Some(true)) => {
                wrong("call_info_url", "must not be empty with a call_info_secret; empty clears both")
            }
            (None, Some(true)) if !had_url => wrong("call_info_url", "is required with call_info_secret"),
            _ => Ok(()),
        }
    }

    /// Whether the change removes the call-info URL and its secret.
    pub fn clears_call_info(&self) -> bool {
        self.call_info_url.as_deref() == Some("")
            || self.call_info_secret.as_ref().is_some_and(|secret| secret.0.is_empty())
    }

    /// Applies the change to `before` at `now`.
    #[must_use]
    pub fn applied(self, before: OrganisationRecord, now: Timestamp) -> OrganisationRecord {
        let currency = self.currency.unwrap_or(before.currency);
        // A newly granted credit, or one in another currency, starts unused.
        let granted_anew = before.credit.is_none() || currency != before.currency;
        let numbering = before.numbering;
        let no_call_info = self.clears_call_info();
        let call_info_url = self.call_info_url.unwrap_or(before.call_info_url);
        let has_secret = before.has_call_info_secret || self.call_info_secret.is_some();
        let has_callback_secret =
            self.callback_secret.map_or(before.has_callback_secret, |secret| !secret.0.is_empty());
        OrganisationRecord {
            name: self.name.unwrap_or(before.name),
            sip_domain: self.sip_domain.unwrap_or(before.sip_domain),
            currency,
            credit: self.credit.unwrap_or(before.credit),
            spent: if granted_anew { Amount::ZERO } else { before.spent },
            numbering: Numbering {
                country_code: self.country_code.unwrap_or(numbering.country_code),
                national_prefix: self.national_prefix.unwrap_or(numbering.national_prefix),
                international_prefix: self.international_prefix.unwrap_or(numbering.international_prefix),
            },
            max_outbound_calls: self.max_outbound_calls.unwrap_or(before.max_outbound_calls),
            max_call_seconds: self.max_call_seconds.unwrap_or(before.max_call_seconds),
            call_info_url: if no_call_info { String::new() } else { call_info_url },
            has_call_info_secret: has_secret && !no_call_info,
            has_callback_secret,
            recording_retention_days: self
                .recording_retention_days
                .unwrap_or(before.recording_retention_days),
            language: self.language.unwrap_or(before.language),
            star_codes: self.star_codes.unwrap_or(before.star_codes),
            updated_at: now,
            ..before
        }
    }
}

/// The stored organisations.
pub trait Organisations: Send + Sync {
    /// The organisations that `scope` reaches, by name unless `listing` sets another sort.
    fn list<'a>(&'a self, scope: Scope, listing: &'a Listing) -> PortFuture<'a, Page<OrganisationRecord>>;

    /// One organisation.
    fn find(&self, organisation: OrganisationId) -> PortFuture<'_, Option<OrganisationRecord>>;

    /// Creates an organisation. A conflict if another one has the name or the domain.
    fn create(&self, new: NewOrganisation, now: Timestamp) -> PortFuture<'_, OrganisationRecord>;

    /// Changes an organisation that `scope` reaches. A conflict if another one has the name or the domain, or
    /// if phones have passwords for its current domain.
    fn change(
        &self,
        scope: Scope,
        organisation: OrganisationId,
        change: OrganisationChange,
        now: Timestamp,
    ) -> PortFuture<'_, OrganisationRecord>;

    /// Removes an organisation that `scope` reaches. A conflict while it owns resources; its records stay.
    fn delete(&self, scope: Scope, organisation: OrganisationId) -> PortFuture<'_, ()>;
}
