//! Feeds a trace to a session.

use thiserror::Error;

use super::bytes::Cursor;
use super::forecast::Forecast;
use super::head::{MAGIC, TraceHead};
use super::record::Record;
use super::writer::{BLOCK_LEN_MAX, FRAME_BYTES};
use crate::session::udptl::stand_in;
use crate::session::{Payload, PayloadKind, Report, Session};
use crate::time::Micros;

/// Why a trace cannot be read further.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TraceDamage {
    /// The bytes do not begin like a trace, or end within its head.
    #[error("not a trace: {what}")]
    NotATrace {
        /// A description of the damage.
        what: &'static str,
    },
    /// A block is damaged; everything before it was read.
    #[error("damaged at byte {offset}: {what}")]
    Damaged {
        /// Offset of the block.
        offset: u64,
        /// A description of the damage.
        what: &'static str,
    },
}

/// Reads a trace from bytes in pieces of any size, and feeds its records to a session.
///
/// *Bounds*: the size of a session; the driver keeps one block, at most [`Replay::NEEDED_MAX`] bytes.
#[derive(Debug)]
pub struct Replay {
    offset: u64,
    leg: Option<Box<LegReplay>>,
    damage: Option<TraceDamage>,
    on_wall_clock: bool,
}

/// The result of replaying a trace.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Identifies the leg.
    pub head: TraceHead,
    /// The report of its session: at the leg's end, or at its last known input.
    pub report: Report,
    /// The first audio codec in the SDP; the report names a codec only after its audio has arrived.
    pub negotiated: Option<String>,
    /// When the leg was answered, in the session's time.
    pub answered: Option<Micros>,
    /// The first input.
    pub begun: Option<Micros>,
    /// The last input, or when the leg was closed.
    pub ended: Option<Micros>,
    /// Whether the trace covers the leg to its end.
    pub closed: bool,
    /// Inputs missing in the trace, by its own count; `None` when it has no end, as after a crash.
    pub missing: Option<u64>,
    /// Datagrams received and packets sent.
    pub packets: u64,
    /// Where reading stopped, if the trace is damaged.
    pub damage: Option<TraceDamage>,
}

/// The replayed session of the leg.
#[derive(Debug)]
struct LegReplay {
    head: TraceHead,
    session: Session,
    /// Added to every time.
    shift_us: i64,
    forecast: Forecast,
    report: Option<Report>,
    negotiated: Option<String>,
    answered: Option<Micros>,
    begun: Option<Micros>,
    last: Option<Micros>,
    missing: Option<u64>,
    packets: u64,
}

impl Default for Replay {
    fn default() -> Self {
        Replay::new()
    }
}

impl Replay {
    /// The largest number of bytes that one call of [`Replay::feed`] needs.
    pub const NEEDED_MAX: usize = BLOCK_LEN_MAX + FRAME_BYTES;

    /// Expects the first byte of a trace.
    pub const fn new() -> Self {
        Replay { offset: 0, leg: None, damage: None, on_wall_clock: false }
    }

    /// A replay whose session uses wall time: microseconds since the Unix epoch, as in a capture.
    ///
    /// The times in its report are then wall time; nothing else in the report depends on the clock.
    pub fn on_wall_clock() -> Self {
        Replay { on_wall_clock: true, ..Replay::new() }
    }

    /// Whether `bytes`, which may be incomplete, are the start of a trace.
    pub fn recognises(bytes: &[u8]) -> bool {
        let known = bytes.len().min(MAGIC.len());
        known > 0 && bytes.get(..known) == MAGIC.get(..known)
    }

