//! The traces of legs, on this node's disk and those of others.

use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use sidetone_model::ids::NodeId;
use sidetone_model::leg_trace::LegTraces;
use sidetone_model::media_quality::LegTrace;
use sidetone_model::open_file::OpenFile;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;

use crate::far_files::{FarFiles, FilePlace};
use crate::open_file::{Opened, beside};

/// The directory of traces.
#[derive(Clone, Debug)]
pub struct TraceFiles {
    dir: PathBuf,
}

impl TraceFiles {
    /// The traces below a directory.
    pub fn new(dir: PathBuf) -> Self {
        TraceFiles { dir }
    }
}

impl TraceFiles {
    /// Opens a trace; `None` if it is not on this node.
    ///
    /// # Errors
    /// [`Problem::Internal`] when the disk fails.
    pub async fn open_here(&self, trace: &LegTrace) -> Result<Option<Box<dyn OpenFile>>, Problem> {
        let Some(path) = below(&self.dir, &trace.file) else { return Ok(None) };
        let opened = beside(HOLDS, move || opened(&path)).await?;
        Ok(opened.map(|file| Box::new(file) as Box<dyn OpenFile>))
    }
}

/// The traces of all nodes.
#[derive(Clone, Debug)]
pub struct NodeTraces {
    /// This node.
    pub node: NodeId,
    /// The traces of this node.
    pub own: TraceFiles,
    /// The traces of the other nodes; `None` for a standalone node.
    pub far: Option<Arc<dyn FarFiles>>,
}

impl LegTraces for NodeTraces {
    fn open<'a>(
        &'a self,
        node: Option<NodeId>,
        trace: &'a LegTrace,
    ) -> PortFuture<'a, Option<Box<dyn OpenFile>>> {
        Box::pin(async move {
            match (node.filter(|node| *node != self.node), &self.far) {
                (Some(node), Some(far)) => {
                    far.open(node, FilePlace::Trace { name: trace.file.clone() }).await
                }
                _ => self.own.open_here(trace).await,
            }
        })
    }
}

/// The path of a trace: a day and a file name; `None` for any other form.
fn below(dir: &Path, name: &str) -> Option<PathBuf> {
    let name = Path::new(name);
    let is_plain = name.components().all(|part| matches!(part, Component::Normal(_)));
    let is_trace = name.extension().is_some_and(|extension| extension == "trace");
    (is_plain && is_trace && name.components().count() == 2).then(|| dir.join(name))
}

fn opened(path: &Path) -> io::Result<Option<Opened>> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        file => Opened::new(file?, HOLDS).map(Some),
    }
}

/// The content of the disk, for error messages.
const HOLDS: &str = "traces";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_to_a_trace_and_to_nothing_else() {
        let dir = Path::new("/data/traces");
        let day = "2026-09-21/0197a0c4-a.trace";
        assert_eq!(below(dir, day), Some(dir.join(day)));
        for name in
            ["../x/y.trace", "/etc/x.trace", "2026-09-21/../x.trace", "a/b/c.trace", "x.trace", "a/b.txt", ""]
        {
            assert_eq!(below(dir, name), None, "{name}");
        }
    }

    #[tokio::test]
    async fn a_trace_is_read_while_it_is_there() {
        let dir = std::env::temp_dir().join(format!("sidetone-trace-files-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("2026-09-21")).unwrap();
        std::fs::write(dir.join("2026-09-21/x-a.trace"), b"sidetone-trace 1\n").unwrap();
        let files = TraceFiles::new(dir.clone());
        let of = |file: &str| LegTrace { file: file.to_owned(), bytes: 17 };
        let trace = files.open_here(&of("2026-09-21/x-a.trace")).await.unwrap().unwrap();
        assert_eq!(trace.bytes(), 17);
        assert_eq!(trace.read(0, 17).await.unwrap(), b"sidetone-trace 1\n");
        assert!(files.open_here(&of("2026-09-21/x-b.trace")).await.unwrap().is_none());
        std::fs::remove_dir_all(dir).unwrap();
    }
}
