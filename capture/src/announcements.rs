//! The addresses where a session description wants its media.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use sidetone_sip::sdp::{Media, SessionDescription};

/// The address where a party wants its media, to be entered into the endpoint table.
#[derive(Debug)]
pub(super) struct Announcement {
    pub(super) address: SocketAddr,
    /// The address of its RTCP, if that is neither the same port nor the next one.
    pub(super) rtcp: Option<SocketAddr>,
    /// The address is the caller's.
    pub(super) of_caller: bool,
    /// It is only a candidate of ICE.
    pub(super) is_candidate: bool,
    /// It is the audio that the call is judged by.
    pub(super) audio: bool,
    /// The description that contains it, and the index of its section.
    pub(super) sdp: Arc<SessionDescription>,
    pub(super) place: usize,
    /// The indices of other sections with the same address, as in a bundle (RFC 9143). Their payload types count
    /// where the first section does not define them.
    pub(super) others: Vec<usize>,
}

impl Announcement {
    /// The section that decides, then the others with its address.
    pub(super) fn sections(&self) -> impl Iterator<Item = &Media> {
        let places = std::iter::once(self.place).chain(self.others.iter().copied());
        places.filter_map(|place| self.sdp.media.get(place))
    }

    /// Adds another section with the same address; the audio that the call is judged by comes first.
    fn add(&mut self, place: usize, rtcp: Option<SocketAddr>, audio: bool) {
        if place == self.place || self.others.contains(&place) {
            // Two candidates of one section with the same address.
        } else if audio {
            self.others.insert(0, self.place);
            (self.place, self.rtcp, self.audio) = (place, rtcp, true);
        } else {
            self.others.push(place);
        }
    }
}

/// An address where a section wants its RTP, and the one for its RTCP.
struct NamedAddress {
    rtp: SocketAddr,
    rtcp: Option<SocketAddr>,
    /// Only an `a=candidate` line names it.
    is_candidate: bool,
}

/// The index of the audio section, as far as one description can determine it.
pub(super) fn first_audio(sdp: &SessionDescription) -> Option<usize> {
    sdp.media.iter().position(|media| media.port != 0 && media.is_rtp_audio())
}

/// Whether two sections of a description have one address.
pub(super) fn shares_addresses(sdp: &SessionDescription) -> bool {
    let addresses: Vec<SocketAddr> =
        sdp.media.iter().filter_map(|media| usable_address(sdp, media)).collect();
    addresses
        .iter()
        .enumerate()
        .any(|(place, address)| addresses.iter().take(place).any(|other| other == address))
}

/// The addresses where a description wants its media; `judged` is the index of the audio that decides the
/// call's verdict. Sections that `answer` refuses are left out.
pub(super) fn announcements(
    sdp: &Arc<SessionDescription>,
    of_caller: bool,
    judged: Option<usize>,
    answer: Option<&SessionDescription>,
) -> Vec<Announcement> {
    let is_refused = |place: usize| {
        let answered = answer.and_then(|answer| answer.media.get(place));
        answered.is_some_and(|answered| answered.port == 0)
    };
    let mut out: Vec<Announcement> = Vec::new();
    for (place, media) in sdp.media.iter().enumerate().filter(|(place, _)| !is_refused(*place)) {
        let audio = judged == Some(place);
        for NamedAddress { rtp, rtcp, is_candidate } in named_addresses(sdp, media) {
            let is_next = |at: &SocketAddr| at.ip() == rtp.ip() && at.port().wrapping_sub(1) == rtp.port();
            let rtcp = rtcp.filter(|at| *at != rtp && !is_next(at));
            match out.iter_mut().find(|known| known.address == rtp) {
                Some(known) => {
                    known.is_candidate &= is_candidate;
                    known.add(place, rtcp, audio);
                }
                None => out.push(Announcement {
                    address: rtp,
                    rtcp,
                    of_caller,
                    is_candidate,
                    audio,
                    sdp: Arc::clone(sdp),
                    place,
                    others: Vec::new(),
                }),
            }
        }
    }
    out
}

/// The addresses of a section: that of its `c=` and `m=` lines, and the candidates beside it. None for a section that is
/// refused or has no RTP.
fn named_addresses(sdp: &SessionDescription, media: &Media) -> impl Iterator<Item = NamedAddress> {
    let default = usable_address(sdp, media);
    let rtcp = sdp.rtcp_address(media, false);
    let candidates = if media.port != 0 && has_rtp(media) { media.candidates() } else { &[] };
    let others = candidates.iter().filter(move |candidate| Some(candidate.rtp) != default);
    let others =
        others.map(|candidate| NamedAddress { rtp: candidate.rtp, rtcp: candidate.rtcp, is_candidate: true });
    default.map(|rtp| NamedAddress { rtp, rtcp, is_candidate: false }).into_iter().chain(others)
}

/// The address for the RTP of a section; `None` for one that has no RTP, is refused or holds by its address.
fn usable_address(sdp: &SessionDescription, media: &Media) -> Option<SocketAddr> {
    let address = sdp.rtp_address(media).filter(|address| address.port() != 0 && is_usable(address.ip()));
    address.filter(|_| has_rtp(media))
}

fn has_rtp(media: &Media) -> bool {
    media.protocol.contains("RTP/")
}

fn is_usable(address: IpAddr) -> bool {
    !address.is_unspecified()
}
