//! The page and the rows on captures of every kind.

use sidetone_media::simulate::Scenario;

use super::*;
use crate::{Analysis, EngineOptions, Groups, Parts, compose, golden, read_with};

/// The page of analyses.
fn html(analyses: Vec<Analysis>) -> String {
    let mut page = Page::new(analyses.len());
    for analysis in analyses {
        let mut groups = Groups::from(Parts::from(analysis));
        page.begin(&groups.head.clone(), groups.calls, groups.streams);
        groups.by_ref().for_each(|group| page.group(&group));
    }
    String::from_utf8(page.finish(Vec::new()).unwrap()).unwrap()
}

/// The rows of analyses.
fn csv(analyses: Vec<Analysis>) -> String {
    let mut csv = Csv::new(Vec::new());
    for analysis in analyses {
        let mut groups = Groups::from(Parts::from(analysis));
        let file = groups.head.file.clone();
        csv.begin(&groups.head).unwrap();
        groups.by_ref().for_each(|group| csv.group(&file, &group).unwrap());
    }
    String::from_utf8(csv.finish().unwrap()).unwrap()
}

fn analyze(name: &str, file: &[u8]) -> Analysis {
    let options = EngineOptions { ladder: true, ..EngineOptions::default() };
    read_with(options, name, &mut &*file, &mut |_, _| {}).analysis
}

fn simulated(text: &str) -> Analysis {
    let scenario: Scenario = text.parse().unwrap();
    let mut file = Vec::new();
    compose(&scenario, &mut file).unwrap();
    analyze("simulated.pcap", &file)
}

/// A page makes no request if its policy allows none and it contains no address.
fn check_alone(page: &str) {
    assert!(page.contains("default-src 'none'"), "a policy");
    for word in ["http://", "https://", "src=", "@import", "url(", " style=", "onclick", "<iframe", "<link"] {
        assert!(!page.contains(word), "{word} is on the page");
    }
}

#[test]
fn a_bad_call_is_explained_and_drawn() {
    let page = html(vec![simulated("hole=30s..32s")]);
    check_alone(&page);
    for expected in [
        "<span class=\"chip warn\">lossy_inbound</span>",
        "100 of the 3,000 packets of the caller&#39;s audio (3.33 %, limit 2 %) were lost on the way here",
        "look first at <b>network</b>",
        "<b>INVITE sip:2000@192.0.2.20:5060</b>",
        "<b>200 OK (INVITE)</b>",
        "<tr class=\"fired\">",
        "Audio of the caller",
        "Audio of the called party",
        "<details class=\"call\" open>",
        "<title>the seconds that the verdict is about, 0:30 to 0:32</title>",
        "receives the INVITE",
        "<table class=\"ladder two\">",
    ] {
        assert!(page.contains(expected), "no {expected} on the page");
    }
    assert!(page.contains("<rect class=\"hit\" x=\"30\""), "the affected seconds are shaded");
    assert_eq!(page.matches("<article").count(), page.matches("</article>").count());
    assert_eq!(page.matches("<div").count(), page.matches("</div>").count());
    assert_eq!(page.matches("<details").count(), page.matches("</details>").count());
}

#[test]
fn the_policy_names_the_script_and_the_style_that_are_there() {
    use base64::Engine;
    use sha2::{Digest, Sha256};

    let page = html(vec![simulated("clean duration=2s")]);
    for (open, close) in [("<script>", "</script>"), ("<style>", "</style>")] {
        let text = page.split_once(open).unwrap().1.split_once(close).unwrap().0;
        let digest = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text.as_bytes()));
        assert!(page.contains(&format!("'sha256-{digest}'")), "{open}");
    }
}

#[test]
fn an_empty_capture_is_told_what_to_look_at() {
    let page = html(vec![analyze("<b>empty</b>.pcap", b"")]);
    check_alone(&page);
    assert!(page.contains("This capture holds no packet"));
    assert!(page.contains("&lt;b&gt;empty&lt;/b&gt;.pcap") && !page.contains("<b>empty"));
}

