//! `analyze -i`: the calls of captures on the terminal, the worst first, each with a page of its own.

use std::collections::HashMap;
use std::process::ExitCode;

use serde_json::{Value, json};
use sidetone_call::quality::{self, WallClock};
use sidetone_capture::{CallReport, Group, Groups, StreamReport};
use sidetone_model::ids::CallId;
use sidetone_model::media_quality::{LegQuality, LegSide, QualityState};
use sidetone_model::quality::{Hundredths, MediaVerdict};
use sidetone_model::time::Timestamp;
use sidetone_terminal::{
    Badness as RowBadness, Browse, BrowseOutput, CallFacts, LadderMessage, Row, Tone, clean,
};

use crate::cli::signals::Signals;
use crate::cli::terminal::{FullScreen, Keys, Pressed};
use crate::cli::{EXIT_FAILED, tell};

use super::args::AnalyzeArgs;
use super::choice::{Badness, Choice};

/// The calls to browse.
pub(super) struct Browsed {
    choice: Choice,
    title: String,
    /// By the ids of their rows.
    groups: HashMap<String, Group>,
    rows: Vec<Row>,
    /// Calls beyond the limit.
    left_out: usize,
}

impl Browsed {
    pub(super) fn new(args: &AnalyzeArgs) -> Self {
        let names: Vec<String> = args.files.iter().map(|file| file.display().to_string()).collect();
        Browsed {
            choice: args.choice(),
            title: format!("sidetone analyze  {}", names.join("  ")),
            groups: HashMap::new(),
            rows: Vec::new(),
            left_out: 0,
        }
    }

    /// Adds the calls of the capture with this index among the arguments.
    pub(super) fn add(&mut self, file: usize, groups: Groups) {
        let choice = self.choice.clone();
        for (place, group) in groups.enumerate().filter(|(_, group)| choice.takes(group)) {
            if self.rows.len() >= CALLS_MAX {
                self.left_out += 1;
                continue;
            }
            let id = format!("{file}:{place}");
            self.rows.push(row(id.clone(), &group));
            self.groups.insert(id, group);
        }
    }

    /// Shows the calls until the user quits.
    pub(super) fn show(self) -> ExitCode {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let done = runtime.and_then(|runtime| {
            let done = runtime.block_on(self.browse());
            // A read of keys may be in progress.
            runtime.shutdown_background();
            done
        });
        match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                tell!("sidetone: analyze: the terminal fails ({error}); without -i none is needed");
                ExitCode::from(EXIT_FAILED)
            }
        }
    }

    async fn browse(self) -> std::io::Result<()> {
        let Browsed { title, groups, rows, left_out, .. } = self;
        let note = match left_out {
            0 => (Tone::Dim, format!("{} calls or streams without signalling; the worst first", rows.len())),
            more => {
                (Tone::Warn, format!("{more} more are not shown: choose with --from, --verdict or --call"))
            }
        };
        let mut browse = Browse::new(&title, note, rows);
        let (mut signals, mut keys) = (Signals::listen()?, Keys::default());
        let mut screen = FullScreen::open()?;
        loop {
            screen.show(&browse.screen())?;
            let pressed = tokio::select! {
                pressed = keys.next() => pressed?,
                () = signals.any() => return Ok(()),
            };
            let Pressed::Key(key) = pressed else { continue };
            match browse.handle_key(key) {
                Some(BrowseOutput::Quit) => return Ok(()),
                Some(BrowseOutput::Open(id)) => {
                    if let Some(group) = groups.get(&id) {
                        browse.show(&facts(group));
                    }
                }
                None => {}
            }
        }
    }
}

