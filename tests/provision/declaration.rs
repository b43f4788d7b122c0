//! The apply file of the tests, and how they apply it.

use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::Value;
use sidetone::provision::{Declaration, ProvisionError, Report, apply};
use sidetone_store::Store;

use crate::common::database::{TestDatabase, chosen};
use crate::common::records::{TempDir, at};

/// The apply file of the contract; its rooms are in `rooms.rs`.
pub const ACME: &str = r#"
[[organisations]]
name = "Acme"
sip_domain = "ACME.test"
currency = "EUR"
credit = "25.00"
max_call_seconds = 7200
  [[organisations.teams]]
  name = "support"
  [[organisations.extensions]]
  number = "1001"
  name = "Ada"
  password = "correct horse"
  team = "support"
  codecs = ["Opus", "g722", "PCMA", "PCMU"]
  strict_source = "sdp"
  srtp = "required"
  video = "pass"
  do_not_disturb = true
  max_registrations = 3
  notify_message_waiting = true
  forwarding = { busy = "1002", no_answer = "+44 207 123 0001", no_answer_seconds = 30 }
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
strict_source = "any"
srtp = "optional"
video = "pass"
max_call_seconds = 3600
backup_addresses = ["sip:B.carrier.example", "sip:192.0.2.9:5062"]
from_domain = "Acme.carrier.example"
country_code = "44"
inbound_numbers = "national"
outbound_numbers = "prefixed"
codecs = ["pcma"]
headers = ["X-Account: 42", "X-Site:1"]
"#;

pub fn parse(text: &str) -> Result<Declaration, Vec<String>> {
    Declaration::parse(text.parse().unwrap()).map_err(|all| all.iter().map(ToString::to_string).collect())
}

/// Runs one case on a fresh database of the chosen kind.
pub fn with_store(case: impl AsyncFnOnce(&Store)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let dir = TempDir::new();
        let database = TestDatabase::new(chosen(), dir.path()).await;
        let store = Store::open(&database.database).await.unwrap();
        case(&store).await;
        store.close().await;
    });
}

pub async fn declare(store: &Store, texts: &[&str], dry_run: bool) -> Result<Report, ProvisionError> {
    let declarations: Vec<Declaration> = texts.iter().map(|text| parse(text).unwrap()).collect();
    let mut rng = StdRng::seed_from_u64(7);
    apply(store, &declarations, dry_run, at(0), &mut rng).await
}

pub fn json(report: &Report) -> Value {
    serde_json::from_str(&report.to_json().unwrap()).unwrap()
}

pub fn refusals(error: ProvisionError) -> Vec<String> {
    match error {
        ProvisionError::Refused(problems) => {
            problems.iter().map(|(file, problem)| format!("{file}: {problem}")).collect()
        }
        ProvisionError::Hash(error) => panic!("{error}"),
        ProvisionError::Store(error) => panic!("{error}"),
    }
}
