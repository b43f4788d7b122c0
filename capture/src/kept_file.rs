//! A temporary file of a test.

use std::fs::{self, File};
use std::path::PathBuf;

/// A file that is removed when dropped.
pub(crate) struct Kept(pub(crate) PathBuf);

impl Kept {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("sidetone-capture-{}", uuid::Uuid::new_v4()));
        fs::write(&path, bytes).unwrap();
        Kept(path)
    }

    pub(crate) fn open(&self) -> File {
        File::open(&self.0).unwrap()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