#[test]
fn what_a_caller_chose_stays_text() {
    let again = || {
        let mut analysis = simulated("clean duration=2s");
        analysis.calls[0].from = "=cmd|'<script>alert(1)</script>".to_owned();
        analysis
    };
    let page = html(vec![again()]);
    assert_eq!(page.matches("<script>").count(), 1, "ours alone");
    let rows = csv(vec![again()]);
    assert!(rows.contains(",'=cmd|'<script>"), "an apostrophe stands before the formula: {rows}");
}

/// The cells of a row; a comma within quotes is text.
fn cells(row: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for c in row.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => cells.last_mut().unwrap().push(c),
        }
    }
    cells
}

#[test]
fn rows_name_the_call_and_the_stream() {
    let text = csv(vec![simulated("lossy noise=0"), simulated("no-inbound returned=no")]);
    let rows: Vec<Vec<String>> = text.lines().map(cells).collect();
    let cell = |row: usize, name: &str| {
        let column = rows[0].iter().position(|column| column == name).unwrap();
        rows[row][column].as_str()
    };
    assert_eq!(rows.len(), 4, "two streams, and the call that has none: {text}");
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    assert_eq!((cell(1, "call"), cell(1, "call_from"), cell(1, "call_to")), ("1", "1000", "2000"));
    assert_eq!((cell(1, "stream"), cell(1, "call_verdict")), ("1", "lossy_inbound"));
    assert!(cell(1, "call_sentence").contains("lost on the way here"));
    assert_eq!((cell(3, "call_verdict"), cell(3, "stream")), ("", ""));
}

/// The called party's direction has separate columns, in every row of the call; the page and the table show
/// the worse direction first, with its figures.
#[test]
fn the_worse_direction_comes_first() {
    let golden = golden::all().find(|golden| golden.name == "lossy_towards_the_caller").unwrap();
    let mut file = Vec::new();
    golden.write(&mut file).unwrap();
    let again = || analyze("callee.pcap", &file);
    let analysis = again();
    let far = analysis.calls[0].callee_quality().unwrap();
    let loss = far.figures().loss_pct.unwrap().as_f64();

    let text = csv(vec![again()]);
    let rows: Vec<Vec<String>> = text.lines().map(cells).collect();
    let cell = |row: usize, name: &str| {
        let column = rows[0].iter().position(|column| column == name).unwrap();
        rows[row][column].as_str()
    };
    assert_eq!(rows.len(), 3, "two streams: {text}");
    for row in 1..3 {
        assert_eq!([cell(row, "call_verdict"), cell(row, "callee_verdict")], ["ok", "lossy_inbound"]);
        assert_eq!(
            [cell(row, "call_verdict_worse"), cell(row, "callee_blame")],
            ["lossy_inbound", "network"]
        );
        assert_eq!(cell(row, "callee_sentence"), far.sentence);
        assert_eq!(cell(row, "callee_loss_pct"), loss.to_string());
        assert!(cell(row, "callee_mos").parse::<f64>().unwrap() < 3.5);
    }

    let page = html(vec![again()]);
    let of_callee = page.find("<h4>Audio of the called party").unwrap();
    assert!(of_callee < page.find("<h4>Audio of the caller").unwrap());
    let (head, row) = page.split_once("<tbody><tr data-v=\"").unwrap();
    assert!(head.contains("<th>audio of</th>") && row.starts_with("lossy_inbound\""), "{row}");
    let row = row.split_once("</tr>").unwrap().0;
    assert!(row.contains("<td>callee</td>") && row.contains(&format!("{loss:.2}")), "{row}");

    let table = crate::table(analysis.into());
    let lines: Vec<&str> = table.lines().collect();
    let place = |words: [&str; 2]| {
        lines.iter().position(|line| words.iter().all(|word| line.contains(word))).unwrap()
    };
    let (callee, caller) = (place(["callee", "lossy_inbound"]), place(["caller", " ok"]));
    assert!(callee < caller, "{table}");
    assert!(lines[callee].contains(&format!("{loss:.2}")) && lines[callee].contains("NORMAL_CLEARING"));
    assert!(lines[callee + 1].contains("↳") && !lines[caller].contains("NORMAL_CLEARING"), "{table}");
    assert!(table.contains("1 call, 2 RTP streams"), "{table}");
}

