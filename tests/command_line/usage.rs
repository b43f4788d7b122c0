//! The program's description of its own command line: help, completions, manual pages.

use std::process::{Command, Output};

use crate::common::records::TempDir;

fn sidetone(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sidetone")).args(args).env_remove("COLUMNS").output().unwrap()
}

fn stdout(args: &[&str]) -> String {
    let output = sidetone(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The subcommands, as the help lists them.
fn subcommands() -> Vec<String> {
    let help = stdout(&["--help"]);
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    // Continuation lines are indented further.
    let begins = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let names = list.lines().filter(begins).map(|line| line.split_whitespace().next().unwrap().to_owned());
    names.filter(|name| name != "help").collect()
}

#[test]
fn every_help_fits_80_columns() {
    let mut helps = vec![vec!["--help".to_owned()], vec!["-h".to_owned()]];
    for name in subcommands() {
        helps.push(vec![name.clone(), "--help".to_owned()]);
        helps.push(vec![name, "-h".to_owned()]);
    }
    assert!(helps.len() > 20, "{helps:?}");
    let mut wide = Vec::new();
    for args in helps {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        for line in stdout(&args).lines().filter(|line| line.chars().count() > 80) {
            wide.push(format!("{}: {line}", args.join(" ")));
        }
    }
    assert!(wide.is_empty(), "{}", wide.join("\n"));
}

#[test]
fn every_shell_gets_completions_of_every_subcommand() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = stdout(&["completions", shell]);
        for name in subcommands() {
            assert!(script.contains(&name), "{shell}: {name}");
        }
    }
    let bash = Command::new("bash").arg("-n").arg("-c").arg(stdout(&["completions", "bash"])).status();
    assert!(bash.unwrap().success(), "bash reads it");
    assert_eq!(sidetone(&["completions", "tcsh"]).status.code(), Some(2));
}

#[test]
fn every_subcommand_has_a_manual_page() {
    let dir = TempDir::new();
    let pages = dir.path().join("man/man1");
    assert_eq!(stdout(&["man", pages.to_str().unwrap()]), "");
    for name in subcommands() {
        let page = std::fs::read_to_string(pages.join(format!("sidetone-{name}.1"))).expect(&name);
        assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{name}: {page}");
    }
    let whole = std::fs::read_to_string(pages.join("sidetone.1")).unwrap();
    assert!(subcommands().iter().all(|name| whole.contains(&name.replace('-', "\\-"))), "{whole}");
    let taken = dir.path().join("taken");
    std::fs::write(&taken, "").unwrap();
    let output = sidetone(&["man", taken.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
}

#[test]
fn an_address_that_is_none_is_a_wrong_command_line() {
    let phone = ["phone", "--user", "1001", "--domain", "acme.test", "--server"];
    let simulate = ["simulate", "clean", "--to"];
    let cases = [
        (&simulate[..], ["127.0.0.1", "", "127.0.0.1:", ":4000", "127.0.0.1:99999", "::1"]),
        (&phone[..], ["", "127.0.0.1:99999", "127.0.0.1:", ":5060", "[127.0.0.1]:5060", "[::1"]),
    ];
    for (args, addresses) in cases {
        for address in addresses {
            let output = sidetone(&[args, &[address]].concat());
            let text = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{args:?} {address:?}: {text}");
            assert!(text.contains("write ") && text.contains(args[args.len() - 1]), "{text}");
        }
    }
}

#[test]
fn an_output_that_cannot_be_written_is_reported() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_sidetone")).args(["completions", "bash"]).stdout(full).output();
    let output = output.unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.starts_with("sidetone: the standard output cannot be written ("), "{text}");
}
