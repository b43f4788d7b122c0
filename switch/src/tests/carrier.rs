//! A simulated carrier that answers by a plan.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use sidetone_sip::message::{Method, Name, Request, Response, StatusCode};

/// A carrier with a plan per request; the last plan applies to all further requests.
#[derive(Default)]
pub(super) struct Carrier {
    pub(super) invites: VecDeque<Plan>,
    pub(super) byes: VecDeque<Plan>,
    pub(super) registers: VecDeque<Plan>,
    pub(super) notifies: VecDeque<Plan>,
    pub(super) updates: VecDeque<Plan>,
    /// The status that answers OPTIONS; `None` sends no response.
    pub(super) options: Option<u16>,
    /// The Call-IDs of lost phones behind the carrier: their requests get no response, or 481 after a restart.
    pub(super) gone: BTreeMap<String, Option<u16>>,
    /// The received requests, without retransmissions.
    pub(super) requests: Vec<Request>,
    /// Whether a retransmission gets the response again: the responses, by method and branch.
    pub(super) repeats: Option<BTreeMap<(String, String), Vec<Response>>>,
}

#[derive(Clone)]
pub(super) enum Plan {
    /// Answer 200, with SDP or the granted Expires.
    Accept,
    /// Answer with a reliable 183 with SDP only.
    Reliable,
    /// Answer 180 only.
    Ring,
    /// Answer with a final response and these headers.
    Refuse(u16, Vec<(&'static str, String)>),
    /// Send no response.
    Silence,
}

impl Carrier {
    /// Returns the requests of a method.
    pub(super) fn of(&self, method: &Method) -> Vec<&Request> {
        self.requests.iter().filter(|request| request.method() == method).collect()
    }

    /// Returns the responses to a request; a retransmission gets none, or the same again.
    pub(super) fn hear(&mut self, request: Request, at: SocketAddr) -> Vec<Response> {
        let name = (request.method().as_str().to_owned(), branch(&request).unwrap_or_default());
        if let Some(responses) = self.repeats.as_ref().and_then(|responses| responses.get(&name)) {
            return responses.clone();
        }
        let responses = self.decide(request, at);
        if let Some(repeats) = &mut self.repeats {
            repeats.insert(name, responses.clone());
        }
        responses
    }

    fn decide(&mut self, request: Request, at: SocketAddr) -> Vec<Response> {
        let seen = self
            .requests
            .iter()
            .rev()
            .take(500)
            .any(|before| before.method() == request.method() && branch(before) == branch(&request));
        if seen {
            return Vec::new();
        }
        self.requests.push(request.clone());
        let reply = |status: u16| {
            let mut response = Response::reply_to(&request, StatusCode::new(status).unwrap());
            // Fails if the response has a tag already, which then stays.
            let _ = response.set_to_tag("carrier");
            response
        };
        if let Some(status) = self.gone.get(request.call_id()) {
            return status.map(reply).into_iter().collect();
        }
        let plans = match request.method() {
            Method::Options => return self.options.map(reply).into_iter().collect(),
            Method::Invite => &mut self.invites,
            Method::Bye => &mut self.byes,
            Method::Register => &mut self.registers,
            Method::Notify => &mut self.notifies,
            Method::Update => &mut self.updates,
            Method::Cancel => {
                let invite = self.requests.iter().rev().find(|before| *before.method() == Method::Invite);
                let mut cancelled = Response::reply_to(invite.unwrap(), StatusCode::new(487).unwrap());
                cancelled.set_to_tag("carrier").unwrap();
                return vec![reply(200), cancelled];
            }
            Method::Prack => return vec![reply(200)],
            _ => return Vec::new(),
        };
        let plan = if plans.len() > 1 { plans.pop_front() } else { plans.front().cloned() };
        match plan.unwrap_or(Plan::Accept) {
            Plan::Accept => {
                let mut response = reply(200);
                match request.method() {
                    Method::Invite => {
                        response.push(Name::Contact, format!("<sip:{at}>")).unwrap();
                        response.push(Name::Server, "Example Gateway 2.0").unwrap();
                        let is_shown = String::from_utf8_lossy(request.body()).contains("m=video");
                        let sdp = if is_shown { format!("{SDP}{VIDEO}") } else { SDP.to_owned() };
                        response.set_body("application/sdp", sdp).unwrap();
                    }
                    Method::Update => response.set_body("application/sdp", SDP).unwrap(),
                    Method::Register => {
                        let contact = request.header(Name::Contact).unwrap_or_default().to_owned();
                        let expires = request.header(Name::Expires).unwrap_or_default().to_owned();
                        response.push(Name::Contact, format!("{contact};expires={expires}")).unwrap();
                    }
                    _ => {}
                }
                vec![response]
            }
            Plan::Reliable => {
                let mut response = reply(183);
                response.push(Name::Contact, format!("<sip:{at}>")).unwrap();
                response.push(Name::Require, "100rel").unwrap();
                response.push(Name::RSeq, "4711").unwrap();
                response.push(Name::Allow, "INVITE, PRACK, UPDATE").unwrap();
                response.set_body("application/sdp", SDP).unwrap();
                vec![response.clone(), response]
            }
            Plan::Ring => vec![reply(180)],
            Plan::Refuse(status, headers) => {
                let mut response = reply(status);
                for (name, value) in headers {
                    response.push(Name::from(name), value).unwrap();
                }
                vec![response]
            }
            Plan::Silence => Vec::new(),
        }
    }
}

fn branch(request: &Request) -> Option<String> {
    request.via_top().ok().and_then(|via| via.branch().map(str::to_owned))
}

/// Returns a plan to challenge with that realm.
pub(super) fn challenge(status: u16, realm: &str, nonce: &str, more: &str) -> Plan {
    let name = if status == 401 { "WWW-Authenticate" } else { "Proxy-Authenticate" };
    Plan::Refuse(status, vec![(name, format!("Digest realm=\"{realm}\", nonce=\"{nonce}\"{more}"))])
}

/// The video section to append to [`SDP`].
pub(super) const VIDEO: &str = "m=video 6010 RTP/AVP 102\r\na=rtpmap:102 VP8/90000\r\n";
pub(super) const SDP: &str =
    "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n";
