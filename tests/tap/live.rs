//! The tap listens on the loopback of a complete switch: its records equal those of the switch.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use sidetone::config::Config;
use sidetone::tap::cdr_writer::RecordedCall;
use sidetone::tap_app::{TapNode, TapStart};
use sidetone_model::media_quality::{CallQuality, LegSide};
use sidetone_model::quality::Hundredths;
use sidetone_phone::CallPlan;

use crate::common::chosen::database_in;
use crate::common::database::{Kind, chosen};
use crate::common::records::TempDir;
use crate::common::site::{Site, answering, config, declare, directory, get, records, talk, within};
use crate::tap::apart::apart;
use crate::tap::interfaces::options;

/// The caller's scenario, whether it holds the call for a while, and the verdict where the machine's own timing cannot
/// change it.
const CASES: [(&str, bool, Option<&str>); 4] = [
    ("clean duration=6s", false, None),
    ("clean duration=6s loss=8 seed=3", false, Some("lossy_inbound")),
    ("clean duration=6s ptime=30 advertised=20", false, Some("ptime_mismatch")),
    ("clean duration=6s", true, None),
];

/// The media of every call, as reported.
type Heard = Arc<Mutex<Vec<CallQuality>>>;

async fn tap_in(dir: &TempDir) -> (TapNode, Heard) {
    declare(dir.path(), &directory()).await;
    let config = Config { database: database_in(dir.path()), ..config(dir.path()) };
    let heard = Heard::default();
    let hearing = Arc::clone(&heard);
    let tell = move |told: &RecordedCall| hearing.lock().unwrap().push(told.quality.clone());
    let start = TapStart { tap: options(&["lo"]), organisation: None, http: true, tell: Box::new(tell) };
    (TapNode::start(&config, start).await.unwrap(), heard)
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
            let (tap, heard) = tap_in(&dir).await;
            let http = tap.http.unwrap();
            let (caller, _callee) =
                (site.phone("1001", answering()).await, site.phone("1002", answering()).await);
            for (says, holds, _) in CASES {
                let plan = CallPlan {
                    talk: talk(says),
                    talk_time: Some(Duration::from_millis(6_500)),
                    hold: holds.then_some((Duration::from_secs(2), Duration::from_secs(2))),
                    ..CallPlan::to("1002")
                };
                assert_eq!(within("the call", caller.call(plan)).await.unwrap().status, 200);
            }
            let own = by_start(records(site.http, CASES.len()).await);
            // The switch places its own call to the callee, which is captured, too.
            let all = by_start(records(http, 2 * CASES.len()).await);
            let tapped: Vec<&Value> = all.iter().step_by(2).collect();
            for ((own, tapped), (says, _, verdict)) in own.iter().zip(tapped).zip(CASES) {
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
            // Only the caller's packets were lost; a pause of sending during hold is no loss.
            for quality in heard.lock().unwrap().iter() {
                let sides: Vec<LegSide> = quality.legs.iter().map(|leg| leg.leg).collect();
                assert_eq!(sides, [LegSide::A, LegSide::B]);
                assert_eq!(quality.legs[1].inbound.loss_pct, Some(Hundredths(0)), "{quality:#?}");
            }
            let (status, _) = get(http, "/calls").await;
            assert_eq!(status, 404, "this process carries no calls");
            within("the end", tap.stop()).await;
            site.stop(Duration::ZERO).await;
        });
    });
}

fn by_start(mut records: Vec<Value>) -> Vec<Value> {
    records.sort_by_key(|record| record["started_at"].as_str().unwrap().to_owned());
    records
}
