//! Apply files end to end: what is refused and how, what is made true, what a second time changes.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a helper of a test may fail the test"
)]

#[path = "common/database.rs"]
mod database;
#[path = "common/records.rs"]
mod records;

use std::process::{Command, Output};

use database::{TestDatabase, chosen};
use rand::SeedableRng;
use rand::rngs::StdRng;
use records::{TempDir, at};
use serde_json::Value;
use sidetone::accounts::hash::verify;
use sidetone::accounts::{Passwords, People};
use sidetone::demo::Access;
use sidetone::provision::{Declaration, ProvisionError, Report, apply};
use sidetone::store::Store;
use sidetone_model::directory::{Destination, Secret};
use sidetone_model::ports::ApiKeys;
use sidetone_model::rating::{Increments, Validity};
use sidetone_model::time::Timestamp;
use sidetone_model::user::Accounts;
use sidetone_sip::auth::{Algorithm, Credential};

/// The apply file of the contract, as far as this version goes.
const ACME: &str = r#"
[[organisations]]
name = "Acme"
sip_domain = "ACME.test"
currency = "EUR"
credit = "25.00"
  [[organisations.teams]]
  name = "support"
  [[organisations.extensions]]
  number = "1001"
  name = "Ada"
  password = "correct horse"
  team = "support"
  codecs = ["Opus", "g722", "PCMA", "PCMU"]
  [[organisations.extensions]]
  number = "1002"
  [[organisations.api_keys]]
  name = "crm"
  key = "tel_ABCDEFGHIJKL_0123456789abcdefghijklmnopqrstuvwxyzABC"
  permissions = ["calls:read"]
  allow = ["127.0.0.1", "::ffff:192.0.2.0/120", "2001:db8::1/32"]
  rate_per_minute = 5
  [[organisations.api_keys]]
  name = "made"
  preset = "full"
  allow = ["127.0.0.1/32"]
  [[organisations.numbers]]
  number = "+442071230000"
  destination = { extension = "1001" }
[[trunks]]
name = "carrier"
organisation = "Acme"
address = "sip:carrier.example:5060"
accept_from = ["192.0.2.7/24"]
username = ""
priority = 10
"#;

fn parse(text: &str) -> Result<Declaration, Vec<String>> {
    Declaration::parse(text.parse().unwrap()).map_err(|all| all.iter().map(ToString::to_string).collect())
}

/// Runs one case on a fresh database of the chosen kind.
fn with_store(case: impl AsyncFnOnce(&Store)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let dir = TempDir::new();
        let database = TestDatabase::new(chosen(), dir.path()).await;
        let store = Store::open(&database.database).await.unwrap();
        case(&store).await;
        store.close().await;
    });
}

async fn declare(store: &Store, texts: &[&str], dry_run: bool) -> Result<Report, ProvisionError> {
    let declarations: Vec<Declaration> = texts.iter().map(|text| parse(text).unwrap()).collect();
    let mut rng = StdRng::seed_from_u64(7);
    apply(store, &declarations, dry_run, at(0), &mut rng).await
}

fn json(report: &Report) -> Value {
    serde_json::from_str(&report.to_json().unwrap()).unwrap()
}

fn refusals(error: ProvisionError) -> Vec<String> {
    match error {
        ProvisionError::Refused(problems) => {
            problems.iter().map(|(file, problem)| format!("{file}: {problem}")).collect()
        }
        ProvisionError::Hash(error) => panic!("{error}"),
        ProvisionError::Store(error) => panic!("{error}"),
    }
}

