//! Calls by script, in both directions.

use std::time::Duration;

use sidetone_phone::CallPlan;

use super::handset::run;
use crate::common::site::{Site, answering, until, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_calls_hears_dials_and_hangs_up() {
    let site = Site::start().await;
    let callee = site.phone("1002", answering()).await;
    let script = "wait registered\ncall 1002\nwait up\nwait heard 20\ndial 12#\nwait 4s\nstatus\nhangup\nwait idle\n\
                  expect call 200\nexpect notes 0\n";
    let run = within("the script", run(site.sip, "1001", script, &["--json", "--wav", "heard.wav"])).await;
    run.assert_done();
    let names: Vec<String> =
        run.events().iter().filter_map(|event| Some(event["event"].as_str()?.to_owned())).collect();
    assert_eq!(names, ["registered", "calling", "progress", "up", "dialled", "status", "ended", "recorded"]);
    assert_eq!(run.all("up")[0]["peer"], "1002");
    assert!(run.all("ended")[0]["packets_heard"].as_u64().unwrap() >= 20, "{}", run.out);
    assert!(run.all("recorded")[0]["seconds"].as_f64().unwrap() > 0.3, "{}", run.out);
    assert!(callee.heard() > 40, "the other side heard silence and digits: {}", callee.heard());
    let record = site.record().await;
    assert_eq!(record["hangup_cause"], "NORMAL_CLEARING");
    // The phone has removed its binding.
    until("one binding is left", || site.engine().bindings() == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_takes_a_call_and_another_declines_it() {
    let site = Site::start().await;
    let caller = site.phone("1001", answering()).await;
    let plan = CallPlan { talk_time: Some(Duration::from_millis(500)), ..CallPlan::to("1002") };
    for (script, status) in [
        ("wait ringing\nanswer\nwait up\nwait idle\nexpect call 200\n", 200),
        ("wait ringing\ndecline\nwait idle\nexpect call 603\n", 603),
    ] {
        let run = run(site.sip, "1002", script, &["--tone"]);
        let calling = async {
            until("the phone is registered", || site.engine().bindings() == 2).await;
            caller.call(plan.clone()).await.unwrap()
        };
        let (run, outcome) = within("the call", async { tokio::join!(run, calling) }).await;
        run.assert_done();
        assert_eq!(outcome.status, status, "{}", run.out);
        assert!(run.out.contains("1001 calls: answer or decline"), "{}", run.out);
        until("one binding is left", || site.engine().bindings() == 1).await;
    }
    // The phone answers automatically.
    let script = "wait up\nwait idle\nexpect call 200\n";
    let run = run(site.sip, "1002", script, &["--auto-answer"]);
    let calling = async {
        until("the phone is registered", || site.engine().bindings() == 2).await;
        caller.call(plan.clone()).await.unwrap()
    };
    let (run, outcome) = within("the call", async { tokio::join!(run, calling) }).await;
    run.assert_done();
    assert_eq!(outcome.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_fails_is_named() {
    let site = Site::start().await;
    for (script, said) in [
        ("call 1009\nwait up 20s\n", "script: line 2: wait up 20s: the call ended with 404"),
        (
            "\nwait note 100ms\n",
            "script: line 2: wait note 100ms: within 100ms it did not come about that a note came",
        ),
        ("hangup\n", "script: line 1: hangup: there is no call"),
        ("expect notes 3\n", "script: line 1: expect notes 3: it is 0"),
        ("ack\n", "script: line 1: ack: no note waits for an acknowledgement"),
    ] {
        let run = within("the script", run(site.sip, "1001", script, &[])).await;
        assert_eq!(run.status, 1, "{}", run.out);
        assert!(run.err.starts_with(&format!("sidetone: phone: {said}")), "{}", run.err);
        assert_eq!(run.err.lines().count(), 1, "{}", run.err);
    }
}
