use uuid::Uuid;

use super::*;
use crate::call::Direction;
use crate::ids::{AgentId, CallId, ConversationId, OrganisationId, VirtualAgentProfileId};
use crate::team::AgentKind;
use crate::time::Timestamp;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(1_767_225_600_000_000 + seconds * 1_000_000)
}

fn turn(seq: u64, role: TurnRole, text: &str) -> Turn {
    Turn {
        seq,
        at: at(seq as i64),
        role,
        speaker: String::new(),
        text: text.to_owned(),
        tool_name: None,
        tool_args: None,
        tool_result: None,
    }
}

fn tool(seq: u64, name: &str) -> Turn {
    Turn { tool_name: Some(name.to_owned()), ..turn(seq, TurnRole::Tool, "") }
}

fn draft(turns: Vec<Turn>) -> ConversationDraft {
    ConversationDraft {
        call_uuid: CallId(Uuid::from_u128(1)),
        direction: Direction::Inbound,
        started_at: at(0),
        ended_at: None,
        agent_id: Some(AgentId(Uuid::from_u128(2))),
        agent_kind: AgentKind::Virtual,
        contact_id: None,
        contact_e164: Some("+442071230000".to_owned()),
        summary: None,
        ai: Some(AiUse {
            provider: "acme-ai".to_owned(),
            model: "talk-1".to_owned(),
            billing_mode: AiBillingMode::Rated,
            profile_id: Some(VirtualAgentProfileId(Uuid::from_u128(3))),
            profile_name: Some("Reception".to_owned()),
            tokens_input: 100,
            tokens_output: 20,
            tokens_audio: 60,
            audio_split_known: true,
        }),
        assembled_context: Some("You answer the phone.".to_owned()),
        profile: Some(ReviewProfile::default()),
        turns,
    }
}

fn put(stored: Option<&Conversation>, draft: ConversationDraft) -> Result<Update, Conflict> {
    let (id, organisation) = (ConversationId(Uuid::from_u128(4)), OrganisationId(Uuid::from_u128(5)));
    Update::of(stored.cloned(), id, organisation, draft)
}

fn reviewed(profile: ReviewProfile, turns: Vec<Turn>) -> Vec<(FlagKind, u64, String)> {
    let draft = ConversationDraft { profile: Some(profile), ended_at: Some(at(60)), ..draft(turns) };
    let flags = put(None, draft).unwrap().conversation.flags;
    flags.into_iter().map(|flag| (flag.kind, flag.seq, flag.detail)).collect()
}

#[test]
fn a_competitor_is_a_whole_word_in_any_case() {
    let cases = [
        ("Bolt", "You could ask Bolt.", true),
        ("Bolt", "you could ask BOLT", true),
        ("Bolt", "from Bolt's shop", true),
        ("Bolt", "from Bolt’s shop", true),
        ("Bolt", "(bolt)", true),
        ("Bolt", "It is bolted down.", false),
        ("Bolt", "a thunderbolt", false),
        ("Bolt", "bolt_2", false),
        ("Bolt", "Bol t", false),
        ("Bolt", "Bolt\u{301}", false),
        ("Bolt", "", false),
        ("Blue Sky", "ask Blue\n  Sky for it", true),
        ("  Blue   Sky ", "ask blue sky", true),
        ("Blue Sky", "BlueSky", false),
        ("Yahoo!", "Use Yahoo!now", true),
        ("Yahoo!", "Use Yahoo", false),
        ("3M", "13M and 3MB", false),
        ("3M", "made by 3m, yes", true),
        ("C++", "a C++ shop", true),
        ("Straße", "die STRASSE AG", true),
        ("ΟΔΟΣ", "η οδος μας", true),
        ("ΟΔΟΣ", "οδοσπορος", false),
        ("İstanbul Tel", "istanbul tel", true),
        ("Éclair", "les éclairs", false),
        ("Éclair", "un ÉCLAIR !", true),
        ("O'Neil", "call O’NEIL now", true),
        ("ソフト", "それはソフトです", true),
        ("볼트", "볼트는 싸요", true),
        ("Bolt", "それはBoltです", true),
        ("", "anything", false),
        (" ", "any thing", false),
    ];
    for (name, text, found) in cases {
        let profile = ReviewProfile { competitors: vec![name.to_owned()], knowledge_base: None };
        let flags = reviewed(profile, vec![turn(7, TurnRole::Agent, text)]);
        let expected = vec![(FlagKind::Competitor, 7, name.trim().to_owned())];
        assert_eq!(flags, if found { expected } else { vec![] }, "{name:?} in {text:?}");
    }
}

