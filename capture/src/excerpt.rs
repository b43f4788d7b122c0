//! Splits a capture into excerpts: finds the frames of each call when the capture is read again.
//!
//! A media frame belongs to a call by its addresses and its time, a SIP frame by its Call-ID. IP fragments
//! and TCP segments are assigned before, by a [`Survey`](crate::Survey) of the whole capture.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;

use sidetone_media::pcap::{Content, LinkType, Record, dissect, file_header, record_header};
use sidetone_media::time::Micros;

use super::analysis::StreamReport;
use super::feed::Feed;
use super::groups::Group;
use super::gzip::Plain;
use super::outcome::Broken;

/// The properties by which the frames of a call, or of streams without signalling, are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The index of the call; `None` for streams without signalling.
    pub call: Option<usize>,
    /// The SIP Call-ID of the call.
    pub call_id: Option<String>,
    /// The first and the last moment of its media.
    pub media: (Micros, Micros),
    /// Its streams.
    pub streams: Vec<ExcerptStream>,
    /// The first and the last moment of the call.
    window: (Micros, Micros),
}

/// The properties of one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExcerptStream {
    /// Its index in the analysis.
    pub place: usize,
    /// Its source.
    pub source: SocketAddr,
    /// Its destination.
    pub destination: SocketAddr,
    /// Its SSRC.
    pub ssrc: u32,
    /// The encoding name of its audio, where it is known.
    pub codec: Option<String>,
    /// `from_caller` or `to_caller`; `None` without signalling.
    pub direction: Option<&'static str>,
}

impl Excerpt {
    /// The criteria for finding the frames of a group.
    pub fn of(group: &Group) -> Self {
        let micros = |at: sidetone_model::time::Timestamp| Micros(at.as_micros());
        let call = group.call.as_ref().map(|(_, call)| call);
        let figures = || group.streams.iter().map(|(_, stream)| &stream.report.figures);
        let first = figures().filter_map(|figures| figures.first).min();
        let last = figures().filter_map(|figures| figures.last).max();
        let started = call.map(|call| micros(call.started_at));
        let ended = call.and_then(|call| call.ended_at).map(micros);
        let last_message =
            call.and_then(|call| call.ladder.messages.last()).map(|message| micros(message.at));
        let begin = [started, first].into_iter().flatten().min().unwrap_or_default();
        let end = [started, ended, last_message, last].into_iter().flatten().max().unwrap_or_default();
        let first = first.unwrap_or(begin);
        Excerpt {
            call: group.call.as_ref().map(|(place, _)| *place),
            call_id: call.map(|call| call.call_id.clone()),
            media: (first, ended.or(last).unwrap_or(first).max(first)),
            streams: group.streams.iter().filter_map(|(place, stream)| of_stream(*place, stream)).collect(),
            window: (begin + -BEFORE_US, end + AFTER_US),
        }
    }
}

fn of_stream(place: usize, stream: &StreamReport) -> Option<ExcerptStream> {
    Some(ExcerptStream {
        place,
        source: stream.src.parse().ok()?,
        destination: stream.dst.parse().ok()?,
        ssrc: u32::from_str_radix(stream.ssrc.strip_prefix("0x")?, 16).ok()?,
        codec: stream.codec.clone(),
        direction: stream.direction,
    })
}

/// Reads every frame of a capture, which may be compressed, as far as it can be read.
///
/// *Errors*: those of `each`. A capture that breaks off is not an error here, because the first reading has
/// reported it.
pub fn each_frame(file: File, mut each: impl FnMut(&Record<'_>) -> io::Result<()>) -> io::Result<()> {
    let (mut input, mut feed, mut buffer) = (Plain::new(file), Feed::default(), vec![0_u8; BUFFER_LEN]);
    let mut done = Ok(());
    // Each turn reads at least one byte, or is the last.
    loop {
        let len = match input.read(&mut buffer) {
            Ok(0) => return done,
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                return match Broken::from(error) {
                    Broken::Io(error) => Err(error),
                    _ => done,
                };
            }
        };
        let taken = feed.take(buffer.get(..len).unwrap_or_default(), |record| {
            if done.is_ok() {
                done = each(record);
            }
        });
        if done.is_err() || taken.is_err() {
            return done;
        }
    }
}

