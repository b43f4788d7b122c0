//! Tests of the cycle finder on small example trees.

use std::collections::{BTreeMap, BTreeSet};

use crate::circles::{circles, describe, shortest};
use crate::imports::{Graph, graph};
use crate::modules::read_crate;
use crate::structure::first_column;

/// The graph of a tree of `(file, text)`, whose root is `lib.rs`.
fn tree(files: &[(&str, &str)]) -> Graph {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    graph(&read_crate("lib.rs", &|path| files.get(path).map(|text| (*text).to_owned())))
}

fn names(graph: &Graph) -> Vec<Vec<String>> {
    circles(graph).into_iter().map(|group| group.into_iter().collect()).collect()
}

/// A tree of `lib.rs`, `a.rs` and `b.rs`; `b` defines `B` and uses `crate::a::A`.
fn pair(name: &str, lib: &str, a: &str, closed: bool) {
    let b = "use crate::a::A;\npub struct B(A);\npub fn make() {}\nimpl B { pub const ONE: u8 = 1; }";
    let found = names(&tree(&[("lib.rs", lib), ("a.rs", a), ("b.rs", b)]));
    let expected = if closed { vec![vec!["a.rs".to_owned(), "b.rs".to_owned()]] } else { vec![] };
    assert_eq!(found, expected, "{name}");
}

#[test]
fn finds_every_kind_of_import() {
    let lib = "mod a;\nmod b;\npub use b::B;\npub use b::B as Renamed;\npub struct Own;";
    for (name, a, closed) in [
        ("none", "pub struct A;", false),
        ("use", "use crate::b::B;\npub struct A;", true),
        ("use of a group", "use crate::{Own, b::{self, B}};\npub struct A;", true),
        ("re-export", "use super::B;\npub struct A;", true),
        ("renamed re-export", "use crate::Renamed as Other;\npub struct A;", true),
        ("star over a re-export", "use super::*;\npub struct A(B);", true),
        ("star of a file", "use super::b::*;\npub struct A;", true),
        ("path in code", "pub struct A;\nfn f() { crate::b::make() }", true),
        ("path over an imported module", "use crate::b;\npub struct A;\nfn f() { b::make() }", true),
        ("an imported module that is not used", "use crate::b;\npub struct A;", false),
        ("path in a type", "pub struct A(Option<Box<super::b::B>>);", true),
        ("path in a macro call", "pub struct A;\nfn f() { println!(\"{}\", [super::b::B::ONE; 1]) }", true),
        ("path in a macro between items", "pub struct A;\nmade! { fn f() { crate::b::make() } }", true),
        ("path in an attribute", "#[schema(value = super::b::B)]\npub struct A;", true),
        (
            "path in a text of an attribute",
            "use crate::b;\n#[serde(default = \"b::make\")]\npub struct A;",
            true,
        ),
        ("a text of an attribute", "use crate::b;\n#[doc(alias = \"b and more\")]\npub struct A;", false),
        ("use in a function", "pub struct A;\nfn f() { use crate::b::make; make() }", true),
        ("use in an inline module", "pub struct A;\nmod inner { use super::super::b::B; }", true),
        ("code of the parent", "use super::Own;\npub struct A;", false),
        ("the standard library", "use std::b::B;\npub struct A;\nfn f() { ::b::make() }", false),
        ("a name of its own", "pub struct A;\nstruct B;\nfn f(_: B) {}", false),
        ("a test", "pub struct A;\n#[cfg(test)]\nmod tests { use crate::b::B; }", false),
        (
            "a test's import",
            "pub struct A;\n#[cfg(test)]\nuse crate::b::B;\n#[test]\nfn t() { crate::b::make() }",
            false,
        ),
        ("a test of a feature", "pub struct A;\n#[cfg(all(test, unix))]\nuse crate::b::B;", false),
        ("what is no test", "pub struct A;\n#[cfg(not(test))]\nuse crate::b::B;", true),
        ("a comment", "//! `use crate::b::B;`\npub struct A;\n/// [`crate::b::B`]\nfn f() {}", false),
    ] {
        pair(name, lib, a, closed);
    }
}