#[test]
fn only_the_agent_can_name_a_competitor_and_each_turn_tells_each_once() {
    let profile =
        ReviewProfile { competitors: vec!["Bolt".to_owned(), "Zap".to_owned()], knowledge_base: None };
    let turns = vec![
        turn(1, TurnRole::Caller, "Bolt is cheaper"),
        turn(2, TurnRole::System, "Never say Bolt"),
        turn(3, TurnRole::Agent, "Zap, Bolt, and again Zap"),
        turn(4, TurnRole::Tool, "Bolt"),
        turn(5, TurnRole::Agent, "bolt"),
    ];
    let named = |seq, name: &str| (FlagKind::Competitor, seq, name.to_owned());
    assert_eq!(reviewed(profile, turns), [named(3, "Bolt"), named(3, "Zap"), named(5, "Bolt")]);
}

#[test]
fn an_answer_without_a_search_is_found_where_it_was_given() {
    use TurnRole::{Agent, Caller, System, Tool};
    let base = |whole| KnowledgeBase { handed_over_whole: whole, search_tools: vec!["search".to_owned()] };
    let asked = || vec![turn(1, Agent, "Hello"), turn(2, Caller, "When?"), turn(3, Agent, "At ten")];
    let and = |mut turns: Vec<Turn>, more: Turn| {
        turns.push(more);
        turns
    };
    let cases = [
        ("answered", Some(base(false)), asked(), Some(3)),
        ("no knowledge base", None, asked(), None),
        ("handed over whole", Some(base(true)), asked(), None),
        ("searched before", Some(base(false)), and(asked(), tool(4, "search")), None),
        ("another tool", Some(base(false)), and(asked(), tool(4, "transfer")), Some(3)),
        ("near miss of the tool's name", Some(base(false)), and(asked(), tool(4, "Search")), Some(3)),
        ("greeted alone", Some(base(false)), vec![turn(1, Agent, "Hello")], None),
        ("never answered", Some(base(false)), vec![turn(1, Caller, "Hello?")], None),
        ("silent answer", Some(base(false)), vec![turn(1, Caller, "a"), turn(2, Agent, " ")], None),
        (
            "others spoke",
            Some(base(false)),
            vec![turn(1, Caller, "a"), turn(2, System, "b"), turn(3, Tool, "c")],
            None,
        ),
        ("nothing said", Some(base(false)), vec![], None),
    ];
    for (name, knowledge_base, turns, seq) in cases {
        let flags = reviewed(ReviewProfile { competitors: vec![], knowledge_base }, turns);
        let found: Vec<u64> = flags.iter().map(|(_, seq, _)| *seq).collect();
        assert_eq!(found, seq.into_iter().collect::<Vec<_>>(), "{name}");
        assert!(flags.iter().all(|(kind, ..)| *kind == FlagKind::NeverSearched), "{name}");
    }
}

#[test]
fn findings_are_in_the_order_of_their_turns_and_bounded() {
    let profile = ReviewProfile {
        competitors: vec!["Bolt".to_owned()],
        knowledge_base: Some(KnowledgeBase { handed_over_whole: false, search_tools: vec![] }),
    };
    let mut turns = vec![turn(0, TurnRole::Caller, "Who is cheaper?")];
    turns.extend((1..1000).map(|seq| turn(seq, TurnRole::Agent, "Bolt")));
    let flags = reviewed(profile, turns);
    assert_eq!(flags.len(), 200);
    assert!(flags.is_sorted_by_key(|(_, seq, _)| *seq));
    assert_eq!(flags.iter().filter(|(kind, ..)| *kind == FlagKind::NeverSearched).count(), 1);
}

#[test]
fn a_person_is_not_reviewed() {
    let profile = ReviewProfile {
        competitors: vec!["Bolt".to_owned()],
        knowledge_base: Some(KnowledgeBase { handed_over_whole: false, search_tools: vec![] }),
    };
    let human = ConversationDraft {
        agent_kind: AgentKind::Human,
        ai: None,
        ended_at: Some(at(60)),
        profile: Some(profile),
        ..draft(vec![turn(1, TurnRole::Caller, "?"), turn(2, TurnRole::Agent, "Bolt")])
    };
    let update = put(None, human).unwrap();
    assert!(update.completes && update.conversation.flags.is_empty());
    assert_eq!(update.conversation.ai_tokens(), None);
}

