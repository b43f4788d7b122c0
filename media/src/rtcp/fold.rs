//! Combines the RTCP that one leg receives and sends into a view.

use super::compound::{Block, Compound, Element, SenderInfo, Unreadable, middle};
use super::extended::{Extended, XrBlock};
use super::far_end::FarEndFold;
use super::heard::Heard;
use super::reception::{Reception, ReceptionFold};
use super::round_trip::{Answer, RoundTripFold};
use super::sender::SenderFold;
use super::view::RtcpView;
use super::write::ExtendedContent;
use crate::time::{ClockRate, Micros};

/// The RTCP of one leg.
///
/// *Bounds*: a few hundred bytes for any input, allocated with the first RTCP; a leg without RTCP has four
/// SSRCs and a pointer.
#[derive(Clone, Debug, Default)]
pub struct RtcpFold {
    /// The SSRCs sent to the party, the latest first; `source_count` of them.
    sources: [u32; SOURCES_MAX],
    source_count: usize,
    state: Option<Box<State>>,
}

#[derive(Clone, Debug, Default)]
struct State {
    datagrams: u64,
    unreadable: u64,
    encrypted: u64,
    implausible: u64,
    round_trip: RoundTripFold,
    far_end: FarEndFold,
    sender: SenderFold,
    /// State of our own report blocks about the party's stream.
    reception: ReceptionFold,
    /// The source that sent the last goodbye.
    goodbye: Option<u32>,
}

impl RtcpFold {
    /// Sets the SSRC of the RTP sent to the party from now on; reports about other SSRCs are ignored.
    #[inline]
    pub fn sends(&mut self, ssrc: u32) {
        if self.source_count == 0 || self.sources.first() != Some(&ssrc) {
            self.sends_other(ssrc);
        }
    }

    /// Processes a datagram of the party.
    pub fn received(&mut self, now: Micros, datagram: &[u8], heard: &Heard) {
        let sources = self.sources;
        let ours = sources.get(..self.source_count).unwrap_or_default();
        self.state().received(now, datagram, &Context { heard, ours });
    }

    /// Processes a datagram sent to the party, our own or a relayed one.
    pub fn sent(&mut self, now: Micros, datagram: &[u8]) {
        let Ok(compound) = Compound::read(datagram) else { return };
        for element in compound.elements() {
            match element {
                Element::Sender(report) => {
                    self.sends(report.ssrc());
                    self.state().round_trip.sent(now, middle(report.ntp_timestamp()));
                }
                Element::Extended(extended) => {
                    for block in extended.blocks() {
                        if let XrBlock::ReferenceTime(middle) = block {
                            self.state().round_trip.sent(now, middle);
                        }
                    }
                }
                Element::Receiver(_) | Element::Goodbye(_) | Element::Other => {}
            }
        }
    }

    /// The block about the party's stream for our own report at `now`; the next one counts from here.
    pub fn report_block(&mut self, now: Micros, reception: &Reception) -> Block {
        self.state().reception.block(now, reception)
    }

    /// The content of an extended report at `now` that accompanies the latest report block: the answer to the party's
    /// latest reference time, and the losses.
    pub fn report_extended(&mut self, now: Micros) -> ExtendedContent {
        let Some(state) = &mut self.state else { return ExtendedContent::default() };
        let (delay, summary) = (state.reception.take_delay(now), state.reception.summary());
        ExtendedContent { delay, summary, ..ExtendedContent::default() }
    }

    /// The figures so far; `ssrc` is the party's SSRC.
    pub fn view(&self, ssrc: Option<u32>) -> RtcpView {
        self.state.as_ref().map_or_else(RtcpView::default, |state| state.view(ssrc))
    }

    fn state(&mut self) -> &mut State {
        self.state.get_or_insert_default()
    }

    #[cold]
    fn sends_other(&mut self, ssrc: u32) {
        let kept = self.sources.iter().take(self.source_count).position(|source| *source == ssrc);
        let places = match kept {
            Some(place) => place + 1,
            None => {
                self.source_count = (self.source_count + 1).min(SOURCES_MAX);
                self.source_count
            }
        };
        if let Some(places) = self.sources.get_mut(..places) {
            places.rotate_right(1);
            if let Some(first) = places.first_mut() {
                *first = ssrc;
            }
        }
    }
}