/// The row of a call, or of streams without signalling.
fn row(id: String, group: &Group) -> Row {
    let verdict = verdict(group);
    let badness = Badness::of(group);
    let (mos, loss, jitter) = figures(group);
    let (from, to, started, time, codec) = match &group.call {
        Some((_, call)) => (
            call.from.clone(),
            call.to.clone(),
            when(call.started_at),
            match call.answered_at {
                Some(_) => format!("{}:{:02}", call.billsec / 60, call.billsec % 60),
                None => call.sip_status.map_or_else(|| "-".to_owned(), |status| status.to_string()),
            },
            call.codec_a.clone(),
        ),
        None => match group.streams.first() {
            Some((_, stream)) => {
                let codec = stream.codec.clone().or_else(|| Some(stream.types_in_words()));
                (stream.src.clone(), stream.dst.clone(), "-".to_owned(), "-".to_owned(), codec)
            }
            None => Default::default(),
        },
    };
    let number = |number: Option<Hundredths>| {
        number.map_or_else(|| "-".to_owned(), |it| format!("{:.2}", it.as_f64()))
    };
    let cells = vec![
        verdict.map_or_else(|| "-".to_owned(), |verdict| verdict.as_str().replace('_', " ")),
        number(mos),
        number(loss),
        number(jitter),
        clean(&from),
        clean(&to),
        started,
        time,
        clean(&codec.unwrap_or_else(|| "-".to_owned())),
    ];
    let tone = match verdict {
        Some(MediaVerdict::Ok) => Tone::Good,
        None | Some(MediaVerdict::Unanswered) => Tone::Dim,
        Some(_) if badness.is_silent() => Tone::Bad,
        Some(_) => Tone::Warn,
    };
    Row { id, badness: RowBadness { class: badness.class, rank: badness.mos }, tone, cells }
}

/// The worse verdict of both directions.
fn verdict(group: &Group) -> Option<MediaVerdict> {
    let named = |verdict: Option<&str>| verdict.and_then(MediaVerdict::from_name);
    match &group.call {
        Some((_, call)) => named(call.media_verdict_worse.or(call.media_verdict)),
        None => group
            .streams
            .iter()
            .fold(None, |worst, (_, stream)| MediaVerdict::worse(worst, named(stream.verdict))),
    }
}

/// The lowest MOS, and the highest loss and jitter of both directions.
fn figures(group: &Group) -> (Option<Hundredths>, Option<Hundredths>, Option<Hundredths>) {
    let each: Vec<[Option<Hundredths>; 3]> = match &group.call {
        Some((_, call)) => call
            .directions()
            .iter()
            .map(|direction| [direction.figures.mos, direction.figures.loss_pct, direction.figures.jitter_ms])
            .collect(),
        None => {
            group.streams.iter().map(|(_, stream)| [stream.mos, stream.loss_pct, stream.jitter_ms]).collect()
        }
    };
    let low = each.iter().filter_map(|[mos, ..]| *mos).min_by_key(|mos| mos.0);
    let high = |place: usize| {
        each.iter().filter_map(|figures| *figures.get(place)?).max_by_key(|figure: &Hundredths| figure.0)
    };
    (low, high(1), high(2))
}

/// `2026-03-02 09:00:00`, UTC.
fn when(at: Timestamp) -> String {
    let text = at.to_string();
    text.get(..19).unwrap_or(&text).replace('T', " ")
}

/// The page of a call, or of streams without signalling.
fn facts(group: &Group) -> CallFacts {
    match &group.call {
        Some((_, call)) => of_call(call),
        None => of_streams(&group.streams),
    }
}

fn of_call(call: &CallReport) -> CallFacts {
    let mut legs = vec![call.quality()];
    legs.extend(call.callee_quality());
    let sentence = legs.first().map(|leg| leg.sentence.clone());
    let mut quality = as_json(call.started_at, legs);
    // For an unanswered call, the sentence is not about its media.
    if let (Some(sentence), Some(object)) = (sentence, quality.as_object_mut()) {
        object.insert("sentence".to_owned(), json!(sentence));
    }
    let ladder = call.ladder.messages.iter().map(|message| LadderMessage {
        at_us: message.at.as_micros(),
        from: message.from.to_string(),
        to: message.to.to_string(),
        label: message.summary.clone(),
        note: message.sdp.clone().unwrap_or_default(),
    });
    let end = call.hangup_cause.as_ref().map_or("", |cause| cause.as_str());
    CallFacts {
        heading: format!(
            "{} -> {}   {} UTC   {} s   {}   {}",
            clean(&call.from),
            clean(&call.to),
            when(call.started_at),
            call.billsec,
            end,
            clean(&call.call_id)
        ),
        quality,
        ladder: ladder.collect(),
        no_ladder: "The capture holds no SIP message of this call.".to_owned(),
        is_unannounced: false,
    }
}

