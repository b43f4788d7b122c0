//! Fuzz targets on a stable compiler: a committed corpus, changes of it, and random bytes. A member's test includes this
//! file beside its own `mod targets`; the corpus is the member's.

use std::path::PathBuf;

use proptest::sample::Index;

/// The corpus of a target, with the names of its files.
pub(crate) fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(!files.is_empty() && files.len() <= FILES_MAX, "{target} has {} files", files.len());
    let read = |path: PathBuf| (path.display().to_string(), std::fs::read(path).unwrap());
    files.into_iter().map(read).collect()
}

/// A file with some bytes replaced, a piece of another file inserted, and its end cut off.
pub(crate) fn change(files: &[(String, Vec<u8>)], changes: &Changes) -> Vec<u8> {
    let (first, second, sets, (from, to), cut) = changes;
    let mut bytes = first.get(files).1.clone();
    let other = &second.get(files).1;
    if !other.is_empty() {
        let piece = &other[from.index(other.len())..];
        let piece = &piece[..piece.len().min(64)];
        let place = to.index(bytes.len() + 1);
        bytes.splice(place..place, piece.iter().copied());
    }
    for (place, value) in sets {
        if !bytes.is_empty() {
            let place = place.index(bytes.len());
            bytes[place] = *value;
        }
    }
    if let Some(cut) = cut {
        bytes.truncate(cut.index(bytes.len() + 1));
    }
    bytes
}

pub(crate) type Changes = (Index, Index, Vec<(Index, u8)>, (Index, Index), Option<Index>);

macro_rules! targets {
    ($($name:ident)+) => {$(
        mod $name {
            use std::sync::LazyLock;

            use proptest::collection::vec;
            use proptest::prelude::*;

            use crate::fuzzing::{Changes, change, corpus};
            use crate::targets;

            static FILES: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| corpus(stringify!($name)));

            #[test]
            fn the_corpus_is_survived() {
                for (name, bytes) in FILES.iter() {
                    eprintln!("{name}");
                    targets::$name(bytes);
                }
            }

            proptest! {
                #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

                #[test]
                fn changes_of_the_corpus_are_survived(changes: Changes) {
                    targets::$name(&change(&FILES, &changes));
                }

                #[test]
                fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..400)) {
                    targets::$name(&bytes);
                }
            }
        }
    )+};
}

/// The limit keeps a clone small and a replay short.
const FILES_MAX: usize = 200;
