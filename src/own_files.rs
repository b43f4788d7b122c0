//! Recordings and traces on the disk of this node, for other nodes.

use std::fs::File;
use std::io;

use sidetone_model::media_quality::LegTrace;
use sidetone_model::open_file::OpenFile;
use sidetone_model::problem::Problem;

use crate::far_files::FilePlace;
use crate::open_file::{Opened, beside};
use crate::recorder::{DataDisk, Disk as _};
use crate::trace_files::TraceFiles;

/// The files of this node.
#[derive(Clone, Debug)]
pub struct OwnFiles {
    disk: DataDisk,
    traces: TraceFiles,
}

impl OwnFiles {
    /// The recordings and traces below these directories.
    pub fn new(disk: DataDisk, traces: TraceFiles) -> Self {
        OwnFiles { disk, traces }
    }

    /// Opens a file; `None` if it does not exist.
    ///
    /// # Errors
    /// [`Problem::Internal`] when the disk fails.
    pub async fn open(&self, place: &FilePlace) -> Result<Option<Box<dyn OpenFile>>, Problem> {
        match place {
            FilePlace::Recording { organisation, session } => {
                let path = self.disk.path(*organisation, *session);
                let opened = beside(HOLDS, move || match File::open(path) {
                    Ok(file) => Opened::new(file, HOLDS).map(Some),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(error),
                });
                Ok(opened.await?.map(|file| Box::new(file) as Box<dyn OpenFile>))
            }
            // A name that leaves the directory is not the name of a trace.
            FilePlace::Trace { name } => {
                self.traces.open_here(&LegTrace { file: name.clone(), bytes: 0 }).await
            }
        }
    }

    /// Deletes the file of a recording; a missing file counts as deleted.
    ///
    /// # Errors
    /// [`Problem::Internal`] when the disk fails, [`Problem::Conflict`] for a trace, which its node deletes itself.
    pub async fn remove(&self, place: &FilePlace) -> Result<(), Problem> {
        let FilePlace::Recording { organisation, session } = *place else {
            return Err(Problem::Conflict("a trace is deleted by its node alone".to_owned()));
        };
        let mut disk = self.disk.clone();
        beside(HOLDS, move || disk.remove(organisation, session)).await
    }
}

/// The content of the disk, for error messages.
const HOLDS: &str = "recordings";
