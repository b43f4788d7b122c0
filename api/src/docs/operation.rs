//! One operation: its request, its answers, an example.

use serde_json::Value;

use crate::docs::html::{escaped, line, paragraphs};
use crate::docs::{examples, schema};

/// The section of an operation.
pub(super) fn section(document: &Value, method: &str, path: &str, operation: &Value) -> String {
    let id = escaped(operation["operationId"].as_str().unwrap_or_default());
    let summary = line(operation["summary"].as_str().unwrap_or_default());
    // The permission is shown on a separate line.
    let text = operation["description"].as_str().unwrap_or_default();
    let text = paragraphs(text.split("Needs the permission").next().unwrap_or_default());
    let mut html = format!(
        "<section class=\"operation\" id=\"{id}\">\n<h3><a href=\"#{id}\">{summary}</a>{}</h3>\n\
         <p class=\"request\"><span class=\"method {method}\">{}</span> <code>{}</code></p>\n{text}",
        if operation["deprecated"] == true { " <span class=\"badge\">deprecated</span>" } else { "" },
        method.to_uppercase(),
        with_breaks(path),
    );
    html.push_str(&access(operation));
    html.push_str(&parameters(operation));
    html.push_str(&body(document, operation));
    html.push_str(&answers(document, operation));
    let command = examples::curl(document, method, path, operation);
    html.push_str(&format!("<h4>Example</h4>\n<pre><code>{}</code></pre>\n", escaped(&command)));
    if let Some(answer) = example_answer(document, operation) {
        html.push_str(&format!("<pre><code>{}</code></pre>\n", escaped(&answer)));
    }
    html.push_str("</section>\n");
    html
}

/// A path that may be wrapped after a slash.
fn with_breaks(path: &str) -> String {
    escaped(path).replace('/', "/<wbr>")
}

/// Which callers may use the operation, and whether it may change.
fn access(operation: &Value) -> String {
    let public = operation["security"].as_array().is_some_and(Vec::is_empty);
    let who = match operation["x-permission"].as_str() {
        _ if public => "no token".to_owned(),
        Some(permission) => format!("<code>{}</code>", escaped(permission)),
        None => "any token".to_owned(),
    };
    let stability = if operation["x-stability"] == "public" {
        "changes only compatibly within v1"
    } else {
        "panel interface, may change without notice"
    };
    format!("<p class=\"access\">Needs {who} <span class=\"stability\">{stability}</span></p>\n")
}

fn parameters(operation: &Value) -> String {
    let mut rows = String::new();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = format!("<code>{}</code>", escaped(parameter["name"].as_str().unwrap_or_default()));
        let place = match (parameter["in"].as_str(), parameter["required"] == true) {
            (Some("path"), _) => "path",
            (Some("header"), true) => "header, required",
            (Some("header"), false) => "header",
            (_, true) => "required",
            _ => "",
        };
        rows.push_str(&schema::row(&name, place, &parameter["schema"], parameter));
    }
    if rows.is_empty() { rows } else { format!("<h4>Parameters</h4>\n{}", schema::table("Parameter", &rows)) }
}

fn body(document: &Value, operation: &Value) -> String {
    let Some(content) = operation.pointer("/requestBody/content").and_then(Value::as_object) else {
        return String::new();
    };
    let mut html = "<h4>Body</h4>\n".to_owned();
    for (kind, content) in content {
        let asked = &content["schema"];
        html.push_str(&format!("<p><code>{}</code>: {}</p>\n", escaped(kind), schema::kind(asked)));
        let target = asked.get("$ref").and_then(Value::as_str);
        let target = target.and_then(|target| document.pointer(target.strip_prefix('#')?));
        let resolved = target.unwrap_or(asked);
        if resolved.get("properties").is_some() {
            html.push_str(&schema::fields(resolved));
        }
    }
    html
}

fn answers(document: &Value, operation: &Value) -> String {
    let mut rows = String::new();
    for (status, answer) in operation["responses"].as_object().into_iter().flatten() {
        let target = answer["$ref"].as_str().and_then(|target| document.pointer(target.strip_prefix('#')?));
        let answer = target.unwrap_or(answer);
        let kinds: Vec<String> = answer["content"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(kind, content)| {
                let name =
                    if kind == "application/json" { String::new() } else { format!("{} ", escaped(kind)) };
                format!("{name}{}", schema::kind(&content["schema"]))
            })
            .collect();
        let class = status.get(..1).unwrap_or_default();
        rows.push_str(&format!(
            "<tr><td><span class=\"status s{class}\">{}</span></td><td>{}</td><td>{}</td></tr>\n",
            escaped(status),
            if kinds.is_empty() { "no body".to_owned() } else { kinds.join("<br>") },
            line(answer["description"].as_str().unwrap_or_default()),
        ));
    }
    format!(
        "<h4>Answers</h4>\n<div class=\"table\"><table>\n<thead><tr><th>Status</th><th>Body</th><th>Meaning</th></tr>\
         </thead>\n<tbody>\n{rows}</tbody></table></div>\n"
    )
}

/// The body of the first success that has one.
fn example_answer(document: &Value, operation: &Value) -> Option<String> {
    let mut answers = operation["responses"].as_object()?.iter();
    let (_, answer) = answers.find(|(status, _)| status.starts_with('2'))?;
    let answered = answer.pointer("/content/application~1json/schema")?;
    let example = examples::value(document, answered);
    (example.as_object().is_some_and(|object| !object.is_empty())).then(|| format!("{example:#}"))
}