#[test]
fn a_conversation_grows_and_completes_once() {
    let first = put(None, draft(vec![turn(1, TurnRole::Agent, "Hello")])).unwrap();
    assert!(first.created && first.changed && !first.completes);
    let stored = first.conversation;
    let again = put(Some(&stored), draft(vec![turn(1, TurnRole::Agent, "Hello")])).unwrap();
    assert!(!again.changed && !again.created && again.new_turns.is_empty());

    // The report contains only the new turn: the stored one stays.
    let next = put(Some(&stored), draft(vec![turn(2, TurnRole::Caller, "Hi")])).unwrap();
    assert_eq!((next.new_turns.len(), next.conversation.turns.len()), (1, 2));
    let stored = next.conversation;
    let end = ConversationDraft { ended_at: Some(at(9)), profile: None, ..draft(vec![]) };
    let done = put(Some(&stored), end.clone()).unwrap();
    assert!(done.completes && done.changed && done.conversation.turns.len() == 2);
    let stored = done.conversation;
    let again = put(Some(&stored), end.clone()).unwrap();
    assert!(!again.completes && !again.changed);

    let late = ConversationDraft { summary: Some("Said hello".to_owned()), ..end };
    let late = put(Some(&stored), late).unwrap();
    assert!(late.changed && !late.completes);
}

#[test]
fn what_is_stored_is_not_contradicted() {
    let stored = put(None, draft(vec![turn(1, TurnRole::Agent, "Hello")])).unwrap().conversation;
    let refused = |draft: ConversationDraft| put(Some(&stored), draft).unwrap_err().to_string();
    assert_eq!(
        refused(draft(vec![turn(1, TurnRole::Agent, "Goodbye")])),
        "turn 1 is stored with other content"
    );
    let other = ConversationDraft {
        call_uuid: CallId(Uuid::from_u128(9)),
        started_at: at(1),
        direction: Direction::Outbound,
        ..draft(vec![])
    };
    assert_eq!(refused(other), "the conversation is stored with another call_uuid, direction, started_at");
    let mut fewer = draft(vec![]);
    fewer.ai.as_mut().unwrap().tokens_output = 19;
    assert_eq!(refused(fewer), "the conversation is stored with another tokens_output, a greater one");
    let human = ConversationDraft { agent_kind: AgentKind::Human, ai: None, ..draft(vec![]) };
    assert!(refused(human).ends_with("another agent_kind"));
}

/// The changes of a later report.
type Edit = fn(&mut ConversationDraft);

#[test]
fn a_complete_conversation_keeps_what_it_was_priced_and_reviewed_by() {
    let whole =
        || ConversationDraft { ended_at: Some(at(9)), ..draft(vec![turn(1, TurnRole::Agent, "Hello")]) };
    let stored = put(None, whole()).unwrap().conversation;
    let cases: [(&str, Edit); 8] = [
        ("ended_at", |draft| draft.ended_at = None),
        ("agent_id", |draft| draft.agent_id = None),
        ("assembled_context", |draft| draft.assembled_context = None),
        ("profile", |draft| draft.profile.as_mut().unwrap().competitors.push("Bolt".to_owned())),
        ("model", |draft| draft.ai.as_mut().unwrap().model = "talk-2".to_owned()),
        ("ai_billing_mode", |draft| draft.ai.as_mut().unwrap().billing_mode = AiBillingMode::Byo),
        ("tokens_input", |draft| draft.ai.as_mut().unwrap().tokens_input += 1),
        ("turns", |draft| draft.turns.push(turn(2, TurnRole::Agent, "More"))),
    ];
    for (name, change) in cases {
        let mut changed = whole();
        change(&mut changed);
        let text = put(Some(&stored), changed).unwrap_err().to_string();
        assert_eq!(text, format!("the conversation is complete, it cannot change {name}"));
    }
}

#[test]
fn a_transcript_is_bounded() {
    let many = (0..=LIMITS.turns as u64).map(|seq| turn(seq, TurnRole::Agent, "")).collect();
    assert_eq!(put(None, draft(many)), Err(Conflict::TooManyTurns));
    let text = "x".repeat(LIMITS.transcript_bytes / 8);
    let large = (0..9).map(|seq| turn(seq, TurnRole::Agent, &text)).collect();
    assert_eq!(put(None, draft(large)), Err(Conflict::TooMuchText));
}

#[test]
fn amounts_are_shown_to_those_who_may_see_them() {
    let amount = |text: &str| Some((text.parse().unwrap(), "EUR".parse().unwrap()));
    let mut conversation = put(None, draft(vec![])).unwrap().conversation;
    conversation.charge = Charge { sell: amount("0.0125"), cost: amount("0.5") };
    let shown = |conversation: &Conversation, billing, margin| {
        let json = serde_json::to_value(conversation.view(Sight { billing, margin })).unwrap();
        (json.get("ai_sell_amount").cloned(), json.get("ai_cost_amount").cloned())
    };
    assert_eq!(shown(&conversation, false, false), (None, None));
    assert_eq!(shown(&conversation, true, false), (Some("0.0125".into()), None));
    assert_eq!(shown(&conversation, false, true), (None, Some("0.50".into())));
    conversation.ai.as_mut().unwrap().billing_mode = AiBillingMode::Byo;
    assert_eq!(shown(&conversation, true, true), (None, None));
}