#[test]
fn the_file_of_the_contract_becomes_the_directory() {
    with_store(async |store| {
        let report = json(&declare(store, &[ACME], false).await.unwrap());
        assert_eq!(
            (&report["created"], &report["changed"], &report["unchanged"]),
            (&8.into(), &0.into(), &0.into())
        );
        let acme = &report["organisations"][0];
        assert_eq!(acme["name"], "Acme");
        assert_eq!(acme["extensions"][0].get("password"), None, "it was given");
        let password = acme["extensions"][1]["password"].as_str().unwrap();
        assert_eq!(password.len(), 20);
        assert!(acme["api_keys"][0]["key"].as_str().unwrap().starts_with("tel_ABCDEFGHIJKL_"));
        assert_eq!(acme["api_keys"][1]["key"].as_str().unwrap().len(), 60);
        for list in ["teams", "extensions", "api_keys", "numbers"] {
            assert_eq!(acme[list][0]["id"].as_str().unwrap().len(), 36, "{list}");
        }
        assert_eq!((&acme["users"], &acme["rooms"]), (&Value::Array(vec![]), &Value::Array(vec![])));
        assert_eq!(report["trunks"][0]["name"], "carrier");

        let directory = store.directory().await.unwrap();
        assert_eq!(directory.organisations[0].sip_domain, "acme.test");
        let [ada, other] = directory.extensions.as_slice() else { panic!("two extensions") };
        assert_eq!(ada.codecs, ["opus", "G722", "PCMA", "PCMU"]);
        assert!(ada.team_id.is_some() && other.team_id.is_none());
        for (extension, password) in [(ada, "correct horse"), (other, password)] {
            let credential = Credential::new(&extension.number, "acme.test", password);
            assert_eq!(extension.ha1.md5, credential.ha1(Algorithm::Md5));
            assert_eq!(extension.ha1.sha256, credential.ha1(Algorithm::Sha256));
        }
        assert_eq!(directory.numbers[0].destination, Destination::Extension(ada.id));
        let trunk = &directory.trunks[0];
        assert_eq!(trunk.organisation_id, Some(directory.organisations[0].id));
        assert_eq!(trunk.accept_from[0].address.to_string(), "192.0.2.0", "host bits are zero");

        let key = ApiKeys::find(store, "ABCDEFGHIJKL").await.unwrap().unwrap();
        let allow: Vec<String> =
            key.allow.iter().map(|n| format!("{}/{}", n.address, n.prefix_len)).collect();
        assert_eq!(allow, ["127.0.0.1/32", "192.0.2.0/24", "2001:db8::/32"]);
        assert_eq!(key.rate_per_minute, 5);
    });
}

#[test]
fn a_second_time_changes_nothing_and_shows_no_generated_secret() {
    with_store(async |store| {
        let first = json(&declare(store, &[ACME], false).await.unwrap());
        let before = store.directory().await.unwrap();
        let second = json(&declare(store, &[ACME], false).await.unwrap());
        assert_eq!(
            (&second["created"], &second["changed"], &second["unchanged"]),
            (&0.into(), &0.into(), &8.into())
        );
        let acme = &second["organisations"][0];
        assert_eq!(acme["extensions"][1].get("password"), None);
        assert_eq!(acme["api_keys"][1].get("key"), None);
        assert_eq!(acme["id"], first["organisations"][0]["id"]);
        assert_eq!(store.directory().await.unwrap(), before, "revision and all");
    });
}

#[test]
fn what_differs_is_changed_and_counted() {
    with_store(async |store| {
        declare(store, &[ACME], false).await.unwrap();
        let changed = ACME.replace("Ada", "Grace").replace("rate_per_minute = 5", "rate_per_minute = 6");
        let report = declare(store, &[&changed], false).await.unwrap();
        let text = report.to_string();
        assert_eq!(
            text,
            "changed extension 1001 of Acme\nchanged API key crm of Acme\n0 created, 2 changed, 6 unchanged\n"
        );
        assert_eq!(store.directory().await.unwrap().revision, 2);
    });
}

#[test]
fn a_dry_run_changes_nothing_and_shows_no_secret() {
    with_store(async |store| {
        let report = json(&declare(store, &[ACME], true).await.unwrap());
        assert_eq!(report["created"], 8);
        let acme = &report["organisations"][0];
        assert_eq!((acme.get("id"), acme["extensions"][1].get("password")), (None, None));
        assert_eq!(acme["api_keys"][1].get("key"), None);
        let directory = store.directory().await.unwrap();
        assert_eq!((directory.revision, directory.organisations.len()), (0, 0));
    });
}

