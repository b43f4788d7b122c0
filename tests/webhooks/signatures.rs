//! W5: every signature is accepted by third-party verifiers: Python's `hmac`, and the crate of Standard
//! Webhooks.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use sidetone::webhooks::signing::{new_secret, service_signature, standard_signatures};
use sidetone_model::access::Scope;
use sidetone_model::directory::Secret;
use sidetone_model::time::Timestamp;
use sidetone_model::webhook::{SECRET_OVERLAP_US, Webhooks};
use standardwebhooks::Webhook;

use crate::common::database::kinds;
use crate::webhooks::world::{World, answered, header};

/// The verifiers of docs/integrators.md, on a list of cases.
const VERIFIER: &str = r#"
import base64, hashlib, hmac, json, sys

def service(secret, body, header):
    expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, header)

def standard(secret, id, timestamp, body, header):
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = id.encode() + b"." + timestamp.encode() + b"." + body
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(expected, one) for one in header.split(" "))

for case in json.load(sys.stdin):
    body = base64.b64decode(case["body"])
    ok = service(case["secret"], body, case["service"])
    ok = ok and standard(case["secret"], case["id"], case["timestamp"], body, case["standard"])
    print("ok" if ok else "WRONG")
"#;

/// A body and its headers.
struct Signed {
    secret: Secret,
    id: String,
    timestamp_s: i64,
    body: Vec<u8>,
    service: String,
    standard: String,
}

#[test]
fn independent_verifiers_accept_every_body() {
    let mut rng = StdRng::seed_from_u64(1);
    let bodies: [Vec<u8>; 4] = [
        Vec::new(),
        b"{}".to_vec(),
        "{\"title\":\"Zoë owes 900 € — ☎ 𝄞\"}".as_bytes().to_vec(),
        // 1 MiB.
        [b"\"".as_slice(), &vec![b'x'; 1024 * 1024 - 2], b"\""].concat(),
    ];
    let signed: Vec<Signed> = bodies
        .into_iter()
        .enumerate()
        .map(|(index, body)| {
            let (secret, id, timestamp_s) = (new_secret(&mut rng), format!("event-{index}"), now_s());
            let service = service_signature(&secret, &body);
            let standard = standard_signatures(std::slice::from_ref(&secret), &id, timestamp_s, &body);
            Signed { secret, id, timestamp_s, body, service, standard }
        })
        .collect();
    verify(&signed);
}

/// The requests as sent: before a rotation, after it, and a day later.
#[tokio::test]
async fn both_secrets_verify_for_a_day_after_a_rotation() {
    for kind in kinds() {
        let mut world = World::new(kind, 1, |_, _| answered(200)).await;
        let (webhook, first) = world.webhook(world.acme, "/").await;
        // The verifier uses its own clock.
        world.set(Timestamp::from_micros(now_s() * 1_000_000));
        world.events(world.acme, 1).await;
        world.settle().await;
        let (rotated, second) =
            world.service.rotate_secret(Scope::Everything, webhook.id, world.now()).await.unwrap();
        assert_eq!(rotated.old_secret_until, Some(world.now().plus_micros(SECRET_OVERLAP_US)));
        assert_ne!(first, second);
        world.events(world.acme, 1).await;
        world.settle().await;
        let sent = world.sent.all();
        let signatures = |index: usize| header(&sent[index].1, "webhook-signature").split(' ').count();
        assert_eq!((signatures(0), signatures(1)), (1, 2));
        let signed = |index: usize, secret: &Secret, newest: &Secret| {
            let request = &sent[index].1;
            let body = request.body.to_vec();
            // There is one signature: the newest secret's.
            assert_eq!(header(request, "x-service-signature"), service_signature(newest, &body));
            Signed {
                secret: secret.clone(),
                id: header(request, "webhook-id").to_owned(),
                timestamp_s: header(request, "webhook-timestamp").parse().unwrap(),
                service: service_signature(secret, &body),
                standard: header(request, "webhook-signature").to_owned(),
                body,
            }
        };
        verify(&[signed(0, &first, &first), signed(1, &first, &second), signed(1, &second, &second)]);

        world.pass(SECRET_OVERLAP_US);
        world.events(world.acme, 1).await;
        world.settle().await;
        let last = world.sent.all().pop().unwrap().1;
        let timestamp_s: i64 = header(&last, "webhook-timestamp").parse().unwrap();
        let alone = standard_signatures(&[second], header(&last, "webhook-id"), timestamp_s, &last.body);
        assert_eq!(header(&last, "webhook-signature"), alone);
    }
}

fn verify(signed: &[Signed]) {
    for case in signed {
        let mut headers = http::HeaderMap::new();
        headers.insert("webhook-id", case.id.parse().unwrap());
        headers.insert("webhook-timestamp", case.timestamp_s.to_string().parse().unwrap());
        headers.insert("webhook-signature", case.standard.parse().unwrap());
        let verifier = Webhook::new(&case.secret.0).unwrap();
        verifier.verify(&case.body, &headers).unwrap();
        // The verifier can also refuse.
        let other = [case.body.as_slice(), b" "].concat();
        assert!(verifier.verify(&other, &headers).is_err());
    }
    let cases: Vec<Value> = signed
        .iter()
        .map(|case| {
            json!({"secret": case.secret.0, "id": case.id, "timestamp": case.timestamp_s.to_string(),
                "body": STANDARD.encode(&case.body), "service": case.service, "standard": case.standard})
        })
        .collect();
    let mut wrong = cases[0].clone();
    wrong["body"] = json!(STANDARD.encode("something else"));
    let cases: Vec<Value> = cases.into_iter().chain([wrong]).collect();
    let Some(said) = python(&Value::Array(cases).to_string()) else { return };
    let mut expected = vec!["ok"; signed.len()];
    expected.push("WRONG");
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
}

/// The output of the verifier; `None`, with a notice, on a machine without Python.
fn python(cases: &str) -> Option<String> {
    let child =
        Command::new("python3").args(["-c", VERIFIER]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        eprintln!("\nNOTICE: signatures are NOT verified by Python: there is no python3\n");
        return None;
    };
    child.stdin.take().unwrap().write_all(cases.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).unwrap())
}

fn now_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}
