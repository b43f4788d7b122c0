//! Manual SIP over a UDP socket: messages that the built-in phone would not send.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone_sip::auth::{Client, Realm};
use sidetone_sip::message::{Datagram, Digest, Message, Response, parse_datagram};
use tokio::net::UdpSocket;

use super::site::{DOMAIN, within};

/// A socket for messages to one switch.
pub struct Wire {
    socket: UdpSocket,
    pub local: SocketAddr,
    switch: SocketAddr,
    serial: u32,
}

/// A request under construction; its parts may be anything.
#[derive(Clone, Debug)]
pub struct Ask {
    pub method: String,
    pub uri: String,
    pub from: String,
    pub to: String,
    pub call_id: String,
    pub cseq: u32,
    pub branch: String,
    pub max_forwards: u32,
    /// Complete lines.
    pub headers: Vec<String>,
    pub body: String,
}

impl Ask {
    #[must_use]
    pub fn header(mut self, line: impl Into<String>) -> Self {
        self.headers.push(line.into());
        self
    }

    #[must_use]
    pub fn body(mut self, content_type: &str, body: &str) -> Self {
        self.headers.push(format!("Content-Type: {content_type}"));
        body.clone_into(&mut self.body);
        self
    }

    /// The CANCEL of an INVITE.
    pub fn cancel(&self) -> Ask {
        Ask { method: "CANCEL".into(), headers: Vec::new(), body: String::new(), ..self.clone() }
    }
}

impl Wire {
    pub async fn open(switch: SocketAddr) -> Wire {
        Wire::open_from("127.0.0.1", switch).await
    }

    /// The same from another address of this host.
    pub async fn open_from(source: &str, switch: SocketAddr) -> Wire {
        let socket = UdpSocket::bind((source, 0)).await.unwrap();
        Wire { local: socket.local_addr().unwrap(), socket, switch, serial: 0 }
    }

    /// A request of `user` outside of any dialog.
    pub fn ask(&mut self, method: &str, user: &str, uri: &str) -> Ask {
        self.serial += 1;
        let unique = format!("{}-{}", self.local.port(), self.serial);
        Ask {
            method: method.into(),
            uri: uri.into(),
            from: format!("<sip:{user}@{DOMAIN}>;tag=f{unique}"),
            to: format!("<{uri}>"),
            call_id: format!("c{unique}"),
            cseq: 1,
            branch: format!("z9hG4bKb{unique}"),
            max_forwards: 70,
            headers: vec![format!("Contact: <sip:{user}@{}>", self.local)],
            body: String::new(),
        }
    }

    /// An INVITE of `user` with an offer for G.711.
    pub fn invite(&mut self, user: &str, number: &str) -> Ask {
        let sdp = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n\
                   m=audio 40000 RTP/AVP 0\r\n";
        self.ask("INVITE", user, &format!("sip:{number}@{DOMAIN}")).body("application/sdp", sdp)
    }

    /// A REGISTER of `user` for its own address.
    pub fn register(&mut self, user: &str, contact: Option<&str>) -> Ask {
        let mut ask = self.ask("REGISTER", user, &format!("sip:{DOMAIN}"));
        ask.to = format!("<sip:{user}@{DOMAIN}>");
        ask.headers = contact.map(|contact| format!("Contact: {contact}")).into_iter().collect();
        ask
    }

    pub fn write(&self, ask: &Ask) -> String {
        let Ask { method, uri, from, to, call_id, cseq, branch, max_forwards, headers, body } = ask;
        let mut text = format!(
            "{method} {uri} SIP/2.0\r\nVia: SIP/2.0/UDP {};rport;branch={branch}\r\n\
             Max-Forwards: {max_forwards}\r\nFrom: {from}\r\nTo: {to}\r\nCall-ID: {call_id}\r\n\
             CSeq: {cseq} {method}\r\n",
            self.local
        );
        for line in headers {
            text += &format!("{line}\r\n");
        }
        text += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        text
    }

    pub async fn send(&self, ask: &Ask) {
        self.send_bytes(self.write(ask).as_bytes()).await;
    }

    pub async fn send_bytes(&self, bytes: &[u8]) {
        self.socket.send_to(bytes, self.switch).await.unwrap();
    }

    /// The next request of that method, as its text.
    pub async fn request(&self, what: &str, method: &str) -> String {
        within(what, self.request_some_time(method)).await
    }

    /// The same without a time limit.
    pub async fn request_some_time(&self, method: &str) -> String {
        let mut buffer = vec![0; 65_535];
        loop {
            let length = self.socket.recv(&mut buffer).await.unwrap();
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if text.starts_with(&format!("{method} ")) {
                return text;
            }
        }
    }

    /// The next response for which `wanted` is true.
    pub async fn response(&self, what: &str, wanted: impl Fn(&Response) -> bool) -> Response {
        let mut buffer = vec![0; 65_535];
        within(what, async {
            loop {
                let length = self.socket.recv(&mut buffer).await.unwrap();
                let datagram = parse_datagram(Bytes::copy_from_slice(&buffer[..length]));
                if let Ok(Datagram::Message(Message::Response(response))) = datagram
                    && wanted(&response)
                {
                    return response;
                }
            }
        })
        .await
    }

    /// Sends a request, with the retransmissions that UDP requires, and waits for its final response; acknowledges that
    /// of an INVITE.
    pub async fn exchange(&self, ask: &Ask) -> Response {
        let what = format!("an answer to {} {}", ask.method, ask.uri);
        let is_answer = |response: &Response| {
            response.status().is_final()
                && response.call_id() == ask.call_id
                && response.via_top().is_ok_and(|via| via.branch() == Some(ask.branch.as_str()))
                && response.cseq().is_ok_and(|cseq| cseq.method.as_str() == ask.method)
        };
        let response = within(&what, async {
            loop {
                self.send(ask).await;
                let answer = self.response(&what, is_answer);
                if let Ok(response) = tokio::time::timeout(RESEND_AFTER, answer).await {
                    return response;
                }
            }
        })
        .await;
        if ask.method == "INVITE" && response.status().as_u16() >= 300 {
            self.acknowledge(ask, &response).await;
        }
        response
    }

    /// The ACK of a refused INVITE.
    pub async fn acknowledge(&self, ask: &Ask, response: &Response) {
        let to = response.header("To").unwrap().to_owned();
        let ack = Ask { method: "ACK".into(), to, headers: Vec::new(), body: String::new(), ..ask.clone() };
        self.send(&ack).await;
    }

    /// The request with credentials for its challenge.
    pub async fn authorize(&mut self, ask: &Ask, user: &str, password: &str) -> Ask {
        let challenge = self.exchange(ask).await;
        assert_eq!(challenge.status().as_u16(), 401, "{ask:?}");
        let challenges: Vec<Digest> = challenge.www_authenticate().filter_map(Result::ok).collect();
        self.serial += 1;
        let rng = StdRng::seed_from_u64(self.serial.into());
        let mut client = Client::new(user, password, Realm::Exactly(DOMAIN.into()), rng);
        let answer = client.answer(&challenges, false, &ask.method, &ask.uri).unwrap();
        let mut again = ask.clone().header(format!("Authorization: {answer}"));
        again.cseq += 1;
        again.branch = format!("{}a{}", ask.branch, self.serial);
        again
    }

    /// The final response to the request with credentials for its challenge.
    pub async fn authorized(&mut self, ask: &Ask, user: &str, password: &str) -> Response {
        let again = self.authorize(ask, user, password).await;
        self.exchange(&again).await
    }
}

const RESEND_AFTER: Duration = Duration::from_secs(2);