/// The users of [`ACME`], one with a password and one without.
const USERS: &str = r#"
[[organisations]]
name = "Acme"
sip_domain = "acme.test"
  [[organisations.teams]]
  name = "support"
  [[organisations.users]]
  email = "Admin@ACME.test"
  password = "correct horse"
  role = "org_admin"
  [[organisations.users]]
  email = "eve@acme.test"
  name = "Eve"
  role = "team_supervisor"
  team = "support"
"#;

#[test]
fn users_are_declared_once_and_their_sessions_live_on() {
    with_store(async |store| {
        let first = json(&declare(store, &[USERS], false).await.unwrap());
        let users = &first["organisations"][0]["users"];
        assert_eq!((&users[0]["email"], users[0].get("password")), (&"admin@acme.test".into(), None));
        let generated = users[1]["password"].as_str().unwrap();
        assert_eq!(generated.len(), 20);
        let (admin, hash) = store.account_by_email("admin@acme.test").await.unwrap().unwrap();
        assert_eq!((admin.user.name.as_str(), admin.user.role.as_str()), ("admin", "org_admin"));
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert!(verify("correct horse", &hash) && !verify(generated, &hash));
        let (eve, hash) = store.account_by_email("eve@acme.test").await.unwrap().unwrap();
        assert!(verify(generated, &hash) && eve.user.team_id.is_some());

        let second = json(&declare(store, &[USERS], false).await.unwrap());
        assert_eq!((&second["changed"], &second["unchanged"]), (&0.into(), &4.into()));
        assert_eq!(second["organisations"][0]["users"][1].get("password"), None);
        let versions = async || {
            let mut versions = Vec::new();
            for email in ["admin@acme.test", "eve@acme.test"] {
                versions.push(store.account_by_email(email).await.unwrap().unwrap().0.version);
            }
            versions
        };
        assert_eq!(versions().await, [1, 1]);
        let changed = USERS.replace("correct horse", "battery staple").replace("\"Eve\"", "\"Eva\"");
        let third = json(&declare(store, &[&changed], false).await.unwrap());
        assert_eq!((&third["changed"], &third["unchanged"]), (&2.into(), &2.into()));
        assert_eq!(versions().await, [2, 1], "a new password ends sessions, a new name does not");

        let elsewhere = USERS.replace("Acme", "Bolt").replace("acme.test\"\n  [[o", "bolt.test\"\n  [[o");
        let refused = refusals(declare(store, &[&elsewhere], false).await.unwrap_err());
        assert!(refused[0].contains("users[0].email: somebody of another organisation"), "{refused:?}");
    });
}

/// What `sidetone demo` prints lets people in.
#[test]
fn the_user_of_the_demo_logs_in() {
    with_store(async |store| {
        let mut rng = StdRng::seed_from_u64(5);
        let access = Access::generate(&mut rng);
        declare(store, &[&access.apply_file()], false).await.unwrap();
        let people = People::new(store.clone(), Passwords::new(&mut rng).unwrap());
        let log_in =
            async |password: &str| people.log_in(access.email, &Secret(password.to_owned())).await.unwrap();
        let account = log_in(&access.user_password).await.unwrap();
        assert_eq!(account.user.role.as_str(), "org_admin");
        assert_eq!(log_in(&access.key).await, None);
    });
}

#[test]
fn several_files_are_one_whole() {
    with_store(async |store| {
        let trunk = "[[trunks]]\nname = \"t\"\norganisation = \"Acme\"\naccept_from = [\"198.51.100.1\"]\n";
        declare(store, &[trunk, ACME], false).await.unwrap();
        assert_eq!(store.directory().await.unwrap().trunks.len(), 2);
        let bad = "[[trunks]]\nname = \"u\"\norganisation = \"Nobody\"\n";
        let more = "[[organisations]]\nname = \"Bolt\"\nsip_domain = \"bolt.test\"\n";
        let refused = refusals(declare(store, &[more, bad], false).await.unwrap_err());
        assert_eq!(refused, ["1: trunks[0].organisation: there is no organisation \"Nobody\", declare it"]);
        assert_eq!(store.directory().await.unwrap().organisations.len(), 1, "all or nothing");
    });
}

