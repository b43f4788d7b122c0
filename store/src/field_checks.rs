//! Checks values of requests against the stored data, so that a response reports every wrong field.
//!
//! The messages are the same as when the writing transaction refuses the value.

use std::collections::HashSet;

use sidetone_model::field_check::{Checked, FieldCheck, FieldChecks, StoredRule, ValueFault};
use sidetone_model::ids::OrganisationId;
use sidetone_model::ports::PortFuture;

use crate::extensions::forwards_nowhere;
use crate::sql::{Connection, sql};
use crate::transaction::Held;
use crate::{Store, StoreError};

impl FieldChecks for Store {
    fn faults(&self, resource: Checked, checks: Vec<FieldCheck>) -> PortFuture<'_, Vec<Option<ValueFault>>> {
        Box::pin(async move { Ok(self.value_faults(resource, &checks).await?) })
    }
}

impl Store {
    async fn value_faults(
        &self,
        resource: Checked,
        checks: &[FieldCheck],
    ) -> Result<Vec<Option<ValueFault>>, StoreError> {
        // A request that is executed once already holds a connection; a second one could wait for the first.
        let mut held = Held::take();
        match held.as_mut().and_then(Held::connection) {
            Some(unit) => faults(unit, resource, checks).await,
            None => faults(&mut *self.readers().begin_read().await?, resource, checks).await,
        }
    }
}

/// Returns the error of each value, as of one transaction.
async fn faults(
    connection: &mut Connection,
    resource: Checked,
    checks: &[FieldCheck],
) -> Result<Vec<Option<ValueFault>>, StoreError> {
    // If the organisation does not exist, only the field that names it is wrong.
    let resource = match resource.organisation {
        Some(organisation) if !exists(connection, organisation).await? => {
            Checked { organisation: None, ..resource }
        }
        _ => resource,
    };
    // A list may name a thousand extensions.
    let extensions = match resource.organisation {
        Some(own) if checks.iter().any(|check| check.rule == StoredRule::Extension) => {
            extensions(connection, own).await?
        }
        _ => HashSet::new(),
    };
    let mut found = Vec::with_capacity(checks.len());
    for check in checks {
        found.push(match (&check.rule, resource.organisation) {
            (StoredRule::Extension, None) => None,
            (StoredRule::Extension, Some(_)) => {
                let known = extensions.contains(&check.value);
                (!known).then(|| ValueFault::Wrong("the organisation has no such extension".to_owned()))
            }
            (StoredRule::ForwardTarget(_), None) => None,
            (StoredRule::ForwardTarget(number), Some(organisation)) => {
                let nowhere = forwards_nowhere(connection, organisation, number, &check.value).await?;
                nowhere.map(|message| ValueFault::Wrong(message.to_owned()))
            }
            (rule, organisation) => match Lookup::of(rule) {
                Lookup { within: true, .. } if organisation.is_none() => None,
                lookup => lookup.fault(connection, resource, &check.value).await?,
            },
        });
    }
    Ok(found)
}

async fn exists(connection: &mut Connection, organisation: OrganisationId) -> Result<bool, StoreError> {
    let row = sql("SELECT id FROM organisations WHERE id = $1")
        .bind(organisation.to_string())
        .fetch_optional(connection)
        .await?;
    Ok(row.is_some())
}

/// The ids of the organisation's extensions.
async fn extensions(
    connection: &mut Connection,
    organisation: OrganisationId,
) -> Result<HashSet<String>, StoreError> {
    let rows = sql("SELECT id FROM extensions WHERE organisation_id = $1")
        .bind(organisation.to_string())
        .fetch_all(connection)
        .await?;
    rows.iter().map(|row| Ok(row.try_get("id")?)).collect()
}

/// A statement that finds the value of a rule.
struct Lookup {
    /// Parameters: the value, the resource's own id, which is excluded, and its organisation if `within`. The column
    /// `name` is the owner's name where the message contains it.
    statement: &'static str,
    /// Whether there is a third parameter.
    within: bool,
    /// The meaning of a row.
    found: Found,
}

