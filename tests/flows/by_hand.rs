//! A call between two devices that a test controls directly: SDP and media of any kind.

use sidetone_sip::message::{Method, Request, Response};
use tokio::net::UdpSocket;

use crate::common::device::Device;
use crate::common::site::{DOMAIN, PASSWORD, Site, within};
use crate::common::wire::{Ask, Wire};

/// An answered call of 1001 to 1002.
pub struct HandCall {
    pub caller: Wire,
    pub callee: Device,
    /// The media sockets of the caller and the callee.
    pub media: [UdpSocket; 2],
    /// The offer that the callee received.
    pub offered: String,
    /// The answer that the caller received.
    pub answer: String,
    invite: Ask,
    /// The INVITE that the callee received.
    called: Option<Request>,
    accepted: Option<Response>,
    serial: u32,
}

impl HandCall {
    /// Two registered devices; `PORT` in their media lines is the port of their socket. The caller's offer is answered
    /// by the callee with 200.
    pub async fn up(site: &Site, offer: &str, answer: &str) -> HandCall {
        HandCall::ringing(site, offer).await.answered(answer).await
    }

    /// The same with an Allow header of both devices.
    pub async fn up_allowing(site: &Site, allow: &str, offer: &str, answer: &str) -> HandCall {
        let mut call = HandCall::invited(site, offer, &[format!("Allow: {allow}")]).await;
        call.callee.allow = allow.to_owned();
        call.answered(answer).await
    }