#[test]
fn a_thousand_calls_stay_a_page_that_opens() {
    let mut analysis = simulated("lossy duration=60s");
    let more: Vec<Analysis> = (1..1_000).map(|_| simulated("lossy duration=1s")).collect();
    for mut other in more {
        for call in &mut other.calls {
            call.streams = call.streams.iter().map(|number| number + analysis.streams.len()).collect();
        }
        analysis.calls.append(&mut other.calls);
        analysis.streams.append(&mut other.streams);
    }
    let page = html(vec![analysis]);
    assert!(page.len() < 20_000_000, "{} bytes", page.len());
    assert_eq!(page.matches("<details class=\"call\">").count(), 1_000);
}

#[test]
fn the_bad_direction_is_first_and_open() {
    let page = html(vec![simulated("hole=10s..12s duration=20s"), simulated("clean duration=3s")]);
    check_alone(&page);
    let way = |name: &str| page.find(&format!("<summary><h4>{name}")).unwrap();
    assert!(way("Audio of the caller") < way("Audio of the called party"));
    let open = page.matches("<details class=\"way\" open>").count();
    assert_eq!((page.matches("<details class=\"way\"").count(), open), (4, 2), "one of each call");
    // If only the other direction of a call is bad, it is shown first.
    let golden = golden::all().find(|golden| golden.name == "lossy_towards_the_caller").unwrap();
    let mut file = Vec::new();
    golden.write(&mut file).unwrap();
    let page = html(vec![analyze("callee.pcap", &file)]);
    let way = |name: &str| page.find(&format!("<summary><h4>{name}")).unwrap();
    assert!(way("Audio of the called party") < way("Audio of the caller"));
    assert!(page.contains("<details class=\"way\" open><summary><h4>Audio of the called party"));
    assert!(page.contains("<details class=\"way\"><summary><h4>Audio of the caller"));
}

#[test]
fn several_captures_have_contents() {
    let page = html(vec![
        simulated("lossy duration=3s"),
        analyze("<empty>", b""),
        simulated("no-inbound returned=no duration=5s"),
    ]);
    check_alone(&page);
    let contents =
        page.split_once("<section class=\"contents\">").unwrap().1.split_once("</section>").unwrap().0;
    assert!(contents.contains("3 captures</h2><p>2 calls, no RTP streams"), "{contents}");
    for anchor in ["f1", "f2", "f3"] {
        assert!(contents.contains(&format!("href=\"#{anchor}\"")), "{anchor}");
        assert!(page.contains(&format!("<h2 id=\"{anchor}\">")), "{anchor}");
    }
    assert!(!html(vec![simulated("clean duration=2s")]).contains("class=\"contents\""));
}

#[test]
fn a_dead_tail_reaches_the_end_of_the_call() {
    let page = html(vec![simulated("clean duration=60s packets=1000")]);
    assert!(page.contains("<title>no packets came, 0:20 to 1:00</title>"), "the tail is shaded and named");
    assert!(page.contains("<i class=\"key dead\"></i> no packets came"), "and in the legend");
    assert!(page.contains("<title>the seconds that the verdict is about, 0:19 to 1:00</title>"), "{page}");
    assert!(!page.contains("limit of a rule"), "a limit that is not drawn is not in the legend");
}

#[test]
fn a_sentence_is_on_the_page_once() {
    let page = html(vec![simulated("hole=10s..12s duration=20s noise=0")]);
    let begin = page.find("<p class=\"sentence\">").unwrap() + 20;
    let sentence = page[begin..].split_once("</p>").unwrap().0;
    assert_eq!(page.matches(sentence).count(), 1, "{sentence}");
}
