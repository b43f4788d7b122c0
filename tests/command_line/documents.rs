//! Every shell block of the documents runs, in order, as a reader pastes it: with bash, curl, jq and the built
//! program.
//!
//! The words after `sh` of a fence define how a block is run: `norun` is not run (it installs, builds, or needs
//! external resources), `background` and `background=TEXT` start a program that keeps running and prints TEXT once it
//! is ready, `refused` expects an error response. A fence `toml FILE` is the content of that file.

use std::fmt::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::records::TempDir;

/// Every document, with how many of its shell blocks are run and how many are not.
const DOCUMENTS: [(&str, usize, usize); 40] = [
    ("ARCHITECTURE.md", 0, 0),
    ("CHANGELOG.md", 0, 0),
    ("CONTRIBUTING.md", 0, 1),
    ("README.md", 6, 2),
    ("benches/README.md", 0, 1),
    ("docs/SUMMARY.md", 0, 0),
    ("docs/analyze.md", 4, 1),
    ("docs/calls.md", 0, 2),
    ("docs/captures.md", 0, 0),
    ("docs/cluster.md", 0, 0),
    ("docs/code-map.md", 0, 0),
    ("docs/configuration.md", 1, 0),
    ("docs/decisions.md", 0, 0),
    ("docs/figures.md", 0, 0),
    ("docs/first-hour.md", 5, 0),
    ("docs/fuzzing.md", 0, 2),
    ("docs/golden.md", 0, 0),
    ("docs/index.md", 0, 0),
    ("docs/integrators.md", 24, 1),
    ("docs/load-program.md", 0, 1),
    ("docs/load-tests.md", 0, 2),
    ("docs/memory.md", 0, 0),
    ("docs/operations.md", 0, 3),
    ("docs/operator.md", 0, 1),
    // `packaging/try-package` runs its blocks on a bare Debian system.
    ("docs/package.md", 0, 6),
    ("docs/panel.md", 0, 0),
    ("docs/performance.md", 1, 2),
    ("docs/phone.md", 2, 2),
    ("docs/phones.md", 0, 0),
    ("docs/reliability.md", 0, 0),
    ("docs/rooms.md", 0, 0),
    ("docs/scale.md", 0, 0),
    ("docs/security.md", 0, 0),
    ("docs/srtp.md", 0, 0),
    ("docs/support.md", 4, 0),
    ("docs/tap.md", 0, 1),
    ("docs/tls.md", 0, 1),
    ("docs/top.md", 0, 2),
    ("docs/trace.md", 0, 0),
    ("docs/verdicts.md", 0, 0),
];

/// How a block is run.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// In the background; the next block waits for this text.
    Background(String),
    /// It is the content of this file.
    File(String),
    Not,
    Refused,
    Run,
}

struct Block {
    kind: Kind,
    /// The line of its fence, counted from 1.
    line: usize,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

/// The blocks of a document that are shell or files.
fn blocks(document: &str) -> Vec<Block> {
    let text = std::fs::read_to_string(root().join(document)).unwrap();
    let (mut blocks, mut open): (Vec<Block>, Option<Option<Block>>) = (Vec::new(), None);
    for (index, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take().flatten()),
            (Some(info), None) => {
                let block =
                    kind(document, info).map(|kind| Block { kind, line: index + 1, text: String::new() });
                open = Some(block);
            }
            (None, Some(Some(block))) => writeln!(block.text, "{line}").unwrap(),
            (None, _) => {}
        }
    }
    assert!(open.is_none(), "{document}: a fence is open");
    blocks
}

fn kind(document: &str, info: &str) -> Option<Kind> {
    let (language, word) = info.split_once(' ').unwrap_or((info, ""));
    assert!(
        !["bash", "console", "shell"].contains(&language),
        "{document}: shell is marked as sh, not {language}"
    );
    match (language, word) {
        ("sh", "") => Some(Kind::Run),
        ("sh", "norun") => Some(Kind::Not),
        ("sh", "refused") => Some(Kind::Refused),
        ("sh", word) => match word.strip_prefix("background") {
            Some(text) => Some(Kind::Background(text.trim_start_matches('=').to_owned())),
            None => panic!("{document}: sh {word} means nothing"),
        },
        ("toml", file) if !file.is_empty() => Some(Kind::File(file.to_owned())),
        _ => None,
    }
}

/// One script of all blocks of a document. It stops at the first command that fails, names the block, and ends the
/// programs that it started.
fn script(document: &str) -> String {
    let mut script = PREPARE.to_owned();
    for Block { kind, line, text } in blocks(document) {
        let _ = writeln!(script, "BLOCK='{document}:{line}'");
        let _ = match kind {
            Kind::Not => writeln!(script, ": not run"),
            Kind::Run => writeln!(script, "{text}"),
            Kind::Refused => {
                writeln!(script, "export CURL_HOME=$PWD/.lenient\n{text}\nexport CURL_HOME=$PWD/.strict")
            }
            Kind::File(file) => writeln!(script, "cat > '{file}' <<'END OF FILE'\n{text}END OF FILE"),
            Kind::Background(awaited) => {
                writeln!(
                    script,
                    "(\n{text}\n) > .background-{line} 2>&1 &\nstarted $! .background-{line} '{awaited}'"
                )
            }
        };
    }
    script.push_str("BLOCK='the end'\nstop\nexit 0\n");
    script
}

