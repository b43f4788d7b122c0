//! Conversations and the prices of AI models, on SQLite and on PostgreSQL.

use std::pin::pin;

use sidetone_model::access::Scope;
use sidetone_model::ai_price::{AiPrice, AiPriceFilter, AiPriceKind, AiPrices, ModelPattern};
use sidetone_model::call::Direction;
use sidetone_model::cdr::Cdr;
use sidetone_model::conversation::{
    AiBillingMode, AiUse, ConversationDraft, Conversations, ReportedConversation, Reporter, ReviewProfile,
    Turn, TurnRole,
};
use sidetone_model::exact_json::ExactJson;
use sidetone_model::ids::{AiPriceId, ConversationId, OrganisationId, TeamId};
use sidetone_model::page::Window;
use sidetone_model::ports::{CdrLog, CdrSink};
use sidetone_model::problem::Problem;
use sidetone_model::team::AgentKind;
use sidetone_store::Store;
use uuid::Uuid;

use crate::common::records::{at, ended, organisation};
use crate::store::acme;
use crate::store::with_database;
use crate::store::with_store;

fn id(number: u128) -> ConversationId {
    ConversationId(Uuid::from_u128(0xC0_0000 + number))
}

fn turn(seq: u64) -> Turn {
    Turn {
        seq,
        at: at(seq as i64).whole_millis(),
        role: TurnRole::Agent,
        speaker: String::new(),
        text: format!("turn {seq}"),
        tool_name: None,
        tool_args: None,
        tool_result: None,
    }
}

/// A report on call `number` that completes it, with these turns.
fn draft(number: u128, turns: impl IntoIterator<Item = u64>) -> ConversationDraft {
    ConversationDraft {
        call_uuid: ended(number).call_uuid,
        direction: Direction::Outbound,
        started_at: at(2).whole_millis(),
        ended_at: Some(at(62).whole_millis()),
        agent_id: None,
        agent_kind: AgentKind::Virtual,
        contact_id: None,
        contact_e164: None,
        summary: None,
        ai: Some(AiUse {
            provider: "acme-ai".to_owned(),
            model: "talk-1-mini".to_owned(),
            billing_mode: AiBillingMode::Rated,
            profile_id: None,
            profile_name: None,
            tokens_input: 1_000_000,
            tokens_output: 500_000,
            tokens_audio: 0,
            audio_split_known: true,
        }),
        assembled_context: None,
        profile: Some(ReviewProfile::default()),
        turns: turns.into_iter().map(turn).collect(),
    }
}

fn running(number: u128, turns: impl IntoIterator<Item = u64>) -> ConversationDraft {
    ConversationDraft { ended_at: None, ..draft(number, turns) }
}

async fn report(
    store: &Store,
    number: u128,
    draft: ConversationDraft,
) -> Result<ReportedConversation, Problem> {
    let home = organisation(1);
    let reporter = Reporter { scope: Scope::Organisation(home), home, named: None };
    store.report(reporter, id(number), draft, at(100)).await
}

fn price(model: &str, text_input: &str) -> AiPrice {
    AiPrice {
        id: AiPriceId(Uuid::new_v4()),
        kind: AiPriceKind::Sell,
        organisation_id: None,
        provider: "acme-ai".to_owned(),
        model: ModelPattern::from_text(model).unwrap(),
        text_input_per_million: text_input.parse().unwrap(),
        audio_input_per_million: None,
        output_per_million: "0".parse().unwrap(),
        currency: "EUR".parse().unwrap(),
        from_time: at(-1000),
        to_time: None,
    }
}

