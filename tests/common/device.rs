//! A manual phone or carrier, over UDP or TCP: it sends only the responses that a test requests.

use std::net::SocketAddr;

use bytes::Bytes;
use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone_sip::auth::{Client, Realm};
use sidetone_sip::message::{
    Datagram, Digest, Message, Method, Request, Response, StatusCode, StreamEvent, StreamParser,
    parse_datagram,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use super::site::{DOMAIN, PASSWORD, within};

/// A device with one socket or one connection.
pub struct Device {
    channel: Channel,
    pub local: SocketAddr,
    switch: SocketAddr,
    /// The Contact of its requests and responses.
    pub contact: String,
    /// The Allow of its responses; empty for none.
    pub allow: String,
    /// More headers of its responses.
    pub headers: Vec<(&'static str, String)>,
    serial: u32,
}

enum Channel {
    Tcp(TcpStream, StreamParser),
    Udp(UdpSocket),
}

impl Device {
    /// A device that sends datagrams from a new port.
    pub async fn udp(switch: SocketAddr, contact: &str) -> Device {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let local = socket.local_addr().unwrap();
        Device {
            channel: Channel::Udp(socket),
            local,
            switch,
            contact: contact.to_owned(),
            allow: String::new(),
            headers: Vec::new(),
            serial: 0,
        }
    }

    /// The same device, connected to another switch.
    pub fn at(self, switch: SocketAddr) -> Device {
        Device { switch, ..self }
    }

    /// A device with a new connection.
    pub async fn tcp(switch: SocketAddr, contact: &str) -> Device {
        let stream = within("a connection", TcpStream::connect(switch)).await.unwrap();
        Device::on(stream, switch, contact)
    }

    /// The device at the far end of a connection.
    pub fn on(stream: TcpStream, switch: SocketAddr, contact: &str) -> Device {
        let local = stream.local_addr().unwrap();
        let channel = Channel::Tcp(stream, StreamParser::new());
        let (contact, allow, headers) = (contact.to_owned(), String::new(), Vec::new());
        Device { channel, local, switch, contact, allow, headers, serial: 0 }
    }

    /// The same device after a change of its port or connection.
    pub async fn moved(self) -> Device {
        let Device { channel, switch, contact, serial, .. } = self;
        let is_tcp = matches!(channel, Channel::Tcp(..));
        drop(channel);
        let moved = match is_tcp {
            true => Device::tcp(switch, &contact).await,
            false => Device::udp(switch, &contact).await,
        };
        Device { serial, ..moved }
    }

    pub async fn send(&mut self, text: &str) {
        match &mut self.channel {
            Channel::Tcp(stream, _) => stream.write_all(text.as_bytes()).await.unwrap(),
            Channel::Udp(socket) => drop(socket.send_to(text.as_bytes(), self.switch).await.unwrap()),
        }
    }

    /// The next message; `None` when the connection is closed.
    pub async fn next(&mut self) -> Option<Message> {
        let mut buffer = vec![0; 65_535];
        loop {
            match &mut self.channel {
                Channel::Tcp(stream, parser) => {
                    if let Some(event) = parser.poll() {
                        match event {
                            StreamEvent::Message(message) => return Some(message),
                            StreamEvent::Ping => continue,
                            StreamEvent::Rejected { .. } => panic!("{event:?}"),
                        }
                    }
                    match stream.read(&mut buffer).await {
                        Ok(0) | Err(_) => return None,
                        Ok(length) => parser.push(&buffer[..length]),
                    }
                }
                Channel::Udp(socket) => {
                    // An error reports an earlier datagram of this socket.
                    let Ok(length) = socket.recv(&mut buffer).await else { continue };
                    let datagram = parse_datagram(Bytes::copy_from_slice(&buffer[..length]));
                    if let Ok(Datagram::Message(message)) = datagram {
                        return Some(message);
                    }
                }
            }
        }
    }

    /// The next request of a method; OPTIONS before it are answered, other requests of the switch are skipped.
    pub async fn request(&mut self, method: &Method) -> Request {
        let what = format!("{method} to {}", self.local);
        within(&what, self.request_some_time(method)).await
    }

    /// The same without a time limit.
    pub async fn request_some_time(&mut self, method: &Method) -> Request {
        loop {
            match self.next().await.expect("an open connection") {
                Message::Request(request) if request.method() == method => return request,
                Message::Request(request) if *request.method() == Method::Options => {
                    self.reply(&request, 200, "").await;
                }
                _ => {}
            }
        }
    }

    /// The next final response to a request of that method.
    pub async fn response(&mut self, method: &Method) -> Response {
        within(&format!("the response to {method}"), async {
            loop {
                if let Message::Response(response) = self.next().await.expect("an open connection")
                    && response.status().is_final()
                    && response.cseq().is_ok_and(|cseq| cseq.method == *method)
                {
                    return response;
                }
            }
        })
        .await
    }

    /// Answers a request; a body is SDP.
    pub async fn reply(&mut self, request: &Request, status: u16, body: &str) {
        let mut response = Response::reply_to(request, StatusCode::new(status).unwrap());
        if status > 100 {
            // Fails in a dialog, where the tag is known.
            let _ = response.set_to_tag("device");
        }
        response.push("Contact", &self.contact).unwrap();
        if !self.allow.is_empty() {
            response.push("Allow", &self.allow).unwrap();
        }
        for (name, value) in &self.headers {
            response.push(*name, value).unwrap();
        }
        if !body.is_empty() {
            response.set_body("application/sdp", Bytes::copy_from_slice(body.as_bytes())).unwrap();
        }
        let text = String::from_utf8(response.to_bytes().to_vec()).unwrap();
        self.send(&text).await;
    }

    /// Answers an INVITE with 200 and waits for its ACK.
    pub async fn answer(&mut self, invite: &Request) {
        self.reply(invite, 200, SDP).await;
        self.request(&Method::Ack).await;
    }

    /// A request of `user` outside of dialogs.
    pub fn ask(&mut self, method: &str, user: &str, uri: &str, more: &str, body: &str) -> String {
        self.serial += 1;
        let Device { local, contact, serial, .. } = self;
        let transport = if matches!(self.channel, Channel::Udp(_)) { "UDP" } else { "TCP" };
        let to = if method == "REGISTER" { format!("sip:{user}@{DOMAIN}") } else { uri.to_owned() };
        let kind = if body.is_empty() { "" } else { "Content-Type: application/sdp\r\n" };
        format!(
            "{method} {uri} SIP/2.0\r\nVia: SIP/2.0/{transport} {local};rport;branch=z9hG4bK{}-{serial}\r\n\
             Max-Forwards: 70\r\nFrom: <sip:{user}@{DOMAIN}>;tag=f{user}\r\nTo: <{to}>\r\nCall-ID: {method}-{user}\r\n\
             CSeq: {serial} {method}\r\nContact: {contact}\r\n{more}{kind}Content-Length: {}\r\n\r\n{body}",
            local.port(),
            body.len(),
        )
    }

    /// Registers `user` with the password of all phones.
    pub async fn register(&mut self, user: &str) {
        let uri = format!("sip:{DOMAIN}");
        let ask = self.ask("REGISTER", user, &uri, "", "");
        self.send(&ask).await;
        let challenge = self.response(&Method::Register).await;
        let more = authorization(&challenge, user, "REGISTER", &uri);
        let ask = self.ask("REGISTER", user, &uri, &more, "");
        self.send(&ask).await;
        let response = self.response(&Method::Register).await;
        assert_eq!(response.status().as_u16(), 200, "{user}");
    }
}

/// The header that answers a challenge.
pub fn authorization(challenge: &Response, user: &str, method: &str, uri: &str) -> String {
    let challenges: Vec<Digest> = challenge.www_authenticate().filter_map(Result::ok).collect();
    let rng = StdRng::seed_from_u64(1);
    let mut client = Client::new(user, PASSWORD, Realm::Exactly(DOMAIN.into()), rng);
    let answer = client.answer(&challenges, false, method, uri).expect("a challenge");
    format!("Authorization: {answer}\r\n")
}

/// An offer or answer for G.711 at a port from which no packet is sent.
pub const SDP: &str =
    "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 40000 RTP/AVP 0\r\n";
