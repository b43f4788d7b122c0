//! H17: secrets are planted in every input, and searched for in all output.

use std::process::Command;
use std::time::Duration;

use serde_json::json;
use sidetone_phone::{Answering, CallPlan, Phone, PhoneConfig};

use crate::common::records::TempDir;
use crate::common::site::{codecs, declare, within};
use crate::service::client::Ask;
use crate::service::served::{Served, Start, config};

const SIP_PASSWORD: &str = "canary-sip-password-7f3a";
const WRONG_PASSWORD: &str = "canary-wrong-password-91bc";
const LOGIN_PASSWORD: &str = "canary-login-password-5d2e";
const KEY_SECRET: &str = "canarykeysecret0123456789abcdefghijklm";
const WRONG_SECRET: &str = "canarywrongsecret0123456789abcdefghijkl";
// So many digits that no time or counter in the log contains them.
const CALLER: &str = "704177318265";
const CALLEE: &str = "704288493716";
const CREATED: &str = "704399527184";
const REFUSED: &str = "704400618293";
const NUMBER: &str = "+442079460123";
const OUTSIDE: &str = "+33140123456";
const NAME: &str = "Wilhelmina Canary";
const EMAIL: &str = "wilhelmina@canary.test";
const TRUNK_PASSWORD: &str = "canary-trunk-password-33aa";
const DATABASE_PASSWORD: &str = "canary-database-password-8811";
const IDEMPOTENCY: &str = "canary-idempotency-key-1212";

fn directory() -> String {
    format!(
        "[[organisations]]\nname = \"Acme\"\nsip_domain = \"acme.test\"\n\
         [[organisations.extensions]]\nnumber = \"{CALLER}\"\nname = \"{NAME}\"\npassword = \"{SIP_PASSWORD}\"\n\
         [[organisations.extensions]]\nnumber = \"{CALLEE}\"\npassword = \"{SIP_PASSWORD}\"\n\
         [[organisations.numbers]]\nnumber = \"{NUMBER}\"\ndestination = {{ extension = \"{CALLER}\" }}\n\
         [[organisations.users]]\nemail = \"{EMAIL}\"\npassword = \"{LOGIN_PASSWORD}\"\nrole = \"org_admin\"\n\
         [[organisations.api_keys]]\nname = \"crm\"\nkey = \"tel_canary000001_{KEY_SECRET}\"\npreset = \"full\"\n\
         allow = [\"127.0.0.1\"]\n\
         [[trunks]]\nname = \"carrier\"\naddress = \"sip:127.0.0.1:9\"\nusername = \"u\"\npassword = \"{TRUNK_PASSWORD}\"\n"
    )
}

fn phone(engine: &Served, number: &str, password: &str) -> PhoneConfig {
    PhoneConfig {
        codecs: codecs(&["PCMU"]),
        answering: Answering::Answer { after: Duration::ZERO, talk: None },
        ..PhoneConfig::new(engine.sip, "acme.test", number, password)
    }
}

