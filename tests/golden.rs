//! The golden captures: each is read and gives the answer that its index promises.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop at the first surprise"
)]

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use sidetone::capture::golden::{self, Golden, Is};
use sidetone::capture::{self, Analysis};

fn bytes(golden: &Golden) -> Vec<u8> {
    let mut file = Vec::new();
    golden.write(&mut file).unwrap();
    file
}

fn analysis(golden: &Golden) -> Analysis {
    let file = bytes(golden);
    let outcome = capture::read(golden.name, &mut &file[..], &mut |_| {});
    assert!(outcome.broken.is_none(), "{}: {:?}", golden.name, outcome.broken);
    outcome.analysis
}

fn holds(is: Is, found: Option<&Value>) -> bool {
    match (is, found) {
        (Is::Absent, found) => found.is_none(),
        (_, None) => false,
        (Is::Between(from, to), Some(found)) => {
            found.as_f64().is_some_and(|value| (from..=to).contains(&value))
        }
        (Is::Flag(flag), Some(found)) => found.as_bool() == Some(flag),
        (Is::Number(number), Some(found)) => {
            found.as_f64().is_some_and(|value| (value - number).abs() < 0.000_001)
        }
        (Is::Text(text), Some(found)) => found.as_str() == Some(text),
    }
}

#[test]
fn every_golden_capture_has_its_right_answer() {
    let mut problems = Vec::new();
    for golden in golden::all() {
        let analysis = analysis(golden);
        let json = serde_json::to_value(&analysis).unwrap();
        let verdict = json.pointer("/calls/0/media_verdict").and_then(Value::as_str);
        if verdict != Some(golden.verdict) || analysis.calls.len() != 1 {
            let evidence = analysis.calls.first().map(|call| &call.evidence);
            problems.push(format!("{}: {verdict:?}, not {}: {evidence:?}", golden.name, golden.verdict));
        }
        for expected in golden.figures {
            let found = json.pointer(expected.at);
            if !holds(expected.is, found) {
                problems
                    .push(format!("{}: {} is {found:?}, not {:?}", golden.name, expected.at, expected.is));
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn golden_captures_are_small_and_the_same_every_time() {
    let mut names: Vec<_> = golden::all().map(|golden| golden.name).collect();
    for golden in golden::all() {
        let file = bytes(golden);
        assert!(file.len() <= 300_000, "{} has {} bytes", golden.name, file.len());
        assert_eq!(file, bytes(golden), "{}", golden.name);
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "each has a name of its own");
    for (verdict, name) in sidetone_model::quality::MediaVerdict::ALL {
        assert!(golden::all().any(|golden| golden.verdict == name), "{verdict:?}");
    }
}

#[test]
fn a_folder_is_filled_and_filled_again_but_nothing_of_others_is_written_over() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("golden");
    let _ = fs::remove_dir_all(&folder);
    let mut told = Vec::new();
    golden::write(&folder, &mut |name, len| told.push((name.to_owned(), len))).unwrap();
    assert_eq!(told.len(), golden::all().count());
    let index: Value = serde_json::from_slice(&fs::read(folder.join(golden::INDEX)).unwrap()).unwrap();
    for (entry, (name, len)) in index["captures"].as_array().unwrap().iter().zip(&told) {
        assert_eq!(entry["file"], name.as_str());
        assert_eq!(fs::metadata(folder.join(name)).unwrap().len(), *len);
    }
    golden::write(&folder, &mut |_, _| {}).expect("a corpus may be written anew");
    fs::write(folder.join(golden::INDEX), "{}").unwrap();
    let refused = golden::write(&folder, &mut |_, _| {}).unwrap_err().to_string();
    assert!(refused.contains("is there already"), "{refused}");
    fs::remove_dir_all(&folder).unwrap();
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("ok.pcap"), "mine").unwrap();
    let refused = golden::write(&folder, &mut |_, _| {}).unwrap_err().to_string();
    assert!(refused.contains("ok.pcap is there already"), "{refused}");
    assert_eq!(fs::read(folder.join("ok.pcap")).unwrap(), b"mine");
}
