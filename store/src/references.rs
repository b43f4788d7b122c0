//! References between resources: whether the referenced row belongs to the organisation, and which rows still
//! refer to one that is being deleted.

use sidetone_model::ids::OrganisationId;
use sidetone_model::problem::{FieldProblem, Problem};

use crate::sql::{Row, sql};
use crate::{StoreError, WriteTransaction};

/// A field of a request that may refer to a resource by id.
pub(super) struct Reference {
    field: &'static str,
    id: Option<String>,
}

/// A reference in `field`: `team_id`, `extension_id` or `user_id`.
pub(super) fn refer(field: &'static str, id: Option<impl ToString>) -> Reference {
    Reference { field, id: id.map(|id| id.to_string()) }
}

impl WriteTransaction {
    /// Refuses an organisation that does not exist.
    pub(super) async fn require_organisation(&mut self, organisation: OrganisationId) -> Result<(), Problem> {
        let known = sql("SELECT id FROM organisations WHERE id = $1")
            .bind(organisation.to_string())
            .fetch_optional(&mut *self.transaction)
            .await
            .map_err(StoreError::from)?;
        if known.is_none() { Err(no_organisation()) } else { Ok(()) }
    }

    /// Refuses references to resources that the organisation does not have; another organisation's resources count as
    /// absent.
    pub(super) async fn require_own(
        &mut self,
        organisation: OrganisationId,
        references: &[Reference],
    ) -> Result<(), Problem> {
        let mut wrong = Vec::new();
        for Reference { field, id } in references {
            let Some(id) = id else { continue };
            let (text, what) = match *field {
                "extension_id" => {
                    ("SELECT id FROM extensions WHERE id = $1 AND organisation_id = $2", "extension")
                }
                "team_id" => ("SELECT id FROM teams WHERE id = $1 AND organisation_id = $2", "team"),
                _ => ("SELECT id FROM users WHERE id = $1 AND organisation_id = $2", "user"),
            };
            let row = sql(text)
                .bind(id)
                .bind(organisation.to_string())
                .fetch_optional(&mut *self.transaction)
                .await
                .map_err(StoreError::from)?;
            if row.is_none() {
                let message = format!("the organisation has no such {what}");
                wrong.push(FieldProblem { field: (*field).to_owned(), message });
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(Problem::InvalidRequest(wrong)) }
    }

    /// Refuses to delete a resource that phone numbers of the organisation lead to.
    pub(super) async fn refuse_if_dialled(
        &mut self,
        organisation: &str,
        destination: String,
        what: &str,
    ) -> Result<(), Problem> {
        let numbers = sql("SELECT number FROM numbers WHERE destination_id = $1 AND organisation_id = $2
             ORDER BY number")
        .bind(destination)
        .bind(organisation)
        .fetch_all(&mut *self.transaction)
        .await
        .map_err(StoreError::from)?;
        if numbers.is_empty() {
            return Ok(());
        }
        let numbers = named(&numbers, "number")?;
        Err(Problem::Conflict(format!(
            "the phone numbers {numbers} lead to the {what}: let them lead elsewhere first"
        )))
    }
}

/// The problem of a request that names an organisation that does not exist.
pub(super) fn no_organisation() -> Problem {
    Problem::InvalidRequest(vec![FieldProblem {
        field: "organisation_id".to_owned(),
        message: "there is no such organisation".to_owned(),
    }])
}

/// The values of a column for a sentence; at most the first few.
pub(super) fn named(rows: &[Row], column: &'static str) -> Result<String, StoreError> {
    let names = rows
        .iter()
        .take(NAMED_MAX)
        .map(|row| Ok(row.try_get::<String>(column)?))
        .collect::<Result<Vec<_>, StoreError>>()?;
    let more = rows.len().saturating_sub(names.len());
    Ok(if more == 0 { names.join(", ") } else { format!("{} and {more} more", names.join(", ")) })
}

const NAMED_MAX: usize = 10;
