//! The trace of a record's leg over HTTP: who may read it, and the error where there is none.

use sidetone_model::cdr::Cdr;
use sidetone_model::ids::{CallId, NodeId};
use sidetone_model::leg_trace::LegTraces;
use sidetone_model::media_quality::{CallQuality, LegQuality, LegSide, LegTrace, QualityState};
use sidetone_model::open_file::OpenFile;
use sidetone_model::ports::PortFuture;
use sidetone_model::time::Timestamp;

use crate::common::records::{at, ended};
use crate::http::engine::{Engine, Ids};

/// A node that has the traces of only the callers' legs.
pub struct Kept;

impl LegTraces for Kept {
    fn open<'a>(
        &'a self,
        _node: Option<NodeId>,
        trace: &'a LegTrace,
    ) -> PortFuture<'a, Option<Box<dyn OpenFile>>> {
        let kept = trace.file.ends_with("-a.trace").then(|| format!("sidetone-trace 1\n\n{}", trace.file));
        Box::pin(
            async move { Ok(kept.map(|text| Box::new(InMemory(text.into_bytes())) as Box<dyn OpenFile>)) },
        )
    }
}

struct InMemory(Vec<u8>);

impl OpenFile for InMemory {
    fn bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn modified_at(&self) -> Timestamp {
        at(62)
    }

    fn read(&self, at: u64, len: usize) -> PortFuture<'_, Vec<u8>> {
        let at = usize::try_from(at).unwrap();
        Box::pin(async move { Ok(self.0[at..at + len].to_vec()) })
    }
}

/// A call whose two legs were traced.
fn traced(call: CallId) -> CallQuality {
    let leg = |leg: LegSide, name: &str| {
        let trace = LegTrace { file: format!("2026-09-21/{call}-{name}.trace"), bytes: 60 };
        let leg = serde_json::json!({"leg": leg, "media_verdict": null, "sentence": "x", "trace": trace});
        serde_json::from_value::<LegQuality>(leg).unwrap()
    };
    let legs = vec![leg(LegSide::A, "a"), leg(LegSide::B, "b")];
    CallQuality::of_legs(call, QualityState::Final, at(62), legs)
}

fn records(ids: Ids) -> Vec<Cdr> {
    let with_trace = |number, organisation_id| {
        let cdr = ended(number);
        Cdr { organisation_id, media: Some(Box::new(traced(cdr.call_uuid))), ..cdr }
    };
    let without = Cdr { organisation_id: ids.acme, ..ended(2) };
    vec![with_trace(1, ids.acme), without, with_trace(3, ids.bolt)]
}

const BOSS: &str = "acmeboss0001";

fn path(number: u128) -> String {
    format!("/cdrs/{}/trace", ended(number).call_uuid)
}

#[test]
fn the_trace_of_a_leg_is_fetched() {
    let engine = Engine::start(records);
    for query in ["", "?leg=a"] {
        let (status, head, body) = engine.text(BOSS, &format!("{}{query}", path(1)));
        let expected = format!("sidetone-trace 1\n\n2026-09-21/{}-a.trace", ended(1).call_uuid);
        assert_eq!((status, body), (200, expected), "{query}");
        let name = format!("content-disposition: attachment; filename=\"{}-a.trace\"", ended(1).call_uuid);
        assert!(head.contains(&name) && head.contains("application/octet-stream"), "{head}");
        assert!(head.contains("content-length: "), "{head}");
    }
}

#[test]
fn what_has_no_trace_says_why() {
    let engine = Engine::start(records);
    let cases = [
        (format!("{}?leg=b", path(1)), 404, "is gone, or has deleted the trace"),
        (path(2), 404, "no trace was kept of this leg: media.trace"),
        (path(9), 404, "there is no such call record"),
        (path(3), 403, "belongs to another organisation"),
        (format!("{}?leg=c", path(1)), 400, "must be a"),
        (format!("{}?side=a", path(1)), 400, "only leg is"),
        ("/cdrs/nothing/trace".to_owned(), 400, "uuid"),
    ];
    for (path, status, told) in cases {
        let answer = engine.get(BOSS, &path);
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        assert!(answer.body.to_string().contains(told), "{path}: {}", answer.body);
    }
}
