//! The measured queries: every filter of the API document, sort orders, pages and searches.

use sidetone_model::call::{Direction, Transport};
use sidetone_model::call_log::{CdrFilter, CdrQuery, CdrSort};
use sidetone_model::ids::{AgentId, CampaignId, ExtensionId, NodeId, OrganisationId, TeamId, TrunkId};
use sidetone_model::page::{Order, Window};
use sidetone_model::quality::MediaVerdict;
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::records::{YEAR_START_US, YEAR_US, part};

/// One query in its three forms.
pub struct Case {
    pub name: &'static str,
    /// The path below `/api/v1`.
    pub path: String,
    pub query: CdrQuery,
    /// The condition after `WHERE` in the bare statement.
    pub condition: String,
    /// `ORDER BY`, `LIMIT` and `OFFSET` of the bare statement.
    pub tail: String,
}

struct Asked {
    name: &'static str,
    parameters: String,
    filter: CdrFilter,
    condition: String,
}

impl Asked {
    fn new(name: &'static str, parameters: String, filter: CdrFilter, condition: String) -> Self {
        Self { name, parameters, filter, condition }
    }

    fn id(name: &'static str, parameter: &'static str, id: Uuid, filter: CdrFilter) -> Self {
        let column = parameter;
        Self::new(name, format!("{parameter}={id}"), filter, format!("{column} = '{id}'"))
    }
}

/// Every case, for `organisation`.
pub fn cases(organisation: OrganisationId) -> Vec<Case> {
    let newest = || (CdrSort::StartedAt, Order::Descending, Window::default());
    let mut cases = Vec::new();
    let mut add =
        |asked: Asked, (sort, order, window): (CdrSort, Order, Window), sorting: &str, tail: &str| {
            let joined = if asked.parameters.is_empty() || sorting.is_empty() { "" } else { "&" };
            let own = format!("organisation_id = '{organisation}'");
            cases.push(Case {
                name: asked.name,
                path: format!("/cdrs?{}{joined}{sorting}", asked.parameters),
                query: CdrQuery { filter: asked.filter, sort, order, window: window.clone() },
                condition: if asked.condition.is_empty() {
                    own
                } else {
                    format!("{own} AND {}", asked.condition)
                },
                tail: format!("{tail} LIMIT {} OFFSET {}", window.limit, window.offset),
            });
        };
    let by_time = "ORDER BY started_at_us DESC, call_uuid DESC";
    add(everything("first page"), newest(), "", by_time);
    let window = Window::at(49_950, 50);
    add(
        everything("page 1,000"),
        (CdrSort::StartedAt, Order::Descending, window),
        "limit=50&offset=49950",
        by_time,
    );
    for asked in filters() {
        add(asked, newest(), "", by_time);
    }
    let page = |sort, order| (sort, order, Window::default());
    for (name, sort, key, column) in [
        ("sort billsec", CdrSort::Billsec, "billsec", "billsec"),
        ("sort caller_number", CdrSort::CallerNumber, "caller_number", "caller_number"),
        ("sort destination_number", CdrSort::DestinationNumber, "destination_number", "destination_number"),
        ("sort direction", CdrSort::Direction, "direction", "direction"),
        ("sort ended_at", CdrSort::EndedAt, "ended_at", "ended_at_us"),
        ("sort mos", CdrSort::Mos, "mos", "mos_hundredths"),
        ("sort sell_amount", CdrSort::SellAmount, "sell_amount", "sell_scaled"),
    ] {
        add(
            everything(name),
            page(sort, Order::Descending),
            &format!("sort={key}&order=desc"),
            &format!("ORDER BY {column} DESC NULLS LAST, call_uuid DESC"),
        );
    }
    cases
}

fn everything(name: &'static str) -> Asked {
    Asked::new(name, String::new(), CdrFilter::default(), String::new())
}

