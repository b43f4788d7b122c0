//! The files of the corpus and their index.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use serde_json::{Value, json};

use super::callee::CALLEE;
use super::capture_builder::CaptureBuilder;
use super::entry::{Expected, Golden, Is};
use super::miscounted::MISCOUNTED;
use super::misread::MISREAD;
use super::signalling::SENTENCES;
use super::verdicts::VERDICTS;

/// The name of the index, beside the captures.
pub const INDEX: &str = "golden.json";

/// Every capture of the corpus: the verdicts, the misread and miscounted cases, the sentences about calls
/// without audio, and calls in which only the called party's audio is damaged.
pub fn all() -> impl Iterator<Item = &'static Golden> {
    VERDICTS.iter().chain(&MISREAD).chain(&MISCOUNTED).chain(&SENTENCES).chain(&CALLEE)
}

/// Writes every capture and the index into `folder`, which is created if it does not exist; `written` is called
/// with each file's name and length after it is written.
///
/// *Errors*: those of the file system; a file of another origin with the same name, in which case nothing is
/// overwritten.
pub fn write(folder: &Path, written: &mut dyn FnMut(&str, u64)) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    refuse_foreign(folder)?;
    let index = File::create(folder.join(INDEX))?;
    serde_json::to_writer_pretty(&index, &contents())?;
    writeln!(&index)?;
    for golden in all() {
        let name = golden.file();
        let path = folder.join(&name);
        golden.write(BufWriter::new(File::create(&path)?))?;
        written(&name, fs::metadata(&path)?.len());
    }
    Ok(())
}

impl Golden {
    /// Its file name.
    pub fn file(&self) -> String {
        format!("{}.pcap", self.name)
    }

    /// Whether it holds media, and not only signalling.
    pub fn has_media(&self) -> bool {
        let mut capture = CaptureBuilder::new();
        (self.record)(&mut capture);
        capture.has_media()
    }

    /// Writes the capture; the same bytes every time. Returns the number of packets.
    ///
    /// *Errors*: write errors of `out`.
    pub fn write<W: io::Write>(&self, out: W) -> io::Result<u64> {
        let mut capture = CaptureBuilder::new();
        (self.record)(&mut capture);
        capture.write(out)
    }
}

/// Refuses to overwrite files unless the folder has an index of this corpus.
fn refuse_foreign(folder: &Path) -> io::Result<()> {
    let index = folder.join(INDEX);
    let ours = fs::read(&index)
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok())
        .is_some_and(|index| index.get("corpus").and_then(Value::as_str) == Some(CORPUS));
    let in_the_way =
        all().map(Golden::file).chain([INDEX.to_owned()]).find(|name| folder.join(name).exists());
    match in_the_way {
        Some(name) if !ours => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!("{name} is there already and not of a golden corpus; name an empty folder"),
        )),
        _ => Ok(()),
    }
}

fn contents() -> Value {
    let captures: Vec<Value> = all().map(described).collect();
    json!({ "corpus": CORPUS, "captures": captures })
}

fn described(golden: &Golden) -> Value {
    let mut entry = json!({ "file": golden.file(), "shows": golden.shows });
    if let Some(fields) = entry.as_object_mut() {
        if !golden.misread.is_empty() {
            fields.insert("misread".into(), golden.misread.into());
        }
        let verdict = Some(golden.verdict).filter(|verdict| !verdict.is_empty());
        fields.insert("media_verdict".into(), verdict.into());
        let figures: Vec<Value> = golden.figures.iter().map(figure).collect();
        fields.insert("figures".into(), figures.into());
    }
    entry
}

fn figure(expected: &Expected) -> Value {
    let at = expected.at;
    match expected.is {
        Is::Absent => json!({ "at": at, "absent": true }),
        Is::Between(from, to) => json!({ "at": at, "from": from, "to": to }),
        Is::Flag(flag) => json!({ "at": at, "is": flag }),
        Is::Number(number) => json!({ "at": at, "is": number }),
        Is::Text(text) => json!({ "at": at, "is": text }),
    }
}

/// Identifies the corpus in its index.
const CORPUS: &str = "sidetone golden captures 1";