#[test]
fn what_contradicts_the_database_is_refused_by_key() {
    let cases = [
        (
            "a domain of another",
            "[[organisations]]\nname = \"Bolt\"\nsip_domain = \"acme.test\"\n",
            "0: organisations[0].sip_domain: another organisation has this domain",
        ),
        (
            "a number of another",
            "[[organisations]]\nname = \"Bolt\"\nsip_domain = \"bolt.test\"\n[[organisations.extensions]]\n\
             number = \"1\"\n[[organisations.numbers]]\nnumber = \"+442071230000\"\n\
             destination = { extension = \"1\" }\n",
            "0: organisations[0].numbers[0].number: the number belongs to another organisation",
        ),
        (
            "a key id of another",
            "[[organisations]]\nname = \"Bolt\"\nsip_domain = \"bolt.test\"\n[[organisations.api_keys]]\n\
             name = \"k\"\nkey = \"tel_ABCDEFGHIJKL_0123456789abcdefghijklmnopqrstuvwxyz\"\npreset = \"full\"\n\
             allow = [\"127.0.0.1\"]\n",
            "0: organisations[0].api_keys[0].key: another key has this id",
        ),
        (
            "a destination that is not there",
            "[[organisations]]\nname = \"Acme\"\nsip_domain = \"acme.test\"\n[[organisations.numbers]]\n\
             number = \"+4420\"\ndestination = { extension = \"9\" }\n",
            "0: organisations[0].numbers[0].destination: there is no extension \"9\", declare it",
        ),
        (
            "a team that is not there",
            "[[organisations]]\nname = \"Acme\"\nsip_domain = \"acme.test\"\n[[organisations.extensions]]\n\
             number = \"7\"\nteam = \"sales\"\n",
            "0: organisations[0].extensions[0].team: there is no team \"sales\", declare it under teams",
        ),
        (
            "a new domain without the passwords",
            "[[organisations]]\nname = \"Acme\"\nsip_domain = \"new.test\"\n",
            "0: organisations[0].sip_domain: was acme.test; passwords belong to a domain, give those of 1001, 1002 \
             here as well",
        ),
    ];
    with_store(async |store| {
        declare(store, &[ACME], false).await.unwrap();
        let before = store.directory().await.unwrap();
        for (name, text, expected) in cases {
            let refused = refusals(declare(store, &[text], false).await.expect_err(name));
            assert_eq!(refused, [expected], "{name}");
        }
        assert_eq!(store.directory().await.unwrap(), before);
    });
}

