//! The nodes of the installation, for operators.

use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::layout::Section;
use crate::show::{columns, figure, flag, items, or_dash, text, time, words};
use crate::visitor::Visitor;

/// The nodes as seen by the node that answers.
pub(crate) async fn list(visitor: Visitor) -> Response {
    let found = visitor.client.get(&format!("/nodes?limit={NODES_MAX}")).await;
    visitor.page(Section::Nodes, "Nodes", found.map(|found| nodes(&found)))
}

fn nodes(found: &Value) -> Markup {
    html! {
        h1 { "Nodes " small { (figure(&found["total"])) } }
        div class="scroll" tabindex="0" role="region" aria-label="Nodes" { table class="rows stack" {
            (columns(&COLUMNS))
            tbody { @for node in items(found) { tr {
                td { (text(node, "name")) @if flag(node, "this") { " " span class="soft" { "(this one)" } } }
                td { (state(node)) }
                td { (text(node, "version")) }
                td class="n" { (figure(&node["calls"])) }
                td class="n" { (figure(&node["rooms"])) }
                td class="n" { (figure(&node["registrations"])) }
                td class="n" { (figure(&node["cpu_percent"])) " %" }
                td { (time(&node["started_at"])) }
                td { (or_dash(text(node, "http"))) }
                td { @for listener in node["sip"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                    (listener) br;
                } }
            } } }
        } }
        p class="soft" { "A node is drained with " code { "sidetone drain --node NAME" } "." }
    }
}

/// The most important facts for an operator.
fn state(node: &Value) -> Markup {
    let name = text(node, "state");
    let (class, shown) = match (name, flag(node, "draining"), flag(node, "loaded")) {
        ("gone", ..) => ("bad", words(name)),
        ("up", true, _) => ("none", "draining".to_owned()),
        ("up", false, true) => ("bad", "up, loaded".to_owned()),
        ("up", false, false) => ("good", words(name)),
        _ => ("none", words(name)),
    };
    html! { span class={ "chip " (class) } { (shown) } }
}

const COLUMNS: [&str; 10] =
    ["Node", "State", "Version", "#Calls", "#Rooms", "#Phones", "#CPU", "Since", "HTTP", "SIP"];
/// More than the nodes of any cluster.
const NODES_MAX: u32 = 500;
