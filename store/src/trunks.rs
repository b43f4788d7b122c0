//! Trunks: carriers and peers, identified by the addresses that their calls come from.

use sidetone_model::directory::{Network, Secret, StrictSource};
use sidetone_model::ids::{OrganisationId, TrunkId};
use sidetone_model::time::Timestamp;
use sidetone_model::trunk::Claims;
use uuid::Uuid;

use crate::columns::{networks, networks_text, parsed, parsed_opt};
use crate::search::searchable;
use crate::sql::sql;
use crate::{Change, StoreError, WriteTransaction};

/// A trunk as it is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrunkRow {
    /// Its name, the natural key.
    pub name: String,
    /// The only organisation that uses it; `None` means every organisation.
    pub organisation_id: Option<OrganisationId>,
    /// Where calls are sent.
    pub address: Option<String>,
    /// Where calls come from.
    pub accept_from: Vec<Network>,
    /// Lower values are tried first.
    pub priority: u16,
    /// The switch's user name at the trunk; may be empty.
    pub username: String,
    /// The password of `username`; `None` keeps the stored one.
    pub password: Option<Secret>,
    /// The only realm that gets the switch's credentials; empty means the realm of the trunk's challenge.
    pub realm: String,
    /// Whether the switch registers there.
    pub register: bool,
    /// Numbers that are sent exactly as dialled.
    pub short_numbers: Vec<String>,
    /// Which source address its media must have; `None` takes the node's setting.
    pub strict_source: Option<StrictSource>,
    /// The longest duration of an answered call over it in seconds; `None` sets no limit.
    pub max_call_seconds: Option<u32>,
}

impl WriteTransaction {
    /// Returns the trunk of that name.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn find_trunk(&mut self, name: &str) -> Result<Option<TrunkId>, StoreError> {
        let row = sql("SELECT id FROM trunks WHERE name = $1")
            .bind(name)
            .fetch_optional(&mut *self.transaction)
            .await?;
        row.map(|row| parsed(&row, "id")).transpose()
    }

    /// Returns the field in which a trunk claims what a trunk of another organisation, or a shared one,
    /// claims. An operator may assign to an organisation what is shared.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn clashing_field(
        &mut self,
        trunk: Option<TrunkId>,
        owner: Option<OrganisationId>,
        claims: &Claims,
        is_operator: bool,
    ) -> Result<Option<&'static str>, StoreError> {
        // The later of two transactions waits here, and then sees what the earlier one has claimed.
        sql("UPDATE directory_revision SET revision = revision WHERE id = 1")
            .execute(&mut *self.transaction)
            .await?;
        let rows = sql("SELECT id, organisation_id, address, accept_from FROM trunks")
            .fetch_all(&mut *self.transaction)
            .await?;
        for row in rows {
            let other: Option<OrganisationId> = parsed_opt(&row, "organisation_id")?;
            let is_given = is_operator && (owner.is_none() || other.is_none());
            if trunk == Some(parsed(&row, "id")?) || other == owner || is_given {
                continue;
            }
            let address = row.try_get::<Option<String>>("address")?;
            let theirs = Claims::of(address.as_deref(), &networks(&row, "accept_from")?);
            if let Some(field) = claims.clash(&theirs) {
                return Ok(Some(field));
            }
        }
        Ok(None)
    }

    /// Creates or updates the trunk as declared.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn declare_trunk(
        &mut self,
        declared: &TrunkRow,
        now: Timestamp,
    ) -> Result<(TrunkId, Change), StoreError> {
        let organisation = declared.organisation_id.map(|id| id.to_string());
        let accept_from = networks_text(&declared.accept_from);
        let short_numbers = declared.short_numbers.join(",");
        let search = trunk_search(&declared.name, declared.address.as_deref());
        let priority = i64::from(declared.priority);
        let register = i64::from(declared.register);
        let strict_source = declared.strict_source.map(StrictSource::as_str);
        let max_call_seconds = declared.max_call_seconds.map(i64::from);
        let row = sql(
            "SELECT id, organisation_id, address, accept_from, priority, username, password, realm, register,
             short_numbers, strict_source, max_call_seconds FROM trunks WHERE name = $1",
        )
        .bind(&declared.name)
        .fetch_optional(&mut *self.transaction)
        .await?;
        let stored_password = row.as_ref().map(|row| row.try_get::<String>("password")).transpose()?;
        let given = declared.password.as_ref().map(|secret| secret.0.clone());
        let password = given.or(stored_password.clone()).unwrap_or_default();
        let Some(row) = row else {
            let id = TrunkId(Uuid::new_v4());
            sql("INSERT INTO trunks (id, organisation_id, name, address, accept_from, priority, username,
                 password, realm, register, short_numbers, search, created_at_us, updated_at_us,
                 strict_source, max_call_seconds)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13, $14, $15)")
            .bind(id.to_string())
            .bind(organisation)
            .bind(&declared.name)
            .bind(&declared.address)
            .bind(accept_from)
            .bind(priority)
            .bind(&declared.username)
            .bind(password)
            .bind(&declared.realm)
            .bind(register)
            .bind(short_numbers)
            .bind(search)
            .bind(now.as_micros())
            .bind(strict_source)
            .bind(max_call_seconds)
            .execute(&mut *self.transaction)
            .await?;
            return Ok((id, self.note(Change::Created)));
        };
        let id: TrunkId = parsed(&row, "id")?;
        let same = row.try_get::<Option<String>>("organisation_id")? == organisation
            && row.try_get::<Option<String>>("address")? == declared.address
            && row.try_get::<&str>("accept_from")? == accept_from
            && row.try_get::<i64>("priority")? == priority
            && row.try_get::<&str>("username")? == declared.username
            && stored_password.as_ref() == Some(&password)
            && row.try_get::<&str>("realm")? == declared.realm
            && row.try_get::<i64>("register")? == register
            && row.try_get::<&str>("short_numbers")? == short_numbers
            && row.try_get::<Option<&str>>("strict_source")? == strict_source
            && row.try_get::<Option<i64>>("max_call_seconds")? == max_call_seconds;
        if same {
            return Ok((id, Change::Unchanged));
        }
        sql("UPDATE trunks SET organisation_id = $1, address = $2, accept_from = $3, priority = $4,
             username = $5, password = $6, realm = $7, register = $8, short_numbers = $9, search = $10,
             updated_at_us = $11, strict_source = $13, max_call_seconds = $14 WHERE id = $12")
        .bind(organisation)
        .bind(&declared.address)
        .bind(accept_from)
        .bind(priority)
        .bind(&declared.username)
        .bind(password)
        .bind(&declared.realm)
        .bind(register)
        .bind(short_numbers)
        .bind(search)
        .bind(now.as_micros())
        .bind(id.to_string())
        .bind(strict_source)
        .bind(max_call_seconds)
        .execute(&mut *self.transaction)
        .await?;
        Ok((id, self.note(Change::Changed)))
    }
}

/// The message for a refused trunk.
pub const CLASH: &str =
    "a trunk of another organisation, or one that all share, has this carrier; make one trunk that all share";

/// The text that a search in a list of trunks covers.
pub(super) fn trunk_search(name: &str, address: Option<&str>) -> String {
    searchable([Some(name), address])
}
