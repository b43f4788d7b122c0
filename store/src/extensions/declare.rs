//! Extensions as apply files declare them.

use sidetone_model::directory::{Ha1, Srtp, StrictSource, Video};
use sidetone_model::extension::ExtensionRecord;
use sidetone_model::forwarding::Forwarding;
use sidetone_model::ids::{ExtensionId, OrganisationId, TeamId};
use sidetone_model::language::Language;
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::columns::parsed_opt;
use crate::extensions::rows::extension_with_ha1;
use crate::sql::sql;
use crate::{Change, StoreError, WriteTransaction};

/// An extension as it is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionRow {
    /// The organisation it belongs to.
    pub organisation_id: OrganisationId,
    /// Its number, the natural key within the organisation.
    pub number: String,
    /// The person's name.
    pub name: String,
    /// The team that its records belong to.
    pub team_id: Option<TeamId>,
    /// Its credential; `None` keeps the stored one.
    pub ha1: Option<Ha1>,
    /// Codecs in order of preference; empty means every codec.
    pub codecs: Vec<String>,
    /// Which source address its media must have; `None` means the node's setting.
    pub strict_source: Option<StrictSource>,
    /// Whether its media is encrypted.
    pub srtp: Srtp,
    /// Whether it has video.
    pub video: Video,
    /// The targets that its calls go to instead of its phones; `None` keeps the stored forwarding.
    pub forwarding: Option<Forwarding>,
    /// Whether it refuses calls; `None` keeps the stored value.
    pub do_not_disturb: Option<bool>,
    /// The language of its prompts; `None` keeps the stored value.
    pub language: Option<Language>,
    /// How many phones may be registered at the same time.
    pub max_registrations: u32,
    /// Whether its phones are sent the state of its mailbox without a subscription.
    pub notify_message_waiting: bool,
}

impl WriteTransaction {
    /// Returns the extension of that number.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn find_extension(
        &mut self,
        organisation: OrganisationId,
        number: &str,
    ) -> Result<Option<ExtensionId>, StoreError> {
        let row = sql("SELECT id FROM extensions WHERE organisation_id = $1 AND number = $2")
            .bind(organisation.to_string())
            .bind(number)
            .fetch_optional(&mut *self.transaction)
            .await?;
        row.map_or(Ok(None), |row| parsed_opt(&row, "id"))
    }

    /// The numbers of every extension of an organisation, in order.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn extension_numbers(
        &mut self,
        organisation: OrganisationId,
    ) -> Result<Vec<String>, StoreError> {
        let rows = sql("SELECT number FROM extensions WHERE organisation_id = $1 ORDER BY number")
            .bind(organisation.to_string())
            .fetch_all(&mut *self.transaction)
            .await?;
        rows.iter().map(|row| Ok(row.try_get("number")?)).collect()
    }

    /// Creates or updates the extension as declared.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when a new one has no credential; otherwise when the database fails.
    pub async fn declare_extension(
        &mut self,
        declared: &ExtensionRow,
        now: Timestamp,
    ) -> Result<(ExtensionId, Change), StoreError> {
        let query = sql("SELECT * FROM extensions WHERE organisation_id = $1 AND number = $2")
            .bind(declared.organisation_id.to_string())
            .bind(&declared.number);
        let stored = self.one(query, extension_with_ha1).await?;
        let kept = stored.as_ref().map(|(_, ha1)| ha1);
        let ha1 = declared.ha1.as_ref().or(kept).ok_or(StoreError::Corrupt { column: "ha1_md5" })?;
        let made = declared.extension(stored.as_ref().map(|(stored, _)| stored), now);
        let change = match &stored {
            None => {
                self.insert_extension(&made, ha1).await?;
                Change::Created
            }
            Some((stored, kept))
                if kept == ha1
                    && *stored == (ExtensionRecord { updated_at: stored.updated_at, ..made.clone() }) =>
            {
                Change::Unchanged
            }
            Some(_) => {
                self.update_extension(&made, ha1).await?;
                Change::Changed
            }
        };
        Ok((made.id, change))
    }
}

impl ExtensionRow {
    /// Builds the declared extension, based on the stored one if there is one.
    fn extension(&self, stored: Option<&ExtensionRecord>, now: Timestamp) -> ExtensionRecord {
        ExtensionRecord {
            id: stored.map_or_else(|| ExtensionId(Uuid::new_v4()), |stored| stored.id),
            organisation_id: self.organisation_id,
            team_id: self.team_id,
            number: self.number.clone(),
            name: self.name.clone(),
            codec_string: self.codecs.join(","),
            strict_source: self.strict_source,
            srtp: self.srtp,
            video: self.video,
            forwarding: self
                .forwarding
                .clone()
                .or_else(|| stored.map(|stored| stored.forwarding.clone()))
                .unwrap_or_default(),
            do_not_disturb: self
                .do_not_disturb
                .unwrap_or_else(|| stored.is_some_and(|stored| stored.do_not_disturb)),
            language: self.language.or_else(|| stored.and_then(|stored| stored.language)),
            max_registrations: self.max_registrations,
            notify_message_waiting: self.notify_message_waiting,
            created_at: stored.map_or(now, |stored| stored.created_at),
            updated_at: now,
        }
    }
}
