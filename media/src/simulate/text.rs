//! Scenarios as text: a catalogue name and `key=value` settings, on one line or one per line.
//!
//! `lossy`, `clean loss=8 duration=10s`, and a file of lines with `#` comments and quoted values have the
//! same syntax. Times are `250ms`, `20s`, `2m`, `3h` or a plain number of milliseconds; the duration of a
//! call needs its unit.

use std::str::FromStr;

use thiserror::Error;

use super::catalogue::CATALOGUE;
use super::scenario::{
    Codec, Delay, Digits, Holes, Loss, Pace, Scenario, Silence, SilenceMode, Span, Stalls,
};

/// Every key of the text form: key, form of its value, meaning.
pub const KEYS: [(&str, &str, &str); 46] = [
    ("advertised", "MS", "a=ptime of the SDP, when it is not the real one"),
    ("alternate", "AT:N", "lose every other packet from AT on, N in all; repeatable"),
    ("answer", "TIME|never", "when the call is answered; media before is early media"),
    ("burst", "PCT:LEN", "lose PCT percent in bursts of LEN packets on average"),
    ("clump", "N|N..M", "hold packets back and send N at a time"),
    ("codec", "pcmu|pcma|g722|opus", "what the audio is encoded with"),
    ("codec_switch", "AT:CODEC", "another codec from AT on"),
    ("delay", "A..B|normal:MEAN:SD|pareto:MIN:SHAPE", "random delay in ms, as a queue; see order"),
    ("delivery", "MS", "the network delivers only every MS"),
    ("digits", "N[:alone]", "N keypad digits; alone: no audio between them"),
    ("dtx", "TALK/PAUSE[:cn|marker|plain|frozen]", "silence suppression"),
    ("duplicate", "PCT", "deliver packets twice"),
    ("duration", "TIME", "length of the call, such as 30s, 2m or 3h; 24h at most"),
    ("flush", "N", "send N saved-up packets at the start"),
    ("hold", "A..B", "signalled hold, nothing is sent"),
    ("hole", "A..B", "lose everything sent from A to B; repeatable"),
    ("jitter", "A..B|…", "the same as delay"),
    ("lose", "N,N,…", "lose the packets with these numbers"),
    ("loss", "PCT", "lose packets at random"),
    ("loss_every", "N", "lose every N-th packet"),
    ("noise", "US", "uncertainty of every arrival in microseconds (200)"),
    ("order", "queue|any", "any: a random delay may reorder"),
    ("overtaken", "N:MS", "every N-th packet is late by MS"),
    ("pace", "MS|A..B|exp:MEAN|A/B/…|timer:MS|blast", "gaps between packets, when not the packet duration"),
    ("packets", "N", "send no more than N packets"),
    ("payload", "MS", "audio in a packet, where the timestamps are wrong about it"),
    ("ptime", "MS", "real packet duration"),
    ("ptime_switch", "AT:MS", "another packet duration from AT on"),
    ("ramp", "A..B:MS", "delay grows to MS and shrinks again"),
    ("restart", "AT,…", "new sequence numbers and timestamps, same SSRC"),
    ("returned", "yes|no", "the other party's media reaches this one"),
    ("seed", "N", "another run of the same scenario"),
    ("sequence", "N", "first sequence number"),
    ("skew", "PPM", "the talker's clock is slow by this"),
    ("source", "advertised|elsewhere", "whether media comes from where SDP says"),
    ("ssrc", "N", "first SSRC"),
    ("ssrc_change", "AT,…", "a new SSRC with new numbering"),
    ("stall", "A..B", "the network delivers nothing from A to B, then all; repeatable"),
    ("stalls", "EVERY:LEN", "stalls of LEN at random, EVERY on average"),
    ("stamp_reset", "AT,…", "new timestamps only"),
    ("start", "TIME", "first packet"),
    ("step", "AT:MS", "MS more delay from AT on (negative: less); repeatable"),
    ("stop", "TIME", "last packet, though the call lasts"),
    ("stray", "EVERY", "a packet of somebody else's SSRC this often"),
    ("swap", "PCT", "packets that change places with the next one"),
    ("timestamp", "N", "first timestamp"),
];