#[test]
fn a_parent_counts_for_its_own_code_alone() {
    let child = "use super::Shared;\npub struct Child(Shared);";
    let contents =
        [("lib.rs", "mod a;"), ("a/mod.rs", "mod b;\nmod c;\npub use b::Child;\npub use c::Shared;")];
    let lower = ("a/c.rs", "pub struct Shared;");
    assert!(names(&tree(&[contents[0], contents[1], ("a/b.rs", child), lower])).is_empty());
    let code = ("a/mod.rs", "mod b;\npub use b::Child;\npub struct Shared;\nfn f(_: Child) {}");
    assert_eq!(names(&tree(&[contents[0], code, ("a/b.rs", child)])), [["a/b.rs", "a/mod.rs"]]);
    let type_alone = ("a/mod.rs", "mod b;\npub use b::Child;\npub struct Shared;");
    assert!(names(&tree(&[contents[0], type_alone, ("a/b.rs", child)])).is_empty());
}

#[test]
fn finds_one_type_whose_methods_call_each_other_over_files() {
    let lib = ("lib.rs", "mod a;\nmod b;");
    let b = ("b.rs", "use crate::a::A;\nimpl A { pub fn far(&self) {} pub fn made() {} }");
    let calling = |code: &str| {
        let a = format!("pub struct A;\nimpl A {{ fn near(&self) {{ {code} }} }}");
        !names(&tree(&[lib, ("a.rs", &a), b])).is_empty()
    };
    assert!(calling("self.far()"));
    assert!(calling("Self::made()"));
    assert!(!calling("self.near()"));
    assert!(!calling("other.far()"));
    let own =
        ("a.rs", "pub struct A;\ntrait T { fn far(&self); }\nimpl T for A { fn far(&self) {} }\nfn f() {}");
    assert!(names(&tree(&[lib, own, b])).is_empty());
}

#[test]
fn finds_what_a_macro_defines() {
    let lib = ("lib.rs", "mod a;\nmod b;");
    let ids = ("a.rs", "use crate::b::B;\nids! { CallId, LegId }\npub struct A(B);");
    assert_eq!(names(&tree(&[lib, ids, ("b.rs", "pub struct B(crate::a::LegId);")])).len(), 1);
}

#[test]
fn shows_the_shortest_way_round() {
    let graph = tree(&[
        ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;"),
        ("a.rs", "\nuse crate::b::B;\npub struct A;"),
        ("b.rs", "use crate::c::C;\npub struct B;"),
        ("c.rs", "use crate::a::A;\nuse crate::d::D;\npub struct C;"),
        ("d.rs", "pub struct D(crate::c::C);"),
    ]);
    let found = circles(&graph);
    assert_eq!(found.len(), 1);
    assert_eq!(shortest(&graph, &found[0]), ["c.rs", "d.rs"]);
    let text = describe(&graph, &found[0]);
    assert!(text.contains("4 files need each other"), "{text}");
    assert!(text.contains("c.rs:2 → d.rs   use crate::d::D\n    d.rs:1 → c.rs   crate::c::C\n"), "{text}");
}

#[test]
fn two_circles_that_touch_by_one_import_are_two() {
    let graph = tree(&[
        ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;"),
        ("a.rs", "pub struct A(crate::b::B);"),
        ("b.rs", "pub struct B(crate::a::A, crate::c::C);"),
        ("c.rs", "pub struct C(crate::d::D);"),
        ("d.rs", "pub struct D(crate::c::C);"),
    ]);
    assert_eq!(names(&graph), [["a.rs", "b.rs"], ["c.rs", "d.rs"]]);
}

#[test]
fn counts_the_lines_of_functions() {
    let body = "    work();\n".repeat(80);
    let long =
        format!("pub struct A;\nimpl A {{\n#[inline]\npub fn long() {{\n{body}}}\n}}\nfn short() {{}}\n");
    let lib = "mod a;\n#[cfg(test)]\nmod tests;\n#[test]\nfn tested() {}".to_owned();
    let read = read_crate("lib.rs", &|path| match path {
        "lib.rs" => Some(lib.clone()),
        "a.rs" => Some(long.clone()),
        _ => None,
    });
    let found: Vec<_> =
        read.functions.iter().map(|found| (found.name.as_str(), found.line, found.lines)).collect();
    assert_eq!(found, [("long", 4, 82), ("short", 87, 1)]);
}

#[test]
fn reads_the_first_column_of_a_map() {
    let map = "| Part | What |\n|---|---|\n| `model/` | words of `x/` |\n| `src/a.rs`, `b.rs` | `c.rs` |\n";
    let expected = ["model", "src/a.rs", "src/b.rs"].map(str::to_owned);
    assert_eq!(first_column(map), BTreeSet::from(expected));
}