fn of_streams(streams: &[(usize, Box<StreamReport>)]) -> CallFacts {
    let sides = [LegSide::A, LegSide::B];
    let legs = streams.iter().zip(sides).map(|((_, stream), side)| {
        quality::leg(&stream.report, side, Some(stream.src.clone()), WallClock::unix())
    });
    let names: Vec<String> =
        streams.iter().map(|(_, stream)| format!("{} -> {}", stream.src, stream.dst)).collect();
    CallFacts {
        heading: names.join("   "),
        quality: as_json(Timestamp::from_micros(0), legs.collect()),
        ladder: Vec::new(),
        no_ladder: "No call of the capture announced these streams.".to_owned(),
        is_unannounced: true,
    }
}

/// The legs as the API writes them.
fn as_json(at: Timestamp, legs: Vec<LegQuality>) -> Value {
    let quality = quality::call(CallId::from(uuid::Uuid::nil()), QualityState::Final, at, legs);
    serde_json::to_value(quality).unwrap_or_default()
}

/// Calls, and groups of streams, that are kept.
const CALLS_MAX: usize = 20_000;

#[cfg(test)]
mod tests {
    use sidetone_capture::{EngineOptions, Source, compose_calls, read_parts};
    use sidetone_media::simulate::Scenario;
    use sidetone_terminal::{Key, call_page};

    use super::*;

    fn groups(text: &str, calls: u32) -> Vec<Group> {
        let mut file = Vec::new();
        compose_calls(&text.parse::<Scenario>().unwrap(), calls, &mut file).unwrap();
        let options = EngineOptions { ladder: true, ..EngineOptions::default() };
        let read = read_parts(options, "x", Source::Stream(&mut &file[..]), &mut |_, _| {});
        Groups::from(read.parts).collect()
    }

    #[test]
    fn a_capture_is_a_list_of_calls_and_a_page_for_each() {
        let groups = groups("lossy duration=3s", 2);
        let rows: Vec<Row> =
            groups.iter().enumerate().map(|(place, group)| row(place.to_string(), group)).collect();
        assert!(rows.iter().all(|row| row.cells.len() == Browse::COLUMNS.len()), "{rows:#?}");
        let first = groups[0].call.as_ref().unwrap().1.as_ref();
        let cells = rows[0].cells.join(" ");
        for part in ["lossy inbound", &first.from, &first.to, "0:03"] {
            assert!(cells.contains(part), "{part}: {cells}");
        }
        let mut browse = Browse::new("x", (Tone::Dim, String::new()), rows);
        assert!(matches!(browse.handle_key(Key::Enter), Some(BrowseOutput::Open(_))));
        let page: Vec<String> = call_page(&facts(&groups[0])).iter().map(|line| line.text()).collect();
        let page = page.join("\n");
        for part in
            ["From the caller: lossy inbound", "From the called party:", "MOS", "INVITE", "200 OK", "->|"]
        {
            assert!(page.contains(part), "{part}:\n{page}");
        }
        let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&first.quality().sentence), "{page}");
    }

    #[test]
    fn streams_without_signalling_are_rows_too() {
        let mut groups = groups("lossy duration=3s", 1);
        let mut group = groups.remove(0);
        group.call = None;
        let row = row("0".to_owned(), &group);
        assert!(row.cells.join(" ").contains(&group.streams[0].1.src), "{row:?}");
        let page: Vec<String> = call_page(&facts(&group)).iter().map(|line| line.text()).collect();
        let page = page.join("\n");
        assert!(page.contains(&format!("From {}", group.streams[0].1.src)), "{page}");
        assert!(page.contains("No call of the capture announced these streams."), "{page}");
    }
}