/// Why a text is not a scenario.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ScenarioError {
    /// A setting without a value.
    #[error("\"{0}\" is no setting; write key=value")]
    NoValue(String),
    /// No scenario of this name.
    #[error("there is no scenario \"{0}\"")]
    UnknownName(String),
    /// No setting of this name.
    #[error("there is no setting \"{0}\"")]
    UnknownKey(String),
    /// A value that the setting does not accept.
    #[error("{key} cannot be \"{value}\"; it is {form}{example}", example = example(form))]
    Value {
        /// The setting.
        key: String,
        /// The given value.
        value: String,
        /// The form that it accepts.
        form: &'static str,
    },
}

impl FromStr for Scenario {
    type Err = ScenarioError;

    fn from_str(text: &str) -> Result<Self, ScenarioError> {
        let mut scenario = Scenario::default();
        let mut first = true;
        for setting in settings(text) {
            match setting.split_once('=') {
                None if first => scenario = named(&setting)?,
                None => return Err(ScenarioError::NoValue(setting)),
                Some((key, value)) => apply(&mut scenario, key, value)?,
            }
            first = false;
        }
        Ok(scenario)
    }
}

/// The scenario called `name`.
fn named(name: &str) -> Result<Scenario, ScenarioError> {
    let entry = CATALOGUE
        .iter()
        .find(|entry| entry.name == name)
        .ok_or_else(|| ScenarioError::UnknownName(name.to_owned()))?;
    let settings: Scenario = entry.settings.parse()?;
    Ok(Scenario {
        name: entry.name.to_owned(),
        about: entry.about.to_owned(),
        expected: Some(entry.expected),
        ..settings
    })
}

/// Splits a text into `name` and `key=value` pieces, without comments, quotes and spaces around `=`.
fn settings(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().replace(['"', '\''], "");
        let mut joined = false;
        for word in line.split_whitespace() {
            match out.last_mut() {
                Some(last) if joined || word.starts_with('=') => last.push_str(word),
                _ => out.push(word.to_owned()),
            }
            joined = word.ends_with('=');
        }
    }
    out
}

/// Applies one setting. A changed scenario has no expected verdict any more, except when only the seed
/// changed.
pub(super) fn apply(scenario: &mut Scenario, key: &str, value: &str) -> Result<(), ScenarioError> {
    let Some((_, form, _)) = KEYS.iter().find(|(name, ..)| *name == key) else {
        return Err(ScenarioError::UnknownKey(key.to_owned()));
    };
    if key != "seed" {
        scenario.expected = None;
    }
    let applied = apply_call(scenario, key, value)
        .or_else(|| apply_talker(scenario, key, value))
        .or_else(|| apply_path(scenario, key, value));
    applied.ok_or_else(|| ScenarioError::Value { key: key.to_owned(), value: value.to_owned(), form })
}

fn apply_call(scenario: &mut Scenario, key: &str, value: &str) -> Option<()> {
    let call = &mut scenario.call;
    match key {
        "advertised" => scenario.advertised_ptime_ms = Some(ptime(value)?),
        "answer" if value == "never" => call.answer_ms = None,
        "answer" => call.answer_ms = Some(time(value)?),
        // A plain 5 would be milliseconds here, but most people mean seconds.
        "duration" => {
            let has_unit = value.ends_with(|c: char| c.is_ascii_alphabetic());
            scenario.duration_ms = time(value).filter(|_| has_unit)?;
        }
        "hold" => call.hold = Some(span(value)?),
        "returned" => call.returned = yes(value)?,
        "seed" => scenario.seed = value.parse().ok()?,
        "source" => {
            call.advertised_source = match value {
                "advertised" => true,
                "elsewhere" => false,
                _ => return None,
            }
        }
        _ => return None,
    }
    Some(())
}

