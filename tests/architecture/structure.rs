//! The rules on the graph of files, on sizes, and on the map in `ARCHITECTURE.md`.

use std::collections::BTreeSet;
use std::fs;
use std::sync::OnceLock;

use crate::circles::{circles, describe};
use crate::imports::graph;
use crate::modules::{Crate, read_crate};

/// The largest number of lines of a source file, tests included.
const FILE_LINES_MAX: usize = 700;
/// The largest number of lines of a function outside tests, from its `fn` to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;
/// The examples.
const EXAMPLES: [&str; 1] = ["examples/load/main.rs"];

/// No file depends on itself through other files.
#[test]
fn no_circle_of_files() {
    let found: Vec<String> = crates()
        .iter()
        .map(graph)
        .flat_map(|graph| circles(&graph).iter().map(|group| describe(&graph, group)).collect::<Vec<_>>())
        .collect();
    assert!(
        found.is_empty(),
        "circles; move what both sides need into a file below them: {}",
        found.join("\n")
    );
}

#[test]
fn files_and_functions_stay_readable() {
    let mut broken = Vec::new();
    let mut roots = ["benches", "examples", "tests"].map(str::to_owned).to_vec();
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
    for function in crates().iter().flat_map(|read| &read.functions) {
        if function.lines > FUNCTION_LINES_MAX {
            let (file, name, line, lines) = (&function.file, &function.name, function.line, function.lines);
            broken.push(format!("{file}: {name} (line {line}) has {lines} lines"));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Every crate of the workspace and every top-level module of `src/` has a line on the map, and every line has its
/// file.
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

/// Every file that `ARCHITECTURE.md` and `docs/code-map.md` name exists; a path may begin below a crate.
#[test]
fn the_maps_name_files_that_exist() {
    let folders = members().into_iter().chain(MORE_FOLDERS.map(str::to_owned));
    let files = folders.flat_map(|folder| crate::rust_files(&folder));
    let files: Vec<String> = files.map(|file| format!("/{}/", crate::relative(&file))).collect();
    let exists = |named: &str| files.iter().any(|file| file.contains(&format!("/{named}/")));
    let mut gone = Vec::new();
    for document in ["ARCHITECTURE.md", "docs/code-map.md"] {
        let text = text_of(document);
        let named = named_files(&text);
        assert!(named.len() > 50, "{document}: the paths are read");
        let named = named.into_iter().map(|named| named.trim_end_matches('/'));
        gone.extend(named.filter(|named| !exists(named)).map(|named| format!("{document}: {named}")));
    }
    assert!(gone.is_empty(), "these name files that do not exist: {gone:#?}");
    assert!(!exists("switch/src/no_such_file.rs"));
}

/// The Rust files and the folders of `src` that a document names between backticks, code blocks left out.
fn named_files(document: &str) -> BTreeSet<&str> {
    let prose = document.split("```").step_by(2);
    let code = prose.flat_map(|part| part.split('`').skip(1).step_by(2));
    let is_path = |text: &&str| {
        !text.contains(|c: char| !c.is_alphanumeric() && !"/._-".contains(c))
            && (text.ends_with(".rs") || text.contains("/src/") || text.starts_with("src/"))
    };
    code.filter(is_path).collect()
}

/// Folders with files of the maps that are no members of the workspace.
const MORE_FOLDERS: [&str; 4] = ["src", "tests", "benches", "examples"];

/// The paths in the first column of the tables of a document. A bare file name is relative to the folder of the path
/// before it.
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

/// Every crate of the workspace and every example, read once for all rules.
fn crates() -> &'static [Crate] {
    static CRATES: OnceLock<Vec<Crate>> = OnceLock::new();
    CRATES.get_or_init(|| {
        let read = |path: &str| fs::read_to_string(crate::root().join(path)).ok();
        let roots = crate_roots().into_iter().chain(EXAMPLES.map(str::to_owned));
        let crates: Vec<Crate> = roots.map(|root| read_crate(&root, &read)).collect();
        for read in &crates {
            assert!(read.modules.len() > 2, "{} declares no modules", read.modules[0].file);
        }
        crates
    })
}

fn text_of(path: &str) -> String {
    fs::read_to_string(crate::root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}
