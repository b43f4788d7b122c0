//! The filters of the call log as a form whose URL can be shared.

use maud::{Markup, html};
use serde_json::Value;

use crate::client::Client;
use crate::failure::Failure;
use crate::form::Fields;
use crate::me::Me;
use crate::show::{self, VERDICTS, items, named, text};

/// How a filter is entered.
#[derive(Clone, Copy, Debug)]
enum Entry {
    /// One of these values.
    Choice(&'static [&'static str]),
    /// An id from one of these lists: the path in the API, the permission that it needs, and the field that
    /// contains a name.
    Of(&'static str, &'static str, &'static str),
    /// A text, with an example.
    Text(&'static str),
    /// A verdict.
    Verdict,
}

/// A filter: its name in the API, its label, and how it is entered.
type Filter = (&'static str, &'static str, Entry);

/// The filters that are always shown.
const FIRST: [Filter; 7] = [
    ("q", "Search", Entry::Text("number or cause")),
    ("from", "From (UTC)", Entry::Text("2026-01-31T12:00:00Z")),
    ("to", "Before (UTC)", Entry::Text("2026-02-01")),
    ("direction", "Direction", Entry::Choice(&["inbound", "outbound", "internal"])),
    ("media_verdict", "Audio from the caller", Entry::Verdict),
    ("media_verdict_b", "Audio from the called party", Entry::Verdict),
    ("mos_max", "MOS at most", Entry::Text("3.5")),
];

/// The filters under "More filters".
const MORE: [Filter; 17] = [
    ("did", "Number dialled", Entry::Text("part of the number")),
    ("extension_id", "Extension", Entry::Of("/extensions", "directory:read", "number")),
    ("team_id", "Team", Entry::Of("/teams", "directory:read", "name")),
    ("agent_id", "Agent", Entry::Of("/agents", "directory:read", "name")),
    ("trunk_id", "Trunk", Entry::Of("/trunks", "trunks:write", "name")),
    ("room_id", "Room", Entry::Of("/conference-rooms", "conferences:write", "name")),
    ("organisation_id", "Organisation", Entry::Of("/organisations", "directory:read", "name")),
    ("user_agent", "Device (User-Agent)", Entry::Text("whole text")),
    ("network", "Network", Entry::Text("192.0.2.0/24")),
    ("hangup_cause", "Hangup cause", Entry::Text("USER_BUSY")),
    ("reference", "Reference", Entry::Text("whole text")),
    ("campaign_id", "Campaign", Entry::Text("id")),
    ("node_id", "Node", Entry::Text("id")),
    ("min_billsec", "Billed seconds at least", Entry::Text("60")),
    ("billing_mode", "Billing", Entry::Choice(&["rated", "free"])),
    ("transport", "Transport", Entry::Choice(&["sip", "whatsapp", "node"])),
    ("transcoded", "Transcoded", Entry::Choice(&["true", "false"])),
];

/// Whether the API has a filter of this name.
pub(crate) fn is_filter(name: &str) -> bool {
    FIRST.iter().chain(&MORE).any(|(known, ..)| *known == name)
}

/// The form. `kept` are fields that stay unchanged, such as the sort.
///
/// # Errors
/// If a list of ids cannot be read for another reason than a permission.
pub(crate) async fn form(
    client: &Client,
    me: &Me,
    asked: &Fields,
    failure: Option<&Failure>,
) -> Result<Markup, Failure> {
    let uses_more = MORE.iter().any(|(name, ..)| !asked.get(name).is_empty());
    let shows_more = uses_more || !asked.get("more").is_empty();
    let mut more = Vec::new();
    if shows_more {
        for (name, label, entry) in MORE {
            more.push(field(name, label, entry, &choices(client, me, entry).await?, asked, failure));
        }
    }
    Ok(html! {
        form class="filters card" method="get" action="/calls" role="search" {
            div class="fields" {
                @for (name, label, entry) in FIRST { (field(name, label, entry, &[], asked, failure)) }
                @for field in &more { (field) }
            }
            @for name in ["sort", "order", "limit"] {
                @if !asked.get(name).is_empty() { input type="hidden" name=(name) value=(asked.get(name)); }
            }
            @if shows_more { input type="hidden" name="more" value="1"; }
            div class="actions" {
                button type="submit" { "Show calls" }
                @if !shows_more {
                    button type="submit" name="more" value="1" class="plain" { "More filters" }
                }
                a href="/calls" { "Clear" }
            }
        }
    })
}

/// The values of an id, `(id, name)`; none if the user may not read the list; the id is then entered as a text.
async fn choices(client: &Client, me: &Me, entry: Entry) -> Result<Vec<(String, String)>, Failure> {
    let Entry::Of(path, permission, name) = entry else { return Ok(Vec::new()) };
    if !me.may(permission) {
        return Ok(Vec::new());
    }
    // A list that is not managed in this process has no values.
    let found = client.find(&format!("{path}?limit={CHOICES_MAX}")).await?;
    let name_of = |item: &Value| match (text(item, name), text(item, "name")) {
        (shown, other) if other.is_empty() || shown == other => shown.to_owned(),
        (shown, other) => format!("{shown} {other}"),
    };
    Ok(items(&found).iter().map(|item| (text(item, "id").to_owned(), name_of(item))).collect())
}

fn field(
    name: &str,
    label: &str,
    entry: Entry,
    choices: &[(String, String)],
    asked: &Fields,
    failure: Option<&Failure>,
) -> Markup {
    let value = asked.get(name);
    let problem = failure.and_then(|failure| failure.of_field(name));
    let describes = problem.map(|_| format!("{name}-problem"));
    html! {
        div class="field" {
            label for=(name) { (label) }
            @match entry {
                Entry::Text(example) => { (input(name, value, example, &describes)) }
                Entry::Of(..) if choices.is_empty() => { (input(name, value, "id", &describes)) }
                Entry::Of(..) => (select(name, value, choices)),
                Entry::Choice(known) => (select(name, value, &named(known))),
                Entry::Verdict => (select(name, value, &named(&VERDICTS))),
            }
            @if let Some(problem) = problem {
                p class="problem" id=[describes.as_deref()] { (show::sentence(problem)) }
            }
        }
    }
}

fn input(name: &str, value: &str, example: &str, describes: &Option<String>) -> Markup {
    html! {
        input id=(name) name=(name) value=(value) placeholder=(example) autocomplete="off"
            type=(if name == "q" { "search" } else { "text" })
            aria-describedby=[describes.as_deref()] aria-invalid=[describes.as_ref().map(|_| "true")];
    }
}

fn select(name: &str, value: &str, choices: &[(String, String)]) -> Markup {
    let is_known = value.is_empty() || choices.iter().any(|(known, _)| known == value);
    html! {
        select id=(name) name=(name) {
            option value="" { "any" }
            @for (known, label) in choices {
                option value=(known) selected[known == value] { (label) }
            }
            @if !is_known { option value=(value) selected { (value) } }
        }
    }
}

/// Entries of one list; more would make the page slow, and the id can be given in the URL.
const CHOICES_MAX: u32 = 500;
