//! The files that a command reads, so that it never overwrites them: they are compared by device and inode,
//! which do not depend on names and links.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The regular files that a command reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inputs(Vec<(u64, u64)>);

impl Inputs {
    /// The files with those names, `-` for the standard input; a file that cannot be looked up is skipped.
    pub(crate) fn of(files: &[PathBuf]) -> Self {
        let identity = |path: &PathBuf| {
            let metadata = if path == Path::new("-") {
                File::from(io::stdin().as_fd().try_clone_to_owned().ok()?).metadata()
            } else {
                std::fs::metadata(path)
            };
            identity(&metadata.ok()?)
        };
        Inputs(files.iter().filter_map(identity).collect())
    }

    /// Refuses an output path that is one of the input files.
    ///
    /// *Errors*: it is one of them.
    pub(crate) fn check(&self, path: &Path) -> io::Result<()> {
        // A file that does not exist yet is not an input; one that cannot be looked up cannot be opened
        // either.
        std::fs::metadata(path).map_or(Ok(()), |metadata| self.check_opened(&metadata))
    }

    /// The same for the standard output.
    ///
    /// *Errors*: it is one of them.
    pub(crate) fn check_stdout(&self) -> io::Result<()> {
        let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        self.check_opened(&stdout.metadata()?)
    }

    /// Opens a file for writing and truncates it, unless it is an input.
    ///
    /// *Errors*: it is one of the input files, or the system refuses.
    pub(crate) fn create(&self, path: &Path) -> io::Result<File> {
        // Truncated only after the file is identified: its name may refer to another file by now.
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        let metadata = file.metadata()?;
        self.check_opened(&metadata)?;
        if metadata.is_file() {
            file.set_len(0)?;
        }
        Ok(file)
    }

    fn check_opened(&self, metadata: &Metadata) -> io::Result<()> {
        match identity(metadata) {
            Some(identity) if self.0.contains(&identity) => {
                let why =
                    "it is one of the files that are read and would be overwritten; choose another name";
                Err(io::Error::new(io::ErrorKind::AlreadyExists, why))
            }
            _ => Ok(()),
        }
    }
}

/// The identity of a regular file; writing to devices and pipes overwrites nothing.
fn identity(metadata: &Metadata) -> Option<(u64, u64)> {
    metadata.is_file().then(|| (metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_not_written_to_by_any_name() {
        let folder = std::env::temp_dir().join(format!("sidetone-inputs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = |name: &str| folder.join(name);
        std::fs::write(path("read"), b"capture").unwrap();
        std::fs::write(path("old"), b"an older report").unwrap();
        for name in ["hard", "soft"] {
            let _ = std::fs::remove_file(path(name));
        }
        std::fs::hard_link(path("read"), path("hard")).unwrap();
        std::os::unix::fs::symlink(path("read"), path("soft")).unwrap();
        let inputs = Inputs::of(&[path("read"), path("none"), "/dev/null".into()]);
        for name in ["read", "hard", "soft", "./read"] {
            let target = path(name);
            assert!(inputs.check(&target).is_err(), "{name}");
            assert!(inputs.create(&target).is_err(), "{name}");
            assert_eq!(std::fs::read(path("read")).unwrap(), b"capture", "{name}");
        }
        for target in [path("old"), path("new"), "/dev/null".into()] {
            inputs.check(&target).unwrap();
            inputs.create(&target).unwrap();
        }
        assert_eq!(std::fs::read(path("old")).unwrap(), b"", "emptied before it is written");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
