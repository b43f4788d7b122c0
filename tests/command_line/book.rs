//! The site of `docs/`: every page is in its summary, and every link has a target. `mdbook`, where it is installed,
//! builds the site in CI (`.ci/docs-site.sh`); it does not check links.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The targets of the links of a document, code left out.
fn links(text: &str) -> Vec<String> {
    let (mut found, mut is_code) = (Vec::new(), false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            // Text between backticks is no link.
            let prose: String = line.split('`').step_by(2).collect();
            let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
            found.extend(targets.map(|(target, _)| target.to_owned()));
        }
    }
    found
}

/// The anchors of the headings, as mdbook and GitHub make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let (mut found, mut is_code) = (BTreeSet::new(), false);
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if let Some(heading) = line.strip_prefix('#').filter(|_| !is_code) {
            let letters = heading.trim_start_matches('#').trim().to_lowercase();
            let kept = letters.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
            found.insert(kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect());
        }
    }
    found
}

#[test]
fn every_page_is_in_the_summary_once() {
    let listed: Vec<String> = links(&read(&docs().join("SUMMARY.md")));
    let once: BTreeSet<String> = listed.iter().cloned().collect();
    assert_eq!(once.len(), listed.len(), "{listed:?}");
    let pages: BTreeSet<String> = std::fs::read_dir(docs())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".md") && name != "SUMMARY.md")
        .collect();
    assert_eq!(once, pages);
}

#[test]
fn every_link_leads_to_a_page_and_a_heading() {
    let mut broken = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(docs()).unwrap() {
        let page = entry.unwrap().path();
        if page.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        for link in links(&read(&page)).into_iter().filter(|link| !link.contains("://")) {
            count += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.clone() } else { docs().join(file) };
            let is_there = target.exists() && (anchor.is_empty() || anchors(&read(&target)).contains(anchor));
            if !is_there {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(count > 100, "only {count} links were read");
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn links_and_anchors_are_read() {
    let text =
        "# A *call*, as a test\n[a](b.md#c) and `[x](y)`\n```sh\n# no heading\n[n](o)\n```\n## 4. The end\n";
    assert_eq!(links(text), ["b.md#c"]);
    assert_eq!(anchors(text), BTreeSet::from(["a-call-as-a-test".to_owned(), "4-the-end".to_owned()]));
}
