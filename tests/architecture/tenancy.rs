//! H2: every statement on a tenant's table restricts the tenant whose rows it reads or writes.
//!
//! Reads the migrations for the tables that have an `organisation_id`, and every statement of `store/src`. A
//! statement names the column, or is in a function that appends the condition of a `Scope`, or is listed
//! here with its reason.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Statements that are correct without the condition: where, how the statement begins, and why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    (
        "store/src/extensions/",
        "SELECT extensions.id FROM agents JOIN extensions",
        "of the user who asks, whose agent and extension belong to the user's organisation",
    ),
    (
        "store/src/api_keys/",
        "SELECT id FROM api_keys WHERE short_id = $1 AND id <> $2",
        "a short id is one across all tenants; the answer says only that it is taken",
    ),
    ("store/src/cdrs.rs", "SELECT * FROM cdrs WHERE call_uuid = $1", FOUND),
    (
        "store/src/field_checks.rs",
        "SELECT id FROM trunks WHERE id = $1 AND id <> $2",
        "the trunk of a cost rate, which only operators set",
    ),
    ("store/src/field_checks.rs", "SELECT id FROM users WHERE email = $1 AND id <> $2", TAKEN),
    ("store/src/field_checks.rs", "SELECT id FROM numbers WHERE number = $1 AND id <> $2", TAKEN),
    ("store/src/field_checks.rs", "SELECT id FROM trunks WHERE name = $1 AND id <> $2", TAKEN),
    ("store/src/probe.rs", "SELECT COUNT(*) AS total FROM extensions WHERE srtp <> 'off'", CHECK),
    ("store/src/probe.rs", "SELECT name, address FROM trunks WHERE srtp <> 'off'", CHECK),
    ("store/src/text_blocks/fill.rs", "SELECT is_done FROM cdr_text_fill WHERE id = 1", FILL),
    ("store/src/text_blocks/fill.rs", "UPDATE cdr_text_fill SET is_done = 1 WHERE id = 1", FILL),
    ("store/src/ai_prices.rs", "SELECT * FROM ai_prices WHERE id = $1", PRICES),
    ("store/src/ai_prices.rs", "DELETE FROM ai_prices WHERE id = $1", PRICES),
    (
        "store/src/conversation_report.rs",
        "UPDATE conversations SET updated_at_us = updated_at_us WHERE id = $1",
        "locks the row that the report is compared with, whosever it is",
    ),
    (
        "store/src/call_requests.rs",
        "UPDATE call_requests SET state = $1",
        "the node's own: the switch reports on calls that it placed, whosever they are",
    ),
    (
        "store/src/call_requests.rs",
        "DELETE FROM call_requests WHERE id IN",
        "every request that has been kept for its time, whosever it is",
    ),
    (
        "store/src/call_callbacks.rs",
        "UPDATE call_requests SET state = state WHERE id = $1",
        "locks the request of a callback that this node sends, whosever it is",
    ),
    (
        "store/src/credit_reserves.rs",
        "DELETE FROM credit_reserves WHERE node_id = $1",
        "what a node has reserved for calls of all organisations",
    ),
    ("store/src/call_callbacks.rs", "DELETE FROM call_callbacks WHERE id IN", SENDER),
    ("store/src/call_callbacks.rs", "SELECT ", SENDER),
    ("store/src/call_callbacks.rs", "UPDATE call_callbacks", SENDER),
    (
        "store/src/call_requests.rs",
        "SELECT call_uuid FROM call_requests WHERE node_id = $1",
        "the node's own, as above",
    ),
    (
        "store/src/call_requests.rs",
        "SELECT (SELECT COUNT(*) FROM cdrs WHERE cdrs.call_uuid = call_requests.call_uuid)",
        "the request that the switch has just changed, as above",
    ),
    ("store/src/events.rs", "SELECT id FROM events WHERE position IS NULL", LOG),
    ("store/src/events.rs", "UPDATE events SET position", LOG),
    ("store/src/events.rs", "DELETE FROM events WHERE id IN", LOG),
    ("store/src/events.rs", "SELECT position FROM events WHERE id < $1", LOG),
    (
        "store/src/notes.rs",
        "DELETE FROM notes WHERE id IN",
        "every note that has been kept for its time, whosever it is",
    ),
    (
        "store/src/notes.rs",
        "DELETE FROM note_receipts WHERE note_id IN",
        "the receipts of every note that has been kept for its time",
    ),
    (
        "store/src/notes.rs",
        "UPDATE notes SET status = whole.column2",
        "what its receipts come to, of a note that the same transaction found or this node sent",
    ),
    (
        "store/src/signalling.rs",
        "DELETE FROM call_signalling WHERE call_uuid IN",
        "the messages of every call that have been kept for their days, whosever it is",
    ),
    (
        "store/src/sessions.rs",
        "UPDATE conference_sessions SET seen_at_us = $1",
        "the node's own: every session that it carries is live, whosever it is",
    ),
    ("store/src/numbers/", "SELECT * FROM numbers WHERE id = $1", FOUND),
    ("store/src/trunks/", "SELECT * FROM trunks WHERE id = $1", FOUND),
    ("store/src/rooms/", "SELECT * FROM conference_rooms WHERE id = $1", FOUND),
    (
        "store/src/trunks/",
        "SELECT id FROM trunks WHERE name = $1",
        "a trunk's name is one across all tenants; apply, which no tenant may, refers to it",
    ),
    (
        "store/src/trunks/",
        "SELECT * FROM trunks WHERE name = $1",
        "a trunk's name is one across all tenants; apply, which no tenant may, declares it",
    ),
    (
        "store/src/users/",
        "UPDATE users SET password_hash = $1",
        "by the id of the user who logs in, who is not yet in any scope",
    ),
    ("store/src/webhooks/manage.rs", "SELECT * FROM webhooks WHERE id = $1", FOUND),
    (
        "store/src/webhooks/manage.rs",
        "UPDATE webhooks SET updated_at_us = updated_at_us WHERE id = $1",
        "locks the row that is compared with the scope next, whosever it is",
    ),
    (
        "store/src/webhooks/manage.rs",
        "UPDATE webhook_deliveries SET status = 'cancelled'",
        "those of a webhook that was found in the scope, or by the sender, in the same transaction",
    ),
    (
        "store/src/webhooks/queue.rs",
        "UPDATE webhooks SET next_at_us = CASE",
        "by the id of a webhook whose organisation was compared in the same transaction",
    ),
    ("store/src/webhooks/work.rs", "DELETE FROM webhook_", SENDER),
    ("store/src/webhooks/work.rs", "SELECT ", SENDER),
    ("store/src/webhooks/work.rs", "UPDATE webhook", SENDER),
];