/// Runs both futures, interleaved wherever one waits for the database.
async fn both<A, B>(one: impl Future<Output = A>, other: impl Future<Output = B>) -> (A, B) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (mut first, mut second) = (None, None);
    std::future::poll_fn(|context| {
        if first.is_none()
            && let std::task::Poll::Ready(value) = one.as_mut().poll(context)
        {
            first = Some(value);
        }
        if second.is_none()
            && let std::task::Poll::Ready(value) = other.as_mut().poll(context)
        {
            second = Some(value);
        }
        if first.is_some() && second.is_some() {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    (first.unwrap(), second.unwrap())
}

#[test]
fn a_conversation_comes_back_as_it_was_reported() {
    with_store(async |store| {
        let mut spoken = turn(5);
        spoken.tool_name = Some("search".to_owned());
        let json = br#"{"b": [1.10, 12345678901234567890123, null, "\u0000\ud83d\ude00"], "a": {"z": true, "y": "'\"\\"}}"#;
        spoken.tool_args = Some(ExactJson::object(json).unwrap());
        spoken.tool_result = Some(ExactJson::object(b"{}").unwrap());
        (spoken.speaker, spoken.text) = ("İnci".to_owned(), "line\nline ' ; -- 😀".to_owned());
        let mut whole = draft(1, [1, 2]);
        whole.turns.push(spoken);
        whole.summary = Some(String::new());
        whole.assembled_context = Some("  verbatim\t\r\n ".to_owned());
        let reported = report(store, 1, whole.clone()).await.unwrap();
        assert!(reported.created);
        let found = Conversations::find(store, id(1)).await.unwrap().unwrap();
        assert_eq!(found.conversation, reported.conversation);
        assert_eq!((found.conversation.turns, found.conversation.summary), (whole.turns, whole.summary));
        assert_eq!(found.conversation.assembled_context, whole.assembled_context);
        assert_eq!(Conversations::find(store, id(2)).await, Ok(None));
    });
}

/// A record and its conversation are often stored at the same instant. Within a group of records, one may be
/// written while the report is in progress, and committed only after the report.
#[test]
fn a_record_has_its_tokens_however_the_two_interleave() {
    with_store(async |store| {
        for round in 0..12 {
            let group: Vec<Cdr> = (0..40).map(|index| ended(round * 100 + index)).collect();
            let number = round * 100 + round;
            let (stored, reported) =
                both(store.store(&group), report(store, number, draft(number, [1]))).await;
            assert_eq!((stored.unwrap().new, reported.unwrap().created), (40, true));
            let found = CdrLog::find(store, ended(number).call_uuid).await.unwrap().unwrap();
            assert_eq!(found.ai_tokens, Some(1_500_000), "call {number}");
        }
    });
}

#[test]
fn reports_at_the_same_instant_come_one_after_the_other() {
    with_store(async |store| {
        for number in 0..20 {
            let (one, other) = both(
                report(store, number, running(number, [1, 2])),
                report(store, number, running(number, [3])),
            )
            .await;
            let (one, other) = (one.unwrap(), other.unwrap());
            assert!(one.created != other.created);
            let found = Conversations::find(store, id(number)).await.unwrap().unwrap();
            let seqs: Vec<u64> = found.conversation.turns.iter().map(|turn| turn.seq).collect();
            assert_eq!(seqs, [1, 2, 3]);
        }
    });
}

#[test]
fn two_first_conversations_of_a_call_are_one_and_a_conflict() {
    with_store(async |store| {
        for number in 0..20 {
            let (one, other) = both(
                report(store, number, draft(number, [])),
                report(store, 1000 + number, draft(number, [])),
            )
            .await;
            let conflict = |result: &Result<_, Problem>| matches!(result, Err(Problem::Conflict(_)));
            assert!(one.is_ok() && conflict(&other) || other.is_ok() && conflict(&one), "{one:?} {other:?}");
        }
    });
}

#[test]
fn completing_stores_one_event_with_the_conversation() {
    with_database(async |store, database| {
        report(store, 1, running(1, [1])).await.unwrap();
        let (one, other) = both(report(store, 1, draft(1, [1])), report(store, 1, draft(1, [1]))).await;
        assert_eq!(one.unwrap().conversation, other.unwrap().conversation);
        report(store, 1, ConversationDraft { summary: Some("Later.".to_owned()), ..draft(1, []) })
            .await
            .unwrap();
        let rows = database.texts("SELECT kind, CAST(at_us AS TEXT), organisation_id FROM events").await;
        let ended_at = at(62).whole_millis().as_micros().to_string();
        let expected = ["conversation.completed".to_owned(), ended_at, organisation(1).to_string()];
        assert_eq!(rows, [expected.map(Some)]);
    });
}

#[test]
fn a_refused_report_leaves_nothing() {
    with_store(async |store| {
        report(store, 1, running(1, [1, 2])).await.unwrap();
        let before = Conversations::find(store, id(1)).await.unwrap();
        let mut wrong = draft(1, [3]);
        wrong.turns.push(Turn { text: "other".to_owned(), ..turn(2) });
        wrong.turns.sort_by_key(|turn| turn.seq);
        let refused = report(store, 1, wrong).await;
        assert_eq!(refused, Err(Problem::Conflict("turn 2 is stored with other content".to_owned())));
        assert_eq!(Conversations::find(store, id(1)).await.unwrap(), before);
    });
}

/// The team of a conversation is that of the record, and a reader of that team sees it.
#[test]
fn a_team_sees_its_own_conversations_alone() {
    with_store(async |store| {
        let team = |number: u128| Some(TeamId(Uuid::from_u128(number)));
        store.store(&[Cdr { team_id: team(1), ..ended(1) }, ended(2)]).await.unwrap();
        for number in [1, 2, 3] {
            report(store, number, draft(number, [])).await.unwrap();
        }
        let scope = |number: u128| Scope::Team { organisation: organisation(1), team: team(number) };
        for (number, seen) in [(1, true), (2, false), (3, false)] {
            let found = Conversations::find(store, id(number)).await.unwrap().unwrap();
            assert_eq!(found.is_in(scope(1)), seen, "{number}");
            assert!(!found.is_in(scope(2)) && found.is_in(Scope::Organisation(organisation(1))));
            assert!(!found.is_in(Scope::Organisation(organisation(2))) && found.is_in(Scope::Everything));
        }
        // And reports only its own.
        let reporter = Reporter { scope: scope(2), home: organisation(1), named: None };
        for number in [1, 4] {
            let refused = store.report(reporter, id(number), draft(number, []), at(100)).await;
            assert!(matches!(refused, Err(Problem::Forbidden(_))), "{refused:?}");
        }
    });
}

#[test]
fn a_charge_is_fixed_when_the_conversation_completes() {
    with_store(async |store| {
        let prices = [
            price("*", "1"),
            price("talk-*", "2"),
            price("talk-1-*", "3"),
            price("talk_1*", "4"),
            price("talk-1-mini-x", "5"),
            AiPrice { provider: "other".to_owned(), ..price("talk-1-mini", "6") },
            AiPrice { from_time: at(3), ..price("talk-1-mini", "7") },
            AiPrice {
                kind: AiPriceKind::Cost,
                currency: "USD".parse().unwrap(),
                ..price("talk-1-mini", "0.5")
            },
        ];
        for price in &prices {
            store.put(price.clone(), at(0)).await.unwrap();
        }
        report(store, 1, running(1, [])).await.unwrap();
        let charge = report(store, 1, draft(1, [])).await.unwrap().conversation.charge;
        let text = |side: Option<(sidetone_model::money::Amount, sidetone_model::money::Currency)>| {
            side.map(|(amount, currency)| format!("{} {currency}", amount.to_text(2)))
        };
        assert_eq!(text(charge.sell).as_deref(), Some("3.00 EUR"));
        assert_eq!(text(charge.cost).as_deref(), Some("0.50 USD"));

        // Prices change; settled charges stay.
        store
            .put(AiPrice { text_input_per_million: "9".parse().unwrap(), ..prices[2].clone() }, at(1))
            .await
            .unwrap();
        assert_eq!(store.remove(prices[7].id).await, Ok(true));
        assert_eq!(store.remove(prices[7].id).await, Ok(false));
        let again = report(store, 1, draft(1, [])).await.unwrap().conversation;
        assert_eq!(again.charge, charge);
        let next = report(store, 2, draft(2, [])).await.unwrap().conversation.charge;
        assert_eq!((text(next.sell).as_deref(), next.cost), (Some("9.00 EUR"), None));
    });
}

#[test]
fn prices_are_listed_inside_the_scope_and_known_by_what_they_are_for() {
    with_store(async |store| {
        let mut write = store.write().await.unwrap();
        let (own, _) = write.declare_organisation(&acme(), at(0)).await.unwrap();
        let own_price = AiPrice { organisation_id: Some(own), ..price("talk-*", "2") };
        let first = write.declare_ai_price(&own_price, at(0)).await.unwrap();
        let second = write.declare_ai_price(&own_price, at(0)).await.unwrap();
        let dearer = AiPrice { text_input_per_million: "3".parse().unwrap(), ..own_price.clone() };
        let third = write.declare_ai_price(&dearer, at(0)).await.unwrap();
        use sidetone_store::Change;
        assert_eq!([first, second, third], [Change::Created, Change::Unchanged, Change::Changed]);
        write.commit().await.unwrap();
        let all = price("talk-*", "1");
        store.put(all.clone(), at(0)).await.unwrap();
        let twice = store.put(AiPrice { id: AiPriceId(Uuid::new_v4()), ..all.clone() }, at(0)).await;
        assert!(matches!(twice, Err(Problem::Conflict(text)) if text.contains(&all.id.to_string())));
        let nobody = AiPrice { organisation_id: Some(organisation(9)), ..price("talk-*", "1") };
        assert!(matches!(store.put(nobody, at(0)).await, Err(Problem::InvalidRequest(_))));

        let list = async |scope, organisation_id: Option<OrganisationId>| {
            let filter = AiPriceFilter { organisation_id, ..AiPriceFilter::default() };
            AiPrices::list(store, scope, filter, Window::default()).await.unwrap().total
        };
        assert_eq!(list(Scope::Everything, None).await, 2);
        assert_eq!(list(Scope::Organisation(own), None).await, 2);
        assert_eq!(list(Scope::Organisation(own), Some(own)).await, 1);
        assert_eq!(list(Scope::Organisation(organisation(9)), None).await, 1);
        assert_eq!(list(Scope::Organisation(organisation(9)), Some(own)).await, 0);
    });
}
