//! The transaction that applies declarations, and the operations that all of its parts share.

use sidetone_model::ids::{OrganisationId, TeamId};
use sidetone_model::time::Timestamp;
use sidetone_store::{Change, StoreError, WriteTransaction};

use crate::accounts::hash::HashError;
use crate::fields::{Problem, key_of};
use crate::provision::report::Report;
use crate::provision::room_pins::DefaultPin;

/// Why nothing was applied.
#[derive(Debug, thiserror::Error)]
pub enum ProvisionError {
    /// A password cannot be hashed.
    #[error(transparent)]
    Hash(#[from] HashError),
    /// Declarations contradict stored data; each problem with the index of its file.
    #[error("the files do not fit what is stored")]
    Refused(Vec<(usize, Problem)>),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The declarations being applied.
pub(super) struct Work<'r, R> {
    pub(super) write: WriteTransaction,
    pub(super) now: Timestamp,
    pub(super) rng: &'r mut R,
    pub(super) dry_run: bool,
    pub(super) report: Report,
    pub(super) default_pin: DefaultPin,
    /// The index of the file that is being applied.
    pub(super) file: usize,
    pub(super) problems: Vec<(usize, Problem)>,
}

impl<R> Work<'_, R> {
    /// The PIN of a new room that is declared without one.
    pub(super) fn default_pin(&self) -> DefaultPin {
        self.default_pin
    }

    pub(super) fn refuse(&mut self, path: &str, key: &str, message: String) {
        self.problems.push((self.file, Problem::new(key_of(path, key), message)));
    }

    pub(super) async fn team(
        &mut self,
        id: OrganisationId,
        name: &str,
        path: &str,
    ) -> Result<Option<TeamId>, StoreError> {
        let team = self.write.find_team(id, name).await?;
        if team.is_none() {
            self.refuse(path, "team", format!("there is no team \"{name}\", declare it under teams"));
        }
        Ok(team)
    }

    /// Turns a value that another row already has into a problem of the file.
    pub(super) fn allowed<T>(
        &mut self,
        result: Result<T, StoreError>,
        path: &str,
        message: &str,
    ) -> Result<Option<T>, StoreError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(StoreError::Taken { column }) => {
                let key = if column == "short_id" { "key" } else { column };
                self.refuse(path, key, message.to_owned());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The id to report; a row that a dry run would create has none yet.
    pub(super) fn shown(&self, id: impl ToString, change: Change) -> Option<String> {
        (!self.dry_run || change != Change::Created).then(|| id.to_string())
    }
}

/// 119 bits, still short enough to type into a phone.
pub(super) const PASSWORD_LEN: usize = 20;