fn apply_talker(scenario: &mut Scenario, key: &str, value: &str) -> Option<()> {
    let talker = &mut scenario.talker;
    match key {
        "clump" => talker.clump = Some(range_of(value, |text| number(text, 1, 1_000))?),
        "codec" => talker.codec = codec(value)?,
        "codec_switch" => {
            let (at, name) = value.split_once(':')?;
            talker.codec_switch = Some((time(at)?, codec(name)?));
        }
        "digits" => {
            let (count, alone) = match value.split_once(':') {
                Some((count, "alone")) => (count, true),
                Some(_) => return None,
                None => (value, false),
            };
            talker.digits = Some(Digits { count: number(count, 0, 100_000)?, alone });
        }
        "dtx" => talker.silence = Some(silence(value)?),
        "flush" => talker.flush = number(value, 0, 1_000)?,
        "pace" => talker.pace = pace(value)?,
        "packets" => talker.packets_max = Some(number(value, 0, u32::MAX)?),
        "payload" => talker.payload_ms = Some(ptime(value)?),
        "ptime" => talker.ptime_ms = ptime(value)?,
        "ptime_switch" => {
            let (at, ms) = value.split_once(':')?;
            talker.ptime_switch = Some((time(at)?, ptime(ms)?));
        }
        "restart" => talker.restarts_ms = times(value)?,
        "sequence" => talker.first_sequence = value.parse().ok()?,
        "skew" => talker.skew_ppm = value.parse().ok().filter(|ppm| (-100_000..=100_000).contains(ppm))?,
        "ssrc" => talker.ssrc = value.parse().ok()?,
        "ssrc_change" => talker.ssrc_changes_ms = times(value)?,
        "stamp_reset" => talker.stamp_resets_ms = times(value)?,
        "start" => talker.start_ms = time(value)?,
        "stop" => talker.stop_ms = Some(time(value)?),
        "stray" => talker.stray_every_ms = Some(time(value)?.max(1)),
        "timestamp" => talker.first_timestamp = value.parse().ok()?,
        _ => return None,
    }
    Some(())
}

fn apply_path(scenario: &mut Scenario, key: &str, value: &str) -> Option<()> {
    let path = &mut scenario.path;
    match key {
        "alternate" => {
            let (at, lost) = value.split_once(':')?;
            let spell = Holes { from_ms: time(at)?, lost: number(lost, 0, 1_000_000)? };
            path.losses.push(Loss::Spell(spell));
        }
        "burst" => {
            let (pct, mean_len) = value.split_once(':')?;
            path.losses
                .push(Loss::Bursts { pct: percent(pct)?, mean_len: decimal(mean_len, 1.0, 10_000.0)? });
        }
        "delay" | "jitter" => path.delay = Some(delay(value)?),
        "delivery" => path.delivery_every_ms = Some(time(value)?),
        "duplicate" => path.duplicate_pct = percent(value)?,
        "hole" => path.losses.push(Loss::Hole(span(value)?)),
        "lose" => {
            let numbers: Option<Vec<u32>> = value.split(',').map(|text| text.parse().ok()).collect();
            path.losses.push(Loss::Numbers(numbers?));
        }
        "loss" => {
            let random = Loss::Random(percent(value)?);
            path.losses.retain(|loss| !matches!(loss, Loss::Random(_)));
            path.losses.push(random);
        }
        "loss_every" => path.losses.push(Loss::Every(number(value, 1, u32::MAX)?)),
        "noise" => path.noise_us = Some(number(value, 0, 1_000_000)?),
        "order" => {
            path.reordering = match value {
                "any" => true,
                "queue" => false,
                _ => return None,
            }
        }
        "overtaken" => {
            let (every, by) = value.split_once(':')?;
            path.overtaken = Some((number(every, 1, u32::MAX)?, time(by)?));
        }
        "ramp" => {
            let (over, peak) = value.split_once(':')?;
            path.ramp = Some((span(over)?, time(peak)?));
        }
        "stall" => path.stalls.push(span(value)?),
        "stalls" => {
            let (every, len) = value.split_once(':')?;
            path.random_stalls = Some(Stalls { every_ms: time(every)?.max(1), len_ms: time(len)? });
        }
        "step" => {
            let (at, by) = value.split_once(':')?;
            let by = by.strip_suffix("ms").unwrap_or(by).parse().ok()?;
            path.steps.push((time(at)?, by));
        }
        "swap" => path.swap_pct = percent(value)?,
        _ => return None,
    }
    Some(())
}

