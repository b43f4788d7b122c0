//! The switch nodes of the installation.

use sidetone_model::ids::NodeId;
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::columns::parsed;
use crate::sql::sql;
use crate::{Store, StoreError};

impl Store {
    /// Returns the id of the node called `name`, which is created at its first start.
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
}