/// The context of a datagram: the party's RTP, and the SSRCs sent to it.
struct Context<'a> {
    heard: &'a Heard,
    ours: &'a [u32],
}

impl State {
    fn received(&mut self, now: Micros, datagram: &[u8], context: &Context<'_>) {
        let compound = match Compound::read(datagram) {
            Ok(compound) => compound,
            Err(Unreadable::Encrypted) => {
                self.encrypted = self.encrypted.saturating_add(1);
                return;
            }
            Err(Unreadable::Malformed) => {
                self.unreadable = self.unreadable.saturating_add(1);
                return;
            }
        };
        self.datagrams = self.datagrams.saturating_add(1);
        let heard = context.heard;
        for element in compound.elements() {
            match element {
                Element::Sender(report) => {
                    let info = SenderInfo::of(&report);
                    self.reception.sender_report(now, &info);
                    let believed = self.sender.report(now, &info, heard);
                    // A report is not implausible when no packets of its source arrive, or no more.
                    self.doubt(!believed && heard.ssrc == Some(info.ssrc));
                    report.report_blocks().for_each(|block| self.block(now, &Block::of(&block), context));
                }
                Element::Receiver(report) => {
                    report.report_blocks().for_each(|block| self.block(now, &Block::of(&block), context));
                }
                Element::Goodbye(bye) => {
                    let leaves = |ssrc: &u32| heard.ssrc.is_none_or(|heard| heard == *ssrc);
                    self.goodbye = bye.ssrcs().find(leaves).or(self.goodbye);
                }
                Element::Extended(extended) => self.extended(now, extended, context.ours),
                Element::Other => {}
            }
        }
    }

    fn view(&self, ssrc: Option<u32>) -> RtcpView {
        RtcpView {
            datagrams: self.datagrams,
            unreadable: self.unreadable,
            encrypted: self.encrypted,
            implausible: self.implausible,
            round_trip: self.round_trip.view(),
            far_end: self.far_end.view(),
            sent_by_party: self.sender.view(),
            goodbye: self.goodbye.is_some_and(|left| ssrc.is_none_or(|ssrc| ssrc == left)),
        }
    }

    fn block(&mut self, now: Micros, block: &Block, context: &Context<'_>) {
        if !context.ours.contains(&block.ssrc) {
            return;
        }
        let heard = context.heard;
        let clock = heard.clock.unwrap_or(ClockRate::HZ_8000);
        let believed = self.far_end.report(now, block, heard.sent, clock);
        self.doubt(!believed);
        self.answered(now, block.last_report, block.delay);
    }

    fn extended(&mut self, now: Micros, extended: Extended<'_>, ours: &[u32]) {
        for block in extended.blocks() {
            match block {
                XrBlock::Delays(delays) => {
                    for delay in delays.iter() {
                        self.answered(now, delay.last_report, delay.delay);
                    }
                }
                XrBlock::Summary(ssrc, summary) if ours.contains(&ssrc) => self.far_end.summary(summary),
                XrBlock::Voip(ssrc, metrics) if ours.contains(&ssrc) => self.far_end.voip(metrics),
                XrBlock::ReferenceTime(middle) => {
                    self.reception.reference_time(now, extended.sender, middle);
                }
                XrBlock::Summary(..) | XrBlock::Voip(..) | XrBlock::Other => {}
            }
        }
    }

    fn answered(&mut self, now: Micros, middle: u32, delay: u32) {
        let answer = self.round_trip.answered(now, middle, delay);
        self.doubt(answer == Answer::Implausible);
    }

    fn doubt(&mut self, implausible: bool) {
        self.implausible = self.implausible.saturating_add(implausible.into());
    }
}

