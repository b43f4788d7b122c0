//! W11: the call-info request, from the answered call to the note or to the reason why there is none. Time is
//! paused and advances only while all tasks wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use sidetone::call_info::{AnsweredCall, CallInfo, NoteSink, signature};
use sidetone::outbound_http::OutboundHttp;
use sidetone::supervise::Supervisor;
use sidetone_model::call::Direction;
use sidetone_model::call_info::{CallInfoTarget, CallInfoTargets};
use sidetone_model::directory::Secret;
use sidetone_model::ids::{AgentId, CallId, ExtensionId, OrganisationId, TeamId};
use sidetone_model::note::Note;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use uuid::Uuid;

use crate::common::elsewhere::{Elsewhere, Server};
use crate::common::receiver::{Reply, Then};

const NOTE: &str = r#"{"title":"Owes 900 EUR","level":"warning"}"#;
const SECRET: &str = "ein Schlüssel für alle";
const JSON: &str = "application/json";

fn call(number: u128, organisation: u128) -> AnsweredCall {
    AnsweredCall {
        call_uuid: CallId(Uuid::from_u128(number)),
        direction: Direction::Inbound,
        caller: Some("+442071230001".to_owned()),
        destination: Some("+442071230000".to_owned()),
        organisation_id: OrganisationId(Uuid::from_u128(organisation)),
        extension_id: Some(ExtensionId(Uuid::from_u128(3))),
        agent_id: Some(AgentId(Uuid::from_u128(4))),
        team_id: Some(TeamId(Uuid::from_u128(5))),
        answered_at: Timestamp::from_micros(1_767_225_600_123_456),
    }
}

/// Stores the outcomes of calls, with their times.
#[derive(Clone)]
struct Sink(watch::Sender<Vec<Kept>>);

#[derive(Clone, Debug)]
struct Kept {
    call: CallId,
    /// The title of the note, or the reason why there is none.
    what: Result<String, String>,
    at: Instant,
}

impl Sink {
    fn keep(&self, call: &AnsweredCall, what: Result<String, String>) {
        let kept = Kept { call: call.call_uuid, what, at: Instant::now() };
        self.0.send_modify(|all| all.push(kept));
    }

    async fn count(&self, count: usize) -> Vec<Kept> {
        self.0.subscribe().wait_for(|kept| kept.len() >= count).await.unwrap().clone()
    }
}

impl NoteSink for Sink {
    fn note<'a>(&'a self, call: &'a AnsweredCall, note: Note) -> PortFuture<'a, ()> {
        self.keep(call, Ok(note.title().to_owned()));
        Box::pin(async { Ok(()) })
    }

    fn failed<'a>(&'a self, call: &'a AnsweredCall, reason: String) -> PortFuture<'a, ()> {
        self.keep(call, Err(reason));
        Box::pin(async { Ok(()) })
    }
}

/// Organisations 1 and 2 have a URL, 3 has none, 4 makes the database fail, 5 makes it hang,
/// 6 has none and takes two seconds.
struct Targets {
    asked: AtomicUsize,
}

impl CallInfoTargets for Targets {
    fn target(&self, organisation: OrganisationId) -> PortFuture<'_, Option<CallInfoTarget>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let number = organisation.0.as_u128();
        Box::pin(async move {
            match number {
                4 => return Err(Problem::Internal("away".to_owned())),
                5 => Notify::new().notified().await,
                6 => tokio::time::sleep(Duration::from_secs(2)).await,
                _ => {}
            }
            let host = if number == 2 { "erp.example" } else { "crm.example" };
            let target =
                CallInfoTarget { url: format!("https://{host}/answered"), secret: Secret(SECRET.to_owned()) };
            Ok(Some(target).filter(|_| number < 3))
        })
    }
}

struct World {
    info: CallInfo,
    sink: Sink,
    elsewhere: Elsewhere,
    targets: Arc<Targets>,
    began: Instant,
}

fn world_of(elsewhere: Elsewhere) -> World {
    let elsewhere =
        elsewhere.name("crm.example", &[&["8.8.8.8"]]).name("erp.example", &[&["8.8.4.4"]]).slow("8.8.4.4");
    let client = elsewhere.client(&OutboundHttp::default(), &[]);
    let sink = Sink(watch::Sender::new(Vec::new()));
    let targets = Arc::new(Targets { asked: AtomicUsize::new(0) });
    let clock = Arc::new(|| Timestamp::from_micros(1_767_225_600_999_999));
    let (info, _task) =
        CallInfo::start(client, targets.clone(), Arc::new(sink.clone()), clock, &Supervisor::default());
    World { info, sink, elsewhere, targets, began: Instant::now() }
}

