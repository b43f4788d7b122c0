//! Compares sentences with their figures on random calls: each claim in a sentence must agree with its
//! figure.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use sidetone_media::rtcp::SenderCount;
use sidetone_media::session::{Hundredths, Report, Session, SessionConfig, Verdict};
use sidetone_media::simulate::{CATALOGUE, Scenario, play};
use sidetone_media::verdict::{Explanation, Outcome, Party, explain};

fn played(text: &str) -> Report {
    let scenario: Scenario = text.parse().unwrap();
    let symmetric = scenario.call.advertised_source;
    play(&scenario, &mut Session::new(SessionConfig { symmetric, ..SessionConfig::default() }))
}

/// Pseudo-random numbers, the same in every run (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// A call of some seconds with one to three faults.
    fn scenario(&mut self, seed: u64) -> String {
        let mut text = format!("clean seed={} duration={}s", seed + 1, 4 + self.below(16));
        for _ in 0..=self.below(3) {
            let more = self.below(100);
            let setting = match self.below(17) {
                0 => format!("loss={}", more % 9),
                1 => format!("jitter=0..{}", more * 3),
                2 => format!("clump={}", 1 + more % 10),
                3 => format!("pace={}", 10 + more % 30),
                4 => format!("ptime={} advertised=20", 10 * (1 + more % 6)),
                5 => format!("hole=2s..{}ms", 2_000 + more * 20),
                6 => format!("stall=1s..{}ms", 1_000 + more * 30),
                7 => format!("start={}ms", more * 30),
                8 => format!("stop={}ms", 1_000 + more * 100),
                9 => format!("swap={}", more % 30),
                10 => format!("stalls=1s:{}ms", more * 4),
                11 => format!("overtaken=30:{}", more * 4),
                12 => "packets=0".to_owned(),
                13 => "returned=no".to_owned(),
                14 => "dtx=1s/1s".to_owned(),
                15 => "stamp_reset=1s,2s,3s".to_owned(),
                _ => format!("packets={}", more * 5),
            };
            text = format!("{text} {setting}");
        }
        text
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// Whether the party's own count shows more missing packets than the numbers do, beyond the limit.
fn is_short_by_reports(report: &Report) -> bool {
    let sent = report.rtcp.sent_by_party.unwrap_or_default();
    sent.missing >= report.figures.lost + 3 && percent(sent.missing, sent.packets) >= 2.0
}

/// A claim, and the figure that must agree.
type Claim = (&'static str, fn(&Report) -> bool);

const CLAIMS: &[Claim] = &[
    ("could not be heard", |it| it.counters.received_after_answer < 5 && it.receive_expected_ms >= 500),
    ("could hear nothing", |it| it.counters.sent_after_answer < 5 && it.send_expected_ms >= 500),
    ("none was lost", |it| it.figures.lost == 0 && !is_short_by_reports(it)),
    ("none is missing", |it| it.figures.lost == 0),
    ("were lost on the way here", |it| {
        it.figures.lost >= 3 && it.figures.loss_pct >= Some(Hundredths::from_integer(2))
    }),
    ("ms late", |it| it.figures.sums.late_count >= 5),
    ("arrived unevenly", |it| it.figures.jitter_ms >= Some(Hundredths::from_integer(30))),
    ("in bursts", |it| percent(it.figures.sums.short_gap_count, it.figures.sums.gap_count) >= 50.0),
    ("too slowly", |it| it.figures.pace_ratio < Some(Hundredths::from_integer(90))),
    ("too fast", |it| it.figures.pace_ratio > Some(Hundredths::from_integer(110))),
    ("without a flaw", |it| it.figures.quality_pct < Some(Hundredths::from_integer(95))),
    ("came too late", |it| it.figures.late_80 + it.figures.late_200 > 0),
    ("stopped", |it| it.tail_ms >= 5_000),
    ("never came", is_short_by_reports),
    ("would have had to conceal none", |it| it.figures.late_80 + it.figures.late_200 == 0),
    ("Nothing was wrong", |it| it.verdict == Some(Verdict::Ok) && it.figures.enough),
];

/// Claims that only a listener could make.
const UNMEASURED: &[&str] = &[
    "broken",
    "chopped",
    "hears it",
    "is heard",
    "hardly",
    "words are",
    "had gaps",
    "nobody",
    "speed of sound",
];

fn problems(report: &Report, party: Party) -> Vec<String> {
    let Explanation { sentence, checks, .. } = explain(report, party);
    let claims = CLAIMS.iter().filter(|(words, is_so)| sentence.contains(words) && !is_so(report));
    let mut found: Vec<String> = claims.map(|(words, _)| format!("\"{words}\"")).collect();
    found.extend(UNMEASURED.iter().filter(|words| sentence.contains(*words)).map(|words| words.to_string()));
    let quiet = sentence.contains("Nothing was wrong");
    let alarms = |outcome| matches!(outcome, Outcome::Fired | Outcome::Outranked);
    if quiet && checks.iter().any(|check| alarms(check.outcome)) {
        found.push("nothing wrong beside a rule that holds".to_owned());
    }
    for number in concealed(&sentence) {
        let figures = &report.figures;
        if ![figures.late_80, figures.late_200].map(|late| late.min(figures.received)).contains(&number) {
            found.push(format!("{number} concealed"));
        }
    }
    // A sentence without a fault must mention a second or more without packets while audio was expected.
    let late_s = report.first_after_answer_ms.is_some_and(|ms| ms >= Hundredths::from_integer(1_500));
    let silent = late_s || report.tail_ms >= 1_500;
    let even = report.figures.pauses + report.figures.interruptions + report.figures.comfort_noise == 0;
    let steady = report.figures.pace_ratio.is_some_and(|pace| (9_500..10_500).contains(&pace.0));
    let uncounted = report.rtcp.sent_by_party.is_none();
    if quiet && uncounted && silent && even && steady && !sentence.contains("were due") {
        found.push("content with what did not come".to_owned());
    }
    if quiet && is_short_by_reports(report) {
        found.push("content with what the sender says it has sent".to_owned());
    }
    found.into_iter().map(|what| format!("{what}: {sentence}")).collect()
}

/// The numbers of packets that phones concealed according to a sentence.
fn concealed(sentence: &str) -> Vec<u64> {
    let number = |text: &str| {
        let digits: String = text.chars().take_while(|c| c.is_ascii_digit() || *c == ',').collect();
        digits.replace(',', "").parse().ok()
    };
    let behind = |words: &str| sentence.split_once(words).and_then(|(_, rest)| number(rest));
    behind("had to conceal ").into_iter().chain(behind("one of 200 ms ")).collect()
}

#[test]
fn no_sentence_contradicts_a_figure_beside_it() {
    let mut random = Random(14);
    let mut found = Vec::new();
    let mut verdicts = std::collections::BTreeSet::new();
    for seed in 0..400 {
        let text = random.scenario(seed);
        let mut report = played(&text);
        if random.below(3) == 0 {
            let sent = report.figures.expected + random.below(200);
            let missing = sent - report.figures.received;
            let tail_missing = random.below(missing + 1);
            let count =
                SenderCount { reports: 3, packets: sent, missing, tail_missing, ..SenderCount::default() };
            report.rtcp.sent_by_party = Some(count);
        }
        verdicts.insert(report.verdict.map(Verdict::as_str));
        let party = [Party::Called, Party::Caller, Party::Sender][random.below(3) as usize];
        found.extend(problems(&report, party).into_iter().map(|problem| format!("{text}: {problem}")));
    }
    assert!(verdicts.len() >= 8, "too few verdicts were met: {verdicts:?}");
    assert!(
        found.is_empty(),
        "{} problems, the first of them: {:#?}",
        found.len(),
        &found[..found.len().min(12)]
    );
}

#[test]
fn no_sentence_on_a_named_scenario_contradicts_a_figure_beside_it() {
    let mut found = Vec::new();
    for entry in &CATALOGUE {
        let report = played(entry.name);
        found.extend(problems(&report, Party::Caller).into_iter().map(|it| format!("{}: {it}", entry.name)));
    }
    assert!(
        found.is_empty(),
        "{} problems, the first of them: {:#?}",
        found.len(),
        &found[..found.len().min(12)]
    );
}