    /// The same with more headers in the INVITE, and in the callee's responses.
    pub async fn up_with(
        site: &Site,
        (of_invite, of_callee): (&[String], Vec<(&'static str, String)>),
        media: &str,
    ) -> HandCall {
        let mut call = HandCall::invited(site, media, of_invite).await;
        call.callee.headers = of_callee;
        call.answered(media).await
    }

    /// The 200 that the caller received.
    pub fn accepted(&self) -> &Response {
        self.accepted.as_ref().unwrap()
    }

    /// The INVITE that the callee received.
    pub fn called(&self) -> &Request {
        self.called.as_ref().unwrap()
    }

    async fn answered(self, answer: &str) -> HandCall {
        let mut call = self;
        let invite = call.callee.request(&Method::Invite).await;
        call.offered = text(invite.body());
        let answer = call.sdp(1, answer);
        call.callee.reply(&invite, 200, &answer).await;
        let ours = call.invite.clone();
        let accepted = call.final_response(&ours).await;
        assert_eq!(accepted.status().as_u16(), 200);
        call.answer = text(accepted.body());
        call.accepted = Some(accepted);
        let ack = call.in_dialog("ACK", Some(call.invite.cseq));
        call.caller.send(&ack).await;
        call.callee.request(&Method::Ack).await;
        call.called = Some(invite);
        call
    }

    /// The same call before the callee has received its INVITE.
    pub async fn ringing(site: &Site, offer: &str) -> HandCall {
        HandCall::invited(site, offer, &[]).await
    }

    async fn invited(site: &Site, offer: &str, headers: &[String]) -> HandCall {
        let mut callee = Device::udp(site.sip, "").await;
        callee.contact = format!("<sip:1002@{}>", callee.local);
        callee.register("1002").await;
        let mut caller = Wire::open(site.sip).await;
        let media =
            [UdpSocket::bind("127.0.0.1:0").await.unwrap(), UdpSocket::bind("127.0.0.1:0").await.unwrap()];
        let sdp = description(&media[0], offer);
        let ask = caller.ask("INVITE", "1001", &format!("sip:1002@{DOMAIN}")).body("application/sdp", &sdp);
        let ask = headers.iter().fold(ask, |ask, line| ask.header(line.as_str()));
        let invite = caller.authorize(&ask, "1001", PASSWORD).await;
        caller.send(&invite).await;
        let (offered, answer) = (String::new(), String::new());
        HandCall { caller, callee, media, offered, answer, invite, called: None, accepted: None, serial: 100 }
    }

    /// The final response to a request that the caller sent.
    pub async fn final_response(&self, ask: &Ask) -> Response {
        let is_final = |response: &Response| {
            response.status().is_final()
                && response.via_top().is_ok_and(|via| via.branch() == Some(ask.branch.as_str()))
        };
        self.caller.response("a final response", is_final).await
    }

    /// The final response to the INVITE that the caller sent.
    pub async fn outcome(&self) -> Response {
        self.final_response(&self.invite).await
    }

    /// A request of the caller inside the dialog.
    pub fn in_dialog(&mut self, method: &str, cseq: Option<u32>) -> Ask {
        self.serial += 1;
        let accepted = self.accepted.as_ref().unwrap();
        let contact = accepted.header("Contact").unwrap();
        Ask {
            method: method.into(),
            uri: contact.trim_start_matches('<').split('>').next().unwrap().to_owned(),
            to: accepted.header("To").unwrap().into(),
            branch: format!("{}{method}{}", self.invite.branch, self.serial),
            cseq: cseq.unwrap_or(self.serial),
            headers: vec![format!("Contact: <sip:1001@{}>", self.caller.local)],
            body: String::new(),
            ..self.invite.clone()
        }
    }

    /// The callee sends a request inside the dialog; a body is SDP.
    pub async fn callee_sends(&mut self, method: &str, cseq: u32, body: &str) {
        let called = self.called.as_ref().unwrap();
        let header = |name| called.header(name).unwrap().to_owned();
        let contact = header("Contact");
        let target = contact.split(['<', '>']).nth(1).unwrap();
        let kind = if body.is_empty() { "" } else { "Content-Type: application/sdp\r\n" };
        let text = format!(
            "{method} {target} SIP/2.0\r\nVia: SIP/2.0/UDP {};rport;branch=z9hG4bKcallee{method}{cseq}\r\nMax-Forwards: 70\r\n\
             From: {};tag=device\r\nTo: {}\r\nCall-ID: {}\r\nCSeq: {cseq} {method}\r\nContact: {}\r\n{kind}\
             Content-Length: {}\r\n\r\n{body}",
            self.callee.local,
            header("To"),
            header("From"),
            header("Call-ID"),
            self.callee.contact,
            body.len(),
        );
        self.callee.send(&text).await;
    }

    /// The caller answers a request that it received, given as text.
    pub async fn caller_replies(&self, request: &str, status: u16, body: &str) {
        let copied = ["Via:", "From:", "To:", "Call-ID:", "CSeq:"];
        let lines = request.lines().filter(|line| copied.iter().any(|name| line.starts_with(name)));
        let copied: String = lines.map(|line| format!("{line}\r\n")).collect();
        let kind = if body.is_empty() { "" } else { "Content-Type: application/sdp\r\n" };
        let text = format!(
            "SIP/2.0 {status} By Hand\r\n{copied}Contact: <sip:1001@{}>\r\n{kind}Content-Length: {}\r\n\r\n{body}",
            self.caller.local,
            body.len(),
        );
        self.caller.send_bytes(text.as_bytes()).await;
    }

    /// The caller hangs up.
    pub async fn ends(&mut self) {
        let bye = self.in_dialog("BYE", None);
        self.caller.send(&bye).await;
        let request = self.callee.request(&Method::Bye).await;
        self.callee.reply(&request, 200, "").await;
        assert_eq!(self.final_response(&bye).await.status().as_u16(), 200);
    }

    /// The description of a party, 0 the caller and 1 the callee.
    pub fn sdp(&self, party: usize, media: &str) -> String {
        description(&self.media[party], media)
    }

    /// Sends `datagram` from one party to the port of the media line that it was given, until the other party receives
    /// it. Returns the first datagram that the other party received.
    pub async fn passes(&self, from: usize, port: u16, datagram: &[u8]) -> Vec<u8> {
        let mut buffer = [0; 2_048];
        within("a datagram", async {
            loop {
                self.media[from].send_to(datagram, ("127.0.0.1", port)).await.unwrap();
                let next = self.media[1 - from].recv(&mut buffer);
                if let Ok(Ok(length)) = tokio::time::timeout(AGAIN_AFTER, next).await {
                    return buffer[..length].to_vec();
                }
            }
        })
        .await
    }
}

/// An RTP packet of the stream 0x5eed.
pub fn rtp(payload_type: u8, sequence: u16, timestamp: u32, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x80, payload_type];
    packet.extend(sequence.to_be_bytes());
    packet.extend(timestamp.to_be_bytes());
    packet.extend(0x5eed_u32.to_be_bytes());
    packet.extend(payload);
    packet
}

/// The port of the first enabled `m=` line of that kind.
pub fn port_of(sdp: &str, kind: &str) -> u16 {
    let lines = sdp.lines().filter_map(|line| line.strip_prefix(&format!("m={kind} ")));
    let mut ports = lines.filter_map(|line| line.split(' ').next()?.parse().ok());
    ports.find(|port| *port != 0).unwrap_or_else(|| panic!("no {kind}: {sdp}"))
}

pub fn text(body: &[u8]) -> String {
    String::from_utf8(body.to_vec()).unwrap()
}

fn description(socket: &UdpSocket, media: &str) -> String {
    let port = socket.local_addr().unwrap().port().to_string();
    let media = media.replace("PORT", &port).replace('\n', "\r\n");
    format!("v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n{media}\r\n")
}

/// The time after which a datagram is sent again.
const AGAIN_AFTER: std::time::Duration = std::time::Duration::from_millis(200);