#[test]
fn every_mistake_in_a_file_is_named() {
    let organisation =
        |inside: &str| format!("[[organisations]]\nname = \"A\"\nsip_domain = \"a.test\"\n{inside}");
    let key = |inside: &str| organisation(&format!("[[organisations.api_keys]]\nname = \"k\"\n{inside}\n"));
    let later = "is not supported by this version yet";
    let at_key = "organisations[0].api_keys[0]";
    let cases: Vec<(&str, String, Vec<String>)> = vec![
        ("nothing", String::new(), vec![]),
        (
            "empty organisation",
            "[[organisations]]\n".to_owned(),
            vec!["organisations[0].name: is missing".to_owned(), "organisations[0].sip_domain: is missing".to_owned()],
        ),
        (
            "later features",
            organisation("[[organisations.rooms]]\n"),
            vec![format!("organisations[0].rooms: {later}")],
        ),
        (
            "a URL without a secret",
            organisation("call_info_url = \"https://crm.example/\"\n"),
            vec![
                "organisations[0].call_info_secret: is missing: what is sent to call_info_url is signed with it"
                    .to_owned(),
            ],
        ),
        (
            "a secret without a URL",
            organisation("call_info_secret = \"sixteen letters!\"\n"),
            vec![
                "organisations[0].call_info_url: is missing: call_info_secret signs what is sent there".to_owned(),
            ],
        ),
        (
            "a short secret",
            organisation("call_info_url = \"https://crm.example/\"\ncall_info_secret = \"short\"\n"),
            vec![
                "organisations[0].call_info_secret: must be 16 to 256 characters on one line, without control \
                 characters"
                    .to_owned(),
            ],
        ),
        (
            "a secret for nothing",
            organisation("call_info_url = \"\"\ncall_info_secret = \"sixteen letters!\"\n"),
            vec![
                "organisations[0].call_info_secret: must be empty, or left out, with an empty call_info_url"
                    .to_owned(),
            ],
        ),
        (
            "rates",
            "[[sell_rates]]\nprefix = \"44\"\nper_minute = \"-1\"\nincrements = [60]\nto_time = \"1969-01-01\"\n\
             [[cost_rates]]\ntrunk = \"carrier\"\nprefix = \"+4a\"\nper_minute = \"0.000000001\"\nfrom_time = \"soon\"\n\
             [[fx_rates]]\nfrom = \"EUR\"\nto = \"EUR\"\nrate = \"0\"\n".to_owned(),
            [
                "sell_rates[0].organisation: is missing",
                "sell_rates[0].per_minute: must be a decimal in quotes, 0 to 10000 with at most 8 places, such as \"0.0120\"",
                "sell_rates[0].increments: must be two numbers of seconds, 1 to 86400, such as [60, 1]",
                "sell_rates[0].to_time: must be later than from_time",
                "cost_rates[0].prefix: must be the beginning of a number such as +44, at most 15 digits",
                "cost_rates[0].per_minute: must be a decimal in quotes, 0 to 10000 with at most 8 places, such as \"0.0120\"",
                "cost_rates[0].currency: is missing",
                "cost_rates[0].from_time: must be an instant such as \"2026-01-01T00:00:00Z\"",
                "fx_rates[0].to: must be another currency than from",
                "fx_rates[0].rate: must be a decimal in quotes, above 0 and at most 10000000 with at most 8 places, such as \"0.9200\"",
            ].map(str::to_owned).to_vec(),
        ),
        (
            "values of an organisation",
            "[[organisations]]\nname = \"A\"\nsip_domain = \"a b\"\ncurrency = \"euro\"\ncredit = \"1e3\"\n".to_owned(),
            vec![
                "organisations[0].sip_domain: must be a host name such as acme.test".to_owned(),
                "organisations[0].currency: must be the three letters of a currency, such as EUR".to_owned(),
                "organisations[0].credit: must be a decimal in quotes that is not negative, such as \"25.00\"".to_owned(),
            ],
        ),
        (
            "an extension",
            organisation("[[organisations.extensions]]\nnumber = \"10a\"\npassword = \"\"\ncodecs = [\"G729\", \"pcmu\", \"PCMU\"]\n"),
            vec![
                "organisations[0].extensions[0].number: must be 1 to 15 digits".to_owned(),
                "organisations[0].extensions[0].password: must be 1 to 128 bytes on one line".to_owned(),
                "organisations[0].extensions[0].codecs: \"G729\" is none of G722, PCMA, PCMU, opus".to_owned(),
                "organisations[0].extensions[0].codecs: PCMU is named twice".to_owned(),
            ],
        ),
        (
            "twice",
            organisation("[[organisations.extensions]]\nnumber = \"1\"\n[[organisations.extensions]]\nnumber = \"1\"\n"),
            vec!["organisations[0].extensions[1].number: \"1\" is declared twice".to_owned()],
        ),
        (
            "a key without an allowlist or permissions",
            key(""),
            vec![
                format!("{at_key}.permissions: is missing, name permissions or a preset"),
                format!("{at_key}.allow: is missing, name the addresses that may use the key"),
            ],
        ),
        (
            "a key for the whole Internet",
            key("preset = \"full\"\nallow = [\"0.0.0.0/0\", \"::/0\", \"localhost\"]"),
            vec![
                format!("{at_key}.allow: \"0.0.0.0/0\" is the whole Internet, name the addresses that call"),
                format!("{at_key}.allow: \"::/0\" is the whole Internet, name the addresses that call"),
                format!("{at_key}.allow: \"localhost\" must be an address or a network, such as 192.0.2.0/24"),
            ],
        ),
        (
            "users",
            organisation(
                "[[organisations.users]]\nemail = \"ada\"\npassword = \"\"\nrole = \"root\"\n\
                 [[organisations.users]]\nemail = \"eve@acme.test\"\nrole = \"agent\"\n\
                 [[organisations.users]]\nemail = \"Eve@ACME.test\"\nrole = \"agent\"\nteem = \"a\"\n",
            ),
            vec![
                "organisations[0].users[0].email: must be an email address such as ada@acme.test".to_owned(),
                "organisations[0].users[0].password: must be 1 to 128 bytes on one line".to_owned(),
                "organisations[0].users[0].role: \"root\" is none of agent, operator, org_admin, org_member, \
                 team_supervisor"
                    .to_owned(),
                "organisations[0].users[2].teem: unknown key, known here are: email, name, password, role, team"
                    .to_owned(),
                "organisations[0].users[2].email: \"eve@acme.test\" is declared twice".to_owned(),
            ],
        ),
        (
            "an empty allowlist",
            key("preset = \"full\"\nallow = []"),
            vec![format!("{at_key}.allow: must name 1 to 64 addresses or networks")],
        ),
        (
            "permissions",
            key("permissions = [\"calls:write\"]\nallow = [\"127.0.0.1\"]\nrate_per_minute = 0\nkey = \"tel_short\""),
            vec![
                format!("{at_key}.key: must be a prefix, an id of 8 to 32 and a secret of 32 to 128 letters and digits, with _ between them"),
                format!("{at_key}.permissions: \"calls:write\" is none of billing:read, calls:control, calls:read, conferences:control, conferences:read, conferences:write, conversations:write, directory:read, directory:write, keys:write, margin:read, organisations:write, rates:write, recordings:listen, trunks:write, users:write"),
                format!("{at_key}.rate_per_minute: 0 is out of range, write 1 to 60000"),
            ],
        ),
        (
            "a number",
            organisation("[[organisations.numbers]]\nnumber = \"0044\"\ndestination = { conference = true }\n"),
            vec![
                "organisations[0].numbers[0].number: must be written like +442071230000".to_owned(),
                format!("organisations[0].numbers[0].destination.conference: {later}"),
            ],
        ),
        (
            "a trunk",
            "[[trunks]]\nname = \"t\"\naddress = \"carrier\"\nusername = \"u\"\nregister = true\nport = 1\n".to_owned(),
            vec![
                "trunks[0].address: must be written like sip:carrier.example:5060".to_owned(),
                "trunks[0].port: unknown key, known here are: name, organisation, address, accept_from, username, password, realm, register, priority, short_numbers".to_owned(),
            ],
        ),
        (
            "a trunk that cannot register",
            "[[trunks]]\nname = \"t\"\naddress = \"sip:carrier.example;transport=tls\"\nregister = true\n\
             [[trunks]]\nname = \"u\"\nregister = true\npassword = \"a\\nb\"\nshort_numbers = [\"+112\"]\n"
                .to_owned(),
            vec![
                "trunks[0].address: goes over UDP in this version, write it without ;transport".to_owned(),
                "trunks[1].password: must be 1 to 128 bytes on one line".to_owned(),
                "trunks[1].register: needs an address and a username to register with".to_owned(),
                "trunks[1].short_numbers: must be 1 to 6 digits, such as \"112\"".to_owned(),
            ],
        ),
        (
            "numbering",
            organisation("country_code = \"+44\"\nnational_prefix = \"0x\"\ninternational_prefix = \"\"\nmax_outbound_calls = -1\n"),
            vec![
                "organisations[0].country_code: must be 0 to 3 digits in quotes".to_owned(),
                "organisations[0].national_prefix: must be 0 to 5 digits in quotes".to_owned(),
                "organisations[0].international_prefix: must be 1 to 5 digits in quotes".to_owned(),
                "organisations[0].max_outbound_calls: -1 is out of range, write 0 to 1000000".to_owned(),
            ],
        ),
    ];
    for (name, text, expected) in cases {
        let found = parse(&text).err().unwrap_or_default();
        assert_eq!(found, expected, "{name}");
    }
}

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
    let output = sidetone(&dir, &["apply", "acme.toml"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "0 created, 0 changed, 8 unchanged\n");
}