fn codec(text: &str) -> Option<Codec> {
    match text.to_ascii_lowercase().as_str() {
        "g722" => Some(Codec::G722),
        "opus" => Some(Codec::Opus),
        "pcma" => Some(Codec::Pcma),
        "pcmu" => Some(Codec::Pcmu),
        _ => None,
    }
}

fn pace(text: &str) -> Option<Pace> {
    let gap = |text: &str| decimal(text.strip_suffix("ms").unwrap_or(text), 0.0, 60_000.0);
    Some(match text.split_once(':') {
        Some(("exp", mean)) => Pace::Exponential(gap(mean)?),
        Some(("timer", tick)) => Pace::Timer(gap(tick)?),
        Some(_) => return None,
        None if text == "blast" => Pace::Pattern(vec![BLAST_GAP_MS]),
        None if text.contains("..") => {
            let (low, high) = range_of(text, gap)?;
            Pace::Uniform(low, high)
        }
        None => Pace::Pattern(text.split('/').map(gap).collect::<Option<Vec<_>>>()?),
    })
}

fn delay(text: &str) -> Option<Delay> {
    let ms = |text: &str| decimal(text.strip_suffix("ms").unwrap_or(text), 0.0, 60_000.0);
    Some(match text.split_once(':') {
        Some(("normal", rest)) => {
            let (mean, deviation) = rest.split_once(':')?;
            Delay::Normal(ms(mean)?, ms(deviation)?)
        }
        Some(("pareto", rest)) => {
            let (least, shape) = rest.split_once(':')?;
            Delay::Pareto(ms(least)?, decimal(shape, 1.0, 100.0)?)
        }
        Some(_) => return None,
        None => {
            let (low, high) = range_of(text, ms)?;
            Delay::Uniform(low, high)
        }
    })
}

fn silence(text: &str) -> Option<Silence> {
    let (lengths, mode) = text.split_once(':').unwrap_or((text, "marker"));
    let (talk, pause) = lengths.split_once('/')?;
    let mode = match mode {
        "cn" => SilenceMode::ComfortNoise,
        "frozen" => SilenceMode::Frozen,
        "marker" => SilenceMode::Marker,
        "plain" => SilenceMode::Plain,
        _ => return None,
    };
    Some(Silence { talk_ms: time(talk)?, pause_ms: time(pause)?, mode })
}

/// `A..B`, or one value for both ends.
fn range_of<T: Copy + PartialOrd>(text: &str, read: impl Fn(&str) -> Option<T>) -> Option<(T, T)> {
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    let (low, high) = (read(low)?, read(high)?);
    (low <= high).then_some((low, high))
}

fn span(text: &str) -> Option<Span> {
    let (from_ms, to_ms) = range_of(text, time)?;
    Some(Span { from_ms, to_ms })
}

fn times(text: &str) -> Option<Vec<u32>> {
    text.split(',').map(time).collect()
}

fn time(text: &str) -> Option<u32> {
    let (digits, unit) = if let Some(digits) = text.strip_suffix("ms") {
        (digits, 1.0)
    } else if let Some(digits) = text.strip_suffix('s') {
        (digits, 1_000.0)
    } else if let Some(digits) = text.strip_suffix('m') {
        (digits, 60_000.0)
    } else if let Some(digits) = text.strip_suffix('h') {
        (digits, 3_600_000.0)
    } else {
        (text, 1.0)
    };
    let ms = decimal(digits, 0.0, f64::from(DURATION_MS_MAX))? * unit;
    (ms <= f64::from(DURATION_MS_MAX)).then_some(ms.round() as u32)
}

/// An example of a value, when its form does not show one.
fn example(form: &str) -> &'static str {
    if form == "TIME" { ", such as 500ms, 30s, 2m or 3h" } else { "" }
}