const CHECK: &str =
    "for `sidetone check`, which the operator runs; the answer is a number and the names of trunks";
const SENDER: &str =
    "the sender's: it serves every tenant, by ids that it read itself, and answers no caller";
const TAKEN: &str = "unique across all tenants; the answer says only that it is taken";
const LOG: &str = "one log of all tenants: nothing of an event is read but where it stands";
const PRICES: &str = "prices are the operator's, who sees all tenants; no tenant reads or writes one";
const FILL: &str = "one mark of the whole database: whether the texts of old records are in blocks";
const FOUND: &str = "the caller compares what is found with its scope: a 403 has to know that it is there";

/// The calls by which a function appends the condition of a scope to a statement.
///
/// The literals of a `Table` are lists: `store::listing` appends it for all of them.
const SCOPING: [&str; 8] = [
    "matching(",
    "seen_by(",
    "within(",
    "within_by(",
    "within_organisation(",
    "of_organisation(",
    "scope",
    ": Table = Table {",
];

#[test]
fn every_statement_over_tenant_data_says_whose() {
    let tables = tenant_tables();
    assert!(tables.contains("cdrs") && tables.contains("extensions"), "{tables:?}");
    let mut unused: BTreeSet<&str> = EXCEPTIONS.iter().map(|exception| exception.1).collect();
    let mut open = Vec::new();
    let mut statements = 0;
    for file in rust_files(Path::new("store/src")) {
        let path = file.to_str().unwrap().replace('\\', "/");
        let text = fs::read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap();
        for (start, literal) in literals(text) {
            let statement = literal.split_whitespace().collect::<Vec<_>>().join(" ");
            if !touches(&statement, &tables) {
                continue;
            }
            statements += 1;
            let function = enclosing(text, start);
            let scoped = SCOPING.iter().any(|call| function.contains(call));
            if statement.contains("organisation_id") || scoped {
                continue;
            }
            let known = EXCEPTIONS
                .iter()
                .find(|(place, begins, _)| path.starts_with(place) && statement.starts_with(begins));
            match known {
                Some(exception) => drop(unused.remove(exception.1)),
                None => open.push(format!("{path}: {statement}")),
            }
        }
    }
    assert!(statements > 20, "the statements were not found: {statements}");
    assert!(open.is_empty(), "whose rows are these?\n{}", open.join("\n"));
    assert!(unused.is_empty(), "exceptions without a statement: {unused:?}");
}

