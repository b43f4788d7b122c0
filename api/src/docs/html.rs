//! Text as HTML: everything is escaped, and the few markup forms that descriptions use are formatted.

/// The text, escaped for use between tags and in an attribute.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// One line; text between backticks becomes code.
pub(super) fn line(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for (at, part) in text.split('`').enumerate() {
        if at % 2 == 0 {
            html.push_str(&escaped(part));
        } else {
            html.push_str("<code>");
            html.push_str(&escaped(part));
            html.push_str("</code>");
        }
    }
    html
}

/// Paragraphs between empty lines; lines that begin with `- ` are a list, indented ones a code block.
pub(super) fn paragraphs(text: &str) -> String {
    let mut html = String::new();
    for block in text.split("\n\n").filter(|block| !block.trim().is_empty()) {
        if block.lines().all(|line| line.starts_with("    ")) {
            let program: Vec<&str> = block.lines().filter_map(|line| line.strip_prefix("    ")).collect();
            html.push_str(&format!("<pre><code>{}</code></pre>\n", escaped(&program.join("\n"))));
            continue;
        }
        let (lead, list): (Vec<&str>, Vec<&str>) = block.lines().partition(|line| !line.starts_with("- "));
        if !lead.is_empty() {
            html.push_str(&format!("<p>{}</p>\n", line(&lead.join(" "))));
        }
        if !list.is_empty() {
            html.push_str("<ul>\n");
            for item in list {
                html.push_str(&format!("<li>{}</li>\n", line(item.trim_start_matches("- "))));
            }
            html.push_str("</ul>\n");
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_becomes_a_tag() {
        let text = "<script>alert('1')</script> & \"`<b>`\"";
        assert_eq!(
            line(text),
            "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; &quot;<code>&lt;b&gt;</code>&quot;"
        );
    }

    #[test]
    fn blocks_are_laid_out() {
        assert_eq!(
            paragraphs("One\ntwo.\n\nThese:\n- `a`\n- b\n\n    x < y"),
            "<p>One two.</p>\n<p>These:</p>\n<ul>\n<li><code>a</code></li>\n<li>b</li>\n</ul>\n\
             <pre><code>x &lt; y</code></pre>\n"
        );
    }
}