/// Engines of documents that name ports listen on free ones: `curl`, the phone, the live view and the test call are
/// redirected there.
const PREPARE: &str = r#"
set -Eeuo pipefail
failed() { echo "FAILED in $BLOCK: $BASH_COMMAND" >&2; tail -n 20 .background-* *.log >&2; stop; exit 1; }
stop() { trap - ERR; set +e; kill $(jobs -p) 2> /dev/null; wait; }
BLOCK='the preparation'
trap failed ERR
export HOME=$PWD TMPDIR=$PWD CURL_HOME=$PWD/.strict
export SIDETONE_HTTP__LISTEN=127.0.0.1:0 SIDETONE_SIP__LISTEN=udp://127.0.0.1:0
mkdir .strict .lenient
echo 'max-time = 120' | tee .lenient/.curlrc > .strict/.curlrc
printf 'fail\nshow-error\n' >> .strict/.curlrc
mkdir .bin
cat > .bin/sidetone <<'END OF FILE'
#!/usr/bin/env bash
PATH=${PATH#*:}
if [ "$1" = phone ] && [ -e "$HOME/.server" ]; then shift; exec sidetone phone --server "$(cat "$HOME/.server")" "$@"; fi
if [ "$1" = top ] && [ -e "$HOME/.http" ]; then shift; exec sidetone top --url "http://$(cat "$HOME/.http")" "$@"; fi
if [ "$1 ${2:-}" = 'check --call' ]; then exec sidetone "$@" --sip "$(cat "$HOME/.server")" --url "http://$(cat "$HOME/.http")"; fi
exec sidetone "$@"
END OF FILE
chmod +x .bin/sidetone
PATH=$PWD/.bin:$PATH
started() {
  until [ -z "$3" ] || grep -qs -- "$3" "$2"; do
    kill -0 "$1"
    sleep 0.1
  done
  local http sip
  [ -e "$2" ] || return 0
  http=$(sed -n 's|^http http://||p' "$2") sip=$(sed -n 's|^sip udp://||p' "$2")
  [ -z "$sip" ] || echo "$sip" > .server
  [ -z "$http" ] || echo "$http" > .http
  [ -z "$http" ] || echo "connect-to = \"127.0.0.1:8080:$http\"" | tee -a .lenient/.curlrc >> .strict/.curlrc
}
"#;

/// Runs a document, or prints why it is not run.
fn run(document: &str) {
    let missing = ["bash", "curl", "jq"].into_iter().find(|program| {
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err()
    });
    if let Some(program) = missing {
        eprintln!("\nNOTICE: the shell blocks of {document} are NOT run: there is no {program}\n");
        return;
    }
    let dir = TempDir::new();
    std::fs::write(dir.path().join(".script"), script(document)).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_sidetone")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("timeout")
        .args(["--kill-after=10", "280", "bash", ".script"])
        .current_dir(dir.path())
        .env_clear()
        .env("PATH", path)
        .stdin(Stdio::null())
        .process_group(0)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{document}: {}\n{said}\n{printed}", output.status);
    eprintln!("{printed}");
}

/// Every document is in the table, and no block is skipped unnoticed.
#[test]
fn the_blocks_that_are_run_are_counted() {
    let mut documents: Vec<String> = ["", "benches", "docs"]
        .into_iter()
        .flat_map(|dir| std::fs::read_dir(root().join(dir)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .map(|path| path.strip_prefix(root()).unwrap().display().to_string())
        .collect();
    documents.sort();
    let found: Vec<(String, usize, usize)> = documents
        .into_iter()
        .map(|document| {
            let blocks = blocks(&document);
            let not = blocks.iter().filter(|block| block.kind == Kind::Not).count();
            let files = blocks.iter().filter(|block| matches!(block.kind, Kind::File(_))).count();
            let run = blocks.len() - not - files;
            (document, run, not)
        })
        .collect();
    let expected = DOCUMENTS.map(|(document, run, not)| (document.to_owned(), run, not));
    assert_eq!(found, expected);
}

#[test]
fn the_readme_works_when_pasted() {
    run("README.md");
}

#[test]
fn the_options_of_analyze_work_when_pasted() {
    run("docs/analyze.md");
}

#[test]
fn the_first_hour_works_when_pasted() {
    run("docs/integrators.md");
}

#[test]
fn the_other_documents_work_when_pasted() {
    let others = DOCUMENTS
        .into_iter()
        .filter(|(document, run, _)| *run > 0 && !["README.md", "docs/integrators.md"].contains(document));
    for (document, ..) in others {
        run(document);
    }
}
