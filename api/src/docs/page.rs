//! The page: navigation, the general rules, every operation by its tag, every schema.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::docs::html::{escaped, line, paragraphs};
use crate::docs::{operation, rules, schema};

/// The whole reference of `document`.
pub(crate) fn page(document: &Value) -> String {
    let groups = groups(document);
    let links = navigation(document, &groups);
    let title = escaped(document.pointer("/info/title").and_then(Value::as_str).unwrap_or_default());
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} API reference</title>\n\
         <link rel=\"stylesheet\" href=\"/api/v1/docs/style.css\">\n</head>\n<body>\n\
         <nav class=\"side\" aria-label=\"Contents\">\n<p class=\"brand\"><a href=\"#top\">{title}</a></p>\n{links}</nav>\n\
         <main id=\"top\">\n<details class=\"menu\"><summary>Contents</summary>\n{links}</details>\n\
         <h1>{title} API</h1>\n"
    );
    if let Some(text) = document.pointer("/info/description").and_then(Value::as_str) {
        html.push_str(&paragraphs(text));
    }
    html.push_str(
        "<p>The machine-readable document: <a href=\"/api/v1/openapi.json\">openapi.json</a> (OpenAPI 3.1).</p>\n",
    );
    for rule in rules::of(document) {
        html.push_str(&format!(
            "<section id=\"{0}\">\n<h2>{1}</h2>\n{2}",
            rule.id,
            rule.title,
            paragraphs(&rule.text)
        ));
        if rule.id == "permissions" {
            html.push_str(&permissions(&groups));
        }
        html.push_str("</section>\n");
    }
    for (tag, operations) in &groups {
        html.push_str(&format!("<h2 id=\"{}\">{}</h2>\n", slug(tag), escaped(tag)));
        for Operation { method, path, value } in operations {
            html.push_str(&operation::section(document, method, path, value));
        }
    }
    html.push_str("<h2 id=\"schemas\">Schemas</h2>\n");
    for (name, value) in
        document.pointer("/components/schemas").and_then(Value::as_object).into_iter().flatten()
    {
        html.push_str(&schema::section(name, value));
    }
    html.push_str("</main>\n</body>\n</html>\n");
    html
}

struct Operation<'a> {
    method: &'a str,
    path: &'a str,
    value: &'a Value,
}

/// The operations by tag; stable ones first, then by path.
fn groups(document: &Value) -> Vec<(&str, Vec<Operation<'_>>)> {
    let mut groups: BTreeMap<&str, Vec<Operation<'_>>> = BTreeMap::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, value) in item.as_object().into_iter().flatten() {
            let tag = value.pointer("/tags/0").and_then(Value::as_str).unwrap_or("Other");
            groups.entry(tag).or_default().push(Operation { method, path, value });
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    let is_public = |operation: &Operation<'_>| operation.value["x-stability"] == "public";
    groups.sort_by_key(|(_, operations)| !operations.iter().any(is_public));
    groups
}

fn navigation(document: &Value, groups: &[(&str, Vec<Operation<'_>>)]) -> String {
    let mut html = "<ul>\n<li><span>Rules</span><ul>\n".to_owned();
    for rule in rules::of(document) {
        html.push_str(&format!("<li><a href=\"#{}\">{}</a></li>\n", rule.id, rule.title));
    }
    html.push_str("</ul></li>\n");
    for (tag, operations) in groups {
        html.push_str(&format!("<li><a href=\"#{}\">{}</a><ul>\n", slug(tag), escaped(tag)));
        for Operation { method, value, .. } in operations {
            html.push_str(&format!(
                "<li><a href=\"#{}\"><span class=\"method {method}\">{}</span> {}</a></li>\n",
                escaped(value["operationId"].as_str().unwrap_or_default()),
                method.to_uppercase(),
                line(value["summary"].as_str().unwrap_or_default()),
            ));
        }
        html.push_str("</ul></li>\n");
    }
    html.push_str("<li><a href=\"#schemas\">Schemas</a></li>\n</ul>\n");
    html
}

/// The operations that each permission allows.
fn permissions(groups: &[(&str, Vec<Operation<'_>>)]) -> String {
    let mut uses: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for Operation { value, .. } in groups.iter().flat_map(|(_, operations)| operations) {
        if let Some(permission) = value["x-permission"].as_str() {
            let id = escaped(value["operationId"].as_str().unwrap_or_default());
            let summary = line(value["summary"].as_str().unwrap_or_default());
            uses.entry(permission).or_default().push(format!("<a href=\"#{id}\">{summary}</a>"));
        }
    }
    let mut html =
        "<div class=\"table\"><table>\n<thead><tr><th>Permission</th><th>Lets a caller</th></tr></thead>\n\
                    <tbody>\n"
            .to_owned();
    for (permission, operations) in uses {
        html.push_str(&format!(
            "<tr><td><code>{}</code></td><td>{}</td></tr>\n",
            escaped(permission),
            operations.join(", ")
        ));
    }
    html.push_str("</tbody></table></div>\n");
    html
}

fn slug(tag: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    format!("tag-{}", tag.chars().map(kept).collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::openapi::committed;

    /// The texts between `before` and the next quote.
    fn attributes<'a>(html: &'a str, before: &str) -> Vec<&'a str> {
        html.split(before).skip(1).filter_map(|rest| rest.split('"').next()).collect()
    }

    #[test]
    fn the_page_needs_nothing_but_its_stylesheet() {
        let html = page(&committed());
        for foreign in ["<script", "<img", "<iframe", "style=\"", "<style", "javascript:", " on"] {
            let inside = html
                .split('<')
                .filter_map(|tag| tag.split('>').next())
                .any(|tag| format!("<{tag}").contains(foreign));
            assert!(!inside, "{foreign}");
        }
        assert_eq!(attributes(&html, "<link rel=\"stylesheet\" href=\""), ["/api/v1/docs/style.css"]);
    }

    #[test]
    fn every_operation_and_schema_is_there_and_every_link_leads_somewhere() {
        let document = committed();
        let html = page(&document);
        let ids = attributes(&html, " id=\"");
        let known: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), known.len(), "an id stands twice");
        for target in attributes(&html, "href=\"#") {
            assert!(known.contains(target), "#{target} leads nowhere");
        }
        for item in document["paths"].as_object().unwrap().values() {
            for operation in item.as_object().unwrap().values() {
                assert!(known.contains(operation["operationId"].as_str().unwrap()));
            }
        }
        for name in document["components"]["schemas"].as_object().unwrap().keys() {
            assert!(known.contains(format!("schema-{name}").as_str()), "{name}");
        }
    }
}