    /// Reads the complete parts of `bytes` and returns how many were used; pass the rest again with more
    /// after it.
    ///
    /// # Errors
    /// The first damage, returned again by every later call; everything before it counts.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<usize, TraceDamage> {
        if let Some(damage) = &self.damage {
            return Err(damage.clone());
        }
        let mut used = 0;
        loop {
            let rest = bytes.get(used..).unwrap_or_default();
            match self.step(rest) {
                Ok(0) => return Ok(used),
                Ok(len) => {
                    used += len;
                    self.offset += len as u64;
                }
                Err(what) => {
                    let damage = match self.leg {
                        Some(_) => TraceDamage::Damaged { offset: self.offset, what },
                        None => TraceDamage::NotATrace { what },
                    };
                    self.damage = Some(damage.clone());
                    return Err(damage);
                }
            }
        }
    }

    /// The result, with `left` bytes of the file unread.
    ///
    /// # Errors
    /// When there is no complete head.
    pub fn finish(self, left: usize) -> Result<Replayed, TraceDamage> {
        let offset = self.offset;
        let Some(leg) = self.leg else {
            let what = "it ends within its head";
            return Err(self.damage.unwrap_or(TraceDamage::NotATrace { what }));
        };
        let cut = (left > 0).then_some(TraceDamage::Damaged { offset, what: "it ends within a block" });
        Ok(leg.finish(self.damage.or(cut)))
    }

    /// Reads the head or a block; 0 when it is incomplete.
    fn step(&mut self, bytes: &[u8]) -> Result<usize, &'static str> {
        let Some(leg) = &mut self.leg else {
            let Some((head, len)) = TraceHead::read(bytes)? else { return Ok(0) };
            let shift_us = if self.on_wall_clock { head.zero_us } else { 0 };
            self.leg = Some(Box::new(LegReplay::new(head, shift_us)));
            return Ok(len);
        };
        let Some((frame, rest)) = bytes.split_first_chunk::<FRAME_BYTES>() else { return Ok(0) };
        let [l0, l1, l2, l3, c0, c1, c2, c3] = *frame;
        let len = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        if len == 0 || len > BLOCK_LEN_MAX {
            return Err("its length is impossible");
        }
        let Some(block) = rest.get(..len) else { return Ok(0) };
        if crc32fast::hash(block) != u32::from_le_bytes([c0, c1, c2, c3]) {
            return Err("its checksum is wrong");
        }
        leg.block(block).ok_or("a record in it cannot be read")?;
        Ok(FRAME_BYTES + len)
    }
}

impl LegReplay {
    fn new(head: TraceHead, shift_us: i64) -> Self {
        let session = Session::new(head.config.clone());
        LegReplay {
            head,
            session,
            shift_us,
            forecast: Forecast::default(),
            report: None,
            negotiated: None,
            answered: None,
            begun: None,
            last: None,
            missing: None,
            packets: 0,
        }
    }

    fn block(&mut self, block: &[u8]) -> Option<()> {
        let mut cursor = Cursor::new(block);
        while !cursor.is_empty() {
            let (at, record) = Record::read(&mut cursor, &mut self.forecast)?;
            if let Record::End { missing } = record {
                self.missing = Some(missing);
            } else {
                let at = at + self.shift_us;
                self.begun.get_or_insert(at);
                self.last = Some(at);
                self.tell(at, record);
            }
        }
        Some(())
    }

    fn tell(&mut self, at: Micros, record: Record<'_>) {
        let session = &mut self.session;
        self.packets += u64::from(matches!(
            record,
            Record::Foreign
                | Record::Malformed
                | Record::Muxed { .. }
                | Record::Rtcp { .. }
                | Record::Rtp { .. }
                | Record::Udptl { .. }
        ));
        match record {
            Record::Answered => {
                self.answered.get_or_insert(at);
                session.answer(at);
            }
            Record::Closed => {
                let report = session.close(at);
                self.report.get_or_insert(report);
            }
            Record::Described(description) => {
                let audio = |payload: &&Payload| payload.kind == PayloadKind::Audio;
                let name = description.payloads.iter().find(audio).map(|payload| payload.name.clone());
                self.negotiated = name.or(self.negotiated.take());
                session.describe(at, *description);
            }
            // `block` handles it.
            Record::End { .. } => {}
            // Its source makes no difference.
            Record::Foreign => {
                session.receive(at, NOWHERE, &[]);
            }
            Record::LocalDrop { packets } => session.local_drop(packets),
            Record::Malformed => {
                session.receive(at, NOWHERE, &[0x80]);
            }
            Record::Muxed { source, datagram } => {
                session.receive(at, source, datagram);
            }
            Record::Rtcp { source, datagram } => {
                session.receive_rtcp(at, source, datagram);
            }
            Record::Rtp { source, packet } => {
                session.receive_packet(at, source, &packet);
            }
            Record::Sends { ssrc } => session.sends(ssrc),
            Record::SentRtcp { datagram } => session.sent_rtcp(at, datagram),
            Record::Sent { packets, to } => {
                self.packets += u64::from(packets);
                session.sent(at, packets, to);
            }
            Record::Udptl { source, sequence } => {
                session.receive(at, source, &stand_in(sequence));
            }
            Record::Unauthenticated { packets } => session.unauthenticated(packets),
            Record::Unreachable => session.unreachable(),
        }
        // A replay sends nothing.
        while session.poll_output().is_some() {}
    }

    fn finish(mut self, damage: Option<TraceDamage>) -> Replayed {
        let closed = self.report.is_some();
        let report = match self.report.take() {
            Some(report) => report,
            None => self.session.close(self.last.unwrap_or_default()),
        };
        Replayed {
            head: self.head,
            report,
            negotiated: self.negotiated,
            answered: self.answered,
            begun: self.begun,
            ended: self.last,
            closed,
            missing: self.missing,
            packets: self.packets,
            damage,
        }
    }
}

/// An address from which no datagram arrives.
const NOWHERE: std::net::SocketAddr =
    std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0);
