//! The media of a browser: a full ICE agent of one candidate, DTLS, SRTP with G.711.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sidetone_media::srtp::{Inbound, Outbound};
use sidetone_media::webrtc::{Certificate, Handshake, HandshakeInput, HandshakeOutput, write_request};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// A browser's audio: its socket, credential and certificate.
pub struct Browser {
    socket: Arc<UdpSocket>,
    certificate: Certificate,
    heard: Arc<AtomicU64>,
    /// Flights of the handshake that were repeated, because no answer came.
    repeats: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    task: Option<JoinHandle<()>>,
    ufrag: &'static str,
    /// The peer, once it is known.
    remote: Option<Arc<Mutex<Remote>>>,
}

/// The transport parameters in an answer or offer of the switch.
#[derive(Clone, Debug)]
pub struct Remote {
    pub ufrag: String,
    pub password: String,
    pub address: SocketAddr,
    pub setup: String,
    fingerprint: [u8; 32],
    /// The browser's own ICE username fragment.
    theirs: &'static str,
}

impl Remote {
    /// Reads a description of the switch.
    pub fn read(sdp: &str) -> Remote {
        let value = |name: &str| {
            let found = sdp.lines().find_map(|line| line.strip_prefix(&format!("a={name}:")));
            found.unwrap_or_else(|| panic!("{name} in {sdp}")).to_owned()
        };
        let candidate = value("candidate");
        let words: Vec<&str> = candidate.split(' ').collect();
        let print = value("fingerprint");
        let print = print.strip_prefix("sha-256 ").unwrap();
        let bytes: Vec<u8> = print.split(':').map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
        assert!(sdp.contains("a=ice-lite\r\n") && sdp.contains("a=rtcp-mux\r\n"), "{sdp}");
        Remote {
            ufrag: value("ice-ufrag"),
            password: value("ice-pwd"),
            address: SocketAddr::new(words[4].parse().unwrap(), words[5].parse().unwrap()),
            setup: value("setup"),
            fingerprint: bytes.try_into().unwrap(),
            theirs: UFRAG,
        }
    }

    /// A connectivity check that nominates, with any password.
    pub fn check(&self, serial: u64, password: &str) -> Vec<u8> {
        let name = format!("{}:{}", self.ufrag, self.theirs);
        let mut transaction = [1; 12];
        transaction[4..].copy_from_slice(&serial.to_be_bytes());
        let priority = 1_853_824_767_u32.to_be_bytes();
        let attributes: [(u16, &[u8]); 4] =
            [(0x0006, name.as_bytes()), (0x0024, &priority), (0x802a, &[3; 8]), (0x0025, &[])];
        write_request(transaction, &attributes, password)
    }
}

impl Browser {
    pub async fn open() -> Browser {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let certificate = Certificate::self_signed().unwrap();
        Browser {
            socket,
            certificate,
            heard: Arc::default(),
            repeats: Arc::default(),
            stop: Arc::default(),
            task: None,
            ufrag: UFRAG,
            remote: None,
        }
    }

    /// Its description, with trickled candidates and a video section, as Chromium writes it.
    pub fn sdp(&self, setup: &str) -> String {
        self.sdp_with(setup, self.certificate.fingerprint())
    }

    /// The same with any fingerprint.
    pub fn sdp_with(&self, setup: &str, fingerprint: [u8; 32]) -> String {
        let print: Vec<String> = fingerprint.iter().map(|byte| format!("{byte:02X}")).collect();
        let transport = format!(
            "c=IN IP4 0.0.0.0\r\na=ice-ufrag:{}\r\na=ice-pwd:{PASSWORD}\r\na=ice-options:trickle\r\n\
             a=fingerprint:sha-256 {}\r\na=setup:{setup}\r\na=rtcp-mux\r\n",
            self.ufrag,
            print.join(":")
        );
        let video = match setup {
            "actpass" => {
                format!("m=video 9 UDP/TLS/RTP/SAVPF 96\r\n{transport}a=mid:1\r\na=rtpmap:96 VP8/90000\r\n")
            }
            _ => String::new(),
        };
        format!(
            "v=0\r\no=- 4611 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n\
             m=audio 9 UDP/TLS/RTP/SAVPF 0 101\r\n{transport}a=mid:0\r\na=rtpmap:0 PCMU/8000\r\n\
             a=rtpmap:101 telephone-event/8000\r\na=sendrecv\r\n\
             a=candidate:1 1 udp 2122260223 2c1f.local 50162 typ host\r\na=end-of-candidates\r\n{video}"
        )
    }

    /// Sends checks, handshakes and talks until it is dropped; as the DTLS client when `is_client`.
    pub fn connect(&mut self, remote: Remote, is_client: bool) {
        let address = remote.address;
        let remote = Arc::new(Mutex::new(remote));
        self.remote = Some(Arc::clone(&remote));
        let media = Media {
            socket: Arc::clone(&self.socket),
            certificate: self.certificate.clone(),
            heard: Arc::clone(&self.heard),
            repeats: Arc::clone(&self.repeats),
            address,
            remote,
            is_client,
            is_checked: false,
            handshake: None,
            keys: None,
            packets: 0,
            sent: 0,
        };
        self.task = Some(tokio::spawn(media.run(Arc::clone(&self.stop))));
    }

