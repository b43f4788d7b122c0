//! The metrics of a call in `/metrics`.

use std::collections::HashMap;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::site::{Site, answering, found, talking, within};

/// Every value by its name and labels; a line that is not a sample fails.
pub async fn scrape(site: &Site) -> (String, HashMap<String, f64>) {
    let text = within("the metrics", async {
        let mut stream = TcpStream::connect(site.http).await.unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    })
    .await;
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let samples = body.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    });
    (body.to_owned(), samples.collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_counted_and_nobody_is_named() {
    let site = Site::start().await;
    let (caller, callee) = (site.phone("1001", answering()).await, site.phone("1002", answering()).await);
    let outcome = within("the call", caller.call(talking("1002", 1_000))).await.unwrap();
    assert_eq!(outcome.status, 200);
    site.record().await;
    site.idle().await;
    assert!(callee.heard() > 0);
    // The counter of records follows the record.
    let (text, samples) = found("the counters", async || {
        let (text, samples) = scrape(&site).await;
        (samples["sidetone_call_records_stored_total"] == 1.0).then_some((text, samples))
    })
    .await;
    let value = |name: &str| *samples.get(name).unwrap_or_else(|| panic!("no {name} in {text}"));
    let calls = "sidetone_calls_total{direction=\"internal\",hangup_cause=\"NORMAL_CLEARING\"}";
    for (name, expected) in [
        (calls, 1.0),
        ("sidetone_calls_live", 0.0),
        ("sidetone_sip_bindings", 2.0),
        ("sidetone_sip_requests_received_total{method=\"BYE\"}", 1.0),
        ("sidetone_database_up", 1.0),
        ("sidetone_journal_healthy", 1.0),
        ("sidetone_call_records_stored_total", 1.0),
        ("sidetone_panics_total{task=\"relay\"}", 0.0),
        ("sidetone_panics_total{task=\"sip\"}", 0.0),
        ("sidetone_disk_full", 0.0),
        ("sidetone_clock_jumps_total", 0.0),
        ("sidetone_http_panics_total", 0.0),
        ("sidetone_queue_length{queue=\"unwritten_records\"}", 0.0),
    ] {
        assert_eq!(value(name), expected, "{name}");
    }
    for name in [
        "sidetone_rtp_received_total",
        "sidetone_rtp_relayed_bytes_total",
        "sidetone_sip_requests_received_total{method=\"INVITE\"}",
        "sidetone_sip_responses_sent_total{class=\"2xx\"}",
        "sidetone_sip_transactions{role=\"server\"}",
        "sidetone_journal_bytes",
        "process_resident_memory_bytes",
        "process_open_fds",
        "sidetone_http_request_duration_seconds_count{route=\"/api/v1/cdrs\",method=\"GET\",status=\"2xx\"}",
    ] {
        assert!(value(name) > 0.0, "{name}: {text}");
    }
    // Both directions of the call were judged, each as a leg of its own.
    for leg in ["a", "b"] {
        let label = format!("leg=\"{leg}\"");
        let of_leg = samples
            .iter()
            .filter(|(name, _)| name.starts_with("sidetone_media_verdicts_total") && name.contains(&label));
        assert_eq!(of_leg.map(|(_, count)| count).sum::<f64>(), 1.0, "{label}: {text}");
    }
    for secret in ["1001", "1002", "acme"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}