/// Finds the excerpts of addresses and Call-IDs; an excerpt is named by its index.
///
/// *Bounds*: a few hundred bytes for each excerpt and stream.
#[derive(Debug, Default)]
pub(super) struct Owners {
    windows: Vec<(Micros, Micros)>,
    by_call_id: HashMap<String, usize>,
    /// The excerpts that have media between two addresses.
    by_ends: HashMap<(SocketAddr, SocketAddr), Vec<usize>>,
}

impl Owners {
    pub(super) fn new(excerpts: &[Excerpt]) -> Self {
        let mut owners =
            Owners { windows: excerpts.iter().map(|excerpt| excerpt.window).collect(), ..Owners::default() };
        for (place, excerpt) in excerpts.iter().enumerate() {
            if let Some(id) = &excerpt.call_id {
                owners.by_call_id.insert(id.clone(), place);
            }
            for stream in &excerpt.streams {
                // RTCP is on the next port (RFC 3550 §11), or on the same.
                for ahead in [0, 1] {
                    let ends = [stream.source, stream.destination].map(|end| above(end, ahead));
                    let [Some(source), Some(destination)] = ends else { continue };
                    let places = owners.by_ends.entry(sorted(source, destination)).or_default();
                    if !places.contains(&place) {
                        places.push(place);
                    }
                }
            }
        }
        owners
    }

    /// Adds the excerpts that a datagram belongs to.
    pub(super) fn datagram(
        &self,
        at: Micros,
        ends: (SocketAddr, SocketAddr),
        payload: &[u8],
        found: &mut Vec<usize>,
    ) {
        self.media(at, ends, found);
        if payload.first().is_some_and(u8::is_ascii_alphabetic) {
            self.text(at, payload, found);
        }
    }

    /// Adds the excerpts that have media between two addresses at this time.
    pub(super) fn media(&self, at: Micros, (one, other): (SocketAddr, SocketAddr), found: &mut Vec<usize>) {
        if let Some(places) = self.by_ends.get(&sorted(one, other)) {
            found.extend(places.iter().filter(|place| self.is_within(**place, at)));
        }
    }

    /// Adds the excerpts whose Call-ID a text contains.
    pub(super) fn text(&self, at: Micros, text: &[u8], found: &mut Vec<usize>) {
        for id in call_ids(text) {
            if let Ok(id) = std::str::from_utf8(id) {
                self.call_id(at, id, found);
            }
        }
    }

    /// Adds the excerpt with this Call-ID.
    pub(super) fn call_id(&self, at: Micros, id: &str, found: &mut Vec<usize>) {
        let place = self.by_call_id.get(id);
        found.extend(place.filter(|place| self.is_within(**place, at) && !found.contains(place)));
    }

    fn is_within(&self, place: usize, at: Micros) -> bool {
        self.windows.get(place).is_some_and(|(begin, end)| (*begin..=*end).contains(&at))
    }
}

/// Assigns the frames of a capture to excerpts.
#[derive(Debug)]
pub struct Splitter {
    owners: Owners,
    /// Fragments and segments by the number of their frame, each with an excerpt that it belongs to.
    surveyed: VecDeque<(u64, usize)>,
    /// The number of the next frame.
    frame: u64,
    links: Vec<Option<LinkType>>,
    found: Vec<usize>,
}

impl Splitter {
    /// Returns a splitter; `surveyed` has the excerpts of fragments and segments by their frames.
    pub(super) fn new(owners: Owners, surveyed: VecDeque<(u64, usize)>) -> Self {
        let links = vec![None; owners.windows.len()];
        Splitter { owners, surveyed, frame: 0, links, found: Vec::new() }
    }

    /// Returns the indices of the excerpts that the next frame of the capture belongs to.
    pub fn whose(&mut self, record: &Record<'_>) -> &[usize] {
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        while let Some((_, place)) = self.surveyed.pop_front_if(|(frame, _)| *frame == self.frame) {
            found.push(place);
        }
        self.frame += 1;
        if let Content::Udp(datagram) = dissect(record.link, record.frame) {
            let ends = (datagram.source, datagram.destination);
            self.owners.datagram(record.at, ends, datagram.payload, &mut found);
        }
        self.found = found;
        &self.found
    }

