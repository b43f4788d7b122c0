//! Trunks as apply files declare them.

use sidetone_model::directory::{Network, Secret, Srtp, StrictSource, Video};
use sidetone_model::ids::{OrganisationId, TrunkId};
use sidetone_model::time::Timestamp;
use sidetone_model::trunk::{Claims, TrunkRecord};
use sidetone_model::trunk_interop::TrunkInterop;
use uuid::Uuid;

use crate::columns::{items, networks, parsed, parsed_opt};
use crate::sql::sql;
use crate::trunks::rows::trunk_with_password;
use crate::{Change, StoreError, WriteTransaction};

/// A trunk as it is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrunkRow {
    /// Its name, the natural key.
    pub name: String,
    /// The only organisation that uses it; `None` means every organisation.
    pub organisation_id: Option<OrganisationId>,
    /// The address that calls are sent to.
    pub address: Option<String>,
    /// The networks that calls come from.
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
    /// Which source address its media must have; `None` means the node's setting.
    pub strict_source: Option<StrictSource>,
    /// Whether its media is encrypted.
    pub srtp: Srtp,
    /// Whether it has video.
    pub video: Video,
    /// The longest duration of an answered call over it in seconds; `None` means no limit.
    pub max_call_seconds: Option<u32>,
    /// Settings for carriers that deviate from the usual behaviour.
    pub interop: TrunkInterop,
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

    /// Returns the field in which a trunk claims a value that a trunk of another organisation, or a shared one,
    /// already claims. An operator may assign shared values to an organisation.
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
        // The later of two transactions waits here, and then sees the claims of the earlier one.
        sql("UPDATE directory_revision SET revision = revision WHERE id = 1")
            .execute(&mut *self.transaction)
            .await?;
        let rows = sql(
            "SELECT id, organisation_id, address, accept_from, backup_addresses, outbound_proxy FROM trunks",
        )
        .fetch_all(&mut *self.transaction)
        .await?;
        for row in rows {
            let other: Option<OrganisationId> = parsed_opt(&row, "organisation_id")?;
            let is_given = is_operator && (owner.is_none() || other.is_none());
            if trunk == Some(parsed(&row, "id")?) || other == owner || is_given {
                continue;
            }
            let address = row.try_get::<Option<String>>("address")?;
            let interop = TrunkInterop {
                backup_addresses: items(&row, "backup_addresses")?,
                outbound_proxy: row.try_get("outbound_proxy")?,
                ..TrunkInterop::default()
            };
            let theirs = Claims::of(address.as_deref(), &interop, &networks(&row, "accept_from")?);
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
        let query = sql("SELECT * FROM trunks WHERE name = $1").bind(&declared.name);
        let stored = self.one(query, trunk_with_password).await?;
        let kept = || stored.as_ref().map(|(_, password)| password.clone());
        let password = declared.password.clone().or_else(kept).unwrap_or_default();
        let made = declared.trunk(stored.as_ref().map(|(stored, _)| stored), &password, now);
        let change = match &stored {
            None => {
                self.insert_trunk(&made, &password).await?;
                Change::Created
            }
            Some((stored, kept))
                if *kept == password
                    && *stored == (TrunkRecord { updated_at: stored.updated_at, ..made.clone() }) =>
            {
                Change::Unchanged
            }
            Some(_) => {
                self.update_trunk(&made, &password).await?;
                Change::Changed
            }
        };
        Ok((made.id, change))
    }
}

impl TrunkRow {
    /// Builds the declared trunk, based on the stored one if there is one.
    fn trunk(&self, stored: Option<&TrunkRecord>, password: &Secret, now: Timestamp) -> TrunkRecord {
        TrunkRecord {
            id: stored.map_or_else(|| TrunkId(Uuid::new_v4()), |stored| stored.id),
            organisation_id: self.organisation_id,
            name: self.name.clone(),
            address: self.address.clone(),
            accept_from: self.accept_from.clone(),
            priority: self.priority,
            username: self.username.clone(),
            has_password: !password.0.is_empty(),
            realm: self.realm.clone(),
            register: self.register,
            short_numbers: self.short_numbers.clone(),
            strict_source: self.strict_source,
            srtp: self.srtp,
            video: self.video,
            max_call_seconds: self.max_call_seconds,
            interop: self.interop.clone(),
            created_at: stored.map_or(now, |stored| stored.created_at),
            updated_at: now,
        }
    }
}

/// The message for a refused trunk.
pub const CLASH: &str =
    "a trunk of another organisation, or one that all share, has this carrier; make one trunk that all share";