fn ptime(text: &str) -> Option<u32> {
    number(text.strip_suffix("ms").unwrap_or(text), 1, 200)
}

fn percent(text: &str) -> Option<f64> {
    decimal(text.strip_suffix('%').unwrap_or(text), 0.0, 100.0)
}

fn yes(text: &str) -> Option<bool> {
    match text {
        "no" => Some(false),
        "yes" => Some(true),
        _ => None,
    }
}

fn number(text: &str, least: u32, most: u32) -> Option<u32> {
    text.parse().ok().filter(|number| (least..=most).contains(number))
}

fn decimal(text: &str, least: f64, most: f64) -> Option<f64> {
    text.parse().ok().filter(|number| (least..=most).contains(number))
}

/// One day.
const DURATION_MS_MAX: u32 = 86_400_000;
/// A minute of 20 ms packets within 0.1 s.
const BLAST_GAP_MS: f64 = 0.033;

#[cfg(test)]
mod tests {
    use super::super::catalogue::CATALOGUE;
    use super::*;

    #[test]
    fn every_name_is_a_scenario_and_appears_once() {
        for (n, entry) in CATALOGUE.iter().enumerate() {
            let scenario: Scenario =
                entry.name.parse().unwrap_or_else(|error| panic!("{}: {error}", entry.name));
            assert_eq!((scenario.name.as_str(), scenario.expected), (entry.name, Some(entry.expected)));
            assert!(CATALOGUE[..n].iter().all(|earlier| earlier.name != entry.name), "{} twice", entry.name);
        }
        assert!(KEYS.windows(2).all(|pair| pair[0].0 < pair[1].0), "keys in order");
    }

    #[test]
    fn one_line_and_a_file_say_the_same() {
        let line: Scenario = "lossy loss=2 duration=90s seed=5 jitter=0..40".parse().unwrap();
        let file: Scenario =
            "# a file\nlossy\nloss = 2\nduration = \"1.5m\"  # the call\nseed=5\njitter= '0..40'\n"
                .parse()
                .unwrap();
        assert_eq!(line, file);
        assert_eq!(line.path.losses, [Loss::Random(2.0)]);
        assert_eq!((line.duration_ms, line.seed, line.expected), (90_000, 5, None));
        assert_eq!("lossy seed=9".parse::<Scenario>().unwrap().expected, CATALOGUE[1].expected.into());
    }

    #[test]
    fn mistakes_are_named() {
        let cases = [
            ("lousy", "there is no scenario \"lousy\""),
            ("clean fast", "\"fast\" is no setting; write key=value"),
            ("clean losss=5", "there is no setting \"losss\""),
            ("loss=101", "loss cannot be \"101\"; it is PCT"),
            ("duration=2d", "duration cannot be \"2d\"; it is TIME, such as 500ms, 30s, 2m or 3h"),
            ("duration=5", "duration cannot be \"5\"; it is TIME, such as 500ms, 30s, 2m or 3h"),
            ("duration=25h", "duration cannot be \"25h\"; it is TIME, such as 500ms, 30s, 2m or 3h"),
            ("codec=mp3", "codec cannot be \"mp3\"; it is pcmu|pcma|g722|opus"),
            ("jitter=40..0", "jitter cannot be \"40..0\"; it is A..B|…"),
            ("ptime=0", "ptime cannot be \"0\"; it is MS"),
        ];
        for (text, expected) in cases {
            let error = text.parse::<Scenario>().map_err(|error| error.to_string());
            assert_eq!(error.err().as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn each_key_of_the_table_is_understood() {
        let values =
            ["1", "20", "1s", "yes", "any", "advertised", "pcmu", "1..2", "1s:1", "1s:pcma", "1s/1s", "5:4"];
        let ramp = "1s..2s:5";
        for (key, ..) in KEYS {
            let known =
                values.iter().chain([&ramp]).any(|value| apply(&mut Scenario::default(), key, value).is_ok());
            assert!(known, "{key}");
        }
    }
}
