//! An unauthenticated sender cannot find out which extensions exist (S2).

use sidetone_sip::message::Response;

use crate::common::site::{Site, answering, within};
use crate::common::wire::{Ask, Wire};

const KNOWN: &str = "1001";
const UNKNOWN: &str = "1999";

/// A response without its variable parts: the requested account, values of the request, tags and nonces.
fn plain(response: &Response, user: &str, ask: &Ask) -> String {
    let mut text = String::from_utf8(response.to_bytes().to_vec()).unwrap();
    for (start, end) in [("nonce=\"", '"'), (";tag=", '\r')] {
        let mut from = 0;
        while let Some(at) = text[from..].find(start).map(|at| from + at + start.len()) {
            let length = text[at..].find(end).unwrap();
            text.replace_range(at..at + length, &"x".repeat(length));
            from = at + length;
        }
    }
    let unique = ask.call_id.trim_start_matches('c');
    let port = unique.split('-').next().unwrap();
    text.replace(unique, "UNIQUE").replace(port, "PORT").replace(user, "USER")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s2_answers_are_the_same_bytes_for_extensions_that_exist_and_that_do_not() {
    let site = Site::start().await;
    let _registered = site.phone(KNOWN, answering()).await;
    for method in ["REGISTER", "INVITE", "OPTIONS", "MESSAGE", "SUBSCRIBE", "BYE"] {
        for password in [None, Some("a wrong password"), Some("")] {
            let mut said = Vec::new();
            for user in [KNOWN, UNKNOWN] {
                // A socket of its own, so that both count the same.
                let mut wire = Wire::open_from("127.0.0.9", site.sip).await;
                let ask = match method {
                    "REGISTER" => wire.register(user, Some("<sip:x@127.0.0.9:5060>")),
                    "INVITE" => wire.invite(user, user),
                    other => wire.ask(other, user, &format!("sip:{user}@acme.test")),
                };
                let ask = match password {
                    Some(password) if matches!(method, "REGISTER" | "INVITE" | "MESSAGE" | "SUBSCRIBE") => {
                        wire.authorize(&ask, user, password).await
                    }
                    _ => ask,
                };
                let response = wire.exchange(&ask).await;
                assert!(response.header("Server").is_none() && response.header("User-Agent").is_none());
                let text = plain(&response, user, &ask);
                let version = env!("CARGO_PKG_VERSION");
                assert!(!text.to_lowercase().contains("sidetone") && !text.contains(version), "{text}");
                said.push(text);
            }
            assert_eq!(said[0], said[1], "{method} {password:?}");
        }
    }
    // After the same number of failures at both, both are refused in the same way.
    let mut refused = Vec::new();
    for user in [KNOWN, UNKNOWN] {
        let mut statuses = Vec::new();
        for attempt in 0..12 {
            let mut wire = Wire::open_from("127.0.0.10", site.sip).await;
            let ask = wire.register(user, None);
            let ask = wire.authorize(&ask, user, &format!("guess {attempt}")).await;
            statuses.push(wire.exchange(&ask).await.status().as_u16());
        }
        refused.push(statuses);
    }
    assert_eq!(refused[0], refused[1]);
    assert_eq!(refused[0].iter().filter(|status| **status == 403).count(), 2);
    // And the owner's phone can still register.
    let phone = site.phone(KNOWN, answering()).await;
    within("a registration", phone.register(KNOWN)).await.unwrap();
}

/// The response time to a wrong password at an existing extension and at an unknown one, compared by medians and ranks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: 4,000 authenticated requests, about 20 s"]
async fn long_s2_the_time_of_an_answer_tells_no_extension_from_none() {
    const EACH: usize = 2_000;
    let site = Site::start().await;
    let mut times = [Vec::new(), Vec::new()];
    for number in 0..EACH {
        // Every source fails once at each, so that no limit responds instead of the digest check.
        let source = format!("127.7.{}.{}", number / 250, number % 250 + 1);
        let order = if number % 2 == 0 { [0, 1] } else { [1, 0] };
        for which in order {
            let user = [KNOWN, UNKNOWN][which];
            let mut wire = Wire::open_from(&source, site.sip).await;
            let ask = wire.register(user, None);
            let ask = wire.authorize(&ask, user, "a wrong password").await;
            let began = std::time::Instant::now();
            let response = wire.exchange(&ask).await;
            times[which].push(began.elapsed());
            assert_eq!(response.status().as_u16(), 401);
        }
    }
    let z = mann_whitney(&times[0], &times[1]);
    let median = |times: &[std::time::Duration]| {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        sorted[sorted.len() / 2].as_secs_f64() * 1e6
    };
    let (known, unknown) = (median(&times[0]), median(&times[1]));
    println!(
        "S2: n = {EACH} each, median {known:.1} us for an extension, {unknown:.1} us for none ({:+.2} %), \
         Mann-Whitney z = {z:.2}",
        (known / unknown - 1.0) * 100.0
    );
}

/// The difference between the ranks of two samples, in standard deviations.
fn mann_whitney(a: &[std::time::Duration], b: &[std::time::Duration]) -> f64 {
    let mut all: Vec<(std::time::Duration, bool)> =
        a.iter().map(|time| (*time, true)).chain(b.iter().map(|time| (*time, false))).collect();
    all.sort_unstable();
    let ranks: f64 =
        all.iter().zip(1_u32..).filter(|((_, of_a), _)| *of_a).map(|(_, rank)| f64::from(rank)).sum();
    let (n, m) = (a.len() as f64, b.len() as f64);
    let u = ranks - n * (n + 1.0) / 2.0;
    (u - n * m / 2.0) / (n * m * (n + m + 1.0) / 12.0).sqrt()
}
