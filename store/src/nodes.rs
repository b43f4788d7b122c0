//! The switch nodes of the installation.

use sidetone_model::ids::NodeId;
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::columns::parsed;
use crate::sql::sql;
use crate::{Store, StoreError};

impl Store {
    /// Returns the id of the node with this name; the row is created at its first start.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn node(&self, name: &str, now: Timestamp) -> Result<NodeId, StoreError> {
        let row = sql("INSERT INTO nodes (id, name, created_at_us) VALUES ($1, $2, $3)
             ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id")
        .bind(Uuid::new_v4().to_string())
        .bind(name)
        .bind(now.as_micros())
        .fetch_one(self.writer())
        .await?;
        parsed(&row, "id")
    }

    /// Increments the heartbeat counter of a node, which shows that the node is alive.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn beat(&self, node: NodeId) -> Result<(), StoreError> {
        sql("UPDATE nodes SET beat = beat + 1 WHERE id = $1")
            .bind(node.to_string())
            .execute(self.writer())
            .await?;
        Ok(())
    }

    /// Returns the heartbeat counter of a node; 0 for a node without a row.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn beat_of(&self, node: NodeId) -> Result<i64, StoreError> {
        let row = sql("SELECT beat FROM nodes WHERE id = $1")
            .bind(node.to_string())
            .fetch_optional(self.readers())
            .await?;
        Ok(row.map(|row| row.try_get("beat")).transpose()?.unwrap_or_default())
    }
}
