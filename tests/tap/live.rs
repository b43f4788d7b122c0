//! The calls of a whole switch, listened to on its loopback: what the tap records is what the switch records.

use std::time::Duration;

use serde_json::Value;
use sidetone::config::Config;
use sidetone::phone::CallPlan;
use sidetone::tap_app::{TapNode, TapStart};

use crate::apart::apart;
use crate::chosen::database_in;
use crate::database::{Kind, chosen};
use crate::interfaces::options;
use crate::records::TempDir;
use crate::site::{Site, answering, config, declare, directory, get, records, talk, within};

/// What the caller says, and the verdict where the machine's own timing cannot change it.
const CASES: [(&str, Option<&str>); 3] = [
    ("clean duration=6s", None),
    ("clean duration=6s loss=8 seed=3", Some("lossy_inbound")),
    ("clean duration=6s ptime=30 advertised=20", Some("ptime_mismatch")),
];

async fn tap_in(dir: &TempDir) -> TapNode {
    declare(dir.path(), &directory()).await;
    let config = Config { database: database_in(dir.path()), ..config(dir.path()) };
    let start = TapStart { tap: options(&["lo"]), organisation: None, http: true, tell: Box::new(|_| {}) };
    TapNode::start(&config, start).await.unwrap()
}

#[test]
fn the_records_of_a_tap_are_those_of_the_switch() {
    if chosen() == Kind::Postgres {
        eprintln!("SKIPPED: the database server is not in the test's own network");
        return;
    }
    apart(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (site, dir) = (Site::start().await, TempDir::new());
            let tap = tap_in(&dir).await;
            let http = tap.http.unwrap();
            let (caller, _callee) =
                (site.phone("1001", answering()).await, site.phone("1002", answering()).await);
            for (says, _) in CASES {
                let plan = CallPlan {
                    talk: talk(says),
                    talk_time: Some(Duration::from_millis(6_500)),
                    ..CallPlan::to("1002")
                };
                assert_eq!(within("the call", caller.call(plan)).await.unwrap().status, 200);
            }
            let own = by_start(records(site.http, CASES.len()).await);
            // The switch places a call of its own to the callee: that one passes, too.
            let all = by_start(records(http, 2 * CASES.len()).await);
            let tapped: Vec<&Value> = all.iter().step_by(2).collect();
            for ((own, tapped), (says, verdict)) in own.iter().zip(tapped).zip(CASES) {
                for name in [
                    "caller_number",
                    "destination_number",
                    "codec_a",
                    "codec_b",
                    "loss_pct",
                    "sip_status",
                    "hangup_cause",
                    "direction",
                ] {
                    assert_eq!(own[name], tapped[name], "{says}: {name}\n{own:#}\n{tapped:#}");
                }
                if let Some(verdict) = verdict {
                    assert_eq!(
                        (&own["media_verdict"], &tapped["media_verdict"]),
                        (&verdict.into(), &verdict.into())
                    );
                }
                let (own_s, tapped_s) =
                    (own["billsec"].as_i64().unwrap(), tapped["billsec"].as_i64().unwrap());
                assert!((own_s - tapped_s).abs() <= 1, "{says}: {own_s} s and {tapped_s} s");
            }
            let (status, _) = get(http, "/calls").await;
            assert_eq!(status, 404, "no calls are carried here");
            within("the end", tap.stop()).await;
            site.stop(Duration::ZERO).await;
        });
    });
}

fn by_start(mut records: Vec<Value>) -> Vec<Value> {
    records.sort_by_key(|record| record["started_at"].as_str().unwrap().to_owned());
    records
}
