//! Serializes the two writers of the tokens that a record gets from its conversation.

use crate::sql::{Connection, sql};

/// The two writers of the tokens that a record gets from its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AiTokens {
    /// Stores records, with the tokens of stored conversations.
    Read,
    /// Writes tokens to the stored record of a conversation.
    Written,
}

/// Excludes the other writer until the transaction ends, so that one of the two sees what the other
/// stored: a record and its conversation are often stored at the same instant. On SQLite there is only
/// one writing transaction anyway.
pub(super) async fn hold(connection: &mut Connection, side: AiTokens) -> Result<(), sqlx::Error> {
    if let Connection::Sqlite(..) = connection {
        return Ok(());
    }
    let lock = match side {
        AiTokens::Read => "SELECT pg_advisory_xact_lock_shared($1)",
        AiTokens::Written => "SELECT pg_advisory_xact_lock($1)",
    };
    sql(lock).bind(AI_TOKENS_LOCK).execute(connection).await?;
    Ok(())
}

/// A number that no other lock of this program uses.
const AI_TOKENS_LOCK: i64 = 0x5EED_0060;
