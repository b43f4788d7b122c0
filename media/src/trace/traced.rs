//! A session that records its inputs.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;

use super::head::TraceHead;
use super::record::Record;
use super::writer::{TraceSink, TraceWriter};
use crate::rtcp::{Block, ExtendedContent};
use crate::rtp::{Datagram, Packet};
use crate::session::udptl;
use crate::session::{Description, Disposition, Input, Output, Reason, Report, Session};
use crate::time::Micros;

/// A [`Session`] that can write a trace.
///
/// Reads go directly to the session; every input passes here, so that none is missing in the trace.
#[derive(Debug)]
pub struct TracedSession {
    session: Session,
    writer: Option<Box<TraceWriter>>,
    /// The SSRC that we send with, if the trace already contains it.
    sends: Option<u32>,
}

impl Deref for TracedSession {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl TracedSession {
    /// The session, without a trace.
    pub fn new(session: Session) -> Self {
        TracedSession { session, writer: None, sends: None }
    }

    /// Starts the trace, which contains the session's inputs from now on. To be useful it must start before
    /// all other inputs.
    ///
    /// This function puts the session's settings into `head`.
    pub fn trace(&mut self, mut head: TraceHead, sink: Arc<dyn TraceSink>) {
        head.config = self.session.config().clone();
        self.writer = Some(Box::new(TraceWriter::new(&head, sink)));
    }

    /// Hands over a block whose records are older than `age_us`.
    pub fn flush_trace(&mut self, now: Micros, age_us: i64) {
        if let Some(writer) = &mut self.writer {
            writer.flush(now, age_us);
        }
    }

    /// See [`Session::handle_input`].
    pub fn handle_input(&mut self, now: Micros, input: Input<'_>) {
        match input {
            Input::Answered => self.answer(now),
            Input::LocalDrop { packets } => {
                self.write(now, &Record::LocalDrop { packets });
                self.session.local_drop(packets);
            }
            Input::Rtcp { source, datagram } => {
                self.receive_rtcp(now, source, datagram);
            }
            Input::Rtp { source, datagram } => {
                self.receive(now, source, datagram);
            }
            Input::Sends { ssrc } => self.sends(now, ssrc),
            Input::SentRtcp { datagram } => self.sent_rtcp(now, datagram),
            Input::Sent { packets, to } => self.sent(now, packets, to),
            Input::Signalled(description) => self.describe(now, *description),
            Input::Unauthenticated { packets } => {
                self.write(now, &Record::Unauthenticated { packets });
                self.session.unauthenticated(packets);
            }
            Input::Unreachable => {
                self.write(now, &Record::Unreachable);
                self.session.unreachable();
            }
        }
    }

    /// See [`Session::poll_output`].
    pub fn poll_output(&mut self) -> Option<Output> {
        self.session.poll_output()
    }

    /// See [`Session::receive`].
    #[inline]
    pub fn receive(&mut self, now: Micros, source: SocketAddr, datagram: &[u8]) -> Disposition {
        let disposition = self.session.receive(now, source, datagram);
        if self.writer.is_some() {
            self.write_datagram(now, source, datagram, disposition);
        }
        disposition
    }

    /// See [`Session::receive_rtcp`].
    pub fn receive_rtcp(&mut self, now: Micros, source: SocketAddr, datagram: &[u8]) -> Disposition {
        let disposition = self.session.receive_rtcp(now, source, datagram);
        if let Some(datagram) = kept_of_rtcp(datagram, disposition) {
            self.write(now, &Record::Rtcp { source, datagram });
        }
        disposition
    }

    /// See [`Session::describe`].
    pub fn describe(&mut self, now: Micros, description: Description) {
        if self.writer.is_some() {
            self.write(now, &Record::Described(Box::new(description.clone())));
        }
        self.session.describe(now, description);
    }

    /// See [`Session::answer`].
    pub fn answer(&mut self, now: Micros) {
        self.write(now, &Record::Answered);
        self.session.answer(now);
    }

    /// See [`Session::sent`].
    pub fn sent(&mut self, now: Micros, packets: u32, to: SocketAddr) {
        self.write(now, &Record::Sent { packets, to });
        self.session.sent(now, packets, to);
    }

    /// See [`Session::sends`].
    #[inline]
    pub fn sends(&mut self, now: Micros, ssrc: u32) {
        // During a fax the session ignores it.
        if self.writer.is_some() && self.sends != Some(ssrc) && !self.session.carries_fax() {
            self.sends = Some(ssrc);
            self.write(now, &Record::Sends { ssrc });
        }
        self.session.sends(ssrc);
    }

    /// See [`Session::sent_rtcp`].
    pub fn sent_rtcp(&mut self, now: Micros, datagram: &[u8]) {
        self.write(now, &Record::SentRtcp { datagram });
        // A sender report also sets the SSRC.
        self.sends = None;
        self.session.sent_rtcp(now, datagram);
    }

    /// See [`Session::report_block`]: its content is sent as RTCP, and it does not affect the report.
    pub fn report_block(&mut self, now: Micros) -> Option<Block> {
        self.session.report_block(now)
    }

    /// See [`Session::report_extended`]: its content is sent as RTCP too.
    pub fn report_extended(&mut self, now: Micros) -> ExtendedContent {
        self.session.report_extended(now)
    }

    /// See [`Session::close`]; the trace ends too.
    pub fn close(&mut self, now: Micros) -> Report {
        self.write(now, &Record::Closed);
        let trace = self.writer.take().map(|writer| writer.end());
        Report { trace, ..self.session.close(now) }
    }

    #[inline]
    fn write(&mut self, at: Micros, record: &Record<'_>) {
        if let Some(writer) = &mut self.writer {
            writer.put(at, record);
        }
    }

    fn write_datagram(&mut self, at: Micros, source: SocketAddr, datagram: &[u8], disposition: Disposition) {
        if disposition == Disposition::Discard(Reason::Closed) {
            return;
        }
        if self.session.carries_fax() {
            let record = match udptl::sequence(datagram) {
                Some(sequence) => Record::Udptl { source, sequence },
                None => Record::Malformed,
            };
            return self.write(at, &record);
        }
        let record = match Datagram::classify(datagram) {
            Datagram::Foreign => Record::Foreign,
            Datagram::Rtcp => match kept_of_rtcp(datagram, disposition) {
                Some(datagram) => Record::Muxed { source, datagram },
                None => return,
            },
            Datagram::Rtp => match Packet::parse(datagram) {
                Ok(packet) => Record::Rtp { source, packet },
                Err(_) => Record::Malformed,
            },
        };
        self.write(at, &record);
    }
}

/// The part of RTCP that a trace keeps: every datagram that a session read. For a rejected one it keeps a
/// short stand-in that is rejected for the same reason, so that an attacker cannot fill the disk.
fn kept_of_rtcp(datagram: &[u8], disposition: Disposition) -> Option<&[u8]> {
    match disposition {
        Disposition::Discard(Reason::Closed) => None,
        Disposition::Discard(Reason::Malformed) => Some(MALFORMED_RTCP),
        Disposition::Discard(_) => Some(REFUSED_RTCP),
        Disposition::Relay | Disposition::RelayRtcp => Some(datagram),
    }
}

/// RTCP according to its first bytes, with a length beyond its end.
const MALFORMED_RTCP: &[u8] = &[0x80, 201, 0xff, 0xff];
/// An empty receiver report.
const REFUSED_RTCP: &[u8] = &[0x80, 201, 0, 1, 0, 0, 0, 0];
