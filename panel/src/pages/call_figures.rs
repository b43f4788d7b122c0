//! The verdict on both legs of a call, and their figures side by side.

use maud::{Markup, html};
use serde_json::Value;

use crate::pages::plots::plots;
use crate::show::{columns, figure, or_dash, sentence, text, time, verdict, words};

/// The verdict first: its sentence, and who should act.
pub(crate) fn summary(quality: &Value) -> Markup {
    let callee = &quality["callee"];
    html! {
        section class="card verdicts" aria-label="Verdict" {
            (side("Audio from the caller", quality))
            @if callee.is_object() { (side("Audio from the called party", callee)) }
            @if text(quality, "state") == "live" {
                p class="soft" { "The call is up; these are the figures of " (time(&quality["at"])) "." }
            }
        }
    }
}

fn side(title: &str, of: &Value) -> Markup {
    html! {
        div {
            h2 { (title) " " (verdict(text(of, "media_verdict"))) }
            p class="sentence" { (sentence(text(of, "sentence"))) }
            @if let Some(act) = who_acts(text(of, "blame")) { p { b { "Who should act: " } (act) } }
        }
    }
}

/// The party responsible, and what it should look at.
fn who_acts(blame: &str) -> Option<&'static str> {
    Some(match blame {
        "network" => "the operator of the network between the party and this node.",
        "remote" => "the owner of the party's device, or of its own network.",
        "us" => "the operator of this node: its host, its addresses, or what sends through it.",
        _ => return None,
    })
}

/// A figure of a leg: its label, its unit, and where it stands.
type Figure = (&'static str, &'static str, &'static [&'static str]);

const FIGURES: [Figure; 20] = [
    ("MOS", "", &["inbound", "mos"]),
    ("MOS by the E-model", "", &["inbound", "mos_e_model"]),
    ("Packets without flaw", "%", &["inbound", "quality_pct"]),
    ("Lost", "%", &["inbound", "loss_pct"]),
    ("Lost", "packets", &["inbound", "lost"]),
    ("Longest loss", "ms", &["inbound", "longest_loss_ms"]),
    ("Late for a buffer of 80 ms", "packets", &["inbound", "late_80"]),
    ("Peak jitter", "ms", &["inbound", "jitter_ms"]),
    ("Mean interval", "ms", &["inbound", "mean_interval_ms"]),
    ("Longest gap", "ms", &["inbound", "max_gap_ms"]),
    ("Lateness, 95 percent under", "ms", &["inbound", "lateness_p95_ms"]),
    ("Packets received", "", &["inbound", "packets"]),
    ("Level", "dBov", &["inbound", "audio", "level_dbov"]),
    ("Silent audio", "%", &["inbound", "audio", "silent_share_pct"]),
    ("Packets sent", "", &["outbound", "packets"]),
    ("Round trip, mean", "ms", &["outbound", "round_trip_ms", "mean"]),
    ("Far end: lost", "%", &["outbound", "far_end", "loss_pct"]),
    ("Far end: jitter", "ms", &["outbound", "far_end", "jitter_max_ms"]),
    ("Rejected packets of others", "", &["inbound", "rejected_source"]),
    ("SRTP not authenticated", "packets", &["inbound", "srtp_failed"]),
];

/// The value at a path.
fn at<'v>(leg: &'v Value, path: &[&str]) -> &'v Value {
    path.iter().fold(leg, |value, key| &value[*key])
}

/// The figures of the legs side by side; a figure that no leg has is left out.
pub(crate) fn figures(legs: &[Value]) -> Markup {
    html! {
        @if !legs.is_empty() {
            div class="scroll" tabindex="0" role="region" aria-label="Figures of both legs" {
                table class="figures" {
                    thead { tr {
                        th scope="col" { "Measured" }
                        @for leg in legs { th scope="col" class="n" { (name(leg)) } }
                        th scope="col" { "Unit" }
                    } }
                    tbody {
                        @for (label, unit, path) in FIGURES {
                            @if legs.iter().any(|leg| at(leg, path).is_number()) {
                                tr {
                                    th scope="row" { (label) }
                                    @for leg in legs { td class="n" { (figure(at(leg, path))) } }
                                    td class="soft" { (unit) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The parts of a leg that are not beside the other's: plots, rules and addresses.
pub(crate) fn leg(leg: &Value) -> Markup {
    let rules = leg["rules"].as_array().map_or(&[][..], Vec::as_slice);
    html! {
        section class="leg" {
            h2 { (name(leg)) " " (verdict(text(leg, "media_verdict"))) }
            p { (sentence(text(leg, "sentence"))) }
            (plots(leg))
            @if !rules.is_empty() {
                details { summary { "Rules" } div class="scroll" tabindex="0" role="region" aria-label="Rules" { table {
                    (columns(&["Rule", "Outcome", "#Reached", "Measured"]))
                    tbody { @for rule in rules { (rule_row(rule)) } }
                } } }
            }
            (addresses(&leg["addresses"]))
        }
    }
}

fn rule_row(rule: &Value) -> Markup {
    let measures = rule["measures"].as_array().into_iter().flatten();
    html! {
        tr {
            td { (verdict(text(rule, "rule"))) }
            td { (words(text(rule, "outcome"))) }
            td class="n" { (figure(&rule["reached_pct"])) @if rule["reached_pct"].is_number() { " %" } }
            td {
                @for measure in measures {
                    span class="measure" {
                        (words(text(measure, "name"))) " " b { (plain(&measure["value"])) }
                        @if !measure["threshold"].is_null() { " of " (plain(&measure["threshold"])) }
                    } " "
                }
            }
        }
    }
}

/// A measured value: a flag, a number or a text.
fn plain(value: &Value) -> String {
    match value {
        Value::Bool(flag) => if *flag { "yes" } else { "no" }.to_owned(),
        Value::String(text) => text.clone(),
        value => figure(value),
    }
}

fn addresses(addresses: &Value) -> Markup {
    const KNOWN: [(&str, &str); 6] = [
        ("signalling", "Signalling"),
        ("advertised", "Advertised in SDP"),
        ("source", "Audio came from"),
        ("sent_to", "Audio was sent to"),
        ("own_advertised", "Advertised to the party"),
        ("rejected_source", "Rejected source"),
    ];
    html! {
        @if addresses.is_object() {
            details { summary { "Addresses" } dl class="facts" {
                @for (key, label) in KNOWN {
                    @if !text(addresses, key).is_empty() { div { dt { (label) } dd { (text(addresses, key)) } } }
                }
            } }
        }
    }
}

/// `Caller 1001` or `Called party 1002`, with the codec.
fn name(leg: &Value) -> String {
    let side = if text(leg, "leg") == "b" { "Called party" } else { "Caller" };
    format!("{side} {} {}", or_dash(text(leg, "party")), text(leg, "codec")).trim_end().to_owned()
}