/// The meaning of a row of a [`Lookup`].
enum Found {
    /// The value is taken; the message.
    Taken(Message),
    /// The value must exist; the message when there is no row.
    Wanted(&'static str),
}

/// The message for a taken value.
enum Message {
    /// The text.
    Plain(&'static str),
    /// The text before the name in the row.
    BeforeName(&'static str),
    /// The text before and after the value.
    AroundValue(&'static str, &'static str),
}

impl Lookup {
    const fn of(rule: &StoredRule) -> Self {
        match rule {
            StoredRule::Organisation
            | StoredRule::Room
            | StoredRule::Team
            | StoredRule::Trunk
            | StoredRule::User => Self::of_resource(rule),
            _ => Self::of_free_value(rule),
        }
    }

    /// For a value that must name an existing resource: a row is that resource.
    const fn of_resource(rule: &StoredRule) -> Self {
        let (statement, within, none) = match rule {
            StoredRule::Organisation => (
                "SELECT id FROM organisations WHERE id = $1 AND id <> $2",
                false,
                "there is no such organisation",
            ),
            StoredRule::Room => (
                "SELECT id FROM conference_rooms WHERE id = $1 AND id <> $2 AND organisation_id = $3",
                true,
                "the organisation has no such conference room",
            ),
            StoredRule::Team => (
                "SELECT id FROM teams WHERE id = $1 AND id <> $2 AND organisation_id = $3",
                true,
                "the organisation has no such team",
            ),
            StoredRule::Trunk => {
                ("SELECT id FROM trunks WHERE id = $1 AND id <> $2", false, "there is none with this id")
            }
            _ => (
                "SELECT id FROM users WHERE id = $1 AND id <> $2 AND organisation_id = $3",
                true,
                "the organisation has no such user",
            ),
        };
        Self { statement, within, found: Found::Wanted(none) }
    }

    /// For a value that must be free: a row is another resource with the value.
    const fn of_free_value(rule: &StoredRule) -> Self {
        let (statement, within, message) = match rule {
            StoredRule::ExtensionOfNoAgent => (
                "SELECT name FROM agents WHERE extension_id = $1 AND id <> $2 AND organisation_id = $3",
                true,
                Message::BeforeName("the extension is already that of "),
            ),
            StoredRule::UserOfNoAgent => (
                "SELECT name FROM agents WHERE user_id = $1 AND id <> $2 AND organisation_id = $3",
                true,
                Message::BeforeName("the user is already that of "),
            ),
            StoredRule::FreeEmail => (
                "SELECT id FROM users WHERE email = $1 AND id <> $2",
                false,
                Message::Plain("another user has this address"),
            ),
            StoredRule::FreeExtensionNumber => (
                "SELECT id FROM extensions WHERE number = $1 AND id <> $2 AND organisation_id = $3",
                true,
                Message::AroundValue("the organisation already has an extension ", ""),
            ),
            StoredRule::FreeKeyName => (
                "SELECT id FROM api_keys WHERE name = $1 AND id <> $2 AND organisation_id = $3",
                true,
                Message::AroundValue("the organisation already has a key \"", "\""),
            ),
            StoredRule::FreeOrganisationName => (
                "SELECT id FROM organisations WHERE name = $1 AND id <> $2",
                false,
                Message::Plain("another organisation has this name"),
            ),
            StoredRule::FreePhoneNumber => (
                "SELECT id FROM numbers WHERE number = $1 AND id <> $2",
                false,
                Message::Plain("the number is taken"),
            ),
            StoredRule::FreeRoomNumber => (
                "SELECT id FROM conference_rooms WHERE number = $1 AND id <> $2 AND organisation_id = $3",
                true,
                Message::AroundValue("the organisation already has a conference room ", ""),
            ),
            StoredRule::FreeSipDomain => (
                "SELECT id FROM organisations WHERE sip_domain = $1 AND id <> $2",
                false,
                Message::Plain("another organisation has this domain"),
            ),
            StoredRule::FreeTeamName => (
                "SELECT id FROM teams WHERE name = $1 AND id <> $2 AND organisation_id = $3",
                true,
                Message::AroundValue("the organisation already has a team \"", "\""),
            ),
            _ => (
                "SELECT id FROM trunks WHERE name = $1 AND id <> $2",
                false,
                Message::Plain("another trunk has this name"),
            ),
        };
        Self { statement, within, found: Found::Taken(message) }
    }

    async fn fault(
        self,
        connection: &mut Connection,
        resource: Checked,
        value: &str,
    ) -> Result<Option<ValueFault>, StoreError> {
        let own = resource.own.map(|own| own.to_string()).unwrap_or_default();
        let mut query = sql(self.statement).bind(value).bind(own);
        if self.within {
            query = query.bind(resource.organisation.map(|organisation| organisation.to_string()));
        }
        let row = query.fetch_optional(connection).await?;
        Ok(match (self.found, row) {
            (Found::Wanted(none), None) => Some(ValueFault::Wrong(none.to_owned())),
            (Found::Wanted(_), Some(_)) | (Found::Taken(_), None) => None,
            (Found::Taken(message), Some(row)) => Some(ValueFault::Taken(match message {
                Message::Plain(text) => text.to_owned(),
                Message::BeforeName(text) => format!("{text}{}", row.try_get::<&str>("name")?),
                Message::AroundValue(before, after) => format!("{before}{value}{after}"),
            })),
        })
    }
}