/// Uses the engine with valid and invalid credentials; returns the error responses and the metrics.
async fn use_it(engine: &Served) -> String {
    let caller = Phone::start(phone(engine, CALLER, SIP_PASSWORD)).await.unwrap();
    let callee = Phone::start(phone(engine, CALLEE, SIP_PASSWORD)).await.unwrap();
    caller.register(CALLER).await.unwrap();
    callee.register(CALLEE).await.unwrap();
    let stranger = Phone::start(phone(engine, CALLER, WRONG_PASSWORD)).await.unwrap();
    assert!(stranger.register(CALLER).await.is_err());
    let plan = |number: &str| CallPlan { talk_time: Some(Duration::ZERO), ..CallPlan::to(number) };
    assert_eq!(within("a call", caller.call(plan(CALLEE))).await.unwrap().status, 200);
    // An external call, through a trunk that does not respond.
    let outside = CallPlan { patience: Some(Duration::from_millis(50)), ..plan(OUTSIDE) };
    within("a call outside", caller.call(outside)).await.unwrap();

    let token = format!("tel_canary000001_{KEY_SECRET}");
    let wrong = format!("tel_canary000001_{WRONG_SECRET}");
    let get = |path: String| Ask::new("GET", path);
    let search = format!("/api/v1/cdrs?q={CALLER}&did={}", NUMBER.replace('+', "%2B"));
    assert_eq!(get(search).bearer(&token).send(engine.http).await.status, 200);
    let mut errors = String::new();
    let mut failed = async |ask: Ask, status: u16| {
        let answer = ask.send(engine.http).await;
        assert_eq!(answer.status, status, "{answer:?}");
        errors.push_str(&answer.text);
    };
    failed(get("/api/v1/cdrs".to_owned()).bearer(&wrong), 401).await;
    failed(get("/api/v1/cdrs".to_owned()).header("Authorization", &format!("Basic {WRONG_SECRET}")), 401)
        .await;
    failed(get(format!("/api/v1/cdrs/{CALLER}")).bearer(&token), 400).await;
    let login = |password: &str| {
        Ask::new("POST", "/api/v1/auth/login").json(&json!({"email": EMAIL, "password": password}))
    };
    failed(login(WRONG_PASSWORD), 401).await;
    assert_eq!(login(LOGIN_PASSWORD).send(engine.http).await.status, 200);
    let extension = json!({"number": CREATED, "name": NAME, "password": SIP_PASSWORD});
    let create = Ask::new("POST", "/api/v1/extensions").bearer(&token).key(IDEMPOTENCY).json(&extension);
    for _ in 0..2 {
        let made = create.send(engine.http).await;
        assert_eq!(made.status, 201, "{made:?}");
    }
    let reused = Ask::new("POST", "/api/v1/extensions").bearer(&token).key(IDEMPOTENCY);
    failed(reused.json(&json!({"number": REFUSED, "password": WRONG_PASSWORD})), 422).await;
    errors + &get("/metrics".to_owned()).send(engine.http).await.text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_is_secret_is_written_anywhere() {
    let dir = TempDir::new();
    declare(dir.path(), &directory()).await;
    let start = Start {
        config: config(dir.path(), "[http]\nlisten = \"127.0.0.1:0\"\n"),
        log: "debug",
        files_max: None,
        env: Vec::new(),
    };
    let mut engine = Served::with(dir.path(), start).await;
    let mut written = use_it(&engine).await;
    // A broken file with a password in it, while the engine runs and at its start.
    let broken =
        format!("[database]\nurl = \"postgres://u:{DATABASE_PASSWORD}@127.0.0.1:1/d?bad\"\nurll = 1\n");
    std::fs::write(dir.path().join("sidetone.toml"), &broken).unwrap();
    engine.signal("HUP");
    engine.says("nothing has changed", 1).await;
    engine.signal("TERM");
    within("exit", engine.ended()).await;
    assert!(engine.said().contains("request answered") && engine.said().contains("call ended"));
    written += &engine.said();
    let output = Command::new(env!("CARGO_BIN_EXE_sidetone"))
        .args(["serve", "--config"])
        .arg(dir.path().join("sidetone.toml"))
        .env("RUST_LOG", "debug")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    written += &String::from_utf8_lossy(&output.stderr);
    written += &String::from_utf8_lossy(&output.stdout);

    // A line about a failed attempt names the account, and no other data of the attempt.
    let is_attempt = |line: &str| line.contains("authentication failed") || line.contains("login failed");
    let attempts: Vec<&str> = written.lines().filter(|line| is_attempt(line)).collect();
    assert!(
        attempts.iter().any(|line| line.contains(CALLER)) && attempts.iter().any(|line| line.contains(EMAIL))
    );
    for secret in [SIP_PASSWORD, WRONG_PASSWORD, LOGIN_PASSWORD, NAME] {
        assert!(!attempts.iter().any(|line| line.contains(secret)), "{secret}: {attempts:?}");
    }
    let written: String =
        written.lines().filter(|line| !is_attempt(line)).flat_map(|line| [line, "\n"]).collect();
    let canaries = [
        SIP_PASSWORD,
        WRONG_PASSWORD,
        LOGIN_PASSWORD,
        KEY_SECRET,
        WRONG_SECRET,
        CALLER,
        CALLEE,
        CREATED,
        REFUSED,
        NUMBER,
        OUTSIDE,
        OUTSIDE.trim_start_matches('+'),
        NUMBER.trim_start_matches('+'),
        NAME,
        EMAIL,
        TRUNK_PASSWORD,
        DATABASE_PASSWORD,
        IDEMPOTENCY,
    ];
    for canary in canaries {
        let hit = written.lines().find(|line| line.contains(canary));
        assert!(hit.is_none(), "{canary}: {hit:?}");
    }
}