/// SSRCs sent to one party that reports may still be about.
const SOURCES_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::{REPORT_BYTES_MAX, ReportWriter};

    const CNAME: [u8; 16] = *b"0123456789abcdef";

    fn report(sender: Option<SenderInfo>, ssrc: u32, block: Option<Block>) -> Vec<u8> {
        let mut buffer = [0; REPORT_BYTES_MAX];
        ReportWriter {
            ssrc,
            sender,
            block: block.as_ref(),
            extended: ExtendedContent::default(),
            cname: &CNAME,
            leaves: false,
        }
        .write(&mut buffer)
        .to_vec()
    }

    fn heard(sent: u64) -> Heard {
        Heard {
            ssrc: Some(1),
            received: 250,
            expected: 250,
            last: Some(Micros(5_000_000)),
            unseen_us: 100_000,
            sent,
            ..Heard::default()
        }
    }

    #[test]
    fn a_leg_hears_what_it_is_told() {
        let mut fold = RtcpFold::default();
        let ours = SenderInfo { ssrc: 2, ntp: 0x0001_1234_5678_0000, packets: 100, ..SenderInfo::default() };
        fold.sent(Micros(2_000_000), &report(Some(ours), 2, None));
        let theirs = SenderInfo { ssrc: 1, packets: 250, octets: 40_000, ..SenderInfo::default() };
        let about = Block {
            ssrc: 2,
            fraction_lost: 25,
            cumulative_lost: 25,
            highest: 1_000,
            jitter_ticks: 80,
            last_report: 0x1234_5678,
            delay: 3 * 65_536 - 6_554,
        };
        fold.received(Micros(5_000_000), &report(Some(theirs), 1, Some(about)), &heard(250));
        let view = fold.view(Some(1));
        assert_eq!(view.round_trip.map(|trip| trip.last_ms.to_string()), Some("100.01".into()));
        let far_end = view.far_end.unwrap();
        assert_eq!((far_end.lost, far_end.loss_pct.map(|pct| pct.0)), (Some(25), Some(1000)));
        assert_eq!(far_end.jitter_ms.map(|ms| ms.0), Some(1000));
        let sent = view.sent_by_party.unwrap();
        assert_eq!((sent.packets, sent.missing, sent.head_missing), (250, 0, Some(0)));
        assert_eq!((view.datagrams, view.unreadable, view.implausible, view.goodbye), (1, 0, 0, false));
    }

    #[test]
    fn what_is_not_about_the_leg_is_not_believed() {
        let mut fold = RtcpFold::default();
        fold.sends(2);
        let stranger = Block { ssrc: 99, cumulative_lost: 50, highest: 100, ..Block::default() };
        fold.received(Micros(5_000_000), &report(None, 1, Some(stranger)), &heard(250));
        let stranger = SenderInfo { ssrc: 99, packets: 9, ..SenderInfo::default() };
        fold.received(Micros(5_000_000), &report(Some(stranger), 99, None), &heard(250));
        let bye = [0x81, 203, 0, 1, 0, 0, 0, 99];
        fold.received(Micros(5_000_000), &bye, &heard(250));
        fold.received(Micros(5_000_000), &[0x80, 201, 0, 9, 0, 0, 0, 1, 0], &heard(250));
        let expected = RtcpView { datagrams: 3, unreadable: 1, ..RtcpView::default() };
        assert_eq!(fold.view(Some(1)), expected);
        fold.received(Micros(6_000_000), &[0x81, 203, 0, 1, 0, 0, 0, 1], &heard(250));
        assert!(fold.view(Some(1)).goodbye);
        assert!(!fold.view(Some(3)).goodbye, "another source goes on");
    }

    #[test]
    fn a_few_sources_are_remembered() {
        let mut fold = RtcpFold::default();
        for ssrc in [1, 2, 1, 3, 4, 5] {
            fold.sends(ssrc);
        }
        assert!([1, 3, 4, 5].into_iter().all(|ssrc| fold.sources.contains(&ssrc)));
        assert!(!fold.sources.contains(&2));
    }

    #[test]
    fn a_report_of_ours_says_what_came() {
        let mut reception = ReceptionFold::default();
        let block = reception.block(
            Micros(0),
            &Reception {
                ssrc: 1,
                newest: 9,
                in_segment: 10,
                segment: 1,
                expected: 10,
                received: 9,
                jitter_us: 1_000,
                clock: ClockRate::HZ_8000,
                duplicates: 0,
                transit_ticks: None,
            },
        );
        let datagram = report(None, 2, Some(block));
        let Some(Element::Receiver(report)) = Compound::read(&datagram).unwrap().elements().next() else {
            panic!("no receiver report")
        };
        assert_eq!(report.report_blocks().map(|block| Block::of(&block)).collect::<Vec<_>>(), [block]);
    }
}
