//! A name server on loopback that knows a handful of records (RFC 1035 §4, RFC 2782, RFC 3403).

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// A record of a name.
#[derive(Clone, Copy, Debug)]
pub enum Record {
    /// A.
    Address([u8; 4]),
    /// NAPTR with the flag `s`.
    Pointer { order: u16, preference: u16, service: &'static str, replacement: &'static str },
    /// SRV, of weight 0.
    Service { priority: u16, port: u16, target: &'static str },
}

/// Answers until it is dropped.
pub struct NameServer {
    pub local: SocketAddr,
    /// The queried names, in order.
    pub asked: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl NameServer {
    pub async fn start(records: Vec<(&'static str, Record)>) -> NameServer {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let local = socket.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            let mut buffer = [0; 1_500];
            while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
                let (name, kind, end) = question(&buffer[..len]);
                log.lock().unwrap().push(name.clone());
                let found: Vec<Record> =
                    records.iter().filter(|(known, _)| *known == name).map(|(_, record)| *record).collect();
                let answer = answer(&buffer[..end], kind, &found);
                socket.send_to(&answer, from).await.unwrap();
            }
        });
        NameServer { local, asked, task }
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The name in lower case, the type, and the end of the question.
fn question(query: &[u8]) -> (String, u16, usize) {
    let mut at = 12;
    let mut labels = Vec::new();
    while query[at] != 0 {
        let len = usize::from(query[at]);
        labels.push(String::from_utf8_lossy(&query[at + 1..=at + len]).to_lowercase());
        at += len + 1;
    }
    (labels.join("."), u16::from_be_bytes([query[at + 1], query[at + 2]]), at + 5)
}

fn answer(query: &[u8], kind: u16, found: &[Record]) -> Vec<u8> {
    let answers: Vec<Vec<u8>> = found.iter().filter_map(|record| data(kind, *record)).collect();
    let mut reply = query.to_vec();
    // A response, authoritative, recursion available; a name without any record does not exist.
    reply[2] = 0x84 | (query[2] & 0x01);
    reply[3] = if found.is_empty() { 0x83 } else { 0x80 };
    reply[4..12].copy_from_slice(&[0, 1, 0, u8::try_from(answers.len()).unwrap(), 0, 0, 0, 0]);
    for data in answers {
        reply.extend([0xC0, 12]); // the name of the question
        reply.extend(kind.to_be_bytes());
        reply.extend([0, 1, 0, 0, 0, 60]); // IN, a minute
        reply.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
        reply.extend(data);
    }
    reply
}

fn data(kind: u16, record: Record) -> Option<Vec<u8>> {
    match (kind, record) {
        (1, Record::Address(address)) => Some(address.to_vec()),
        (33, Record::Service { priority, port, target }) => {
            Some([[priority.to_be_bytes(), [0, 0], port.to_be_bytes()].concat(), name(target)].concat())
        }
        (35, Record::Pointer { order, preference, service, replacement }) => {
            let mut data = [order.to_be_bytes(), preference.to_be_bytes()].concat();
            for text in ["s", service, ""] {
                data.push(u8::try_from(text.len()).unwrap());
                data.extend(text.as_bytes());
            }
            data.extend(name(replacement));
            Some(data)
        }
        _ => None,
    }
}

fn name(text: &str) -> Vec<u8> {
    let label = |label: &str| [&[u8::try_from(label.len()).unwrap()], label.as_bytes()].concat();
    text.split('.').flat_map(label).chain([0]).collect()
}
