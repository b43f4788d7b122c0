//! The call-info URLs of organisations, requested for answered calls, and the secrets of their callbacks as declared.

use sidetone_model::call_info::{CallInfoTarget, CallInfoTargets};
use sidetone_model::directory::Secret;
use sidetone_model::ids::OrganisationId;
use sidetone_model::ports::PortFuture;
use sidetone_model::time::Timestamp;

use crate::sql::{Row, sql};
use crate::{Change, Store, StoreError, WriteTransaction};

impl CallInfoTargets for Store {
    fn target(&self, organisation: OrganisationId) -> PortFuture<'_, Option<CallInfoTarget>> {
        Box::pin(async move {
            let query = sql("SELECT call_info_url, call_info_secret FROM organisations WHERE id = $1")
                .bind(organisation.to_string());
            Ok(self.one(query, target).await?.flatten())
        })
    }
}

impl WriteTransaction {
    /// Sets the organisation's call-info URL and secret as declared; `None` removes them.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn declare_call_info(
        &mut self,
        organisation: OrganisationId,
        declared: Option<&CallInfoTarget>,
        now: Timestamp,
    ) -> Result<Change, StoreError> {
        let (url, secret) =
            declared.map_or(("", ""), |target| (target.url.as_str(), target.secret.0.as_str()));
        let done =
            sql("UPDATE organisations SET call_info_url = $1, call_info_secret = $2, updated_at_us = $3
             WHERE id = $4 AND (call_info_url <> $1 OR call_info_secret <> $2)")
            .bind(url)
            .bind(secret)
            .bind(now.as_micros())
            .bind(organisation.to_string())
            .execute(&mut *self.transaction)
            .await?;
        Ok(if done.rows_affected() == 0 { Change::Unchanged } else { Change::Changed })
    }
}

impl WriteTransaction {
    /// Sets the organisation's secret of callbacks as declared; an empty one removes it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn declare_callback_secret(
        &mut self,
        organisation: OrganisationId,
        secret: &Secret,
        now: Timestamp,
    ) -> Result<Change, StoreError> {
        let done = sql("UPDATE organisations SET callback_secret = $1, updated_at_us = $2
             WHERE id = $3 AND callback_secret <> $1")
        .bind(&secret.0)
        .bind(now.as_micros())
        .bind(organisation.to_string())
        .execute(&mut *self.transaction)
        .await?;
        Ok(if done.rows_affected() == 0 { Change::Unchanged } else { Change::Changed })
    }
}

fn target(row: &Row) -> Result<Option<CallInfoTarget>, StoreError> {
    let url: String = row.try_get("call_info_url")?;
    let secret = Secret(row.try_get("call_info_secret")?);
    // No row has only one of them; a request is not sent without a signature.
    Ok((!url.is_empty() && !secret.0.is_empty()).then_some(CallInfoTarget { url, secret }))
}