#[test]
fn a_wrong_command_line_or_file_exits_2_with_one_line() {
    let dir = TempDir::new();
    std::fs::write(dir.path().join("bad.toml"), "[[organisations]]\nnme = \"A\"\n").unwrap();
    std::fs::write(dir.path().join("torn.toml"), "[[organisations\n").unwrap();
    std::fs::write(dir.path().join("config.toml"), "[sip]\nlistn = 1\n").unwrap();
    let cases: [(&[&str], &str); 4] = [
        (&["apply", "missing.toml"], "sidetone: missing.toml: cannot be read"),
        (&["apply", "bad.toml", "torn.toml"], "sidetone: torn.toml: line 1"),
        (&["apply", "bad.toml"], "sidetone: bad.toml: organisations[0].name: is missing; bad.toml: "),
        (&["apply", "bad.toml", "--config", "config.toml"], "sidetone: config.toml: sip.listn: unknown key"),
    ];
    for (args, expected) in cases {
        let output = sidetone(&dir, args);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.starts_with(expected) && text.lines().count() == 1, "{args:?}: {text}");
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

/// The prices of the contract.
const RATES: &str = r#"
[[sell_rates]]
organisation = "Acme"
prefix = "+44"
per_minute = "0.0120"
currency = "EUR"
increments = [60, 1]
[[sell_rates]]
organisation = "Acme"
prefix = "+1"
per_minute = "0.0200"
currency = "USD"
from_time = "2026-01-01T00:00:00Z"
to_time = 2027-01-01T00:00:00Z
[[cost_rates]]
trunk = "carrier"
prefix = "+44"
per_minute = "0.0080"
currency = "USD"
increments = [1, 1]
[[fx_rates]]
from = "USD"
to = "EUR"
rate = "0.9200"
from_time = "2026-01-01T00:00:00Z"
"#;

#[test]
fn rates_are_declared_once_and_changed_by_what_they_are_for() {
    with_store(async |store| {
        let report = json(&declare(store, &[RATES, ACME], false).await.unwrap());
        assert_eq!(report["created"], 12);
        let rates = store.rates().await.unwrap();
        assert_eq!((rates.sell.len(), rates.cost.len(), rates.fx.len()), (2, 1, 1));
        let (america, britain) = (&rates.sell[0], &rates.sell[1]);
        assert_eq!(britain.price.increments, Increments::new(60, 1).unwrap());
        assert_eq!(america.price.increments, Increments::SECONDS);
        let year = |year: i32| format!("{year}-01-01T00:00:00Z").parse::<Timestamp>().unwrap();
        assert_eq!(america.validity, Validity { from: year(2026), to: Some(year(2027)) });
        let (directory, revision) = (store.directory_revision().await.unwrap(), rates.revision);

        let again = json(&declare(store, &[RATES, ACME], false).await.unwrap());
        assert_eq!((&again["created"], &again["changed"]), (&0.into(), &0.into()));
        assert_eq!(store.rate_revision().await.unwrap(), revision);
        let dearer = RATES.replace("0.0120", "0.0130").replace("0.9200", "0.9300");
        let changed = json(&declare(store, &[&dearer], false).await.unwrap());
        assert_eq!((&changed["changed"], &changed["unchanged"]), (&2.into(), &2.into()));
        let changed = store.rates().await.unwrap();
        assert_eq!(changed.sell[1].price.per_minute, "0.0130".parse().unwrap());
        assert_eq!((changed.sell[1].id, changed.fx[0].id), (britain.id, rates.fx[0].id));
        // A price that changes is no reason to read every extension again.
        assert_eq!(store.directory_revision().await.unwrap(), directory);
        assert!(changed.revision > revision);
    });
}

#[test]
fn rates_name_what_is_there() {
    with_store(async |store| {
        let error = declare(store, &[RATES], false).await.unwrap_err();
        let missing = "there is no organisation \"Acme\", declare it";
        assert_eq!(
            refusals(error),
            [
                format!("0: sell_rates[0].organisation: {missing}"),
                format!("0: sell_rates[1].organisation: {missing}"),
                "0: cost_rates[0].trunk: there is no trunk \"carrier\", declare it".to_owned(),
            ]
        );
        let without_fx = RATES.split("[[fx_rates]]").next().unwrap();
        let error = declare(store, &[ACME, without_fx], false).await.unwrap_err();
        assert_eq!(
            refusals(error),
            [
                "1: sell_rates[1].currency: Acme has its credit in EUR, declare what USD is in it under fx_rates"
            ]
        );
        // Without a limit there is nothing to convert into.
        let unlimited = ACME.replace("credit = \"25.00\"\n", "");
        declare(store, &[&unlimited, without_fx], false).await.unwrap();
        assert!(parse(&format!("{RATES}{RATES}")).unwrap_err()[0].contains("is declared twice"));
    });
}

/// Prices of AI models, one for all and one of an organisation's own.
const AI_PRICES: &str = r#"
[[ai_prices]]
kind = "sell"
provider = "acme-ai"
model = "talk-*"
text_input_per_million = "4.00"
audio_input_per_million = "40.00"
output_per_million = "16.00"
currency = "EUR"
[[ai_prices]]
kind = "sell"
organisation = "Acme"
provider = "acme-ai"
model = "talk-*"
text_input_per_million = "3.00"
output_per_million = "12.00"
currency = "EUR"
from_time = 2026-01-01T00:00:00Z
to_time = "2027-01-01"
"#;

#[test]
fn ai_prices_are_declared_once_and_changed_by_what_they_are_for() {
    with_store(async |store| {
        let report = json(&declare(store, &[AI_PRICES, ACME], false).await.unwrap());
        assert_eq!(report["created"], 10);
        let again = json(&declare(store, &[AI_PRICES, ACME], false).await.unwrap());
        assert_eq!((&again["created"], &again["changed"]), (&0.into(), &0.into()));
        let dearer = AI_PRICES.replace("40.00", "41.00");
        let changed = declare(store, &[&dearer], false).await.unwrap();
        let line =
            "changed sell price of acme-ai talk-* for every organisation from 1970-01-01T00:00:00.000Z";
        assert!(changed.to_string().starts_with(line), "{changed}");
        assert_eq!((&json(&changed)["changed"], &json(&changed)["unchanged"]), (&1.into(), &1.into()));
    });
}

#[test]
fn what_is_wrong_with_an_ai_price_is_named() {
    with_store(async |store| {
        let error = declare(store, &[AI_PRICES], false).await.unwrap_err();
        let missing = "0: ai_prices[1].organisation: there is no organisation \"Acme\", declare it";
        assert_eq!(refusals(error), [missing]);
    });
    let wrong = "[[ai_prices]]\nkind = \"cost\"\norganisation = \"Acme\"\nprovider = \"\"\nmodel = \"a*b\"\n\
                 text_input_per_million = \"-1\"\noutput_per_million = \"1e3\"\nto_time = \"1969-01-01\"\nprice = 1\n";
    assert_eq!(
        parse(wrong).unwrap_err(),
        [
            "ai_prices[0].organisation: must be left out: a cost is the operator's, whoever caused it",
            "ai_prices[0].provider: must not be empty",
            "ai_prices[0].model: must be a model's name, or the beginning of names followed by *",
            "ai_prices[0].text_input_per_million: must be between 0 and 1000000",
            "ai_prices[0].output_per_million: must be a decimal such as \"4.00\": not a decimal number such as 12.50",
            "ai_prices[0].currency: is missing",
            "ai_prices[0].to_time: must be after from_time",
            "ai_prices[0].price: unknown key, known here are: kind, organisation, provider, model, \
             text_input_per_million, audio_input_per_million, output_per_million, currency, from_time, to_time",
        ]
    );
    let twice = parse(&format!("{AI_PRICES}{AI_PRICES}")).unwrap_err();
    assert!(twice.len() == 2 && twice[0].contains("is declared twice"), "{twice:?}");
}