/// The tables with a column `organisation_id`.
fn tenant_tables() -> BTreeSet<String> {
    let mut tables = BTreeSet::new();
    for entry in fs::read_dir("migrations").unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for part in text.split("CREATE TABLE ").skip(1) {
            let (name, rest) = part.split_once(" (").unwrap();
            if rest.split("\n)").next().unwrap().contains("organisation_id") {
                tables.insert(name.to_owned());
            }
        }
    }
    tables
}

/// Whether a text is a statement that reads or writes one of `tables`.
fn touches(statement: &str, tables: &BTreeSet<String>) -> bool {
    let words: Vec<&str> = statement.split([' ', ',', '(', ')']).filter(|word| !word.is_empty()).collect();
    let verb =
        words.first().is_some_and(|word| ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"].contains(word));
    verb && words
        .windows(2)
        .any(|pair| ["FROM", "INTO", "UPDATE", "JOIN"].contains(&pair[0]) && tables.contains(pair[1]))
}

/// Every string literal with its position.
fn literals(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((start, character)) = rest.next() {
        match character {
            // A comment may contain quotes.
            '/' if rest.peek().is_some_and(|next| next.1 == '/') => {
                while rest.peek().is_some_and(|next| next.1 != '\n') {
                    rest.next();
                }
            }
            // A character may be a quote.
            '\'' if text[start..].starts_with("'\"'") => drop((rest.next(), rest.next())),
            '"' => {
                let mut literal = String::new();
                while let Some((_, character)) = rest.next() {
                    match character {
                        '"' => break,
                        '\\' => drop(rest.next()),
                        _ => literal.push(character),
                    }
                }
                found.push((start, literal));
            }
            _ => {}
        }
    }
    found
}

/// The function around the position.
fn enclosing(text: &str, place: usize) -> &str {
    let begins = |line: &str| {
        let line = line.trim_start();
        let line =
            line.strip_prefix("pub(super) ").or_else(|| line.strip_prefix("pub(crate) ")).unwrap_or(line);
        let line = line.strip_prefix("pub ").unwrap_or(line);
        line.strip_prefix("async ").unwrap_or(line).starts_with("fn ")
    };
    let (mut start, mut end, mut at) = (0, text.len(), 0);
    for line in text.split_inclusive('\n') {
        if begins(line) {
            if at <= place {
                start = at;
            } else {
                end = at;
                break;
            }
        }
        at += line.len();
    }
    &text[start..end]
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}
