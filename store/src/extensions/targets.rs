//! Checks of the numbers that an extension forwards calls to: whether its dial plan has a route for them.
//!
//! The switch decides again for each call, with the directory, the price and the credit at that time.

use sidetone_model::directory::Numbering;
use sidetone_model::extension::ExtensionRecord;
use sidetone_model::forwarding::Forwarding;
use sidetone_model::ids::OrganisationId;
use sidetone_model::numbering::{NumberFault, normalise};
use sidetone_model::problem::{FieldProblem, Problem};

use crate::columns::items;
use crate::sql::{Connection, sql};
use crate::{StoreError, WriteTransaction};

impl WriteTransaction {
    /// Refuses numbers without a route, unless they were stored before.
    pub(super) async fn require_forward_targets(
        &mut self,
        extension: &ExtensionRecord,
        before: &Forwarding,
    ) -> Result<(), Problem> {
        let known: Vec<_> = before.targets().collect();
        let mut wrong = Vec::new();
        for (field, target) in extension.forwarding.targets().filter(|target| !known.contains(target)) {
            let organisation = extension.organisation_id;
            if let Some(message) = self.forwards_nowhere(organisation, &extension.number, target).await? {
                let field = format!("forwarding.{field}");
                wrong.push(FieldProblem { field, message: message.to_owned() });
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(Problem::InvalidRequest(wrong)) }
    }

    /// Returns why the extension `own` cannot forward calls to `target`; `None` if it can.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn forwards_nowhere(
        &mut self,
        organisation: OrganisationId,
        own: &str,
        target: &str,
    ) -> Result<Option<&'static str>, StoreError> {
        forwards_nowhere(&mut self.transaction, organisation, own, target).await
    }
}

/// Returns why the extension `own` of a stored organisation cannot forward calls to `target`; `None` if it can.
pub(crate) async fn forwards_nowhere(
    connection: &mut Connection,
    organisation: OrganisationId,
    own: &str,
    target: &str,
) -> Result<Option<&'static str>, StoreError> {
    if target == own {
        return Ok(Some("is the extension itself"));
    }
    let inside = sql("SELECT id FROM extensions WHERE organisation_id = $1 AND number = $2
         UNION ALL SELECT id FROM conference_rooms WHERE organisation_id = $1 AND number = $2")
    .bind(organisation.to_string())
    .bind(target)
    .fetch_optional(&mut *connection)
    .await?;
    if inside.is_some() {
        return Ok(None);
    }
    let trunks = sql("SELECT short_numbers FROM trunks
         WHERE address IS NOT NULL AND (organisation_id IS NULL OR organisation_id = $1)")
    .bind(organisation.to_string())
    .fetch_all(&mut *connection)
    .await?;
    for trunk in &trunks {
        if items(trunk, "short_numbers")?.iter().any(|number| number == target) {
            return Ok(None);
        }
    }
    let row =
        sql("SELECT country_code, national_prefix, international_prefix FROM organisations WHERE id = $1")
            .bind(organisation.to_string())
            .fetch_one(&mut *connection)
            .await?;
    let numbering = Numbering {
        country_code: row.try_get("country_code")?,
        national_prefix: row.try_get("national_prefix")?,
        international_prefix: row.try_get("international_prefix")?,
    };
    let e164 = match normalise(&numbering, target) {
        Ok(e164) => e164,
        Err(NumberFault::NoCountry) => {
            return Ok(Some(
                "is a national number and the organisation has no country_code: write it with +",
            ));
        }
        Err(NumberFault::NoNumber) => {
            return Ok(Some("is no extension, conference room or phone number that the extension can dial"));
        }
    };
    if !trunks.is_empty() {
        return Ok(None);
    }
    let inside = sql("SELECT id FROM numbers WHERE organisation_id = $1 AND number = $2")
        .bind(organisation.to_string())
        .bind(e164)
        .fetch_optional(&mut *connection)
        .await?;
    Ok(inside.is_none().then_some("is an outside number and no trunk takes outbound calls"))
}