    /// Appends a frame to the file of an excerpt, with the file header before the first frame. Returns false
    /// and appends nothing for a frame with another link type than the first, because this file format cannot
    /// hold both.
    pub fn append(&mut self, place: usize, record: &Record<'_>, out: &mut Vec<u8>) -> bool {
        let Some(link) = self.links.get_mut(place) else { return false };
        let is_first = link.is_none();
        let len = u32::try_from(record.frame.len()).unwrap_or(u32::MAX);
        let header = record_header(record.at, len, record.wire_len.max(len));
        let Some(header) = header.filter(|_| *link.get_or_insert(record.link) == record.link) else {
            return false;
        };
        if is_first {
            out.extend(file_header(record.link));
        }
        out.extend(header);
        out.extend_from_slice(record.frame);
        true
    }
}

/// The Call-IDs in SIP text.
fn call_ids(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = line.split_at_checked(colon)?;
        let name = name.trim_ascii();
        let is_id = name.eq_ignore_ascii_case(b"call-id") || name.eq_ignore_ascii_case(b"i");
        is_id.then(|| value.get(1..).unwrap_or_default().trim_ascii())
    })
}

fn above(end: SocketAddr, ahead: u16) -> Option<SocketAddr> {
    Some(SocketAddr::new(end.ip(), end.port().checked_add(ahead)?))
}

fn sorted(one: SocketAddr, other: SocketAddr) -> (SocketAddr, SocketAddr) {
    if one <= other { (one, other) } else { (other, one) }
}

const BUFFER_LEN: usize = 256 << 10;
/// Frames of a call may come a little before its INVITE, such as an INVITE without credentials.
const BEFORE_US: i64 = 1_000_000;
/// Late packets of a call arrive within this time after its end.
const AFTER_US: i64 = 5_000_000;

#[cfg(test)]
mod tests {
    use sidetone_media::pcap::Records;
    use sidetone_media::simulate::Scenario;

    use super::super::{Analysis, EngineOptions, Groups, Source, Survey, compose_calls, read, read_parts};
    use super::*;

    fn told(analysis: &Analysis) -> Vec<String> {
        let call = |call: &super::super::CallReport| {
            format!("{} {:?} {:?}", call.call_id, call.media_verdict, call.leg.figures)
        };
        analysis.calls.iter().map(call).collect()
    }

    #[test]
    fn a_call_that_was_taken_out_is_judged_as_before() {
        let mut file = Vec::new();
        compose_calls(&"lossy duration=4s hold=1s..2s".parse::<Scenario>().unwrap(), 6, &mut file).unwrap();
        let whole = read("x", &mut &file[..], &mut |_| {}).analysis;
        let options = EngineOptions { ladder: true, ..EngineOptions::default() };
        let parts = read_parts(options, "x", Source::Stream(&mut &file[..]), &mut |_, _| {}).parts;
        let excerpts: Vec<Excerpt> = Groups::from(parts).map(|group| Excerpt::of(&group)).collect();
        let mut survey = Survey::new(&excerpts);
        Records::new(&file).for_each(|record| survey.record(&record.unwrap()));
        let (mut splitter, left_out) = survey.finish();
        assert_eq!(left_out, 0);
        let mut files = vec![Vec::new(); excerpts.len()];
        let mut frames = 0;
        for record in Records::new(&file).map(Result::unwrap) {
            let whose = splitter.whose(&record).to_vec();
            assert_eq!(whose.len(), 1, "every frame is that of one call");
            assert!(splitter.append(whose[0], &record, &mut files[whose[0]]));
            frames += 1;
        }
        assert_eq!(frames, whole.packets);
        for (place, file) in files.iter().enumerate() {
            let alone = read("y", &mut &file[..], &mut |_| {}).analysis;
            assert_eq!(told(&alone), told(&whole)[place..=place]);
        }
    }

    #[test]
    fn the_call_id_is_found_by_either_name() {
        let text = b"INVITE sip:1@x SIP/2.0\r\nVia: SIP/2.0/UDP i: y\r\nI : one@x\r\n\r\nBYE sip:1 SIP/2.0\r\ncall-id:two\r\n";
        assert_eq!(call_ids(text).collect::<Vec<_>>(), [&b"one@x"[..], b"two"]);
    }
}
