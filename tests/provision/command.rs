//! `sidetone apply`: its output and its exit codes.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use sidetone_store::{Location, Store};
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection as _};

use crate::common::database::{Kind, TestDatabase, kinds, server};
use crate::common::records::TempDir;
use crate::provision::ACME;

/// The binary in `dir`, with its database there.
fn sidetone(dir: &TempDir, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sidetone"))
        .current_dir(dir.path())
        .env("SIDETONE_NODE__DATA_DIR", dir.path())
        .env_remove("SIDETONE_CONFIG")
        .args(args)
        .output()
        .unwrap()
}

#[test]
fn the_command_prints_the_object_of_the_contract_and_exits_0() {
    let dir = TempDir::new();
    std::fs::write(dir.path().join("acme.toml"), ACME).unwrap();
    let output = sidetone(&dir, &["apply", "acme.toml", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["created"], 8);
    let database = dir.path().join("sidetone.db").display().to_string();
    assert_eq!(report["database"], database.as_str());
    let output = sidetone(&dir, &["apply", "acme.toml"]);
    let expected = format!("database {database}\n0 created, 0 changed, 8 unchanged\n");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

/// Names and contents of the files of a directory.
fn files(dir: &TempDir) -> Vec<(std::ffi::OsString, Vec<u8>)> {
    let entries = std::fs::read_dir(dir.path()).unwrap().map(Result::unwrap);
    let mut files: Vec<_> =
        entries.map(|entry| (entry.file_name(), std::fs::read(entry.path()).unwrap())).collect();
    files.sort();
    files
}

#[test]
fn a_dry_run_says_what_would_change_and_leaves_every_file_as_it_is() {
    let dir = TempDir::new();
    std::fs::write(dir.path().join("acme.toml"), ACME).unwrap();
    let dry_run = |file: &str| {
        let before = files(&dir);
        let output = sidetone(&dir, &["apply", "--dry-run", file]);
        assert_eq!(files(&dir), before, "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let said = dry_run("acme.toml");
    assert!(said.contains("created organisation Acme\n"), "{said}");
    assert!(said.ends_with("8 created, 0 changed, 0 unchanged\nnothing was changed (dry run)\n"), "{said}");
    assert_eq!(sidetone(&dir, &["apply", "acme.toml"]).status.code(), Some(0));
    std::fs::write(dir.path().join("renamed.toml"), ACME.replace("\"Ada\"", "\"Eva\"")).unwrap();
    let said = dry_run("renamed.toml");
    assert!(said.contains("0 created, 1 changed, 7 unchanged"), "{said}");
    let said = dry_run("acme.toml");
    assert!(said.contains("0 created, 0 changed, 8 unchanged"), "{said}");
}

#[test]
fn a_dry_run_changes_no_database_of_an_older_version() {
    let dir = TempDir::new();
    std::fs::write(dir.path().join("acme.toml"), ACME).unwrap();
    assert_eq!(sidetone(&dir, &["apply", "acme.toml"]).status.code(), Some(0));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let file = dir.path().join("sidetone.db");
    runtime.block_on(async {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&file);
        let mut connection = sqlx::ConnectOptions::connect(&options).await.unwrap();
        let last = "DELETE FROM _sqlx_migrations WHERE version = (SELECT MAX(version) FROM _sqlx_migrations)";
        sqlx::query(last).execute(&mut connection).await.unwrap();
        sqlx::Connection::close(connection).await.unwrap();
    });
    let before = files(&dir);
    let output = sidetone(&dir, &["apply", "--dry-run", "acme.toml"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("an older version wrote it"), "{text}");
    assert_eq!(files(&dir), before);
}

/// Every row of every table as text, and the value of each sequence.
async fn rows(database: &TestDatabase) -> Vec<String> {
    let mut out = Vec::new();
    match &database.database.location {
        Location::Postgres(_) => {
            let mut connection = PgConnection::connect(&database.url()).await.unwrap();
            let names = "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1";
            let names = sqlx::query_scalar::<_, String>(names).fetch_all(&mut connection).await.unwrap();
            for name in names {
                let all = format!("SELECT row::text FROM \"{name}\" AS row ORDER BY 1");
                let all = sqlx::query_scalar::<_, String>(AssertSqlSafe(all)).fetch_all(&mut connection);
                out.extend(all.await.unwrap().into_iter().map(|row| format!("{name} {row}")));
                out.push(name);
            }
            let sequences = "SELECT sequencename::text || ' ' || COALESCE(last_value, 0)::text FROM pg_sequences ORDER BY 1";
            out.extend(sqlx::query_scalar::<_, String>(sequences).fetch_all(&mut connection).await.unwrap());
        }
        Location::Sqlite(path) => {
            if !path.exists() {
                return out;
            }
            let mut connection = SqliteConnection::connect(&database.url()).await.unwrap();
            let names = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1";
            let names = sqlx::query_scalar::<_, String>(names).fetch_all(&mut connection).await.unwrap();
            for name in names {
                let columns = "SELECT group_concat('quote(\"' || name || '\")', ' || '','' || ') FROM pragma_table_info(?)";
                let columns = sqlx::query_scalar::<_, String>(columns).bind(&name);
                let columns = columns.fetch_one(&mut connection).await.unwrap();
                let all = format!("SELECT {columns} FROM \"{name}\" ORDER BY 1");
                let all = sqlx::query_scalar::<_, String>(AssertSqlSafe(all)).fetch_all(&mut connection);
                out.extend(all.await.unwrap().into_iter().map(|row| format!("{name} {row}")));
                out.push(name);
            }
            connection.close().await.unwrap();
        }
    }
    out
}

/// A dry run changes no row, table or sequence of either database, whatever it would have created or changed.
#[test]
fn a_dry_run_writes_nothing_into_either_database() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for kind in kinds() {
        let dir = TempDir::new();
        let database = runtime.block_on(TestDatabase::bare(kind, dir.path()));
        std::fs::write(dir.path().join("acme.toml"), ACME).unwrap();
        let renamed = ACME.replace("\"Ada\"", "\"Eva\"").replace("+442071230000", "+442071230001");
        std::fs::write(dir.path().join("renamed.toml"), renamed).unwrap();
        let other = "[[organisations]]\nname = \"Other\"\nsip_domain = \"other.test\"\n\
                     [[organisations.extensions]]\nnumber = \"1001\"\n";
        std::fs::write(dir.path().join("other.toml"), other).unwrap();
        let apply = |args: &[&str]| {
            let output = Command::new(env!("CARGO_BIN_EXE_sidetone"))
                .current_dir(dir.path())
                .env("SIDETONE_NODE__DATA_DIR", dir.path())
                .env("SIDETONE_DATABASE__URL", database.url())
                .env_remove("SIDETONE_CONFIG")
                .arg("apply")
                .args(args)
                .output()
                .unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(0), "{kind:?} {args:?}: {said}");
            String::from_utf8(output.stdout).unwrap()
        };
        let dry_run = |file: &str, expected: &str| {
            let before = runtime.block_on(rows(&database));
            let said = apply(&["--dry-run", file]);
            assert!(said.starts_with("database ") && said.contains(expected), "{kind:?}: {said}");
            assert!(!said.contains("shown once"), "a secret that is not the one: {said}");
            assert_eq!(runtime.block_on(rows(&database)), before, "{kind:?} {file}");
        };
        dry_run("acme.toml", "8 created, 0 changed, 0 unchanged");
        apply(&["acme.toml"]);
        assert!(runtime.block_on(rows(&database)).len() > 20, "{kind:?}");
        dry_run("acme.toml", "0 created, 0 changed, 8 unchanged");
        dry_run("renamed.toml", "1 created, 1 changed, 6 unchanged");
        dry_run("other.toml", "2 created, 0 changed, 0 unchanged");
    }
}

#[test]
fn the_standard_input_is_a_file_by_the_name_of_a_dash() {
    let dir = TempDir::new();
    let apply = |text: &str, args: &[&str]| {
        let mut process = Command::new(env!("CARGO_BIN_EXE_sidetone"))
            .current_dir(dir.path())
            .env("SIDETONE_NODE__DATA_DIR", dir.path())
            .env_remove("SIDETONE_CONFIG")
            .arg("apply")
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A refused command line closes its input unread.
        let _ = process.stdin.take().unwrap().write_all(text.as_bytes());
        let output = process.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(apply(ACME, &["-"]), (Some(0), String::new()));
    let (code, said) = apply("[[trunks]]\nport = 1\n", &["-"]);
    assert_eq!(code, Some(2), "{said}");
    let expected = "sidetone: standard input: trunk (no. 1): name: is missing\nsidetone: standard input: trunk (no. 1): ";
    assert!(said.starts_with(expected), "{said}");
    let (code, said) = apply(ACME, &["-", "-"]);
    assert_eq!((code, said.lines().count()), (Some(2), 1), "{said}");
}

#[test]
fn a_wrong_command_line_or_file_exits_2_with_a_line_for_each_problem() {
    let dir = TempDir::new();
    std::fs::write(dir.path().join("bad.toml"), "[[organisations]]\nnme = \"A\"\n").unwrap();
    std::fs::write(dir.path().join("torn.toml"), "[[organisations\n").unwrap();
    std::fs::write(dir.path().join("config.toml"), "[sip]\nlistn = 1\n").unwrap();
    let nameless = "sidetone: bad.toml: organisation (no. 1): name: is missing\n";
    let cases: [(&[&str], &str, usize); 4] = [
        (&["apply", "missing.toml"], "sidetone: missing.toml: cannot be read", 1),
        (&["apply", "torn.toml", "bad.toml"], "sidetone: torn.toml: line 1", 4),
        (&["apply", "bad.toml"], nameless, 3),
        (
            &["apply", "bad.toml", "--config", "config.toml"],
            "sidetone: config.toml: sip.listn: unknown key",
            1,
        ),
    ];
    for (args, expected, problems) in cases {
        let output = sidetone(&dir, args);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.starts_with(expected) && text.lines().count() == problems, "{args:?}: {text}");
        assert!(text.lines().all(|line| line.starts_with("sidetone: ")), "{args:?}: {text}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(sidetone(&dir, &["apply"]).status.code(), Some(2));
    assert_eq!(sidetone(&dir, &["frobnicate"]).status.code(), Some(2));
}

#[test]
fn a_database_that_cannot_be_opened_exits_1() {
    let dir = TempDir::new();
    std::fs::write(dir.path().join("acme.toml"), ACME).unwrap();
    std::fs::write(dir.path().join("sidetone.db"), "this is not a database, whatever its name says").unwrap();
    let output = sidetone(&dir, &["apply", "acme.toml"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("sidetone.db") && text.lines().count() == 1, "{text}");
}

#[test]
fn a_running_engine_sees_what_another_process_applies() {
    let dir = TempDir::new();
    std::fs::write(dir.path().join("acme.toml"), ACME).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(&dir.path().join("sidetone.db")).await.unwrap();
        assert_eq!(store.directory_revision().await.unwrap(), 0);
        assert_eq!(sidetone(&dir, &["apply", "acme.toml"]).status.code(), Some(0));
        assert_eq!(store.directory_revision().await.unwrap(), 1);
        assert_eq!(store.directory().await.unwrap().extensions.len(), 2);
        store.close().await;
    });
}

/// Only the output contains the generated secrets. If it cannot be written, the error names each extension and user
/// that has a new secret.
#[test]
fn an_output_that_cannot_be_written_says_whose_secrets_are_lost() {
    let user = "[[organisations]]\nname = \"Other\"\nsip_domain = \"other.test\"\ncurrency = \"EUR\"\n\
                [[organisations.users]]\nemail = \"eva@other.test\"\nname = \"Eva\"\nrole = \"org_admin\"\n";
    for more in [&[][..], &["--json"]] {
        let dir = TempDir::new();
        std::fs::write(dir.path().join("acme.toml"), ACME).unwrap();
        std::fs::write(dir.path().join("other.toml"), user).unwrap();
        let apply = |files: &[&str]| {
            let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
            let output = Command::new(env!("CARGO_BIN_EXE_sidetone"))
                .current_dir(dir.path())
                .env("SIDETONE_NODE__DATA_DIR", dir.path())
                .env_remove("SIDETONE_CONFIG")
                .arg("apply")
                .args(files)
                .args(more)
                .stdout(full)
                .output()
                .unwrap();
            let text = String::from_utf8(output.stderr).unwrap();
            assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{text}");
            assert!(text.starts_with("sidetone: the standard output cannot be written ("), "{text}");
            text
        };
        let text = apply(&["acme.toml", "other.toml", "--dry-run"]);
        assert!(text.contains("nothing was changed"), "{text}");
        let text = apply(&["acme.toml", "other.toml"]);
        assert!(text.contains("the changes are stored"), "{text}");
        let named = "extension 1002 of Acme, API key made of Acme, user eva@other.test of Other";
        assert_eq!(text.trim_end().rsplit_once(": ").unwrap().1, named);
        let text = apply(&["acme.toml", "other.toml"]);
        assert!(text.contains("no secret was generated"), "{text}");
    }
}

/// The same words for it in every command.
#[test]
fn a_database_of_a_newer_version_is_refused() {
    let dir = TempDir::new();
    std::fs::write(dir.path().join("acme.toml"), ACME).unwrap();
    assert_eq!(sidetone(&dir, &["apply", "acme.toml"]).status.code(), Some(0));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(dir.path().join("sidetone.db"));
        let mut connection = sqlx::ConnectOptions::connect(&options).await.unwrap();
        let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                     VALUES (9999, 'newer', TRUE, x'00', 0)";
        sqlx::query(newer).execute(&mut connection).await.unwrap();
        sqlx::Connection::close(connection).await.unwrap();
    });
    for args in [&["apply", "acme.toml"][..], &["apply", "--dry-run", "acme.toml"], &["serve"], &["check"]] {
        let output = sidetone(&dir, args);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {text}");
        assert!(
            text.contains("a newer version wrote it; use that version, or another database"),
            "{args:?}: {text}"
        );
    }
}

#[test]
fn a_server_that_does_not_run_is_named_as_the_cause() {
    let dir = TempDir::new();
    std::fs::write(dir.path().join("acme.toml"), ACME).unwrap();
    // Bound, so that no other program gets the port, and not listening.
    let refusing = tokio::net::TcpSocket::new_v4().unwrap();
    refusing.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = refusing.local_addr().unwrap();
    let url = format!("postgres://sidetone@{address}/sidetone");
    std::fs::write(dir.path().join("sidetone.toml"), format!("[database]\nurl = \"{url}\"\n")).unwrap();
    for command in [&["apply", "acme.toml"][..], &["check"]] {
        let output = sidetone(&dir, command);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{command:?}: {text}");
        let said = format!("open the database {url}: Connection refused (os error 111); start the server");
        assert!(text.contains(&said), "{command:?}: {text}");
    }
}

/// A user of PostgreSQL who may not create tables: `check` says so before the start.
#[test]
fn a_database_without_the_privilege_to_create_tables_is_a_problem() {
    let Some(server) = server() else { return };
    let dir = TempDir::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let database = TestDatabase::bare(Kind::Postgres, dir.path()).await;
        let user = format!("sidetone_user_{}", uuid::Uuid::new_v4().simple());
        let mut owner = PgConnection::connect(&database.url()).await.unwrap();
        let statements = [
            format!("CREATE ROLE {user} LOGIN PASSWORD 'secret'"),
            "REVOKE CREATE ON SCHEMA public FROM PUBLIC".to_owned(),
        ];
        for statement in statements {
            sqlx::query(AssertSqlSafe(statement)).execute(&mut owner).await.unwrap();
        }
        let place = database.url();
        let (scheme, rest) = place.split_once("://").unwrap();
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        let url = format!("{scheme}://{user}:secret@{host}");
        std::fs::write(dir.path().join("sidetone.toml"), format!("[database]\nurl = \"{url}\"\n")).unwrap();
        let check = || String::from_utf8(sidetone(&dir, &["check"]).stderr).unwrap();
        let text = check();
        let said = format!("{user} may not create in the schema \"public\"; let its owner run GRANT CREATE");
        assert!(text.contains(&said), "{server}: {text}");
        let grant = format!("GRANT CREATE ON SCHEMA public TO {user}");
        sqlx::query(AssertSqlSafe(grant)).execute(&mut owner).await.unwrap();
        assert!(!check().contains("[database]"), "{}", check());
        let text = format!("DROP OWNED BY {user}; DROP ROLE {user}");
        sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut owner).await.unwrap();
        owner.close().await.unwrap();
    });
}
