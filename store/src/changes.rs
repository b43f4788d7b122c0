//! Detects whether the stored data may have changed, without a query to the database.
//!
//! Every commit of SQLite in WAL mode, by this process or another, is written to the file `-wal` beside the database.
//! While that file stays the same, nothing was committed. PostgreSQL has no such indication.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::database::Store;

/// The state of the file at one reader's last check.
#[derive(Debug)]
pub struct Changes {
    wal: Option<PathBuf>,
    /// The modification time and length of the file; `None` when it did not exist.
    seen: Option<(SystemTime, u64)>,
    /// Whether data written before the last check may become visible only later: the file was modified very recently.
    is_young: bool,
    /// Consecutive checks without a change.
    quiet: u32,
}

impl Store {
    /// A reader that has not checked yet.
    pub fn changes(&self) -> Changes {
        Changes::of(self.wal())
    }
}

impl Changes {
    fn of(wal: Option<&Path>) -> Self {
        Changes { wal: wal.map(Path::to_path_buf), seen: None, is_young: true, quiet: 0 }
    }

    /// Whether a commit may have been made since the last call. Always true on PostgreSQL, at the first call, and
    /// after `QUIET_MAX` calls without a change.
    pub fn may_have_come(&mut self) -> bool {
        let Some(wal) = &self.wal else { return true };
        let seen = fs::metadata(wal).and_then(|file| Ok((file.modified()?, file.len()))).ok();
        let is_young =
            seen.is_some_and(|(modified, _)| !modified.elapsed().is_ok_and(|age| age >= SETTLED_AFTER));
        let is_quiet = seen == self.seen && !self.is_young;
        (self.seen, self.is_young) = (seen, is_young);
        self.quiet = if is_quiet && self.quiet < QUIET_MAX { self.quiet + 1 } else { 0 };
        self.quiet == 0
    }

    /// Makes the next call of [`Changes::may_have_come`] return true: the new data could not be read.
    pub fn forget(&mut self) {
        self.is_young = true;
    }
}

/// A commit becomes visible some time after its last write, when the disk has stored it. Also, two writes within one
/// kernel tick leave the same modification time.
const SETTLED_AFTER: Duration = Duration::from_secs(5);
/// After this many checks without a change, the database is queried anyway.
const QUIET_MAX: u32 = 60;

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_file_that_stays_the_same_is_quiet() {
        let path = std::env::temp_dir().join(format!("sidetone-changes-{}", std::process::id()));
        let mut changes = Changes::of(Some(&path));
        assert!(changes.may_have_come(), "the first look");
        assert!(!changes.may_have_come(), "no file");
        let write = |at: u64| {
            fs::write(&path, b"frames").unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(at)).unwrap();
        };
        write(1_000);
        assert!(changes.may_have_come(), "a file");
        assert!(!changes.may_have_come());
        write(1_001);
        assert!(changes.may_have_come(), "a later write");
        assert!(!changes.may_have_come());
        changes.forget();
        assert!(changes.may_have_come(), "it could not be read");
        assert_eq!((0..QUIET_MAX).filter(|_| changes.may_have_come()).count(), 0);
        assert!(changes.may_have_come(), "from time to time");
        // The file was modified just now, or in the future of this clock: more may follow.
        let now = File::options().write(true).open(&path).unwrap();
        now.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 33)).unwrap();
        assert!(changes.may_have_come() && changes.may_have_come() && changes.may_have_come());
        fs::remove_file(&path).unwrap();
        assert!(changes.may_have_come(), "it was removed");
        assert!(Changes::of(None).may_have_come() && Changes::of(None).may_have_come(), "no file to look at");
    }
}
