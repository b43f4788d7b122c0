//! Calls in rtpengine, set up by its NG protocol: bencoded commands over UDP, each with a cookie.

use std::net::{SocketAddrV4, UdpSocket};
use std::time::Duration;

use crate::program::bencode::{text_of, write_dictionary};
use crate::program::error::LoadError;
use crate::program::sip_text::{audio, write_sdp};
use crate::program::switchboard::{AudioPath, Switchboard};

/// The control connection to an rtpengine.
pub(crate) struct Control {
    socket: UdpSocket,
    calls: u32,
}

impl Control {
    /// Connects to the control port and checks that rtpengine responds.
    ///
    /// # Errors
    /// It does not respond.
    pub(crate) fn open(address: SocketAddrV4, calls: u32) -> Result<Control, LoadError> {
        let socket = UdpSocket::bind((*address.ip(), 0))?;
        socket.connect(address)?;
        socket.set_read_timeout(Some(ANSWER_MAX))?;
        let control = Control { socket, calls };
        control.ask("ping", &[("command", "ping")], "pong")?;
        Ok(control)
    }

    /// Offers and answers every call, and returns the paths of both sides.
    ///
    /// # Errors
    /// One of them is refused, or gets no response.
    pub(crate) fn set_up(&self, board: &Switchboard) -> Result<Vec<AudioPath>, LoadError> {
        let mut paths = Vec::new();
        for number in 0..self.calls {
            let [caller, callee] = board.media_sockets(number);
            let call_id = call_id(number);
            let [offer, answer] = [caller, callee].map(|socket| sdp(board.address(socket)));
            let offered = self.ask(
                &format!("o{number}"),
                &[("call-id", &call_id), ("command", "offer"), ("from-tag", "a"), ("sdp", &offer)],
                "ok",
            )?;
            let answered = self.ask(
                &format!("a{number}"),
                &[
                    ("call-id", &call_id),
                    ("command", "answer"),
                    ("from-tag", "a"),
                    ("sdp", &answer),
                    ("to-tag", "b"),
                ],
                "ok",
            )?;
            // The caller sends to the address in the answer's result, the callee to that in the offer's result.
            for (socket, shown) in [(caller, answered), (callee, offered)] {
                let to = text_of(&shown, "sdp").and_then(audio);
                let to =
                    to.ok_or_else(|| LoadError::SetUp("rtpengine answers without an address".to_owned()))?;
                paths.push((socket, to));
            }
        }
        Ok(paths)
    }

    /// Deletes every call.
    ///
    /// # Errors
    /// One of them does not exist.
    pub(crate) fn tear_down(&self) -> Result<(), LoadError> {
        for number in 0..self.calls {
            let call_id = call_id(number);
            let entries = [("call-id", call_id.as_str()), ("command", "delete"), ("from-tag", "a")];
            self.ask(&format!("d{number}"), &entries, "ok")?;
        }
        Ok(())
    }

    /// Repeats a command until its response arrives; a response with another cookie belongs to an earlier command.
    fn ask(&self, cookie: &str, entries: &[(&str, &str)], expected: &str) -> Result<Vec<u8>, LoadError> {
        let mut command = format!("{}{cookie} ", std::process::id()).into_bytes();
        let head = command.len();
        write_dictionary(&mut command, entries);
        let mut answer = vec![0; ANSWER_BYTES_MAX];
        for _ in 0..TRIES_MAX {
            self.socket.send(&command)?;
            while let Ok(length) = self.socket.recv(&mut answer) {
                let received = answer.get(..length).unwrap_or_default();
                if command.get(..head) != received.get(..head) {
                    continue;
                }
                let dictionary = received.get(head..).unwrap_or_default();
                let result = text_of(dictionary, "result").unwrap_or("nothing");
                if result == expected {
                    return Ok(dictionary.to_vec());
                }
                let why = text_of(dictionary, "error-reason").unwrap_or_default();
                return Err(LoadError::SetUp(format!("rtpengine answers {result} to {cookie}: {why}")));
            }
        }
        Err(LoadError::SetUp(format!("rtpengine does not answer {cookie}")))
    }
}

fn call_id(number: u32) -> String {
    format!("load{number}-{:x}", std::process::id())
}

fn sdp(media: SocketAddrV4) -> String {
    let mut bytes = Vec::new();
    write_sdp(&mut bytes, media);
    String::from_utf8(bytes).unwrap_or_default()
}

const ANSWER_MAX: Duration = Duration::from_secs(1);
const ANSWER_BYTES_MAX: usize = 65_536;
const TRIES_MAX: u32 = 5;
