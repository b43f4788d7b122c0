//! The message-waiting state of extensions' mailboxes, as their organisations set it.

use sidetone_model::access::Scope;
use sidetone_model::ids::ExtensionId;
use sidetone_model::message_waiting::MessageWaiting;
use sidetone_model::problem::Problem;

use crate::columns::number;
use crate::scope::within;
use crate::sql::{Row, sql};
use crate::statement::Statement;
use crate::{Change, Store, StoreError};

impl Store {
    /// The messages in the mailbox of an extension inside `scope`.
    ///
    /// # Errors
    /// When there is no such extension, or the database fails.
    pub async fn message_waiting(
        &self,
        scope: Scope,
        extension: ExtensionId,
    ) -> Result<MessageWaiting, Problem> {
        let mut statement = Statement::new("SELECT * FROM extensions");
        within(&mut statement, scope);
        statement.bind(" AND id = ", extension.to_string(), "");
        let found = self.one(statement.query(), message_waiting).await?;
        found.ok_or_else(|| Problem::NotFound("there is no such extension".to_owned()))
    }

    /// Replaces the messages in the mailbox of an extension inside `scope`. Every switch gets them with its next read
    /// of the directory.
    ///
    /// # Errors
    /// When there is no such extension, or the database fails.
    pub async fn set_message_waiting(
        &self,
        scope: Scope,
        extension: ExtensionId,
        waiting: MessageWaiting,
    ) -> Result<(), Problem> {
        let mut write = self.write().await?;
        let (found, _) = write.extension_inside(scope, extension).await?;
        let statement =
            sql("UPDATE extensions SET messages_new = $1, messages_old = $2, messages_urgent_new = $3,
             messages_urgent_old = $4 WHERE id = $5 AND organisation_id = $6")
            .bind(i64::from(waiting.new))
            .bind(i64::from(waiting.old))
            .bind(i64::from(waiting.urgent_new))
            .bind(i64::from(waiting.urgent_old))
            .bind(extension.to_string())
            .bind(found.organisation_id.to_string());
        write.finish(statement, Change::Changed).await?;
        Ok(())
    }
}

/// The mailbox in the row of an extension.
pub(crate) fn message_waiting(row: &Row) -> Result<MessageWaiting, StoreError> {
    Ok(MessageWaiting {
        new: number(row, "messages_new")?,
        old: number(row, "messages_old")?,
        urgent_new: number(row, "messages_urgent_new")?,
        urgent_old: number(row, "messages_urgent_old")?,
    })
}