    /// Its description with a new username fragment, which restarts ICE.
    pub fn restarted(&mut self) -> String {
        self.ufrag = "N3wB";
        self.sdp("actpass")
    }

    /// Sends checks with the credentials of a restart.
    pub fn use_restarted(&self, remote: Remote) {
        let known = self.remote.as_ref().unwrap();
        *known.lock().unwrap() = Remote { theirs: self.ufrag, ..remote };
    }

    /// Sends from the browser's own socket.
    pub async fn send(&self, to: SocketAddr, datagram: &[u8]) {
        self.socket.send_to(datagram, to).await.unwrap();
    }

    pub fn repeats(&self) -> u64 {
        self.repeats.load(Ordering::Relaxed)
    }

    pub fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

struct Media {
    socket: Arc<UdpSocket>,
    certificate: Certificate,
    heard: Arc<AtomicU64>,
    repeats: Arc<AtomicU64>,
    address: SocketAddr,
    remote: Arc<Mutex<Remote>>,
    is_client: bool,
    is_checked: bool,
    handshake: Option<Handshake>,
    keys: Option<(Inbound, Outbound)>,
    packets: u64,
    /// Datagrams of the handshake.
    sent: u64,
}

impl Media {
    async fn run(mut self, stop: Arc<AtomicBool>) {
        let (mut buffer, mut serial) = (vec![0; 2_048], 0);
        let mut next_check = Instant::now();
        let mut talk = tokio::time::interval(Duration::from_millis(20));
        while !stop.load(Ordering::Relaxed) {
            tokio::select! {
                received = self.socket.recv_from(&mut buffer) => {
                    let Ok((len, source)) = received else { continue };
                    assert_eq!(source, self.address, "the only source");
                    self.receive(&mut buffer[..len]).await;
                }
                _ = talk.tick() => {
                    if Instant::now() >= next_check {
                        serial += 1;
                        let remote = self.remote.lock().unwrap().clone();
                        let check = remote.check(serial, &remote.password);
                        self.send(&check).await;
                        next_check = Instant::now() + Duration::from_millis(if self.is_checked { 500 } else { 50 });
                    }
                    if self.handshake.as_ref().and_then(Handshake::next_timeout).is_some_and(|due| due <= Instant::now()) {
                        let before = self.sent;
                        self.shake(HandshakeInput::Timeout).await;
                        self.repeats.fetch_add(u64::from(self.sent > before), Ordering::Relaxed);
                    }
                    self.talk().await;
                }
            }
        }
    }

    async fn receive(&mut self, datagram: &mut [u8]) {
        match datagram[0] {
            0..=3 => {
                assert_eq!(datagram[..2], [1, 1], "a success");
                if !std::mem::replace(&mut self.is_checked, true) {
                    let fingerprint = self.remote.lock().unwrap().fingerprint;
                    let handshake =
                        Handshake::new(Instant::now(), &self.certificate, fingerprint, self.is_client);
                    self.handshake = Some(handshake);
                    self.take().await;
                }
            }
            20..=63 => self.shake(HandshakeInput::Datagram(datagram)).await,
            _ => {
                let is_rtp = !(192..=223).contains(&datagram[1]);
                let opened = self.keys.as_mut().is_some_and(|(inbound, _)| match is_rtp {
                    true => inbound.unprotect(datagram).is_ok(),
                    false => inbound.unprotect_rtcp(datagram).is_ok(),
                });
                assert!(opened, "nothing but authentic SRTP comes");
                self.heard.fetch_add(u64::from(is_rtp), Ordering::Relaxed);
            }
        }
    }

    async fn shake(&mut self, input: HandshakeInput<'_>) {
        if let Some(handshake) = &mut self.handshake {
            handshake.handle_input(Instant::now(), input);
            self.take().await;
        }
    }

    async fn take(&mut self) {
        while let Some(output) = self.handshake.as_mut().and_then(Handshake::poll_output) {
            match output {
                HandshakeOutput::Datagram(datagram) => {
                    self.sent += 1;
                    self.send(&datagram).await;
                }
                HandshakeOutput::Failed(_) => {}
                HandshakeOutput::Keys(keys) => {
                    self.keys = Some((Inbound::new(&keys.receive), Outbound::new(&keys.send)));
                }
            }
        }
    }

    /// Sends one packet of noise.
    async fn talk(&mut self) {
        let Some((_, outbound)) = &mut self.keys else { return };
        let [.., high, low] = self.packets.to_be_bytes();
        let mut packet = vec![0x80, 0, high, low];
        packet.extend(u32::try_from(self.packets * 160).unwrap().to_be_bytes());
        packet.extend([0xb0, 0, 0, 1]);
        packet.extend((0..160_u64).map(|at| (self.packets * 31 + at * 7) as u8));
        let len = packet.len();
        packet.resize(len + 64, 0);
        let sealed = outbound.protect(&mut packet, len).unwrap();
        self.packets += 1;
        let packet = packet[..sealed].to_vec();
        self.send(&packet).await;
    }

    async fn send(&self, datagram: &[u8]) {
        let _ = self.socket.send_to(datagram, self.address).await;
    }
}

const UFRAG: &str = "Br0w";
const PASSWORD: &str = "yRbX7mPJO0YT7ZvWc4kBvR9c";