fn world(reply: Reply) -> World {
    world_of(Elsewhere::new(&["crm.example", "erp.example"], move |_| reply.clone()))
}

impl World {
    /// The outcome of one answered call, and its delay in milliseconds.
    async fn one(&self) -> (Result<String, String>, u128) {
        self.info.answered(call(1, 1));
        let kept = self.sink.count(1).await.remove(0);
        assert_eq!(kept.call, call(1, 1).call_uuid);
        (kept.what, (kept.at - self.began).as_millis())
    }
}

#[tokio::test(start_paused = true)]
async fn the_url_gets_the_call_signed() {
    let world = world(Reply::new(200, JSON, NOTE));
    assert_eq!(world.one().await.0, Ok("Owes 900 EUR".to_owned()));
    let received = world.elsewhere.seen().now().remove(0);
    assert_eq!(received.line, "POST /answered HTTP/1.1");
    assert_eq!(received.header("content-type"), "application/json");
    assert_eq!(received.header("x-service-timestamp"), "1767225600");
    assert!(Uuid::parse_str(received.header("x-service-delivery")).is_ok());
    let secret = Secret(SECRET.to_owned());
    assert_eq!(received.header("x-service-signature"), signature(&secret, &received.body));
    let expected = concat!(
        r#"{"call_uuid":"00000000-0000-0000-0000-000000000001","direction":"inbound","caller":"+442071230001","#,
        r#""destination":"+442071230000","organisation_id":"00000000-0000-0000-0000-000000000001","#,
        r#""extension_id":"00000000-0000-0000-0000-000000000003","agent_id":"00000000-0000-0000-0000-000000000004","#,
        r#""team_id":"00000000-0000-0000-0000-000000000005","answered_at":"2026-01-01T00:00:00.123Z"}"#,
    );
    assert_eq!(std::str::from_utf8(&received.body).unwrap(), expected);
    assert!(!world.elsewhere.seen().now()[0].headers.iter().any(|(_, value)| value.contains("Schlüssel")));
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_4_9_seconds_is_shown_and_one_after_5_1_is_not() {
    let note = || Reply::new(200, JSON, NOTE);
    let (what, after_ms) = world(note().after(Duration::from_millis(4_900))).one().await;
    assert_eq!((what, after_ms), (Ok("Owes 900 EUR".to_owned()), 4_900));
    let late = Err("no answer within 5 s (waiting for the answer)".to_owned());
    for reply in [note().after(Duration::from_millis(5_100)), Reply::never()] {
        let world = world(reply);
        let (what, after_ms) = world.one().await;
        assert_eq!(what, late);
        assert!((5_000..=5_001).contains(&after_ms), "{after_ms}");
        // One attempt: no later outcome, and no retry.
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!((world.sink.count(1).await.len(), world.elsewhere.connects().len()), (1, 1));
    }
    // The head arrives in time, the body does not.
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 40\r\n\r\n{";
    let drip = Then::Endless(b" ".to_vec(), Duration::from_millis(500));
    let (what, after_ms) = world(Reply::raw(head).then(drip)).one().await;
    assert_eq!(what, Err("no answer within 5 s (the answer was not complete)".to_owned()));
    assert!((5_000..=5_001).contains(&after_ms), "{after_ms}");
}

/// The lookup, the connection and TLS count towards the limit.
#[tokio::test(start_paused = true)]
async fn five_seconds_are_all_there_are_to_whatever_they_go() {
    let stages = [
        (Server::Silent, Duration::ZERO, "no answer within 5 s (waiting for TLS)"),
        (Server::Https, Duration::from_secs(6), "no answer within 5 s (waiting for the name service)"),
    ];
    for (server, lookup, expected) in stages {
        let elsewhere =
            Elsewhere::with(server, &["crm.example"], |_| Reply::new(200, JSON, NOTE)).lookups_take(lookup);
        let (what, after_ms) = world_of(elsewhere).one().await;
        assert_eq!(what, Err(expected.to_owned()));
        assert!((5_000..=5_001).contains(&after_ms), "{after_ms}");
    }
    // Three seconds for the lookup and three for the response are six.
    let elsewhere =
        Elsewhere::new(&["crm.example"], |_| Reply::new(200, JSON, NOTE).after(Duration::from_secs(3)))
            .lookups_take(Duration::from_secs(3));
    let (what, after_ms) = world_of(elsewhere).one().await;
    assert_eq!(what, Err("no answer within 5 s (waiting for the answer)".to_owned()));
    assert!((5_000..=5_001).contains(&after_ms), "{after_ms}");
}

#[tokio::test(start_paused = true)]
async fn nothing_to_show_is_nothing_at_all() {
    for reply in [
        Reply::status(204),
        Reply::status(200),
        Reply::new(200, JSON, " \r\n"),
        Reply::new(202, "text/html", ""),
    ] {
        let world = world(reply);
        world.info.answered(call(1, 1));
        world.elsewhere.seen().count(1).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(world.sink.0.borrow().is_empty(), "{:?}", world.sink.0.borrow());
        assert_eq!(world.info.counts().nothing.load(Ordering::Relaxed), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn every_bad_answer_is_a_failed_note_with_its_reason() {
    let five_kilobytes = format!(r#"{{"title":"a","text":"{}"}}"#, "x".repeat(5_000));
    let cases = [
        (Reply::new(200, JSON, five_kilobytes), "the answer is no note: body: must stay under 4 KB"),
        (Reply::new(200, "text/html", "<h1>Hello</h1>"), "the answer is text/html: a note is JSON"),
        (Reply::new(200, JSON, "{\"title\":"), "the answer is no note: body: "),
        (
            Reply::new(200, JSON, r#"{"title":"a","id":"7"}"#),
            "the answer is no note: id: is assigned by the service, leave it out",
        ),
        (Reply::new(200, JSON, r#"{"body":"a"}"#), "the answer is no note: title: is required"),
        (Reply::new(200, JSON, vec![b' '; 65 * 1024]), "the answer is larger than 64 KiB"),
        (Reply::new(500, JSON, NOTE), "the URL answered 500"),
        (Reply::new(410, JSON, NOTE), "the URL answered 410"),
        (
            Reply::with(307, &[("Location", "https://127.0.0.1/")], ""),
            "the URL answered 307: no redirect is followed",
        ),
        (
            Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"),
            "the connection ended in the middle of the",
        ),
        (Reply::raw(""), "the connection was closed before an answer came"),
        (Reply::raw("220 mail.example ESMTP\r\n"), "the answer is not valid HTTP: "),
    ];
    for (reply, expected) in cases {
        let world = world(reply);
        let reason = world.one().await.0.unwrap_err();
        assert!(reason.starts_with(expected), "{reason}");
        assert_eq!(world.info.counts().failed.load(Ordering::Relaxed), 1);
        assert_eq!(world.elsewhere.connects().len(), 1, "one attempt");
    }
}

#[tokio::test(start_paused = true)]
async fn who_has_no_url_is_not_asked_and_a_database_that_is_away_costs_nobody_else() {
    let world = world(Reply::new(200, JSON, NOTE));
    for organisation in [3, 4, 5, 4, 3] {
        world.info.answered(call(9, organisation));
    }
    assert_eq!(world.one().await.0, Ok("Owes 900 EUR".to_owned()));
    tokio::time::sleep(Duration::from_secs(60)).await;
    // Calls at the same moment share a read of the database, and its failure.
    assert_eq!((world.targets.asked.load(Ordering::Relaxed), world.elsewhere.connects().len()), (4, 1));
    assert_eq!(world.info.counts().dropped.load(Ordering::Relaxed), 3);
}

/// A thousand calls a second, and a database that takes two seconds for a read: with one read per call it would never
/// catch up.
#[tokio::test(start_paused = true)]
async fn calls_that_wait_for_a_slow_database_share_one_read() {
    let world = world(Reply::status(204));
    for number in 0..1_000 {
        world.info.answered(call(number, 6));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(world.targets.asked.load(Ordering::Relaxed), 1);
    assert_eq!(world.info.counts().dropped.load(Ordering::Relaxed), 0);
}

/// A read that never ends is abandoned, and all calls that waited for it are counted.
#[tokio::test(start_paused = true)]
async fn a_database_that_does_not_answer_is_given_up_and_asked_again() {
    let world = world(Reply::status(204));
    for number in 0..100 {
        world.info.answered(call(number, 5));
    }
    tokio::time::sleep(Duration::from_millis(4_500)).await;
    assert_eq!(world.info.counts().dropped.load(Ordering::Relaxed), 100);
    assert_eq!(world.targets.asked.load(Ordering::Relaxed), 1);
    world.info.answered(call(100, 5));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(world.targets.asked.load(Ordering::Relaxed), 2);
}

/// A server that never responds holds as many requests as its organisation may have, and none of another's.
#[tokio::test(start_paused = true)]
async fn a_slow_url_costs_its_own_organisation_alone() {
    let world = world(Reply::new(200, JSON, NOTE));
    for number in 0..500 {
        world.info.answered(call(number, 2));
    }
    world.info.answered(call(1_000, 1));
    let kept = world.sink.count(501).await;
    let fine: Vec<_> = kept.iter().filter(|kept| kept.what.is_ok()).collect();
    assert_eq!(fine.len(), 1);
    assert_eq!((fine[0].call, fine[0].at), (call(1_000, 1).call_uuid, world.began), "it did not wait");
    let full = "64 requests to the URL are under way already: it answers too slowly";
    let (refused, late): (Vec<_>, Vec<_>) =
        kept.iter().filter_map(|kept| kept.what.as_ref().err()).partition(|reason| *reason == full);
    assert_eq!((refused.len(), late.len()), (436, 64));
    assert!(
        late.iter().all(|reason| reason.as_str() == "no answer within 5 s (waiting for TLS)"),
        "{late:?}"
    );
    // Once they have timed out there is room again.
    world.info.answered(call(2_000, 2));
    let last = world.sink.count(502).await.pop().unwrap();
    assert_eq!(last.what, Err("no answer within 5 s (waiting for TLS)".to_owned()));
}

/// The task that reports an answered call never waits, however much there is to do.
#[tokio::test(start_paused = true)]
async fn more_than_can_wait_is_dropped_and_counted() {
    let world = world(Reply::new(200, JSON, NOTE));
    for number in 0..10_250 {
        // No other task runs in this loop: this one does not yield.
        world.info.answered(call(number, 3));
    }
    assert_eq!(world.info.counts().dropped.load(Ordering::Relaxed), 250);
    assert_eq!(Instant::now(), world.began);
    // Once the waiting calls were processed there is room again.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.targets.asked.load(Ordering::Relaxed), 1, "they share a read of the database");
    for number in 0..10_000 {
        world.info.answered(call(number, 3));
    }
    assert_eq!(world.info.counts().dropped.load(Ordering::Relaxed), 250);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.one().await.0, Ok("Owes 900 EUR".to_owned()));
}

/// A sink that cannot store an outcome does not end the task.
#[tokio::test(start_paused = true)]
async fn a_sink_that_fails_is_asked_again_for_the_next_call() {
    struct Broken(Mutex<usize>, Notify);
    impl NoteSink for Broken {
        fn note<'a>(&'a self, _: &'a AnsweredCall, _: Note) -> PortFuture<'a, ()> {
            *self.0.lock() += 1;
            self.1.notify_one();
            Box::pin(async { Err(Problem::Internal("away".to_owned())) })
        }

        fn failed<'a>(&'a self, _: &'a AnsweredCall, _: String) -> PortFuture<'a, ()> {
            Box::pin(async { Ok(()) })
        }
    }
    let elsewhere = Elsewhere::new(&["crm.example"], |_| Reply::new(200, JSON, NOTE))
        .name("crm.example", &[&["8.8.8.8"]]);
    let client = elsewhere.client(&OutboundHttp::default(), &[]);
    let broken = Arc::new(Broken(Mutex::default(), Notify::new()));
    let targets = Arc::new(Targets { asked: AtomicUsize::new(0) });
    let (info, task) = CallInfo::start(
        client,
        targets,
        broken.clone(),
        Arc::new(|| Timestamp::from_micros(0)),
        &Supervisor::default(),
    );
    for number in 0..3 {
        info.answered(call(number, 1));
        broken.1.notified().await;
    }
    assert_eq!(*broken.0.lock(), 3);
    drop(info);
    task.await.unwrap();
}
