//! Schemathesis against the engine with both tenants in it (reliability H11).
//!
//! `.ci/schemathesis.sh` installs it and runs this: `SIDETONE_SCHEMATHESIS` names the program.

use std::process::Command;

use crate::common::records::TempDir;
use crate::isolation::fixture::Fixture;

/// Finds no server error, no undocumented response, and no operation without authentication.
#[test]
#[ignore = "needs schemathesis: bash .ci/schemathesis.sh"]
fn schemathesis_finds_nothing() {
    let program = std::env::var("SIDETONE_SCHEMATHESIS").expect("SIDETONE_SCHEMATHESIS names the program");
    let fixture = Fixture::new();
    // A key must not change or delete the keys, itself included; the operator's session must not end itself either.
    run(&program, &fixture, &fixture.acme.key, &["--exclude-operation-id-regex", SELF_HARM]);
    run(
        &program,
        &fixture,
        fixture.operator(),
        &["--include-operation-id-regex", OPERATORS, "--rate-limit", "1000/m"],
    );
}

fn run(program: &str, fixture: &Fixture, token: &str, only: &[&str]) {
    let examples = std::env::var("SIDETONE_SCHEMATHESIS_EXAMPLES").unwrap_or_else(|_| "50".to_owned());
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/isolation");
    // Schemathesis writes a cache into its current directory.
    let dir = TempDir::new();
    let status = Command::new(program)
        .current_dir(dir.path())
        .args(["--config-file", &format!("{folder}/schemathesis.toml")])
        .args(["run", &format!("http://{}/api/v1/openapi.json", fixture.address())])
        .args(["--phases", "examples,coverage,fuzzing,stateful"])
        .args(["--max-examples", &examples, "--seed", "20260101", "--generation-database", "none"])
        // Ten seconds if not set: other tests may hold the processor for longer.
        .args(["--request-timeout", "120"])
        .args(["--continue-on-failure", "--header", &format!("Authorization: Bearer {token}")])
        .args(only)
        .env("SCHEMATHESIS_HOOKS", format!("{folder}/schemathesis_hooks.py"))
        .env("SIDETONE_TOKEN", token)
        .status()
        .unwrap();
    assert!(status.success(), "schemathesis found something");
}

/// Operations that would remove the caller's own access during the run.
const SELF_HARM: &str = "^(changeApiKey|deleteApiKey|logout|changePassword)$";
/// Operations for operators only, and those that the key must not use on itself.
const OPERATORS: &str = "^(createOrganisation|getOrganisation|deleteOrganisation|[a-zA-Z]*(AiPrices?|CostRates?|FxRates?|SellRates?|ApiKeys?))$";
