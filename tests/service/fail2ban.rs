//! The documented filter matches the failed attempts that the engine logs, and nothing else.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::json;
use sidetone_phone::{CallPlan, Phone, PhoneConfig};

use crate::common::records::TempDir;
use crate::common::site::{PASSWORD, codecs, declare, directory, within};
use crate::service::client::Ask;
use crate::service::served::{Served, Start, config};

const DOCUMENT: &str = include_str!("../../docs/security.md");

fn phone(engine: &Served, number: &str, password: &str) -> PhoneConfig {
    PhoneConfig { codecs: codecs(&["PCMU"]), ..PhoneConfig::new(engine.sip, "acme.test", number, password) }
}

/// The expressions of the documented filter.
fn expressions() -> Vec<&'static str> {
    let filter = DOCUMENT.split("failregex = ").nth(1).unwrap();
    filter.lines().map(str::trim).take_while(|line| line.starts_with('^')).collect()
}

/// Each line that an expression matches, with the matched source address.
const FINDER: &str = r"
import json, re, sys
asked = json.load(sys.stdin)
hosts = r'(?P<host>[0-9a-fA-F:.]+)'
found = [re.compile(text.replace('<HOST>', hosts)) for text in asked['expressions']]
lines = asked['log'].splitlines()
# fail2ban takes the time out of a line before it looks at it.
lines = [re.sub(r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d', '', line) for line in lines]
hits = [(index, match.group('host')) for index, line in enumerate(lines) for one in found
        for match in [one.search(line)] if match]
print(json.dumps(hits))
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_documented_filter_finds_failed_attempts_and_nothing_else() {
    let user = "[[organisations.users]]\nemail = \"ada@acme.test\"\npassword = \"correct horse\"\nrole = \"org_admin\"\n";
    let dir = TempDir::new();
    declare(dir.path(), &format!("{}{user}", directory())).await;
    let start = Start {
        config: config(dir.path(), "[http]\nlisten = \"127.0.0.1:0\"\n"),
        log: "",
        files_max: None,
        env: Vec::new(),
    };
    let mut engine = Served::with(dir.path(), start).await;
    let good = Phone::start(phone(&engine, "1001", PASSWORD)).await.unwrap();
    good.register("1001").await.unwrap();
    let unknown = within("a call", good.call(CallPlan::to("4711"))).await.unwrap();
    assert_eq!(unknown.status, 404);
    let wrong = Phone::start(phone(&engine, "1002", "a wrong password")).await.unwrap();
    assert!(wrong.register("1002").await.is_err());
    let login = |password: &str| {
        Ask::new("POST", "/api/v1/auth/login").json(&json!({"email": "ada@acme.test", "password": password}))
    };
    assert_eq!(login("correct horse").send(engine.http).await.status, 200);
    assert_eq!(login("a wrong password").send(engine.http).await.status, 401);
    let stranger =
        Ask::new("GET", "/api/v1/cdrs").bearer("tel_ABCDEFGHIJKL_0123456789abcdefghijklmnopqrstuvwxyz");
    assert_eq!(stranger.send(engine.http).await.status, 401);
    assert_eq!(Ask::new("GET", "/api/v1/cdrs").send(engine.http).await.status, 401);
    engine.says("login failed", 1).await;
    engine.says("token refused", 1).await;
    engine.says("SIP authentication failed", 1).await;
    engine.signal("TERM");
    within("exit", engine.ended()).await;
    let log = engine.said();
    let expected: Vec<usize> = log
        .lines()
        .enumerate()
        .filter(|(_, line)| {
            ["authentication failed", "login failed", "token refused"].iter().any(|text| line.contains(text))
        })
        .map(|(at, _)| at)
        .collect();
    assert_eq!(expected.len(), 3, "one each, and none for a request without a token: {log}");
    assert!(!log.contains("0123456789abcdef"), "{log}");
    assert_eq!(expressions().len(), 3, "the filter is where it was");

    let python =
        Command::new("python3").args(["-c", FINDER]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut python) = python else {
        eprintln!("\nNOTICE: the filter of fail2ban is NOT tried: there is no python3\n");
        return;
    };
    let asked = json!({"expressions": expressions(), "log": log});
    python.stdin.take().unwrap().write_all(asked.to_string().as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    let hits: Vec<(usize, String)> = serde_json::from_slice(&output.stdout).unwrap();
    let wanted: Vec<(usize, String)> = expected.iter().map(|at| (*at, "127.0.0.1".to_owned())).collect();
    assert_eq!(hits, wanted, "{log}");
    tried_by_fail2ban(&dir, &log);
}

/// The same with the fail2ban program itself, where it is installed.
fn tried_by_fail2ban(dir: &TempDir, log: &str) {
    let Ok(_) = Command::new("fail2ban-regex").arg("--version").output() else {
        eprintln!("\nNOTICE: fail2ban-regex is not here, its filter was tried by python3 alone\n");
        return;
    };
    let filter = DOCUMENT.split("```ini\n").nth(1).unwrap().split("```").next().unwrap();
    let (filter_file, log_file) = (dir.path().join("sidetone.conf"), dir.path().join("log"));
    std::fs::write(&filter_file, filter).unwrap();
    std::fs::write(&log_file, log).unwrap();
    let output = Command::new("fail2ban-regex").arg(&log_file).arg(&filter_file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("3 matched"), "{said}");
}
