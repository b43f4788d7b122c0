//! The video of one leg: a separate port beside that of the audio, for parties that may both have video.

use std::net::{IpAddr, SocketAddr};

use sidetone_call::media_plan;
use sidetone_media::session::VideoCounters;
use sidetone_media::srtp::SrtpKeys;
use sidetone_media::webrtc::Protection;
use sidetone_model::media_quality::VideoMedia;
use sidetone_sip::sdp::Video;

use crate::io::{MediaCommand, VideoPort};
use crate::port_id::PortId;

/// State of a leg's video.
#[derive(Debug)]
pub(super) struct LegVideo {
    port: VideoPort,
    /// False once the port is released.
    open: bool,
    /// The current keys of the port.
    keys: Option<SrtpKeys>,
    /// The port that its packets are relayed to.
    peer: Option<PortId>,
    /// The final report of its port; the counts are `None` when it carried nothing.
    report: Option<Option<VideoMedia>>,
}

impl LegVideo {
    pub(super) fn new(port: VideoPort) -> LegVideo {
        LegVideo { port, open: true, keys: None, peer: None, report: None }
    }

    pub(super) fn port(&self) -> PortId {
        self.port.id
    }

    /// Returns the address that our SDP gives.
    pub(super) fn local(&self) -> SocketAddr {
        self.port.advertised
    }

    /// Releases the port; returns the command for it, only once.
    pub(super) fn close(&mut self) -> Option<MediaCommand> {
        std::mem::take(&mut self.open).then_some(MediaCommand::Close)
    }

    /// Returns the commands that pass the negotiated video to the media engine.
    pub(super) fn describe(&mut self, video: &Video, signalling: Option<IpAddr>) -> Vec<MediaCommand> {
        if !self.open {
            return Vec::new();
        }
        let mut commands = Vec::new();
        let keys = media_plan::srtp_keys(&video.terms);
        if keys != self.keys {
            self.keys.clone_from(&keys);
            commands.push(MediaCommand::Secure(keys.map(|keys| Box::new(Protection::Sdes(keys)))));
        }
        commands.push(MediaCommand::Describe(Box::new(media_plan::video_description(video, signalling))));
        commands
    }

    /// Returns the command that relays its packets to `peer` from now on, or stops the relay; `None` without a change.
    pub(super) fn relay_to(&mut self, peer: Option<PortId>) -> Option<MediaCommand> {
        if !self.open || self.peer == peer {
            return None;
        }
        self.peer = peer;
        Some(match peer {
            // The formats have the same numbers on both legs.
            Some(peer) => MediaCommand::Bridge { peer, payload_map: None },
            None => MediaCommand::Unbridge,
        })
    }

    /// Stores the final report of its port.
    pub(super) fn reported(&mut self, counted: Option<VideoCounters>) {
        let has_any = |video: &VideoCounters| video.received > 0 || video.sent > 0;
        self.report = Some(counted.filter(has_any).map(|video| VideoMedia {
            received: video.received,
            received_bytes: video.received_bytes,
            sent: video.sent,
            missing: video.missing,
        }));
    }

    /// Whether the final report of its port has arrived.
    pub(super) fn has_reported(&self) -> bool {
        self.report.is_some()
    }

    /// Returns the counts of its port.
    pub(super) fn media(&self) -> Option<VideoMedia> {
        self.report.flatten()
    }
}
