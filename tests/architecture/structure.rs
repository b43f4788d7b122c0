//! The rules about the graph of files, about sizes, and about the map in `ARCHITECTURE.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::OnceLock;

use crate::circles::{circles, describe};
use crate::imports::graph;
use crate::modules::{Crate, read_crate};

/// Lines that no source file may pass, tests included.
const FILE_LINES_MAX: usize = 700;
/// Lines that no function outside tests may pass, from its `fn` to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;
/// Circles that wait to be broken: one paragraph for each, one line for each of its files.
const KNOWN_CIRCLES: &str = "tests/architecture/known_circles.txt";
/// Functions that wait to be divided: `file: name`.
const KNOWN_LONG_FUNCTIONS: &str = "tests/architecture/known_long_functions.txt";

/// No file needs a file that needs it, over any number of others.
///
/// `SIDETONE_BLESS=1` writes the list of known circles anew, for files that moved; the list may only become shorter.
#[test]
fn no_new_circle_of_files() {
    let mut found = BTreeMap::new();
    for read in crates() {
        let graph = graph(read);
        found.extend(circles(&graph).into_iter().map(|group| {
            let text = describe(&graph, &group);
            (group, text)
        }));
    }
    if std::env::var_os("SIDETONE_BLESS").is_some() {
        let groups: Vec<String> =
            found.keys().map(|group| group.iter().map(|file| format!("{file}\n")).collect()).collect();
        fs::write(crate::root().join(KNOWN_CIRCLES), groups.join("\n")).expect("the list is writable");
    }
    let complaints = compare(&found, &known(&text_of(KNOWN_CIRCLES)));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// What differs between the circles that are there, each with its description, and those that are known.
pub(crate) fn compare(
    found: &BTreeMap<BTreeSet<String>, String>,
    known: &BTreeSet<BTreeSet<String>>,
) -> Vec<String> {
    let mut complaints = Vec::new();
    for (group, text) in found.iter().filter(|(group, _)| !known.contains(*group)) {
        let smaller = known.iter().any(|listed| group.is_subset(listed));
        let advice = if smaller {
            format!("a known circle became smaller; write that into {KNOWN_CIRCLES}")
        } else {
            "a new circle; move what both sides need into a file below them".to_owned()
        };
        complaints.push(format!("{advice}: {text}"));
    }
    for group in known.iter().filter(|group| !found.contains_key(*group)) {
        if !found.keys().any(|there| there.is_subset(group)) {
            complaints.push(format!("this circle is gone; take it out of {KNOWN_CIRCLES}: {group:#?}"));
        }
    }
    complaints
}

/// The paragraphs of a list of circles.
pub(crate) fn known(list: &str) -> BTreeSet<BTreeSet<String>> {
    let paragraphs = list.split("\n\n").map(|paragraph| paragraph.lines().map(str::to_owned).collect());
    paragraphs.filter(|group: &BTreeSet<String>| !group.is_empty()).collect()
}

#[test]
fn files_and_functions_stay_readable() {
    let mut broken = Vec::new();
    let mut roots = vec!["tests".to_owned(), "benches".to_owned()];
    roots.extend(crate_roots().iter().map(|root| root.trim_end_matches("/lib.rs").to_owned()));
    let mut files = 0;
    for file in roots.iter().flat_map(|root| crate::rust_files(root)) {
        files += 1;
        let lines = fs::read_to_string(&file).expect("source files are readable").lines().count();
        if lines > FILE_LINES_MAX {
            broken.push(format!("{} has {lines} lines; look for a second idea", crate::relative(&file)));
        }
    }
    assert!(files > 500, "only {files} files were read");
    let list = text_of(KNOWN_LONG_FUNCTIONS);
    let known: BTreeSet<&str> = list.lines().collect();
    let mut long = BTreeSet::new();
    for function in crates().iter().flat_map(|read| &read.functions) {
        if function.lines > FUNCTION_LINES_MAX {
            let name = format!("{}: {}", function.file, function.name);
            if !known.contains(name.as_str()) {
                broken.push(format!("{name} (line {}) has {} lines", function.line, function.lines));
            }
            long.insert(name);
        }
    }
    for name in known.into_iter().filter(|name| !long.contains(*name)) {
        broken.push(format!("{name} is short now or gone; take it out of {KNOWN_LONG_FUNCTIONS}"));
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Every crate of the workspace and every module at the top of `src/` has its line on the map, and every line its file.
#[test]
fn the_map_lists_every_part() {
    let map = text_of("ARCHITECTURE.md");
    let listed = first_column(&map);
    let mut there: BTreeSet<String> = members().into_iter().collect();
    let engine =
        crates().iter().find(|read| read.modules[0].file == "src/lib.rs").expect("the engine is read");
    for child in engine.modules[0].children.values() {
        there.insert(engine.modules[*child].file.trim_end_matches("/mod.rs").to_owned());
    }
    let missing: Vec<&String> = there.iter().filter(|part| !listed.contains(*part)).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md has no line for {missing:#?}");
    let gone: Vec<&String> = listed.iter().filter(|part| !crate::root().join(part).exists()).collect();
    assert!(gone.is_empty(), "ARCHITECTURE.md has lines for what is not there: {gone:#?}");
}

/// The paths in the first column of the tables of a document. A bare file name stands in the folder of the path before it.
pub(crate) fn first_column(document: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for row in document.lines().filter_map(|line| line.strip_prefix("| ")) {
        let cell = row.split(" | ").next().unwrap_or_default();
        let mut folder = "";
        for path in cell.split('`').skip(1).step_by(2) {
            let whole = if path.contains('/') { path.to_owned() } else { format!("{folder}/{path}") };
            folder = path.rsplit_once('/').map_or(folder, |(folder, _)| folder);
            found.insert(whole.trim_end_matches('/').to_owned());
        }
    }
    found
}

/// The folders of the workspace's members.
fn members() -> Vec<String> {
    let manifest: toml::Table = text_of("Cargo.toml").parse().expect("Cargo.toml is TOML");
    let members = manifest["workspace"]["members"].as_array().expect("members are a list");
    members.iter().map(|member| member.as_str().expect("a member is a path").to_owned()).collect()
}

fn crate_roots() -> Vec<String> {
    let mut roots: Vec<String> = members().iter().map(|member| format!("{member}/src/lib.rs")).collect();
    roots.push("src/lib.rs".to_owned());
    roots
}

/// Every crate of the workspace, read once for all rules.
fn crates() -> &'static [Crate] {
    static CRATES: OnceLock<Vec<Crate>> = OnceLock::new();
    CRATES.get_or_init(|| {
        let read = |path: &str| fs::read_to_string(crate::root().join(path)).ok();
        let crates: Vec<Crate> = crate_roots().iter().map(|root| read_crate(root, &read)).collect();
        for read in &crates {
            assert!(read.modules.len() > 2, "{} declares no modules", read.modules[0].file);
        }
        crates
    })
}

fn text_of(path: &str) -> String {
    fs::read_to_string(crate::root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}