fn filters() -> Vec<Asked> {
    let any = CdrFilter::default;
    let word = |name, parameter: &str, column: &str, word: &str, filter| {
        Asked::new(name, format!("{parameter}={word}"), filter, format!("{column} = '{word}'"))
    };
    let search = |name, parameter: &str, text: &str, filter| {
        let column = if parameter == "q" { "search" } else { "did_search" };
        let sent = text.replace('+', "%2B");
        Asked::new(
            name,
            format!("{parameter}={sent}"),
            filter,
            format!("{column} LIKE '%{text}%' ESCAPE '\\'"),
        )
    };
    let text = |text: &str| Some(text.to_owned());
    let (agent, campaign) = (part(0, 3, 7), part(0, 5, 3));
    let (extension, node, team, trunk) = (part(0, 1, 17), part(0, 6, 1), part(0, 4, 2), part(0, 2, 1));
    let month = YEAR_START_US + YEAR_US / 2;
    let (from, to) = (Timestamp::from_micros(month), Timestamp::from_micros(month + YEAR_US / 12));
    let rfc3339 = |timestamp: Timestamp| timestamp.to_string().replace('+', "%2B");
    vec![
        Asked::id("agent_id", "agent_id", agent, CdrFilter { agent_id: Some(AgentId(agent)), ..any() }),
        Asked::id(
            "campaign_id",
            "campaign_id",
            campaign,
            CdrFilter { campaign_id: Some(CampaignId(campaign)), ..any() },
        ),
        word(
            "direction",
            "direction",
            "direction",
            "inbound",
            CdrFilter { direction: Some(Direction::Inbound), ..any() },
        ),
        Asked::id(
            "extension_id",
            "extension_id",
            extension,
            CdrFilter { extension_id: Some(ExtensionId(extension)), ..any() },
        ),
        Asked::new(
            "from and to, a month",
            format!("from={}&to={}", rfc3339(from), rfc3339(to)),
            CdrFilter { from: Some(from), to: Some(to), ..any() },
            format!("started_at_us >= {} AND started_at_us < {}", from.as_micros(), to.as_micros()),
        ),
        word(
            "hangup_cause, frequent",
            "hangup_cause",
            "hangup_cause",
            "NORMAL_CLEARING",
            CdrFilter { hangup_cause: text("NORMAL_CLEARING"), ..any() },
        ),
        word(
            "hangup_cause, rare",
            "hangup_cause",
            "hangup_cause",
            "CRASH",
            CdrFilter { hangup_cause: text("CRASH"), ..any() },
        ),
        word(
            "media_verdict, frequent",
            "media_verdict",
            "media_verdict",
            "ok",
            CdrFilter { media_verdict: Some(MediaVerdict::Ok), ..any() },
        ),
        word(
            "media_verdict_b, rare",
            "media_verdict_b",
            "media_verdict_b",
            "lossy_inbound",
            CdrFilter { media_verdict_b: Some(MediaVerdict::LossyInbound), ..any() },
        ),
        Asked::new(
            "min_billsec, most",
            "min_billsec=1".to_owned(),
            CdrFilter { min_billsec: Some(1), ..any() },
            "billsec >= 1".to_owned(),
        ),
        Asked::new(
            "min_billsec, few",
            "min_billsec=3600".to_owned(),
            CdrFilter { min_billsec: Some(3_600), ..any() },
            "billsec >= 3600".to_owned(),
        ),
        Asked::id("node_id", "node_id", node, CdrFilter { node_id: Some(NodeId(node)), ..any() }),
        Asked::id("team_id", "team_id", team, CdrFilter { team_id: Some(TeamId(team)), ..any() }),
        Asked::new(
            "transcoded",
            "transcoded=true".to_owned(),
            CdrFilter { transcoded: Some(true), ..any() },
            "(LOWER(codec_a) <> LOWER(codec_b)) IS TRUE".to_owned(),
        ),
        word(
            "transport",
            "transport",
            "transport",
            "whatsapp",
            CdrFilter { transport: Some(Transport::Whatsapp), ..any() },
        ),
        Asked::id("trunk_id", "trunk_id", trunk, CdrFilter { trunk_id: Some(TrunkId(trunk)), ..any() }),
        search("did, frequent", "did", "+442071", CdrFilter { did: text("+442071"), ..any() }),
        search("did, one number", "did", "442071000007", CdrFilter { did: text("442071000007"), ..any() }),
        search("q, frequent", "q", "normal", CdrFilter { q: text("normal"), ..any() }),
        search("q, one customer", "q", "4477000331", CdrFilter { q: text("4477000331"), ..any() }),
        search("q, nothing", "q", "nobody", CdrFilter { q: text("nobody"), ..any() }),
        search("q, one character", "q", "7", CdrFilter { q: text("7"), ..any() }),
        search("q, three digits", "q", "331", CdrFilter { q: text("331"), ..any() }),
        Asked::new(
            "did and direction",
            "did=442071000007&direction=inbound".to_owned(),
            CdrFilter { did: text("442071000007"), direction: Some(Direction::Inbound), ..any() },
            "did_search LIKE '%442071000007%' AND direction = 'inbound'".to_owned(),
        ),
        Asked::new(
            "q in a month",
            format!("q=331&from={}&to={}", rfc3339(from), rfc3339(to)),
            CdrFilter { q: text("331"), from: Some(from), to: Some(to), ..any() },
            format!(
                "search LIKE '%331%' AND started_at_us >= {} AND started_at_us < {}",
                from.as_micros(),
                to.as_micros()
            ),
        ),
        Asked::new(
            "q and agent_id",
            format!("q=4477000331&agent_id={agent}"),
            CdrFilter { q: text("4477000331"), agent_id: Some(AgentId(agent)), ..any() },
            format!("search LIKE '%4477000331%' AND agent_id = '{agent}'"),
        ),
        Asked::new(
            "agent_id and direction",
            format!("agent_id={agent}&direction=inbound"),
            CdrFilter { agent_id: Some(AgentId(agent)), direction: Some(Direction::Inbound), ..any() },
            format!("agent_id = '{agent}' AND direction = 'inbound'"),
        ),
        Asked::new(
            "agent_id in a month",
            format!("agent_id={agent}&from={}&to={}", rfc3339(from), rfc3339(to)),
            CdrFilter { agent_id: Some(AgentId(agent)), from: Some(from), to: Some(to), ..any() },
            format!(
                "agent_id = '{agent}' AND started_at_us >= {} AND started_at_us < {}",
                from.as_micros(),
                to.as_micros()
            ),
        ),
    ]
}
